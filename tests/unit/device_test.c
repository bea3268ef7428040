// SPDX-License-Identifier: GPL-2.0-or-later
/* The device over a store that writes its calls down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>

#include <errno.h>

#include <cmocka.h>

#include "clock.h"
#include "device.h"
#include "fake_store.h"
#include "random.h"
#include "units.h"

#define TIB (1024 * GIB)
#define RANDOM_REQUESTS 4000

static uint64_t random_state = UINT64_C(0xdecaf);

struct answer {
	unsigned calls;
	int error;
};

static void record_answer(struct request *request, int error)
{
	struct answer *answer = request->transport_data;

	answer->calls++;
	answer->error = error;
}

/* Submits one request and returns its error; completion must have come exactly once by then. */
static int submit(
	struct device *device, unsigned thread, enum request_op op, uint64_t offset, uint64_t length, void *data)
{
	struct answer answer = {0};
	struct request request = {
		.op = op,
		.offset_bytes = offset,
		.length_bytes = length,
		.data = data,
		.received_ns = clock_ns(),
		.complete = record_answer,
		.transport_data = &answer,
	};

	device_submit(device, thread, &request);
	assert_int_equal(answer.calls, 1);
	return answer.error;
}

struct fixture {
	struct store *store;
	struct device *device;
};

static void fixture_init(struct fixture *fixture, uint64_t size, uint32_t unit, unsigned io_threads, bool with_memory)
{
	fixture->store = fake_store_create(size, unit, io_threads, with_memory);
	assert_int_equal(device_create(&fixture->device, fixture->store), 0);
	device_open(fixture->device, 0, false);
}

static void fixture_deinit(struct fixture *fixture)
{
	device_destroy(fixture->device);
	fake_store_destroy(fixture->store);
}

static const struct stats_op *op_stats(
	const struct fixture *fixture, unsigned thread, enum stats_kind kind, unsigned order)
{
	return &stats_page_io(store_stats(fixture->store), thread)->op[kind][order];
}

/* All requests that any thread of the page has counted. */
static uint64_t counted_requests(const struct fixture *fixture)
{
	struct stats_sum *sum = aligned_alloc(CACHE_LINE_BYTES, sizeof(*sum));
	uint64_t requests = 0;

	assert_non_null(sum);
	stats_sum(store_stats(fixture->store), sum);
	for (unsigned kind = 0; kind < STATS_KINDS; kind++)
		for (unsigned order = 0; order < ORDER_COUNT; order++)
			requests += sum->io.op[kind][order].requests;
	free(sum);
	return requests;
}

static void test_view_of_the_store(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_init(&fixture, 6 * MIB, 2 * MIB, 3, false);
	assert_int_equal(device_size_bytes(fixture.device), 6 * MIB);
	assert_int_equal(device_unit_bytes(fixture.device), 2 * MIB);
	assert_int_equal(device_io_threads(fixture.device), 3);
	fixture_deinit(&fixture);
	device_destroy(NULL);
}

/* A store that has grown: the device takes what lies there when it is told, or begins. */
static void test_grows_with_the_store(void **state)
{
	static uint8_t buffer[8 * KIB];
	struct fixture fixture;

	(void)state;
	fixture_init(&fixture, MIB, 64 * KIB, 1, false);
	for (unsigned opens = 0; opens < 2; opens++) {
		uint64_t end = device_size_bytes(fixture.device);

		fake_store_set_size(fixture.store, end + 4 * KIB);
		fake_store_forget(fixture.store);
		for (unsigned op = REQUEST_READ; op <= REQUEST_WRITE_ZEROES; op++)
			assert_int_equal(
				submit(fixture.device, 0, op, end, 4 * KIB, op <= REQUEST_WRITE ? buffer : NULL),
				-EINVAL);
		assert_int_equal(fake_store_call_count(fixture.store), 0);
		if (opens)
			device_open(fixture.device, 0, false);
		else
			device_update_size(fixture.device);
		assert_int_equal(device_size_bytes(fixture.device), end + 4 * KIB);
		for (unsigned op = REQUEST_READ; op <= REQUEST_WRITE_ZEROES; op++) {
			uint8_t *data = op <= REQUEST_WRITE ? buffer : NULL;

			assert_int_equal(submit(fixture.device, 0, op, end, 4 * KIB, data), 0);
			assert_int_equal(submit(fixture.device, 0, op, end, 8 * KIB, data), -EINVAL);
		}
	}
	fixture_deinit(&fixture);
}

static void check_call(
	const struct fake_call *call, enum fake_op op, unsigned io, uint64_t granule, uint32_t count, void *data)
{
	assert_int_equal(call->op, op);
	assert_int_equal(call->io, io);
	assert_int_equal(call->granule, granule);
	assert_int_equal(call->count, count);
	assert_ptr_equal(call->data, data);
}

static void test_pieces_reach_the_store(void **state)
{
	static const enum fake_op expected[] = {
		[REQUEST_READ] = FAKE_READ,
		[REQUEST_WRITE] = FAKE_WRITE,
		[REQUEST_DISCARD] = FAKE_DISCARD,
		[REQUEST_WRITE_ZEROES] = FAKE_DISCARD,
	};
	static uint8_t buffer[192 * KIB];
	struct fixture fixture;

	(void)state;
	fixture_init(&fixture, MIB, 64 * KIB, 2, false);
	for (unsigned op = REQUEST_READ; op <= REQUEST_WRITE_ZEROES; op++) {
		uint8_t *data = op <= REQUEST_WRITE ? buffer : NULL;
		const struct fake_call *calls = fake_store_calls(fixture.store);

		fake_store_forget(fixture.store);
		assert_int_equal(submit(fixture.device, op % 2, op, 60 * KIB, 140 * KIB, data), 0);
		assert_int_equal(fake_store_call_count(fixture.store), 4);
		check_call(&calls[0], expected[op], op % 2, 15, 1, data);
		check_call(&calls[1], expected[op], op % 2, 16, 16, data ? data + 4 * KIB : NULL);
		check_call(&calls[2], expected[op], op % 2, 32, 16, data ? data + 68 * KIB : NULL);
		check_call(&calls[3], expected[op], op % 2, 48, 2, data ? data + 132 * KIB : NULL);
	}
	fixture_deinit(&fixture);
}

static void test_far_offsets(void **state)
{
	static const uint64_t borders[] = {4 * GIB, 2 * TIB, 4 * TIB, 16 * TIB};
	static uint8_t buffer[8 * KIB];
	struct fixture fixture;

	(void)state;
	fixture_init(&fixture, 16 * TIB + 2 * MIB, 2 * MIB, 1, false);
	for (unsigned i = 0; i < 4; i++) {
		const struct fake_call *calls = fake_store_calls(fixture.store);
		uint64_t granule = borders[i] / GRANULE_BYTES;

		fake_store_forget(fixture.store);
		assert_int_equal(submit(fixture.device, 0, REQUEST_WRITE, borders[i] - 4 * KIB, 8 * KIB, buffer), 0);
		assert_int_equal(fake_store_call_count(fixture.store), 2);
		check_call(&calls[0], FAKE_WRITE, 0, granule - 1, 1, buffer);
		check_call(&calls[1], FAKE_WRITE, 0, granule, 1, buffer + 4 * KIB);
	}
	/* One discard of 8 GiB: every unit once, none twice. */
	fake_store_forget(fixture.store);
	assert_int_equal(submit(fixture.device, 0, REQUEST_DISCARD, 2 * TIB - 4 * GIB, 8 * GIB, NULL), 0);
	assert_int_equal(fake_store_call_count(fixture.store), 4096);
	for (unsigned i = 0; i < 4096; i++)
		check_call(&fake_store_calls(fixture.store)[i], FAKE_DISCARD, 0,
			(2 * TIB - 4 * GIB) / GRANULE_BYTES + i * 512, 512, NULL);
	fixture_deinit(&fixture);
}

static void test_bad_requests_do_not_reach_the_store(void **state)
{
	static const uint64_t ranges[][2] = {
		{0, 0},
		{4 * KIB, 0},
		{512, 4 * KIB},
		{4 * KIB, 4 * KIB + 512},
		{4 * KIB, 512},
		{0, 4 * KIB - 1},
		{6 * MIB, 4 * KIB},
		{6 * MIB - 4 * KIB, 8 * KIB},
		{0, 6 * MIB + 4 * KIB},
		{6 * MIB + 4 * KIB, 4 * KIB},
		{4 * GIB, 4 * KIB},
		{UINT64_MAX - 4 * KIB + 1, 4 * KIB},    /* the sum is 2^64: wraps to 0 */
		{UINT64_MAX - 4 * KIB + 1, 8 * KIB},    /* wraps to 4 KiB */
		{8 * KIB, UINT64_MAX - 4 * KIB + 1},    /* wraps to 4 KiB */
		{4 * KIB, UINT64_MAX - 4 * KIB + 1},    /* wraps to 0 */
		{UINT64_C(1) << 63, UINT64_C(1) << 63}, /* wraps to 0 */
		{UINT64_MAX - 4 * KIB + 1, UINT64_MAX - 4 * KIB + 1},
	};
	static uint8_t buffer[8 * KIB];
	struct fixture fixture;
	uint64_t counted = 0;

	(void)state;
	fixture_init(&fixture, 6 * MIB, 2 * MIB, 1, false);
	for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		for (unsigned op = REQUEST_READ; op <= REQUEST_WRITE_ZEROES; op++) {
			assert_int_equal(submit(fixture.device, 0, op, ranges[i][0], ranges[i][1], buffer), -EINVAL);
			counted += ranges[i][1] >= 4096;
		}
	}
	assert_int_equal(submit(fixture.device, 0, REQUEST_READ, 0, 4 * KIB, NULL), -EINVAL);
	assert_int_equal(submit(fixture.device, 0, REQUEST_WRITE, 0, 4 * KIB, NULL), -EINVAL);
	assert_int_equal(submit(fixture.device, 0, (enum request_op)(REQUEST_FLUSH + 1), 0, 4 * KIB, buffer), -EINVAL);
	assert_int_equal(fake_store_call_count(fixture.store), 0);
	assert_int_equal(counted_requests(&fixture), counted + 2);
	/* Refused ones are errors of their order: six ranges of 4 KiB and a little, and the one without data. */
	assert_int_equal(op_stats(&fixture, 0, STATS_READ, 0)->errors, op_stats(&fixture, 0, STATS_READ, 0)->requests);
	assert_int_equal(op_stats(&fixture, 0, STATS_WRITE, 0)->errors, 7);
	assert_int_equal(op_stats(&fixture, 0, STATS_WRITE, 10)->errors, 1);
	fixture_deinit(&fixture);
}

/* ---- bytes that are still with the transport ---- */

static struct {
	const void *to;
	unsigned calls;
	int error;
} fetched;

static int fetch_pattern(const struct request *request, void *to)
{
	fetched.to = to;
	fetched.calls++;
	if (fetched.error == 0)
		memset(to, (int)(request->offset_bytes / GRANULE_BYTES % 251 + 1), request->length_bytes);
	return fetched.error;
}

static int submit_fetched(struct device *device, uint64_t offset, uint64_t length, void *data, int fetch_error)
{
	struct answer answer = {0};
	struct request request = {
		.op = REQUEST_WRITE,
		.offset_bytes = offset,
		.length_bytes = length,
		.data = data,
		.fetch = fetch_pattern,
		.complete = record_answer,
		.transport_data = &answer,
	};

	fetched.to = NULL;
	fetched.calls = 0;
	fetched.error = fetch_error;
	device_submit(device, 0, &request);
	assert_int_equal(answer.calls, 1);
	return answer.error;
}

/* Whole units go where the store wants them, all others through the request's data; once each. */
static void test_fetched_writes(void **state)
{
	static const uint64_t ranges[][2] = {
		{2 * MIB, 2 * MIB}, {0, 2 * MIB}, {4 * KIB, 4 * KIB}, {MIB, 2 * MIB}, {0, 4 * MIB}, {2 * MIB, MIB}};
	uint8_t *buffer = calloc(1, 4 * MIB);
	struct fixture fixture;

	(void)state;
	assert_non_null(buffer);
	fixture_init(&fixture, 6 * MIB, 2 * MIB, 1, true);
	for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		uint64_t offset = ranges[i][0], length = ranges[i][1];
		const uint8_t *memory = fake_store_memory(fixture.store) + offset;
		uint8_t before = memory[0];

		fake_store_forget(fixture.store);
		assert_int_equal(submit_fetched(fixture.device, offset, length, buffer, -EFAULT) < 0, 1);
		assert_int_equal(fetched.calls, 1);
		assert_int_equal(fake_store_call_count(fixture.store), 0);
		assert_int_equal(memory[0], before);
		assert_int_equal(submit_fetched(fixture.device, offset, length, buffer, 0), 0);
		assert_int_equal(fetched.calls, 1);
		assert_int_equal(fetched.to != buffer, i < 2);
		for (uint64_t at = 0; at < length; at++)
			assert_int_equal(memory[at], offset / GRANULE_BYTES % 251 + 1);
	}
	assert_int_equal(submit_fetched(fixture.device, 6 * MIB, 2 * MIB, buffer, 0), -EINVAL);
	assert_int_equal(fetched.calls, 0);
	fixture_deinit(&fixture);
	free(buffer);
}

static void test_flush_touches_nothing(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_init(&fixture, 6 * MIB, 2 * MIB, 1, false);
	assert_int_equal(submit(fixture.device, 0, REQUEST_FLUSH, 0, 0, NULL), 0);
	assert_int_equal(submit(fixture.device, 0, REQUEST_FLUSH, 512, 0, NULL), 0);
	assert_int_equal(fake_store_call_count(fixture.store), 0);
	assert_int_equal(counted_requests(&fixture), 0);
	fixture_deinit(&fixture);
}

static void test_first_error_is_kept_and_all_pieces_tried(void **state)
{
	static uint8_t buffer[256 * KIB];
	struct fixture fixture;

	(void)state;
	fixture_init(&fixture, MIB, 64 * KIB, 1, true);
	memset(buffer, 0x5a, sizeof(buffer));
	for (unsigned op = REQUEST_READ; op <= REQUEST_WRITE_ZEROES; op++) {
		fake_store_forget(fixture.store);
		fake_store_fail(fixture.store, 2, -EIO);
		fake_store_fail(fixture.store, 3, -ENOSPC);
		assert_int_equal(submit(fixture.device, 0, op, 0, 256 * KIB, buffer), -EIO);
		assert_int_equal(fake_store_call_count(fixture.store), 4);
		if (op == REQUEST_WRITE) {
			assert_int_equal(fake_store_memory(fixture.store)[64 * KIB - 1], 0x5a);
			assert_int_equal(fake_store_memory(fixture.store)[64 * KIB], 0);
			assert_int_equal(fake_store_memory(fixture.store)[192 * KIB - 1], 0);
			assert_int_equal(fake_store_memory(fixture.store)[192 * KIB], 0x5a);
		}
		/* An error of one piece is no error of the next request. */
		assert_int_equal(submit(fixture.device, 0, op, 0, 256 * KIB, buffer), 0);
		memset(buffer, 0x5a, sizeof(buffer));
	}
	assert_int_equal(op_stats(&fixture, 0, STATS_WRITE, 6)->requests, 2);
	assert_int_equal(op_stats(&fixture, 0, STATS_WRITE, 6)->errors, 1);
	assert_int_equal(op_stats(&fixture, 0, STATS_DISCARD, 6)->requests, 4);
	assert_int_equal(op_stats(&fixture, 0, STATS_DISCARD, 6)->errors, 2);
	fixture_deinit(&fixture);
}

static void test_request_is_counted_once_whole(void **state)
{
	static uint8_t buffer[64 * KIB + 4 * KIB];
	struct fixture fixture;

	(void)state;
	fixture_init(&fixture, MIB, 64 * KIB, 2, false);
	assert_int_equal(submit(fixture.device, 1, REQUEST_READ, 32 * KIB, 64 * KIB, buffer), 0); /* two pieces */
	assert_int_equal(submit(fixture.device, 1, REQUEST_READ, 60 * KIB, 68 * KIB, buffer), 0); /* two pieces */
	assert_int_equal(counted_requests(&fixture), 2);
	assert_int_equal(op_stats(&fixture, 1, STATS_READ, 4)->requests, 2);
	assert_int_equal(op_stats(&fixture, 1, STATS_READ, 4)->bytes, 132 * KIB);
	assert_int_equal(op_stats(&fixture, 1, STATS_READ, 4)->errors, 0);
	fixture_deinit(&fixture);
}

static uint64_t counted_before_answer;

static void look_at_statistics(struct request *request, int error)
{
	const struct fixture *fixture = request->transport_data;

	(void)error;
	counted_before_answer = counted_requests(fixture);
}

static void test_latency_runs_from_the_reception(void **state)
{
	static uint8_t buffer[4 * KIB];
	struct fixture fixture;
	struct request request = {
		.op = REQUEST_READ,
		.length_bytes = 4 * KIB,
		.data = buffer,
		.complete = look_at_statistics,
		.transport_data = &fixture,
	};
	const uint64_t second_ns = UINT64_C(1000000000);

	(void)state;
	fixture_init(&fixture, MIB, 64 * KIB, 1, false);
	request.received_ns = clock_ns() - 3 * second_ns;
	device_submit(fixture.device, 0, &request);
	assert_int_equal(counted_before_answer, 1);
	assert_true(op_stats(&fixture, 0, STATS_READ, 0)->latency.max_ns >= 3 * second_ns);
	assert_true(op_stats(&fixture, 0, STATS_READ, 0)->latency.max_ns < 60 * second_ns);
	/* A reception that seems to lie ahead counts as no time at all, not as centuries. */
	request.received_ns = clock_ns() + 1000 * second_ns;
	request.op = REQUEST_WRITE;
	device_submit(fixture.device, 0, &request);
	assert_int_equal(op_stats(&fixture, 0, STATS_WRITE, 0)->latency.max_ns, 0);
	assert_int_equal(op_stats(&fixture, 0, STATS_WRITE, 0)->requests, 1);
	fixture_deinit(&fixture);
}

static void test_random_requests_against_an_array(void **state)
{
	const uint64_t size = 2 * MIB;
	uint8_t *model = calloc(1, size);
	uint8_t *buffer = malloc(size);
	struct fixture fixture;

	(void)state;
	assert_non_null(model);
	assert_non_null(buffer);
	fixture_init(&fixture, size, 64 * KIB, 2, true);
	for (unsigned i = 0; i < RANDOM_REQUESTS; i++) {
		uint64_t first = random_below(&random_state, size / GRANULE_BYTES);
		uint64_t left = size / GRANULE_BYTES - first;
		uint64_t offset = first * GRANULE_BYTES;
		uint64_t length = (1 + random_below(&random_state, left < 48 ? left : 48)) * GRANULE_BYTES;
		enum request_op op = (enum request_op)random_below(&random_state, REQUEST_FLUSH + 1);

		if (op == REQUEST_WRITE)
			for (uint64_t at = 0; at < length; at += 8)
				memcpy(buffer + at, &(uint64_t){random_below(&random_state, UINT64_MAX)}, 8);
		fake_store_forget(fixture.store);
		assert_int_equal(submit(fixture.device, i % 2, op, offset, length, buffer), 0);
		if (op == REQUEST_READ)
			assert_memory_equal(buffer, model + offset, length);
		else if (op == REQUEST_WRITE)
			memcpy(model + offset, buffer, length);
		else if (op != REQUEST_FLUSH)
			memset(model + offset, 0, length);
		assert_int_equal(memcmp(fake_store_memory(fixture.store), model, size), 0);
	}
	fixture_deinit(&fixture);
	free(buffer);
	free(model);
}

/* A process dies when it comes to its answer: what it noted stays, and a new device is made over the same store. */
static jmp_buf death;

static void die(struct request *request, int error)
{
	(void)request;
	(void)error;
	longjmp(death, 1);
}

static void die_in(struct fixture *fixture, unsigned thread, uint64_t granule, bool crashed)
{
	static uint8_t data[GRANULE_BYTES];
	struct request request = {
		.op = REQUEST_WRITE,
		.offset_bytes = granule * GRANULE_BYTES,
		.length_bytes = GRANULE_BYTES,
		.data = data,
		.received_ns = clock_ns(),
		.complete = die,
	};

	if (setjmp(death) == 0)
		device_submit(fixture->device, thread, &request);
	device_destroy(fixture->device);
	assert_int_equal(device_create(&fixture->device, fixture->store), 0);
	device_open(fixture->device, clock_ns(), crashed);
}

static int write_granule(struct fixture *fixture, unsigned thread, uint64_t granule)
{
	static uint8_t data[GRANULE_BYTES];

	return submit(fixture->device, thread, REQUEST_WRITE, granule * GRANULE_BYTES, GRANULE_BYTES, data);
}

static void test_two_crashes_in_a_row_are_answered_with_an_error(void **state)
{
	struct fixture fixture;
	const struct stats_takeovers *takeovers;

	(void)state;
	fixture_init(&fixture, 6 * MIB, 2 * MIB, 2, true);
	takeovers = &store_stats(fixture.store)->takeovers;
	die_in(&fixture, 0, 5, true);
	die_in(&fixture, 1, 5, true); /* it came again, to another thread */
	assert_int_equal(write_granule(&fixture, 0, 6), 0);
	assert_int_equal(write_granule(&fixture, 0, 5), -EIO);
	assert_int_equal(takeovers->blamed, 1);
	assert_int_equal(write_granule(&fixture, 0, 5), 0); /* a later one of the same range is another request */
	assert_int_equal(takeovers->count, 2);
	fixture_deinit(&fixture);
}

static void test_death_during_recovery_keeps_the_count(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_init(&fixture, 6 * MIB, 2 * MIB, 2, true);
	die_in(&fixture, 0, 5, true);
	device_open(fixture.device, clock_ns(), true); /* a successor that died before its first request */
	die_in(&fixture, 0, 5, true);
	assert_int_equal(write_granule(&fixture, 0, 5), -EIO);
	fixture_deinit(&fixture);
}

static void test_killed_from_outside_blames_nobody(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_init(&fixture, 6 * MIB, 2 * MIB, 2, true);
	for (unsigned i = 0; i < 5; i++)
		die_in(&fixture, 0, 5, false);
	die_in(&fixture, 0, 5, true);
	assert_int_equal(write_granule(&fixture, 0, 5), 0);
	assert_int_equal(store_stats(fixture.store)->takeovers.blamed, 0);
	fixture_deinit(&fixture);
}

static void test_outage_ends_with_the_first_answer(void **state)
{
	struct fixture fixture;
	const struct stats_takeovers *takeovers;

	(void)state;
	fixture_init(&fixture, 6 * MIB, 2 * MIB, 1, true);
	takeovers = &store_stats(fixture.store)->takeovers;
	assert_int_equal(write_granule(&fixture, 0, 1), 0);
	assert_int_equal(takeovers->last_outage_ns, 0);
	device_open(fixture.device, clock_ns() - 7000000, false);
	assert_int_equal(write_granule(&fixture, 0, 1), 0);
	assert_true(takeovers->last_outage_ns >= 7000000);
	assert_int_equal(takeovers->worst_outage_ns, takeovers->last_outage_ns);
	/* Nobody wanted anything for a while: that is no outage. */
	device_open(fixture.device, clock_ns() - 1000000, false);
	usleep(300000);
	assert_int_equal(write_granule(&fixture, 0, 1), 0);
	assert_true(takeovers->last_outage_ns >= 1000000 && takeovers->last_outage_ns < 100000000);
	fixture_deinit(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_view_of_the_store),
		cmocka_unit_test(test_grows_with_the_store),
		cmocka_unit_test(test_pieces_reach_the_store),
		cmocka_unit_test(test_far_offsets),
		cmocka_unit_test(test_bad_requests_do_not_reach_the_store),
		cmocka_unit_test(test_fetched_writes),
		cmocka_unit_test(test_flush_touches_nothing),
		cmocka_unit_test(test_first_error_is_kept_and_all_pieces_tried),
		cmocka_unit_test(test_request_is_counted_once_whole),
		cmocka_unit_test(test_latency_runs_from_the_reception),
		cmocka_unit_test(test_random_requests_against_an_array),
		cmocka_unit_test(test_two_crashes_in_a_row_are_answered_with_an_error),
		cmocka_unit_test(test_death_during_recovery_keeps_the_count),
		cmocka_unit_test(test_killed_from_outside_blames_nobody),
		cmocka_unit_test(test_outage_ends_with_the_first_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
