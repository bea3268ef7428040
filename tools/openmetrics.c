// SPDX-License-Identifier: GPL-2.0-or-later
/* OpenMetrics text: gauges and counters from the field table, requests and latencies by kind and order. */
#include "openmetrics.h"

#include "cleanup.h"
#include "cli.h"
#include "fields.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* Histograms are written in octaves: 1 us, 2 us, ... 17 s. */
#define LE_MIN_SHIFT 10
#define LE_MAX_SHIFT HIST_MAX_SHIFT

static const char *const kind_names[STATS_KINDS] = {"read", "write", "discard"};
static const char *const stage_names[STATS_STAGES] = {"copy", "codec", "pool", "wait"};

struct devices {
	FILE *out;
	struct view *const *views;
	unsigned count;
};

static const char *unit_of_kind(enum value_kind kind)
{
	switch (kind) {
	case VALUE_BYTES:
		return "bytes";
	case VALUE_NS:
		return "seconds";
	case VALUE_RATIO:
	case VALUE_SHARE:
		return "ratio";
	default:
		return "";
	}
}

/* The unit is the end of the name, once. */
static void family_name(const char *middle, const char *unit, char *name, size_t name_bytes)
{
	size_t length = strlen(middle), unit_length = strlen(unit);
	bool has_unit = !unit_length || (length > unit_length && strcmp(middle + length - unit_length, unit) == 0 &&
						middle[length - unit_length - 1] == '_');

	snprintf(name, name_bytes, "folioswap_%s%s%s", middle, has_unit ? "" : "_", has_unit ? "" : unit);
}

static void write_head(FILE *out, const char *name, const char *type, const char *unit, const char *help)
{
	fprintf(out, "# TYPE %s %s\n", name, type);
	if (*unit)
		fprintf(out, "# UNIT %s %s\n", name, unit);
	fprintf(out, "# HELP %s %s\n", name, help);
}

/* Label values: backslash, quote and line feed are escaped. */
static void write_label(FILE *out, const char *label, const char *value)
{
	fprintf(out, "%s=\"", label);
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", out);
		else if (*value == '\\' || *value == '"')
			fprintf(out, "\\%c", *value);
		else
			fputc(*value, out);
	}
	fputc('"', out);
}

static void write_field(const struct devices *devices, const struct field *field)
{
	bool is_counter = field->flags & FIELD_COUNTER;
	const char *unit = unit_of_kind(field->kind);
	char name[96];

	family_name(field->metric, unit, name, sizeof(name));
	write_head(devices->out, name, is_counter ? "counter" : "gauge", unit, field->help);
	for (unsigned i = 0; i < devices->count; i++) {
		const struct view *view = devices->views[i];
		double value = value_number(field->kind, (const char *)view + field->offset, field->bytes);

		if (!view->is_up || isnan(value))
			continue;
		fprintf(devices->out, "%s%s{device=\"%s\"} %.17g\n", name, is_counter ? "_total" : "", view->info.name,
			value);
	}
}

static void write_info(const struct devices *devices)
{
	write_head(devices->out, "folioswap_device", "info", "", "how the device is set up");
	for (unsigned i = 0; i < devices->count; i++) {
		const struct view *view = devices->views[i];

		if (!view->is_up)
			continue;
		fprintf(devices->out, "folioswap_device_info{device=\"%s\",", view->info.name);
		write_label(devices->out, "node", view->info.node);
		fputc(',', devices->out);
		write_label(devices->out, "codec", view->codec);
		fputc(',', devices->out);
		write_label(devices->out, "transport", view->info.transport);
		fprintf(devices->out, ",unit=\"%u\",frame=\"%u\"} 1\n", view->info.unit_bytes, view->info.frame_bytes);
	}
}

static void write_up(const struct devices *devices)
{
	write_head(devices->out, "folioswap_up", "gauge", "", "1 while the daemon of the device answers");
	for (unsigned i = 0; i < devices->count; i++)
		fprintf(devices->out, "folioswap_up{device=\"%s\"} %d\n", devices->views[i]->info.name,
			devices->views[i]->is_up);
}

enum op_counter {
	OP_REQUESTS,
	OP_BYTES,
	OP_ERRORS,
};

static uint64_t op_value(const struct stats_op *op, enum op_counter counter)
{
	return counter == OP_REQUESTS ? op->requests : counter == OP_BYTES ? op->bytes : op->errors;
}

/* Orders that a device never saw have no samples: the file would be mostly zeros. */
static void write_op_counter(
	const struct devices *devices, enum op_counter counter, const char *name, const char *unit, const char *help)
{
	write_head(devices->out, name, "counter", unit, help);
	for (unsigned i = 0; i < devices->count; i++)
		for (unsigned kind = 0; kind < STATS_KINDS; kind++)
			for (unsigned order = 0; order < ORDER_COUNT; order++) {
				const struct stats_op *op = &devices->views[i]->sum.io.op[kind][order];

				if (op->requests && devices->views[i]->is_up)
					fprintf(devices->out, "%s_total{device=\"%s\",kind=\"%s\",order=\"%u\"} %llu\n",
						name, devices->views[i]->info.name, kind_names[kind], order,
						(unsigned long long)op_value(op, counter));
			}
}

static void write_stages(const struct devices *devices)
{
	write_head(devices->out, "folioswap_stage_seconds", "counter", "seconds", "where the time of requests went");
	for (unsigned i = 0; i < devices->count; i++)
		for (unsigned kind = 0; kind < STATS_KINDS && devices->views[i]->is_up; kind++)
			for (unsigned stage = 0; stage < STATS_STAGES; stage++)
				fprintf(devices->out,
					"folioswap_stage_seconds_total{device=\"%s\",kind=\"%s\",stage=\"%s\"} %.9f\n",
					devices->views[i]->info.name, kind_names[kind], stage_names[stage],
					(double)devices->views[i]->sum.io.stage_ns[kind][stage] / 1e9);
}

/*
 * Buckets end one ns before a power of two, so that "le" is exact. Events of
 * the last bucket may be longer: only +Inf holds them.
 */
static void write_histogram(FILE *out, const char *name, const char *labels, const struct hist *hist)
{
	unsigned long long below = 0;
	unsigned bucket = 0;

	for (unsigned shift = LE_MIN_SHIFT; shift <= LE_MAX_SHIFT; shift++) {
		uint64_t le_ns = (UINT64_C(1) << shift) - 1;

		for (; bucket < HIST_BUCKETS - 1 && bucket <= hist_bucket(le_ns); bucket++)
			below += hist->count[bucket];
		if (shift < LE_MAX_SHIFT)
			fprintf(out, "%s_bucket{%s,le=\"%.9f\"} %llu\n", name, labels, (double)le_ns / 1e9, below);
	}
	below += hist->count[HIST_BUCKETS - 1];
	fprintf(out, "%s_bucket{%s,le=\"+Inf\"} %llu\n", name, labels, below);
	fprintf(out, "%s_count{%s} %llu\n", name, labels, below);
	fprintf(out, "%s_sum{%s} %.9f\n", name, labels, (double)hist->total_ns / 1e9);
}

static void write_latencies(const struct devices *devices)
{
	static const char name[] = "folioswap_request_latency_seconds";
	char labels[96];

	write_head(devices->out, name, "histogram", "seconds", "time from receiving a request to answering it");
	for (unsigned i = 0; i < devices->count; i++)
		for (unsigned kind = 0; kind < STATS_KINDS && devices->views[i]->is_up; kind++)
			for (unsigned order = 0; order < ORDER_COUNT; order++) {
				const struct stats_op *op = &devices->views[i]->sum.io.op[kind][order];

				if (!op->requests)
					continue;
				snprintf(labels, sizeof(labels), "device=\"%s\",kind=\"%s\",order=\"%u\"",
					devices->views[i]->info.name, kind_names[kind], order);
				write_histogram(devices->out, name, labels, &op->latency);
			}
}

static void write_closes(const struct devices *devices)
{
	static const char name[] = "folioswap_close_seconds";
	char labels[96];

	write_head(devices->out, name, "histogram", "seconds",
		"time from starting to compress a slot to its objects in use");
	for (unsigned i = 0; i < devices->count; i++) {
		snprintf(labels, sizeof(labels), "device=\"%s\"", devices->views[i]->info.name);
		if (devices->views[i]->is_up)
			write_histogram(devices->out, name, labels, &devices->views[i]->sum.worker.close_ns);
	}
}

void openmetrics_write(FILE *out, struct view *const *views, unsigned count)
{
	const struct devices devices = {.out = out, .views = views, .count = count};

	write_up(&devices);
	write_info(&devices);
	for (unsigned i = 0; i < fields_count; i++) {
		if (fields[i].metric)
			write_field(&devices, &fields[i]);
	}
	write_op_counter(&devices, OP_REQUESTS, "folioswap_requests", "", "answered requests");
	write_op_counter(&devices, OP_BYTES, "folioswap_request_bytes", "bytes", "bytes of answered requests");
	write_op_counter(&devices, OP_ERRORS, "folioswap_request_errors", "", "requests that failed");
	write_stages(&devices);
	write_latencies(&devices);
	write_closes(&devices);
	fputs("# EOF\n", out);
}

/* Readable for the collector's own user. An old .tmp, or a link that somebody put there, is not followed. */
static int open_temporary(const char *path)
{
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
}

static int fail_write(const char *path, const char *temporary)
{
	int error = errno;

	unlink(temporary);
	return cli_fail(CLI_FAILED, "--openmetrics: cannot write %s: %s", path, strerror(error));
}

int openmetrics_write_file(const char *path, struct view *const *views, unsigned count)
{
	char temporary[4096];
	FILE *file;
	int fd;

	if (strcmp(path, "-") == 0) {
		openmetrics_write(stdout, views, count);
		return CLI_DONE;
	}
	if (snprintf(temporary, sizeof(temporary), "%s.tmp", path) >= (int)sizeof(temporary))
		return cli_fail(CLI_USAGE, "--openmetrics: the path is too long");
	fd = open_temporary(temporary);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		return fail_write(path, temporary);
	openmetrics_write(file, views, count);
	if (ferror(file) | fclose(file))
		return fail_write(path, temporary);
	if (rename(temporary, path) < 0)
		return fail_write(path, temporary);
	return CLI_DONE;
}
