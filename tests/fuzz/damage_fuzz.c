// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Damaged payload: any bytes whatever are refused or decode to exactly the
 * asked size, from nothing but themselves, and nothing outside is touched.
 *
 *	| codec:2 edit:1 content:3 | plain size - 1:2 | its shift:1 | the stream, or edits of a true one |
 *
 * An edit is | position:2 | value:1 |: value 0 cuts the stream there.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/codec_content.h"
#include "codec.h"
#include "units.h"

#define PLAIN_MAX_BYTES (64 * KIB)
#define STORED_MAX_BYTES (PLAIN_MAX_BYTES + PLAIN_MAX_BYTES / 128 + 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct compressor *compressors[CODEC_COUNT];
static struct decompressor *decompressor;
static struct guarded stored, out;
static uint8_t plain[PLAIN_MAX_BYTES], decoded[PLAIN_MAX_BYTES];

static void check(int holds)
{
	if (!holds)
		abort();
}

static void set_up(void)
{
	if (decompressor)
		return;
	for (unsigned codec = 0; codec < CODEC_COUNT; codec++) {
		struct codec_choice choice = {.id = (enum codec_id)codec, .level = codec_ops(codec)->level_default};

		check(compressor_create(&compressors[codec], choice, PLAIN_MAX_BYTES) == 0);
	}
	check(decompressor_create(&decompressor, PLAIN_MAX_BYTES) == 0);
	stored = guarded_create(STORED_MAX_BYTES);
	out = guarded_create(PLAIN_MAX_BYTES);
}

/* Leaves a true stream at the head of stored, with the edits applied. Returns its size. */
static size_t edited_stream(
	unsigned codec, enum content content, size_t plain_bytes, const uint8_t *edits, size_t bytes)
{
	uint8_t *stream = guarded_head(&stored);
	ssize_t result;
	size_t stream_bytes;

	content_fill(content, plain_bytes, plain, plain_bytes);
	result = compressor_run(compressors[codec], plain, plain_bytes, stream, STORED_MAX_BYTES);
	check(result > 0);
	stream_bytes = (size_t)result;
	for (; bytes >= 3 && stream_bytes > 0; edits += 3, bytes -= 3) {
		size_t position = (edits[0] | (size_t)edits[1] << 8) % stream_bytes;

		if (edits[2] == 0)
			stream_bytes = position;
		else
			stream[position] ^= edits[2];
	}
	return stream_bytes;
}

/* The same stream before a guard page, into memory that holds other bytes: the same answer and the same result. */
static void decode_twice(unsigned codec, size_t stream_bytes, size_t plain_bytes)
{
	uint8_t *stream = guarded_tail(&stored, stream_bytes), *target = guarded_tail(&out, plain_bytes);
	int first, second;

	memmove(stream, guarded_head(&stored), stream_bytes);
	memset(target, 0x00, plain_bytes);
	first = decompressor_run(decompressor, codec, stream, stream_bytes, target, plain_bytes);
	check(first == 0 || first == -EBADMSG);
	memcpy(decoded, target, plain_bytes);
	target = guarded_head(&out);
	memset(target, 0xa5, plain_bytes);
	second = decompressor_run(decompressor, codec, stream, stream_bytes, target, plain_bytes);
	check(second == first);
	if (first == 0)
		check(memcmp(decoded, target, plain_bytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	unsigned codec;
	size_t plain_bytes, stream_bytes;

	set_up();
	if (bytes < 5)
		return 0;
	codec = data[0] & 3;
	plain_bytes = 1 + ((data[1] | (size_t)data[2] << 8) >> (data[3] & 7));
	if (data[0] >> 2 & 1) {
		enum content content = (enum content)((data[0] >> 3 & 7) % CONTENT_COUNT);

		stream_bytes = edited_stream(codec, content, plain_bytes, data + 4, bytes - 4);
	} else {
		stream_bytes = bytes - 4 < STORED_MAX_BYTES ? bytes - 4 : STORED_MAX_BYTES;
		memcpy(guarded_head(&stored), data + 4, stream_bytes);
	}
	decode_twice(codec, stream_bytes, plain_bytes);
	return 0;
}
