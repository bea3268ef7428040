// SPDX-License-Identifier: GPL-2.0-or-later
/* folioswap stat: everything about one device or all, once or again and again. */
#include "cli.h"
#include "cli_device.h"
#include "cli_process.h"
#include "cli_value.h"
#include "stat_orders.h"
#include "stat_print.h"
#include "stat_watch.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define HEADING_EVERY 20
#define SECONDS_MAX 86400

enum {
	OPTION_COUNT = 300,
};

static const struct cli_option options[] = {
	{"orders", NULL, MODE_ORDERS, "latencies, sizes and stages by kind of request and order"},
	{"watch", "[=SECONDS]", 'w', "again and again, what happened since the last time (default 1)"},
	{"count", "N", OPTION_COUNT, "with --watch: end after N times"},
	{"mm-stat", NULL, MODE_MM_STAT, "a line in the format of zram's mm_stat"},
	{"io-stat", NULL, MODE_IO_STAT, "a line in the format of zram's io_stat"},
	{"openmetrics", "FILE", MODE_OPENMETRICS, "write metrics to FILE (by way of FILE.tmp), - is stdout"},
	{"json", NULL, 'J', "JSON; exact numbers"},
	{"raw", NULL, 'r', "columns separated by one blank, not aligned"},
	{"noheadings", NULL, 'n', "no line of column names"},
	{"bytes", NULL, 'b', "exact numbers: bytes, nanoseconds, fractions"},
	{NULL, NULL, 0, NULL},
};

static int set_mode(struct stat_request *stat, int mode)
{
	if (stat->mode != MODE_SUMMARY && stat->mode != (enum stat_mode)mode)
		return cli_fail(CLI_USAGE, "--orders, --mm-stat, --io-stat and --openmetrics exclude each other");
	stat->mode = (enum stat_mode)mode;
	return CLI_DONE;
}

static int set_option(struct stat_request *stat, int id, const char *value)
{
	switch (id) {
	case MODE_OPENMETRICS:
		stat->metrics_path = value;
		return set_mode(stat, id);
	case MODE_ORDERS:
	case MODE_MM_STAT:
	case MODE_IO_STAT:
		return set_mode(stat, id);
	case 'w':
		return value_count("--watch", value ? value : "1", 1, SECONDS_MAX, &stat->watch_seconds);
	case OPTION_COUNT:
		return value_count("--count", value, 1, 1U << 30, &stat->watch_count);
	case 'J':
		stat->format.json = true;
		break;
	case 'r':
		stat->format.raw = true;
		break;
	case 'n':
		stat->format.noheadings = true;
		break;
	case 'b':
		stat->format.exact = true;
		break;
	}
	return CLI_DONE;
}

static int check_options(const struct stat_request *stat)
{
	bool is_table = stat->mode == MODE_SUMMARY || stat->mode == MODE_ORDERS;

	if (stat->format.json && (stat->watch_seconds || stat->format.raw || !is_table))
		return cli_fail(CLI_USAGE, "--json goes with the summary or --orders, without --watch and --raw");
	if (stat->watch_count && !stat->watch_seconds)
		return cli_fail(CLI_USAGE, "--count says how often --watch repeats; --watch is missing");
	return CLI_DONE;
}

static int parse(int argc, char **argv, struct stat_request *stat)
{
	const char *value;
	int id;

	while ((id = cli_next_option(argc, argv, &value)) != CLI_OPTION_END) {
		if (id == CLI_OPTION_HELP)
			return CLI_OPTION_HELP;
		if (id == CLI_OPTION_ERROR || set_option(stat, id, value))
			return CLI_USAGE;
	}
	return check_options(stat);
}

static int find_devices(struct stat_request *stat, int operands, char **operand)
{
	if (!operands) {
		stat->count = (unsigned)device_names(stat->names);
		return CLI_DONE;
	}
	if (operands > CONTROL_DEVICES_MAX)
		return cli_fail(CLI_USAGE, "more than %d devices", CONTROL_DEVICES_MAX);
	for (int i = 0; i < operands; i++) {
		if (device_resolve(operand[i], stat->names[i]))
			return CLI_NO_DEVICE;
	}
	stat->count = (unsigned)operands;
	return CLI_DONE;
}

static int load_views(struct stat_request *stat)
{
	int result = CLI_DONE;

	for (unsigned i = 0; i < stat->count; i++) {
		memset(stat->views[i], 0, sizeof(*stat->views[i]));
		result = cli_first_failure(result, view_load(stat->names[i], stat->views[i]));
	}
	return result;
}

static bool shows_intervals(const struct stat_request *stat)
{
	return stat->mode == MODE_SUMMARY || stat->mode == MODE_ORDERS;
}

/* What happened between earlier and views goes to interval; a device that was away in between has none. */
static void take_intervals(struct stat_request *stat)
{
	for (unsigned i = 0; i < stat->count; i++) {
		if (stat->views[i]->is_up && stat->earlier[i]->is_up)
			view_difference(stat->interval[i], stat->views[i], stat->earlier[i]);
		else
			stat->interval[i]->is_up = false;
	}
}

static int print_intervals(const struct stat_request *stat, unsigned turn)
{
	if (stat->mode == MODE_ORDERS)
		return stat_print(stat, stat->interval);
	if (turn % HEADING_EVERY == 0 && !stat->format.noheadings)
		watch_heading(stdout);
	for (unsigned i = 0; i < stat->count; i++) {
		if (stat->interval[i]->is_up)
			watch_line(stdout, stat->interval[i], stat->earlier[i]);
	}
	return CLI_DONE;
}

static void swap_views(struct stat_request *stat)
{
	for (unsigned i = 0; i < stat->count; i++) {
		struct view *later = stat->views[i];

		stat->views[i] = stat->earlier[i];
		stat->earlier[i] = later;
	}
}

static int watch(struct stat_request *stat)
{
	int result = CLI_DONE;

	for (unsigned turn = 0; !stat->watch_count || turn < stat->watch_count; turn++) {
		swap_views(stat);
		process_sleep_ms(stat->watch_seconds * 1000);
		result = load_views(stat);
		if (result == CLI_NO_DEVICE)
			break;
		take_intervals(stat);
		result = shows_intervals(stat) ? print_intervals(stat, turn) : stat_print(stat, stat->views);
		if (result || fflush(stdout))
			break;
	}
	return result;
}

static int create_views(struct stat_request *stat)
{
	for (unsigned i = 0; i < stat->count; i++) {
		stat->views[i] = view_create();
		stat->earlier[i] = view_create();
		stat->interval[i] = view_create();
		if (!stat->views[i] || !stat->earlier[i] || !stat->interval[i])
			return cli_fail(CLI_FAILED, "out of memory");
	}
	return CLI_DONE;
}

static void destroy_views(struct stat_request *stat)
{
	for (unsigned i = 0; i < stat->count; i++) {
		view_destroy(stat->views[i]);
		view_destroy(stat->earlier[i]);
		view_destroy(stat->interval[i]);
	}
}

static int print_once(struct stat_request *stat)
{
	int result = load_views(stat);

	return cli_first_failure(result, stat_print(stat, stat->views));
}

static int run(int argc, char **argv)
{
	struct stat_request stat = {0};
	int result = parse(argc, argv, &stat);

	if (result)
		return result == CLI_OPTION_HELP ? CLI_DONE : result;
	result = find_devices(&stat, argc - optind, argv + optind);
	if (result)
		return result;
	result = create_views(&stat);
	if (!result && stat.watch_seconds) {
		result = load_views(&stat);
		result = result == CLI_NO_DEVICE ? result : watch(&stat);
	} else if (!result) {
		result = print_once(&stat);
	}
	destroy_views(&stat);
	return result;
}

const struct cli_verb cmd_stat = {
	.name = "stat",
	.arguments = "[OPTION...] [NAME...]",
	.summary = "Show what devices hold and do",
	.options = options,
	.run = run,
};
