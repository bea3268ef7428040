// SPDX-License-Identifier: GPL-2.0-or-later
/* The histogram against a table of borders built from the picture in hist.h, and against sorted arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hist.h"

#define RANDOM_VALUES 1000000
#define OVERFLOW_NS (UINT64_C(1) << 34)

/* borders[i] is the first value of bucket i, borders[864] the first that no bucket was made for. */
static uint64_t borders[HIST_BUCKETS + 1];

static uint64_t random_state = UINT64_C(0x5eed);

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* As many values of each size of number, from 0 up to a good deal above the overflow border. */
static uint64_t random_log_uniform(void)
{
	return random_u64() >> (28 + random_u64() % 36);
}

static int build_borders(void **state)
{
	uint64_t start = 0;
	uint64_t width = 8;

	(void)state;
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		if (i >= 64 && i % 32 == 0)
			width *= 2;
		borders[i] = start;
		start += width;
	}
	borders[HIST_BUCKETS] = start;
	return 0;
}

static unsigned model_bucket(uint64_t value)
{
	unsigned low = 0;
	unsigned high = HIST_BUCKETS;

	while (high - low > 1) {
		unsigned middle = (low + high) / 2;

		if (borders[middle] <= value)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void check_value(uint64_t value)
{
	unsigned bucket = hist_bucket(value);
	uint64_t error = distance(hist_bucket_middle_ns(bucket), value);

	assert_int_equal(bucket, model_bucket(value));
	if (value < 256)
		assert_true(error <= 8);
	else if (value < OVERFLOW_NS)
		assert_true(error * 64 <= value);
	else
		assert_int_equal(bucket, HIST_BUCKETS - 1);
}

static void test_borders(void **state)
{
	(void)state;
	assert_int_equal(HIST_BUCKETS, 864);
	assert_int_equal(borders[32], 256);
	assert_int_equal(borders[64], 512);
	assert_int_equal(borders[96], 1024);
	assert_int_equal(borders[833] - borders[832], UINT64_C(1) << 28);
	assert_int_equal(borders[864], OVERFLOW_NS);
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		assert_int_equal(hist_bucket(borders[i]), i);
		assert_int_equal(hist_bucket(borders[i + 1] - 1), i);
		assert_int_equal(hist_bucket_middle_ns(i), (borders[i] + borders[i + 1]) / 2);
	}
	assert_int_equal(hist_bucket(OVERFLOW_NS), HIST_BUCKETS - 1);
	assert_int_equal(hist_bucket(UINT64_MAX), HIST_BUCKETS - 1);
}

static void test_dense_sweep(void **state)
{
	unsigned before = 0;

	(void)state;
	for (uint64_t value = 0; value < (1 << 20); value++) {
		unsigned bucket = hist_bucket(value);

		check_value(value);
		assert_true(bucket == before || bucket == before + 1);
		before = bucket;
	}
}

static void test_random_values(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RANDOM_VALUES; i++) {
		uint64_t a = random_log_uniform();
		uint64_t b = random_log_uniform();

		check_value(a);
		assert_true((a <= b) ? hist_bucket(a) <= hist_bucket(b) : hist_bucket(a) >= hist_bucket(b));
	}
}

static int compare_values(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a;
	uint64_t right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* The exact answer: the smallest sorted value with at least permille/1000 of all values at or below it. */
static uint64_t model_quantile(const uint64_t *sorted, size_t count, unsigned permille)
{
	size_t i = 0;

	while ((unsigned __int128)(i + 1) * 1000 < (unsigned __int128)count * permille)
		i++;
	return sorted[i];
}

static void check_quantiles(const struct hist *hist, const uint64_t *sorted, size_t count)
{
	uint64_t before = 0;

	for (unsigned permille = 0; permille <= 1000; permille++) {
		uint64_t exact = model_quantile(sorted, count, permille);
		uint64_t value = hist_quantile_ns(hist, permille);
		uint64_t middle = hist_bucket_middle_ns(model_bucket(exact));

		/* The very bucket of the exact answer, not one near it. */
		assert_true(value == middle || value == sorted[count - 1]);
		if (value != middle)
			assert_true(middle > value || exact == value);
		assert_true(value >= before && value <= sorted[count - 1]);
		before = value;
	}
	assert_int_equal(hist_quantile_ns(hist, 1000), sorted[count - 1]);
	assert_int_equal(hist_quantile_ns(hist, 5000), sorted[count - 1]);
}

static void test_quantiles(void **state)
{
	static const size_t counts[] = {1, 2, 3, 7, 10, 99, 100, 101, 999, 1000, 1001, 20000};

	(void)state;
	for (unsigned run = 0; run < 3 * sizeof(counts) / sizeof(counts[0]); run++) {
		size_t count = counts[run / 3];
		uint64_t *values = calloc(count, sizeof(*values));
		struct hist *hist = calloc(1, sizeof(*hist));
		uint64_t total = 0;

		assert_non_null(values);
		assert_non_null(hist);
		for (size_t i = 0; i < count; i++) {
			values[i] = run % 3 == 0 ? random_log_uniform() : random_u64() % (run % 3 == 1 ? 5000 : 300);
			total += values[i];
			hist_record(hist, values[i]);
		}
		qsort(values, count, sizeof(*values), compare_values);
		assert_int_equal(hist_count(hist), count);
		assert_int_equal(hist->total_ns, total);
		assert_int_equal(hist->max_ns, values[count - 1]);
		check_quantiles(hist, values, count);
		free(values);
		free(hist);
	}
}

static void test_no_event_and_one(void **state)
{
	static const uint64_t single[] = {0, 1, 4, 5, 255, 256, 1000, OVERFLOW_NS - 1, OVERFLOW_NS, UINT64_MAX};
	struct hist hist = {0};

	(void)state;
	assert_int_equal(hist_count(&hist), 0);
	for (unsigned permille = 0; permille <= 1000; permille += 100)
		assert_int_equal(hist_quantile_ns(&hist, permille), 0);
	for (unsigned i = 0; i < sizeof(single) / sizeof(single[0]); i++) {
		memset(&hist, 0, sizeof(hist));
		hist_record(&hist, single[i]);
		for (unsigned permille = 0; permille <= 1000; permille += 100)
			assert_int_equal(hist_quantile_ns(&hist, permille), single[i]);
	}
}

static void test_middle_is_clipped_to_the_maximum(void **state)
{
	struct hist hist = {0};

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		hist_record(&hist, 1024); /* first of a bucket of 32 whose middle, 1040, never happened */
	assert_int_equal(hist_bucket_middle_ns(hist_bucket(1024)), 1040);
	assert_int_equal(hist_quantile_ns(&hist, 500), 1024);
	hist_record(&hist, 5000);
	assert_int_equal(hist_quantile_ns(&hist, 500), 1040);
}

static void test_overflow_bucket(void **state)
{
	struct hist hist = {0};

	(void)state;
	hist_record(&hist, OVERFLOW_NS);
	hist_record(&hist, 10 * OVERFLOW_NS);
	hist_record(&hist, 20 * OVERFLOW_NS);
	assert_int_equal(hist.count[HIST_BUCKETS - 1], 3);
	assert_int_equal(hist.max_ns, 20 * OVERFLOW_NS);
	assert_int_equal(hist_quantile_ns(&hist, 500), hist_bucket_middle_ns(HIST_BUCKETS - 1));
	assert_int_equal(hist_quantile_ns(&hist, 1000), 20 * OVERFLOW_NS);
}

static void test_rank_of_huge_counts(void **state)
{
	struct hist hist = {.max_ns = 2000};

	(void)state;
	hist.count[hist_bucket(100)] = (UINT64_C(1) << 60) - 1;
	hist.count[hist_bucket(1000)] = UINT64_C(1) << 60;
	assert_int_equal(hist_quantile_ns(&hist, 499), hist_bucket_middle_ns(hist_bucket(100)));
	assert_int_equal(hist_quantile_ns(&hist, 500), hist_bucket_middle_ns(hist_bucket(1000)));
}

static void test_add(void **state)
{
	struct hist parts[3] = {{0}};
	struct hist all = {0};
	struct hist sum = {0};

	(void)state;
	for (unsigned i = 0; i < 30000; i++) {
		uint64_t value = random_log_uniform();

		hist_record(&parts[i % 3], value);
		hist_record(&all, value);
	}
	for (unsigned i = 0; i < 3; i++)
		hist_add(&sum, &parts[i]);
	assert_memory_equal(&sum, &all, sizeof(all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_borders),
		cmocka_unit_test(test_dense_sweep),
		cmocka_unit_test(test_random_values),
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_no_event_and_one),
		cmocka_unit_test(test_middle_is_clipped_to_the_maximum),
		cmocka_unit_test(test_overflow_bucket),
		cmocka_unit_test(test_rank_of_huge_counts),
		cmocka_unit_test(test_add),
	};

	return cmocka_run_group_tests(tests, build_borders, NULL);
}
