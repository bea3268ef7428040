// SPDX-License-Identifier: GPL-2.0-or-later
/* folioswap compact: drop dead data, close gaps, give memory back; with a progress bar on a terminal. */
#include "cleanup.h"
#include "cli.h"
#include "cli_device.h"
#include "cli_value.h"
#include "parse.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#define DEFAULT_TIMEOUT_S 60
#define TIMEOUT_MAX_S 86400
#define REPLY_SLACK_MS 5000
#define BAR_WIDTH 30

static const struct cli_option options[] = {
	{"timeout", "SECONDS", 't', "end after that time, whatever is done by then (default 60)"},
	{NULL, NULL, 0, NULL},
};

static void show_progress(const struct control_reply *reply)
{
	unsigned filled =
		reply->total_bytes ? (unsigned)(reply->done_bytes * BAR_WIDTH / reply->total_bytes) : BAR_WIDTH;
	char done[16], total[16];

	if (filled > BAR_WIDTH)
		filled = BAR_WIDTH;
	cli_progress("[%.*s%*s] %s of %s", (int)filled, "##############################", (int)(BAR_WIDTH - filled), "",
		format_size(reply->done_bytes, done, sizeof(done)),
		format_size(reply->total_bytes, total, sizeof(total)));
}

/* Returns 0 or -errno of the exchange; the last reply is in ret. */
static int exchange(const char *name, const struct control_request *request, int timeout_ms, struct control_reply *ret)
{
	CLEANUP(close_fd) int fd = device_connect(name, timeout_ms);
	int error;

	if (fd < 0)
		return fd;
	error = control_send(fd, request);
	while (!error) {
		error = control_receive(fd, ret, NULL);
		if (error || !ret->more)
			break;
		show_progress(ret);
	}
	cli_progress_end();
	return error;
}

static int compact(const char *name, unsigned seconds)
{
	const struct control_request request = {
		.version = CONTROL_VERSION,
		.op = CONTROL_COMPACT,
		.timeout_ns = seconds * UINT64_C(1000000000),
	};
	struct control_reply reply;
	int error = exchange(name, &request, (int)seconds * 1000 + REPLY_SLACK_MS, &reply);

	if (error == -ECONNRESET && control_keeper_pid(name) > 0)
		return cli_fail(CLI_BUSY,
			"device %s: its server was replaced meanwhile; what was won stays, start it again for the rest",
			name);
	if (error)
		return cli_fail(
			device_exit_code(error), "device %s: its daemon does not answer: %s", name, strerror(-error));
	if (reply.error == -ETIMEDOUT)
		return cli_fail(CLI_BUSY,
			"device %s: not finished within %u s; what was won stays, --timeout gives more time", name,
			seconds);
	if (reply.error)
		return cli_fail(device_exit_code(reply.error), "device %s: %s", name,
			reply.message[0] ? reply.message : strerror(-reply.error));
	return CLI_DONE;
}

static int run(int argc, char **argv)
{
	unsigned seconds = DEFAULT_TIMEOUT_S;
	const char *value;
	char name[16];
	int id;

	while ((id = cli_next_option(argc, argv, &value)) != CLI_OPTION_END) {
		if (id == CLI_OPTION_HELP)
			return CLI_DONE;
		if (id == CLI_OPTION_ERROR || value_count("--timeout", value, 1, TIMEOUT_MAX_S, &seconds))
			return CLI_USAGE;
	}
	if (argc - optind != 1)
		return cli_fail(CLI_USAGE, "one device is needed; see folioswap compact --help");
	if (device_resolve(argv[optind], name))
		return CLI_NO_DEVICE;
	return compact(name, seconds);
}

const struct cli_verb cmd_compact = {
	.name = "compact",
	.arguments = "[OPTION...] NAME",
	.summary = "Drop dead data and give memory back",
	.options = options,
	.run = run,
};
