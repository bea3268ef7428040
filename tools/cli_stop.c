// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The end of a device.
 *
 *   server answers      CONTROL_STOP; the keeper takes everything down
 *   dead, or hangs      SIGTERM to the keeper, which takes everything down
 *   keeper dead, too    nobody is left: loop device, mount and directory here
 *
 * Each way ends with a bounded wait for the directory to disappear.
 */
#include "cleanup.h"
#include "cli.h"
#include "cli_device.h"
#include "cli_process.h"
#include "clock.h"
#include "remains.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define STOP_REPLY_TIMEOUT_MS 10000
#define GONE_TIMEOUT_MS 20000 /* the keeper gives a server that hangs 10 s */
#define PAUSE_MS 50
#define LOOPS_MAX 8
#define NS_PER_MS UINT64_C(1000000)

bool device_is_gone(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), CONTROL_DIR "/%.15s", name);
	return access(path, F_OK) < 0 && errno == ENOENT;
}

static int report_remains(const char *name)
{
	char nodes[LOOPS_MAX][64];
	int loops = control_loops(name, nodes, LOOPS_MAX);
	pid_t keeper = control_keeper_pid(name);

	return cli_fail(CLI_FAILED,
		"device %s was told to end but after %d s there still are: " CONTROL_DIR "/%s%s%s%s", name,
		GONE_TIMEOUT_MS / 1000, name, loops ? ", " : "", loops ? nodes[0] : "",
		keeper > 0 ? ", its keeper process" : "");
}

static int wait_gone(const char *name)
{
	uint64_t deadline_ns = clock_ns() + GONE_TIMEOUT_MS * NS_PER_MS;

	while (!device_is_gone(name)) {
		if (clock_ns() >= deadline_ns)
			return report_remains(name);
		process_sleep_ms(PAUSE_MS);
	}
	return CLI_DONE;
}

int device_clean(const char *name)
{
	CLEANUP(close_fd) int lock_fd = control_lock();
	char problem[256];
	int error;

	if (lock_fd < 0)
		return cli_fail(CLI_FAILED, "device %s: cannot lock " CONTROL_DIR ": %s", name, strerror(-lock_fd));
	error = control_clean(name, problem, sizeof(problem));
	if (error == 0 || error == -EEXIST)
		return CLI_DONE;
	return cli_fail(device_exit_code(error), "device %s: %s", name, problem);
}

static int stop_without_server(const char *name)
{
	pid_t keeper = control_keeper_pid(name);

	if (keeper > 0 && kill(keeper, SIGTERM) == 0)
		return wait_gone(name);
	return device_clean(name);
}

static int report_refusal(const char *name, const struct control_reply *reply)
{
	return cli_fail(device_exit_code(reply->error), "device %s is left as it is: %.*s", name,
		(int)sizeof(reply->message), reply->message[0] ? reply->message : strerror(-reply->error));
}

int device_stop(const char *name, int busy_timeout_ms)
{
	const struct control_request request = {.version = CONTROL_VERSION, .op = CONTROL_STOP};
	uint64_t deadline_ns = clock_ns() + (uint64_t)busy_timeout_ms * NS_PER_MS;
	struct control_reply reply;
	int error;

	for (;;) {
		error = device_ask(name, &request, STOP_REPLY_TIMEOUT_MS, &reply, NULL);
		if (error || reply.error != -EBUSY || clock_ns() >= deadline_ns)
			break;
		process_sleep_ms(PAUSE_MS);
	}
	if (error == -ENOENT && device_is_gone(name))
		return CLI_DONE;
	if (error == -EPROTO || error == -EACCES || error == -EPERM)
		return cli_fail(CLI_FAILED, "device %s: its daemon cannot be told to stop: %s", name, strerror(-error));
	if (error == -ECONNREFUSED || error == -ENOENT || error == -ETIMEDOUT)
		return stop_without_server(name);
	/* A server that is told to stop may be gone before its reply is read: the directory tells. */
	if (!error && reply.error)
		return report_refusal(name, &reply);
	return wait_gone(name);
}
