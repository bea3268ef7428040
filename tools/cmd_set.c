// SPDX-License-Identifier: GPL-2.0-or-later
/* folioswap set: settings of a running device. New data follows them; what is stored stays as it is. It may grow, too. */
#include "cli.h"
#include "cli_device.h"
#include "cli_value.h"
#include "parse.h"
#include "swaps.h"
#include "units.h"

#include <getopt.h>

#define SET_TIMEOUT_MS 30000

static const struct cli_option options[] = {
	{"codec", "CODEC[:LEVEL]", 'c', "how to compress from now on"},
	{"frame", "SIZE", 'f', "what is decoded at a time: 4K .. unit, whole"},
	{"mem-limit", "SIZE", 'm', "most memory for data: 2G, 25%, none"},
	{"size", "SIZE", 's', "grow to this size, at most what add's --max-size says (ublk)"},
	{NULL, NULL, 0, NULL},
};

struct set {
	const char *codec;
	const char *frame;
	const char *limit;
	const char *size;
};

static const char **value_of(struct set *set, int id)
{
	switch (id) {
	case 'c':
		return &set->codec;
	case 'f':
		return &set->frame;
	case 'm':
		return &set->limit;
	default:
		return &set->size;
	}
}

static int parse(int argc, char **argv, struct set *set)
{
	const char *value;
	int id;

	while ((id = cli_next_option(argc, argv, &value)) != CLI_OPTION_END) {
		if (id == CLI_OPTION_HELP)
			return CLI_OPTION_HELP;
		if (id == CLI_OPTION_ERROR)
			return CLI_USAGE;
		*value_of(set, id) = value;
	}
	if (argc - optind != 1)
		return cli_fail(CLI_USAGE, "one device is needed; see folioswap set --help");
	if (!set->codec && !set->frame && !set->limit && !set->size)
		return cli_fail(CLI_USAGE, "nothing to set; say --codec, --frame, --mem-limit or --size");
	return CLI_DONE;
}

static int check_size(
	const char *text, const struct cli_host *host, const struct control_info *info, uint64_t *ret_bytes)
{
	char now[16], most[16];
	uint64_t bytes;

	if (value_size("--size", text, host, &bytes))
		return CLI_USAGE;
	if (bytes < info->size_bytes)
		return cli_fail(CLI_USAGE, "--size '%s' is less than the device has (%s); a device only grows", text,
			format_size(info->size_bytes, now, sizeof(now)));
	if (bytes > info->max_size_bytes)
		return cli_fail(CLI_USAGE, "--size '%s' is more than this device can have (%s, add's --max-size)", text,
			format_size(info->max_size_bytes, most, sizeof(most)));
	if (bytes % GRANULE_BYTES)
		return cli_fail(CLI_USAGE, "--size '%s' is not a multiple of 4K", text);
	*ret_bytes = bytes;
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
	if (set->size) {
		if (check_size(set->size, &host, info, &ret->size_bytes))
			return CLI_USAGE;
		ret->set_mask |= CONTROL_SET_SIZE;
	}
	return CLI_DONE;
}

/* The size of swap stands in what mkswap wrote. */
static void warn_of_swap(const char *name, const struct control_info *info)
{
	struct swap_entry entries[SWAPS_MAX];
	int count = swaps_read("/proc/swaps", entries, SWAPS_MAX);

	if (count > 0 && swaps_find(entries, count, info->node))
		cli_warn("device %s: the swap on %s keeps its size; swapoff, mkswap and swapon give it the new one",
			name, info->node);
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
	if (!result && set.size && request.size_bytes > info.size_bytes)
		warn_of_swap(name, &info);
	return result;
}

const struct cli_verb cmd_set = {
	.name = "set",
	.arguments = "OPTION... NAME",
	.summary = "Change codec, frame, memory limit or size of a device",
	.options = options,
	.run = run,
};
