// SPDX-License-Identifier: GPL-2.0-or-later
/* Latencies by kind and order. */
#include "stat_orders.h"

#include "units.h"

#include <math.h>
#include <string.h>

enum column {
	COLUMN_NAME,
	COLUMN_KIND,
	COLUMN_ORDER,
	COLUMN_SIZE,
	COLUMN_REQUESTS,
	COLUMN_BYTES,
	COLUMN_ERRORS,
	COLUMN_P50,
	COLUMN_P90,
	COLUMN_P99,
	COLUMN_P999,
	COLUMN_MAX,
	COLUMN_COPY,
	COLUMN_CODEC,
	COLUMN_POOL,
	COLUMN_WAIT,
	COLUMN_REST,
	COLUMN_STORED,
	COLUMN_RATIO,
	COLUMN_AMP,
};

static const struct {
	const char *name;
	enum value_kind kind;
} columns[] = {
	[COLUMN_NAME] = {"NAME", VALUE_TEXT},
	[COLUMN_KIND] = {"KIND", VALUE_TEXT},
	[COLUMN_ORDER] = {"ORDER", VALUE_TEXT},
	[COLUMN_SIZE] = {"SIZE", VALUE_BYTES},
	[COLUMN_REQUESTS] = {"REQUESTS", VALUE_COUNT},
	[COLUMN_BYTES] = {"BYTES", VALUE_BYTES},
	[COLUMN_ERRORS] = {"ERRORS", VALUE_COUNT},
	[COLUMN_P50] = {"P50", VALUE_NS},
	[COLUMN_P90] = {"P90", VALUE_NS},
	[COLUMN_P99] = {"P99", VALUE_NS},
	[COLUMN_P999] = {"P999", VALUE_NS},
	[COLUMN_MAX] = {"MAX", VALUE_NS},
	[COLUMN_COPY] = {"COPY", VALUE_SHARE},
	[COLUMN_CODEC] = {"CODEC", VALUE_SHARE},
	[COLUMN_POOL] = {"POOL", VALUE_SHARE},
	[COLUMN_WAIT] = {"WAIT", VALUE_SHARE},
	[COLUMN_REST] = {"REST", VALUE_SHARE},
	[COLUMN_STORED] = {"STORED", VALUE_BYTES},
	[COLUMN_RATIO] = {"RATIO", VALUE_RATIO},
	[COLUMN_AMP] = {"AMP", VALUE_RATIO},
};
#define COLUMNS_COUNT (sizeof(columns) / sizeof(columns[0]))

static const char *const kind_names[STATS_KINDS] = {"read", "write", "discard"};

struct table *orders_create(const struct table_format *format)
{
	struct table *table;

	if (table_create(&table, "orders", format))
		return NULL;
	for (unsigned i = 0; i < COLUMNS_COUNT; i++)
		table_column(
			table, columns[i].name, i == COLUMN_ORDER && format->json ? VALUE_INTEGER : columns[i].kind);
	return table;
}

/* order < 0: the row of all orders; in JSON its order and size are null. */
static void begin_row(
	struct table *table, const struct table_format *format, const char *name, const char *kind, int32_t order)
{
	uint64_t size = order < 0 ? UINT64_MAX : GRANULE_BYTES << order;
	char text[16] = "all";

	table_row(table);
	table_cell(table, COLUMN_NAME, name, strlen(name));
	table_cell(table, COLUMN_KIND, kind, strlen(kind));
	table_cell(table, COLUMN_SIZE, &size, sizeof(size));
	if (format->json) {
		order = order < 0 ? INT32_MIN : order;
		table_cell(table, COLUMN_ORDER, &order, sizeof(order));
		return;
	}
	if (order >= 0)
		snprintf(text, sizeof(text), "%d", order);
	table_cell(table, COLUMN_ORDER, text, sizeof(text));
}

static void set_latency(struct table *table, const struct hist *hist)
{
	static const unsigned permille[] = {500, 900, 990, 999};

	for (unsigned i = 0; i < 4; i++) {
		uint64_t ns = hist_quantile_ns(hist, permille[i]);

		table_cell(table, COLUMN_P50 + i, &ns, sizeof(ns));
	}
	table_cell(table, COLUMN_MAX, &hist->max_ns, sizeof(hist->max_ns));
}

/* Shares of total_ns. What no stage claims is the rest: the caller's. */
static void set_stages(struct table *table, const uint64_t stage_ns[STATS_STAGES], uint64_t total_ns)
{
	double rest = 1;

	if (!total_ns)
		return;
	for (unsigned stage = 0; stage < STATS_STAGES; stage++) {
		double share = (double)stage_ns[stage] / (double)total_ns;

		rest -= share;
		table_cell(table, COLUMN_COPY + stage, &share, sizeof(share));
	}
	rest = fmax(rest, 0);
	table_cell(table, COLUMN_REST, &rest, sizeof(rest));
}

static void set_op(struct table *table, const struct stats_op *op)
{
	table_cell(table, COLUMN_REQUESTS, &op->requests, sizeof(op->requests));
	table_cell(table, COLUMN_BYTES, &op->bytes, sizeof(op->bytes));
	table_cell(table, COLUMN_ERRORS, &op->errors, sizeof(op->errors));
	set_latency(table, &op->latency);
}

static void add_kind(struct table *table, const struct table_format *format, const struct view *view, unsigned kind)
{
	struct stats_op all = {0};

	for (unsigned order = 0; order < ORDER_COUNT; order++) {
		const struct stats_op *op = &view->sum.io.op[kind][order];

		if (!op->requests)
			continue;
		begin_row(table, format, view->info.name, kind_names[kind], (int32_t)order);
		set_op(table, op);
		all.requests += op->requests;
		all.bytes += op->bytes;
		all.errors += op->errors;
		hist_add(&all.latency, &op->latency);
	}
	if (!all.requests)
		return;
	begin_row(table, format, view->info.name, kind_names[kind], -1);
	set_op(table, &all);
	set_stages(table, view->sum.io.stage_ns[kind], all.latency.total_ns);
	if (kind == STATS_READ)
		table_cell(table, COLUMN_AMP, &view->read_amplification, sizeof(view->read_amplification));
}

static void set_closed(struct table *table, uint64_t objects, uint64_t bytes, uint64_t stored)
{
	double ratio = figures_ratio(bytes, stored);

	table_cell(table, COLUMN_REQUESTS, &objects, sizeof(objects));
	table_cell(table, COLUMN_BYTES, &bytes, sizeof(bytes));
	table_cell(table, COLUMN_STORED, &stored, sizeof(stored));
	table_cell(table, COLUMN_RATIO, &ratio, sizeof(ratio));
}

/* Latency is that of a slot, which becomes one or more objects. */
static void add_closed(struct table *table, const struct table_format *format, const struct view *view)
{
	const struct stats_worker *worker = &view->sum.worker;
	uint64_t objects = 0, bytes = 0, stored = 0, stages_ns = 0;

	for (unsigned order = 0; order < ORDER_COUNT; order++) {
		if (!worker->closed_objects[order])
			continue;
		begin_row(table, format, view->info.name, "close", (int32_t)order);
		set_closed(table, worker->closed_objects[order], worker->closed_bytes[order],
			worker->closed_stored_bytes[order]);
		objects += worker->closed_objects[order];
		bytes += worker->closed_bytes[order];
		stored += worker->closed_stored_bytes[order];
	}
	if (!objects)
		return;
	for (unsigned stage = 0; stage < STATS_STAGES; stage++)
		stages_ns += worker->stage_ns[stage];
	begin_row(table, format, view->info.name, "close", -1);
	set_closed(table, objects, bytes, stored);
	set_latency(table, &worker->close_ns);
	set_stages(table, worker->stage_ns, stages_ns);
}

void orders_add(struct table *table, const struct table_format *format, const struct view *view)
{
	if (!view->is_up)
		return;
	for (unsigned kind = 0; kind < STATS_KINDS; kind++)
		add_kind(table, format, view, kind);
	add_closed(table, format, view);
}
