// SPDX-License-Identifier: GPL-2.0-or-later
/* The server that fails every request: one thread, one ring, one buffer that nobody reads. */
#include "ublk_fail.h"

#include "ublk_io.h"
#include "ublk_node.h"

#include "cleanup.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define RING_ENTRIES 64
#define PAUSE_US 5000

struct failer {
	struct ublk_control control;
	struct ublk_info info;
	int fd;
	struct io_uring ring;
	void *buffer; /* for the data of writes, where the kernel wants to put it somewhere; NULL: nowhere */
	unsigned fetched;
};

static int set_up_ring(struct failer *failer)
{
	unsigned tags = failer->info.queues * (unsigned)failer->info.depth;
	struct io_uring_params params = {.flags = IORING_SETUP_CQSIZE, .cq_entries = tags + RING_ENTRIES};

	if (!(failer->info.features & UBLK_USER_COPY)) {
		failer->buffer = mmap(NULL, failer->info.request_max_bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (failer->buffer == MAP_FAILED)
			return -errno;
	}
	return io_uring_queue_init_params(RING_ENTRIES, &failer->ring, &params);
}

static int put(struct failer *failer, uint32_t code, unsigned queue, unsigned tag)
{
	const struct ublk_io_words words = {
		.queue = (uint16_t)queue, .tag = (uint16_t)tag, .result = -EIO, .address = (uintptr_t)failer->buffer};
	struct io_uring_sqe *sqe = ublk_io_next(&failer->ring);

	if (!sqe)
		return -EBUSY;
	ublk_io_fill(sqe, failer->fd, ublk_code(failer->control.plain_codes, code), &words);
	return 0;
}

static int fetch_all(struct failer *failer)
{
	int error = 0;

	for (unsigned queue = 0; queue < failer->info.queues; queue++)
		for (unsigned tag = 0; tag < failer->info.depth && error == 0; tag++)
			error = put(failer, UBLK_FETCH, queue, tag);
	if (error == 0)
		error = io_uring_submit(&failer->ring);
	failer->fetched = failer->info.queues * (unsigned)failer->info.depth;
	return error < 0 ? error : 0;
}

/* A completion is a request, or the end of its tag. */
static int answer(struct failer *failer)
{
	struct io_uring_cqe *cqe;
	int error;

	error = io_uring_submit_and_wait(&failer->ring, 1);
	if (error == -EINTR)
		return 0;
	while (error >= 0 && io_uring_peek_cqe(&failer->ring, &cqe) == 0) {
		unsigned queue = ublk_io_queue(cqe->user_data), tag = ublk_io_tag(cqe->user_data);
		bool is_request = cqe->res >= 0;

		io_uring_cqe_seen(&failer->ring, cqe);
		if (is_request)
			error = put(failer, UBLK_COMMIT_AND_FETCH, queue, tag);
		else
			failer->fetched--;
	}
	return error < 0 ? error : 0;
}

/* The kernel is busy with it until it has seen that the former server is gone. */
static int wait_for_turn(struct failer *failer, uint32_t id, uint64_t cookie)
{
	int error;

	for (;;) {
		error = ublk_control_info(&failer->control, id, &failer->info);
		if (error == 0 && failer->info.cookie != cookie)
			return -ENODEV;
		if (error == 0)
			error = ublk_control_do(&failer->control, UBLK_START_USER_RECOVERY, id, 0, UBLK_COMMAND_MS);
		if (error != -EBUSY && error != -ETIMEDOUT)
			return error;
		usleep(PAUSE_US);
	}
}

int ublk_fail_serve(uint32_t id, uint64_t cookie)
{
	struct failer failer = {.fd = -1};
	int error;

	error = ublk_control_open(&failer.control);
	if (error == 0)
		error = wait_for_turn(&failer, id, cookie);
	if (error == 0) {
		failer.fd = ublk_open_server(id, UBLK_COMMAND_MS);
		error = failer.fd < 0 ? failer.fd : set_up_ring(&failer);
	}
	if (error == 0)
		error = fetch_all(&failer);
	if (error == 0)
		error = ublk_control_do(
			&failer.control, UBLK_END_USER_RECOVERY, id, (uint64_t)getpid(), UBLK_COMMAND_MS);
	while (error == 0 && failer.fetched > 0)
		error = answer(&failer);
	return error; /* what is open ends with the process */
}

pid_t ublk_fail_start(uint32_t id, uint64_t cookie, bool with_parent)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid != 0)
		return pid < 0 ? -errno : pid;
	if (with_parent && (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent))
		_exit(1);
	if (!with_parent)
		setsid();
	prctl(PR_SET_NAME, UBLK_FAIL_NAME, 0, 0, 0);
	close_range(0, ~0U, 0);
	mlockall(MCL_CURRENT | MCL_FUTURE); /* if it can be had */
	_exit(ublk_fail_serve(id, cookie) < 0);
}
