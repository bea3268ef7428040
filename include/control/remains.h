/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a keeper that was killed leaves: block device, mount and directory. For whoever comes next, daemon or CLI. */
#ifndef CONTROL_REMAINS_H
#define CONTROL_REMAINS_H

#include <stddef.h>

/*
 * Held while directories come and go, so that nobody takes down what another
 * has just made. Returns a descriptor, which holds it until it is closed, or
 * -errno; -EBUSY when somebody keeps it for 10 seconds.
 */
int control_lock(void);

/*
 * Block devices that belong to the directory: loop devices whose backing file lies in it, e.g. "/dev/loop3", and the
 * ublk device whose cookie it holds. Returns how many of max.
 */
int control_loops(const char *name, char nodes[][64], int max);

/*
 * The device's servers are dead, and what waits for its I/O shall not wait for ever: swapoff, umount and close come to
 * an end, with errors where data was wanted. A ublk device gets a process that fails requests, until control_clean has
 * taken it down; loop devices fail by themselves. Returns at once.
 */
void control_fail_io(const char *name);

/*
 * Takes down what is left of a device; with the lock. Returns 0 when there is
 * nothing (any more), -EEXIST when its keeper lives: then nothing is touched.
 * Else -errno with one line in problem: -EBUSY while it is swapped on.
 */
int control_clean(const char *name, char *problem, size_t problem_bytes);

#endif
