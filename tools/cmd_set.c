// SPDX-License-Identifier: GPL-2.0-or-later
/* folioswap set: settings of a running device. New data follows them; what is stored stays as it is. */
#include "cli.h"
#include "cli_device.h"
#include "cli_value.h"

#include <getopt.h>

#define SET_TIMEOUT_MS 30000

static const struct cli_option options[] = {
	{"codec", "CODEC[:LEVEL]", 'c', "how to compress from now on"},
	{"frame", "SIZE", 'f', "what is decoded at a time: 4K .. unit, whole"},
	{"mem-limit", "SIZE", 'm', "most memory for data: 2G, 25%, none"},
	{NULL, NULL, 0, NULL},
};

struct set {
	const char *codec;
	const char *frame;
	const char *limit;
};

static int parse(int argc, char **argv, struct set *set)
{
	const char *value;
	int id;

	while ((id = cli_next_option(argc, argv, &value)) != CLI_OPTION_END) {
		if (id == CLI_OPTION_HELP)
			return CLI_OPTION_HELP;
		if (id == CLI_OPTION_ERROR)
			return CLI_USAGE;
		*(id == 'c' ? &set->codec : id == 'f' ? &set->frame : &set->limit) = value;
	}
	if (argc - optind != 1)
		return cli_fail(CLI_USAGE, "one device is needed; see folioswap set --help");
	if (!set->codec && !set->frame && !set->limit)
		return cli_fail(CLI_USAGE, "nothing to set; say --codec, --frame or --mem-limit");
	return CLI_DONE;
}

static int make_request(const struct set *set, const struct control_info *info, struct control_request *ret)
{
	struct codec_choice choice;
	struct cli_host host;

	cli_host_read(&host);
	*ret = (struct control_request){.version = CONTROL_VERSION, .op = CONTROL_SET};
	if (set->codec) {
		if (value_codec("--codec", set->codec, &choice))
			return CLI_USAGE;
		ret->set_mask |= CONTROL_SET_CODEC;
		ret->codec = choice.id;
		ret->level = choice.level;
	}
	if (set->frame) {
		if (value_frame("--frame", set->frame, info->unit_bytes, &ret->frame_bytes))
			return CLI_USAGE;
		ret->set_mask |= CONTROL_SET_FRAME;
	}
	if (set->limit) {
		if (value_limit("--mem-limit", set->limit, &host, &ret->limit_bytes))
			return CLI_USAGE;
		ret->set_mask |= CONTROL_SET_LIMIT;
	}
	return CLI_DONE;
}

static int run(int argc, char **argv)
{
	struct control_request request;
	struct control_reply reply;
	struct control_info info;
	struct set set = {0};
	char name[16];
	int result = parse(argc, argv, &set);

	if (result)
		return result == CLI_OPTION_HELP ? CLI_DONE : result;
	result = device_resolve(argv[optind], name);
	if (!result)
		result = device_info(name, &info, NULL);
	if (!result)
		result = make_request(&set, &info, &request);
	if (!result)
		result = device_request(name, &request, SET_TIMEOUT_MS, &reply);
	return result;
}

const struct cli_verb cmd_set = {
	.name = "set",
	.arguments = "OPTION... NAME",
	.summary = "Change codec, frame or memory limit of a device",
	.options = options,
	.run = run,
};
