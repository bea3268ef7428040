// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * folioswap upgrade: another server, of a new binary, on a device that stays in use.
 *
 * The keeper prepares the new server beside the old one and ends that only when
 * the new one is ready. So an answer is a no, with the reason; a connection
 * that ends is the old server's end, and the next process that answers tells
 * the rest.
 */
#include "cleanup.h"
#include "cli.h"
#include "cli_device.h"
#include "cli_process.h"
#include "cli_table.h"
#include "cli_value.h"
#include "clock.h"
#include "daemon_binary.h"
#include "view.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_TIMEOUT_S 60
#define TIMEOUT_MAX_S 86400
#define TICK_MS 200
#define NS_PER_S UINT64_C(1000000000)

static const struct cli_option options[] = {
	{"binary", "PATH", 'b', "the new folioswapd (default: the one that add would start)"},
	{"timeout", "SECONDS", 't', "how long to wait for the new server (default 60)"},
	{NULL, NULL, 0, NULL},
};

struct upgrade {
	const char *binary; /* NULL: the default */
	char *path;         /* the same, absolute */
	unsigned timeout_s;
	char name[16];
	char version[64];
	int old_pid;
	uint64_t start_ns;
};

static int find_binary(struct upgrade *upgrade)
{
	char found[DAEMON_PATH_BYTES], problem[160];
	const char *binary = upgrade->binary;

	if (!binary) {
		daemon_binary_find(found);
		binary = found;
	}
	upgrade->path = realpath(binary, NULL);
	if (!upgrade->path)
		return cli_fail(CLI_FAILED, "'%s' cannot be the new server: %s", binary, strerror(errno));
	if (strlen(upgrade->path) >= sizeof(((struct control_request *)NULL)->path))
		return cli_fail(CLI_USAGE, "'%s' cannot be the new server: its path is too long", upgrade->path);
	if (daemon_binary_version(upgrade->path, upgrade->version, sizeof(upgrade->version), problem, sizeof(problem)))
		return cli_fail(CLI_FAILED, "'%s' cannot be the new server: %s", upgrade->path, problem);
	return CLI_DONE;
}

/* ---- waiting ---- */

static bool is_late(const struct upgrade *upgrade)
{
	return clock_ns() - upgrade->start_ns >= upgrade->timeout_s * NS_PER_S;
}

static void show_progress(const struct upgrade *upgrade, const char *what)
{
	cli_progress("device %s: %s, %.0f s", upgrade->name, what, (double)(clock_ns() - upgrade->start_ns) / 1e9);
}

/* Returns -ECONNRESET at the old server's end, 0 with its reply, or another -errno. */
static int await_end(const struct upgrade *upgrade, int fd, struct control_reply *ret)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	while (poll(&poll_fd, 1, TICK_MS) <= 0) {
		if (is_late(upgrade))
			return -ETIMEDOUT;
		show_progress(upgrade, "preparing the new server");
	}
	return control_receive(fd, ret, NULL);
}

/* Who was asked is known for sure: both questions go over one connection. */
static int ask_for_upgrade(struct upgrade *upgrade, struct control_reply *ret)
{
	const struct control_request ask_info = {.version = CONTROL_VERSION, .op = CONTROL_INFO};
	struct control_request request = {.version = CONTROL_VERSION, .op = CONTROL_UPGRADE};
	CLEANUP(close_fd) int fd = device_connect(upgrade->name, DEVICE_REPLY_TIMEOUT_MS);
	int error = fd < 0 ? fd : control_send(fd, &ask_info);

	if (!error)
		error = control_receive(fd, ret, NULL);
	if (error || ret->error)
		return error;
	upgrade->old_pid = ret->info.server_pid;
	strcpy(request.path, upgrade->path);
	error = control_send(fd, &request);
	return error ? error : await_end(upgrade, fd, ret);
}

/* Fills the view with what the next server says. Returns 0 or an exit code (reported). */
static int await_successor(const struct upgrade *upgrade, struct view *view)
{
	const struct control_request request = {.version = CONTROL_VERSION, .op = CONTROL_INFO};
	struct control_reply reply;

	for (;;) {
		int error = device_ask(upgrade->name, &request, DEVICE_REPLY_TIMEOUT_MS, &reply, NULL);

		if (!error && reply.info.server_pid != upgrade->old_pid)
			return view_load(upgrade->name, view);
		if (error && (error != -ETIMEDOUT || control_keeper_pid(upgrade->name) < 0))
			return cli_fail(CLI_FAILED,
				"device %s: its server has ended and no other has taken over: its I/O fails; the log "
				"says more",
				upgrade->name);
		if (is_late(upgrade))
			return cli_fail(CLI_BUSY, "device %s: no server has taken over within %u s", upgrade->name,
				upgrade->timeout_s);
		show_progress(upgrade, "taking over");
		process_sleep_ms(TICK_MS);
	}
}

/* ---- what happened ---- */

/* Never CLI_DONE: a server does not answer that all is well. */
static int report_no(const struct upgrade *upgrade, int error, const struct control_reply *reply)
{
	if (error == -ETIMEDOUT)
		return cli_fail(CLI_BUSY,
			"device %s: not upgraded within %u s; the keeper may still do it: 'folioswap list -o "
			"NAME,SERVER' tells",
			upgrade->name, upgrade->timeout_s);
	if (error)
		return device_report_silence(upgrade->name, error);
	return cli_fail(device_exit_code(reply->error ? reply->error : -EPROTO),
		"device %s is not upgraded, its old server goes on: %s", upgrade->name,
		reply->message[0] ? reply->message : strerror(-reply->error));
}

/* The old server may have died by itself, with another one of its kind after it. */
static bool runs_other_binary(const struct upgrade *upgrade, int pid)
{
	struct stat wanted, running;
	char link[32];

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	if (stat(upgrade->path, &wanted) < 0 || stat(link, &running) < 0)
		return false; /* of another pid namespace, or replaced again: nothing is known */
	return wanted.st_dev != running.st_dev || wanted.st_ino != running.st_ino;
}

static int report_successor(const struct upgrade *upgrade, const struct view *view)
{
	const struct stats_takeovers *takeovers = &view->takeovers;
	char recover[16], opened[16];

	if (runs_other_binary(upgrade, view->info.server_pid))
		return cli_fail(CLI_FAILED,
			"device %s is not upgraded: its server died before the new one was ready, and process %d of "
			"the old binary has taken over",
			upgrade->name, view->info.server_pid);
	cli_progress_end();
	value_format(VALUE_NS, &takeovers->last_recover_ns, sizeof(uint64_t), false, recover, sizeof(recover));
	value_format(VALUE_NS, &takeovers->last_open_ns, sizeof(uint64_t), false, opened, sizeof(opened));
	printf("device %s: process %d (%s) serves in place of %d; taking over took %s for the store, %s for the "
	       "transport\n",
		upgrade->name, view->info.server_pid, upgrade->version, upgrade->old_pid, recover, opened);
	return CLI_DONE;
}

static int upgrade_device(struct upgrade *upgrade)
{
	struct view *view = view_create();
	struct control_reply reply;
	int error, result;

	if (!view)
		return cli_fail(CLI_FAILED, "out of memory");
	upgrade->start_ns = clock_ns();
	do
		error = ask_for_upgrade(upgrade, &reply);
	while (error == -ECONNRESET && !upgrade->old_pid && !is_late(upgrade) && control_keeper_pid(upgrade->name) > 0);
	if (error == -ECONNRESET && upgrade->old_pid)
		result = await_successor(upgrade, view);
	else
		result = report_no(upgrade, error, &reply);
	if (!result)
		result = report_successor(upgrade, view);
	view_destroy(view);
	return result;
}

/* ---- the verb ---- */

static int parse(int argc, char **argv, struct upgrade *upgrade)
{
	const char *value;
	int id;

	while ((id = cli_next_option(argc, argv, &value)) != CLI_OPTION_END) {
		if (id == CLI_OPTION_HELP)
			return CLI_OPTION_HELP;
		if (id == CLI_OPTION_ERROR)
			return CLI_USAGE;
		if (id == 'b')
			upgrade->binary = value;
		else if (value_count("--timeout", value, 1, TIMEOUT_MAX_S, &upgrade->timeout_s))
			return CLI_USAGE;
	}
	if (argc - optind != 1)
		return cli_fail(CLI_USAGE, "one device is needed; see folioswap upgrade --help");
	return device_resolve(argv[optind], upgrade->name);
}

static int run(int argc, char **argv)
{
	struct upgrade upgrade = {.timeout_s = DEFAULT_TIMEOUT_S};
	int result = parse(argc, argv, &upgrade);

	if (result)
		return result == CLI_OPTION_HELP ? CLI_DONE : result;
	result = find_binary(&upgrade);
	if (!result)
		result = upgrade_device(&upgrade);
	free(upgrade.path);
	return result;
}

const struct cli_verb cmd_upgrade = {
	.name = "upgrade",
	.arguments = "[OPTION...] NAME",
	.summary = "Replace the server of a device that is in use",
	.options = options,
	.run = run,
};
