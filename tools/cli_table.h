/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Typed cells over libsmartcols: one description gives aligned text, raw text
 * and JSON. JSON and --bytes show exact numbers (bytes, nanoseconds,
 * fractions), otherwise people's units.
 *
 * Errors (only ENOMEM can happen) are kept in the table and come out of
 * table_print().
 */
#ifndef TOOLS_CLI_TABLE_H
#define TOOLS_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum value_kind {
	VALUE_TEXT,    /* char array; "": none */
	VALUE_BYTES,   /* uint32_t or uint64_t; all bits set: none */
	VALUE_COUNT,   /* the same */
	VALUE_NS,      /* the same */
	VALUE_INTEGER, /* int32_t; INT32_MIN: none */
	VALUE_BOOL,    /* uint32_t */
	VALUE_RATIO,   /* double; NAN: none */
	VALUE_SHARE,   /* double, 0 .. 1; NAN: none */
};

struct table_format {
	bool json;
	bool raw;
	bool noheadings;
	bool exact;
};

/* Text of the value at `at` (of `bytes` size). Returns false when there is none; buffer is then "". */
bool value_format(enum value_kind kind, const void *at, size_t bytes, bool exact, char *buffer, size_t buffer_bytes);

/* The same value as a number in base units (bytes, seconds for VALUE_NS); NAN: none or text. */
double value_number(enum value_kind kind, const void *at, size_t bytes);

struct table;

/* name: of the list in JSON. The format is copied. */
int table_create(struct table **ret, const char *name, const struct table_format *format);
void table_destroy(struct table *table);

/* Columns first, all of them; in JSON the name is in lower case with '_' for '-'. */
void table_column(struct table *table, const char *name, enum value_kind kind);
void table_row(struct table *table);

/* Sets a cell of the last row; a value of the column's kind. */
void table_cell(struct table *table, unsigned column, const void *at, size_t bytes);

/* Returns 0 or -ENOMEM. */
int table_print(struct table *table, FILE *out);

#endif
