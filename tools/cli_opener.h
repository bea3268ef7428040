/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who holds a device node open. */
#ifndef TOOLS_CLI_OPENER_H
#define TOOLS_CLI_OPENER_H

#include <sys/types.h>

/*
 * A process that has the block device open, other than the given ones (0 ends
 * the list). Returns its id and name, or 0 when there is none that can be seen.
 */
pid_t opener_find(const char *node, const pid_t *others, char *ret_name, size_t name_bytes);

/* The same, waiting for openers that only look at it for a moment. */
pid_t opener_wait(const char *node, const pid_t *others, int timeout_ms, char *ret_name, size_t name_bytes);

#endif
