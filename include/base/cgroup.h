/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The limits of the control group that this process is in. */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A limit of memory or CPU on this process's control group or one above it, in
 * version 1 and version 2 hierarchies. True: text has its file and value, e.g.
 * "/sys/fs/cgroup/memory.max is 4096". All files are read below root: "", or a
 * test's made-up host. Allocates.
 */
bool cgroup_find_limit(const char *root, char *text, size_t text_bytes);

#endif
