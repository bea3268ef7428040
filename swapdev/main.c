// SPDX-License-Identifier: GPL-2.0-or-later
/* folioswapd: reads its options, leaves the program that started it, and becomes the keeper. */
#include "daemon.h"
#include "keeper.h"
#include "log.h"
#include "options.h"
#include "parse.h"
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Descriptors that we were not told of are the caller's business, and would be open as long as the device lives. */
static void close_inherited(struct daemon_options *options)
{
	int keep = options->ready_fd;

	if (keep >= 0) {
		keep = fcntl(keep, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		options->ready_fd = keep;
	}
	if (keep > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, (unsigned)keep - 1, 0);
	close_range((unsigned)(keep < 0 ? STDERR_FILENO : keep) + 1, ~0U, 0);
}

/* 0, 1 and 2 must be something, or the next file that is opened is written to by mistake. */
static void fill_standard(bool foreground)
{
	int fd = open("/dev/null", O_RDWR);

	while (fd >= 0 && fd <= STDERR_FILENO)
		fd = open("/dev/null", O_RDWR);
	if (fd < 0)
		return;
	if (!foreground) {
		dup2(fd, STDIN_FILENO);
		dup2(fd, STDOUT_FILENO);
	}
	close(fd);
}

static int refuse(const struct daemon_options *options, int exit_code, const char *problem)
{
	log_error("%s", problem);
	if (options->ready_fd >= 0)
		dprintf(options->ready_fd, "failed %s\n", problem);
	return exit_code;
}

/* What the keeper executes: "folioswapd --serve-fd N". */
static int serve_fd(int argc, char **argv)
{
	long fd = -1;

	if (argc != 3 || strcmp(argv[1], "--serve-fd") != 0 || parse_int(argv[2], 0, INT32_MAX, &fd) < 0)
		return -1;
	return (int)fd;
}

int main(int argc, char **argv)
{
	struct daemon_options options;
	enum options_outcome outcome;
	char problem[400] = "";

	log_init("folioswapd");
	if (serve_fd(argc, argv) >= 0)
		return server_main(serve_fd(argc, argv));
	outcome = options_read(argc, argv, &options, problem, sizeof(problem));
	if (outcome == OPTIONS_SHOWN)
		return DAEMON_DONE;
	if (outcome == OPTIONS_WRONG)
		return refuse(&options, DAEMON_USAGE, problem);
	if (geteuid() != 0)
		return refuse(&options, DAEMON_FAILED, "only root can do this");
	if (outcome == OPTIONS_CANNOT)
		return refuse(&options, DAEMON_FAILED, problem);
	close_inherited(&options); /* first: the ready descriptor may be one of the three that are filled */
	fill_standard(options.foreground);
	if (!options.foreground)
		setsid(); /* fails for the leader of a group: then the caller's shell keeps its job */
	umask(077);
	if (chdir("/") < 0)
		return refuse(&options, DAEMON_FAILED, strerror(errno));
	return keeper_main(&options);
}
