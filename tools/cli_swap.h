/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /proc/swaps, and switching a device on and off as swap, each step bounded in time. */
#ifndef TOOLS_CLI_SWAP_H
#define TOOLS_CLI_SWAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SWAP_PRIORITY_KERNEL (-1) /* swapon: let the kernel choose */
#define SWAP_PRIORITY_MAX 32767
#define SWAPS_MAX 64

struct swap_entry {
	char path[256]; /* decoded; without " (deleted)" */
	bool deleted;   /* its file is gone: it can no longer be switched off by name */
	uint64_t size_bytes;
	uint64_t used_bytes;
	int priority;
};

/* One line of /proc/swaps. Returns 0 or -EINVAL (the heading, or no such line). */
int swap_parse_line(const char *line, struct swap_entry *ret);

/* All of a file in the format of /proc/swaps; returns how many (at most max), or -errno. */
int swap_read(const char *path, struct swap_entry *entries, int max);

/* The entry of a device node, by path or by device number; NULL when it is not swapped on. */
const struct swap_entry *swap_find(const struct swap_entry *entries, int count, const char *node);

/* mkswap(8) and swapon(2). priority: 0 .. SWAP_PRIORITY_MAX or SWAP_PRIORITY_KERNEL. Returns an exit code (reported). */
int swap_on(const char *node, int priority, bool discard);

/*
 * swapoff(2), protected from the OOM killer as far as allowed. Returns 0 or
 * negative errno as process_bounded(); not reported. -EINVAL: it was not on.
 */
int swap_off(const char *node, int timeout_ms);

#endif
