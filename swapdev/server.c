// SPDX-License-Identifier: GPL-2.0-or-later
/* Prepares store, device and transport, waits for its turn, serves, takes them down. */
#include "server.h"

#include "clock.h"
#include "control_server.h"
#include "device.h"
#include "fault.h"
#include "log.h"
#include "opener.h"
#include "privilege.h"
#include "resident.h"
#include "stats.h"
#include "step.h"
#include "store.h"
#include "swaps.h"
#include "transport.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define STACK_BYTES (128 * 1024)

#define ALIVE_MS 1000

struct server {
	const struct server_start *start;
	const struct transport_ops *ops;
	struct transport *transport;
	struct transport_server *transport_server;
	struct store *store;
	struct device *device;
	struct control_server *control;
	pthread_t serve_thread;
	bool serving; /* serve_thread exists */
	int serve_fd; /* event: ops->serve has returned */
	int serve_result;
	char node[64]; /* "" until the keeper has attached */
	int claim_fd;  /* the node, opened for ourselves alone: nobody may start to use it while we stop */
	bool stopping;
	bool relieved; /* another one takes over */
};

/* A step of the start failed: says so and gives the keeper the one line for the user. */
static int fail(const struct server *server, int error, const char *what)
{
	char text[200];

	snprintf(text, sizeof(text), "cannot %s: %s", what, strerror(-error));
	log_error("%s", text);
	link_send(server->start->link_fd, LINK_FAILED, DAEMON_FAILED, text);
	return error;
}

static int fail_with(const struct server *server, int error, const char *problem)
{
	log_error("%s", problem);
	link_send(server->start->link_fd, LINK_FAILED, DAEMON_FAILED, problem);
	return error;
}

/* ---- start, in the order that keeps every page of ours in RAM ---- */

static bool is_locked(const struct server *server)
{
	return !(server->start->unsafe & CONTROL_UNSAFE_MLOCK);
}

static int prepare_store(struct server *server)
{
	int error;

	error = resident_heap();
	if (error < 0)
		return fail(server, error, "grow the heap");
	error = is_locked(server) ? resident_lock_all() : 0;
	if (error < 0)
		return fail(server, error, "lock memory");
	error = is_locked(server) ? resident_lock_on_fault() : 0;
	if (error == 0)
		error = store_prepare(&server->store, server->start->image_fd);
	if (error < 0)
		return fail(server, error, "prepare the store");
	error = is_locked(server) ? resident_lock_future() : 0;
	return error < 0 ? fail(server, error, "lock memory") : 0;
}

static int start_store(struct server *server)
{
	int error;

	error = device_create(&server->device, server->store);
	if (error == 0)
		error = store_start(server->store);
	return error < 0 ? fail(server, error, "start the store") : 0;
}

static int stop_by_client(void *arg, char *message, size_t message_bytes);
static int upgrade_by_client(void *arg, const char *path, char *message, size_t message_bytes);
static int grow_by_client(void *arg, uint64_t size_bytes, char *message, size_t message_bytes);
static void tell_changed(void *arg);

static int start_control(struct server *server)
{
	const struct server_start *start = server->start;
	const struct store_config *store = &start->options.store;
	struct control_server_config config = {
		.listen_fd = start->listen_fd,
		.image_fd = start->image_fd,
		.buffers_fd = start->transport_fd,
		.store = server->store,
		.stop = stop_by_client,
		.upgrade = upgrade_by_client,
		.grow = grow_by_client,
		.changed = tell_changed,
		.arg = server,
		.info =
			{
				.keeper_pid = start->keeper_pid,
				.server_pid = getpid(),
				.max_size_bytes = store->max_size_bytes,
				.reserve_bytes = store->reserve_bytes,
				.unit_bytes = store->unit_bytes,
				.slots = store->slots,
				.io_threads = store->io_threads,
				.compress_threads = store->compress_threads,
				.discard = start->options.discard,
				.unsafe = start->unsafe,
				.stats_offset = store_stats_offset(server->store),
				.stats_bytes = store_stats_bytes(server->store),
				.started_ns = (uint64_t)start->started_s * UINT64_C(1000000000),
			},
	};
	int error;

	snprintf(config.info.name, sizeof(config.info.name), "%s", start->options.name);
	snprintf(config.info.node, sizeof(config.info.node), "%s", start->node);
	snprintf(config.info.transport, sizeof(config.info.transport), "%s", server->ops->name);
	error = control_server_create(&server->control, &config);
	return error < 0 ? fail(server, error, "set up the control socket") : 0;
}

static void *serve_main(void *argument)
{
	struct server *server = argument;

	server->serve_result = server->ops->serve(server->transport_server);
	eventfd_write(server->serve_fd, 1);
	return NULL;
}

static int start_transport(struct server *server)
{
	char problem[200];
	pthread_attr_t attributes;
	int error;

	error = server->ops->serve_start(
		&server->transport_server, server->transport, server->device, problem, sizeof(problem));
	if (error < 0)
		return fail_with(server, error, problem);
	server->serve_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server->serve_fd < 0)
		return fail(server, -errno, "make an event descriptor");
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	error = pthread_create(&server->serve_thread, &attributes, serve_main, server);
	pthread_attr_destroy(&attributes);
	if (error)
		return fail(server, -error, "start the transport");
	pthread_setname_np(server->serve_thread, "serve");
	server->serving = true;
	return 0;
}

/* What each thread inherits is looked at once, from outside, when all of them exist. */
static int check_threads(struct server *server)
{
	int missing;

	if (server->start->unsafe & CONTROL_UNSAFE_IO_FLUSHER)
		return 0;
	missing = resident_threads_without_io_flusher();
	if (missing == 0)
		return 0;
	return fail(server, missing < 0 ? missing : -EPERM, "get PR_SET_IO_FLUSHER on every thread");
}

/*
 * Threads are made after this and inherit it. What is left: locking memory; looking for who has the device open
 * (/proc of other users); the driver of ublk, until this server serves.
 */
#define SERVER_KEEPS (PRIVILEGE(CAP_IPC_LOCK) | PRIVILEGE(CAP_SYS_PTRACE) | PRIVILEGE(CAP_DAC_READ_SEARCH))

static int drop_privileges(const struct server *server)
{
	const struct rlimit no_core = {0, 0};
	int error = privilege_keep(SERVER_KEEPS | PRIVILEGE(CAP_SYS_ADMIN));

	/* Swapped contents do not belong into anybody's core dump. */
	setrlimit(RLIMIT_CORE, &no_core);
	return error < 0 ? fail(server, error, "give capabilities up") : 0;
}

/* The rule's faults at steps, of this whole process; those at requests are the transport's. */
static struct fault *step_faults;

static void on_step(const char *name)
{
	fault_step(step_faults, name);
}

static void listen_to_steps(const struct server *server)
{
	if (fault_create(&step_faults, server->start->options.fault) < 0 || !fault_has_steps(step_faults))
		return;
	step_listener = on_step;
	store_report_steps();
}

static int prepare_all(struct server *server)
{
	int error;

	error = drop_privileges(server);
	if (error == 0)
		error = prepare_store(server);
	if (error == 0)
		error = start_store(server);
	if (error == 0)
		error = start_control(server);
	if (error == 0)
		error = start_transport(server);
	if (error == 0)
		error = check_threads(server);
	if (error == 0)
		resident_hide();
	return error;
}

/* ---- stop ---- */

/* Opens the node for ourselves alone, so that nobody begins to swap or mounts while we stop. Returns 0 or -errno. */
static int claim_node(struct server *server)
{
	if (server->claim_fd < 0)
		server->claim_fd = open(server->node, O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK);
	return server->claim_fd < 0 ? -errno : 0;
}

static int refuse_user(struct server *server, const char *user, char *message, size_t message_bytes)
{
	snprintf(message, message_bytes, "%s is in use (%s)", server->node, user);
	if (server->claim_fd >= 0)
		close(server->claim_fd);
	server->claim_fd = -1;
	return -EBUSY;
}

/* What the claim does not keep out: programs that just have it open. Returns false, or true with who it is. */
static bool find_opener(const struct server *server, char *who, size_t who_bytes)
{
	const pid_t own[] = {getpid(), server->start->keeper_pid, 0};
	char name[32];
	pid_t pid;

	pid = opener_find(server->node, own, name, sizeof(name));
	if (pid > 0)
		snprintf(who, who_bytes, "open by process %d, %s", (int)pid, name);
	return pid > 0;
}

/* force: other users than swap lose the device; swap never does. */
static int try_stop(struct server *server, bool force, char *message, size_t message_bytes)
{
	char who[80];

	if (server->stopping)
		return 0;
	if (server->node[0] && swaps_has_node(server->node)) {
		snprintf(message, message_bytes, "%s is swapped on: swapoff %s first", server->node, server->node);
		return -EBUSY;
	}
	if (server->node[0] && claim_node(server) == -EBUSY) {
		/* A swapon between our look and our claim ends here too; a mount has no process to be found. */
		if (!find_opener(server, who, sizeof(who)))
			snprintf(who, sizeof(who), "swapped on, mounted or held by another driver");
		if (!force || swaps_has_node(server->node))
			return refuse_user(server, who, message, message_bytes);
		log_warning("%s is in use: its users get I/O errors", server->node);
	}
	if (server->node[0] && !force && find_opener(server, who, sizeof(who)))
		return refuse_user(server, who, message, message_bytes);
	server->stopping = true;
	return 0;
}

static int stop_by_client(void *arg, char *message, size_t message_bytes)
{
	return try_stop(arg, false, message, message_bytes);
}

/* Returns false when the keeper is gone. */
static bool hear_keeper(struct server *server)
{
	struct link_message message;
	char why[200];
	int error;

	error = link_receive(server->start->link_fd, &message);
	if (error == -EAGAIN)
		return true;
	if (error < 0)
		return false;
	if (message.kind == LINK_ATTACHED) {
		snprintf(server->node, sizeof(server->node), "%.63s", message.text);
		control_server_set_node(server->control, server->node);
		daemon_leave_caller(&server->start->options);
	} else if (message.kind == LINK_STOP && try_stop(server, true, why, sizeof(why)) < 0) {
		link_send(server->start->link_fd, LINK_REFUSED, 0, why);
	} else if (message.kind == LINK_NOT_UPGRADED) {
		control_server_not_upgraded(server->control, message.text);
	} else if (message.kind == LINK_SIZE_SET) {
		step("grow-done");
		control_server_size_set(server->control, message.size_bytes, message.text);
	} else if (message.kind == LINK_RELIEVED) {
		server->relieved = true;
	} else if (message.kind == LINK_STANDBY) {
		control_server_set_standby(server->control, message.pid);
	}
	return true;
}

/* No answer and no room made for so long: saying nothing then lets the keeper end us. */
static void tell_alive(struct server *server)
{
	if (device_stalled_ns(server->device) < WATCHDOG_NS)
		link_send(server->start->link_fd, LINK_ALIVE, 0, NULL);
}

static int wait_and_answer(struct server *server)
{
	struct pollfd fds[] = {
		{.fd = server->start->link_fd, .events = POLLIN},
		{.fd = server->serve_fd, .events = POLLIN},
		{.fd = control_server_fd(server->control), .events = POLLIN},
	};

	while (!server->stopping) {
		tell_alive(server);
		if (poll(fds, sizeof(fds) / sizeof(fds[0]), ALIVE_MS) <= 0)
			continue;
		if (fds[0].revents && !hear_keeper(server)) {
			log_error(
				"the keeper is gone: ending; folioswap del %s cleans up", server->start->options.name);
			return DAEMON_FAILED;
		}
		if (fds[1].revents && server->relieved)
			return DAEMON_DONE;
		if (fds[1].revents) {
			log_error("the transport has ended: %s",
				server->serve_result < 0 ? strerror(-server->serve_result) : "connection closed");
			link_send(server->start->link_fd, LINK_ENDED, 0, NULL);
			return DAEMON_FAILED;
		}
		if (fds[2].revents)
			control_server_work(server->control);
	}
	link_send(server->start->link_fd, LINK_STOPPING, 0, NULL);
	return DAEMON_DONE;
}

/* The image dies with the device, so a compaction that is still running may end with the process. */
static void take_down(struct server *server)
{
	if (server->serving) {
		server->ops->serve_stop(server->transport_server);
		pthread_join(server->serve_thread, NULL);
	}
	if (server->control && control_server_is_compacting(server->control))
		return;
	control_server_destroy(server->control);
	device_destroy(server->device);
	store_close(server->store);
}

/* ---- the turn ---- */

static int upgrade_by_client(void *arg, const char *path, char *message, size_t message_bytes)
{
	const struct server *server = arg;
	int error = link_send(server->start->link_fd, LINK_UPGRADE, 0, path);

	if (error < 0)
		snprintf(message, message_bytes, "cannot reach the keeper: %s", strerror(-error));
	return error;
}

static int grow_store(struct server *server, uint64_t size_bytes, char *message, size_t message_bytes)
{
	int error = store_set_size(server->store, size_bytes);

	if (error < 0)
		snprintf(message, message_bytes,
			"no memory for the map of the new part, so it stays as large as it is: %s", strerror(-error));
	else
		device_update_size(server->device);
	return error;
}

/* The store, then requests, then the block device: it is never larger than what is behind it. */
static int grow_by_client(void *arg, uint64_t size_bytes, char *message, size_t message_bytes)
{
	const struct link_message ask = {.kind = LINK_SET_SIZE, .size_bytes = size_bytes};
	struct server *server = arg;
	int error;

	if (!server->node[0]) {
		snprintf(message, message_bytes, "the device is being set up");
		return -EBUSY;
	}
	if (!server->ops->can_grow(server->transport, message, message_bytes))
		return -EOPNOTSUPP;
	error = grow_store(server, size_bytes, message, message_bytes);
	if (error < 0)
		return error;
	error = link_send_message(server->start->link_fd, &ask);
	if (error < 0)
		snprintf(message, message_bytes, "cannot reach the keeper: %s", strerror(-error));
	step("grow-asked");
	return error;
}

static void tell_changed(void *arg)
{
	const struct server *server = arg;

	link_send(server->start->link_fd, LINK_CHANGED, 0, NULL);
}

/* Returns 0 with the message, or -errno when the keeper is gone. */
static int await_turn(const struct server *server, struct link_message *ret_go)
{
	struct pollfd fd = {.fd = server->start->link_fd, .events = POLLIN};
	int error;

	do {
		poll(&fd, 1, -1);
		error = link_receive(server->start->link_fd, ret_go);
	} while (error == -EAGAIN || (error == 0 && ret_go->kind != LINK_GO));
	return error;
}

static void tell_serving(const struct server *server)
{
	const struct link_message message = {.kind = LINK_SERVING, .size_bytes = device_size_bytes(server->device)};

	link_send_message(server->start->link_fd, &message);
}

/*
 * The predecessor has been reaped, or there was none. The order is fixed: the store is recovered, then the transport
 * makes requests come again, then the first is received. Any other may execute a write twice, the old one last.
 */
static int take_turn(struct server *server, const struct link_message *go)
{
	uint64_t begin_ns = clock_ns(), recovered_ns;
	struct stats_takeovers *takeovers;
	char problem[200];
	int error;

	prctl(PR_SET_NAME, "folioswapd-srv", 0, 0, 0);
	if (go->reaped_ns)
		step("recover");
	error = store_recover(server->store);
	if (error < 0)
		return fail(server, error, "recover the store");
	if (go->reaped_ns)
		step("recovered");
	recovered_ns = clock_ns();
	takeovers = &store_stats(server->store)->takeovers;
	device_open(server->device, go->reaped_ns, go->crashed);
	error = server->ops->serve_open(server->transport_server, go->reaped_ns != 0, problem, sizeof(problem));
	if (error < 0)
		return fail_with(server, error, problem);
	if (go->reaped_ns) {
		atomic_store(&takeovers->last_recover_ns, recovered_ns - begin_ns);
		atomic_store(&takeovers->last_open_ns, clock_ns() - recovered_ns);
	}
	privilege_keep(SERVER_KEEPS);
	tell_serving(server);
	return 0;
}

/* ---- life ---- */

int server_start_write(const struct server_start *start)
{
	int fd = memfd_create("folioswap-start", MFD_CLOEXEC), error;

	if (fd < 0)
		return -errno;
	if (write(fd, start, sizeof(*start)) == (ssize_t)sizeof(*start))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/* The descriptors crossed one execution; they are not to cross another. */
static void close_on_exec(const struct server_start *start)
{
	const int fds[] = {start->image_fd, start->listen_fd, start->link_fd, start->state_fd, start->transport_fd};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			fcntl(fds[i], F_SETFD, FD_CLOEXEC);
}

static int read_start(struct server *server, int start_fd, struct server_start *start)
{
	ssize_t got = pread(start_fd, start, sizeof(*start), 0);
	struct stat status;

	close(start_fd);
	if (got != (ssize_t)sizeof(*start) || start->magic != SERVER_START_MAGIC ||
		start->version != SERVER_START_VERSION || start->bytes != sizeof(*start)) {
		log_error("this folioswapd cannot be started by that keeper: they are of different versions");
		return -EPROTO;
	}
	close_on_exec(start);
	log_set_prefix(start->log_has_prefix);
	server->start = start;
	server->ops = transport_find(start->transport);
	if (!server->ops)
		return fail_with(server, -EPROTO, "this folioswapd does not know the device's transport");
	if (fstat(start->state_fd, &status) < 0 || (uint64_t)status.st_size != server->ops->state_bytes)
		return fail_with(server, -EPROTO, "this folioswapd keeps the transport's state in another way");
	server->transport = mmap(NULL, server->ops->state_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, start->state_fd, 0);
	if (server->transport == MAP_FAILED)
		return fail(server, -errno, "map the transport's state");
	snprintf(server->node, sizeof(server->node), "%s", start->node);
	return 0;
}

static bool is_orphan(const struct server_start *start)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	return getppid() != start->keeper_pid;
}

int server_main(int start_fd)
{
	static struct server_start start;
	struct server server = {.serve_fd = -1, .claim_fd = -1};
	int exit_code = DAEMON_FAILED, error;
	struct link_message go;

	error = read_start(&server, start_fd, &start);
	if (error < 0)
		return error == -EPROTO ? DAEMON_STRANGER : DAEMON_FAILED;
	if (is_orphan(&start))
		return DAEMON_FAILED;
	prctl(PR_SET_NAME, "folioswapd-sby", 0, 0, 0);
	listen_to_steps(&server);
	if (prepare_all(&server) == 0) {
		if (start.node[0])
			daemon_leave_caller(&start.options);
		link_send(start.link_fd, LINK_READY, 0, NULL);
		if (await_turn(&server, &go) == 0 && take_turn(&server, &go) == 0)
			exit_code = wait_and_answer(&server);
	}
	/* The sooner it is gone, the sooner the other one serves. */
	if (!server.relieved)
		take_down(&server);
	return exit_code;
}
