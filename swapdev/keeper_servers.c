// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Servers come and go: one serves, one stands by, prepared, because nothing can
 * be started when memory is what is missing. The standby of an upgrade executes
 * another binary; only when it is ready is the old server ended, and it takes
 * over by the same road as after a death.
 */
#include "keeper_internal.h"

#include "clock.h"
#include "log.h"
#include "transport.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A server that has been relieved has at most these to answer what it has. */
#define RELIEVED_NS (300 * UINT64_C(1000000))

void keeper_enter(struct keeper *keeper, enum keeper_state state, uint64_t wait_ns)
{
	keeper->state = state;
	keeper->deadline_ns = wait_ns == NO_DEADLINE ? NO_DEADLINE : clock_ns() + wait_ns;
}

void child_close(struct child *child)
{
	if (child->link_fd >= 0)
		close(child->link_fd);
	*child = (struct child){.link_fd = -1};
}

/* Whoever reaps it does not know it any more. */
void child_retire(struct child *child)
{
	if (child->pid > 0)
		kill(child->pid, SIGKILL);
	child_close(child);
}

void keeper_go(struct keeper *keeper, bool crashed)
{
	const struct link_message go = {.kind = LINK_GO, .reaped_ns = keeper->reaped_ns, .crashed = crashed};

	keeper->alive_ns = clock_ns();
	link_send_message(keeper->server.link_fd, &go);
}

/* ---- the standby ---- */

static void tell_standby(const struct keeper *keeper)
{
	const struct link_message message = {
		.kind = LINK_STANDBY, .pid = keeper->standby.ready ? keeper->standby.pid : 0};

	link_send_message(keeper->server.link_fd, &message);
}

static void start_standby(struct keeper *keeper, int binary_fd)
{
	int error;

	keeper->standby_ns = NO_DEADLINE;
	keeper->standby_until_ns = clock_ns() + START_WAIT_NS;
	error = keeper_start_child(keeper, &keeper->standby, binary_fd);
	if (error < 0)
		keeper_standby_failed(keeper, strerror(-error));
}

static void drop_upgrade(struct keeper *keeper)
{
	if (keeper->upgrade_fd >= 0)
		close(keeper->upgrade_fd);
	keeper->upgrade_fd = -1;
}

void keeper_tend_standby(struct keeper *keeper)
{
	uint64_t now_ns = clock_ns();

	if (now_ns >= keeper->standby_until_ns)
		keeper_standby_failed(keeper, "it was not ready in 40 s");
	if (now_ns >= keeper->standby_ns && (keeper->state == RUNNING || keeper->state == PAIRING))
		start_standby(keeper, keeper->binary_fd);
}

#ifdef FOLIOSWAP_BREAK_NO_REAP
/* Wrong on purpose, so that the tests of take-over are seen to fail: two servers work on one image for a while. */
static void end_for_upgrade(struct keeper *keeper)
{
	pid_t predecessor = keeper->server.pid;

	keeper_replace(keeper, false);
	usleep(30000);
	kill(predecessor, SIGKILL);
}
#else
/* Lets it answer what it has, where the transport can: then nothing is asked again. Not reaped here. */
static void relieve_server(struct keeper *keeper)
{
	uint64_t until_ns = clock_ns() + RELIEVED_NS;
	siginfo_t ended = {0};

	if (!keeper->options->transport->relieve)
		return;
	keeper->relieved = true;
	link_send(keeper->server.link_fd, LINK_RELIEVED, 0, NULL);
	keeper->options->transport->relieve(keeper->transport);
	while (waitid(P_PID, (id_t)keeper->server.pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && !ended.si_pid &&
		clock_ns() < until_ns)
		usleep(500);
}

/* When it is reaped, the new one takes over. */
static void end_for_upgrade(struct keeper *keeper)
{
	relieve_server(keeper);
	kill(keeper->server.pid, SIGKILL);
}
#endif

void keeper_standby_ready(struct keeper *keeper)
{
	keeper->standby.ready = true;
	keeper->standby_until_ns = NO_DEADLINE;
	if (keeper->upgrade_fd < 0) {
		tell_standby(keeper);
		return;
	}
	log_info("device %s: the new server is prepared and takes over", keeper->options->name);
	close(keeper->binary_fd);
	keeper->binary_fd = keeper->upgrade_fd;
	keeper->upgrade_fd = -1;
	end_for_upgrade(keeper);
}

void keeper_standby_failed(struct keeper *keeper, const char *why)
{
	bool upgrading = keeper->upgrade_fd >= 0;

	child_retire(&keeper->standby);
	keeper->standby_until_ns = NO_DEADLINE;
	keeper->standby_ns = upgrading ? 0 : clock_ns() + RETRY_NS;
	log_warning("device %s: no %s: %s", keeper->options->name, upgrading ? "upgrade" : "standby", why);
	if (upgrading)
		link_send(keeper->server.link_fd, LINK_NOT_UPGRADED, 0, why);
	drop_upgrade(keeper);
	if (keeper->state == RUNNING)
		tell_standby(keeper);
}

void keeper_renew_standby(struct keeper *keeper)
{
	if (!keeper->can_take_over || keeper->upgrade_fd >= 0)
		return;
	child_retire(&keeper->standby);
	tell_standby(keeper);
	keeper->standby_until_ns = NO_DEADLINE;
	keeper->standby_ns = 0;
}

static const char *why_no_upgrade(const struct keeper *keeper)
{
	if (keeper->options->no_standby)
		return "the device was added with --no-standby: its server is not replaced";
	if (!keeper->can_take_over)
		return "a server cannot be replaced on this kernel";
	if (keeper->upgrade_fd >= 0)
		return "an upgrade is under way";
	return keeper->state == RUNNING ? NULL : "the device is being set up or taken down";
}

void keeper_upgrade(struct keeper *keeper, const char *path)
{
	const char *why = why_no_upgrade(keeper);
	char line[200];
	int fd;

	if (why) {
		link_send(keeper->server.link_fd, LINK_NOT_UPGRADED, 0, why);
		return;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		snprintf(line, sizeof(line), "cannot open %.120s: %s", path, strerror(errno));
		link_send(keeper->server.link_fd, LINK_NOT_UPGRADED, 0, line);
		return;
	}
	child_retire(&keeper->standby);
	tell_standby(keeper);
	keeper->upgrade_fd = fd;
	start_standby(keeper, fd);
}

/* ---- a death ---- */

/* The oldest death that is remembered was long ago? */
static bool deaths_are_rare(struct keeper *keeper)
{
	uint64_t now_ns = clock_ns();
	uint64_t *at = &keeper->death_ns[keeper->deaths++ % DEATHS_MAX];
	bool rare = *at == 0 || now_ns - *at > DEATHS_WINDOW_NS;

	*at = now_ns;
	return rare;
}

bool keeper_may_replace(struct keeper *keeper)
{
	if (!keeper->can_take_over || keeper->ended)
		return false;
	if (!deaths_are_rare(keeper)) {
		log_error("device %s: %d servers died in %d s: giving up, its I/O fails from now on",
			keeper->options->name, DEATHS_MAX, (int)(DEATHS_WINDOW_NS / SECOND_NS));
		return false;
	}
	if (keeper->state == TAKING && ++keeper->fruitless >= FRUITLESS_MAX) {
		log_error("device %s: %d servers in a row could not take over: giving up, its I/O fails from now on",
			keeper->options->name, FRUITLESS_MAX);
		return false;
	}
	return true;
}

bool keeper_replace(struct keeper *keeper, bool crashed)
{
	int error;

	keeper->reaped_ns = clock_ns();
	keeper->relieved = false;
	child_close(&keeper->server);
	/* An upgrade that was not ready: the device goes on with what has worked. */
	if (keeper->upgrade_fd >= 0)
		keeper_standby_failed(keeper, "the old server died before the new one was prepared");
	keeper->server = keeper->standby;
	keeper->standby = (struct child){.link_fd = -1};
	keeper->standby_ns = keeper->standby_until_ns = NO_DEADLINE;
	keeper->crashed = crashed;
	error = keeper->server.pid ? 0 : keeper_start_child(keeper, &keeper->server, keeper->binary_fd);
	if (error < 0) {
		log_error("device %s: cannot start another server: %s", keeper->options->name, strerror(-error));
		return false;
	}
	keeper_enter(keeper, TAKING, START_WAIT_NS);
	if (keeper->server.ready)
		keeper_go(keeper, crashed);
	return true;
}
