// SPDX-License-Identifier: GPL-2.0-or-later
/* The pause with most in swap, for whoever wants to look at the device. */
#include "load_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load_stop.h"

#define POLL_MS 50

static void exec_command(const struct load_run *run)
{
	char text[LOAD_WORKERS_MAX * 12], *at = text;
	int null_fd = open("/dev/null", O_RDONLY);

	for (unsigned i = 0; i < run->started; i++)
		at += sprintf(at, "%s%d", i ? " " : "", (int)run->workers[i].pid);
	setenv("SWAPLOAD_PIDS", text, 1);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)run->held_swap_bytes);
	setenv("SWAPLOAD_SWAPPED_BYTES", text, 1);
	/* Standard output is the report's where a program reads it. */
	if (dup2(null_fd, STDIN_FILENO) < 0 || (run->options->json && dup2(STDERR_FILENO, STDOUT_FILENO) < 0))
		_exit(127);
	execl("/bin/sh", "sh", "-c", run->options->hold_command, (char *)NULL);
	_exit(127);
}

static int run_command(const struct load_run *run)
{
	pid_t parent = getpid(), pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		load_stop_child(parent);
		exec_command(run);
	}
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (load_stop_sleep_ms(POLL_MS))
			continue;
		kill(-pid, SIGTERM); /* it leads a process group */
		waitpid(pid, &status, 0);
		return -EINTR;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	fprintf(stderr, "swapload: the command of --hold-cmd failed (%s %d)\n",
		WIFEXITED(status) ? "exit code" : "signal", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	return -ECANCELED;
}

int load_run_hold(struct load_run *run)
{
	const struct load_options *options = run->options;
	int error = 0;

	run->held_swap_bytes = load_run_swap_bytes(run);
	if (options->hold_command)
		error = run_command(run);
	if (error == 0 && options->hold_s && !load_stop_sleep_ms(options->hold_s * 1000))
		error = -EINTR;
	return error;
}
