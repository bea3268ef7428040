/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the daemon itself costs. No allocation. */
#ifndef SWAPDEV_USAGE_H
#define SWAPDEV_USAGE_H

#include <stdint.h>
#include <sys/types.h>

/* User and system time of a process and its threads; 0 when it is gone. */
uint64_t usage_cpu_ns(pid_t pid);

/* The same of all its children that have ended: servers before the present one. In clock ticks, 10 ms each. */
uint64_t usage_ended_children_ns(pid_t pid);

/* RAM that is a process's own, beside the image and other files. */
uint64_t usage_own_bytes(pid_t pid);

/*
 * RAM of keeper and server: the server's memory without the image's mapping,
 * the pages (mapped or not) of the image and of the transport's buffers (-1: it
 * has no file of them), and what the keeper does not share with it.
 */
uint64_t usage_resident_bytes(pid_t keeper, int image_fd, int buffers_fd);

#endif
