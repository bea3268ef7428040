// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * folioswap del: swapoff, then the orderly end of a device.
 *
 * The order is fixed: a device whose swap cannot be switched off stays exactly
 * as it is. Every wait is bounded.
 */
#include "cli.h"
#include "cli_device.h"
#include "cli_process.h"
#include "cli_swap.h"
#include "cli_value.h"
#include "clock.h"
#include "opener.h"
#include "parse.h"
#include "remains.h"
#include "swaps.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#define DEFAULT_TIMEOUT_S 120
#define TIMEOUT_MAX_S 86400
#define BUSY_TIMEOUT_MS 2000
#define PAUSE_MS 100
#define NODES_MAX 8

static const struct cli_option options[] = {
	{"all", NULL, 'a', "all devices"},
	{"timeout", "SECONDS", 't', "for swapoff to end (default 120)"},
	{NULL, NULL, 0, NULL},
};

struct del {
	bool all;
	unsigned timeout_s;
};

static int parse(int argc, char **argv, struct del *del)
{
	const char *value;
	int id;

	while ((id = cli_next_option(argc, argv, &value)) != CLI_OPTION_END) {
		if (id == CLI_OPTION_HELP)
			return CLI_OPTION_HELP;
		if (id == CLI_OPTION_ERROR)
			return CLI_USAGE;
		if (id == 'a')
			del->all = true;
		else if (value_count("--timeout", value, 1, TIMEOUT_MAX_S, &del->timeout_s))
			return CLI_USAGE;
	}
	if (del->all == (argc > optind))
		return cli_fail(
			CLI_USAGE, del->all ? "--all takes no names" : "a device is missing; name it, or say --all");
	return CLI_DONE;
}

static int report_swapoff(const char *node, uint64_t used_bytes, int error, unsigned timeout_s)
{
	char used[16];

	format_size(used_bytes, used, sizeof(used));
	switch (error) {
	case -ENOMEM:
		return cli_fail(CLI_BUSY,
			"swapoff %s: the %s that are swapped out do not fit into free memory, other swap and the "
			"limits of their control groups; make room there first; the device is left as it is",
			node, used);
	case -ETIMEDOUT:
		return cli_fail(CLI_BUSY,
			"swapoff %s did not end within %u s and was stopped; the device is still swapped on; "
			"--timeout gives more time",
			node, timeout_s);
	case -EINPROGRESS:
		return cli_fail(CLI_BUSY,
			"swapoff %s did not end within %u s; the kernel goes on with it: try again later; the device "
			"is left as it is",
			node, timeout_s);
	case -EPERM:
		return cli_fail(CLI_FAILED, "swapoff %s: %s; root is needed", node, strerror(-error));
	default:
		return cli_fail(CLI_FAILED, "swapoff %s: %s; the device is left as it is", node, strerror(-error));
	}
}

/* Is it on? A device whose node is gone counts, too. Returns false, or true with a copy of its entry. */
static bool is_swapped_on(const char *node, struct swap_entry *ret)
{
	struct swap_entry entries[SWAPS_MAX];
	int count = swaps_read("/proc/swaps", entries, SWAPS_MAX);
	const struct swap_entry *entry = swaps_find(entries, count, node);

	if (entry)
		*ret = *entry;
	return entry != NULL;
}

/* Another swapoff of it is under way, e.g. one that an earlier del gave up waiting for. */
static int wait_for_other(const char *node, unsigned timeout_s)
{
	uint64_t deadline_ns = clock_ns() + timeout_s * UINT64_C(1000000000);
	struct swap_entry entry;

	while (is_swapped_on(node, &entry)) {
		if (clock_ns() >= deadline_ns)
			return cli_fail(CLI_BUSY,
				"another swapoff of %s did not end within %u s; the device is left as it is", node,
				timeout_s);
		process_sleep_ms(PAUSE_MS);
	}
	return CLI_DONE;
}

static int switch_off(const char *node, unsigned timeout_s)
{
	struct swap_entry entry;
	int error;

	if (!is_swapped_on(node, &entry))
		return CLI_DONE;
	if (entry.deleted)
		return cli_fail(CLI_BUSY,
			"%s is swapped on but its node is gone: it cannot be switched off; restart the machine", node);
	error = swap_off(entry.path, (int)timeout_s * 1000);
	if (error == -EINVAL)
		return wait_for_other(node, timeout_s);
	return error ? report_swapoff(entry.path, entry.used_bytes, error, timeout_s) : CLI_DONE;
}

/* The server looks before it stops. Where there is none, we do; whoever only looks at the device gets a moment. */
static int refuse_openers(const char *node, const pid_t *own)
{
	uint64_t deadline_ns = clock_ns() + BUSY_TIMEOUT_MS * UINT64_C(1000000);
	char process[32];
	pid_t pid;

	while ((pid = opener_find(node, own, process, sizeof(process))) > 0) {
		if (clock_ns() >= deadline_ns)
			return cli_fail(CLI_BUSY, "%s is open by process %d (%s); the device is left as it is", node,
				(int)pid, process);
		process_sleep_ms(PAUSE_MS);
	}
	return CLI_DONE;
}

/* What has to be free: the daemon's word, and without one those loop devices that lie over its mount. */
struct target {
	char nodes[NODES_MAX][64];
	int count;
	bool is_up;
	bool is_starting; /* it answers, but has no node yet: nobody but its daemon can have that open */
	pid_t own[2];     /* of a daemon that is not up: its keeper, ended by 0 */
};

static void find_target(const char *name, struct target *ret)
{
	const struct control_request request = {.version = CONTROL_VERSION, .op = CONTROL_INFO};
	struct control_reply reply;
	bool answers = device_ask(name, &request, DEVICE_REPLY_TIMEOUT_MS, &reply, NULL) == 0 && !reply.error;
	pid_t keeper;

	memset(ret, 0, sizeof(*ret));
	if (!answers || !reply.info.node[0]) {
		ret->is_starting = answers;
		ret->count = control_loops(name, ret->nodes, NODES_MAX);
		keeper = control_keeper_pid(name);
		ret->own[0] = keeper > 0 ? keeper : 0;
		if (keeper == -ESRCH)
			control_fail_io(name);
		return;
	}
	memcpy(ret->nodes[0], reply.info.node, sizeof(reply.info.node));
	ret->count = 1;
	ret->is_up = true;
}

static int delete_device(const char *name, unsigned timeout_s)
{
	struct target target;
	int result = CLI_DONE;

	find_target(name, &target);
	for (int i = 0; i < target.count && !result; i++) {
		result = switch_off(target.nodes[i], timeout_s);
		if (!result && !target.is_up && !target.is_starting)
			result = refuse_openers(target.nodes[i], target.own);
	}
	if (!result)
		result = device_stop(name, BUSY_TIMEOUT_MS);
	if (!result && target.is_starting)
		cli_warn("device %s was just being set up by 'folioswap add', which hears of it", name);
	return result;
}

static int delete_all(unsigned timeout_s)
{
	char names[CONTROL_DEVICES_MAX][16];
	int count = device_names(names), result = CLI_DONE;

	for (int i = 0; i < count; i++)
		result = cli_first_failure(result, delete_device(names[i], timeout_s));
	return result;
}

static int run(int argc, char **argv)
{
	struct del del = {.timeout_s = DEFAULT_TIMEOUT_S};
	int result = parse(argc, argv, &del);

	if (result)
		return result == CLI_OPTION_HELP ? CLI_DONE : result;
	if (del.all)
		return delete_all(del.timeout_s);
	for (int i = optind; i < argc; i++) {
		char name[16];
		int error = device_resolve(argv[i], name);

		if (!error)
			error = delete_device(name, del.timeout_s);
		result = cli_first_failure(result, error);
	}
	return result;
}

const struct cli_verb cmd_del = {
	.name = "del",
	.arguments = "[OPTION...] NAME...",
	.summary = "Switch swap off and end devices",
	.options = options,
	.run = run,
};
