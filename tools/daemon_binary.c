// SPDX-License-Identifier: GPL-2.0-or-later
/* Finding the daemon's program, and asking a program whether it is one. */
#include "daemon_binary.h"

#include "cli_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION_TIMEOUT_MS 5000

static int find_beside(char path[DAEMON_PATH_BYTES])
{
	ssize_t length = readlink("/proc/self/exe", path, DAEMON_PATH_BYTES - sizeof(DAEMON_NAME));
	char *slash;

	path[length > 0 ? length : 0] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return -ENOENT;
	strcpy(slash + 1, DAEMON_NAME);
	return access(path, X_OK) < 0 ? -errno : 0;
}

static int find_in_path(char path[DAEMON_PATH_BYTES])
{
	const char *directories = getenv("PATH");

	while (directories && *directories) {
		size_t length = strcspn(directories, ":");

		if (length && length + sizeof("/" DAEMON_NAME) <= DAEMON_PATH_BYTES) {
			snprintf(path, DAEMON_PATH_BYTES, "%.*s/" DAEMON_NAME, (int)length, directories);
			if (access(path, X_OK) == 0)
				return 0;
		}
		directories += length + (directories[length] == ':');
	}
	return -ENOENT;
}

void daemon_binary_find(char ret_path[DAEMON_PATH_BYTES])
{
	if (find_beside(ret_path) < 0 && find_in_path(ret_path) < 0)
		strcpy(ret_path, DAEMON_NAME);
}

static int refuse(int error, char *problem, size_t problem_bytes, const char *why)
{
	snprintf(problem, problem_bytes, "%s", why);
	return error;
}

int daemon_binary_version(
	const char *path, char *ret_version, size_t version_bytes, char *problem, size_t problem_bytes)
{
	char *argv[] = {(char *)path, "--version", NULL};
	char line[128];
	struct stat status;
	int result;

	if (stat(path, &status) < 0)
		return refuse(-errno, problem, problem_bytes, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return refuse(-EACCES, problem, problem_bytes, "it is no file");
	if (access(path, X_OK) < 0)
		return refuse(-errno, problem, problem_bytes, "it is not executable");
	result = process_ask(argv, VERSION_TIMEOUT_MS, line, sizeof(line));
	if (result == -ETIMEDOUT || result == -EINPROGRESS)
		return refuse(-ETIMEDOUT, problem, problem_bytes, "it does not answer --version");
	if (result || strncmp(line, DAEMON_NAME " ", sizeof(DAEMON_NAME)) != 0)
		return refuse(-ENOEXEC, problem, problem_bytes, "it is no " DAEMON_NAME);
	snprintf(ret_version, version_bytes, "%s", line);
	return 0;
}
