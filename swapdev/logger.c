// SPDX-License-Identifier: GPL-2.0-or-later
/* The process between the keeper and its log. */
#include "logger.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_TRIES 100
#define END_PAUSE_US 10000

static pid_t logger;

/* Ends when the last writer has closed the pipe. Lines that cannot be written are nobody's. */
static _Noreturn void run(int pipe_fd)
{
	char buffer[4096];
	ssize_t got;

	prctl(PR_SET_NAME, "folioswapd-log", 0, 0, 0);
	dup2(pipe_fd, STDIN_FILENO);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	/* A reader holds the pipe's lock while it copies: a page that must be swapped in for that would stop the writers. */
	mlockall(MCL_CURRENT | MCL_FUTURE);
	while ((got = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0)
		if (write(STDERR_FILENO, buffer, (size_t)got) < 0 && errno == EPIPE)
			break;
	_exit(0);
}

/* The kernel's log takes lines as they come, each by itself. */
static bool never_waits(void)
{
	struct stat status;

	return fstat(STDERR_FILENO, &status) < 0 || (S_ISCHR(status.st_mode) && !isatty(STDERR_FILENO));
}

int logger_start(void)
{
	int pair[2], error = 0;

	if (never_waits())
		return 0;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	logger = fork();
	if (logger == 0)
		run(pair[0]);
	if (logger < 0 || fcntl(pair[1], F_SETFL, O_NONBLOCK) < 0 || dup2(pair[1], STDERR_FILENO) < 0)
		error = -errno;
	close(pair[0]);
	close(pair[1]);
	return error;
}

void logger_end(void)
{
	int null_fd;

	if (logger <= 0)
		return;
	null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null_fd < 0 || dup2(null_fd, STDERR_FILENO) < 0)
		return;
	for (int i = 0; i < END_TRIES && waitpid(logger, NULL, WNOHANG) == 0; i++)
		usleep(END_PAUSE_US);
}
