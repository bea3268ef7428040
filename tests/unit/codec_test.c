// SPDX-License-Identifier: GPL-2.0-or-later
/* Codecs: every level gives every source back byte for byte, inside its buffers and in the room it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "codec_rig.h"
#include "units.h"

#define ZSTD_LEVEL_MIN (-7)
#define ZSTD_LEVEL_MAX 19
/* What zstd wants to see free behind its result. */
#define ZSTD_SPARE_BYTES 16

/* Every level there is; of the accelerations, which differ in degree only, a few. */
static void for_each_level(void (*fn)(enum codec_id id, int level))
{
	static const int accelerations[] = {1, 2, 8, 1000, 65537};

	fn(CODEC_COPY, 0);
	for (size_t i = 0; i < sizeof(accelerations) / sizeof(accelerations[0]); i++)
		fn(CODEC_LZ4, accelerations[i]);
	for (int level = 1; level <= 12; level++)
		fn(CODEC_LZ4HC, level);
	for (int level = ZSTD_LEVEL_MIN; level <= ZSTD_LEVEL_MAX; level++)
		fn(CODEC_ZSTD, level);
}

static void round_trip_64k(enum codec_id id, int level)
{
	static const size_t sizes[] = {
		1, 2, 3, 7, 12, 13, 64, 65, 255, 256, 1000, 4095, 4096, 4097, 16383, 16384, 16385, 40001, 65535, 65536};
	struct compressor *compressor = create(id, level, 64 * KIB);
	struct rig rig = rig_create(64 * KIB);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (unsigned content = 0; content < CONTENT_COUNT; content++)
			round_trip_content(&rig, compressor, content, sizes[i]);
	}
	rig_destroy(&rig);
	compressor_destroy(compressor);
}

static void test_round_trip_64k_all_levels(void **state)
{
	(void)state;
	for_each_level(round_trip_64k);
}

static void round_trip_large(enum codec_id id, int level, size_t src_max_bytes, unsigned contents)
{
	const size_t sizes[] = {src_max_bytes, src_max_bytes - 1, src_max_bytes / 3, 256 * KIB + 1, 4096};
	struct compressor *compressor = create(id, level, src_max_bytes);
	struct rig rig = rig_create(src_max_bytes);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (unsigned content = 0; content < CONTENT_COUNT; content++) {
			if (contents >> content & 1)
				round_trip_content(&rig, compressor, content, sizes[i]);
		}
	}
	rig_destroy(&rig);
	compressor_destroy(compressor);
}

static void test_round_trip_large(void **state)
{
	const unsigned all = (1U << CONTENT_COUNT) - 1, mixed = 1U << CONTENT_MIXED;

	(void)state;
	round_trip_large(CODEC_COPY, 0, 2 * MIB, all);
	round_trip_large(CODEC_LZ4, 1, 2 * MIB, all);
	round_trip_large(CODEC_LZ4HC, 1, 2 * MIB, all);
	round_trip_large(CODEC_LZ4HC, 9, 2 * MIB, mixed);
	round_trip_large(CODEC_ZSTD, -7, 2 * MIB, all);
	round_trip_large(CODEC_ZSTD, 1, 2 * MIB, all);
	round_trip_large(CODEC_ZSTD, 3, 2 * MIB, all);
	round_trip_large(CODEC_ZSTD, 6, 2 * MIB, mixed);
	round_trip_large(CODEC_ZSTD, 9, 2 * MIB, mixed);
	round_trip_large(CODEC_ZSTD, 16, 2 * MIB, mixed);
	round_trip_large(CODEC_LZ4, 1, 16 * MIB, mixed);
	round_trip_large(CODEC_LZ4HC, 1, 16 * MIB, mixed);
	round_trip_large(CODEC_ZSTD, 1, 16 * MIB, mixed);
	round_trip_large(CODEC_ZSTD, 3, 16 * MIB, mixed);
}

/*
 * zstd asks for room by level and by the size of the source, not by what is in
 * it: zeros, which are quick, show that no source lacks workspace. Sizes on
 * both sides of the borders of the library's tables, all in one context.
 */
static void test_zstd_workspace_fits_every_source(void **state)
{
	static const size_t limits[] = {4 * KIB, 5000, 64 * KIB, 100000, 256 * KIB, 2 * MIB, 16 * MIB};
	static const size_t sizes[] = {1, 100, 4 * KIB, 16 * KIB, 16 * KIB + 1, 128 * KIB, 128 * KIB + 1, 256 * KIB,
		256 * KIB + 1, 1 * MIB, 2 * MIB, 5 * MIB, 16 * MIB - 1, 16 * MIB};
	struct rig rig = rig_create(16 * MIB);
	uint8_t *src = guarded_head(&rig.src), *stored = guarded_head(&rig.stored);

	(void)state;
	memset(src, 0, 16 * MIB);
	for (size_t limit = 0; limit < sizeof(limits) / sizeof(limits[0]); limit++) {
		for (int level = ZSTD_LEVEL_MIN; level <= ZSTD_LEVEL_MAX; level++) {
			struct compressor *compressor = create(CODEC_ZSTD, level, limits[limit]);

			assert_true(compressor_run(compressor, src, limits[limit], stored, 16 * KIB) > 0);
			for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && sizes[i] <= limits[limit]; i++) {
				if (sizes[i] <= 2 * MIB || level % 6 == 1)
					assert_true(compressor_run(compressor, src, sizes[i], stored, 16 * KIB) > 0);
			}
			compressor_destroy(compressor);
		}
	}
	rig_destroy(&rig);
}

/* A piece at the start comes again at the very end: only a window as large as the block finds it. */
static void window_holds(int level, size_t src_max_bytes)
{
	const size_t piece_bytes = 16 * KIB;
	struct compressor *compressor = create(CODEC_ZSTD, level, src_max_bytes);
	struct rig rig = rig_create(src_max_bytes);
	uint8_t *src = guarded_head(&rig.src);

	memset(src, 0, src_max_bytes);
	content_fill(CONTENT_RANDOM, 3, src, piece_bytes);
	memcpy(src + src_max_bytes - piece_bytes, src, piece_bytes);
	assert_in_range(round_trip(&rig, compressor, src, src_max_bytes), piece_bytes, piece_bytes * 5 / 4);
	rig_destroy(&rig);
	compressor_destroy(compressor);
}

static void test_zstd_window_is_the_block(void **state)
{
	static const int levels[] = {-5, 1, 3, 9};

	(void)state;
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		window_holds(levels[i], 64 * KIB);
		window_holds(levels[i], 2 * MIB);
		window_holds(levels[i], 16 * MIB);
	}
}

/* Two bytes before the first block: descriptor 0, and the window: the smallest that holds this source. */
static void test_zstd_header_is_two_bytes(void **state)
{
	static const struct {
		size_t src_bytes;
		uint8_t window_log;
	} headers[] = {{1, 10}, {4096, 12}, {4097, 13}, {64 * KIB, 16}, {2 * MIB, 21}};
	struct compressor *compressor = create(CODEC_ZSTD, 3, 2 * MIB);
	struct rig rig = rig_create(2 * MIB);

	(void)state;
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		size_t stored = round_trip_content(&rig, compressor, CONTENT_HEAP, headers[i].src_bytes);
		uint8_t *stream = guarded_tail(&rig.stored, stored);

		assert_int_equal(stream[0], 0);
		assert_int_equal(stream[1], (headers[i].window_log - 10) << 3);
	}
	assert_int_equal(round_trip_content(&rig, compressor, CONTENT_RANDOM, 4096), 2 + 3 + 4096);
	rig_destroy(&rig);
	compressor_destroy(compressor);
}

/* The library numbers the bytes it has seen in 32 bits, over the life of a context. */
static void test_context_outlives_4_gib(void **state)
{
	struct rig rig = rig_create(16 * MIB);
	uint8_t *zeros = guarded_head(&rig.src), *stored = guarded_head(&rig.stored);
	static const struct codec_choice choices[] = {{CODEC_ZSTD, 1}, {CODEC_ZSTD, 3}, {CODEC_LZ4HC, 3}};

	(void)state;
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		struct compressor *compressor = create(choices[i].id, choices[i].level, 16 * MIB);

		for (unsigned block = 0; block < 260; block++) {
			memset(zeros, 0, 64 * KIB);
			assert_true(compressor_run(compressor, zeros, 16 * MIB, stored, 256 * KIB) > 0);
			if (block % 16 == 0)
				round_trip_content(&rig, compressor, CONTENT_HEAP, 64 * KIB);
			memset(guarded_tail(&rig.src, 64 * KIB), 0, 64 * KIB);
		}
		compressor_destroy(compressor);
	}
	rig_destroy(&rig);
}

/* The room that is needed is the room that was used; not one byte more is written. */
static void exact_room(enum codec_id id, int level)
{
	static const size_t sizes[] = {1, 13, 100, 4096, 30000};
	size_t spare_bytes = id == CODEC_ZSTD ? ZSTD_SPARE_BYTES : 0;
	struct compressor *compressor = create(id, level, 64 * KIB);
	struct rig rig = rig_create(64 * KIB);

	for (unsigned content = 0; content < CONTENT_COUNT; content++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			uint8_t *src = guarded_tail(&rig.src, sizes[i]);
			size_t stored = round_trip_content(&rig, compressor, content, sizes[i]);

			assert_int_equal(compressor_run(compressor, src, sizes[i],
						 guarded_tail(&rig.stored, stored + spare_bytes), stored + spare_bytes),
				stored);
			assert_int_equal(compressor_run(compressor, src, sizes[i],
						 guarded_tail(&rig.stored, stored - 1), stored - 1),
				-ENOSPC);
			assert_int_equal(compressor_run(compressor, src, sizes[i],
						 guarded_tail(&rig.stored, stored / 2), stored / 2),
				-ENOSPC);
			assert_int_equal(compressor_run(compressor, src, sizes[i], NULL, 0), -ENOSPC);
		}
	}
	rig_destroy(&rig);
	compressor_destroy(compressor);
}

static void test_exact_room(void **state)
{
	(void)state;
	for_each_level(exact_room);
}

static void incompressible(enum codec_id id, int level)
{
	struct compressor *compressor = create(id, level, 64 * KIB);
	struct rig rig = rig_create(64 * KIB);
	uint8_t *src = guarded_tail(&rig.src, 64 * KIB);

	content_fill(CONTENT_RANDOM, 5, src, 64 * KIB);
	assert_int_equal(
		compressor_run(compressor, src, 64 * KIB, guarded_tail(&rig.stored, 64 * KIB - 1), 64 * KIB - 1),
		-ENOSPC);
	assert_true(round_trip(&rig, compressor, src, 64 * KIB) >= 64 * KIB);
	rig_destroy(&rig);
	compressor_destroy(compressor);
}

static void test_incompressible_is_enospc(void **state)
{
	(void)state;
	for_each_level(incompressible);
}

/* A worn context, failures included, writes what a new one writes: nothing of other blocks is in the stream. */
static void no_history(enum codec_id id, int level)
{
	static const size_t sizes[] = {4096, 50000, 64 * KIB};
	struct compressor *worn = create(id, level, 64 * KIB), *fresh;
	struct rig rig = rig_create(64 * KIB), other = rig_create(64 * KIB);
	uint8_t *first = malloc(BOUND_BYTES(64 * KIB));

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t stored, again;

		fresh = create(id, level, 64 * KIB);
		stored = round_trip_content(&rig, fresh, CONTENT_HEAP, sizes[i]);
		memcpy(first, guarded_tail(&rig.stored, stored), stored);
		compressor_destroy(fresh);

		round_trip_content(&other, worn, CONTENT_MIXED, 20000);
		assert_int_equal(compressor_run(worn, guarded_tail(&rig.src, sizes[i]), sizes[i],
					 guarded_tail(&other.stored, 99), 99),
			-ENOSPC);
		round_trip(&other, worn, guarded_tail(&rig.src, sizes[i]), sizes[i]);
		again = round_trip(&rig, worn, guarded_tail(&rig.src, sizes[i]), sizes[i]);
		assert_int_equal(again, stored);
		assert_memory_equal(guarded_tail(&rig.stored, again), first, stored);
	}
	free(first);
	rig_destroy(&rig);
	rig_destroy(&other);
	compressor_destroy(worn);
}

static void test_no_history(void **state)
{
	(void)state;
	for_each_level(no_history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip_64k_all_levels),
		cmocka_unit_test(test_round_trip_large),
		cmocka_unit_test(test_zstd_workspace_fits_every_source),
		cmocka_unit_test(test_zstd_window_is_the_block),
		cmocka_unit_test(test_zstd_header_is_two_bytes),
		cmocka_unit_test(test_context_outlives_4_gib),
		cmocka_unit_test(test_exact_room),
		cmocka_unit_test(test_incompressible_is_enospc),
		cmocka_unit_test(test_no_history),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
