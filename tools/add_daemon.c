// SPDX-License-Identifier: GPL-2.0-or-later
/* Starting the daemon of a new device. */
#include "add_daemon.h"

#include "cleanup.h"
#include "cli_device.h"
#include "cli_process.h"
#include "clock.h"
#include "daemon_binary.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define READY_TIMEOUT_MS 60000
#define END_TIMEOUT_MS 10000
#define ARGUMENTS_MAX 48

static int signal_fd = -1;

/* Argument vector whose texts live in one buffer. */
struct arguments {
	char *argv[ARGUMENTS_MAX];
	unsigned count;
	char text[2048];
	size_t length;
};

static void add_argument(struct arguments *arguments, const char *text)
{
	size_t bytes = strlen(text) + 1;

	if (arguments->count >= ARGUMENTS_MAX - 1 || arguments->length + bytes > sizeof(arguments->text))
		abort(); /* sized for all options; only --fault is free text, and checked */
	arguments->argv[arguments->count++] = memcpy(arguments->text + arguments->length, text, bytes);
	arguments->length += bytes;
}

static void add_option(struct arguments *arguments, const char *name, const char *value)
{
	add_argument(arguments, name);
	add_argument(arguments, value);
}

static void add_number(struct arguments *arguments, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	add_option(arguments, name, text);
}

static void make_arguments(const struct add_config *config, const char *name, int ready_fd, struct arguments *ret)
{
	char codec[16];

	memset(ret, 0, sizeof(*ret));
	add_argument(ret, DAEMON_NAME);
	add_option(ret, "--name", name);
	add_number(ret, "--size", config->size_bytes);
	add_number(ret, "--max-size", config->max_size_bytes);
	add_number(ret, "--unit", config->unit_bytes);
	if (config->frame_bytes == config->unit_bytes)
		add_option(ret, "--frame", "whole");
	else
		add_number(ret, "--frame", config->frame_bytes);
	add_option(ret, "--codec", codec_format(config->codec, codec, sizeof(codec)));
	add_number(ret, "--slots", config->slots);
	add_number(ret, "--io-threads", config->io_threads);
	add_number(ret, "--compress-threads", config->compress_threads);
	if (config->limit_bytes == UINT64_MAX)
		add_option(ret, "--mem-limit", "none");
	else
		add_number(ret, "--mem-limit", config->limit_bytes);
	add_number(ret, "--reserve", config->reserve_bytes);
	add_option(ret, "--transport", config->transport);
	if (config->fault)
		add_option(ret, "--fault", config->fault);
	if (!config->discard)
		add_argument(ret, "--no-discard");
	if (config->merge)
		add_argument(ret, "--merge");
	if (config->no_standby)
		add_argument(ret, "--no-standby");
	if (config->allow_unsafe)
		add_argument(ret, "--allow-unsafe");
	add_number(ret, "--ready-fd", (uint64_t)ready_fd);
}

/*
 * A pipe as stderr has a reader that waits for its end ("$(folioswap add ...
 * 2>&1)"): a daemon that kept it would hold the reader up for ever. A terminal
 * belongs to a user, who hears the one line that matters from this program.
 * The kernel's log takes the daemon's lines as they are. A file or the
 * journal's socket stays.
 */
static void leave_stderr_behind(void)
{
	struct stat status;
	int log_fd;

	if (fstat(STDERR_FILENO, &status) == 0 && !S_ISFIFO(status.st_mode) && !isatty(STDERR_FILENO))
		return;
	log_fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	if (log_fd < 0)
		log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (log_fd >= 0)
		dup2(log_fd, STDERR_FILENO);
}

static void exec_daemon(const char *path, char *const argv[], int ready_fd)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	leave_stderr_behind();
	fcntl(ready_fd, F_SETFD, 0);
	execvp(path, argv);
	dprintf(ready_fd, "failed cannot run %s: %s; is it installed?\n", path, strerror(errno));
	_exit(CLI_FAILED);
}

static pid_t spawn_daemon(const struct add_config *config, const char *name, int ready_fd)
{
	struct arguments arguments;
	char path[DAEMON_PATH_BYTES];
	pid_t pid;

	daemon_binary_find(path);
	make_arguments(config, name, ready_fd, &arguments);
	pid = fork();
	if (pid == 0)
		exec_daemon(path, arguments.argv, ready_fd);
	return pid;
}

bool add_interrupted(void)
{
	struct pollfd poll_fd = {.fd = signal_fd, .events = POLLIN};

	return poll(&poll_fd, 1, 0) > 0;
}

static int catch_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return signal_fd < 0 ? -errno : 0;
}

/* Reads up to the line feed or the end. Returns bytes read, -EINTR (a signal), -ETIMEDOUT, or -errno. */
static ssize_t read_line(int fd, char *line, size_t line_bytes)
{
	uint64_t deadline_ns = clock_ns() + READY_TIMEOUT_MS * UINT64_C(1000000);
	struct pollfd poll_fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
	size_t length = 0;

	while (length < line_bytes - 1 && !memchr(line, '\n', length)) {
		uint64_t now = clock_ns();
		ssize_t got;

		if (now >= deadline_ns || poll(poll_fds, 2, (int)((deadline_ns - now) / 1000000) + 1) == 0)
			return -ETIMEDOUT;
		if (poll_fds[1].revents)
			return -EINTR;
		got = read(fd, line + length, line_bytes - 1 - length);
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		length += (size_t)got;
	}
	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return (ssize_t)length;
}

/* The exit code of a daemon that ended is ours where it is one of ours. */
static int exit_code(int status)
{
	if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) >= CLI_FAILED &&
		WEXITSTATUS(status) <= CLI_NO_DEVICE)
		return WEXITSTATUS(status);
	return CLI_FAILED;
}

/* It died without a word, or had to be ended: nobody else takes down what it made. */
static int report_death(pid_t pid, const char *name, ssize_t got)
{
	int status = got < 0 ? 0 : process_wait(pid, END_TIMEOUT_MS);

	if (got < 0 || status == -ETIMEDOUT)
		process_end(pid, END_TIMEOUT_MS);
	device_clean(name);
	if (got == -EINTR)
		return cli_fail(CLI_FAILED, "interrupted; the new device was taken down again");
	if (got < 0)
		return cli_fail(CLI_FAILED, DAEMON_NAME " did not get ready within %d s (%s) and was ended",
			READY_TIMEOUT_MS / 1000, strerror((int)-got));
	if (status >= 0 && WIFSIGNALED(status))
		return cli_fail(CLI_FAILED, DAEMON_NAME " was killed by signal %d while it started; see the log",
			WTERMSIG(status));
	return cli_fail(
		(enum cli_exit)exit_code(status), DAEMON_NAME " ended while it started and said nothing; see the log");
}

/* -EEXIST: another add was first with this name. Otherwise 0 or an exit code (reported). */
static int start_as(const struct add_config *config, const char *name, char ret_node[64])
{
	CLEANUP(close_fd) int read_fd = -1;
	int pipe_fds[2], code, status;
	char line[512] = "";
	ssize_t got;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return cli_fail(CLI_FAILED, "pipe: %s", strerror(errno));
	read_fd = pipe_fds[0];
	pid = spawn_daemon(config, name, pipe_fds[1]);
	close(pipe_fds[1]);
	if (pid < 0)
		return cli_fail(CLI_FAILED, "fork: %s", strerror(errno));
	got = read_line(read_fd, line, sizeof(line));
	if (strncmp(line, "ready /", 7) == 0) {
		snprintf(ret_node, 64, "%.63s", line + 6);
		return CLI_DONE;
	}
	if (strncmp(line, "failed ", 7) != 0)
		return report_death(pid, name, got);
	status = process_wait(pid, END_TIMEOUT_MS);
	if (status == -ETIMEDOUT)
		process_end(pid, END_TIMEOUT_MS);
	code = exit_code(status);
	if (code == CLI_BUSY && !device_is_gone(name))
		return -EEXIST;
	return cli_fail((enum cli_exit)code, "%s", line + 7);
}

/* The lowest name from *number on that nobody has. */
static int next_free(int *number, char name[16])
{
	char names[CONTROL_DEVICES_MAX][16];
	int count = device_names(names);

	for (; *number < CONTROL_DEVICES_MAX; (*number)++) {
		bool taken = false;

		snprintf(name, 16, "%d", *number);
		for (int i = 0; i < count; i++)
			taken |= strcmp(names[i], name) == 0;
		if (!taken)
			return 0;
	}
	return cli_fail(CLI_FAILED, "all %d device numbers are taken", CONTROL_DEVICES_MAX);
}

int add_daemon_start(const struct add_config *config, char ret_name[16], char ret_node[64])
{
	int error = catch_signals(), number = 0, result;

	if (error)
		return cli_fail(CLI_FAILED, "signalfd: %s", strerror(-error));
	do {
		if (next_free(&number, ret_name))
			return CLI_FAILED;
		result = start_as(config, ret_name, ret_node);
		number++;
	} while (result == -EEXIST);
	return result;
}
