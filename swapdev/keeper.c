// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The keeper's states:
 *
 *   STARTING --serving--> ATTACHING --node--> PAIRING --standby ready--> RUNNING --stop--> STOPPING
 *      |                      |                  |                      |  ^  <--refused--'   |
 *      |                      |                  |         server dead  v  |  serving         |
 *      |                      |                  |                     TAKING                 |
 *      '-- failed, timeout ---'------------------'-- no successor ------'                     |
 *                             |                                                               |
 *                           KILLED --- server reaped; detach, once a second ------------> LEAVING --> GONE
 *
 * PAIRING is passed over where a server cannot be replaced. STOPPING ends in LEAVING when the server is reaped. KILLED:
 * once a second the device's I/O is made to fail, in case the server hangs in it; LEAVING lasts until nobody holds
 * the device.
 *
 * One thread, one poll; it allocates nothing once it is RUNNING, and waits for nothing without a bound.
 */
#include "keeper.h"
#include "keeper_internal.h"

#include "clock.h"
#include "control.h"
#include "log.h"
#include "logger.h"
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
#include <time.h>
#include <unistd.h>

/* ---- changes of state ---- */

/* Ends the server; the rest follows when it is reaped. */
static void kill_server(struct keeper *keeper)
{
	keeper->ended = true;
	if (keeper->server.pid > 0)
		kill(keeper->server.pid, SIGKILL);
	keeper_enter(keeper, KILLED, KILL_WAIT_NS);
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
	keeper_enter(keeper, KILLED, RETRY_NS);
}

/* From here on whoever started the daemon has what it waited for. */
static void announce(struct keeper *keeper)
{
	char line[80];

	log_info("device %s is %s, ready after %" PRIu64 " ms", keeper->options->name, keeper->node,
		(clock_ns() - keeper->started_ns) / 1000000);
	snprintf(line, sizeof(line), "ready %s\n", keeper->node);
	keeper_tell_ready(keeper, line);
	daemon_leave_caller(keeper->options);
	if (logger_start() < 0)
		log_warning("device %s: its log may keep it waiting", keeper->options->name);
	keeper_enter(keeper, RUNNING, NO_DEADLINE);
}

/* A server can be replaced if the transport lets it, and if what it leaves stays in memory. */
static bool can_take_over(struct keeper *keeper)
{
	char problem[200] = "the image of a dead server could be swapped out (no noswap tmpfs: Linux 6.4 has it)";

	if (keeper->options->no_standby)
		return false;
	if (!(keeper->report.unsafe & CONTROL_UNSAFE_IMAGE_SWAPPABLE) &&
		keeper->options->transport->can_take_over(keeper->transport, problem, sizeof(problem)))
		return true;
	log_warning("device %s: if its server dies, its I/O fails: %s", keeper->options->name, problem);
	return false;
}

static void on_attached(struct keeper *keeper, const struct attach_result *result)
{
	snprintf(keeper->node, sizeof(keeper->node), "%s", result->node);
	link_send(keeper->server.link_fd, LINK_ATTACHED, 0, keeper->node);
	if (!(keeper->report.unsafe & CONTROL_UNSAFE_MLOCK) && resident_lock_all() < 0) {
		give_up(keeper, DAEMON_FAILED, "cannot lock the keeper's memory");
		return;
	}
	resident_hide();
	keeper->can_take_over = can_take_over(keeper);
	if (!keeper->can_take_over) {
		announce(keeper);
		return;
	}
	keeper_enter(keeper, PAIRING, START_WAIT_NS);
	keeper->standby_ns = 0;
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

static void on_stop_signal(struct keeper *keeper)
{
	keeper->stop_wanted = keeper->state == TAKING;
	if (keeper->state == RUNNING) {
		if (link_send(keeper->server.link_fd, LINK_STOP, 0, NULL) == 0)
			keeper_enter(keeper, STOPPING, STOP_WAIT_NS);
	} else if (keeper->state == STARTING || keeper->state == ATTACHING || keeper->state == PAIRING) {
		give_up(keeper, DAEMON_FAILED, "ended by a signal before it was ready");
	} else if (keeper->state == LEAVING) {
		keeper->deadline_ns = clock_ns();
	}
}

/* Repeatable: a transport tells the kernel once. Nothing where it cannot. */
static int set_size(struct keeper *keeper, uint64_t size_bytes, char *problem, size_t problem_bytes)
{
	const struct transport_ops *transport = keeper->options->transport;

	if (!transport->set_size)
		return 0;
	return transport->set_size(keeper->transport, size_bytes, problem, problem_bytes);
}

/* The predecessor may have died between its store's growth and the kernel's knowing of it. */
static void catch_up_size(struct keeper *keeper, uint64_t size_bytes)
{
	char problem[200];

	if (set_size(keeper, size_bytes, problem, sizeof(problem)) < 0)
		log_warning("device %s: %s", keeper->options->name, problem);
}

static void on_set_size(struct keeper *keeper, uint64_t size_bytes)
{
	struct link_message answer = {.kind = LINK_SIZE_SET, .size_bytes = size_bytes};
	char problem[200] = "";

	if (keeper->state != RUNNING && keeper->state != PAIRING)
		snprintf(problem, sizeof(problem), "the device is being set up or taken down");
	else if (set_size(keeper, size_bytes, problem, sizeof(problem)) == 0)
		log_info("device %s: %" PRIu64 " bytes large from now on", keeper->options->name, size_bytes);
	snprintf(answer.text, sizeof(answer.text), "%s", problem);
	link_send_message(keeper->server.link_fd, &answer);
}

static void on_serving(struct keeper *keeper, uint64_t size_bytes)
{
	keeper->alive_ns = clock_ns();
	keeper->fruitless = 0;
	if (keeper->state == STARTING && keeper->exit_code == DAEMON_DONE) {
		if (keeper_start_helper(keeper))
			keeper_enter(keeper, ATTACHING, ATTACH_WAIT_NS);
		else
			kill_server(keeper);
	} else if (keeper->state == TAKING) {
		log_info("device %s: another server has taken over, %" PRIu64 " ms after its predecessor's end",
			keeper->options->name, (keeper->alive_ns - keeper->reaped_ns) / 1000000);
		keeper->standby_ns = 0;
		keeper_enter(keeper, RUNNING, NO_DEADLINE);
		catch_up_size(keeper, size_bytes);
		if (keeper->stop_wanted)
			on_stop_signal(keeper);
	}
}

static void on_server_ready(struct keeper *keeper)
{
	keeper->server.ready = true;
	if (keeper->state == STARTING || keeper->state == TAKING)
		keeper_go(keeper, keeper->crashed);
}

static void on_server_message(struct keeper *keeper, const struct link_message *message)
{
	if (message->kind == LINK_ALIVE) {
		keeper->alive_ns = clock_ns();
	} else if (message->kind == LINK_READY) {
		on_server_ready(keeper);
	} else if (message->kind == LINK_SERVING) {
		on_serving(keeper, message->size_bytes);
	} else if (message->kind == LINK_FAILED && keeper->state != TAKING) {
		keeper_fail(keeper, message->exit_code, message->text); /* the server has logged it */
	} else if (message->kind == LINK_ENDED) {
		keeper->ended = true;
	} else if (message->kind == LINK_REFUSED && keeper->state == STOPPING) {
		log_warning("not stopping: %s", message->text);
		keeper_enter(keeper, RUNNING, NO_DEADLINE);
	} else if (message->kind == LINK_STOPPING && keeper->state != KILLED) {
		if (keeper->state == STARTING || keeper->state == ATTACHING || keeper->state == PAIRING)
			keeper_fail(keeper, DAEMON_FAILED,
				"the device was told to stop by 'folioswap del' before it was ready");
		keeper_enter(keeper, STOPPING, STOP_WAIT_NS);
	} else if (message->kind == LINK_UPGRADE) {
		keeper_upgrade(keeper, message->text);
	} else if (message->kind == LINK_SET_SIZE) {
		on_set_size(keeper, message->size_bytes);
	} else if (message->kind == LINK_CHANGED && keeper->state == RUNNING) {
		keeper_renew_standby(keeper);
	}
}

static void on_standby_message(struct keeper *keeper, const struct link_message *message)
{
	if (message->kind == LINK_FAILED) {
		keeper_standby_failed(keeper, message->text);
	} else if (message->kind == LINK_READY) {
		keeper_standby_ready(keeper);
		if (keeper->state == PAIRING)
			announce(keeper);
	}
}

/* All there is. That a server is gone comes as SIGCHLD, too, and is dealt with there. */
static void on_link(struct keeper *keeper, struct child *child, void (*on_message)(struct keeper *, const struct link_message *))
{
	struct link_message message;
	int fd = child->link_fd, error = 0;

	/* What a message leads to may end this child or make it another one. */
	while (fd >= 0 && child->link_fd == fd && (error = link_receive(fd, &message)) == 0)
		on_message(keeper, &message);
	if (fd >= 0 && child->link_fd == fd && error != -EAGAIN) {
		close(fd);
		child->link_fd = -1;
	}
}

static void on_deadline(struct keeper *keeper)
{
	if (keeper->state == STARTING)
		give_up(keeper, DAEMON_FAILED, "the server was not ready in 40 s");
	else if (keeper->state == ATTACHING)
		give_up(keeper, DAEMON_FAILED, "the device could not be set up in 15 s");
	else if (keeper->state == PAIRING)
		give_up(keeper, DAEMON_FAILED, "no standby server was ready in 40 s");
	else if (keeper->state == TAKING)
		give_up(keeper, DAEMON_FAILED, "no other server took over in 40 s");
	else if (keeper->state == STOPPING && keeper->node[0] && swaps_has_node(keeper->node))
		keeper_enter(keeper, RUNNING, NO_DEADLINE); /* never that way */
	else if (keeper->state == STOPPING)
		give_up(keeper, DAEMON_FAILED, "the server did not stop in 10 s: killed");
	else if (keeper->state == KILLED)
		free_killed(keeper);
}

static bool is_watched(const struct keeper *keeper)
{
	return keeper->can_take_over && !keeper->blame && keeper->server.pid > 0 &&
	       (keeper->state == RUNNING || (keeper->state == TAKING && keeper->server.ready));
}

/* Nothing heard for too long: it is as good as dead, and what it had in execution is to blame. */
static void watch(struct keeper *keeper)
{
	if (!is_watched(keeper) || clock_ns() - keeper->alive_ns < WATCHDOG_NS + RETRY_NS)
		return;
	log_error("device %s: its server has not moved for %d s: killed", keeper->options->name,
		(int)(WATCHDOG_NS / SECOND_NS));
	keeper->blame = true;
	kill(keeper->server.pid, SIGKILL);
	keeper_enter(keeper, keeper->state, KILL_WAIT_NS);
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
	child_retire(&keeper->standby);
	keeper->standby_ns = keeper->standby_until_ns = NO_DEADLINE;
	if (keeper->transport && keeper->options->transport->detach(keeper->transport) < 0) {
		tell_busy(keeper);
		keeper_enter(keeper, LEAVING, RETRY_NS);
		return;
	}
	rundir_remove(&keeper->rundir);
	keeper_enter(keeper, GONE, NO_DEADLINE);
}

static void describe_end(int status, char *line, size_t line_bytes)
{
	if (WIFSIGNALED(status))
		snprintf(line, line_bytes, "the server was killed by signal %d (%s)", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == DAEMON_STRANGER || WEXITSTATUS(status) == DAEMON_USAGE)
		snprintf(line, line_bytes, "the binary is of another version, which this keeper cannot start");
	else
		snprintf(line, line_bytes, "the server has ended with exit code %d", WEXITSTATUS(status));
}

/* Killed from outside, by the OOM killer or for an upgrade, it is not to blame. */
static bool has_crashed(const struct keeper *keeper, int status)
{
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

	return keeper->blame || !(killed || keeper->relieved);
}

static void on_server_end(struct keeper *keeper, int status)
{
	bool stopped = keeper->state == STOPPING && WIFEXITED(status) && WEXITSTATUS(status) == DAEMON_DONE;
	bool crashed = has_crashed(keeper, status);
	char line[200];

	on_link(keeper, &keeper->server, on_server_message); /* its last words */
	keeper->server.pid = 0;
	keeper->blame = false;
	describe_end(status, line, sizeof(line));
	if (!stopped && (keeper->state == RUNNING || keeper->state == TAKING || keeper->state == STOPPING)) {
		if (!keeper->relieved)
			log_warning("device %s: %s", keeper->options->name, line);
		keeper->stop_wanted |= keeper->state == STOPPING;
		if (keeper_may_replace(keeper) && keeper_replace(keeper, crashed))
			return;
	}
	child_close(&keeper->server);
	if (stopped)
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
		char line[200];

		describe_end(status, line, sizeof(line));
		if (pid == keeper->helper) {
			keeper->helper = 0;
		} else if (pid == keeper->server.pid) {
			on_server_end(keeper, status);
		} else if (pid == keeper->standby.pid) {
			on_link(keeper, &keeper->standby, on_standby_message);
			if (pid == keeper->standby.pid)
				keeper_standby_failed(keeper, line);
		}
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

static bool start_server(struct keeper *keeper)
{
	char line[120];
	int error = keeper_start_child(keeper, &keeper->server, keeper->binary_fd);

	if (error == 0)
		return true;
	snprintf(line, sizeof(line), "cannot start the server: %s", strerror(-error));
	keeper_log_and_fail(keeper, DAEMON_FAILED, line);
	return false;
}

static uint64_t sooner(uint64_t one_ns, uint64_t other_ns)
{
	return one_ns < other_ns ? one_ns : other_ns;
}

static int poll_timeout_ms(const struct keeper *keeper)
{
	uint64_t now_ns = clock_ns(), until_ns = keeper->deadline_ns;

	if (keeper->state == RUNNING || keeper->state == PAIRING)
		until_ns = sooner(until_ns, sooner(keeper->standby_ns, keeper->standby_until_ns));
	if (is_watched(keeper))
		until_ns = sooner(until_ns, keeper->alive_ns + WATCHDOG_NS + RETRY_NS);
	if (until_ns == NO_DEADLINE)
		return -1;
	return until_ns <= now_ns ? 0 : (int)((until_ns - now_ns) / 1000000 + 1);
}

static void run(struct keeper *keeper)
{
	while (keeper->state != GONE) {
		struct pollfd fds[] = {
			{.fd = keeper->server.link_fd, .events = POLLIN},
			{.fd = keeper->standby.link_fd, .events = POLLIN},
			{.fd = keeper->helper_fd, .events = POLLIN},
			{.fd = keeper->signal_fd, .events = POLLIN},
		};

		poll(fds, sizeof(fds) / sizeof(fds[0]), poll_timeout_ms(keeper));
		if (fds[0].revents)
			on_link(keeper, &keeper->server, on_server_message);
		if (fds[1].revents)
			on_link(keeper, &keeper->standby, on_standby_message);
		if (fds[2].revents)
			on_helper_result(keeper);
		if (fds[3].revents)
			on_signals(keeper);
		keeper_tend_standby(keeper);
		watch(keeper);
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
		.state_fd = -1,
		.binary_fd = -1,
		.upgrade_fd = -1,
		.server = {.link_fd = -1},
		.standby = {.link_fd = -1},
		.helper_fd = -1,
		.signal_fd = -1,
		.ready_fd = options->ready_fd,
		.started_ns = clock_ns(),
		.started_s = time(NULL),
		.deadline_ns = NO_DEADLINE,
		.standby_ns = NO_DEADLINE,
		.standby_until_ns = NO_DEADLINE,
	};

	if (!keeper_prepare(&keeper) || !keeper_make_directory(&keeper))
		return keeper.exit_code;
	if (keeper_prepare_transport(&keeper) && start_server(&keeper))
		keeper_enter(&keeper, STARTING, START_WAIT_NS);
	else
		leave(&keeper);
	run(&keeper);
	logger_end();
	return keeper.exit_code;
}
