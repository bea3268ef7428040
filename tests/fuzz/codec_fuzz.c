// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Round trip: what a codec stores decodes to its source, whatever the source.
 *
 *	| codec and level | repeats | source ... |
 *
 * The source is repeated, a little different each time, so that short inputs
 * reach matches that lie far apart and every size the library has tables for.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/codec_content.h"
#include "codec.h"
#include "units.h"

#define PLAIN_MAX_BYTES (512 * KIB)
#define STORED_MAX_BYTES (PLAIN_MAX_BYTES + PLAIN_MAX_BYTES / 128 + 1024)
#define ZSTD_SPARE_BYTES 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const struct codec_choice choices[] = {{CODEC_COPY, 0}, {CODEC_LZ4, 1}, {CODEC_LZ4, 9}, {CODEC_LZ4HC, 1},
	{CODEC_LZ4HC, 9}, {CODEC_LZ4HC, 12}, {CODEC_ZSTD, -7}, {CODEC_ZSTD, -1}, {CODEC_ZSTD, 1}, {CODEC_ZSTD, 2},
	{CODEC_ZSTD, 3}, {CODEC_ZSTD, 5}, {CODEC_ZSTD, 8}, {CODEC_ZSTD, 13}, {CODEC_ZSTD, 16}, {CODEC_ZSTD, 19}};

#define CHOICE_COUNT (sizeof(choices) / sizeof(choices[0]))

static struct compressor *compressors[CHOICE_COUNT];
static struct decompressor *decompressor;
static struct guarded plain, stored, out;

static void check(int holds)
{
	if (!holds)
		abort();
}

static void set_up(void)
{
	if (decompressor)
		return;
	for (size_t i = 0; i < CHOICE_COUNT; i++)
		check(compressor_create(&compressors[i], choices[i], PLAIN_MAX_BYTES) == 0);
	check(decompressor_create(&decompressor, PLAIN_MAX_BYTES) == 0);
	plain = guarded_create(PLAIN_MAX_BYTES);
	stored = guarded_create(STORED_MAX_BYTES);
	out = guarded_create(PLAIN_MAX_BYTES);
}

/* Returns the size of the source, which ends at the guard page. */
static size_t unfold(const uint8_t *data, size_t bytes, unsigned repeats, uint8_t **ret)
{
	uint8_t *at;

	if (bytes > PLAIN_MAX_BYTES)
		bytes = PLAIN_MAX_BYTES;
	if (repeats > PLAIN_MAX_BYTES / bytes)
		repeats = (unsigned)(PLAIN_MAX_BYTES / bytes);
	*ret = at = guarded_tail(&plain, bytes * repeats);
	for (unsigned i = 0; i < repeats; i++, at += bytes) {
		memcpy(at, data, bytes);
		at[i % bytes] ^= (uint8_t)i;
	}
	return bytes * repeats;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	size_t choice, plain_bytes, stored_bytes, spare_bytes;
	uint8_t *src, *dst;
	ssize_t result;

	set_up();
	if (bytes < 3)
		return 0;
	choice = data[0] % CHOICE_COUNT;
	plain_bytes = unfold(data + 2, bytes - 2, 1U + data[1], &src);

	dst = guarded_head(&stored);
	result = compressor_run(compressors[choice], src, plain_bytes, dst, STORED_MAX_BYTES);
	check(result > 0);
	stored_bytes = (size_t)result;
	dst = guarded_tail(&stored, stored_bytes);
	memmove(dst, guarded_head(&stored), stored_bytes);
	check(decompressor_run(decompressor, choices[choice].id, dst, stored_bytes, guarded_tail(&out, plain_bytes),
		      plain_bytes) == 0);
	check(memcmp(guarded_tail(&out, plain_bytes), src, plain_bytes) == 0);
	check(decompressor_run(decompressor, choices[choice].id, dst, stored_bytes - 1, guarded_head(&out),
		      plain_bytes) == -EBADMSG);

	spare_bytes = choices[choice].id == CODEC_ZSTD ? ZSTD_SPARE_BYTES : 0;
	dst = guarded_tail(&stored, stored_bytes + spare_bytes);
	check(compressor_run(compressors[choice], src, plain_bytes, dst, stored_bytes + spare_bytes) == result);
	check(decompressor_run(decompressor, choices[choice].id, dst, stored_bytes, guarded_head(&out), plain_bytes) ==
		0);
	check(memcmp(guarded_head(&out), src, plain_bytes) == 0);
	dst = guarded_tail(&stored, stored_bytes - 1);
	check(compressor_run(compressors[choice], src, plain_bytes, dst, stored_bytes - 1) == -ENOSPC);
	return 0;
}
