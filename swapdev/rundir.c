// SPDX-License-Identifier: GPL-2.0-or-later
/* The device's directory, and cleaning up after a keeper that was killed. */
#include "rundir.h"

#include "cleanup.h"
#include "control.h"
#include "log.h"
#include "swaps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
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

/* Held while directories come and go, so that two of the same name do not mix. */
static int lock_base(void)
{
	int fd;

	if (mkdir(CONTROL_DIR, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(CONTROL_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX) < 0) {
		close(fd);
		return -errno;
	}
	return fd;
}

/* ---- what a dead keeper left ---- */

static bool loop_lies_under(const char *loop_name, const char *directory)
{
	char path[PATH_BYTES], backing[256] = "";
	CLEANUP(fclose) FILE *file = NULL;
	size_t length = strlen(directory);

	snprintf(path, sizeof(path), "/sys/block/%.32s/loop/backing_file", loop_name);
	file = fopen(path, "re");
	return file && fgets(backing, sizeof(backing), file) && strncmp(backing, directory, length) == 0 &&
	       backing[length] == '/';
}

static int clear_loop(const char *node, char *problem, size_t problem_bytes)
{
	CLEANUP(close_fd) int fd = -1;

	if (swaps_has_node(node)) {
		snprintf(problem, problem_bytes, "an earlier device of this name is dead but swapped on: swapoff %s",
			node);
		return -EBUSY;
	}
	fd = open(node, O_RDWR | O_CLOEXEC);
	if (fd < 0 || (ioctl(fd, LOOP_CLR_FD) < 0 && errno != ENXIO))
		return fail(problem, problem_bytes, "take down", node);
	return 0;
}

static int clear_loops(const char *directory, char *problem, size_t problem_bytes)
{
	DIR *blocks = opendir("/sys/block");
	struct dirent *entry;
	char node[PATH_BYTES];
	int error = 0;

	while (blocks && error == 0 && (entry = readdir(blocks)) != NULL) {
		if (strncmp(entry->d_name, "loop", 4) != 0 || !loop_lies_under(entry->d_name, directory))
			continue;
		snprintf(node, sizeof(node), "/dev/%.32s", entry->d_name);
		error = clear_loop(node, problem, problem_bytes);
	}
	if (blocks)
		closedir(blocks);
	return error;
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

static int clean_stale(const char *directory, char *problem, size_t problem_bytes)
{
	char mount_path[PATH_BYTES];
	int error;

	log_warning("%s is left from a daemon that was killed: taking it down", directory);
	error = clear_loops(directory, problem, problem_bytes);
	if (error < 0)
		return error;
	snprintf(mount_path, sizeof(mount_path), "%s/mnt", directory);
	while (umount2(mount_path, MNT_DETACH) == 0)
		;
	rmdir(mount_path);
	remove_files(directory);
	if (rmdir(directory) < 0 && errno != ENOENT)
		return fail(problem, problem_bytes, "remove", directory);
	return 0;
}

/* ---- a new one ---- */

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
	if (control_keeper_pid(name) != -ESRCH) {
		snprintf(problem, problem_bytes, "device %s exists", name);
		return -EEXIST;
	}
	error = clean_stale(rundir->path, problem, problem_bytes);
	if (error < 0)
		return error;
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
	CLEANUP(close_fd) int base_fd = lock_base();
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
	int base_fd = lock_base();

	take_down(rundir);
	if (base_fd >= 0)
		close(base_fd);
}
