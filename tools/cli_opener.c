// SPDX-License-Identifier: GPL-2.0-or-later
/* Walks the open files of all processes for a block device. */
#include "cli_opener.h"

#include "cleanup.h"
#include "cli_process.h"
#include "clock.h"

#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#define PAUSE_MS 50

static bool has_open(const char *process, dev_t device)
{
	char path[64];
	struct dirent *entry;
	bool found = false;
	DIR *files;

	snprintf(path, sizeof(path), "/proc/%.16s/fd", process);
	files = opendir(path);
	while (files && !found && (entry = readdir(files))) {
		struct stat status;

		found = fstatat(dirfd(files), entry->d_name, &status, 0) == 0 && S_ISBLK(status.st_mode) &&
			status.st_rdev == device;
	}
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

static void read_name(pid_t pid, char *ret_name, size_t name_bytes)
{
	char path[64];
	CLEANUP(fclose) FILE *file = NULL;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "re");
	if (!file || !fgets(ret_name, (int)name_bytes, file))
		ret_name[0] = '\0';
	ret_name[strcspn(ret_name, "\n")] = '\0';
}

pid_t opener_find(const char *node, const pid_t *others, char *ret_name, size_t name_bytes)
{
	struct stat status;
	struct dirent *entry;
	pid_t found = 0;
	DIR *processes;

	if (stat(node, &status) < 0 || !S_ISBLK(status.st_mode))
		return 0;
	processes = opendir("/proc");
	while (processes && !found && (entry = readdir(processes))) {
		pid_t pid = atoi(entry->d_name);

		if (pid > 0 && !is_listed(pid, others) && has_open(entry->d_name, status.st_rdev))
			found = pid;
	}
	if (processes)
		closedir(processes);
	if (found)
		read_name(found, ret_name, name_bytes);
	return found;
}

pid_t opener_wait(const char *node, const pid_t *others, int timeout_ms, char *ret_name, size_t name_bytes)
{
	uint64_t deadline_ns = clock_ns() + (uint64_t)timeout_ms * 1000000;
	pid_t pid;

	while ((pid = opener_find(node, others, ret_name, name_bytes)) && clock_ns() < deadline_ns)
		process_sleep_ms(PAUSE_MS);
	return pid;
}
