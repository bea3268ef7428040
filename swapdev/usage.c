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

uint64_t usage_ended_children_ns(pid_t pid)
{
	unsigned long long user, system;
	char path[32], text[1024];
	const char *after_name;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (textfile_read(path, text, sizeof(text)) <= 0)
		return 0;
	after_name = strrchr(text, ')');
	if (!after_name ||
		sscanf(after_name + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %llu %llu", &user, &system) != 2)
		return 0;
	return (user + system) * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
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

static uint64_t file_bytes(int fd)
{
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? (uint64_t)status.st_blocks * 512 : 0;
}

uint64_t usage_resident_bytes(pid_t keeper, int image_fd, int buffers_fd)
{
	struct memory server = memory_of(getpid()), other = memory_of(keeper);

	return server.anonymous_bytes + server.file_bytes + other.anonymous_bytes + file_bytes(image_fd) +
	       file_bytes(buffers_fd);
}
