// SPDX-License-Identifier: GPL-2.0-or-later
/* Replay over the real store, with its threads and without: every byte is what was written, and recovery keeps it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "codec.h"
#include "replay.h"
#include "stats.h"
#include "store.h"

#define THREADS 2
/* The store may wait for room before it refuses, but whoever swaps waits with it: well below its last bound, 10 s. */
#define REFUSAL_MAX_NS (6 * UINT64_C(1000000000))
#define WAIT_NS (60 * UINT64_C(1000000000))

struct fixture {
	int image_fd;
	struct store *store;
	struct device *device;
	uint8_t *model;
};

static struct store_config config_of(uint32_t unit_bytes, uint32_t frame_bytes, enum codec_id codec)
{
	return (struct store_config){
		.size_bytes = 24 * MIB,
		.max_size_bytes = 24 * MIB,
		.limit_bytes = UINT64_MAX,
		.unit_bytes = unit_bytes,
		.frame_bytes = frame_bytes,
		.codec = codec,
		.level = codec_ops(codec)->level_default,
		.slots = 4,
		.io_threads = THREADS,
		.compress_threads = 1,
	};
}

static void fixture_open(struct fixture *fixture)
{
	assert_int_equal(store_open(&fixture->store, fixture->image_fd), 0);
	assert_int_equal(device_create(&fixture->device, fixture->store), 0);
	device_open(fixture->device, 0, false);
}

static void fixture_close(struct fixture *fixture)
{
	device_destroy(fixture->device);
	store_close(fixture->store);
}

static void fixture_init(struct fixture *fixture, const struct store_config *config)
{
	fixture->image_fd = memfd_create("replay_store_test", MFD_CLOEXEC);
	assert_true(fixture->image_fd >= 0);
	assert_int_equal(store_format(fixture->image_fd, config), 0);
	fixture->model = calloc(1, config->size_bytes);
	assert_non_null(fixture->model);
	fixture_open(fixture);
}

static void fixture_deinit(struct fixture *fixture)
{
	fixture_close(fixture);
	free(fixture->model);
	close(fixture->image_fd);
}

static void check_books(struct fixture *fixture)
{
	char problem[256] = "";

	assert_int_equal(store_flush(fixture->store, WAIT_NS), 0);
	if (store_check(fixture->store, problem, sizeof(problem)) < 0)
		fail_msg("store_check: %s", problem);
}

static struct replay_plan plan_of(const struct fixture *fixture, uint64_t requests, unsigned threads)
{
	return (struct replay_plan){
		.seed = 11,
		.threads = threads,
		.requests = requests,
		.op_share =
			{[REQUEST_READ] = 5, [REQUEST_WRITE] = 5, [REQUEST_DISCARD] = 1, [REQUEST_WRITE_ZEROES] = 1},
		.order_share = {[0] = 8, [2] = 4, [4] = 4, [6] = 2, [9] = 1},
		.random_percent = 40,
		.same_percent = 10,
		.model = fixture->model,
	};
}

static struct replay_result run_clean(struct fixture *fixture, const struct replay_plan *plan)
{
	struct replay_result result;

	assert_int_equal(replay_run(fixture->device, plan, &result), 0);
	if (result.mismatches)
		fail_msg("%llu granules differ, the first at %llu", (unsigned long long)result.mismatches,
			(unsigned long long)result.first_mismatch_bytes);
	return result;
}

static uint64_t total_errors(const struct replay_result *result)
{
	uint64_t errors = 0;

	for (unsigned i = 0; i < REPLAY_OPS; i++)
		errors += result->op[i].errors;
	return errors;
}

static void step_store(void *arg, unsigned thread)
{
	(void)thread;
	store_step(arg, false);
}

static void test_without_threads(void **state)
{
	static const struct {
		uint32_t unit_bytes, frame_bytes;
		enum codec_id codec;
	} shapes[] = {
		{64 * KIB, 64 * KIB, CODEC_LZ4},
		{64 * KIB, 4 * KIB, CODEC_ZSTD},
		{2 * MIB, 2 * MIB, CODEC_ZSTD},
		{2 * MIB, 64 * KIB, CODEC_LZ4},
		{2 * MIB, 16 * KIB, CODEC_COPY},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct store_config config = config_of(shapes[i].unit_bytes, shapes[i].frame_bytes, shapes[i].codec);
		struct fixture fixture;
		struct replay_plan plan;
		struct replay_result result;

		fixture_init(&fixture, &config);
		plan = plan_of(&fixture, 1500, 1);
		plan.between = step_store;
		plan.between_arg = fixture.store;
		plan.ragged = i % 2;
		plan.seed = i;
		result = run_clean(&fixture, &plan);
		assert_int_equal(total_errors(&result), 0);
		check_books(&fixture);
		fixture_deinit(&fixture);
	}
}

static void test_with_threads_and_recovery(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 4; round++) {
		struct store_config config =
			config_of(round % 2 ? 2 * MIB : 64 * KIB, 64 * KIB, round / 2 ? CODEC_ZSTD : CODEC_LZ4);
		struct fixture fixture;

		fixture_init(&fixture, &config);
		/* Each life of the store goes on with what the one before left, partly still in slots. */
		for (unsigned life = 0; life < 3; life++) {
			struct replay_plan plan = plan_of(&fixture, 1500, THREADS);
			struct replay_result result;

			plan.seed = round * 10 + life;
			plan.ragged = life % 2;
			assert_int_equal(store_start(fixture.store), 0);
			result = run_clean(&fixture, &plan);
			assert_int_equal(total_errors(&result), 0);
			fixture_close(&fixture);
			fixture_open(&fixture);
		}
		check_books(&fixture);
		fixture_deinit(&fixture);
	}
}

/* Random data against a limit: writes are refused, but nothing that was acknowledged is lost and reads never fail. */
static void test_memory_limit(void **state)
{
	struct store_config config = config_of(64 * KIB, 64 * KIB, CODEC_LZ4);
	struct fixture fixture;
	struct replay_plan plan;
	struct replay_result result;

	(void)state;
	config.limit_bytes = 16 * MIB;
	assert_null(store_config_problem(&config));
	fixture_init(&fixture, &config);
	assert_int_equal(store_start(fixture.store), 0);
	plan = plan_of(&fixture, 400, THREADS);
	plan.random_percent = 100;
	plan.same_percent = 0;
	plan.op_share[REQUEST_DISCARD] = 0;
	plan.op_share[REQUEST_WRITE_ZEROES] = 0;
	result = run_clean(&fixture, &plan);
	assert_true(result.op[REQUEST_WRITE].errors > 0);
	assert_true(result.op[REQUEST_WRITE].latency_max_ns < REFUSAL_MAX_NS);
	assert_int_equal(result.op[REQUEST_READ].errors, 0);
	plan.op_share[REQUEST_DISCARD] = 3;
	result = run_clean(&fixture, &plan);
	assert_int_equal(result.op[REQUEST_READ].errors, 0);
	assert_int_equal(result.op[REQUEST_DISCARD].errors, 0);
	check_books(&fixture);
	fixture_deinit(&fixture);
}

static void test_statistics_agree(void **state)
{
	struct store_config config = config_of(64 * KIB, 64 * KIB, CODEC_LZ4);
	struct fixture fixture;
	struct replay_plan plan;
	struct replay_result result;
	struct stats_sum *sum = aligned_alloc(CACHE_LINE_BYTES, sizeof(*sum));
	uint64_t requests[STATS_KINDS] = {0}, bytes[STATS_KINDS] = {0}, latency_ns[STATS_KINDS] = {0};

	(void)state;
	assert_non_null(sum);
	fixture_init(&fixture, &config);
	assert_int_equal(store_start(fixture.store), 0);
	plan = plan_of(&fixture, 3000, THREADS);
	plan.model = NULL; /* no reads of the verification among the others */
	result = run_clean(&fixture, &plan);
	stats_sum(store_stats(fixture.store), sum);
	for (unsigned kind = 0; kind < STATS_KINDS; kind++) {
		for (unsigned order = 0; order < ORDER_COUNT; order++) {
			requests[kind] += sum->io.op[kind][order].requests;
			bytes[kind] += sum->io.op[kind][order].bytes;
			latency_ns[kind] += sum->io.op[kind][order].latency.total_ns;
		}
	}
	assert_int_equal(requests[STATS_READ], result.op[REQUEST_READ].requests);
	assert_int_equal(requests[STATS_WRITE], result.op[REQUEST_WRITE].requests);
	assert_int_equal(requests[STATS_DISCARD],
		result.op[REQUEST_DISCARD].requests + result.op[REQUEST_WRITE_ZEROES].requests);
	assert_int_equal(bytes[STATS_READ], result.op[REQUEST_READ].bytes);
	assert_int_equal(bytes[STATS_WRITE], result.op[REQUEST_WRITE].bytes);
	assert_true(latency_ns[STATS_READ] <= result.op[REQUEST_READ].latency_ns);
	assert_true(latency_ns[STATS_WRITE] <= result.op[REQUEST_WRITE].latency_ns);
	fixture_deinit(&fixture);
	free(sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_threads),
		cmocka_unit_test(test_with_threads_and_recovery),
		cmocka_unit_test(test_memory_limit),
		cmocka_unit_test(test_statistics_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
