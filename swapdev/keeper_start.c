// SPDX-License-Identifier: GPL-2.0-or-later
/* What the keeper makes before it keeps: image, directory, transport, server, helper. */
#include "keeper_internal.h"

#include "control.h"
#include "imagefile.h"
#include "log.h"
#include "server.h"
#include "transport.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- telling whoever started us ---- */

void keeper_tell_ready(struct keeper *keeper, const char *line)
{
	if (keeper->ready_fd < 0)
		return;
	if (write(keeper->ready_fd, line, strlen(line)) < 0)
		log_warning("nobody waits at the ready descriptor: %s", strerror(errno));
	close(keeper->ready_fd);
	keeper->ready_fd = -1;
}

/* The first reason is the one that is told. */
void keeper_fail(struct keeper *keeper, int exit_code, const char *why)
{
	char line[500];

	if (keeper->exit_code != DAEMON_DONE)
		return;
	keeper->exit_code = exit_code;
	snprintf(line, sizeof(line), "failed %s\n", why);
	keeper_tell_ready(keeper, line);
}

void keeper_log_and_fail(struct keeper *keeper, int exit_code, const char *why)
{
	if (keeper->exit_code == DAEMON_DONE)
		log_error("%s", why);
	keeper_fail(keeper, exit_code, why);
}

static void fail_with_errno(struct keeper *keeper, const char *what)
{
	char line[200];

	snprintf(line, sizeof(line), "cannot %s: %s", what, strerror(errno));
	keeper_log_and_fail(keeper, DAEMON_FAILED, line);
}

/* ---- before there is a server ---- */

static void list_unsafe(const struct keeper *keeper, char *names, size_t names_bytes)
{
	bool accepted = keeper->options->allow_unsafe;
	size_t used = 0;
	unsigned bit, i;

	for (i = 0; i < RESIDENT_BITS && used < names_bytes; i++) {
		bit = 1U << i;
		if (!(keeper->report.unsafe & bit))
			continue;
		log_line(accepted ? LOG_PRIORITY_WARNING : LOG_PRIORITY_ERROR, "%s: %s (%s): %s",
			accepted ? "unsafe" : "refused", control_unsafe_name(bit), keeper->report.detail[i],
			control_unsafe_risk(bit));
		used += (size_t)snprintf(
			names + used, names_bytes - used, "%s%s", used ? "; " : "", control_unsafe_name(bit));
	}
}

/* Returns false when it is not safe to go on. */
static bool check_safety(struct keeper *keeper)
{
	char names[400] = "", line[480];

	if (keeper->report.unsafe == 0)
		return true;
	list_unsafe(keeper, names, sizeof(names));
	if (keeper->options->allow_unsafe)
		return true;
	snprintf(line, sizeof(line), "not safe to swap to: %s (--allow-unsafe accepts that)", names);
	keeper_fail(keeper, DAEMON_UNSAFE, line);
	return false;
}

static bool make_image(struct keeper *keeper)
{
	char line[200];
	bool swappable;
	int error;

	keeper->image_fd = imagefile_create(&swappable);
	error = keeper->image_fd < 0 ? keeper->image_fd : store_format(keeper->image_fd, &keeper->options->store);
	if (error < 0) {
		snprintf(line, sizeof(line), "cannot make the image (a tmpfs file): %s", strerror(-error));
		keeper_log_and_fail(keeper, DAEMON_FAILED, line);
		return false;
	}
	if (swappable)
		resident_report_add(&keeper->report, CONTROL_UNSAFE_IMAGE_SWAPPABLE, "tmpfs refused the option noswap");
	return true;
}

static bool make_signal_fd(struct keeper *keeper)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
	sigset_t set, blocked;
	size_t i;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(&set, numbers[i]);
	blocked = set;
	sigaddset(&blocked, SIGUSR1); /* wakes I/O threads of the server */
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	keeper->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (keeper->signal_fd < 0)
		fail_with_errno(keeper, "make a signal descriptor");
	return keeper->signal_fd >= 0;
}

bool keeper_prepare(struct keeper *keeper)
{
	bool on_fuse = strcmp(keeper->options->transport->name, "fuse") == 0;

	resident_prepare(&keeper->report, on_fuse);
	if (on_fuse)
		resident_warn_of_fuse_timeouts();
	keeper->binary_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (keeper->binary_fd < 0) {
		fail_with_errno(keeper, "open the daemon's own binary");
		return false;
	}
	return make_image(keeper) && check_safety(keeper) && make_signal_fd(keeper);
}

bool keeper_make_directory(struct keeper *keeper)
{
	char problem[200];
	int error;

	error = rundir_create(&keeper->rundir, keeper->options->name, problem, sizeof(problem));
	if (error == 0)
		return true;
	keeper_log_and_fail(keeper, error == -EEXIST || error == -EBUSY ? DAEMON_BUSY : DAEMON_FAILED, problem);
	return false;
}

/* Memory that servers map again after their exec. */
static int make_state(struct keeper *keeper, size_t bytes)
{
	keeper->state_fd = memfd_create("folioswap-transport", MFD_CLOEXEC);
	if (keeper->state_fd < 0 || ftruncate(keeper->state_fd, (off_t)bytes) < 0)
		return -errno;
	keeper->transport = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, keeper->state_fd, 0);
	if (keeper->transport != MAP_FAILED)
		return 0;
	keeper->transport = NULL;
	return -errno;
}

bool keeper_prepare_transport(struct keeper *keeper)
{
	const struct daemon_options *options = keeper->options;
	struct transport_config config = {
		.size_bytes = options->store.size_bytes,
		.unit_bytes = options->store.unit_bytes,
		.io_threads = options->store.io_threads,
		.discard = options->discard,
		.merge = options->merge,
	};
	char problem[200];

	if (make_state(keeper, options->transport->state_bytes) < 0) {
		fail_with_errno(keeper, "make shared memory");
		return false;
	}
	snprintf(config.directory, sizeof(config.directory), "%s", keeper->rundir.path);
	snprintf(config.fault, sizeof(config.fault), "%s", options->fault);
	if (options->transport->prepare(keeper->transport, &config, problem, sizeof(problem)) == 0)
		return true;
	keeper_log_and_fail(keeper, DAEMON_FAILED, problem);
	return false;
}

/* ---- children ---- */

static void keep_over_exec(int fd)
{
	if (fd >= 0)
		fcntl(fd, F_SETFD, 0);
}

/*
 * In the child: whatever is not named in the start block closes itself. So nothing of the keeper's, such as what keeps
 * the block device, outlives the keeper in a server.
 */
static _Noreturn void run_child(struct keeper *keeper, int link_fd, int binary_fd, pid_t keeper_pid)
{
	struct server_start start = {
		.magic = SERVER_START_MAGIC,
		.version = SERVER_START_VERSION,
		.bytes = sizeof(start),
		.unsafe = keeper->report.unsafe,
		.image_fd = keeper->image_fd,
		.listen_fd = keeper->rundir.listen_fd,
		.link_fd = link_fd,
		.state_fd = keeper->state_fd,
		.transport_fd = keeper->options->transport->server_fd(keeper->transport),
		.keeper_pid = keeper_pid,
		.log_has_prefix = log_has_prefix(),
		.started_s = keeper->started_s,
		.options = *keeper->options,
	};
	char number[16];
	char *const arguments[] = {"folioswapd", "--serve-fd", number, NULL};
	int fd;

	snprintf(start.transport, sizeof(start.transport), "%s", keeper->options->transport->name);
	snprintf(start.node, sizeof(start.node), "%s", keeper->node);
	fd = server_start_write(&start);
	if (fd < 0)
		_exit(DAEMON_FAILED);
	snprintf(number, sizeof(number), "%d", fd);
	keep_over_exec(fd);
	keep_over_exec(start.image_fd);
	keep_over_exec(start.listen_fd);
	keep_over_exec(start.link_fd);
	keep_over_exec(start.state_fd);
	keep_over_exec(start.transport_fd);
	fexecve(binary_fd, arguments, environ);
	link_send(link_fd, LINK_FAILED, DAEMON_FAILED, "the server's binary cannot be executed");
	_exit(DAEMON_FAILED);
}

int keeper_start_child(struct keeper *keeper, struct child *child, int binary_fd)
{
	pid_t keeper_pid = getpid();
	int pair[2], error = 0;

	*child = (struct child){.link_fd = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	child->pid = fork();
	if (child->pid == 0)
		run_child(keeper, pair[1], binary_fd, keeper_pid);
	if (child->pid < 0) {
		error = -errno;
		close(pair[0]);
		child->pid = 0;
	} else {
		child->link_fd = pair[0];
	}
	close(pair[1]);
	return error;
}

/* What belongs to the keeper alone; a copy of it in the helper would outlive the keeper. */
static void close_keepers(struct keeper *keeper)
{
	close(keeper->signal_fd);
	close(keeper->rundir.pid_fd);
	if (keeper->ready_fd >= 0)
		close(keeper->ready_fd);
	if (keeper->server.link_fd >= 0)
		close(keeper->server.link_fd);
}

static _Noreturn void run_helper(struct keeper *keeper, int result_fd, pid_t keeper_pid)
{
	struct attach_result result = {0};

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != keeper_pid)
		_exit(DAEMON_FAILED);
	close_keepers(keeper);
	rundir_close_socket(&keeper->rundir);
	result.error = keeper->options->transport->attach(
		keeper->transport, result.node, sizeof(result.node), result.problem, sizeof(result.problem));
	if (write(result_fd, &result, sizeof(result)) != (ssize_t)sizeof(result))
		_exit(DAEMON_FAILED);
	_exit(DAEMON_DONE);
}

/* Attaching does I/O that the server answers: it may hang, so somebody else does it. */
bool keeper_start_helper(struct keeper *keeper)
{
	pid_t keeper_pid = getpid();
	int pair[2];

	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0) {
		fail_with_errno(keeper, "make a pipe");
		return false;
	}
	keeper->helper = fork();
	if (keeper->helper == 0)
		run_helper(keeper, pair[1], keeper_pid);
	if (keeper->helper < 0)
		fail_with_errno(keeper, "fork a helper");
	close(pair[1]);
	keeper->helper_fd = pair[0];
	if (keeper->helper < 0) {
		keeper->helper = 0;
		return false;
	}
	return true;
}
