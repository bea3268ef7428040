// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The ublk transport, the server's half: its life. What its threads do with requests is in ublk_thread.c.
 *
 *   serve_start   threads with rings and buffers wait at the gate
 *   serve_open    (START_USER_RECOVERY), /dev/ublkcN opened, gate; tags fetched, (END_USER_RECOVERY)
 *   serve         joins the threads
 */
#include "ublk_state.h"
#include "ublk_thread.h"

#include "device.h"
#include "fault.h"
#include "privilege.h"
#include "schedule.h"
#include "ublk_control.h"
#include "ublk_node.h"

#include "clock.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define STACK_BYTES (128 * 1024)
#define TAKE_OVER_MS 10000 /* old drivers look every five seconds whether a server is dead */
#define OPEN_MS 10000
#define PAUSE_US 500
#define NS_PER_MS UINT64_C(1000000)

struct server_thread {
	struct transport_server *server;
	struct ublk_thread io;
	pthread_t thread;
};

/* Lives in memory of its own and is never freed: ublk_serve_stop may be called at any time. */
struct transport_server {
	struct transport *transport;
	struct ublk_control control;
	struct ublk_served served;
	unsigned threads; /* started */
	sem_t gate;
	sem_t passed;      /* once per thread and stage: set up, fetched */
	_Atomic int error; /* the first */
	struct server_thread thread[];
};

static int fail(char *problem, size_t problem_bytes, int error, const char *what)
{
	snprintf(problem, problem_bytes, "cannot %s: %s", what, strerror(-error));
	return error;
}

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) < 0)
		;
}

/* ---- threads ---- */

static void note_error(struct transport_server *server, int error)
{
	int none = 0;

	if (error < 0)
		__atomic_compare_exchange_n(
			(int *)&server->error, &none, error, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void *thread_main(void *argument)
{
	struct server_thread *thread = argument;
	struct transport_server *server = thread->server;
	int error;

	schedule_soon();
	error = ublk_thread_set_up(&thread->io);
	note_error(server, error);
	sem_post(&server->passed);
	wait_for(&server->gate);
	if (error == 0 && !server->served.stopping)
		error = ublk_thread_fetch(&thread->io);
	privilege_keep(0);
	note_error(server, error);
	sem_post(&server->passed);
	if (error == 0)
		note_error(server, ublk_thread_serve(&thread->io));
	ublk_thread_tear_down(&thread->io);
	return NULL;
}

static int start_thread(struct transport_server *server)
{
	struct server_thread *thread = &server->thread[server->threads];
	pthread_attr_t attributes;
	char name[16];
	int error;

	thread->server = server;
	thread->io.served = &server->served;
	thread->io.index = server->threads;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	error = pthread_create(&thread->thread, &attributes, thread_main, thread);
	pthread_attr_destroy(&attributes);
	if (error)
		return -error;
	snprintf(name, sizeof(name), "io-%u", server->threads);
	pthread_setname_np(thread->thread, name);
	server->threads++;
	return 0;
}

static int start_threads(struct transport_server *server)
{
	int error = 0;

	for (unsigned i = 0; i < server->served.plan.threads && error == 0; i++)
		error = start_thread(server);
	for (unsigned i = 0; i < server->threads; i++)
		wait_for(&server->passed);
	return error < 0 ? error : server->error;
}

static void let_pass(struct transport_server *server)
{
	for (unsigned i = 0; i < server->threads; i++)
		sem_post(&server->gate);
}

/* ---- start ---- */

static struct transport_server *allocate(struct transport *transport, struct device *device)
{
	size_t bytes = sizeof(struct transport_server) + transport->plan.threads * sizeof(struct server_thread);
	struct transport_server *server;

	server = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (server == MAP_FAILED)
		return NULL;
	server->transport = transport;
	server->control.fd = -1;
	server->served =
		(struct ublk_served){.device = device, .plan = transport->plan, .given = transport->given, .fd = -1};
	sem_init(&server->gate, 0, 0);
	sem_init(&server->passed, 0, 0);
	server->served.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return server;
}

/* Those of whoever serves now: their bytes are not touched. */
static int map_buffers(struct transport_server *server)
{
	size_t bytes = ublk_plan_buffers_before(&server->served.plan, server->served.plan.threads);
	void *buffers;

	buffers =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, server->transport->buffers_fd, 0);
	if (buffers == MAP_FAILED)
		return -errno;
	server->served.buffers = buffers;
	return madvise(buffers, bytes, MADV_DONTDUMP) < 0 ? -errno : 0;
}

static int build(struct transport_server *server, const char **what)
{
	int error;

	*what = "make an event descriptor";
	if (server->served.stop_fd < 0)
		return -EMFILE;
	*what = "map the buffers";
	error = map_buffers(server);
	if (error < 0)
		return error;
	*what = "set up the fault rule";
	error = fault_create(&server->served.fault, server->transport->config.fault);
	if (error < 0)
		return error;
	*what = "open " UBLK_CONTROL_NODE;
	error = ublk_control_open(&server->control);
	if (error < 0)
		return error;
	server->served.plain_codes = server->control.plain_codes;
	*what = "set up the I/O threads";
	return start_threads(server);
}

int ublk_serve_start(struct transport_server **ret, struct transport *transport, struct device *device, char *problem,
	size_t problem_bytes)
{
	struct transport_server *server = allocate(transport, device);
	const char *what = "allocate the server";
	int error = server ? build(server, &what) : -ENOMEM;

	if (error == 0) {
		*ret = server;
		return 0;
	}
	if (server) {
		ublk_serve_stop(server);
		ublk_serve(server);
	}
	return fail(problem, problem_bytes, error, what);
}

/* ---- open ---- */

/* The kernel may be about to see the predecessor's end. */
static int start_recovery(struct transport_server *server)
{
	uint64_t give_up_ns = clock_ns() + TAKE_OVER_MS * NS_PER_MS;
	int error;

	while ((error = ublk_control_do(&server->control, UBLK_START_USER_RECOVERY, server->transport->id, 0,
			TAKE_OVER_MS)) == -EBUSY &&
		clock_ns() < give_up_ns)
		usleep(PAUSE_US);
	return error;
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t descs_bytes(unsigned depth)
{
	size_t bytes = depth * sizeof(struct ublk_request);

	return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

/* Each queue's part is mapped by itself; they end up side by side. */
static int map_descs(struct ublk_served *served)
{
	size_t bytes = descs_bytes(served->plan.depth), stride = descs_bytes(UBLK_DEPTH_MAX);
	uint8_t *place;

	place = mmap(NULL, served->plan.queues * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (place == MAP_FAILED)
		return -errno;
	for (unsigned queue = 0; queue < served->plan.queues; queue++) {
		if (mmap(place + queue * bytes, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE | MAP_FIXED, served->fd,
			    (off_t)(queue * stride)) == MAP_FAILED)
			return -errno;
	}
	served->descs = place;
	served->queue_descs_bytes = bytes;
	return 0;
}

static int fetch_all(struct transport_server *server)
{
	let_pass(server);
	for (unsigned i = 0; i < server->threads; i++)
		wait_for(&server->passed);
	return server->served.stopping ? -ECANCELED : server->error;
}

static int end_recovery(struct transport_server *server)
{
	int error = ublk_control_do(
		&server->control, UBLK_END_USER_RECOVERY, server->transport->id, (uint64_t)getpid(), TAKE_OVER_MS);

	return error < 0 && server->error < 0 ? server->error : error;
}

static int open_device(struct transport_server *server, bool take_over, const char **what)
{
	struct ublk_served *served = &server->served;
	struct transport *transport = server->transport;
	int error = 0;

	*what = "begin to take the device over";
	if (take_over)
		error = start_recovery(server);
	if (error < 0)
		return error;
	*what = "open the ublk device";
	served->fd = ublk_open_server(transport->id, OPEN_MS);
	if (served->fd < 0)
		return served->fd;
	transport->server = getpid();
	*what = "map the requests of the ublk device";
	error = map_descs(served);
	if (error < 0)
		return error;
	*what = "fetch requests";
	error = fetch_all(server);
	if (error < 0 || !take_over)
		return error;
	*what = "end to take the device over";
	return end_recovery(server);
}

int ublk_serve_open(struct transport_server *server, bool take_over, char *problem, size_t problem_bytes)
{
	const char *what;
	int error = open_device(server, take_over, &what);

	return error < 0 ? fail(problem, problem_bytes, error, what) : 0;
}

/* ---- end ---- */

int ublk_serve(struct transport_server *server)
{
	struct ublk_served *served = &server->served;

	for (unsigned i = 0; i < server->threads; i++)
		pthread_join(server->thread[i].thread, NULL);
	if (served->buffers)
		munmap(served->buffers, ublk_plan_buffers_before(&served->plan, served->plan.threads));
	if (served->descs)
		munmap((void *)(uintptr_t)served->descs, served->plan.queues * served->queue_descs_bytes);
	if (served->fd >= 0)
		close(served->fd);
	ublk_control_close(&server->control);
	fault_destroy(served->fault);
	return server->error;
}

void ublk_serve_stop(struct transport_server *server)
{
	server->served.stopping = true;
	eventfd_write(server->served.stop_fd, 1);
	let_pass(server);
}
