/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A worker: a pinned process inside the limited cgroup that owns one region
 * and does one phase after another on the parent's word.
 *
 * Its struct lies in memory shared with the parent, charged to the parent and
 * locked. The worker writes it during a phase, the parent reads it between
 * phases: the messages through the pipes order the two.
 */
#ifndef LOAD_WORKER_H
#define LOAD_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "load_content.h"
#include "load_rng.h"

struct load_run;

#define LOAD_LATENCY_SAMPLES 16384

/* What one phase of one worker, or of all, came to. Times are of the worker alone. */
struct load_effort {
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t bytes; /* written, read, sent out: what the phase is about */
	uint64_t major_faults;
	uint64_t minor_faults;
	uint64_t user_us;
	uint64_t system_us;
};

/* Counts of the random workload. */
struct load_mix {
	uint64_t reads;
	uint64_t writes;
	uint64_t frees; /* pieces of 64 KiB given back */
	uint64_t refills;
	uint64_t faults;                         /* reads that had to go to the device */
	uint32_t fault_ns[LOAD_LATENCY_SAMPLES]; /* a fair sample of how long those took */
};

struct load_worker {
	struct load_run *run;
	unsigned index;
	int cpu; /* -1: not pinned */
	pid_t pid;
	int command_fd;
	uint64_t region_bytes;
	uint8_t *region;    /* NULL before it is mapped and after it is given back */
	uint32_t *versions; /* random: version of each page; shared and locked like this struct */
	struct load_rng rng;

	struct load_effort effort; /* of the last phase */
	uint64_t verified_bytes;
	uint64_t mismatched_bytes;
	struct load_mismatch first_mismatch; /* where mismatched_bytes is not 0 */
	int error;                           /* a negative errno that ended a phase early */
	const char *error_step;              /* what failed then */
	struct load_mix mix;
};

/* Runs in the worker. version: of the contents, from 1. Notes bytes in worker->effort, a failure in worker->error. */
typedef void load_phase_function(struct load_worker *worker, uint32_t version);

/* What the parent sends: functions have the same address in a forked process. */
struct load_command {
	load_phase_function *phase;
	uint32_t version;
};

/* The life of a worker after fork: pin, join, map, obey until the pipe is closed. */
void load_worker_main(struct load_worker *worker, int command_fd, int reply_fd) __attribute__((noreturn));

/* Phases that several workloads share; each goes through the region once, in address order. */
load_phase_function load_phase_write;     /* version, over whatever is there */
load_phase_function load_phase_refill;    /* version; what was there before is given back first */
load_phase_function load_phase_rewrite;   /* verifies version - 1 of a page, then writes version over it */
load_phase_function load_phase_verify;    /* version */
load_phase_function load_phase_unmap;     /* gives the region back */
load_phase_function load_phase_count_out; /* bytes: how much of the region is not in memory */

/* Compares one page and counts it. */
void load_worker_verify(struct load_worker *worker, uint64_t page, uint32_t version);

static inline struct load_page_id load_worker_page_id(const struct load_worker *worker, uint64_t page, uint32_t version)
{
	return (struct load_page_id){.page = page, .region = worker->index, .version = version};
}

#endif
