/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The device's directory CONTROL_DIR/<name>: made, with the pid file and the listening socket in it, and removed. */
#ifndef SWAPDEV_RUNDIR_H
#define SWAPDEV_RUNDIR_H

#include <stddef.h>

struct rundir {
	char path[64];
	int pid_fd;    /* holds the record lock that says: this keeper lives */
	int listen_fd; /* SEQPACKET, non-blocking */
};

/*
 * Makes the directory. What a dead keeper of the same name left (mount, loop
 * device, files) is taken down first, which is logged. Returns 0; -EEXIST: the
 * device exists; -EBUSY: the remains are still swapped on; -errno; with one
 * line in problem.
 */
int rundir_create(struct rundir *ret, const char *name, char *problem, size_t problem_bytes);

/* Nobody can connect any more. */
void rundir_close_socket(struct rundir *rundir);

/* Removes what rundir_create made; mounts in it must be gone. */
void rundir_remove(struct rundir *rundir);

#endif
