// SPDX-License-Identifier: GPL-2.0-or-later
/* Commands to /dev/ublk-control: one at a time, each with an end. */
#include "ublk_control.h"

#include "cleanup.h"
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define RING_ENTRIES 2
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S 1000000000

struct command {
	uint32_t code;
	uint32_t id;
	void *buffer; /* in struct ublk_control */
	uint16_t buffer_bytes;
	uint64_t value;
};

/* The kernel blocks in most commands, so a thread of its own carries them out: waiting for it can be given up. */
static int wait_done(struct ublk_control *control, unsigned timeout_ms)
{
	uint64_t give_up_ns = clock_ns() + timeout_ms * NS_PER_MS;
	struct io_uring_cqe *cqe;
	int error, result;

	do {
		uint64_t now_ns = clock_ns();
		uint64_t left_ns = now_ns < give_up_ns ? give_up_ns - now_ns : 0;
		struct __kernel_timespec left = {
			.tv_sec = (int64_t)(left_ns / NS_PER_S), .tv_nsec = (long long)(left_ns % NS_PER_S)};

		error = io_uring_wait_cqe_timeout(&control->ring, &cqe, &left);
	} while (error == -EINTR);
	control->is_late = error < 0;
	if (error < 0)
		return error == -ETIME ? -ETIMEDOUT : error;
	result = cqe->res;
	io_uring_cqe_seen(&control->ring, cqe);
	return result;
}

static void fill(struct io_uring_sqe *sqe, const struct ublk_control *control, const struct command *command)
{
	struct ublk_control_words words = {
		.id = command->id,
		.queue = UBLK_NO_QUEUE,
		.bytes = command->buffer_bytes,
		.address = (uintptr_t)command->buffer,
		.value = command->value,
	};

	memset(sqe, 0, 2 * sizeof(*sqe)); /* this ring's are twice as large */
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = control->fd;
	sqe->cmd_op = ublk_code(control->plain_codes, command->code);
	memcpy(sqe->cmd, &words, sizeof(words));
}

/* What the kernel has no memory for now stays in the ring, for the next attempt. */
static int submit_and_wait(struct ublk_control *control, unsigned timeout_ms)
{
	int submitted;

	do {
		submitted = io_uring_submit(&control->ring);
	} while (submitted == -EINTR);
	control->is_late = submitted < 0;
	return submitted < 0 ? submitted : wait_done(control, timeout_ms);
}

static int run(struct ublk_control *control, const struct command *command, unsigned timeout_ms)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&control->ring);

	if (!sqe)
		return -EBUSY;
	fill(sqe, control, command);
	return submit_and_wait(control, timeout_ms);
}

/* A late one's end first: its buffer and its answer are not to be taken for another's. */
static bool is_ready(struct ublk_control *control, unsigned timeout_ms)
{
	if (control->is_late)
		submit_and_wait(control, timeout_ms);
	return !control->is_late;
}

int ublk_control_do(struct ublk_control *control, uint32_t code, uint32_t id, uint64_t value, unsigned timeout_ms)
{
	const struct command command = {.code = code, .id = id, .value = value};
	int error;

	if (!is_ready(control, timeout_ms))
		return -ETIMEDOUT;
	error = run(control, &command, timeout_ms);
	return error < 0 ? error : 0;
}

static int run_with_buffer(struct ublk_control *control, uint32_t code, uint32_t id, size_t buffer_bytes)
{
	const struct command command = {
		.code = code, .id = id, .buffer = &control->buffer, .buffer_bytes = (uint16_t)buffer_bytes};
	int error;

	error = run(control, &command, UBLK_COMMAND_MS);
	return error < 0 ? error : 0;
}

int ublk_control_add(struct ublk_control *control, struct ublk_info *info)
{
	int error;

	if (!is_ready(control, UBLK_COMMAND_MS))
		return -ETIMEDOUT;
	control->buffer.info = *info;
	error = run_with_buffer(control, UBLK_ADD_DEV, info->id, sizeof(*info));
	if (error == 0)
		*info = control->buffer.info;
	return error;
}

int ublk_control_set_params(struct ublk_control *control, uint32_t id, const struct ublk_params *params)
{
	if (!is_ready(control, UBLK_COMMAND_MS))
		return -ETIMEDOUT;
	control->buffer.params = *params;
	return run_with_buffer(control, UBLK_SET_PARAMS, id, params->bytes);
}

int ublk_control_info(struct ublk_control *control, uint32_t id, struct ublk_info *ret)
{
	int error;

	if (!is_ready(control, UBLK_COMMAND_MS))
		return -ETIMEDOUT;
	error = run_with_buffer(control, UBLK_GET_DEV_INFO, id, sizeof(*ret));
	if (error == 0)
		*ret = control->buffer.info;
	return error;
}

/* A driver that does not know the question takes it for one about a device, which there is none of, or for nothing. */
static bool is_unknown(int error)
{
	return error == -ENODEV || error == -EOPNOTSUPP || error == -EINVAL || error == -ENOTTY;
}

int ublk_control_features(struct ublk_control *control, uint64_t *ret)
{
	int error;

	if (!is_ready(control, UBLK_COMMAND_MS))
		return -ETIMEDOUT;
	control->plain_codes = false;
	error = run_with_buffer(control, UBLK_GET_FEATURES, UBLK_ANY_ID, sizeof(uint64_t));
	control->plain_codes = is_unknown(error);
	if (error < 0 && !control->plain_codes)
		return error;
	*ret = error < 0 ? UBLK_FEATURES_FIRST : control->buffer.features;
	return 0;
}

int ublk_control_open(struct ublk_control *control)
{
	uint64_t features;
	int error;

	memset(control, 0, sizeof(*control));
	control->fd = open(UBLK_CONTROL_NODE, O_RDWR | O_CLOEXEC);
	if (control->fd < 0)
		return -errno;
	error = io_uring_queue_init(RING_ENTRIES, &control->ring, IORING_SETUP_SQE128);
	if (error < 0) {
		close(control->fd);
		control->fd = -1;
		return error;
	}
	error = ublk_control_features(control, &features);
	if (error < 0)
		ublk_control_close(control);
	return error;
}

void ublk_control_close(struct ublk_control *control)
{
	if (control->fd < 0)
		return;
	io_uring_queue_exit(&control->ring);
	close(control->fd);
	control->fd = -1;
}
