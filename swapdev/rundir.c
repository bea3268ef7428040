// SPDX-License-Identifier: GPL-2.0-or-later
/* The device's directory: pid file, lock, socket. */
#include "rundir.h"

#include "cleanup.h"
#include "control.h"
#include "log.h"
#include "remains.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PATH_BYTES 128
#define BACKLOG 16

static int fail(char *problem, size_t problem_bytes, const char *what, const char *path)
{
	int error = errno;

	snprintf(problem, problem_bytes, "cannot %s %s: %s", what, path, strerror(error));
	return -error;
}

static void remove_files(const char *directory)
{
	static const char *const files[] = {"control", "pid"};
	char path[PATH_BYTES];
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, files[i]);
		unlink(path);
	}
}

static int make_pid_file(struct rundir *rundir)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[PATH_BYTES], text[16];
	int length;

	snprintf(path, sizeof(path), "%s/pid", rundir->path);
	rundir->pid_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (rundir->pid_fd < 0 || fcntl(rundir->pid_fd, F_SETLK, &lock) < 0)
		return -errno;
	length = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	return write(rundir->pid_fd, text, (size_t)length) == length ? 0 : -errno;
}

static int make_socket(struct rundir *rundir)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", rundir->path);
	rundir->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (rundir->listen_fd < 0 || bind(rundir->listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(rundir->listen_fd, BACKLOG) < 0)
		return -errno;
	return 0;
}

static int make_directory(struct rundir *rundir, const char *name, char *problem, size_t problem_bytes)
{
	int error;

	if (mkdir(rundir->path, 0700) == 0)
		return 0;
	if (errno != EEXIST)
		return fail(problem, problem_bytes, "make", rundir->path);
	error = control_clean(name, problem, problem_bytes);
	if (error == -EEXIST)
		snprintf(problem, problem_bytes, "device %s exists", name);
	if (error < 0)
		return error;
	log_warning("%s was left from a daemon that was killed: taken down", rundir->path);
	return mkdir(rundir->path, 0700) < 0 ? fail(problem, problem_bytes, "make", rundir->path) : 0;
}

static void take_down(struct rundir *rundir)
{
	rundir_close_socket(rundir);
	remove_files(rundir->path);
	rmdir(rundir->path);
	if (rundir->pid_fd >= 0)
		close(rundir->pid_fd);
	rundir->pid_fd = -1;
}

int rundir_create(struct rundir *ret, const char *name, char *problem, size_t problem_bytes)
{
	struct rundir rundir = {.pid_fd = -1, .listen_fd = -1};
	CLEANUP(close_fd) int base_fd = control_lock();
	int error;

	if (base_fd < 0) {
		errno = -base_fd;
		return fail(problem, problem_bytes, "use", CONTROL_DIR);
	}
	snprintf(rundir.path, sizeof(rundir.path), "%s/%s", CONTROL_DIR, name);
	error = make_directory(&rundir, name, problem, problem_bytes);
	if (error < 0)
		return error;
	error = make_pid_file(&rundir);
	if (error == 0)
		error = make_socket(&rundir);
	if (error < 0) {
		errno = -error;
		fail(problem, problem_bytes, "fill", rundir.path);
		take_down(&rundir);
		return error;
	}
	*ret = rundir;
	return 0;
}

void rundir_close_socket(struct rundir *rundir)
{
	if (rundir->listen_fd >= 0)
		close(rundir->listen_fd);
	rundir->listen_fd = -1;
}

void rundir_remove(struct rundir *rundir)
{
	int base_fd = control_lock();

	take_down(rundir);
	if (base_fd >= 0)
		close(base_fd);
}
