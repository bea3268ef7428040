// SPDX-License-Identifier: GPL-2.0-or-later
/* shmem: shared memory (tmpfs) written beyond the limit, then read in order: swap-in of tmpfs. */
#include "load_run.h"

static int drive(struct load_run *run)
{
	bool wants_huge = run->options->thp == LOAD_THP_ON;
	int error = 0;

	for (unsigned pass = 1; error == 0 && pass <= run->options->passes; pass++) {
		error = load_run_phase(
			run, "write", pass, LOAD_OUT, wants_huge ? load_phase_refill : load_phase_write, pass);
		if (error == 0)
			error = load_run_hold(run);
		if (error == 0)
			error = load_run_phase(run, "in", pass, LOAD_IN, load_phase_verify, pass);
	}
	return error;
}

const struct load_workload load_shmem = {
	.name = "shmem",
	.summary = "sequential swap-in of shared memory (tmpfs)",
	.shares_memory = true,
	.passes_default = 2,
	.drive = drive,
};
