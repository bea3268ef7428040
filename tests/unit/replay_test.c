// SPDX-License-Identifier: GPL-2.0-or-later
/* Replay over a store that is a plain array: what it sends, what it counts, and that it sees every kind of damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_store.h"
#include "fault.h"
#include "replay.h"

#define UNIT_BYTES (64 * KIB)
#define SIZE_BYTES (2 * MIB)
#define GRANULES (SIZE_BYTES / GRANULE_BYTES)
#define IO_THREADS 4
#define ALL_OPS \
	{ \
		[REQUEST_READ] = 4, [REQUEST_WRITE] = 4, [REQUEST_DISCARD] = 1, [REQUEST_WRITE_ZEROES] = 1, \
		[REQUEST_FLUSH] = 1 \
	}

struct fixture {
	struct store *store;
	struct device *device;
	uint8_t *model;
};

static int setup(void **state)
{
	static struct fixture fixture;

	fixture.store = fake_store_create(SIZE_BYTES, UNIT_BYTES, IO_THREADS, true);
	assert_int_equal(device_create(&fixture.device, fixture.store), 0);
	device_open(fixture.device, 0, false);
	fixture.model = calloc(1, SIZE_BYTES);
	assert_non_null(fixture.model);
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	free(fixture->model);
	device_destroy(fixture->device);
	fake_store_destroy(fixture->store);
	return 0;
}

static struct replay_plan plan_of(uint64_t requests, unsigned threads)
{
	return (struct replay_plan){
		.seed = 7,
		.threads = threads,
		.requests = requests,
		.op_share = ALL_OPS,
		.order_share = {[0] = 4, [2] = 2, [4] = 2, [6] = 1},
		.random_percent = 30,
		.same_percent = 10,
	};
}

static struct replay_result run(struct fixture *fixture, const struct replay_plan *plan)
{
	struct replay_result result;

	memset(&result, 0xee, sizeof(result));
	assert_int_equal(replay_run(fixture->device, plan, &result), 0);
	return result;
}

static uint64_t total_requests(const struct replay_result *result)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < REPLAY_OPS; i++)
		sum += result->op[i].requests;
	return sum;
}

static uint64_t total_errors(const struct replay_result *result)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < REPLAY_OPS; i++)
		sum += result->op[i].errors;
	return sum;
}

static void test_clean_run_verifies(void **state)
{
	struct fixture *fixture = *state;

	for (unsigned threads = 1; threads <= IO_THREADS; threads++) {
		for (unsigned ragged = 0; ragged < 2; ragged++) {
			struct replay_plan plan = plan_of(2000, threads);
			struct replay_result result;

			plan.ragged = ragged;
			plan.seed = threads;
			plan.model = fixture->model;
			result = run(fixture, &plan);
			assert_int_equal(result.mismatches, 0);
			assert_int_equal(result.first_mismatch_bytes, UINT64_MAX);
			assert_int_equal(total_requests(&result), 2000);
			assert_int_equal(total_errors(&result), 0);
			assert_int_equal(memcmp(fixture->model, fake_store_memory(fixture->store), SIZE_BYTES), 0);
		}
	}
}

static void test_equal_plans_do_equal_things(void **state)
{
	struct fixture *fixture = *state;
	struct replay_plan plan = plan_of(1000, 1);
	uint8_t *first = malloc(SIZE_BYTES);
	struct fake_call *calls = malloc(4096 * sizeof(*calls));
	size_t count;

	assert_non_null(first);
	assert_non_null(calls);
	run(fixture, &plan);
	count = fake_store_call_count(fixture->store);
	assert_true(count >= 900 && count <= 4096);
	memcpy(calls, fake_store_calls(fixture->store), count * sizeof(*calls));
	memcpy(first, fake_store_memory(fixture->store), SIZE_BYTES);

	fake_store_forget(fixture->store);
	memset(fake_store_memory(fixture->store), 0, SIZE_BYTES);
	run(fixture, &plan);
	assert_int_equal(fake_store_call_count(fixture->store), count);
	for (size_t i = 0; i < count; i++) {
		const struct fake_call *call = &fake_store_calls(fixture->store)[i];

		assert_int_equal(call->op, calls[i].op);
		assert_int_equal(call->granule, calls[i].granule);
		assert_int_equal(call->count, calls[i].count);
	}
	assert_int_equal(memcmp(fake_store_memory(fixture->store), first, SIZE_BYTES), 0);

	plan.seed++;
	memset(fake_store_memory(fixture->store), 0, SIZE_BYTES);
	run(fixture, &plan);
	assert_int_not_equal(memcmp(fake_store_memory(fixture->store), first, SIZE_BYTES), 0);
	free(calls);
	free(first);
}

static void test_damage_is_found(void **state)
{
	static const uint64_t damaged[] = {0, 4095, SIZE_BYTES / 2 + 77, SIZE_BYTES - 1};
	struct fixture *fixture = *state;
	uint8_t *memory = fake_store_memory(fixture->store);
	struct replay_plan plan = plan_of(2000, 2);

	plan.model = fixture->model;
	run(fixture, &plan);
	plan.requests = 0; /* the reading at the end alone must find it */
	for (unsigned i = 0; i < 4; i++) {
		struct replay_result result;

		memory[damaged[i]] ^= 1;
		result = run(fixture, &plan);
		assert_int_equal(result.mismatches, 1);
		assert_int_equal(result.first_mismatch_bytes, damaged[i] & ~(GRANULE_BYTES - 1));
		assert_int_equal(total_requests(&result), 0);
		memory[damaged[i]] ^= 1;
	}
	assert_int_equal(run(fixture, &plan).mismatches, 0);
	for (unsigned i = 0; i < 4; i++)
		memory[damaged[i]] ^= 0x80;
	assert_int_equal(run(fixture, &plan).mismatches, 3); /* two of them share a granule */
}

/* Two granules that were swapped, and a read that meets the damage before the end does. */
static void test_misplaced_granules_are_found_by_reads(void **state)
{
	struct fixture *fixture = *state;
	uint8_t *memory = fake_store_memory(fixture->store);
	struct replay_plan plan = plan_of(GRANULES, 1);
	struct replay_result result;
	uint8_t moved[GRANULE_BYTES];

	plan.model = fixture->model;
	plan.same_percent = 0;
	plan.random_percent = 0;
	memset(plan.op_share, 0, sizeof(plan.op_share));
	plan.op_share[REQUEST_WRITE] = 1;
	plan.requests = 20 * GRANULES;
	run(fixture, &plan);
	memcpy(moved, memory + 3 * GRANULE_BYTES, GRANULE_BYTES);
	memcpy(memory + 3 * GRANULE_BYTES, memory + 4 * GRANULE_BYTES, GRANULE_BYTES);
	memcpy(memory + 4 * GRANULE_BYTES, moved, GRANULE_BYTES);
	plan.op_share[REQUEST_WRITE] = 0;
	plan.op_share[REQUEST_READ] = 1;
	result = run(fixture, &plan);
	assert_true(result.mismatches > 10);
	assert_int_equal(result.first_mismatch_bytes, 3 * GRANULE_BYTES);
}

static void test_partly_failed_requests_are_settled(void **state)
{
	struct fixture *fixture = *state;
	struct replay_plan plan = plan_of(2000, 2);
	struct replay_result result;

	plan.model = fixture->model;
	plan.ragged = true;
	plan.order_share[6] = 8; /* most requests have several pieces */
	fake_store_fail_changes(fixture->store, 7, -ENOSPC);
	result = run(fixture, &plan);
	assert_int_equal(total_requests(&result), 2000);
	assert_true(result.op[REQUEST_WRITE].errors >= 100);
	assert_true(result.op[REQUEST_DISCARD].errors >= 20);
	assert_true(result.op[REQUEST_WRITE_ZEROES].errors >= 20);
	assert_int_equal(result.op[REQUEST_READ].errors, 0);
	assert_int_equal(result.mismatches, 0);
	assert_int_equal(memcmp(fixture->model, fake_store_memory(fixture->store), SIZE_BYTES), 0);
}

static void test_failed_reads_are_errors_not_mismatches(void **state)
{
	struct fixture *fixture = *state;
	struct replay_plan plan = plan_of(100, 1);
	struct replay_result result;

	plan.model = fixture->model;
	run(fixture, &plan);
	memset(plan.op_share, 0, sizeof(plan.op_share));
	plan.op_share[REQUEST_READ] = 1;
	fake_store_forget(fixture->store);
	fake_store_fail(fixture->store, 1, -EIO);
	fake_store_fail(fixture->store, 90, -EIO);
	result = run(fixture, &plan);
	assert_int_equal(result.op[REQUEST_READ].errors, 2);
	assert_int_equal(result.mismatches, 0);
}

static void test_torn_write_is_found(void **state)
{
	struct fixture *fixture = *state;
	struct replay_plan plan = plan_of(1, 1);
	struct replay_result result;

	plan.model = fixture->model;
	plan.same_percent = 0;
	memset(plan.op_share, 0, sizeof(plan.op_share));
	plan.op_share[REQUEST_WRITE] = 1;
	fake_store_fail(fixture->store, 1, FAKE_TORN);
	result = run(fixture, &plan);
	assert_int_equal(result.op[REQUEST_WRITE].errors, 1);
	assert_int_equal(result.mismatches, 2); /* when settled, and at the end */
	assert_int_equal(result.first_mismatch_bytes, fake_store_calls(fixture->store)[0].granule * GRANULE_BYTES);
}

static void test_failing_read_back_counts(void **state)
{
	struct fixture *fixture = *state;
	struct replay_plan plan = plan_of(0, 1);

	plan.model = fixture->model;
	fake_store_fail(fixture->store, 3, -EIO);
	assert_int_equal(run(fixture, &plan).mismatches, 1);
}

static void test_shares(void **state)
{
	struct fixture *fixture = *state;
	struct replay_plan plan = plan_of(3000, 1);
	unsigned by_count[65] = {0};
	struct replay_result result;

	plan.op_share[REQUEST_WRITE] = 0;
	plan.op_share[REQUEST_FLUSH] = 0;
	plan.order_share[6] = 0;
	result = run(fixture, &plan); /* read 4, discard 1, zeroes 1; orders 0:4, 2:2, 4:2 */
	assert_int_equal(result.op[REQUEST_WRITE].requests, 0);
	assert_int_equal(result.op[REQUEST_FLUSH].requests, 0);
	assert_in_range(result.op[REQUEST_READ].requests, 1800, 2200);
	assert_in_range(result.op[REQUEST_DISCARD].requests, 400, 600);
	assert_int_equal(fake_store_call_count(fixture->store), 3000);
	for (unsigned i = 0; i < 3000; i++) {
		const struct fake_call *call = &fake_store_calls(fixture->store)[i];

		assert_true(call->count <= 16);
		assert_int_equal(call->granule % call->count, 0); /* aligned as a folio is */
		by_count[call->count]++;
	}
	assert_in_range(by_count[1], 1350, 1650);
	assert_in_range(by_count[4], 650, 850);
	assert_in_range(by_count[16], 650, 850);
	assert_int_equal(by_count[1] + by_count[4] + by_count[16], 3000);
}

static void test_ragged_lengths_cross_units(void **state)
{
	struct fixture *fixture = *state;
	struct replay_plan plan = plan_of(500, 1);
	unsigned odd = 0;

	plan.ragged = true;
	run(fixture, &plan);
	assert_true(fake_store_call_count(fixture->store) > 550);
	for (unsigned i = 0; i < 500; i++)
		odd += (fake_store_calls(fixture->store)[i].count & (fake_store_calls(fixture->store)[i].count - 1)) !=
		       0;
	assert_true(odd > 100);
}

/* Which granules each thread's requests touched. */
static void collect_touched(const struct fixture *fixture, bool touched[IO_THREADS][GRANULES])
{
	size_t count = fake_store_call_count(fixture->store);

	assert_true(count <= 4096);
	memset(touched, 0, IO_THREADS * GRANULES * sizeof(bool));
	for (size_t i = 0; i < count; i++) {
		const struct fake_call *call = &fake_store_calls(fixture->store)[i];

		for (uint32_t g = 0; g < call->count; g++)
			touched[call->io][call->granule + g] = true;
	}
}

static void test_stripes_with_a_model_and_roaming_without(void **state)
{
	static bool touched[IO_THREADS][GRANULES];
	struct fixture *fixture = *state;
	struct replay_plan plan = plan_of(2000, 3);

	plan.ragged = true;
	plan.model = fixture->model;
	run(fixture, &plan);
	collect_touched(fixture, touched);
	for (unsigned g = 0; g < GRANULES; g++) {
		unsigned unit = g / 16;

		/* 32 units over three threads: 0..9, 10..20, 21..31; all are read at the end. */
		assert_int_equal(touched[0][g], unit < 10);
		assert_int_equal(touched[1][g], unit >= 10 && unit < 21);
		assert_int_equal(touched[2][g], unit >= 21);
		assert_false(touched[3][g]);
	}
	plan.model = NULL;
	fake_store_forget(fixture->store);
	run(fixture, &plan);
	collect_touched(fixture, touched);
	for (unsigned t = 0; t < 3; t++) {
		unsigned count = 0;

		for (unsigned g = 0; g < GRANULES; g++)
			count += touched[t][g];
		assert_true(count > GRANULES * 9 / 10);
	}
}

static void test_working_set_is_kept(void **state)
{
	static bool touched[IO_THREADS][GRANULES];
	struct fixture *fixture = *state;
	struct replay_plan plan = plan_of(1000, 2);

	plan.working_set_bytes = 37 * GRANULE_BYTES; /* two units and a part */
	plan.ragged = true;
	for (unsigned with_model = 0; with_model < 2; with_model++) {
		plan.model = with_model ? fixture->model : NULL;
		memset(fake_store_memory(fixture->store), 0, SIZE_BYTES);
		fake_store_forget(fixture->store);
		assert_int_equal(run(fixture, &plan).mismatches, 0);
		collect_touched(fixture, touched);
		assert_true(touched[0][0] && (touched[0][36] || touched[1][36]));
		for (unsigned g = 37; g < GRANULES; g++)
			assert_false(touched[0][g] || touched[1][g]);
	}
}

static void test_fault_answers_instead_of_the_device(void **state)
{
	struct fixture *fixture = *state;
	struct replay_plan plan = plan_of(1000, 2);
	struct replay_result result;

	assert_int_equal(fault_create(&plan.fault, "error=EIO:every=10"), 0);
	plan.model = fixture->model;
	result = run(fixture, &plan);
	assert_int_equal(total_errors(&result), 100);
	assert_int_equal(result.mismatches, 0);
	fault_destroy(plan.fault);

	assert_int_equal(fault_create(&plan.fault, "error=ENOSPC"), 0);
	plan.model = NULL;
	fake_store_forget(fixture->store);
	result = run(fixture, &plan);
	assert_int_equal(total_errors(&result), 1000);
	assert_int_equal(fake_store_call_count(fixture->store), 0);
	fault_destroy(plan.fault);
}

static void test_latencies_are_summed(void **state)
{
	struct fixture *fixture = *state;
	struct replay_plan plan = plan_of(30, 1);
	const uint64_t delay_ns = 5000000;
	struct replay_result result;

	memset(plan.op_share, 0, sizeof(plan.op_share));
	plan.op_share[REQUEST_READ] = 1;
	assert_int_equal(fault_create(&plan.fault, "delay=5ms:every=10,delay=15ms:at=30"), 0);
	result = run(fixture, &plan);
	assert_true(result.op[REQUEST_READ].latency_ns >= 6 * delay_ns);
	assert_true(result.op[REQUEST_READ].latency_max_ns >= 4 * delay_ns);
	assert_true(result.op[REQUEST_READ].latency_max_ns <= result.op[REQUEST_READ].latency_ns - 2 * delay_ns);
	assert_true(result.elapsed_ns >= result.op[REQUEST_READ].latency_ns);
	fault_destroy(plan.fault);
}

static void test_death_takes_the_process(void **state)
{
	struct fixture *fixture = *state;
	struct replay_plan plan = plan_of(1000, 1);
	struct replay_result result;
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		if (fault_create(&plan.fault, "kill:at=500") == 0)
			replay_run(fixture->device, &plan, &result);
		_exit(2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void count_call(void *arg, unsigned thread)
{
	unsigned *counts = arg;

	counts[thread]++; /* each thread has its own */
}

static void test_between_is_called_after_each_request(void **state)
{
	struct fixture *fixture = *state;
	struct replay_plan plan = plan_of(100, 3);
	unsigned counts[IO_THREADS] = {0};

	plan.between = count_call;
	plan.between_arg = counts;
	run(fixture, &plan);
	assert_int_equal(counts[0], 34);
	assert_int_equal(counts[1], 33);
	assert_int_equal(counts[2], 33);
}

static struct trace *trace_of(const char *text)
{
	FILE *file = fmemopen((void *)text, strlen(text), "r");
	struct trace *trace = NULL;
	char problem[160] = "";

	assert_non_null(file);
	assert_int_equal(trace_create(&trace, file, problem, sizeof(problem)), 0);
	assert_string_equal(problem, "");
	fclose(file);
	return trace;
}

static void test_trace_runs_in_order(void **state)
{
	struct fixture *fixture = *state;
	struct trace *trace = trace_of("W 0 64K\nR 4K 4K\nF\nD 64K 8K\nZ 124K 8K\n");
	struct replay_plan plan = {.seed = 3, .threads = 1, .trace = trace, .random_percent = 50};
	const struct fake_call *calls = fake_store_calls(fixture->store);
	struct replay_result result;

	result = run(fixture, &plan);
	assert_int_equal(fake_store_call_count(fixture->store), 5);
	assert_true(calls[0].op == FAKE_WRITE && calls[0].granule == 0 && calls[0].count == 16);
	assert_true(calls[1].op == FAKE_READ && calls[1].granule == 1 && calls[1].count == 1);
	assert_true(calls[2].op == FAKE_DISCARD && calls[2].granule == 16 && calls[2].count == 2);
	assert_true(calls[3].op == FAKE_DISCARD && calls[3].granule == 31 && calls[3].count == 1);
	assert_true(calls[4].op == FAKE_DISCARD && calls[4].granule == 32 && calls[4].count == 1);
	assert_int_equal(result.op[REQUEST_FLUSH].requests, 1);
	assert_int_equal(result.op[REQUEST_WRITE].bytes, 64 * KIB);
	assert_int_equal(total_requests(&result), 5);
	trace_destroy(trace);
}

static void test_trace_is_dealt_by_stripes(void **state)
{
	static bool touched[IO_THREADS][GRANULES];
	struct fixture *fixture = *state;
	struct trace *trace = trace_of("W 0 2M\nR 1020K 8K\nF\nD 512K 4K\nW 1M 1M\nR 0 2M\n");
	struct replay_plan plan = {.seed = 3, .threads = 2, .trace = trace, .random_percent = 50};
	struct replay_result result = run(fixture, &plan);

	collect_touched(fixture, touched);
	for (unsigned g = 0; g < GRANULES; g++) {
		assert_int_equal(touched[0][g], g < GRANULES / 2);
		assert_int_equal(touched[1][g], g >= GRANULES / 2);
	}
	assert_int_equal(result.op[REQUEST_FLUSH].requests, 1);
	assert_int_equal(result.op[REQUEST_WRITE].requests, 3);
	assert_int_equal(result.op[REQUEST_WRITE].bytes, 3 * MIB);
	assert_int_equal(result.op[REQUEST_READ].requests, 4);
	assert_int_equal(result.op[REQUEST_DISCARD].requests, 1);
	memset(fake_store_memory(fixture->store), 0, SIZE_BYTES);
	plan.model = fixture->model;
	assert_int_equal(run(fixture, &plan).mismatches, 0);
	trace_destroy(trace);
}

static int try_plan(struct fixture *fixture, struct replay_plan plan)
{
	struct replay_result result, untouched;
	int error;

	memset(&result, 0xee, sizeof(result));
	untouched = result;
	error = replay_run(fixture->device, &plan, &result);
	if (error)
		assert_memory_equal(&result, &untouched, sizeof(result));
	return error;
}

static void test_impossible_plans_are_refused(void **state)
{
	struct fixture *fixture = *state;
	struct trace *inside = trace_of("R 1M 1M\n");
	struct trace *outside = trace_of("R 1M 1M\nR 1M 1028K\n");
	struct replay_plan plan = plan_of(10, 1);

#define CHECK(expected, ...) \
	do { \
		struct replay_plan changed = plan; \
		struct replay_plan *p = &changed; \
		__VA_ARGS__; \
		assert_int_equal(try_plan(fixture, changed), expected); \
	} while (0)
	CHECK(0, p->seed = 1);
	CHECK(-EINVAL, p->threads = 0);
	CHECK(-EINVAL, p->threads = IO_THREADS + 1);
	CHECK(-EINVAL, p->working_set_bytes = SIZE_BYTES + GRANULE_BYTES);
	CHECK(-EINVAL, p->working_set_bytes = 4097);
	CHECK(-EINVAL, p->random_percent = 101);
	CHECK(-EINVAL, p->same_percent = 101);
	CHECK(-EINVAL, memset(p->op_share, 0, sizeof(p->op_share)));
	CHECK(-EINVAL, memset(p->order_share, 0, sizeof(p->order_share)));
	CHECK(0, p->working_set_bytes = UNIT_BYTES; p->threads = 2);
	CHECK(-EINVAL, p->working_set_bytes = UNIT_BYTES; p->threads = 2; p->model = fixture->model);
	CHECK(0, p->trace = inside; p->order_share[0] = 0);
	CHECK(-ERANGE, p->trace = outside);
	CHECK(-ERANGE, p->trace = inside; p->working_set_bytes = 2 * MIB - GRANULE_BYTES);
#undef CHECK
	trace_destroy(inside);
	trace_destroy(outside);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_clean_run_verifies),
		TEST(test_equal_plans_do_equal_things),
		TEST(test_damage_is_found),
		TEST(test_misplaced_granules_are_found_by_reads),
		TEST(test_partly_failed_requests_are_settled),
		TEST(test_failed_reads_are_errors_not_mismatches),
		TEST(test_torn_write_is_found),
		TEST(test_failing_read_back_counts),
		TEST(test_shares),
		TEST(test_ragged_lengths_cross_units),
		TEST(test_stripes_with_a_model_and_roaming_without),
		TEST(test_working_set_is_kept),
		TEST(test_fault_answers_instead_of_the_device),
		TEST(test_latencies_are_summed),
		TEST(test_death_takes_the_process),
		TEST(test_between_is_called_after_each_request),
		TEST(test_trace_runs_in_order),
		TEST(test_trace_is_dealt_by_stripes),
		TEST(test_impossible_plans_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
