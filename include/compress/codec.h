/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Codecs: lz4, lz4hc, zstd and copy behind one table.
 *
 * What never changes (the table) is apart from what is scratch (a compressor
 * or a decompressor, one per thread). A context gets its whole workspace when
 * it is created; run calls neither allocate, lock nor block. Contexts may be
 * created by one thread and used by another, but by one at a time.
 *
 * A block is compressed on its own: no history is carried from call to call,
 * so every stored frame can be decoded alone.
 *
 * Errors: -ENOSPC = the result does not fit into dst (zstd: not with 16 bytes
 * to spare) and the caller stores the block raw, -EBADMSG = not a stream of
 * this codec that decodes to exactly dst_bytes. Bad input never reads outside
 * src nor writes outside dst.
 */
#ifndef COMPRESS_CODEC_H
#define COMPRESS_CODEC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Stored in object records: values are for ever. */
enum codec_id {
	CODEC_COPY = 0,
	CODEC_LZ4 = 1,
	CODEC_LZ4HC = 2,
	CODEC_ZSTD = 3,
	CODEC_COUNT = 4,
};

/* One backend, one file, one of these. src_max_bytes: 4 KiB .. 16 MiB, the largest block a context will see. */
struct codec_ops {
	const char *name;
	enum codec_id id;
	const char *level_name; /* what the level means: "acceleration", "level"; NULL: takes none */
	int level_min;
	int level_max;
	int level_default;

	/* Bytes of workspace for compressing at this level; 0: none needed. */
	size_t (*compress_workspace_bytes)(int level, size_t src_max_bytes);

	/* Prepares a 64-byte aligned workspace of that size. Returns the context or NULL. May be NULL: the workspace is the context. */
	void *(*compress_init)(void *workspace, size_t workspace_bytes, int level, size_t src_max_bytes);

	/* Returns bytes written to dst (> 0) or -ENOSPC. src_bytes: 1 .. src_max_bytes. */
	ssize_t (*compress)(void *context, int level, const void *src, size_t src_bytes, void *dst, size_t dst_bytes);

	/* The same for decoding; NULL where decoding needs no state. */
	size_t (*decompress_workspace_bytes)(size_t src_max_bytes);
	void *(*decompress_init)(void *workspace, size_t workspace_bytes);

	/* Decodes to exactly dst_bytes. Returns 0 or -EBADMSG. */
	int (*decompress)(void *context, const void *src, size_t src_bytes, void *dst, size_t dst_bytes);
};

/* A codec and its level, as the user says it: "lz4", "lz4:8", "zstd:3", "zstd:-5". */
struct codec_choice {
	enum codec_id id;
	int level;
};

/* The ops of an id, or NULL for a value that is not one (ids come from stored records). */
const struct codec_ops *codec_ops(unsigned id);

/* Returns 0 or -EINVAL (unknown name, level missing its number or out of range). Any thread, no allocation. */
int codec_parse(const char *text, struct codec_choice *ret);

/* "zstd:3" into buffer (at least 16 bytes); returns buffer. */
const char *codec_format(struct codec_choice choice, char *buffer, size_t buffer_bytes);

/* "copy, lz4[:1..65537], ..." from the table, for help texts. */
const char *codec_list(char *buffer, size_t buffer_bytes);

struct compressor;
struct decompressor;

/*
 * Maps and touches the workspace (mmap; locked when the process is under
 * mlockall). src_max_bytes: 4 KiB .. 16 MiB; zstd's window is set to hold it.
 * Returns 0, -EINVAL (choice or size out of range) or -ENOMEM.
 */
int compressor_create(struct compressor **ret, struct codec_choice choice, size_t src_max_bytes);
void compressor_destroy(struct compressor *compressor); /* NULL is fine */
struct codec_choice compressor_choice(const struct compressor *compressor);
size_t compressor_bytes(const struct compressor *compressor); /* what it locks */

/* See codec_ops.compress. src_bytes above src_max_bytes: -EINVAL. */
ssize_t compressor_run(struct compressor *compressor, const void *src, size_t src_bytes, void *dst, size_t dst_bytes);

/* One decompressor decodes every codec: an object knows the codec it was written with. */
int decompressor_create(struct decompressor **ret, size_t src_max_bytes);
void decompressor_destroy(struct decompressor *decompressor); /* NULL is fine */
size_t decompressor_bytes(const struct decompressor *decompressor);

/* See codec_ops.decompress. Unknown codec: -EBADMSG. */
int decompressor_run(struct decompressor *decompressor, unsigned codec, const void *src, size_t src_bytes, void *dst, size_t dst_bytes);

#endif
