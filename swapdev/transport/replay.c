// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests from a generator or a trace, run in this process.
 *
 * Each worker owns a range of the device, two buffers and its own results, so
 * workers share nothing but the device; results are summed after the join.
 */
#include "replay.h"

#include "clock.h"
#include "contents.h"
#include "fault.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define READBACK_BYTES (64 * KIB)

struct worker {
	const struct replay_plan *plan;
	struct device *device;
	unsigned index;
	uint64_t begin_bytes; /* the range of its requests */
	uint64_t end_bytes;
	uint64_t requests;
	struct contents contents;
	uint8_t *data;   /* what is written or was read; as large as the largest request */
	uint8_t *reread; /* the same size, to look at what a failed request left; NULL without a model */
	struct replay_result result;
	pthread_t thread;
	bool is_running;
};

static uint64_t sum_of(const unsigned *shares, unsigned count)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += shares[i];
	return sum;
}

/* An index with a chance of its share of the sum. */
static unsigned pick(struct worker *worker, const unsigned *shares, unsigned count)
{
	uint64_t at = contents_random_below(&worker->contents, sum_of(shares, count));
	unsigned index = 0;

	while (at >= shares[index])
		at -= shares[index++];
	return index;
}

static void keep_answer(struct request *request, int error)
{
	*(int *)request->transport_data = error;
}

static int submit(struct worker *worker, struct fault *fault, struct request *request)
{
	int error;

	request->complete = keep_answer;
	request->transport_data = &error;
	request->received_ns = clock_ns();
	error = fault_apply(fault, request);
	if (!error)
		device_submit(worker->device, worker->index, request);
	return error;
}

static void count_request(struct worker *worker, const struct request *request, int error)
{
	struct replay_op_result *op = &worker->result.op[request->op];
	uint64_t latency_ns = clock_ns() - request->received_ns;

	op->requests++;
	op->bytes += request->length_bytes;
	op->errors += error != 0;
	op->latency_ns += latency_ns;
	if (latency_ns > op->latency_max_ns)
		op->latency_max_ns = latency_ns;
}

static void count_mismatch(struct worker *worker, uint64_t offset_bytes)
{
	worker->result.mismatches++;
	if (offset_bytes < worker->result.first_mismatch_bytes)
		worker->result.first_mismatch_bytes = offset_bytes;
}

static void compare_with_model(struct worker *worker, const struct request *request)
{
	const uint8_t *data = request->data;
	const uint8_t *model = worker->plan->model + request->offset_bytes;

	for (uint64_t at = 0; at < request->length_bytes; at += GRANULE_BYTES)
		if (memcmp(data + at, model + at, GRANULE_BYTES) != 0)
			count_mismatch(worker, request->offset_bytes + at);
}

/* What the range holds when the request was carried out; NULL data means zeros. */
static void put_into_model(struct worker *worker, const struct request *request)
{
	uint8_t *model = worker->plan->model + request->offset_bytes;

	if (request->op == REQUEST_WRITE)
		memcpy(model, request->data, request->length_bytes);
	else
		memset(model, 0, request->length_bytes);
}

/* After a failed write or discard: takes over what was carried out, granule by granule. */
static void settle_failure(struct worker *worker, const struct request *request)
{
	static const uint8_t zeros[GRANULE_BYTES];
	uint8_t *model = worker->plan->model + request->offset_bytes;
	const uint8_t *found = worker->reread;
	struct request reread = {
		.op = REQUEST_READ,
		.offset_bytes = request->offset_bytes,
		.length_bytes = request->length_bytes,
		.data = worker->reread,
	};

	if (submit(worker, NULL, &reread) != 0) {
		count_mismatch(worker, request->offset_bytes);
		return;
	}
	for (uint64_t at = 0; at < request->length_bytes; at += GRANULE_BYTES) {
		const uint8_t *new = request->op == REQUEST_WRITE ? (const uint8_t *)request->data + at : zeros;

		if (memcmp(found + at, new, GRANULE_BYTES) == 0)
			memcpy(model + at, new, GRANULE_BYTES);
		else if (memcmp(found + at, model + at, GRANULE_BYTES) != 0)
			count_mismatch(worker, request->offset_bytes + at);
	}
}

static void verify(struct worker *worker, const struct request *request, int error)
{
	if (request->op == REQUEST_FLUSH || (request->op == REQUEST_READ && error))
		return;
	if (request->op == REQUEST_READ)
		compare_with_model(worker, request);
	else if (error)
		settle_failure(worker, request);
	else
		put_into_model(worker, request);
}

static void run_request(struct worker *worker, enum request_op op, uint64_t offset_bytes, uint64_t length_bytes)
{
	const struct replay_plan *plan = worker->plan;
	struct request request = {
		.op = op,
		.offset_bytes = offset_bytes,
		.length_bytes = length_bytes,
		.data = op == REQUEST_READ || op == REQUEST_WRITE ? worker->data : NULL,
	};
	int error;

	if (op == REQUEST_WRITE)
		contents_fill(&worker->contents, worker->data, offset_bytes, length_bytes);
	error = submit(worker, plan->fault, &request);
	count_request(worker, &request, error);
	if (plan->model)
		verify(worker, &request, error);
	if (plan->between)
		plan->between(plan->between_arg, worker->index);
}

static void generate_request(struct worker *worker)
{
	const struct replay_plan *plan = worker->plan;
	uint64_t range_bytes = worker->end_bytes - worker->begin_bytes;
	enum request_op op = (enum request_op)pick(worker, plan->op_share, REPLAY_OPS);
	uint64_t length_bytes = GRANULE_BYTES << pick(worker, plan->order_share, ORDER_COUNT);
	uint64_t places, step_bytes = GRANULE_BYTES;

	if (op == REQUEST_FLUSH) {
		run_request(worker, op, 0, 0);
		return;
	}
	if (plan->ragged)
		length_bytes =
			(1 + contents_random_below(&worker->contents, length_bytes / GRANULE_BYTES)) * GRANULE_BYTES;
	if (length_bytes > range_bytes)
		length_bytes = range_bytes;
	if (!plan->ragged)
		step_bytes = length_bytes;
	places = (range_bytes - length_bytes) / step_bytes + 1;
	run_request(worker, op, worker->begin_bytes + contents_random_below(&worker->contents, places) * step_bytes,
		length_bytes);
}

/* The part of a step that lies in the worker's range. A flush belongs to nobody's: the first worker sends it. */
static void run_step(struct worker *worker, const struct trace_step *step)
{
	uint64_t begin = step->offset_bytes;
	uint64_t end = step->offset_bytes + step->length_bytes;

	if (step->op == REQUEST_FLUSH) {
		if (worker->index == 0)
			run_request(worker, REQUEST_FLUSH, 0, 0);
		return;
	}
	if (begin < worker->begin_bytes)
		begin = worker->begin_bytes;
	if (end > worker->end_bytes)
		end = worker->end_bytes;
	if (begin < end)
		run_request(worker, step->op, begin, end - begin);
}

static void read_whole_range(struct worker *worker)
{
	for (uint64_t at = worker->begin_bytes; at < worker->end_bytes; at += READBACK_BYTES) {
		uint64_t left = worker->end_bytes - at;
		struct request request = {
			.op = REQUEST_READ,
			.offset_bytes = at,
			.length_bytes = left < READBACK_BYTES ? left : READBACK_BYTES,
			.data = worker->data,
		};

		if (submit(worker, NULL, &request) != 0)
			count_mismatch(worker, at);
		else
			compare_with_model(worker, &request);
	}
}

static void *worker_run(void *arg)
{
	struct worker *worker = arg;
	const struct trace *trace = worker->plan->trace;

	if (trace) {
		for (size_t i = 0; i < trace->count; i++)
			run_step(worker, &trace->steps[i]);
	} else {
		for (uint64_t i = 0; i < worker->requests; i++)
			generate_request(worker);
	}
	if (worker->plan->model)
		read_whole_range(worker);
	return NULL;
}

static uint64_t largest_request_bytes(const struct replay_plan *plan)
{
	uint64_t largest = plan->model ? READBACK_BYTES : GRANULE_BYTES;

	if (plan->trace) {
		for (size_t i = 0; i < plan->trace->count; i++)
			if (plan->trace->steps[i].op <= REQUEST_WRITE || plan->model)
				if (plan->trace->steps[i].length_bytes > largest)
					largest = plan->trace->steps[i].length_bytes;
		return largest;
	}
	for (unsigned order = 0; order < ORDER_COUNT; order++)
		if (plan->order_share[order] && GRANULE_BYTES << order > largest)
			largest = GRANULE_BYTES << order;
	return largest;
}

static uint64_t working_set_bytes(const struct device *device, const struct replay_plan *plan)
{
	return plan->working_set_bytes ? plan->working_set_bytes : device_size_bytes(device);
}

static void worker_set_range(struct worker *worker)
{
	const struct replay_plan *plan = worker->plan;
	uint64_t unit_bytes = device_unit_bytes(worker->device);
	uint64_t whole_bytes = working_set_bytes(worker->device, plan);
	uint64_t units = whole_bytes / unit_bytes;

	worker->begin_bytes = 0;
	worker->end_bytes = whole_bytes;
	if (!plan->model && !plan->trace)
		return;
	worker->begin_bytes = units * worker->index / plan->threads * unit_bytes;
	if (worker->index + 1 < plan->threads)
		worker->end_bytes = units * (worker->index + 1) / plan->threads * unit_bytes;
}

static int worker_init(struct worker *worker, struct device *device, const struct replay_plan *plan, unsigned index)
{
	uint64_t buffer_bytes = largest_request_bytes(plan);

	*worker = (struct worker){
		.plan = plan,
		.device = device,
		.index = index,
		.requests = plan->requests / plan->threads + (index < plan->requests % plan->threads),
		.result.first_mismatch_bytes = UINT64_MAX,
	};
	contents_init(&worker->contents, plan->seed, index);
	worker->contents.random_percent = plan->random_percent;
	worker->contents.same_percent = plan->same_percent;
	worker_set_range(worker);
	worker->data = aligned_alloc(GRANULE_BYTES, buffer_bytes);
	if (plan->model)
		worker->reread = aligned_alloc(GRANULE_BYTES, buffer_bytes);
	return worker->data && (worker->reread || !plan->model) ? 0 : -ENOMEM;
}

static void worker_deinit(struct worker *worker)
{
	free(worker->data);
	free(worker->reread);
}

static int check_trace(const struct trace *trace, uint64_t whole_bytes)
{
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_step *step = &trace->steps[i];

		if (step->offset_bytes > whole_bytes || step->length_bytes > whole_bytes - step->offset_bytes)
			return -ERANGE;
	}
	return 0;
}

static int check_plan(const struct device *device, const struct replay_plan *plan)
{
	uint64_t whole_bytes = working_set_bytes(device, plan);
	bool has_stripes = plan->model || plan->trace;

	if (plan->threads == 0 || plan->threads > device_io_threads(device))
		return -EINVAL;
	if (whole_bytes > device_size_bytes(device) || whole_bytes % GRANULE_BYTES)
		return -EINVAL;
	if (has_stripes && plan->threads > 1 && whole_bytes / device_unit_bytes(device) < plan->threads)
		return -EINVAL;
	if (plan->random_percent > 100 || plan->same_percent > 100)
		return -EINVAL;
	if (plan->trace)
		return check_trace(plan->trace, whole_bytes);
	return sum_of(plan->op_share, REPLAY_OPS) && sum_of(plan->order_share, ORDER_COUNT) ? 0 : -EINVAL;
}

/* Worker 0 is the caller, so that one thread needs no other; returns when all that were started are done. */
static int run_workers(struct worker *workers, unsigned count)
{
	int error = 0;

	for (unsigned i = 1; i < count && !error; i++) {
		error = -pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]);
		workers[i].is_running = !error;
	}
	if (!error)
		worker_run(&workers[0]);
	for (unsigned i = 1; i < count; i++)
		if (workers[i].is_running)
			pthread_join(workers[i].thread, NULL);
	return error;
}

static void add_result(struct replay_result *into, const struct replay_result *from)
{
	for (unsigned i = 0; i < REPLAY_OPS; i++) {
		into->op[i].requests += from->op[i].requests;
		into->op[i].bytes += from->op[i].bytes;
		into->op[i].errors += from->op[i].errors;
		into->op[i].latency_ns += from->op[i].latency_ns;
		if (from->op[i].latency_max_ns > into->op[i].latency_max_ns)
			into->op[i].latency_max_ns = from->op[i].latency_max_ns;
	}
	into->mismatches += from->mismatches;
	if (from->first_mismatch_bytes < into->first_mismatch_bytes)
		into->first_mismatch_bytes = from->first_mismatch_bytes;
}

int replay_run(struct device *device, const struct replay_plan *plan, struct replay_result *ret)
{
	struct replay_result sum = {.first_mismatch_bytes = UINT64_MAX};
	struct worker *workers;
	uint64_t start_ns;
	int error = check_plan(device, plan);

	if (error)
		return error;
	workers = calloc(plan->threads, sizeof(*workers));
	if (!workers)
		return -ENOMEM;
	for (unsigned i = 0; i < plan->threads && !error; i++)
		error = worker_init(&workers[i], device, plan, i);
	start_ns = clock_ns();
	if (!error)
		error = run_workers(workers, plan->threads);
	sum.elapsed_ns = clock_ns() - start_ns;
	for (unsigned i = 0; i < plan->threads; i++) {
		add_result(&sum, &workers[i].result);
		worker_deinit(&workers[i]);
	}
	free(workers);
	if (!error)
		*ret = sum;
	return error;
}
