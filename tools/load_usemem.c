// SPDX-License-Identifier: GPL-2.0-or-later
/* usemem: fills more than memory once, verifies it, and times giving it back while most of it is in swap. */
#include "load_run.h"

static int drive(struct load_run *run)
{
	int error = load_run_phase(run, "write", 1, LOAD_OUT, load_phase_write, 1);

	if (error == 0)
		error = load_run_phase(run, "verify", 1, LOAD_IN, load_phase_verify, 1);
	if (error == 0)
		error = load_run_hold(run);
	if (error < 0)
		return error;
	run->freed_swap_bytes = load_run_swap_bytes(run);
	error = load_run_phase(run, "free", 1, LOAD_NEITHER, load_phase_unmap, 1);
	if (error == 0)
		run->free_s = load_run_last_pass(run)->seconds;
	return error;
}

const struct load_workload load_usemem = {
	.name = "usemem",
	.summary = "fill beyond memory, then the time to free swapped memory",
	.passes_default = 1,
	.drive = drive,
};
