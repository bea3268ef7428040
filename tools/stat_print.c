// SPDX-License-Identifier: GPL-2.0-or-later
/* The outputs of stat: summary, orders, lines in zram's format, metrics. */
#include "stat_print.h"

#include "cli.h"
#include "fields.h"
#include "openmetrics.h"
#include "stat_orders.h"
#include "units.h"

#include <string.h>

static void add_summary_row(
	struct table *table, const struct field *field, const struct view *view, const struct table_format *format)
{
	char text[512];
	bool has_value = value_format(
		field->kind, (const char *)view + field->offset, field->bytes, format->exact, text, sizeof(text));

	if (!has_value || (!view->is_up && !(field->flags & FIELD_DEAD)))
		return;
	if ((field->flags & FIELD_EVENT) &&
		value_number(field->kind, (const char *)view + field->offset, field->bytes) <= 0)
		return;
	table_row(table);
	table_cell(table, 0, field->column, strlen(field->column));
	table_cell(table, 1, text, strlen(text));
	if (!format->raw)
		table_cell(table, 2, field->help, strlen(field->help));
}

/* What it does comes first, how it was set up last. */
static int print_summary_text(const struct stat_request *stat, const struct view *view)
{
	struct table *table;
	int error;

	if (table_create(&table, "device", &stat->format))
		return -1;
	table_column(table, "FIELD", VALUE_TEXT);
	table_column(table, "VALUE", VALUE_TEXT);
	if (!stat->format.raw)
		table_column(table, "MEANING", VALUE_TEXT);
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned i = 0; i < fields_count; i++) {
			bool is_config = fields[i].flags & FIELD_CONFIG;

			if (i == 0 ? pass == 0 : is_config == (pass == 1))
				add_summary_row(table, &fields[i], view, &stat->format);
		}
	error = table_print(table, stdout);
	table_destroy(table);
	return error;
}

static int print_summary_json(const struct stat_request *stat, struct view *const *views)
{
	struct table *table;
	int error;

	if (table_create(&table, "devices", &stat->format))
		return -1;
	for (unsigned i = 0; i < fields_count; i++)
		table_column(table, fields[i].column, fields[i].kind);
	for (unsigned i = 0; i < stat->count; i++) {
		table_row(table);
		for (unsigned column = 0; column < fields_count; column++)
			fields_cell(table, column, &fields[column], views[i]);
	}
	error = table_print(table, stdout);
	table_destroy(table);
	return error;
}

static int print_summary(const struct stat_request *stat, struct view *const *views)
{
	int error = 0;

	if (stat->format.json)
		return print_summary_json(stat, views);
	for (unsigned i = 0; i < stat->count && !error; i++) {
		if (i)
			putchar('\n');
		error = print_summary_text(stat, views[i]);
	}
	return error;
}

static int print_orders(const struct stat_request *stat, struct view *const *views)
{
	struct table *table = orders_create(&stat->format);
	int error;

	if (!table)
		return -1;
	for (unsigned i = 0; i < stat->count; i++)
		orders_add(table, &stat->format, views[i]);
	error = table_print(table, stdout);
	table_destroy(table);
	return error;
}

/*
 * zram's fields: data, payload, stored, limit (0: none), most ever stored,
 * same-filled pages, pages moved by compaction, pages stored raw now, and ever.
 */
static void print_mm_stat(const struct view *view)
{
	const struct figures *figures = &view->figures;
	uint64_t limit = view->info.limit_bytes == UINT64_MAX ? 0 : view->info.limit_bytes;
	uint64_t peak = view->gauges.extent_peak_bytes + figures->index_bytes;
	uint64_t raw_ever_bytes = view->sum.io.raw_bytes + view->sum.worker.raw_bytes;

	printf("%8lu %8lu %8lu %8lu %8lu %8lu %8lu %8lu %8lu\n", figures->data_bytes, figures->payload_bytes,
		figures->stored_bytes, limit, peak > figures->stored_bytes ? peak : figures->stored_bytes,
		view->gauges.same_bytes >> GRANULE_SHIFT, view->sum.worker.moved_bytes >> GRANULE_SHIFT,
		view->gauges.raw_bytes >> GRANULE_SHIFT, raw_ever_bytes >> GRANULE_SHIFT);
}

/* zram's fields: failed reads, failed writes, invalid requests (none here), freed pages. */
static void print_io_stat(const struct view *view)
{
	printf("%8lu %8lu %8lu %8lu\n", view->errors[STATS_READ], view->errors[STATS_WRITE], UINT64_C(0),
		view->bytes[STATS_DISCARD] >> GRANULE_SHIFT);
}

static int print_lines(const struct stat_request *stat, struct view *const *views)
{
	for (unsigned i = 0; i < stat->count; i++) {
		if (views[i]->is_up)
			(stat->mode == MODE_MM_STAT ? print_mm_stat : print_io_stat)(views[i]);
	}
	return 0;
}

int stat_print(const struct stat_request *stat, struct view *const *views)
{
	int error = 0;

	switch (stat->mode) {
	case MODE_OPENMETRICS:
		return openmetrics_write_file(stat->metrics_path, views, stat->count);
	case MODE_ORDERS:
		error = print_orders(stat, views);
		break;
	case MODE_SUMMARY:
		error = print_summary(stat, views);
		break;
	case MODE_MM_STAT:
	case MODE_IO_STAT:
		error = print_lines(stat, views);
		break;
	}
	return error ? cli_fail(CLI_FAILED, "out of memory") : CLI_DONE;
}
