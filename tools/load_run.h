/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One run of a workload, seen from the parent: the workers, the phases and what they came to. */
#ifndef LOAD_RUN_H
#define LOAD_RUN_H

#include <stddef.h>

#include "load_cgroup.h"
#include "load_content.h"
#include "load_counters.h"
#include "load_options.h"
#include "load_worker.h"
#include "load_workload.h"

/* Which throughput of the report a phase is part of. */
enum load_direction {
	LOAD_NEITHER,
	LOAD_OUT,
	LOAD_IN,
};

/* One phase of all workers together, one line of the report. */
struct load_pass {
	const char *phase; /* "write", "out", "in", ... */
	unsigned number;
	enum load_direction direction;
	double seconds; /* from the first worker's start to the last one's end */
	struct load_effort effort;
};

struct load_run {
	const struct load_options *options;
	struct load_content content;
	struct load_cgroup cgroup;
	struct load_worker *workers; /* this and the versions: one shared, locked mapping */
	size_t shared_bytes;
	unsigned started;
	int signal_fd;
	int reply_fds[2];

	struct load_pass *passes;
	unsigned pass_count;

	struct load_counters before;
	struct load_counters after;
	uint64_t swap_peak_bytes;
	uint64_t held_swap_bytes;  /* in swap at the moment of load_run_hold */
	uint64_t freed_swap_bytes; /* usemem: in swap before the region was given back */
	double free_s;             /* usemem: how long that took; negative: does not apply */
};

/*
 * Makes contents, cgroup and workers; they wait for the first phase. Returns 0
 * or a negative errno after saying what failed; load_run_deinit is due either
 * way.
 */
int load_run_init(const struct load_options *options, int signal_fd, struct load_run *run);

/* Ends the workers and removes the cgroup. Returns 0, or -ECHILD where a worker had died, after saying so. */
int load_run_deinit(struct load_run *run);

/*
 * One phase in all workers at once; appended to run->passes. Returns 0, or
 * after saying what it was: -ECHILD a worker died, -EBADMSG wrong bytes were
 * found, -EINTR stop was asked (silently), or the errno of what a worker
 * could not do.
 */
int load_run_phase(struct load_run *run, const char *name, unsigned number, enum load_direction direction,
	load_phase_function *phase, uint32_t version);

/* The pass that was appended last. */
struct load_pass *load_run_last_pass(struct load_run *run);

/*
 * Waits until what was sent to the device has been written, and asks the
 * cgroup to let go of pages that were kept only for that. Returns the seconds
 * of the first part: asynchronous devices are not faster than they are.
 */
double load_run_settle(struct load_run *run);

/* When most is in swap: notes how much, runs --hold-cmd, sleeps --hold. Returns 0, -EINTR, or -ECANCELED (said). */
int load_run_hold(struct load_run *run);

/* What the workers have in swap now. */
uint64_t load_run_swap_bytes(const struct load_run *run);

#endif
