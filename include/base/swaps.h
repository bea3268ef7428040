/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel swaps to: /proc/swaps. No allocation; any thread. */
#ifndef BASE_SWAPS_H
#define BASE_SWAPS_H

#include <stdbool.h>
#include <stdint.h>

#define SWAPS_MAX 64 /* the kernel has at most 32 */

struct swap_entry {
	char path[256]; /* decoded; without " (deleted)" */
	bool deleted;   /* its file is gone: it can no longer be switched off by name */
	uint64_t size_bytes;
	uint64_t used_bytes;
	int priority;
};

/* One line of /proc/swaps. Returns 0 or -EINVAL (the heading, or no such line). */
int swaps_parse_line(const char *line, struct swap_entry *ret);

/* All of a file in the format of /proc/swaps; returns how many (at most max), or -errno. */
int swaps_read(const char *path, struct swap_entry *entries, int max);

/* Is it this block device, by path or by device number? A deleted one has nothing but its path. */
bool swaps_entry_is_node(const struct swap_entry *entry, const char *node);

/* The entry of a device node; NULL when it is not swapped on. */
const struct swap_entry *swaps_find(const struct swap_entry *entries, int count, const char *node);

/*
 * Is the block device at this node swapped on, under whatever name, also when
 * that name has been deleted meanwhile? A list that cannot be read is taken
 * for "yes"; a kernel without swap has none. Needs little stack.
 */
bool swaps_has_node(const char *node);

/* The same for a list elsewhere: for tests. */
bool swaps_file_has_node(const char *swaps_path, const char *node);

#endif
