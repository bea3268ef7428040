/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Switching a device on and off as swap, each step bounded in time. */
#ifndef TOOLS_CLI_SWAP_H
#define TOOLS_CLI_SWAP_H

#include <stdbool.h>

#define SWAP_PRIORITY_KERNEL (-1) /* swapon: let the kernel choose */
#define SWAP_PRIORITY_MAX 32767

/* mkswap(8) and swapon(2). priority: 0 .. SWAP_PRIORITY_MAX or SWAP_PRIORITY_KERNEL. Returns an exit code (reported). */
int swap_on(const char *node, int priority, bool discard);

/*
 * swapoff(2), protected from the OOM killer as far as allowed. Returns 0 or
 * negative errno as process_bounded(); not reported. -EINVAL: it was not on.
 */
int swap_off(const char *node, int timeout_ms);

#endif
