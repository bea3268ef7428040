/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ublk device that a dead keeper left; directory is that of the device, with its cookie. */
#ifndef CONTROL_REMAINS_UBLK_H
#define CONTROL_REMAINS_UBLK_H

#include <stdbool.h>
#include <stddef.h>

/* Its node. Returns false when there is none. */
bool remains_ublk_node(const char *directory, char *node, size_t node_bytes);

/* Gives it a server that fails every request, unless it has one. */
void remains_ublk_fail_io(const char *directory);

/* Takes it down. Returns 0 when there is none (any more), or -errno with one line in problem; -EBUSY while it is used. */
int remains_ublk_clear(const char *directory, char *problem, size_t problem_bytes);

#endif
