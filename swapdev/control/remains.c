// SPDX-License-Identifier: GPL-2.0-or-later
/* Block devices first, while path and cookie still tell whose they are; then mount, files, directory. */
#include "remains.h"
#include "remains_ublk.h"

#include "cleanup.h"
#include "clock.h"
#include "control.h"
#include "control_at.h"
#include "swaps.h"
#include "textfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 256
#define LOOPS_MAX 8
#define LOCK_WAIT_NS UINT64_C(10000000000)
#define PAUSE_US 20000

static int fail(char *problem, size_t problem_bytes, const char *what, const char *path)
{
	int error = errno;

	snprintf(problem, problem_bytes, "cannot %s %s: %s", what, path, strerror(error));
	return -error;
}

int control_lock(void)
{
	uint64_t give_up_ns = clock_ns() + LOCK_WAIT_NS;
	CLEANUP(close_fd) int fd = -1;

	if (mkdir(CONTROL_DIR, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(CONTROL_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (clock_ns() >= give_up_ns)
			return -EBUSY;
		usleep(PAUSE_US);
	}
	return take_fd(&fd);
}

static bool loop_lies_below(const char *loop_name, const char *directory)
{
	char path[PATH_BYTES], backing[512];
	size_t length = strlen(directory);

	snprintf(path, sizeof(path), "/sys/block/%.64s/loop/backing_file", loop_name);
	return textfile_line(path, backing, sizeof(backing)) && strncmp(backing, directory, length) == 0 &&
	       backing[length] == '/';
}

static int find_loops(const char *directory, char nodes[][64], int max)
{
	DIR *blocks = opendir("/sys/block");
	struct dirent *entry;
	int count = 0;

	while (blocks && count < max && (entry = readdir(blocks))) {
		if (strncmp(entry->d_name, "loop", 4) == 0 && loop_lies_below(entry->d_name, directory))
			snprintf(nodes[count++], 64, "/dev/%.48s", entry->d_name);
	}
	if (blocks)
		closedir(blocks);
	return count;
}

int control_loops(const char *name, char nodes[][64], int max)
{
	char directory[64];

	int count;

	snprintf(directory, sizeof(directory), CONTROL_DIR "/%.15s", name);
	count = find_loops(directory, nodes, max);
	return count + (count < max && remains_ublk_node(directory, nodes[count], sizeof(nodes[count])));
}

void control_fail_io(const char *name)
{
	char directory[64];

	snprintf(directory, sizeof(directory), CONTROL_DIR "/%.15s", name);
	remains_ublk_fail_io(directory);
}

static int clear_loop(const char *node, char *problem, size_t problem_bytes)
{
	CLEANUP(close_fd) int fd = -1;

	if (swaps_has_node(node)) {
		snprintf(problem, problem_bytes, "an earlier device of this name is dead but swapped on: swapoff %s",
			node);
		return -EBUSY;
	}
	fd = open(node, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || (ioctl(fd, LOOP_CLR_FD) < 0 && errno != ENXIO))
		return fail(problem, problem_bytes, "take down", node);
	return 0;
}

static int clear_loops(const char *directory, char *problem, size_t problem_bytes)
{
	char nodes[LOOPS_MAX][64];
	int count = find_loops(directory, nodes, LOOPS_MAX), error = 0;

	for (int i = 0; i < count && error == 0; i++)
		error = clear_loop(nodes[i], problem, problem_bytes);
	return error;
}

/* The mount first: what it covers is not ours to remove. A name space that has a copy of it loses it with the point. */
static int remove_directory(const char *path, char *problem, size_t problem_bytes)
{
	char mount_path[PATH_BYTES + sizeof("/mnt")];
	struct dirent *entry;
	DIR *directory;

	snprintf(mount_path, sizeof(mount_path), "%s/mnt", path);
	while (umount2(mount_path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
		;
	directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			unlinkat(dirfd(directory), entry->d_name, 0) < 0)
			unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR);
	}
	if (directory)
		closedir(directory);
	return rmdir(path) < 0 && errno != ENOENT ? fail(problem, problem_bytes, "remove", path) : 0;
}

int control_clean_at(const char *directory, const char *name, char *problem, size_t problem_bytes)
{
	pid_t keeper = control_keeper_pid_at(directory, name);
	char path[PATH_BYTES];
	int error;

	if (keeper == -ENOENT)
		return 0;
	if (keeper > 0)
		return -EEXIST;
	snprintf(path, sizeof(path), "%s/%.15s", directory, name);
	if (keeper != -ESRCH) {
		errno = -keeper;
		return fail(problem, problem_bytes, "look into", path);
	}
	error = clear_loops(path, problem, problem_bytes);
	if (error == 0)
		error = remains_ublk_clear(path, problem, problem_bytes);
	return error < 0 ? error : remove_directory(path, problem, problem_bytes);
}

int control_clean(const char *name, char *problem, size_t problem_bytes)
{
	return control_clean_at(CONTROL_DIR, name, problem, problem_bytes);
}
