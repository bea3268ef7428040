// SPDX-License-Identifier: GPL-2.0-or-later
/* Arguments of add: defaults, checks, and what is wrong with them. */
#include "add_config.h"

#include "cli_swap.h"
#include "parse.h"
#include "transport_list.h"
#include "units.h"

#include <getopt.h>

#define SLOTS_MAX 64
#define THREADS_MAX 32
#define DEFAULT_CODEC "zstd:1"
#define DEFAULT_FRAME_BYTES (64 * KIB)
#define DEFAULT_SLOTS 4
#define DEFAULT_IO_THREADS 2
#define DEFAULT_COMPRESS_THREADS_MAX 2
#define DEFAULT_RESERVE_BYTES (16 * MIB)
#define DEFAULT_MAX_SIZE_TIMES 4
/* Granules are numbered with 31 bits. */
#define SIZE_END_BYTES (8192 * GIB)
#define SIZE_MOST_BYTES (SIZE_END_BYTES - UNIT_MAX_BYTES)

enum {
	OPTION_CODEC = 'c',
	OPTION_SIZE = 's',
	OPTION_UNIT = 'u',
	OPTION_FRAME = 'f',
	OPTION_TRANSPORT = 't',
	OPTION_LIMIT = 'm',
	OPTION_SWAPON = 'p',
	OPTION_THREADS = 256,
	OPTION_COMPRESS_THREADS,
	OPTION_SLOTS,
	OPTION_RESERVE,
	OPTION_MAX_SIZE,
	OPTION_DISCARD,
	OPTION_NO_DISCARD,
	OPTION_MERGE,
	OPTION_NO_STANDBY,
	OPTION_ALLOW_UNSAFE,
	OPTION_FAULT,
};

const struct cli_option add_options[] = {
	{"size", "SIZE", OPTION_SIZE, "size of the device, as the operand: 4G, 50% of RAM"},
	{"codec", "CODEC[:LEVEL]", OPTION_CODEC, "how to compress (default " DEFAULT_CODEC ")"},
	{"unit", "SIZE", OPTION_UNIT, "what is kept together: 64K, 2M, 16M (default: the host's huge page)"},
	{"frame", "SIZE", OPTION_FRAME, "what is decoded at a time: 4K .. unit, whole (default 64K)"},
	{"transport", "NAME", OPTION_TRANSPORT, TRANSPORT_NAMES " (default " TRANSPORT_AUTO ")"},
	{"mem-limit", "SIZE", OPTION_LIMIT, "most memory for data: 2G, 25%, none (default 50% of RAM)"},
	{"swapon", "[=PRIORITY]", OPTION_SWAPON, "mkswap and swapon, too; 0 .. 32767"},
	{"threads", "N", OPTION_THREADS, "I/O threads (default 2)"},
	{"compress-threads", "N", OPTION_COMPRESS_THREADS, "compression threads (default 2, 1 on one CPU)"},
	{"slots", "N", OPTION_SLOTS, "staging slots of one unit each (default 4)"},
	{"reserve", "SIZE", OPTION_RESERVE, "memory that is kept ready ahead (default 16M)"},
	{"max-size", "SIZE", OPTION_MAX_SIZE, "how far set --size may let it grow (default 4 times the size)"},
	{"discard", NULL, OPTION_DISCARD, "take discard requests (default)"},
	{"no-discard", NULL, OPTION_NO_DISCARD, "refuse discard requests"},
	{"merge", NULL, OPTION_MERGE, "fuse: let the loop device merge requests: for swap of memory cgroups"},
	{"no-standby", NULL, OPTION_NO_STANDBY, "no second server that takes over from a dead one"},
	{"allow-unsafe", NULL, OPTION_ALLOW_UNSAFE, "go on where the daemon cannot be kept safe"},
	{"fault", "RULE", OPTION_FAULT, "inject faults, for tests; see folioswapd(8)"},
	{NULL, NULL, 0, NULL},
};

void add_more_help(FILE *out)
{
	char list[256];

	fprintf(out, "\nCodecs: %s\nTransports: " TRANSPORT_NAMES "\n", codec_list(list, sizeof(list)));
	fputs("Prints the device node.\n", out);
}

/* Texts whose meaning depends on other options. */
struct pending {
	const char *size;
	const char *frame;
	const char *limit;
	const char *max_size;
};

static int set_swapon(struct add_config *config, const char *priority_text)
{
	unsigned priority;

	config->swapon = true;
	if (!priority_text)
		return CLI_DONE;
	if (value_count("--swapon", priority_text, 0, SWAP_PRIORITY_MAX, &priority))
		return CLI_USAGE;
	config->priority = (int)priority;
	return CLI_DONE;
}

static int set_option(
	struct add_config *config, struct pending *pending, const struct cli_host *host, int id, const char *value)
{
	switch (id) {
	case OPTION_SIZE:
		if (pending->size)
			return cli_fail(CLI_USAGE, "the size is given twice: '%s' and '%s'", pending->size, value);
		pending->size = value;
		break;
	case OPTION_CODEC:
		return value_codec("--codec", value, &config->codec);
	case OPTION_UNIT:
		return value_unit("--unit", value, &config->unit_bytes);
	case OPTION_FRAME:
		pending->frame = value;
		break;
	case OPTION_TRANSPORT:
		config->transport = value;
		break;
	case OPTION_LIMIT:
		pending->limit = value;
		break;
	case OPTION_MAX_SIZE:
		pending->max_size = value;
		break;
	case OPTION_RESERVE:
		return value_size("--reserve", value, host, &config->reserve_bytes);
	case OPTION_THREADS:
		return value_count("--threads", value, 1, THREADS_MAX, &config->io_threads);
	case OPTION_COMPRESS_THREADS:
		return value_count("--compress-threads", value, 1, THREADS_MAX, &config->compress_threads);
	case OPTION_SLOTS:
		return value_count("--slots", value, 1, SLOTS_MAX, &config->slots);
	case OPTION_DISCARD:
	case OPTION_NO_DISCARD:
		config->discard = id == OPTION_DISCARD;
		break;
	case OPTION_MERGE:
		config->merge = true;
		break;
	case OPTION_NO_STANDBY:
		config->no_standby = true;
		break;
	case OPTION_ALLOW_UNSAFE:
		config->allow_unsafe = true;
		break;
	case OPTION_FAULT:
		config->fault = value;
		break;
	case OPTION_SWAPON:
		return set_swapon(config, value);
	}
	return CLI_DONE;
}

static int check_size(const char *text, const struct cli_host *host, struct add_config *config)
{
	char unit[16];
	uint64_t bytes;

	if (!text)
		return cli_fail(CLI_USAGE, "a size is missing: folioswap add 4G, or 50%% of RAM");
	if (value_size("size", text, host, &bytes))
		return CLI_USAGE;
	if (bytes < config->unit_bytes)
		return cli_fail(CLI_USAGE, "size '%s' is less than one unit (%s)", text,
			format_size(config->unit_bytes, unit, sizeof(unit)));
	if (bytes % GRANULE_BYTES)
		return cli_fail(CLI_USAGE, "size '%s' is not a multiple of 4K", text);
	if (bytes > SIZE_MOST_BYTES)
		return cli_fail(CLI_USAGE, "size '%s' is not below 8T", text);
	config->size_bytes = bytes;
	return 0;
}

static int check_max_size(const char *text, const struct cli_host *host, struct add_config *config)
{
	uint64_t size = config->size_bytes, bytes;

	if (!text) {
		config->max_size_bytes = size > SIZE_MOST_BYTES / DEFAULT_MAX_SIZE_TIMES
						 ? SIZE_MOST_BYTES
						 : size * DEFAULT_MAX_SIZE_TIMES;
		return 0;
	}
	if (value_size("--max-size", text, host, &bytes))
		return CLI_USAGE;
	if (bytes < size || bytes % GRANULE_BYTES)
		return cli_fail(CLI_USAGE,
			"--max-size '%s' must be a multiple of 4K and not less than the size (%llu bytes)", text,
			(unsigned long long)size);
	if (bytes > SIZE_MOST_BYTES)
		return cli_fail(CLI_USAGE, "--max-size '%s' is not below 8T", text);
	config->max_size_bytes = bytes;
	return 0;
}

/* A limit within the headroom would refuse every write. */
static int check_limit(const char *text, const struct cli_host *host, struct add_config *config)
{
	uint64_t headroom = (uint64_t)(config->slots + config->compress_threads) * config->unit_bytes;
	char least[16];
	uint64_t bytes;

	if (value_limit("--mem-limit", text ? text : "50%", host, &bytes))
		return CLI_USAGE;
	if (bytes <= headroom)
		return cli_fail(CLI_USAGE,
			"--mem-limit '%s' must be more than the headroom of (slots + compression threads) x unit = %s",
			text ? text : "50%", format_size(headroom, least, sizeof(least)));
	config->limit_bytes = bytes;
	return 0;
}

static int check_frame(const char *text, struct add_config *config)
{
	if (text)
		return value_frame("--frame", text, config->unit_bytes, &config->frame_bytes);
	config->frame_bytes = DEFAULT_FRAME_BYTES;
	return 0;
}

static int check_transport(const struct add_config *config)
{
	if (transport_name_is_known(config->transport))
		return 0;
	return cli_fail(CLI_USAGE, "--transport '%s' is unknown; there are %s", config->transport, TRANSPORT_NAMES);
}

static int check(const struct pending *pending, const struct cli_host *host, struct add_config *config)
{
	int result = check_transport(config);

	if (!result)
		result = check_size(pending->size, host, config);
	if (!result)
		result = check_max_size(pending->max_size, host, config);
	if (!result)
		result = check_frame(pending->frame, config);
	if (!result)
		result = check_limit(pending->limit, host, config);
	return result;
}

static int set_defaults(const struct cli_host *host, struct add_config *config)
{
	*config = (struct add_config){
		.reserve_bytes = DEFAULT_RESERVE_BYTES,
		.unit_bytes = cli_default_unit(host),
		.slots = DEFAULT_SLOTS,
		.io_threads = DEFAULT_IO_THREADS,
		.compress_threads =
			host->cpus < DEFAULT_COMPRESS_THREADS_MAX ? host->cpus : DEFAULT_COMPRESS_THREADS_MAX,
		.transport = TRANSPORT_AUTO,
		.discard = true,
		.priority = SWAP_PRIORITY_KERNEL,
	};
	return value_codec("--codec", DEFAULT_CODEC, &config->codec);
}

int add_config_parse(int argc, char **argv, const struct cli_host *host, struct add_config *ret)
{
	struct pending pending = {0};
	struct add_config config;
	const char *value;
	int id, result;

	if (set_defaults(host, &config))
		return CLI_USAGE;
	while ((id = cli_next_option(argc, argv, &value)) != CLI_OPTION_END) {
		if (id == CLI_OPTION_HELP)
			return CLI_OPTION_HELP;
		if (id == CLI_OPTION_ERROR || set_option(&config, &pending, host, id, value))
			return CLI_USAGE;
	}
	for (; optind < argc; optind++) {
		if (set_option(&config, &pending, host, OPTION_SIZE, argv[optind]))
			return CLI_USAGE;
	}
	result = check(&pending, host, &config);
	if (!result)
		*ret = config;
	return result;
}
