// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The keeper's states:
 *
 *   STARTING --ready--> ATTACHING --node--> RUNNING --stop--> STOPPING
 *      |                    |                  |  <--refused--'   |
 *      '-- failed, timeout--'-----> KILLED ----'-- server dead ---'
 *                                     |                           |   KILLED: once a second, in case it hangs
 *                                     '-------> LEAVING <---------'   server reaped; detach, once a second
 *                                                  |                  until nobody holds the device
 *                                                 GONE
 *
 * One thread, one poll; it allocates nothing once it is RUNNING, and waits for nothing without a bound.
 */
#include "keeper.h"
#include "keeper_internal.h"

#include "clock.h"
#include "control.h"
#include "log.h"
#include "swaps.h"
#include "transport.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
#define START_WAIT_NS (40 * SECOND_NS)
#define ATTACH_WAIT_NS (15 * SECOND_NS)
#define STOP_WAIT_NS (10 * SECOND_NS)
#define KILL_WAIT_NS (5 * SECOND_NS)
#define RETRY_NS SECOND_NS
#define NO_DEADLINE UINT64_MAX

/* ---- changes of state ---- */

static void enter(struct keeper *keeper, enum keeper_state state, uint64_t wait_ns)
{
	keeper->state = state;
	keeper->deadline_ns = wait_ns == NO_DEADLINE ? NO_DEADLINE : clock_ns() + wait_ns;
}

/* Ends the server; the rest follows when it is reaped. */
static void kill_server(struct keeper *keeper)
{
	if (keeper->server > 0)
		kill(keeper->server, SIGKILL);
	enter(keeper, KILLED, KILL_WAIT_NS);
}

static void give_up(struct keeper *keeper, int exit_code, const char *why)
{
	keeper_log_and_fail(keeper, exit_code, why);
	kill_server(keeper);
}

/* A process that waits for its own device inside the kernel dies when the device's I/O fails. */
static void free_killed(struct keeper *keeper)
{
	if (!keeper->told_stuck)
		log_error(
			"the server is killed but does not end: making its I/O fail; if it stays, restart the machine");
	keeper->told_stuck = true;
	keeper->options->transport->fail_io(keeper->transport);
	enter(keeper, KILLED, RETRY_NS);
}

static void on_ready(struct keeper *keeper)
{
	if (keeper_start_helper(keeper))
		enter(keeper, ATTACHING, ATTACH_WAIT_NS);
	else
		kill_server(keeper);
}

static void on_attached(struct keeper *keeper, const struct attach_result *result)
{
	char line[80];

	snprintf(keeper->node, sizeof(keeper->node), "%s", result->node);
	link_send(keeper->link_fd, LINK_ATTACHED, 0, keeper->node);
	if (!(keeper->report.unsafe & CONTROL_UNSAFE_MLOCK) && resident_lock_all() < 0) {
		give_up(keeper, DAEMON_FAILED, "cannot lock the keeper's memory");
		return;
	}
	resident_hide();
	log_info("device %s is %s, ready after %" PRIu64 " ms", keeper->options->name, keeper->node,
		(clock_ns() - keeper->started_ns) / 1000000);
	snprintf(line, sizeof(line), "ready %s\n", keeper->node);
	keeper_tell_ready(keeper, line);
	daemon_leave_caller(keeper->options);
	enter(keeper, RUNNING, NO_DEADLINE);
}

static void on_helper_result(struct keeper *keeper)
{
	struct attach_result result;
	ssize_t got;

	got = read(keeper->helper_fd, &result, sizeof(result));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	close(keeper->helper_fd);
	keeper->helper_fd = -1;
	if (keeper->state != ATTACHING || keeper->exit_code != DAEMON_DONE)
		return;
	if (got != (ssize_t)sizeof(result))
		give_up(keeper, DAEMON_FAILED, "the helper that sets the device up has died");
	else if (result.error < 0)
		give_up(keeper, DAEMON_FAILED, result.problem);
	else
		on_attached(keeper, &result);
}

static void on_message(struct keeper *keeper, const struct link_message *message)
{
	if (message->kind == LINK_READY && keeper->state == STARTING && keeper->exit_code == DAEMON_DONE) {
		on_ready(keeper);
	} else if (message->kind == LINK_FAILED) {
		keeper_fail(keeper, message->exit_code, message->text); /* the server has logged it */
	} else if (message->kind == LINK_REFUSED && keeper->state == STOPPING) {
		log_warning("not stopping: %s", message->text);
		enter(keeper, RUNNING, NO_DEADLINE);
	} else if (message->kind == LINK_STOPPING && keeper->state != KILLED) {
		if (keeper->state == STARTING || keeper->state == ATTACHING)
			keeper_fail(keeper, DAEMON_FAILED,
				"the device was told to stop by 'folioswap del' before it was ready");
		enter(keeper, STOPPING, STOP_WAIT_NS);
	}
}

/* All there is. That the server is gone comes as SIGCHLD, too, and is dealt with there. */
static void on_link(struct keeper *keeper)
{
	struct link_message message;
	int error = 0;

	while (keeper->link_fd >= 0 && (error = link_receive(keeper->link_fd, &message)) == 0)
		on_message(keeper, &message);
	if (keeper->link_fd >= 0 && error != -EAGAIN) {
		close(keeper->link_fd);
		keeper->link_fd = -1;
	}
}

static void on_stop_signal(struct keeper *keeper)
{
	if (keeper->state == RUNNING) {
		if (link_send(keeper->link_fd, LINK_STOP, 0, NULL) == 0)
			enter(keeper, STOPPING, STOP_WAIT_NS);
	} else if (keeper->state == STARTING || keeper->state == ATTACHING) {
		give_up(keeper, DAEMON_FAILED, "ended by a signal before it was ready");
	} else if (keeper->state == LEAVING) {
		keeper->deadline_ns = clock_ns();
	}
}

static void on_deadline(struct keeper *keeper)
{
	if (keeper->state == STARTING)
		give_up(keeper, DAEMON_FAILED, "the server was not ready in 40 s");
	else if (keeper->state == ATTACHING)
		give_up(keeper, DAEMON_FAILED, "the device could not be set up in 15 s");
	else if (keeper->state == STOPPING && keeper->node[0] && swaps_has_node(keeper->node))
		enter(keeper, RUNNING, NO_DEADLINE); /* never that way */
	else if (keeper->state == STOPPING)
		give_up(keeper, DAEMON_FAILED, "the server did not stop in 10 s: killed");
	else if (keeper->state == KILLED)
		free_killed(keeper);
}

/* ---- taking down ---- */

static void tell_busy(struct keeper *keeper)
{
	if (keeper->told_busy)
		return;
	keeper->told_busy = true;
	if (swaps_has_node(keeper->node))
		log_error("%s is swapped on and what it held is lost: processes that need it get SIGBUS; swapoff %s",
			keeper->node, keeper->node);
	else
		log_warning("%s is still in use: its I/O fails, and it goes with its last user", keeper->node);
}

static void leave(struct keeper *keeper)
{
	if (keeper->helper > 0)
		kill(keeper->helper, SIGKILL);
	if (keeper->transport && keeper->options->transport->detach(keeper->transport) < 0) {
		tell_busy(keeper);
		enter(keeper, LEAVING, RETRY_NS);
		return;
	}
	rundir_remove(&keeper->rundir);
	enter(keeper, GONE, NO_DEADLINE);
}

static void on_server_end(struct keeper *keeper, int status)
{
	char line[200];

	on_link(keeper); /* its last words */
	keeper->server = 0;
	if (WIFSIGNALED(status))
		snprintf(line, sizeof(line), "the server was killed by signal %d (%s)", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	else
		snprintf(line, sizeof(line), "the server has ended with exit code %d", WEXITSTATUS(status));
	if (keeper->state == STOPPING && WIFEXITED(status) && WEXITSTATUS(status) == DAEMON_DONE)
		log_info("device %s is stopped", keeper->options->name);
	else
		keeper_log_and_fail(keeper, DAEMON_FAILED, line);
	rundir_close_socket(&keeper->rundir);
	leave(keeper);
}

static void reap(struct keeper *keeper)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == keeper->helper)
			keeper->helper = 0;
		else if (pid == keeper->server)
			on_server_end(keeper, status);
	}
}

static void on_signals(struct keeper *keeper)
{
	struct signalfd_siginfo info;

	while (read(keeper->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(keeper);
		else if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			on_stop_signal(keeper);
	}
}

/* ---- the loop ---- */

static int poll_timeout_ms(const struct keeper *keeper)
{
	uint64_t now_ns = clock_ns();

	if (keeper->deadline_ns == NO_DEADLINE)
		return -1;
	return keeper->deadline_ns <= now_ns ? 0 : (int)((keeper->deadline_ns - now_ns) / 1000000 + 1);
}

static void run(struct keeper *keeper)
{
	while (keeper->state != GONE) {
		struct pollfd fds[] = {
			{.fd = keeper->link_fd, .events = POLLIN},
			{.fd = keeper->helper_fd, .events = POLLIN},
			{.fd = keeper->signal_fd, .events = POLLIN},
		};

		poll(fds, sizeof(fds) / sizeof(fds[0]), poll_timeout_ms(keeper));
		if (fds[0].revents)
			on_link(keeper);
		if (fds[1].revents)
			on_helper_result(keeper);
		if (fds[2].revents)
			on_signals(keeper);
		if (clock_ns() < keeper->deadline_ns || keeper->state == GONE)
			continue;
		if (keeper->state == LEAVING)
			leave(keeper);
		else
			on_deadline(keeper);
	}
}

int keeper_main(const struct daemon_options *options)
{
	struct keeper keeper = {
		.options = options,
		.image_fd = -1,
		.link_fd = -1,
		.helper_fd = -1,
		.signal_fd = -1,
		.ready_fd = options->ready_fd,
		.started_ns = clock_ns(),
		.deadline_ns = NO_DEADLINE,
	};

	if (!keeper_prepare(&keeper) || !keeper_make_directory(&keeper))
		return keeper.exit_code;
	if (keeper_prepare_transport(&keeper) && keeper_start_server(&keeper))
		enter(&keeper, STARTING, START_WAIT_NS);
	else
		leave(&keeper);
	run(&keeper);
	return keeper.exit_code;
}
