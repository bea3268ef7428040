// SPDX-License-Identifier: GPL-2.0-or-later
/* Damaged streams: refused, or decoded to exactly the asked size, and never a byte read or written outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "codec.h"
#include "codec_content.h"
#include "units.h"

#define PLAIN_MAX_BYTES (64 * KIB)
#define STORED_MAX_BYTES (PLAIN_MAX_BYTES + 2048)
#define FLIP_ROUNDS 120

static const struct codec_choice choices[] = {
	{CODEC_COPY, 0}, {CODEC_LZ4, 1}, {CODEC_LZ4HC, 9}, {CODEC_ZSTD, -5}, {CODEC_ZSTD, 3}, {CODEC_ZSTD, 19}};
static const size_t plain_sizes[] = {1, 13, 300, 4096, 64 * KIB};

/* A stream that decodes to plain_bytes, and the places where it is tried: stored and out end at guard pages. */
struct patient {
	struct decompressor *decompressor;
	struct guarded stored, out;
	enum codec_id codec;
	size_t plain_bytes, stream_bytes;
	uint8_t plain[PLAIN_MAX_BYTES];
	uint8_t stream[STORED_MAX_BYTES];
};

static int decode_to(
	struct patient *patient, const uint8_t *stream, size_t stream_bytes, size_t plain_bytes, int at_head)
{
	uint8_t *stored = at_head ? guarded_head(&patient->stored) : guarded_tail(&patient->stored, stream_bytes);
	uint8_t *out = at_head ? guarded_head(&patient->out) : guarded_tail(&patient->out, plain_bytes);
	int result;

	memcpy(stored, stream, stream_bytes);
	result = decompressor_run(patient->decompressor, patient->codec, stored, stream_bytes, out, plain_bytes);
	assert_true(result == 0 || result == -EBADMSG);
	assert_memory_equal(stored, stream, stream_bytes);
	return result;
}

static int decode(struct patient *patient, const uint8_t *stream, size_t stream_bytes)
{
	int at_tail = decode_to(patient, stream, stream_bytes, patient->plain_bytes, 0);

	assert_int_equal(decode_to(patient, stream, stream_bytes, patient->plain_bytes, 1), at_tail);
	return at_tail;
}

static void assert_is_well(struct patient *patient)
{
	assert_int_equal(decode(patient, patient->stream, patient->stream_bytes), 0);
	assert_memory_equal(guarded_head(&patient->out), patient->plain, patient->plain_bytes);
}

/* Runs fn with every codec, content and size. */
static void for_each_patient(void (*fn)(struct patient *patient))
{
	struct patient *patient = calloc(1, sizeof(*patient));

	assert_non_null(patient);
	assert_int_equal(decompressor_create(&patient->decompressor, PLAIN_MAX_BYTES), 0);
	patient->stored = guarded_create(STORED_MAX_BYTES);
	patient->out = guarded_create(2 * PLAIN_MAX_BYTES);
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		struct compressor *compressor;

		assert_int_equal(compressor_create(&compressor, choices[i], PLAIN_MAX_BYTES), 0);
		patient->codec = choices[i].id;
		for (size_t size = 0; size < sizeof(plain_sizes) / sizeof(plain_sizes[0]); size++) {
			for (unsigned content = 0; content < CONTENT_COUNT; content++) {
				ssize_t bytes;

				patient->plain_bytes = plain_sizes[size];
				content_fill(content, i + size, patient->plain, patient->plain_bytes);
				bytes = compressor_run(compressor, patient->plain, patient->plain_bytes,
					patient->stream, STORED_MAX_BYTES);
				assert_true(bytes > 0);
				patient->stream_bytes = (size_t)bytes;
				assert_is_well(patient);
				fn(patient);
				assert_is_well(patient);
			}
		}
		compressor_destroy(compressor);
	}
	guarded_destroy(&patient->stored);
	guarded_destroy(&patient->out);
	decompressor_destroy(patient->decompressor);
	free(patient);
}

/* Every length of a short stream; of a long one both ends and seeded lengths between. */
static void truncate_patient(struct patient *patient)
{
	uint64_t state = content_seed(patient->stream_bytes);
	size_t bytes = patient->stream_bytes;

	for (size_t cut = 0; cut < bytes && cut < 200; cut++) {
		assert_int_equal(decode(patient, patient->stream, cut), -EBADMSG);
		assert_int_equal(decode(patient, patient->stream, bytes - 1 - cut), -EBADMSG);
	}
	for (unsigned round = 0; round < 50; round++)
		assert_int_equal(decode(patient, patient->stream, content_random(&state) % bytes), -EBADMSG);
}

static void test_truncated(void **state)
{
	(void)state;
	for_each_patient(truncate_patient);
}

/* By zeros, by noise, and by a second stream, which decodes when it stands alone. */
static void extend_patient(struct patient *patient)
{
	static uint8_t longer[2 * STORED_MAX_BYTES];
	size_t bytes = patient->stream_bytes;
	uint64_t state = content_seed(bytes);

	memcpy(longer, patient->stream, bytes);
	for (size_t extra = 1; extra <= 20; extra++) {
		memset(longer + bytes, 0, extra);
		assert_int_equal(decode(patient, longer, bytes + extra), -EBADMSG);
		content_fill_random(longer + bytes, extra, &state);
		assert_int_equal(decode(patient, longer, bytes + extra), -EBADMSG);
	}
	if (patient->codec == CODEC_COPY || 2 * bytes > STORED_MAX_BYTES)
		return;
	memcpy(longer + bytes, patient->stream, bytes);
	assert_int_equal(decode(patient, longer, 2 * bytes), -EBADMSG);
	if (2 * patient->plain_bytes <= PLAIN_MAX_BYTES)
		assert_int_equal(decode_to(patient, longer, 2 * bytes, 2 * patient->plain_bytes, 0), -EBADMSG);
}

static void test_extended(void **state)
{
	(void)state;
	for_each_patient(extend_patient);
}

static void missize_patient(struct patient *patient)
{
	const size_t right = patient->plain_bytes;
	const size_t wrong[] = {
		0, 1, right / 2, right - 1, right + 1, right + 8, 2 * right, PLAIN_MAX_BYTES, PLAIN_MAX_BYTES + 1};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (wrong[i] == right)
			continue;
		assert_int_equal(decode_to(patient, patient->stream, patient->stream_bytes, wrong[i], 0), -EBADMSG);
		assert_int_equal(decode_to(patient, patient->stream, patient->stream_bytes, wrong[i], 1), -EBADMSG);
	}
}

static void test_wrong_size(void **state)
{
	(void)state;
	for_each_patient(missize_patient);
}

static unsigned long flips_refused[CODEC_COUNT], flips_noticed[CODEC_COUNT], flips[CODEC_COUNT];

/* One to three bits, half of the time among the first bytes, where the headers are. */
static void flip_patient(struct patient *patient)
{
	static uint8_t damaged[STORED_MAX_BYTES];
	uint64_t state = content_seed(patient->stream_bytes * 7 + patient->codec);
	unsigned rounds = patient->plain_bytes > 4096 ? FLIP_ROUNDS / 4 : FLIP_ROUNDS;

	for (unsigned round = 0; round < rounds; round++) {
		size_t span = round % 2 ? patient->stream_bytes : (patient->stream_bytes + 7) / 8;

		memcpy(damaged, patient->stream, patient->stream_bytes);
		for (unsigned bit = 0; bit <= round % 3; bit++) {
			uint64_t random = content_random(&state);

			damaged[(random >> 8) % span] ^= (uint8_t)(1U << (random & 7));
		}
		flips[patient->codec]++;
		if (decode(patient, damaged, patient->stream_bytes) == -EBADMSG)
			flips_refused[patient->codec]++;
		else if (memcmp(guarded_head(&patient->out), patient->plain, patient->plain_bytes) != 0)
			flips_noticed[patient->codec]++;
	}
}

/* copy cannot refuse; a codec with structure that refused none would not have looked. */
static void test_flipped_bits(void **state)
{
	(void)state;
	for_each_patient(flip_patient);
	assert_int_equal(flips_refused[CODEC_COPY], 0);
	assert_true(flips_noticed[CODEC_COPY] > flips[CODEC_COPY] / 2);
	for (unsigned codec = CODEC_LZ4; codec < CODEC_COUNT; codec++) {
		assert_true(flips_refused[codec] > flips[codec] / 10);
		assert_true(flips_noticed[codec] > 0);
	}
}

/* Noise instead of a stream, and the stream of another codec. */
static void replace_patient(struct patient *patient)
{
	enum codec_id own = patient->codec;
	static uint8_t noise[256];
	uint64_t state = content_seed(patient->stream_bytes + 99);

	for (unsigned round = 0; round < 50; round++) {
		size_t bytes = 1 + content_random(&state) % sizeof(noise);

		content_fill_random(noise, bytes, &state);
		if (round % 2)
			noise[0] = 0;
		if (own != CODEC_COPY || bytes != patient->plain_bytes)
			decode(patient, noise, bytes);
	}
	for (unsigned other = CODEC_LZ4; other < CODEC_COUNT; other++) {
		patient->codec = (enum codec_id)other;
		decode(patient, patient->stream, patient->stream_bytes);
	}
	patient->codec = own;
}

static void test_other_bytes(void **state)
{
	(void)state;
	for_each_patient(replace_patient);
}

/*
 * Frames that the library itself would take, or would look at more closely
 * than they are long. The good one holds "hello" in one raw block.
 */
static void test_zstd_frames_by_hand(void **state)
{
	static const struct {
		const char *what;
		size_t bytes;
		const char *frame;
		int expected;
	} frames[] = {
		{"good", 10, "\x00\x00\x29\x00\x00hello", 0},
		{"good in two blocks", 13, "\x00\x00\x10\x00\x00he\x19\x00\x00llo", 0},
		{"empty block in front", 13, "\x00\x00\x00\x00\x00\x29\x00\x00hello", 0},
		{"no last block", 10, "\x00\x00\x28\x00\x00hello", -EBADMSG},
		{"reserved block type", 10, "\x00\x00\x2f\x00\x00hello", -EBADMSG},
		{"run instead of raw", 6, "\x00\x00\x2b\x00\x00h", 0},
		{"run too long", 6, "\x00\x00\x33\x00\x00h", -EBADMSG},
		{"run too short", 6, "\x00\x00\x23\x00\x00h", -EBADMSG},
		{"window of 16 MiB", 10, "\x00\x70\x29\x00\x00hello", 0},
		{"window above", 10, "\x00\x78\x29\x00\x00hello", -EBADMSG},
		{"content size", 10, "\x20\x05\x29\x00\x00hello", -EBADMSG},
		{"check sum flag", 14, "\x04\x00\x29\x00\x00helloabcd", -EBADMSG},
		{"dictionary", 11, "\x01\x00\x01\x29\x00\x00hello", -EBADMSG},
		{"magic number", 14, "\x28\xb5\x2f\xfd\x00\x00\x29\x00\x00hello", -EBADMSG},
		{"skippable frame in front", 18, "\x50\x2a\x4d\x18\x00\x00\x00\x00\x00\x00\x29\x00\x00hello", -EBADMSG},
		{"skippable frame behind", 18, "\x00\x00\x29\x00\x00hello\x50\x2a\x4d\x18\x00\x00\x00\x00", -EBADMSG},
		{"empty frame in front", 15, "\x00\x00\x01\x00\x00\x00\x00\x29\x00\x00hello", -EBADMSG},
		{"legacy magic number", 10, "\x25\xb5\x2f\xfd\x00hello", -EBADMSG},
		{"descriptor alone", 1, "\x00", -EBADMSG},
		{"header alone", 2, "\x00\x00", -EBADMSG},
		{"cut block header", 4, "\x00\x00\x29\x00", -EBADMSG},
		{"block header alone", 5, "\x00\x00\x29\x00\x00", -EBADMSG},
		{"empty frame", 5, "\x00\x00\x01\x00\x00", -EBADMSG},
		{"huge block", 10, "\x00\x00\xf9\xff\xffhello", -EBADMSG},
	};
	struct guarded stored = guarded_create(64), out = guarded_create(64);
	struct decompressor *decompressor;

	(void)state;
	assert_int_equal(decompressor_create(&decompressor, 4096), 0);
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		uint8_t *frame = guarded_tail(&stored, frames[i].bytes);
		int result;

		memcpy(frame, frames[i].frame, frames[i].bytes);
		result = decompressor_run(decompressor, CODEC_ZSTD, frame, frames[i].bytes, guarded_tail(&out, 5), 5);
		if (result != frames[i].expected)
			fail_msg("%s: %d", frames[i].what, result);
	}
	decompressor_destroy(decompressor);
	guarded_destroy(&stored);
	guarded_destroy(&out);
}

static void test_refused_before_any_codec(void **state)
{
	struct decompressor *decompressor;
	uint8_t src[8] = {0}, out[8];

	(void)state;
	assert_int_equal(decompressor_create(&decompressor, 4096), 0);
	assert_int_equal(decompressor_run(decompressor, CODEC_COUNT, src, 8, out, 8), -EBADMSG);
	assert_int_equal(decompressor_run(decompressor, UINT32_MAX, src, 8, out, 8), -EBADMSG);
	for (unsigned codec = 0; codec < CODEC_COUNT; codec++) {
		assert_int_equal(decompressor_run(decompressor, codec, src, 0, out, 0), -EBADMSG);
		assert_int_equal(decompressor_run(decompressor, codec, src, 0, out, 8), -EBADMSG);
		assert_int_equal(decompressor_run(decompressor, codec, src, 8, out, 0), -EBADMSG);
		assert_int_equal(decompressor_run(decompressor, codec, src, 4097, out, 4097), -EBADMSG);
		assert_int_equal(decompressor_run(decompressor, codec, src, SIZE_MAX, out, 8), -EBADMSG);
		assert_int_equal(decompressor_run(decompressor, codec, src, 8, out, SIZE_MAX), -EBADMSG);
	}
	decompressor_destroy(decompressor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_extended),
		cmocka_unit_test(test_wrong_size),
		cmocka_unit_test(test_flipped_bits),
		cmocka_unit_test(test_other_bytes),
		cmocka_unit_test(test_zstd_frames_by_hand),
		cmocka_unit_test(test_refused_before_any_codec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
