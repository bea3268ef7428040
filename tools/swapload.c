// SPDX-License-Identifier: GPL-2.0-or-later
/* swapload: swap workloads that verify every byte. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "load_options.h"
#include "load_report.h"
#include "load_run.h"
#include "load_stop.h"

static int run_workload(const struct load_options *options, int signal_fd)
{
	struct load_run run;
	int error = load_run_init(options, signal_fd, &run), end_error, report_error = 0;

	if (error == 0) {
		error = options->workload->drive(&run);
		load_counters_read(&run.after);
		if (!load_stop_signal())
			report_error = load_report(&run, error, stdout);
	}
	end_error = load_run_deinit(&run);
	if (report_error == 0 && fflush(stdout) != 0)
		report_error = -errno;
	if (report_error < 0)
		fprintf(stderr, "swapload: cannot write the report: %s\n", strerror(-report_error));
	return error || end_error || report_error ? LOAD_EXIT_FAILED : LOAD_EXIT_RIGHT;
}

/* Everything is cleaned up: now die as the sender of the signal expects. */
static void die_of(int number)
{
	sigset_t none;

	signal(number, SIG_DFL);
	raise(number);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int main(int argc, char **argv)
{
	struct load_options options;
	int code = load_options_parse(argc, argv, &options), signal_fd;

	if (code >= 0)
		return code;
	signal_fd = load_stop_init();
	if (signal_fd < 0) {
		fprintf(stderr, "swapload: cannot receive signals: %s\n", strerror(-signal_fd));
		return LOAD_EXIT_FAILED;
	}
	code = run_workload(&options, signal_fd);
	if (load_stop_signal())
		die_of(load_stop_signal());
	return code;
}
