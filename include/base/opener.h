/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who holds a block device open. */
#ifndef BASE_OPENER_H
#define BASE_OPENER_H

#include <stddef.h>
#include <sys/types.h>

/*
 * A process that has the block device open, other than the given ones (0 ends
 * the list). Returns its id and name, or 0 when there is none that can be seen:
 * what hides in a foreign process namespace, or keeps nothing but a mapping,
 * cannot. Takes as long as there are open files; never waits for any of them.
 * Allocates while it looks.
 */
pid_t opener_find(const char *node, const pid_t *others, char *ret_name, size_t name_bytes);

#endif
