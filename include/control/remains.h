/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a keeper that was killed leaves: loop device, mount and directory. For whoever comes next, daemon or CLI. */
#ifndef CONTROL_REMAINS_H
#define CONTROL_REMAINS_H

#include <stddef.h>

/*
 * Held while directories come and go, so that nobody takes down what another
 * has just made. Returns a descriptor, which holds it until it is closed, or
 * -errno; -EBUSY when somebody keeps it for 10 seconds.
 */
int control_lock(void);

/* Loop devices whose backing file lies in the device's directory, e.g. "/dev/loop3"; returns how many of max. */
int control_loops(const char *name, char nodes[][64], int max);

/*
 * Takes down what is left of a device; with the lock. Returns 0 when there is
 * nothing (any more), -EEXIST when its keeper lives: then nothing is touched.
 * Else -errno with one line in problem: -EBUSY while it is swapped on.
 */
int control_clean(const char *name, char *problem, size_t problem_bytes);

#endif
