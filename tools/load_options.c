// SPDX-License-Identifier: GPL-2.0-or-later
/* The command line; the help is printed from the same tables. */
#include "load_options.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "load_workload.h"
#include "parse.h"

#define SECONDS_MAX 86400
#define WORKERS_DEFAULT_MAX 4

const struct load_workload *const load_workloads[] = {
	&load_seq,
	&load_pageout,
	&load_usemem,
	&load_shmem,
	&load_random,
	NULL,
};

enum option_id {
	OPTION_SIZE = 256,
	OPTION_LIMIT,
	OPTION_PASSES,
	OPTION_WORKERS,
	OPTION_THP,
	OPTION_NO_THP,
	OPTION_CONTENT,
	OPTION_POOL,
	OPTION_SEED,
	OPTION_CGROUP,
	OPTION_DURATION,
	OPTION_OPS,
	OPTION_HOLD,
	OPTION_HOLD_CMD,
	OPTION_JSON,
	OPTION_HELP,
	OPTION_VERSION,
};

struct option_help {
	const char *name;
	const char *argument; /* NULL: takes none */
	enum option_id id;
	const char *text;
};

static const struct option_help option_table[] = {
	{"size", "SIZE", OPTION_SIZE, "working set of all workers together (300M)"},
	{"limit", "SIZE", OPTION_LIMIT, "memory limit: makes a cgroup for the workers (none)"},
	{"passes", "N", OPTION_PASSES, "repetitions (depends on the workload)"},
	{"workers", "N", OPTION_WORKERS, "processes, each pinned to a CPU (one per CPU, at most 4)"},
	{"thp", NULL, OPTION_THP, "ask for huge pages"},
	{"no-thp", NULL, OPTION_NO_THP, "refuse huge pages (neither: the system's setting)"},
	{"content", "KIND", OPTION_CONTENT, "what the pages hold, see below (heap)"},
	{"pool", "SIZE", OPTION_POOL, "bytes of different content (64M)"},
	{"seed", "N", OPTION_SEED, "seed of generated contents and of random (1)"},
	{"cgroup", "NAME", OPTION_CGROUP, "name of the cgroup made by --limit (swapload)"},
	{"duration", "S", OPTION_DURATION, "random: seconds a pass (10)"},
	{"ops", "N", OPTION_OPS, "random: operations a pass, instead of a duration"},
	{"hold", "S", OPTION_HOLD, "wait so long when most is in swap"},
	{"hold-cmd", "COMMAND", OPTION_HOLD_CMD, "run a shell command at that moment"},
	{"json", NULL, OPTION_JSON, "one JSON object instead of text"},
	{"help", NULL, OPTION_HELP, "this text"},
	{"version", NULL, OPTION_VERSION, "the version"},
};

#define OPTION_COUNT (sizeof(option_table) / sizeof(option_table[0]))

static void print_help(void)
{
	char left[32];

	printf("Usage: swapload WORKLOAD [options]\nSwap workloads that verify every byte.\n\nWorkloads:\n");
	for (unsigned i = 0; load_workloads[i]; i++)
		printf("  %-20s %s\n", load_workloads[i]->name, load_workloads[i]->summary);
	printf("\nOptions:\n");
	for (unsigned i = 0; i < OPTION_COUNT; i++) {
		snprintf(left, sizeof(left), "--%s %s", option_table[i].name,
			option_table[i].argument ? option_table[i].argument : "");
		printf("  %-20s %s\n", left, option_table[i].text);
	}
	printf("\nContents:\n");
	for (const struct load_content_kind *kind = load_content_kinds; kind->name; kind++)
		printf("  %-20s %s\n", kind->name, kind->summary);
	printf("\nSizes: 4096, 64K, 300M, 1.5G. Exit codes: 0 every byte was right, 1 not, or the run failed, 2 "
	       "usage.\n");
}

static int refuse(const char *what, const char *value, const char *advice)
{
	fprintf(stderr, "swapload: %s '%s': %s; see swapload --help\n", what, value, advice);
	return LOAD_EXIT_USAGE;
}

/* Returns -1 (fine) or the exit code. */
static int take_size(const char *name, const char *value, uint64_t min, uint64_t *ret_bytes)
{
	uint64_t bytes;

	if (parse_size(value, &bytes) < 0 || bytes < min || bytes > (UINT64_C(1) << 44))
		return refuse(
			name, value, min >= LOAD_FOLIO_BYTES ? "want a size of 2M .. 16T" : "want a size of 1M .. 16T");
	*ret_bytes = bytes;
	return -1;
}

static int take_number(const char *name, const char *value, long min, long max, long *ret_number)
{
	char range[64];

	if (parse_int(value, min, max, ret_number) == 0)
		return -1;
	snprintf(range, sizeof(range), "want a whole number of %ld .. %ld", min, max);
	return refuse(name, value, range);
}

static int take_unsigned(const char *name, const char *value, unsigned min, unsigned max, unsigned *ret_number)
{
	long number = 0;
	int code = take_number(name, value, min, max, &number);

	if (code < 0)
		*ret_number = (unsigned)number;
	return code;
}

static int take_u64(const char *name, const char *value, long min, uint64_t *ret_number)
{
	long number = 0;
	int code = take_number(name, value, min, INT64_MAX, &number);

	if (code < 0)
		*ret_number = (uint64_t)number;
	return code;
}

static int take_content(const char *value, struct load_options *options)
{
	options->content = load_content_kind_find(value);
	return options->content ? -1 : refuse("--content", value, "no such content");
}

/* One path component that means the same to the cgroup file system and to a shell. */
static int take_cgroup(const char *value, struct load_options *options)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	if (!*value || *value == '.' || value[strspn(value, allowed)] || strlen(value) > 64)
		return refuse("--cgroup", value, "want letters, digits, '.', '_' or '-', at most 64");
	options->cgroup_name = value;
	return -1;
}

static int take_option(int id, const char *value, struct load_options *options)
{
	switch (id) {
	case OPTION_SIZE:
		return take_size("--size", value, LOAD_FOLIO_BYTES, &options->size_bytes);
	case OPTION_LIMIT:
		return take_size("--limit", value, MIB, &options->limit_bytes);
	case OPTION_POOL:
		return take_size("--pool", value, LOAD_FOLIO_BYTES, &options->pool_bytes);
	case OPTION_PASSES:
		return take_unsigned("--passes", value, 1, LOAD_PASSES_MAX, &options->passes);
	case OPTION_WORKERS:
		return take_unsigned("--workers", value, 1, LOAD_WORKERS_MAX, &options->workers);
	case OPTION_DURATION:
		return take_unsigned("--duration", value, 1, SECONDS_MAX, &options->duration_s);
	case OPTION_HOLD:
		return take_unsigned("--hold", value, 0, SECONDS_MAX, &options->hold_s);
	case OPTION_OPS:
		return take_u64("--ops", value, 1, &options->operations);
	case OPTION_SEED:
		return take_u64("--seed", value, 0, &options->seed);
	case OPTION_CONTENT:
		return take_content(value, options);
	case OPTION_CGROUP:
		return take_cgroup(value, options);
	case OPTION_HOLD_CMD:
		options->hold_command = value;
		return -1;
	case OPTION_THP:
		options->thp = LOAD_THP_ON;
		return -1;
	case OPTION_NO_THP:
		options->thp = LOAD_THP_OFF;
		return -1;
	case OPTION_JSON:
		options->json = true;
		return -1;
	case OPTION_HELP:
		print_help();
		return 0;
	case OPTION_VERSION:
		printf("swapload %s\n", FOLIOSWAP_VERSION);
		return 0;
	default: /* getopt_long has said what is wrong */
		fprintf(stderr, "swapload: see swapload --help\n");
		return LOAD_EXIT_USAGE;
	}
}

static int take_workload(int count, char **names, struct load_options *options)
{
	if (count == 0) {
		fprintf(stderr, "swapload: no workload given; see swapload --help\n");
		return LOAD_EXIT_USAGE;
	}
	if (count > 1)
		return refuse("argument", names[1], "one workload only");
	for (unsigned i = 0; load_workloads[i]; i++) {
		if (strcmp(load_workloads[i]->name, names[0]) == 0) {
			options->workload = load_workloads[i];
			return -1;
		}
	}
	return refuse("workload", names[0], "no such workload");
}

static unsigned default_workers(void)
{
	cpu_set_t set;
	unsigned count = 1;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		count = (unsigned)CPU_COUNT(&set);
	return count > WORKERS_DEFAULT_MAX ? WORKERS_DEFAULT_MAX : count;
}

/* What depends on more than one option. */
static int settle(struct load_options *options)
{
	if (!options->passes)
		options->passes = options->workload->passes_default;
	options->pool_bytes = round_up_u64(options->pool_bytes, LOAD_FOLIO_BYTES);
	if (options->size_bytes / options->workers < LOAD_FOLIO_BYTES) {
		fprintf(stderr, "swapload: --size gives each of %u workers less than 2 MiB; see swapload --help\n",
			options->workers);
		return LOAD_EXIT_USAGE;
	}
	return -1;
}

int load_options_parse(int argc, char **argv, struct load_options *ret_options)
{
	struct option options[OPTION_COUNT + 1] = {0};
	int id, code = -1;

	*ret_options = (struct load_options){
		.content = &load_content_kinds[0],
		.size_bytes = 300 * MIB,
		.pool_bytes = 64 * MIB,
		.seed = 1,
		.workers = default_workers(),
		.duration_s = 10,
		.cgroup_name = "swapload",
	};
	for (unsigned i = 0; i < OPTION_COUNT; i++) {
		options[i].name = option_table[i].name;
		options[i].has_arg = option_table[i].argument ? required_argument : no_argument;
		options[i].val = (int)option_table[i].id;
	}
	optind = 0; /* anew, also when called more than once */
	while (code < 0 && (id = getopt_long(argc, argv, "", options, NULL)) != -1)
		code = take_option(id, optarg, ret_options);
	if (code < 0)
		code = take_workload(argc - optind, argv + optind, ret_options);
	return code < 0 ? settle(ret_options) : code;
}
