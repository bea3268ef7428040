// SPDX-License-Identifier: GPL-2.0-or-later
/* pageout: MADV_PAGEOUT of whole regions timed, then the sequential way back. */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "load_run.h"

static void send_out(struct load_worker *worker, uint32_t version)
{
	(void)version;
	if (madvise(worker->region, worker->region_bytes, MADV_PAGEOUT) == 0)
		return;
	worker->error = -errno;
	worker->error_step = "madvise(MADV_PAGEOUT)";
}

/* How much of the regions is not in memory: a question to the workers, so not a pass of the report. */
static int count_out(struct load_run *run, uint64_t *ret_bytes)
{
	int error = load_run_phase(run, "count", 0, LOAD_NEITHER, load_phase_count_out, 0);

	if (error == 0)
		*ret_bytes = run->passes[--run->pass_count].effort.bytes;
	return error;
}

/* The bytes of the pass are those that left memory in it, as the kernel tells: a limit may have sent some before. */
static int page_out(struct load_run *run, unsigned pass)
{
	uint64_t before_bytes = 0, after_bytes = 0;
	int error = count_out(run, &before_bytes);

	if (error == 0)
		error = load_run_phase(run, "out", pass, LOAD_OUT, send_out, pass);
	if (error < 0)
		return error;
	load_run_last_pass(run)->seconds += load_run_settle(run);
	error = count_out(run, &after_bytes);
	if (error < 0)
		return error;
	load_run_last_pass(run)->effort.bytes = after_bytes > before_bytes ? after_bytes - before_bytes : 0;
	if (after_bytes)
		return 0;
	fprintf(stderr,
		"swapload: nothing left memory: is swap on, and not full (see /proc/swaps)? Without a cgroup of "
		"its own, which takes root, pages also stay as long as nobody needs the memory\n");
	return -ENOSPC;
}

static int drive(struct load_run *run)
{
	int error = 0;

	for (unsigned pass = 1; error == 0 && pass <= run->options->passes; pass++) {
		error = load_run_phase(run, "fill", pass, LOAD_NEITHER, load_phase_refill, pass);
		if (error == 0)
			error = page_out(run, pass);
		if (error == 0)
			error = load_run_hold(run);
		if (error == 0)
			error = load_run_phase(run, "in", pass, LOAD_IN, load_phase_verify, pass);
	}
	return error;
}

const struct load_workload load_pageout = {
	.name = "pageout",
	.summary = "page a region out with MADV_PAGEOUT, then read it back",
	.wants_cgroup = true,
	.passes_default = 3,
	.drive = drive,
};
