// SPDX-License-Identifier: GPL-2.0-or-later
/* The ublk transport's I/O thread. */
#include "ublk_state.h"
#include "ublk_thread.h"

#include "clock.h"
#include "device.h"
#include "fault.h"
#include "ublk_io.h"
#include "units.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#define STOP_KEY UINT64_MAX
#define FLUSH_BYTES ((int32_t)(64 * KIB)) /* an answer this large does not wait for that of the next request, if there is one */

/* ---- one request ---- */

static int op_of(const struct ublk_request *desc, enum request_op *ret)
{
	switch (desc->op_flags & UINT8_MAX) {
	case UBLK_OP_READ:
		*ret = REQUEST_READ;
		return 0;
	case UBLK_OP_WRITE:
		*ret = REQUEST_WRITE;
		return 0;
	case UBLK_OP_FLUSH:
		*ret = REQUEST_FLUSH;
		return 0;
	case UBLK_OP_DISCARD:
		*ret = REQUEST_DISCARD;
		return 0;
	case UBLK_OP_WRITE_ZEROES:
		*ret = REQUEST_WRITE_ZEROES;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static bool has_data(const struct request *request)
{
	return request->op == REQUEST_READ || request->op == REQUEST_WRITE;
}

static int make_request(
	const struct ublk_thread *thread, const struct ublk_request *desc, unsigned tag, struct request *request)
{
	const struct ublk_plan *plan = &thread->served->plan;
	int error;

	error = op_of(desc, &request->op);
	if (error < 0)
		return error;
	if (request->op != REQUEST_FLUSH) {
		request->offset_bytes = desc->first_sector << UBLK_SECTOR_SHIFT;
		request->length_bytes = (uint64_t)desc->sectors << UBLK_SECTOR_SHIFT;
	}
	if (!has_data(request))
		return 0;
	request->data = thread->buffer + ublk_plan_buffer_offset(plan, tag);
	return request->length_bytes <= plan->request_max_bytes ? 0 : -EINVAL;
}

/* What belongs to a request while the device has it. */
struct ublk_work {
	const struct ublk_served *served;
	off_t copy_offset;
	int error;
};

static int whole(ssize_t done, const struct request *request)
{
	return done == (ssize_t)request->length_bytes ? 0 : -EIO;
}

static int fetch_data(const struct request *request, void *to)
{
	const struct ublk_work *work = request->transport_data;

	return whole(pread(work->served->fd, to, request->length_bytes, work->copy_offset), request);
}

static int deliver_data(const struct request *request)
{
	const struct ublk_work *work = request->transport_data;

	return whole(pwrite(work->served->fd, request->data, request->length_bytes, work->copy_offset), request);
}

static void note_answer(struct request *request, int error)
{
	((struct ublk_work *)request->transport_data)->error = error;
}

/* Without USER_COPY the kernel has copied before we see the request, and will after we have answered. */
static int submit(const struct ublk_thread *thread, unsigned tag, struct request *request)
{
	struct ublk_work work = {.served = thread->served, .copy_offset = ublk_copy_offset(thread->index, tag)};
	bool user_copy = thread->served->plan.features & UBLK_USER_COPY;

	request->complete = note_answer;
	request->transport_data = &work;
	if (user_copy && request->op == REQUEST_WRITE)
		request->fetch = fetch_data;
	device_submit(thread->served->device, thread->index, request);
	if (user_copy && request->op == REQUEST_READ && work.error == 0)
		work.error = deliver_data(request);
	return work.error;
}

/* The kernel's memory is read once: its words are checked and used as they were then. */
static struct ublk_request read_desc(const struct ublk_thread *thread, unsigned tag)
{
	const struct ublk_served *served = thread->served;
	const volatile struct ublk_request *desc =
		(const volatile struct ublk_request *)(served->descs + thread->index * served->queue_descs_bytes) + tag;

	return (struct ublk_request){
		.op_flags = desc->op_flags, .sectors = desc->sectors, .first_sector = desc->first_sector};
}

static int32_t carry_out(const struct ublk_thread *thread, unsigned tag, uint64_t received_ns)
{
	const struct ublk_request desc = read_desc(thread, tag);
	struct request request = {.received_ns = received_ns};
	int error;

	error = make_request(thread, &desc, tag, &request);
	if (error == 0)
		error = fault_apply(thread->served->fault, &request);
	if (error == 0)
		error = submit(thread, tag, &request);
	return error < 0 ? error : ublk_plan_result(&desc);
}

/* ---- the ring ---- */

static int put(struct ublk_thread *thread, uint32_t code, unsigned tag, int32_t result)
{
	const struct ublk_served *served = thread->served;
	struct ublk_io_words words = {.queue = (uint16_t)thread->index, .tag = (uint16_t)tag, .result = result};
	struct io_uring_sqe *sqe = ublk_io_next(&thread->ring);

	if (!sqe)
		return -EBUSY;
	if (!(served->plan.features & UBLK_USER_COPY))
		words.address = (uintptr_t)thread->buffer + ublk_plan_buffer_offset(&served->plan, tag);
	ublk_io_fill(sqe, served->fd, ublk_code(served->plain_codes, code), &words);
	return 0;
}

static int watch_stop(struct ublk_thread *thread)
{
	struct io_uring_sqe *sqe = ublk_io_next(&thread->ring);

	if (!sqe)
		return -EBUSY;
	io_uring_prep_poll_add(sqe, thread->served->stop_fd, POLLIN);
	sqe->user_data = STOP_KEY;
	return 0;
}

/* One more entry for the stop. All of a thread's ring happens on the thread, when it waits for it. */
int ublk_thread_set_up(struct ublk_thread *thread)
{
	const struct ublk_served *served = thread->served;
	int error;

	error = io_uring_queue_init(
		served->plan.depth + 1U, &thread->ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
	thread->has_ring = error >= 0;
	thread->buffer = served->buffers + ublk_plan_buffers_before(&served->plan, thread->index);
	return error < 0 ? error : 0;
}

int ublk_thread_fetch(struct ublk_thread *thread)
{
	const struct ublk_plan *plan = &thread->served->plan;
	int error = watch_stop(thread);

	if (thread->index < plan->queues)
		thread->fetched = plan->depth;
	for (unsigned tag = 0; tag < thread->fetched && error == 0; tag++)
		error = put(thread, UBLK_FETCH, tag, 0);
	if (error == 0)
		error = io_uring_submit(&thread->ring);
	return error < 0 ? error : 0;
}

static _Atomic uint8_t *given_of(const struct ublk_thread *thread, unsigned tag)
{
	size_t index = (size_t)thread->index * thread->served->plan.depth + tag;

	return &thread->served->given[index % UBLK_GIVEN];
}

/* Before any of them is worked on, so that a death in the middle tells which were there. */
static void note_given(const struct ublk_thread *thread)
{
	const struct io_uring_cqe *cqe;
	unsigned head;

	io_uring_for_each_cqe(&thread->ring, head, cqe)
	{
		if (cqe->user_data != STOP_KEY && cqe->res >= 0 &&
			atomic_exchange(given_of(thread, ublk_io_tag(cqe->user_data)), 1))
			device_count_requeued(thread->served->device);
	}
}

/* A completion is a request, the end of a tag, or the stop. Returns 0 or -errno. */
static int work(struct ublk_thread *thread, const struct io_uring_cqe *completed, uint64_t received_ns)
{
	unsigned tag = ublk_io_tag(completed->user_data);
	int32_t result;
	int error;

	if (completed->user_data == STOP_KEY)
		return 0;
	if (completed->res < 0) {
		thread->fetched--;
		return completed->res == -ENODEV || completed->res == -ECANCELED ? 0 : completed->res;
	}
	result = carry_out(thread, tag, received_ns);
	atomic_store(given_of(thread, tag), 0);
	error = put(thread, UBLK_COMMIT_AND_FETCH, tag, result);
	if (error == 0 && result >= FLUSH_BYTES && io_uring_cq_ready(&thread->ring))
		error = io_uring_submit(&thread->ring);
	return error < 0 ? error : 0;
}

static int work_all(struct ublk_thread *thread)
{
	uint64_t received_ns = clock_ns();
	struct io_uring_cqe *cqe;
	int error = 0;

	note_given(thread);
	while (error == 0 && !thread->served->stopping && io_uring_peek_cqe(&thread->ring, &cqe) == 0) {
		struct io_uring_cqe completed = *cqe;

		io_uring_cqe_seen(&thread->ring, cqe);
		error = work(thread, &completed, received_ns);
	}
	return error;
}

int ublk_thread_serve(struct ublk_thread *thread)
{
	int error = 0;

	while (error == 0 && thread->fetched > 0 && !thread->served->stopping) {
		error = io_uring_submit_and_wait(&thread->ring, 1);
		if (error >= 0 || error == -EINTR)
			error = work_all(thread);
	}
	return error;
}

void ublk_thread_tear_down(struct ublk_thread *thread)
{
	if (thread->has_ring)
		io_uring_queue_exit(&thread->ring);
	thread->has_ring = false;
}
