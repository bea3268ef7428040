/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One table of everything that is known of a device: columns of list, lines of
 * stat and metrics all come from it.
 */
#ifndef TOOLS_FIELDS_H
#define TOOLS_FIELDS_H

#include "cli_table.h"
#include "view.h"

#include <stdio.h>

#define FIELDS_MAX 96

enum field_flags {
	FIELD_LIST = 1 << 0,    /* list shows it unless -o says otherwise */
	FIELD_COUNTER = 1 << 1, /* only grows */
	FIELD_CONFIG = 1 << 2,  /* how it was set up: stat shows it last */
	FIELD_DEAD = 1 << 3,    /* known of a dead device, too */
	FIELD_EVENT = 1 << 4,   /* seldom, so the summary of stat passes over it while it is 0 */
};

struct field {
	const char *column;
	const char *metric; /* middle of the metric's name; NULL: not exported */
	enum value_kind kind;
	unsigned flags;
	size_t offset; /* in struct view */
	size_t bytes;
	const char *help;
};

extern const struct field fields[];
extern const unsigned fields_count;

/* "NAME,SIZE", "+PAYLOAD" (after the default columns). Returns how many indices were put into ret, or -1 (reported). */
int fields_select(const char *text, unsigned ret[FIELDS_MAX]);
unsigned fields_default(unsigned ret[FIELDS_MAX]);
unsigned fields_all(unsigned ret[FIELDS_MAX]);

/* Column list for help texts. */
void fields_help(FILE *out);

/* Adds the field's value of the view to a row, if there is one. */
void fields_cell(struct table *table, unsigned column, const struct field *field, const struct view *view);

#endif
