// SPDX-License-Identifier: GPL-2.0-or-later
/* The split against a model that walks granule by granule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "random.h"
#include "split.h"
#include "units.h"

#define TIB (1024 * GIB)
#define RANDOM_RANGES 4000

static const uint32_t units[] = {64 * KIB, 2 * MIB, 16 * MIB};

static uint64_t random_state = UINT64_C(0xdecaf);

/* Walks the range granule by granule and lets a piece end where the unit number changes. */
static void check_split(uint64_t offset, uint64_t length, uint32_t unit)
{
	struct split split;
	struct split_piece piece = {.granule = 0};
	uint32_t left = 0;

	split_init(&split, offset, length, unit);
	for (uint64_t at = offset; at < offset + length; at += GRANULE_BYTES) {
		bool starts_here = at == offset || at / unit != (at - GRANULE_BYTES) / unit;

		assert_int_equal(left == 0, starts_here);
		if (starts_here) {
			assert_true(split_next(&split, &piece));
			assert_int_equal(piece.granule, at / GRANULE_BYTES);
			assert_int_equal(piece.data_offset_bytes, at - offset);
			assert_true(piece.count > 0);
			left = piece.count;
		}
		left--;
	}
	assert_int_equal(left, 0);
	assert_false(split_next(&split, &piece));
	assert_false(split_next(&split, &piece));
}

static void test_split_random(void **state)
{
	static const uint64_t bases[] = {0, 4 * GIB - 32 * MIB, 2 * TIB - 32 * MIB, 4 * TIB - 32 * MIB, 512 * TIB};

	(void)state;
	for (unsigned i = 0; i < RANDOM_RANGES; i++) {
		uint32_t unit = units[random_below(&random_state, 3)];
		uint64_t base = bases[random_below(&random_state, 5)];
		uint64_t offset = base + random_below(&random_state, 2 * 64 * MIB / GRANULE_BYTES) * GRANULE_BYTES;
		uint64_t length_max = random_below(&random_state, 4) ? 3 * unit : 64 * KIB;
		uint64_t length = (1 + random_below(&random_state, length_max / GRANULE_BYTES)) * GRANULE_BYTES;

		check_split(offset, length, unit);
	}
}

static void test_split_edges(void **state)
{
	(void)state;
	for (unsigned u = 0; u < 3; u++) {
		uint64_t unit = units[u];

		check_split(0, 0, units[u]);
		check_split(unit, unit, units[u]);
		check_split(unit - GRANULE_BYTES, 2 * GRANULE_BYTES, units[u]);
		check_split(unit - GRANULE_BYTES, 2 * GRANULE_BYTES + unit, units[u]);
		check_split(unit, GRANULE_BYTES, units[u]);
		check_split(unit - GRANULE_BYTES, GRANULE_BYTES, units[u]);
		check_split(0, 5 * unit, units[u]);
		/* The last bytes that a byte offset of 64 bits can name. */
		check_split(UINT64_MAX - 2 * unit + 1, 2 * unit - GRANULE_BYTES, units[u]);
	}
}
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split_random),
		cmocka_unit_test(test_split_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
