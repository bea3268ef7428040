/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What makes a process fit to serve swap: every page of it in RAM, no waiting
 * for its own device, not picked by the OOM killer, not throttled.
 *
 * Two parts. resident_prepare() changes what a fork inherits (IO_FLUSHER, OOM
 * score, limits, nice) and looks at the surroundings (control groups, sysctl);
 * the keeper calls it first of all. The resident_heap() .. resident_hide()
 * calls belong to one process each, in the order in which they stand here.
 *
 * What could not be had is a bit of enum control_unsafe in the report, each
 * with one line of detail. Whoever starts the daemon decides what that means.
 */
#ifndef SWAPDEV_RESIDENT_H
#define SWAPDEV_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>

#define RESIDENT_BITS 7

struct resident_report {
	unsigned unsafe;                 /* enum control_unsafe */
	char detail[RESIDENT_BITS][200]; /* by number of the bit: what was tried and what the system said */
};

void resident_report_add(struct resident_report *report, unsigned bit, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- inherited by fork ---- */

/* All of the steps below in order; on_fuse adds the sysctl that only FUSE + loop needs. */
void resident_prepare(struct resident_report *report, bool on_fuse);

void resident_io_flusher(struct resident_report *report);
void resident_oom_score(struct resident_report *report);
void resident_nice(struct resident_report *report);
/* Raises RLIMIT_MEMLOCK; unsafe when locking everything would fail then or later. */
void resident_memlock(struct resident_report *report);
void resident_cgroup(struct resident_report *report);
/* The file is /proc/sys/vm/min_free_kbytes, or a test's. */
void resident_min_free(struct resident_report *report, const char *sysctl_path);

/* Says so when a sysctl lets the kernel end a FUSE connection for one slow request. */
void resident_warn_of_fuse_timeouts(void);

/* ---- of the calling process, in this order ---- */

/* One arena, never trimmed, nothing by mmap, and some of it grown and touched ahead. Returns 0 or -ENOMEM. */
int resident_heap(void);

/* Locks what is mapped and what will be. Returns 0 or -errno. */
int resident_lock_all(void);

/* New mappings are locked page by page as they are touched: for mapping the sparse image. Returns 0 or -errno. */
int resident_lock_on_fault(void);

/* New mappings are populated and locked again. Returns 0 or -errno. */
int resident_lock_future(void);

/* Looks at every thread of this process: returns how many lack the IO_FLUSHER state, or -errno. */
int resident_threads_without_io_flusher(void);

/* No core dump, no ptrace by other users: the memory is everybody's. */
void resident_hide(void);

#endif
