// SPDX-License-Identifier: GPL-2.0-or-later
/* What replayed writes contain: shares of noise and of same-filled granules, and what tells two granules apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <stdbool.h>

#include <cmocka.h>

#include "contents.h"
#include "units.h"

#define GRANULES 512
#define WORDS (GRANULE_BYTES / sizeof(uint64_t))

static uint64_t data[GRANULES][WORDS];

static struct contents contents_of(uint64_t seed, unsigned random_percent, unsigned same_percent)
{
	struct contents contents;

	contents_init(&contents, seed, 0);
	contents.random_percent = random_percent;
	contents.same_percent = same_percent;
	return contents;
}

static bool granule_is_same(const uint64_t *words)
{
	return memcmp(words, words + 1, GRANULE_BYTES - sizeof(*words)) == 0;
}

static void test_shares(void **state)
{
	static const unsigned percents[][2] = {{0, 0}, {30, 0}, {100, 0}, {50, 50}, {0, 100}};

	(void)state;
	for (unsigned p = 0; p < 5; p++) {
		struct contents contents = contents_of(p, percents[p][0], percents[p][1]);
		unsigned same = 0, repeated = 0;

		contents_fill(&contents, data, 0, sizeof(data));
		for (unsigned g = 0; g < GRANULES; g++) {
			same += granule_is_same(data[g]);
			for (unsigned w = 8; w < WORDS && !granule_is_same(data[g]); w++)
				repeated += data[g][w] == data[g][w - 8];
		}
		assert_in_range(same * 100 / GRANULES, percents[p][1] ? percents[p][1] - 8 : 0, percents[p][1] + 8);
		if (same < GRANULES)
			assert_in_range(repeated * 100 / (WORDS * (GRANULES - same)),
				percents[p][0] < 97 ? 97 - percents[p][0] : 0, 100 - percents[p][0]);
	}
}

static void test_some_same_filled_granules_are_zeros(void **state)
{
	struct contents contents = contents_of(1, 0, 100);
	unsigned zeros = 0;

	(void)state;
	contents_fill(&contents, data, 0, sizeof(data));
	for (unsigned g = 0; g < GRANULES; g++)
		zeros += data[g][0] == 0;
	assert_in_range(zeros, GRANULES / 8, GRANULES * 3 / 8);
}

/* What makes a lost or misplaced write visible even where nothing else in a granule changes. */
static void test_place_and_version_are_in_every_granule(void **state)
{
	struct contents contents = contents_of(3, 0, 0);
	uint64_t before[WORDS];

	(void)state;
	contents_fill(&contents, data, 64 * KIB, 2 * GRANULE_BYTES);
	assert_int_equal(data[0][0], 64 * KIB);
	assert_int_equal(data[1][0], 68 * KIB);
	memcpy(before, data[0], sizeof(before));
	contents_fill(&contents, data, 64 * KIB, GRANULE_BYTES);
	assert_int_equal(data[0][0], before[0]);
	assert_int_not_equal(data[0][1], before[1]);
	assert_memory_equal(data[0] + 2, before + 2, GRANULE_BYTES - 16);
}

static void test_equal_seeds_give_equal_bytes(void **state)
{
	static uint64_t first[GRANULES][WORDS];
	struct contents contents = contents_of(9, 40, 10);

	(void)state;
	contents_fill(&contents, first, MIB, sizeof(first));
	contents = contents_of(9, 40, 10);
	contents_fill(&contents, data, MIB, sizeof(data));
	assert_int_equal(memcmp(first, data, sizeof(data)), 0);
	contents = contents_of(10, 40, 10);
	contents_fill(&contents, data, MIB, sizeof(data));
	assert_int_not_equal(memcmp(first, data, sizeof(data)), 0);
	contents_init(&contents, 9, 1); /* another stream of the first seed */
	contents.random_percent = 40;
	contents.same_percent = 10;
	contents_fill(&contents, data, MIB, sizeof(data));
	assert_int_not_equal(memcmp(first, data, sizeof(data)), 0);
}

static void test_random_below_is_even(void **state)
{
	struct contents contents = contents_of(5, 0, 0);
	unsigned counts[10] = {0};

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t value = contents_random_below(&contents, 10);

		assert_true(value < 10);
		counts[value]++;
	}
	for (unsigned i = 0; i < 10; i++)
		assert_in_range(counts[i], 9500, 10500);
	assert_int_equal(contents_random_below(&contents, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_some_same_filled_granules_are_zeros),
		cmocka_unit_test(test_place_and_version_are_in_every_granule),
		cmocka_unit_test(test_equal_seeds_give_equal_bytes),
		cmocka_unit_test(test_random_below_is_even),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
