// SPDX-License-Identifier: GPL-2.0-or-later
/* The FUSE transport, the server's half: sessions, threads, buffers. The operations are in fuse_file.c. */
#define FUSE_USE_VERSION 31

#include "fuse_session.h"
#include "fuse_file.h"

#include "clock.h"
#include "device.h"
#include "fault.h"
#include "privilege.h"
#include "schedule.h"
#include "step.h"
#include "textfile.h"
#include "transport.h"
#include "units.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REQUEST_MAX_PAGES 512
#define REQUEST_MAX_BYTES (2 * MIB) /* more never comes through a loop device */
#define OLD_LIMIT_PAGES 256         /* of kernels and libraries that cannot be asked */
#define LIBRARY_READS_LIMIT 317     /* libfuse 3.17 is the first to know fs.fuse.max_pages_limit */
#define WRITE_HEADER_BYTES (sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in))
#define STACK_BYTES (128 * 1024)
#define WAKE_SIGNAL SIGUSR1
#define STOP_PAUSE_US 2000
#define STOP_TRIES 5000

/* Linux 6.9; the headers of older systems do not name them. */
#define NOTIFY_RESEND 7
#define UNIQUE_RESEND (UINT64_C(1) << 63) /* in a request's number: it was given to a server before */
#define HELLO_EXTENDED (UINT32_C(1) << 30)
#define HELLO2_HAS_RESEND (UINT32_C(1) << (39 - 32))

_Static_assert(WRITE_HEADER_BYTES == 80, "a write's data lies behind 80 bytes of protocol");

struct io_thread {
	struct transport_server *server;
	unsigned index;
	pthread_t thread;
	_Atomic pid_t tid;   /* 0: not running; written by the thread */
	unsigned char *page; /* mapping: one page, then request_max_bytes */
};

/* Lives in memory of its own and is never freed: fuse_server_stop may be called at any time. */
struct transport_server {
	struct device *device;
	struct fault *fault;
	bool discard;
	_Atomic bool open; /* the gate is: set before it opens */
	struct fuse_session *session;
	struct fuse_hello *hello; /* shared with the other servers */
	unsigned request_max_bytes;
	unsigned threads; /* started */
	sem_t gate;
	_Atomic bool stopping;
	_Atomic int error; /* the first that ended a thread */
	struct io_thread thread[];
};

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static unsigned limit_pages(void)
{
	char text[16];
	long pages = OLD_LIMIT_PAGES;

	if (fuse_version() < LIBRARY_READS_LIMIT)
		return OLD_LIMIT_PAGES;
	if (textfile_read("/proc/sys/fs/fuse/max_pages_limit", text, sizeof(text)) > 0)
		pages = strtol(text, NULL, 10);
	return pages < 1 || pages > REQUEST_MAX_PAGES ? REQUEST_MAX_PAGES : (unsigned)pages;
}

unsigned fuse_server_request_max_bytes(void)
{
	size_t bytes = limit_pages() * page_bytes();

	return (unsigned)(bytes < REQUEST_MAX_BYTES ? bytes : REQUEST_MAX_BYTES);
}

/* ---- the first request ---- */

bool fuse_hello_has_resend(const struct fuse_hello *hello)
{
	struct {
		struct fuse_in_header header;
		uint32_t major, minor, max_readahead, flags, flags2;
	} request;

	if (hello->bytes < sizeof(request))
		return false;
	memcpy(&request, hello->request, sizeof(request));
	return (request.flags & HELLO_EXTENDED) && (request.flags2 & HELLO2_HAS_RESEND);
}

static void keep_hello(struct fuse_hello *hello, const struct fuse_buf *buffer)
{
	const struct fuse_in_header *header = buffer->mem;

	if (header->opcode != FUSE_INIT || buffer->size > sizeof(hello->request))
		return;
	memcpy(hello->request, buffer->mem, buffer->size);
	hello->bytes = (unsigned)buffer->size;
}

/* ---- one thread ---- */

/* The data of a write, right behind its header, starts on a page. */
static unsigned char *data_of(const struct io_thread *thread)
{
	return thread->page + page_bytes();
}

static void note_error(struct transport_server *server, int error)
{
	int none = 0;

	__atomic_compare_exchange_n((int *)&server->error, &none, error, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/*
 * Reads here and not by libfuse, which reads as much as it thinks is possible (256 MiB in 3.17), not what the buffer
 * holds. Returns false when there is nothing more to come.
 */
static bool receive(struct io_thread *thread, struct fuse_buf *buffer)
{
	struct transport_server *server = thread->server;
	ssize_t got;

	got = read(fuse_session_fd(server->session), buffer->mem, WRITE_HEADER_BYTES + server->request_max_bytes);
	if (got >= (ssize_t)sizeof(struct fuse_in_header)) {
		buffer->size = (size_t)got;
		return true;
	}
	buffer->size = 0;
	/* ENOENT: the request was taken back by its sender. */
	if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT))
		return true;
	fuse_session_exit(server->session);
	if (got >= 0 || (errno != ENODEV && errno != ECONNABORTED))
		note_error(server, got < 0 ? -errno : -EPROTO);
	return false;
}

static void *io_thread_main(void *argument)
{
	struct io_thread *thread = argument;
	struct transport_server *server = thread->server;
	struct fuse_buf buffer = {.mem = data_of(thread) - WRITE_HEADER_BYTES};
	struct fuse_file_thread context = {
		.device = server->device,
		.fault = server->fault,
		.discard = server->discard,
		.thread = thread->index,
		.data = data_of(thread),
		.data_bytes = server->request_max_bytes,
	};

	schedule_soon();
	fuse_file_set_thread(&context);
	while (sem_wait(&server->gate) < 0)
		;
	privilege_keep(0);
	thread->tid = (pid_t)syscall(SYS_gettid);
	while (!server->stopping && receive(thread, &buffer)) {
		if (buffer.size == 0)
			continue;
		context.received_ns = clock_ns();
		if (((const struct fuse_in_header *)buffer.mem)->unique & UNIQUE_RESEND)
			device_count_requeued(server->device);
		else if (!server->hello->bytes)
			keep_hello(server->hello, &buffer);
		fuse_session_process_buf(server->session, &buffer);
	}
	thread->tid = 0;
	return NULL;
}

/* ---- all of them ---- */

static void on_wake_signal(int number)
{
	(void)number; /* it is there to end read(2) */
}

static int map_buffer(struct io_thread *thread)
{
	size_t bytes = page_bytes() + thread->server->request_max_bytes;
	void *page;

	page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (page == MAP_FAILED)
		return -errno;
	memset(page, 0, bytes);
	thread->page = page;
	return 0;
}

static int start_thread(struct transport_server *server)
{
	struct io_thread *thread = &server->thread[server->threads];
	pthread_attr_t attributes;
	char name[16];
	int error;

	thread->server = server;
	thread->index = server->threads;
	error = map_buffer(thread);
	if (error < 0)
		return error;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	error = pthread_create(&thread->thread, &attributes, io_thread_main, thread);
	pthread_attr_destroy(&attributes);
	if (error)
		return -error;
	server->threads++;
	snprintf(name, sizeof(name), "io-%u", thread->index);
	pthread_setname_np(thread->thread, name);
	return 0;
}

/* Only I/O threads take the signal; whoever calls has it blocked before and after. */
static int start_threads(struct transport_server *server)
{
	struct sigaction action = {.sa_handler = on_wake_signal};
	sigset_t wake, before;
	unsigned i;
	int error = 0;

	sigaction(WAKE_SIGNAL, &action, NULL);
	sigemptyset(&wake);
	sigaddset(&wake, WAKE_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &wake, &before);
	for (i = 0; i < device_io_threads(server->device) && error == 0; i++)
		error = start_thread(server);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

static int make_session(struct transport_server *server, int fuse_fd)
{
	char max_read[48], path[32];
	char *arguments[] = {"folioswapd", max_read, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(2, arguments);

	snprintf(max_read, sizeof(max_read), "-omax_read=%u", server->request_max_bytes);
	server->session = fuse_file_session(&args, &server->request_max_bytes);
	fuse_opt_free_args(&args);
	if (!server->session)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/dev/fd/%d", fuse_fd);
	return fuse_session_mount(server->session, path) < 0 ? -EBADF : 0;
}

static void open_gate(struct transport_server *server)
{
	unsigned i;

	if (atomic_exchange(&server->open, true))
		return;
	for (i = 0; i < server->threads; i++)
		sem_post(&server->gate);
}

static void finish(struct transport_server *server)
{
	unsigned i;

	for (i = 0; i < server->threads; i++) {
		pthread_join(server->thread[i].thread, NULL);
		munmap(server->thread[i].page, page_bytes() + server->request_max_bytes);
	}
	if (server->session)
		fuse_session_destroy(server->session);
	fault_destroy(server->fault);
}

static struct transport_server *allocate(struct device *device, bool discard)
{
	size_t bytes = sizeof(struct transport_server) + device_io_threads(device) * sizeof(struct io_thread);
	struct transport_server *server;

	server = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (server == MAP_FAILED)
		return NULL;
	server->device = device;
	server->discard = discard;
	server->request_max_bytes = fuse_server_request_max_bytes();
	sem_init(&server->gate, 0, 0);
	return server;
}

int fuse_server_create(struct transport_server **ret, struct device *device, int fuse_fd, struct fuse_hello *hello,
	const struct transport_config *config, char *problem, size_t problem_bytes)
{
	struct transport_server *server = allocate(device, config->discard);
	const char *what = "the fault rule";
	int error = -ENOMEM;

	if (server) {
		server->hello = hello;
		error = fault_create(&server->fault, config->fault);
	}
	if (error == 0) {
		what = "the FUSE session";
		error = make_session(server, fuse_fd);
	}
	if (error == 0) {
		what = "the I/O threads";
		error = start_threads(server);
	}
	if (error < 0) {
		snprintf(problem, problem_bytes, "cannot set up %s: %s", what, strerror(-error));
		if (server) {
			server->stopping = true;
			open_gate(server);
			finish(server);
		}
		return error;
	}
	*ret = server;
	return 0;
}

/* The session learns what its predecessor negotiated: libfuse answers, and the kernel, which does not wait for it, refuses the answer. */
static void replay_hello(struct transport_server *server)
{
	struct fuse_buf buffer = {.mem = server->hello->request, .size = server->hello->bytes};

	fuse_session_process_buf(server->session, &buffer);
}

static int ask_again(struct transport_server *server)
{
	const struct fuse_out_header notice = {.len = sizeof(notice), .error = NOTIFY_RESEND};

	return write(fuse_session_fd(server->session), &notice, sizeof(notice)) < 0 ? -errno : 0;
}

#ifdef FOLIOSWAP_BREAK_RESEND_LATE
/* Wrong on purpose, so that the tests of take-over are seen to fail: requests are received, then asked for again. */
static int ask_again_late(struct transport_server *server)
{
	open_gate(server);
	usleep(10000);
	return ask_again(server);
}
#define ask_again ask_again_late
#endif

/* Any other order may execute a request twice and put old data over new. */
int fuse_server_open(struct transport_server *server, bool take_over, char *problem, size_t problem_bytes)
{
	int error = 0;

	if (take_over && !server->hello->bytes)
		error = -EPROTO;
	if (take_over && error == 0) {
		replay_hello(server);
		step("hello");
		error = ask_again(server);
		step("resend");
	}
	if (error < 0) {
		snprintf(problem, problem_bytes, "the FUSE connection cannot be taken over: %s", strerror(-error));
		return error;
	}
	open_gate(server);
	return 0;
}

int fuse_server_run(struct transport_server *server)
{
	finish(server);
	return server->error;
}

/* A signal that comes just before read(2) is lost: so again, until nobody is left. */
void fuse_server_stop(struct transport_server *server)
{
	unsigned i, tries, running = 1;
	pid_t tid;

	server->stopping = true;
	open_gate(server);
	for (tries = 0; tries < STOP_TRIES && running > 0; tries++) {
		running = 0;
		for (i = 0; i < server->threads; i++) {
			tid = server->thread[i].tid;
			if (tid == 0)
				continue;
			running++;
			syscall(SYS_tgkill, getpid(), tid, WAKE_SIGNAL);
		}
		usleep(STOP_PAUSE_US);
	}
}
