/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stat --orders: a row for each kind of request and order, with latencies, and
 * a row for each kind with the stages of its time. Kind "close" is the work of
 * the compression threads: staging slots that became objects.
 */
#ifndef TOOLS_STAT_ORDERS_H
#define TOOLS_STAT_ORDERS_H

#include "cli_table.h"
#include "view.h"

/* A table with its columns; NULL: out of memory. */
struct table *orders_create(const struct table_format *format);

/* The rows of one device; only those with events. */
void orders_add(struct table *table, const struct table_format *format, const struct view *view);

#endif
