/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stat --watch: one line per device and interval, in the manner of vmstat. */
#ifndef TOOLS_STAT_WATCH_H
#define TOOLS_STAT_WATCH_H

#include "view.h"

#include <stdio.h>

void watch_heading(FILE *out);

/* delta: the later of two views after view_subtract(); earlier: the first of them. */
void watch_line(FILE *out, const struct view *delta, const struct view *earlier);

#endif
