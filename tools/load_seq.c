// SPDX-License-Identifier: GPL-2.0-or-later
/* seq-write: passes over a working set larger than memory; each page is verified before it is overwritten. */
#include "load_run.h"

static int drive(struct load_run *run)
{
	unsigned passes = run->options->passes;
	int error = load_run_phase(run, "write", 1, LOAD_OUT, load_phase_write, 1);

	for (unsigned pass = 2; error == 0 && pass <= passes; pass++)
		error = load_run_phase(run, "write", pass, LOAD_OUT, load_phase_rewrite, pass);
	if (error == 0)
		error = load_run_hold(run);
	if (error == 0)
		error = load_run_phase(run, "verify", passes, LOAD_IN, load_phase_verify, passes);
	return error;
}

const struct load_workload load_seq = {
	.name = "seq-write",
	.summary = "sequential passes over a working set larger than memory",
	.passes_default = 4,
	.drive = drive,
};
