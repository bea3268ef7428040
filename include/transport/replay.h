/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replay: requests in this process, from a seeded generator or a trace, run
 * against a device by several threads, verified if wanted. Needs no root and
 * no kernel: tests, fuzzing and benchmarks stand on it.
 *
 *   struct replay_plan plan = {
 *           .seed = 1, .threads = 2, .requests = 100000,
 *           .op_share = {[REQUEST_READ] = 1, [REQUEST_WRITE] = 1},
 *           .order_share = {[0] = 3, [9] = 1},
 *           .random_percent = 30,
 *   };
 *   struct replay_result result;
 *
 *   error = replay_run(device, &plan, &result);
 *
 * The same plan on an equal device gives the same requests and contents on
 * every machine; with several threads only their interleaving differs.
 *
 * With a model each thread keeps to a stripe of whole units of its own, checks
 * every read against the array, and reads its whole stripe once more at the
 * end. Without a model generated requests of all threads roam the whole
 * working set. A trace is always dealt by stripes: a step that covers several
 * is cut, each thread does its part, and the order within a stripe is kept.
 */
#ifndef TRANSPORT_REPLAY_H
#define TRANSPORT_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "device.h"
#include "trace.h"
#include "units.h"

#define REPLAY_OPS (REQUEST_FLUSH + 1)

struct fault;

struct replay_plan {
	uint64_t seed;
	unsigned threads;           /* 1 .. device_io_threads(); thread i uses I/O thread i; the caller is thread 0 */
	uint64_t working_set_bytes; /* from the device's start, multiple of 4 KiB; 0: the whole device */

	/* The generator; not looked at with a trace. */
	uint64_t requests;                 /* of all threads together */
	unsigned op_share[REPLAY_OPS];     /* relative; the sum is not 0 and fits an unsigned */
	unsigned order_share[ORDER_COUNT]; /* relative, the same; sizes larger than a thread's range are cut to it */
	bool ragged; /* any length up to the order's, at any granule; else a power of two, aligned to itself as folios are */

	const struct trace *trace; /* NULL: generate */

	/* Contents of written granules, in percent; the rest is random_percent noise, then repetition. */
	unsigned random_percent; /* of the bytes of a granule */
	unsigned same_percent;   /* of the granules: one 64-bit word over and over */

	/*
	 * What the device holds now, working_set_bytes of it, kept current by the
	 * run (zeroed memory for a new device; hand the same array on to the next
	 * run). NULL: nothing is verified.
	 */
	uint8_t *model;

	struct fault *fault; /* asked before each request; NULL: none */

	/* Called by each thread after each of its requests, outside of all times: for store_step(). May be NULL. */
	void (*between)(void *arg, unsigned thread);
	void *between_arg;
};

struct replay_op_result {
	uint64_t requests;
	uint64_t bytes;
	uint64_t errors; /* answered with one, by the device or by the fault */
	uint64_t latency_ns;
	uint64_t latency_max_ns;
};

struct replay_result {
	struct replay_op_result op[REPLAY_OPS]; /* without the reads that only verify */
	uint64_t mismatches; /* granules found with other bytes than were written, each time they were found */
	uint64_t first_mismatch_bytes; /* the lowest such offset; UINT64_MAX: none */
	uint64_t elapsed_ns; /* of all threads from first start to last end, generating and verifying included */
};

/*
 * Runs the plan to its end, whatever the requests answer: that is in *ret.
 *
 * A write or discard that fails may have been carried out in part (the device
 * tries every piece). With a model its range is read back at once, and each
 * granule must hold its old or its new bytes, else it is a mismatch.
 *
 * Returns 0; -EINVAL (a plan that contradicts itself or the device, fewer
 * units than threads); -ERANGE (a step of the trace leaves the working set);
 * -ENOMEM or -EAGAIN (no memory or thread: *ret is not touched, but the part
 * of the threads that did start has been run).
 */
int replay_run(struct device *device, const struct replay_plan *plan, struct replay_result *ret);

#endif
