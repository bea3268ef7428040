// SPDX-License-Identifier: GPL-2.0-or-later
/* Options: one table, from which they are read and --help is printed. */
#include "options.h"

#include "codec.h"
#include "control.h"
#include "fault.h"
#include "parse.h"
#include "transport.h"
#include "transport_list.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum option_id {
	OPTION_NAME,
	OPTION_SIZE,
	OPTION_MAX_SIZE,
	OPTION_UNIT,
	OPTION_FRAME,
	OPTION_CODEC,
	OPTION_SLOTS,
	OPTION_IO_THREADS,
	OPTION_COMPRESS_THREADS,
	OPTION_MEM_LIMIT,
	OPTION_RESERVE,
	OPTION_TRANSPORT,
	OPTION_FAULT,
	OPTION_NO_DISCARD,
	OPTION_MERGE,
	OPTION_NO_STANDBY,
	OPTION_ALLOW_UNSAFE,
	OPTION_FOREGROUND,
	OPTION_READY_FD,
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_COUNT,
};

static const struct {
	const char *name;
	const char *value; /* NULL: takes none */
	const char *help;
} table[OPTION_COUNT] = {
	[OPTION_NAME] = {"name", "N", "number of the device, 0 .. 255 (required)"},
	[OPTION_SIZE] = {"size", "SIZE", "size of the device (required)"},
	[OPTION_MAX_SIZE] = {"max-size", "SIZE", "how far it may grow (4 times the size)"},
	[OPTION_UNIT] = {"unit", "SIZE", "what is kept together: 64K, 2M, 16M (2M)"},
	[OPTION_FRAME] = {"frame", "SIZE", "what is decoded at a time: 4K .. unit, whole (64K)"},
	[OPTION_CODEC] = {"codec", "CODEC", "how to compress (zstd:1)"},
	[OPTION_SLOTS] = {"slots", "N", "staging slots of one unit each (4)"},
	[OPTION_IO_THREADS] = {"io-threads", "N", "threads that serve requests (2)"},
	[OPTION_COMPRESS_THREADS] = {"compress-threads", "N", "threads that compress (2, 1 on one CPU)"},
	[OPTION_MEM_LIMIT] = {"mem-limit", "SIZE", "most memory for data, or none (half of RAM)"},
	[OPTION_RESERVE] = {"reserve", "SIZE", "memory that is kept ready ahead (16M)"},
	[OPTION_TRANSPORT] = {"transport", "NAME", "how requests come, or auto (auto)"},
	[OPTION_FAULT] = {"fault", "RULE", "inject faults, for tests"},
	[OPTION_NO_DISCARD] = {"no-discard", NULL, "refuse discard requests"},
	[OPTION_MERGE] = {"merge", NULL, "fuse: let the loop device merge requests"},
	[OPTION_NO_STANDBY] = {"no-standby", NULL, "no second server that takes over from a dead one"},
	[OPTION_ALLOW_UNSAFE] = {"allow-unsafe", NULL, "go on where the daemon cannot be kept safe"},
	[OPTION_FOREGROUND] = {"foreground", NULL, "keep terminal and session, log to stderr"},
	[OPTION_READY_FD] = {"ready-fd", "FD", "write one line there: ready NODE, or failed REASON"},
	[OPTION_HELP] = {"help", NULL, "print this text"},
	[OPTION_VERSION] = {"version", NULL, "print the version"},
};

/* Texts, checked together once all are known. */
struct given {
	const char *text[OPTION_COUNT]; /* "" for an option without value; NULL: not given */
	char *problem;
	size_t problem_bytes;
};

static bool wrong(const struct given *given, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool wrong(const struct given *given, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(given->problem, given->problem_bytes, format, arguments);
	va_end(arguments);
	return false;
}

static void print_help(void)
{
	char codecs[256], option[40];
	unsigned i;

	puts("Usage: folioswapd --name N --size SIZE [OPTIONS]\n"
	     "Serves one compressed swap device. `folioswap add` starts it.\n");
	for (i = 0; i < OPTION_COUNT; i++) {
		snprintf(option, sizeof(option), "--%s %s", table[i].name, table[i].value ? table[i].value : "");
		printf("  %-22s %s\n", option, table[i].help);
	}
	printf("\nSizes: bytes, or with K, M, G, T.\nCodecs: %s\nTransports: " TRANSPORT_AUTO, codec_list(codecs, sizeof(codecs)));
	for (i = 0; transport_table[i]; i++)
		printf(", %s (%s)", transport_table[i]->name, transport_table[i]->summary);
	puts("\nExit status: 0 done, 1 failed, 2 usage, 3 refused as unsafe, 4 busy.");
}

static bool collect(int argc, char **argv, struct given *given)
{
	struct option options[OPTION_COUNT + 1];
	int id;

	memset(options, 0, sizeof(options));
	for (id = 0; id < OPTION_COUNT; id++) {
		options[id].name = table[id].name;
		options[id].has_arg = table[id].value ? required_argument : no_argument;
		options[id].val = id;
	}
	opterr = 0;
	optind = 1;
	while ((id = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
		if (id == ':')
			return wrong(given, "option '%s' needs a value", argv[optind - 1]);
		if (id == '?')
			return wrong(given, "unknown option '%s'", argv[optind - 1]);
		if (given->text[id])
			return wrong(given, "--%s is given twice", table[id].name);
		given->text[id] = optarg ? optarg : "";
	}
	if (optind < argc)
		return wrong(given, "unexpected argument '%s'", argv[optind]);
	return true;
}

static bool read_bytes(const struct given *given, enum option_id id, uint64_t *ret)
{
	const char *text = given->text[id];

	if (text && parse_size(text, ret) < 0)
		return wrong(given, "--%s '%s' is not a size: bytes, or with K, M, G, T", table[id].name, text);
	return true;
}

static bool read_bytes32(const struct given *given, enum option_id id, uint32_t *ret)
{
	uint64_t bytes = *ret;

	if (!read_bytes(given, id, &bytes))
		return false;
	if (bytes > UNIT_MAX_BYTES)
		return wrong(given, "--%s '%s' is more than 16M", table[id].name, given->text[id]);
	*ret = (uint32_t)bytes;
	return true;
}

static bool read_number(const struct given *given, enum option_id id, long min, long max, unsigned *ret)
{
	const char *text = given->text[id];
	long number;

	if (!text)
		return true;
	if (parse_int(text, min, max, &number) < 0)
		return wrong(given, "--%s '%s' is not a number from %ld to %ld", table[id].name, text, min, max);
	*ret = (unsigned)number;
	return true;
}

static bool read_name(const struct given *given, struct daemon_options *options)
{
	const char *text = given->text[OPTION_NAME];
	long number;

	if (!text)
		return wrong(given, "--name is missing");
	if (parse_int(text, 0, CONTROL_DEVICES_MAX - 1, &number) < 0)
		return wrong(given, "--name '%s' is not a number from 0 to %d", text, CONTROL_DEVICES_MAX - 1);
	snprintf(options->name, sizeof(options->name), "%ld", number);
	return true;
}

static bool read_limit(const struct given *given, struct store_config *store)
{
	const char *text = given->text[OPTION_MEM_LIMIT];

	store->limit_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2;
	if (text && strcmp(text, "none") == 0) {
		store->limit_bytes = UINT64_MAX;
		return true;
	}
	return read_bytes(given, OPTION_MEM_LIMIT, &store->limit_bytes);
}

static bool read_codec(const struct given *given, struct store_config *store)
{
	const char *text = given->text[OPTION_CODEC] ? given->text[OPTION_CODEC] : "zstd:1";
	struct codec_choice choice;
	char codecs[256];

	if (codec_parse(text, &choice) < 0)
		return wrong(given, "--codec '%s' is not one of %s", text, codec_list(codecs, sizeof(codecs)));
	store->codec = choice.id;
	store->level = choice.level;
	return true;
}

static bool read_frame(const struct given *given, struct store_config *store)
{
	const char *text = given->text[OPTION_FRAME];

	store->frame_bytes = 64 * KIB;
	if (text && strcmp(text, "whole") == 0) {
		store->frame_bytes = store->unit_bytes;
		return true;
	}
	return read_bytes32(given, OPTION_FRAME, &store->frame_bytes);
}

static bool read_store(const struct given *given, struct store_config *store)
{
	const char *problem;

	store->unit_bytes = 2 * MIB;
	store->reserve_bytes = 16 * MIB;
	store->slots = 4;
	store->io_threads = 2;
	store->compress_threads = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1;
	if (!given->text[OPTION_SIZE])
		return wrong(given, "--size is missing");
	if (!read_bytes(given, OPTION_SIZE, &store->size_bytes))
		return false;
	store->max_size_bytes = store->size_bytes > INT64_MAX / 4 ? store->size_bytes : store->size_bytes * 4;
	if (!read_bytes(given, OPTION_MAX_SIZE, &store->max_size_bytes) ||
		!read_bytes32(given, OPTION_UNIT, &store->unit_bytes) || !read_frame(given, store) ||
		!read_codec(given, store) || !read_limit(given, store) ||
		!read_bytes(given, OPTION_RESERVE, &store->reserve_bytes) ||
		!read_number(given, OPTION_SLOTS, 1, STORE_SLOTS_MAX, &store->slots) ||
		!read_number(given, OPTION_IO_THREADS, 1, STORE_THREADS_MAX, &store->io_threads) ||
		!read_number(given, OPTION_COMPRESS_THREADS, 1, STORE_THREADS_MAX, &store->compress_threads))
		return false;
	problem = store_config_problem(store);
	return problem ? wrong(given, "%s", problem) : true;
}

static bool read_fault(const struct given *given, struct daemon_options *options)
{
	const char *rule = given->text[OPTION_FAULT] ? given->text[OPTION_FAULT] : "";
	struct fault *fault;

	if (strlen(rule) >= sizeof(options->fault))
		return wrong(given, "--fault is longer than %zu characters", sizeof(options->fault) - 1);
	if (fault_create(&fault, rule) < 0)
		return wrong(given, "--fault '%s' is not a rule such as delay=50ms:every=100,error=EIO:at=5", rule);
	fault_destroy(fault);
	snprintf(options->fault, sizeof(options->fault), "%s", rule);
	return true;
}

static bool read_ready_fd(const struct given *given, struct daemon_options *options)
{
	const char *text = given->text[OPTION_READY_FD];
	long fd;

	if (!text)
		return true;
	if (parse_int(text, 0, INT32_MAX, &fd) < 0 || fcntl((int)fd, F_GETFD) < 0)
		return wrong(given, "--ready-fd '%s' is not an open descriptor", text);
	options->ready_fd = (int)fd;
	return true;
}

/* "ublk: why not; fuse: why not" */
static void explain_all(char *why, size_t why_bytes)
{
	size_t used = 0;
	char problem[200];

	for (unsigned i = 0; transport_table[i] && used < why_bytes; i++) {
		if (transport_table[i]->probe(problem, sizeof(problem)) < 0)
			used += (size_t)snprintf(why + used, why_bytes - used, "%s%s: %s", used ? "; " : "",
				transport_table[i]->name, problem);
	}
}

static enum options_outcome find_transport(const struct given *given, struct daemon_options *options)
{
	const char *name = given->text[OPTION_TRANSPORT] ? given->text[OPTION_TRANSPORT] : TRANSPORT_AUTO;
	char why[400] = "";

	options->transport = transport_find(name);
	if (!options->transport && strcmp(name, TRANSPORT_AUTO) != 0) {
		wrong(given, "--transport '%s' is unknown; there are %s", name, TRANSPORT_NAMES);
		return OPTIONS_WRONG;
	}
	if (options->transport && options->transport->probe(why, sizeof(why)) == 0)
		return OPTIONS_RUN;
	if (!options->transport)
		explain_all(why, sizeof(why));
	wrong(given, "no transport works here: %s", why);
	return OPTIONS_CANNOT;
}

enum options_outcome options_read(
	int argc, char **argv, struct daemon_options *ret, char *problem, size_t problem_bytes)
{
	struct given given = {.problem = problem, .problem_bytes = problem_bytes};
	bool is_right;

	memset(ret, 0, sizeof(*ret));
	ret->ready_fd = -1;
	is_right = collect(argc, argv, &given);
	if (is_right && given.text[OPTION_HELP]) {
		print_help();
		return OPTIONS_SHOWN;
	}
	if (is_right && given.text[OPTION_VERSION]) {
		puts("folioswapd " FOLIOSWAP_VERSION);
		return OPTIONS_SHOWN;
	}
	ret->discard = !given.text[OPTION_NO_DISCARD];
	ret->merge = given.text[OPTION_MERGE];
	ret->no_standby = given.text[OPTION_NO_STANDBY];
	ret->allow_unsafe = given.text[OPTION_ALLOW_UNSAFE];
	ret->foreground = given.text[OPTION_FOREGROUND];
	if (!read_ready_fd(&given, ret) || !is_right || !read_name(&given, ret) || !read_store(&given, &ret->store) ||
		!read_fault(&given, ret))
		return OPTIONS_WRONG;
	return find_transport(&given, ret);
}
