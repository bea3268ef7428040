// SPDX-License-Identifier: GPL-2.0-or-later
/* Walks the open files of all processes for a block device. */
#include "opener.h"

#include "textfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/*
 * Asking a file on a dead network or FUSE file system what it is may take for ever. Nodes lie under /dev, or have the
 * name that the kernel gives them: what a link says costs nothing, and only such files are asked.
 */
static bool may_be_node(int directory_fd, const char *link, const char *node)
{
	const char *name = strrchr(node, '/'), *found;
	char target[256];
	ssize_t length;

	length = readlinkat(directory_fd, link, target, sizeof(target) - 1);
	if (length <= 0)
		return false;
	target[length] = '\0';
	found = strrchr(target, '/');
	return strncmp(target, "/dev/", 5) == 0 || (name && found && strcmp(name, found) == 0);
}

static bool is_device(int directory_fd, const char *link, dev_t device)
{
	struct statx status;

	return statx(directory_fd, link, AT_STATX_DONT_SYNC, STATX_TYPE, &status) == 0 && S_ISBLK(status.stx_mode) &&
	       makedev(status.stx_rdev_major, status.stx_rdev_minor) == device;
}

static bool has_open(const char *process, const char *node, dev_t device)
{
	char path[64];
	struct dirent *entry;
	bool found = false;
	DIR *files;

	snprintf(path, sizeof(path), "/proc/%.16s/fd", process);
	files = opendir(path);
	while (files && !found && (entry = readdir(files)))
		found = may_be_node(dirfd(files), entry->d_name, node) &&
			is_device(dirfd(files), entry->d_name, device);
	if (files)
		closedir(files);
	return found;
}

static bool is_listed(pid_t pid, const pid_t *others)
{
	for (; *others; others++) {
		if (*others == pid)
			return true;
	}
	return false;
}

pid_t opener_find(const char *node, const pid_t *others, char *ret_name, size_t name_bytes)
{
	struct stat status;
	struct dirent *entry;
	char path[64];
	pid_t found = 0;
	DIR *processes;

	if (stat(node, &status) < 0 || !S_ISBLK(status.st_mode))
		return 0;
	processes = opendir("/proc");
	while (processes && !found && (entry = readdir(processes))) {
		pid_t pid = atoi(entry->d_name);

		if (pid > 0 && !is_listed(pid, others) && has_open(entry->d_name, node, status.st_rdev))
			found = pid;
	}
	if (processes)
		closedir(processes);
	if (found) {
		snprintf(path, sizeof(path), "/proc/%d/comm", (int)found);
		textfile_line(path, ret_name, name_bytes);
	}
	return found;
}
