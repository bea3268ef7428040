// SPDX-License-Identifier: GPL-2.0-or-later
/* What happened within an interval, on one line. */
#include "stat_watch.h"

#include "cli_table.h"

#include <math.h>

#define MB 1e6

void watch_heading(FILE *out)
{
	fprintf(out, "%4s %8s %8s %8s %7s %7s | %8s %7s %7s | %8s %7s %7s | %8s %6s %7s %6s %6s\n", "NAME", "SWAPPED",
		"DATA", "STORED", "EFFECT", "RATIO", "READ/s", "P50", "P99", "WRITE/s", "P50", "P99", "DISC/s", "WAITS",
		"REFUSED", "ERRORS", "CPU");
}

static struct hist all_orders(const struct view *view, enum stats_kind kind)
{
	struct hist all = {0};

	for (unsigned order = 0; order < ORDER_COUNT; order++)
		hist_add(&all, &view->sum.io.op[kind][order].latency);
	return all;
}

static void print_value(FILE *out, int width, enum value_kind kind, const void *at, size_t bytes)
{
	char text[32];

	fprintf(out, "%*s ", width, value_format(kind, at, bytes, false, text, sizeof(text)) ? text : "-");
}

/* Megabytes a second and latencies of one kind. */
static void print_kind(FILE *out, const struct view *delta, enum stats_kind kind, double seconds)
{
	struct hist all = all_orders(delta, kind);
	char rate[32];

	snprintf(rate, sizeof(rate), "%.1fMB", (double)delta->bytes[kind] / MB / seconds);
	fprintf(out, "| %8s ", rate);
	if (kind == STATS_DISCARD)
		return;
	for (unsigned permille = 500; permille <= 990; permille += 490) {
		uint64_t ns = delta->requests[kind] ? hist_quantile_ns(&all, permille) : UINT64_MAX;

		print_value(out, 7, VALUE_NS, &ns, sizeof(ns));
	}
}

/* A server that took over begins at nothing. */
static uint64_t cpu_ns(const struct view *later, const struct view *earlier)
{
	uint64_t now_ns = later->info.daemon_cpu_ns, before_ns = earlier->info.daemon_cpu_ns;

	return now_ns >= before_ns ? now_ns - before_ns : now_ns;
}

void watch_line(FILE *out, const struct view *delta, const struct view *earlier)
{
	const struct figures *figures = &delta->figures;
	double seconds = fmax((double)(delta->taken_ns - earlier->taken_ns) / 1e9, 1e-3);
	double cpu = (double)cpu_ns(delta, earlier) / 1e9 / seconds;
	uint64_t waits = delta->sum.io.slot_waits + delta->sum.io.room_waits;
	uint64_t errors = delta->errors[STATS_READ] + delta->errors[STATS_WRITE] + delta->errors[STATS_DISCARD];

	fprintf(out, "%4s ", delta->info.name);
	print_value(out, 8, VALUE_BYTES, &figures->swapped_bytes, sizeof(figures->swapped_bytes));
	print_value(out, 8, VALUE_BYTES, &figures->data_bytes, sizeof(figures->data_bytes));
	print_value(out, 8, VALUE_BYTES, &figures->stored_bytes, sizeof(figures->stored_bytes));
	print_value(out, 7, VALUE_RATIO, &figures->effective_ratio, sizeof(figures->effective_ratio));
	print_value(out, 7, VALUE_RATIO, &figures->stored_ratio, sizeof(figures->stored_ratio));
	for (unsigned kind = 0; kind < STATS_KINDS; kind++)
		print_kind(out, delta, kind, seconds);
	print_value(out, 6, VALUE_COUNT, &waits, sizeof(waits));
	print_value(out, 7, VALUE_COUNT, &delta->sum.io.refused, sizeof(delta->sum.io.refused));
	print_value(out, 6, VALUE_COUNT, &errors, sizeof(errors));
	fprintf(out, "%5.0f%%\n", cpu * 100);
	fflush(out);
}
