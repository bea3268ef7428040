/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel's settings say about huge pages, private memory and shared memory apart. */
#ifndef LOAD_THP_H
#define LOAD_THP_H

#include <stdbool.h>

/*
 * May a region be made of huge pages of any size? shared: it is shared memory
 * (tmpfs), which has settings of its own; asked: by madvise(MADV_HUGEPAGE).
 * root: "" or a directory that stands for "/".
 */
bool load_thp_is_available(const char *root, bool shared, bool asked);

#endif
