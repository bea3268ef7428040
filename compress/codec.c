// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of codecs, their names, and the objects that hold a codec's workspace. */
#include "codec.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codec_backends.h"
#include "parse.h"
#include "units.h"

static const struct codec_ops *const codec_table[CODEC_COUNT] = {
	[CODEC_COPY] = &codec_copy_ops,
	[CODEC_LZ4] = &codec_lz4_ops,
	[CODEC_LZ4HC] = &codec_lz4hc_ops,
	[CODEC_ZSTD] = &codec_zstd_ops,
};

/* Object and workspace lie in one mapping: | struct compressor | pad to 64 | workspace | pad to page |. */
struct compressor {
	const struct codec_ops *ops;
	void *context;
	size_t mapped_bytes;
	size_t src_max_bytes;
	int level;
};

struct decompressor {
	size_t mapped_bytes;
	size_t dst_max_bytes;
	void *contexts[CODEC_COUNT]; /* NULL: this codec decodes without state */
};

_Static_assert(sizeof(struct compressor) <= CACHE_LINE_BYTES, "what every run reads is one line");
_Static_assert(2 * UNIT_MAX_BYTES < INT_MAX, "backends may count in int");

const struct codec_ops *codec_ops(unsigned id)
{
	return id < CODEC_COUNT ? codec_table[id] : NULL;
}

static const struct codec_ops *find_by_name(const char *name, size_t name_bytes)
{
	for (unsigned id = 0; id < CODEC_COUNT; id++) {
		const char *known = codec_table[id]->name;

		if (strlen(known) == name_bytes && memcmp(known, name, name_bytes) == 0)
			return codec_table[id];
	}
	return NULL;
}

int codec_parse(const char *text, struct codec_choice *ret)
{
	size_t name_bytes = strcspn(text, ":");
	const struct codec_ops *ops = find_by_name(text, name_bytes);
	long level;

	if (!ops)
		return -EINVAL;
	level = ops->level_default;
	if (text[name_bytes] == ':') {
		if (!ops->level_name)
			return -EINVAL;
		if (parse_int(text + name_bytes + 1, ops->level_min, ops->level_max, &level) < 0)
			return -EINVAL;
	}
	*ret = (struct codec_choice){.id = ops->id, .level = (int)level};
	return 0;
}

const char *codec_format(struct codec_choice choice, char *buffer, size_t buffer_bytes)
{
	const struct codec_ops *ops = codec_ops(choice.id);

	if (!ops)
		snprintf(buffer, buffer_bytes, "codec %u?", (unsigned)choice.id);
	else if (!ops->level_name)
		snprintf(buffer, buffer_bytes, "%s", ops->name);
	else
		snprintf(buffer, buffer_bytes, "%s:%d", ops->name, choice.level);
	return buffer;
}

const char *codec_list(char *buffer, size_t buffer_bytes)
{
	size_t used = 0;

	for (unsigned id = 0; id < CODEC_COUNT && used < buffer_bytes; id++) {
		const struct codec_ops *ops = codec_table[id];
		const char *separator = id > 0 ? ", " : "";
		int length;

		if (ops->level_name)
			length = snprintf(buffer + used, buffer_bytes - used, "%s%s[:%d..%d]", separator, ops->name,
				ops->level_min, ops->level_max);
		else
			length = snprintf(buffer + used, buffer_bytes - used, "%s%s", separator, ops->name);
		used += (size_t)length;
	}
	return buffer;
}

/* Every page is written here: a first touch later would be a fault, and memory wanted, on the way of a request. */
static void *map_touched(size_t bytes)
{
	void *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mapping == MAP_FAILED)
		return NULL;
	memset(mapping, 0, bytes);
	return mapping;
}

static size_t round_up_page(size_t bytes)
{
	return round_up_u64(bytes, (uint64_t)sysconf(_SC_PAGESIZE));
}

static bool src_max_is_valid(size_t src_max_bytes)
{
	return src_max_bytes >= GRANULE_BYTES && src_max_bytes <= UNIT_MAX_BYTES;
}

int compressor_create(struct compressor **ret, struct codec_choice choice, size_t src_max_bytes)
{
	const struct codec_ops *ops = codec_ops(choice.id);
	size_t workspace_at = round_up_u64(sizeof(struct compressor), CACHE_LINE_BYTES);
	struct compressor *compressor;
	size_t workspace_bytes, mapped_bytes;
	void *workspace;

	if (!ops || choice.level < ops->level_min || choice.level > ops->level_max || !src_max_is_valid(src_max_bytes))
		return -EINVAL;
	workspace_bytes = round_up_u64(ops->compress_workspace_bytes(choice.level, src_max_bytes), CACHE_LINE_BYTES);
	mapped_bytes = round_up_page(workspace_at + workspace_bytes);
	compressor = map_touched(mapped_bytes);
	if (!compressor)
		return -ENOMEM;
	workspace = (char *)compressor + workspace_at;
	*compressor = (struct compressor){
		.ops = ops,
		.context = workspace,
		.mapped_bytes = mapped_bytes,
		.src_max_bytes = src_max_bytes,
		.level = choice.level,
	};
	if (ops->compress_init) {
		compressor->context = ops->compress_init(workspace, workspace_bytes, choice.level, src_max_bytes);
		if (!compressor->context) {
			compressor_destroy(compressor);
			return -ENOMEM;
		}
	}
	*ret = compressor;
	return 0;
}

void compressor_destroy(struct compressor *compressor)
{
	if (compressor)
		munmap(compressor, compressor->mapped_bytes);
}

struct codec_choice compressor_choice(const struct compressor *compressor)
{
	return (struct codec_choice){.id = compressor->ops->id, .level = compressor->level};
}

size_t compressor_bytes(const struct compressor *compressor)
{
	return compressor->mapped_bytes;
}

ssize_t compressor_run(struct compressor *compressor, const void *src, size_t src_bytes, void *dst, size_t dst_bytes)
{
	if (src_bytes == 0 || src_bytes > compressor->src_max_bytes)
		return -EINVAL;
	if (dst_bytes == 0)
		return -ENOSPC;
	if (dst_bytes > 2 * UNIT_MAX_BYTES)
		dst_bytes = 2 * UNIT_MAX_BYTES; /* more than any codec can fill */
	return compressor->ops->compress(compressor->context, compressor->level, src, src_bytes, dst, dst_bytes);
}

static size_t decompress_workspace_bytes(const struct codec_ops *ops, size_t src_max_bytes)
{
	if (!ops->decompress_workspace_bytes)
		return 0;
	return round_up_u64(ops->decompress_workspace_bytes(src_max_bytes), CACHE_LINE_BYTES);
}

int decompressor_create(struct decompressor **ret, size_t src_max_bytes)
{
	size_t at = round_up_u64(sizeof(struct decompressor), CACHE_LINE_BYTES);
	struct decompressor *decompressor;
	size_t mapped_bytes = at;

	if (!src_max_is_valid(src_max_bytes))
		return -EINVAL;
	for (unsigned id = 0; id < CODEC_COUNT; id++)
		mapped_bytes += decompress_workspace_bytes(codec_table[id], src_max_bytes);
	mapped_bytes = round_up_page(mapped_bytes);
	decompressor = map_touched(mapped_bytes);
	if (!decompressor)
		return -ENOMEM;
	decompressor->mapped_bytes = mapped_bytes;
	decompressor->dst_max_bytes = src_max_bytes;
	for (unsigned id = 0; id < CODEC_COUNT; id++) {
		size_t workspace_bytes = decompress_workspace_bytes(codec_table[id], src_max_bytes);
		void *workspace = (char *)decompressor + at;

		if (workspace_bytes == 0)
			continue;
		at += workspace_bytes;
		decompressor->contexts[id] = codec_table[id]->decompress_init(workspace, workspace_bytes);
		if (!decompressor->contexts[id]) {
			decompressor_destroy(decompressor);
			return -ENOMEM;
		}
	}
	*ret = decompressor;
	return 0;
}

void decompressor_destroy(struct decompressor *decompressor)
{
	if (decompressor)
		munmap(decompressor, decompressor->mapped_bytes);
}

size_t decompressor_bytes(const struct decompressor *decompressor)
{
	return decompressor->mapped_bytes;
}

/* All of it, the sizes too, comes from stored records: whatever is wrong with it is damage. */
int decompressor_run(struct decompressor *decompressor, unsigned codec, const void *src, size_t src_bytes, void *dst,
	size_t dst_bytes)
{
	const struct codec_ops *ops = codec_ops(codec);

	if (!ops || src_bytes == 0 || src_bytes > 2 * UNIT_MAX_BYTES)
		return -EBADMSG;
	if (dst_bytes == 0 || dst_bytes > decompressor->dst_max_bytes)
		return -EBADMSG;
	return ops->decompress(decompressor->contexts[codec], src, src_bytes, dst, dst_bytes);
}
