/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What stat was asked for, and one output of it. */
#ifndef TOOLS_STAT_PRINT_H
#define TOOLS_STAT_PRINT_H

#include "cli_table.h"
#include "control.h"
#include "view.h"

/* Values are those of the options. */
enum stat_mode {
	MODE_SUMMARY = 0,
	MODE_ORDERS = 'o',
	MODE_MM_STAT = 256,
	MODE_IO_STAT = 257,
	MODE_OPENMETRICS = 258,
};

struct stat_request {
	enum stat_mode mode;
	const char *metrics_path;
	struct table_format format;
	unsigned watch_seconds; /* 0: once */
	unsigned watch_count;   /* 0: no end */
	unsigned count;
	char names[CONTROL_DEVICES_MAX][16];
	struct view *views[CONTROL_DEVICES_MAX];
	struct view *earlier[CONTROL_DEVICES_MAX];  /* --watch: the ones before */
	struct view *interval[CONTROL_DEVICES_MAX]; /* --watch: the difference */
};

/* Returns an exit code (reported). */
int stat_print(const struct stat_request *stat, struct view *const *views);

#endif
