/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Metrics as OpenMetrics text, as node_exporter's textfile collector takes it.
 * Families are called folioswap_..., samples have a label device="0".
 */
#ifndef TOOLS_OPENMETRICS_H
#define TOOLS_OPENMETRICS_H

#include "view.h"

#include <stdio.h>

/* All families, and the EOF line. A device that is not up has no sample but that of folioswap_up. */
void openmetrics_write(FILE *out, struct view *const *views, unsigned count);

/* By way of path.tmp, so that a reader never sees half a file; "-" is stdout. Returns an exit code (reported). */
int openmetrics_write_file(const char *path, struct view *const *views, unsigned count);

#endif
