// SPDX-License-Identifier: GPL-2.0-or-later
/* CPU time and memory of keeper and server, from /proc. */
#include "usage.h"

#include "textfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

uint64_t usage_cpu_ns(pid_t pid)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) < 0)
		return 0;
	return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

static uint64_t status_bytes(const char *status, const char *key)
{
	const char *line = strstr(status, key);

	return line ? strtoull(line + strlen(key), NULL, 10) * 1024 : 0;
}

struct memory {
	uint64_t anonymous_bytes;
	uint64_t file_bytes;
};

static struct memory memory_of(pid_t pid)
{
	char path[32], status[4096];
	struct memory memory = {0};

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (textfile_read(path, status, sizeof(status)) <= 0)
		return memory;
	memory.anonymous_bytes = status_bytes(status, "\nRssAnon:");
	memory.file_bytes = status_bytes(status, "\nRssFile:");
	return memory;
}

uint64_t usage_own_bytes(pid_t pid)
{
	return memory_of(pid).anonymous_bytes;
}

uint64_t usage_resident_bytes(pid_t keeper, int image_fd)
{
	struct memory server = memory_of(getpid()), other = memory_of(keeper);
	uint64_t image_bytes = 0;
	struct stat status;

	if (fstat(image_fd, &status) == 0)
		image_bytes = (uint64_t)status.st_blocks * 512;
	return server.anonymous_bytes + server.file_bytes + other.anonymous_bytes + image_bytes;
}
