// SPDX-License-Identifier: GPL-2.0-or-later
/* Children with deadlines. */
#include "cli_process.h"

#include "cleanup.h"
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define KILL_TIMEOUT_MS 2000
#define NS_PER_MS UINT64_C(1000000)

void process_sleep_ms(unsigned milliseconds)
{
	struct timespec left = {.tv_sec = milliseconds / 1000, .tv_nsec = (long)(milliseconds % 1000) * 1000000};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

/* poll(2) that goes on after a signal, with what is left of the time. Returns > 0, or 0 at the deadline. */
static int poll_until(struct pollfd *poll_fd, uint64_t deadline_ns)
{
	uint64_t now = clock_ns();
	int ready;

	do {
		ready = poll(
			poll_fd, 1, now < deadline_ns ? (int)((deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS) : 0);
		now = clock_ns();
	} while (ready < 0 && errno == EINTR);
	return ready;
}

int process_wait(pid_t pid, int timeout_ms)
{
	CLEANUP(close_fd) int fd = pidfd_open(pid, 0);
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	int status;

	if (fd < 0)
		return -errno;
	if (poll_until(&poll_fd, clock_ns() + (uint64_t)timeout_ms * NS_PER_MS) <= 0)
		return -ETIMEDOUT;
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	return status;
}

int process_end(pid_t pid, int term_timeout_ms)
{
	if (term_timeout_ms) {
		kill(pid, SIGTERM);
		if (process_wait(pid, term_timeout_ms) != -ETIMEDOUT)
			return 0;
	}
	kill(pid, SIGKILL);
	return process_wait(pid, KILL_TIMEOUT_MS) == -ETIMEDOUT ? -EINPROGRESS : 0;
}

/* What a child means: exit code c stands for -c of the work. */
static int wait_or_kill(pid_t pid, int timeout_ms)
{
	int status = process_wait(pid, timeout_ms);

	if (status == -ETIMEDOUT) {
		int error = process_end(pid, 0);

		return error ? error : -ETIMEDOUT;
	}
	if (status < 0)
		return status;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

static pid_t fork_bound_to_parent(void)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EINTR);
	}
	return pid;
}

/*
 * A child that outlives its deadline must not keep a pipe of the tool open:
 * whoever reads that would wait for it.
 */
static void forget_parent(void)
{
	sigset_t none;
	int null_fd = open("/dev/null", O_RDWR);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && null_fd >= 0; fd++)
		dup2(null_fd, fd);
}

int process_bounded(int (*work)(void *arg), void *arg, int timeout_ms)
{
	pid_t pid = fork_bound_to_parent();
	int result;

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		forget_parent();
		_exit(-work(arg));
	}
	result = wait_or_kill(pid, timeout_ms);
	return result > 0 ? -result : result;
}

/* In the child: only one of its streams is heard. */
static void exec_quietly(char *const argv[], int stream, int pipe_fd)
{
	forget_parent();
	if (dup2(pipe_fd, stream) < 0)
		_exit(126);
	/* execvp() would have a shell read whatever the kernel does not execute. */
	if (strchr(argv[0], '/'))
		execv(argv[0], argv);
	else
		execvp(argv[0], argv);
	dprintf(stream, "cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* The pipe holds what a short error text needs; more than that is dropped by a non-blocking writer or lost. */
static void read_first_line(int fd, char *message, size_t message_bytes)
{
	ssize_t got = read(fd, message, message_bytes - 1);

	message[got > 0 ? got : 0] = '\0';
	message[strcspn(message, "\n")] = '\0';
}

static int run_and_hear(char *const argv[], int stream, int timeout_ms, char *line, size_t line_bytes)
{
	CLEANUP(close_fd) int read_fd = -1;
	int pipe_fds[2], result;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	read_fd = pipe_fds[0];
	pid = fork_bound_to_parent();
	if (pid == 0)
		exec_quietly(argv, stream, pipe_fds[1]);
	close(pipe_fds[1]);
	if (pid < 0)
		return -errno;
	result = wait_or_kill(pid, timeout_ms);
	read_first_line(read_fd, line, line_bytes);
	return result;
}

int process_run(char *const argv[], int timeout_ms, char *message, size_t message_bytes)
{
	return run_and_hear(argv, STDERR_FILENO, timeout_ms, message, message_bytes);
}

int process_ask(char *const argv[], int timeout_ms, char *line, size_t line_bytes)
{
	return run_and_hear(argv, STDOUT_FILENO, timeout_ms, line, line_bytes);
}
