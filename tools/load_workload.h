/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A workload: what the parent lets the workers do, in which order. One file each. */
#ifndef LOAD_WORKLOAD_H
#define LOAD_WORKLOAD_H

#include <stdbool.h>

struct load_run;

struct load_workload {
	const char *name;
	const char *summary;
	bool shares_memory; /* regions are shared memory (tmpfs) instead of anonymous */
	bool wants_cgroup;  /* has a use for one without a limit, too: load_run_settle */
	unsigned passes_default;

	/*
	 * Runs in the parent; calls load_run_phase and load_run_hold. Returns 0 or what those
	 * returned: a failure ends the run, what was measured so far is reported.
	 */
	int (*drive)(struct load_run *run);
};

extern const struct load_workload load_seq;
extern const struct load_workload load_pageout;
extern const struct load_workload load_usemem;
extern const struct load_workload load_shmem;
extern const struct load_workload load_random;

/* All of them; ends with NULL. */
extern const struct load_workload *const load_workloads[];

#endif
