/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel swaps to. */
#ifndef SWAPDEV_SWAPS_H
#define SWAPDEV_SWAPS_H

#include <stdbool.h>

/*
 * Is the block device at this node in /proc/swaps, under whatever name? Also
 * when the node has been deleted meanwhile. A list that cannot be read is
 * taken for "yes". No allocation.
 */
bool swaps_has_node(const char *node);

/* The same for a list elsewhere: for tests. */
bool swaps_file_has_node(const char *swaps_path, const char *node);

#endif
