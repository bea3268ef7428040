// SPDX-License-Identifier: GPL-2.0-or-later
/* Values to text, and tables of them. */
#include "cli_table.h"

#include "parse.h"

#include <errno.h>
#include <libsmartcols.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 96

struct table {
	struct libscols_table *scols;
	struct libscols_line *line;
	struct table_format format;
	enum value_kind kinds[COLUMNS_MAX];
	unsigned columns;
	int error;
};

static uint64_t load_unsigned(const void *at, size_t bytes)
{
	uint32_t narrow;
	uint64_t wide;

	if (bytes == sizeof(narrow)) {
		memcpy(&narrow, at, sizeof(narrow));
		return narrow == UINT32_MAX ? UINT64_MAX : narrow;
	}
	memcpy(&wide, at, sizeof(wide));
	return wide;
}

static double load_double(const void *at)
{
	double value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static int32_t load_integer(const void *at)
{
	int32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void format_duration(uint64_t ns, char *buffer, size_t buffer_bytes)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double value = (double)ns;
	unsigned unit = 0;

	while (value >= 999.5 && unit < 3) {
		value /= 1000;
		unit++;
	}
	snprintf(buffer, buffer_bytes, unit && value < 99.95 ? "%.1f%s" : "%.0f%s", value, units[unit]);
}

static bool format_unsigned(enum value_kind kind, uint64_t value, bool exact, char *buffer, size_t buffer_bytes)
{
	if (value == UINT64_MAX)
		return false;
	if (kind == VALUE_BYTES && !exact)
		format_size(value, buffer, buffer_bytes);
	else if (kind == VALUE_NS && !exact)
		format_duration(value, buffer, buffer_bytes);
	else
		snprintf(buffer, buffer_bytes, "%llu", (unsigned long long)value);
	return true;
}

static bool format_real(enum value_kind kind, double value, bool exact, char *buffer, size_t buffer_bytes)
{
	if (isnan(value))
		return false;
	if (exact)
		snprintf(buffer, buffer_bytes, "%.4f", value);
	else if (kind == VALUE_SHARE)
		snprintf(buffer, buffer_bytes, "%.1f%%", value * 100);
	else
		snprintf(buffer, buffer_bytes, "%.2f", value);
	return true;
}

bool value_format(enum value_kind kind, const void *at, size_t bytes, bool exact, char *buffer, size_t buffer_bytes)
{
	buffer[0] = '\0';
	switch (kind) {
	case VALUE_TEXT:
		snprintf(buffer, buffer_bytes, "%.*s", (int)bytes, (const char *)at);
		return buffer[0] != '\0';
	case VALUE_BOOL:
		snprintf(buffer, buffer_bytes, "%s",
			load_unsigned(at, bytes) ? (exact ? "1" : "yes") : (exact ? "0" : "no"));
		return true;
	case VALUE_INTEGER:
		if (load_integer(at) == INT32_MIN)
			return false;
		snprintf(buffer, buffer_bytes, "%d", load_integer(at));
		return true;
	case VALUE_RATIO:
	case VALUE_SHARE:
		return format_real(kind, load_double(at), exact, buffer, buffer_bytes);
	case VALUE_BYTES:
	case VALUE_COUNT:
	case VALUE_NS:
		break;
	}
	return format_unsigned(kind, load_unsigned(at, bytes), exact, buffer, buffer_bytes);
}

double value_number(enum value_kind kind, const void *at, size_t bytes)
{
	uint64_t value;

	if (kind == VALUE_TEXT)
		return NAN;
	if (kind == VALUE_RATIO || kind == VALUE_SHARE)
		return load_double(at);
	if (kind == VALUE_INTEGER)
		return load_integer(at) == INT32_MIN ? (double)NAN : (double)load_integer(at);
	value = load_unsigned(at, bytes);
	if (value == UINT64_MAX)
		return NAN;
	return kind == VALUE_NS ? (double)value / 1e9 : (double)value;
}

int table_create(struct table **ret, const char *name, const struct table_format *format)
{
	struct table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	table->scols = scols_new_table();
	if (!table->scols || scols_table_set_name(table->scols, name)) {
		table_destroy(table);
		return -ENOMEM;
	}
	table->format = *format;
	if (format->json)
		table->format.exact = true;
	scols_table_enable_json(table->scols, format->json);
	scols_table_enable_raw(table->scols, format->raw && !format->json);
	scols_table_enable_noheadings(table->scols, format->noheadings);
	*ret = table;
	return 0;
}

void table_destroy(struct table *table)
{
	if (!table)
		return;
	scols_unref_table(table->scols);
	free(table);
}

static int json_type(enum value_kind kind)
{
	switch (kind) {
	case VALUE_TEXT:
		return SCOLS_JSON_STRING;
	case VALUE_BOOL:
		return SCOLS_JSON_BOOLEAN_OPTIONAL;
	default:
		return SCOLS_JSON_NUMBER;
	}
}

void table_column(struct table *table, const char *name, enum value_kind kind)
{
	char key[64];
	struct libscols_column *column;

	snprintf(key, sizeof(key), "%s", name);
	for (char *at = key; table->format.json && *at; at++) {
		if (*at == '-')
			*at = '_';
	}
	column = scols_table_new_column(table->scols, key, 0, kind == VALUE_TEXT ? 0 : SCOLS_FL_RIGHT);
	if (!column || table->columns == COLUMNS_MAX) {
		table->error = -ENOMEM;
		return;
	}
	scols_column_set_json_type(column, json_type(kind));
	table->kinds[table->columns++] = kind;
}

void table_row(struct table *table)
{
	table->line = scols_table_new_line(table->scols, NULL);
	if (!table->line)
		table->error = -ENOMEM;
}

void table_cell(struct table *table, unsigned column, const void *at, size_t bytes)
{
	enum value_kind kind = table->kinds[column];
	char text[512];

	if (table->error || !value_format(kind, at, bytes, table->format.exact, text, sizeof(text)))
		return;
	if (scols_line_set_data(table->line, column, text))
		table->error = -ENOMEM;
}

int table_print(struct table *table, FILE *out)
{
	if (table->error)
		return table->error;
	scols_table_set_stream(table->scols, out);
	if (scols_print_table(table->scols))
		return -ENOMEM;
	return 0;
}
