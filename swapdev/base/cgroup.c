// SPDX-License-Identifier: GPL-2.0-or-later
/* From /proc/self/cgroup and /proc/self/mountinfo to directories, and upwards through these. */
#include "cgroup.h"

#include "cleanup.h"
#include "textfile.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 1024
/* Version 1 says "no limit" as the largest multiple of the page size; nobody means 4 EiB. */
#define MEMORY_UNLIMITED (UINT64_C(1) << 62)

/* Where limits are looked for, and where the first that is found goes. */
struct search {
	const char *root;
	char *text;
	size_t text_bytes;
};

/* One file that may hold a limit; controller "" is version 2. */
struct limit_file {
	const char *controller;
	const char *file;
	bool (*is_unlimited)(const char *value);
};

static bool is_huge(const char *value)
{
	return strtoull(value, NULL, 10) >= MEMORY_UNLIMITED;
}

static bool is_negative(const char *value)
{
	return value[0] == '-';
}

static bool is_max(const char *value)
{
	return strncmp(value, "max", 3) == 0;
}

static const struct limit_file limit_files[] = {
	{"memory", "memory.limit_in_bytes", is_huge},
	{"cpu", "cpu.cfs_quota_us", is_negative},
	{"", "memory.max", is_max},
	{"", "memory.high", is_max},
	{"", "cpu.max", is_max},
};

#define LIMIT_FILES (sizeof(limit_files) / sizeof(limit_files[0]))

/* Is word one of the comma-separated words of list? */
static bool list_has(const char *list, const char *word)
{
	size_t length = strlen(word);

	while (list) {
		if (strncmp(list, word, length) == 0 && (list[length] == ',' || list[length] == '\0'))
			return true;
		list = strchr(list, ',');
		if (list)
			list++;
	}
	return false;
}

static FILE *open_below(const struct search *search, const char *file)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s%s", search->root, file);
	return fopen(path, "re");
}

struct mount_line {
	char root[PATH_BYTES];
	char point[PATH_BYTES];
	char type[32];
	char options[PATH_BYTES]; /* of the file system: version 1 names its controllers here */
};

static bool parse_mount_line(const char *line, struct mount_line *ret)
{
	const char *rest = strstr(line, " - ");

	return rest && sscanf(line, "%*s %*s %*s %1023s %1023s", ret->root, ret->point) == 2 &&
	       sscanf(rest + 3, "%31s %*s %1023s", ret->type, ret->options) == 2;
}

static bool find_mount(const struct search *search, const char *controller, struct mount_line *ret)
{
	CLEANUP(fclose) FILE *file = open_below(search, "/proc/self/mountinfo");
	CLEANUP(free) char *line = NULL;
	size_t line_bytes = 0;

	while (file && getline(&line, &line_bytes, file) > 0) {
		if (!parse_mount_line(line, ret))
			continue;
		if (controller[0] == '\0' && strcmp(ret->type, "cgroup2") == 0)
			return true;
		if (controller[0] != '\0' && strcmp(ret->type, "cgroup") == 0 && list_has(ret->options, controller))
			return true;
	}
	return false;
}

/* There may be no such file: the controller is not enabled, or this is the root group. */
static bool check_group(const struct search *search, const char *directory, const char *controller)
{
	char path[PATH_BYTES + 64], value[64];
	size_t i;

	for (i = 0; i < LIMIT_FILES; i++) {
		if (strcmp(limit_files[i].controller, controller) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, limit_files[i].file);
		if (!textfile_line(path, value, sizeof(value)) || limit_files[i].is_unlimited(value))
			continue;
		snprintf(search->text, search->text_bytes, "%s is %s", path + strlen(search->root), value);
		return true;
	}
	return false;
}

/* group as /proc/self/cgroup gives it; a group outside of what is mounted here shows only the mount's own root. */
static bool check_upwards(
	const struct search *search, const struct mount_line *mount, const char *group, const char *controller)
{
	char directory[PATH_BYTES];
	size_t point_length = strlen(search->root) + strlen(mount->point), root_length = strlen(mount->root);
	const char *below = group;

	if (strcmp(mount->root, "/") != 0)
		below = strncmp(group, mount->root, root_length) == 0 ? group + root_length : "";
	if (strstr(below, "/..") || strcmp(below, "/") == 0)
		below = "";
	if ((size_t)snprintf(directory, sizeof(directory), "%s%s%s", search->root, mount->point, below) >=
		sizeof(directory))
		return false;
	while (!check_group(search, directory, controller)) {
		if (strlen(directory) <= point_length)
			return false;
		*strrchr(directory, '/') = '\0';
	}
	return true;
}

/* A line of /proc/self/cgroup: "4:cpu,cpuacct:/group", or "0::/group" for version 2. */
static bool check_line(const struct search *search, char *line)
{
	static const char *const controllers[] = {"memory", "cpu", ""};
	struct mount_line mount;
	char *list, *group;
	size_t i;

	line[strcspn(line, "\n")] = '\0';
	list = strchr(line, ':');
	group = list ? strchr(list + 1, ':') : NULL;
	if (!group)
		return false;
	*group++ = '\0';
	list++;
	for (i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
		if (controllers[i][0] == '\0' ? list[0] != '\0' : !list_has(list, controllers[i]))
			continue;
		if (find_mount(search, controllers[i], &mount) && check_upwards(search, &mount, group, controllers[i]))
			return true;
	}
	return false;
}

bool cgroup_find_limit(const char *root, char *text, size_t text_bytes)
{
	const struct search search = {.root = root, .text = text, .text_bytes = text_bytes};
	CLEANUP(fclose) FILE *file = open_below(&search, "/proc/self/cgroup");
	CLEANUP(free) char *line = NULL;
	size_t line_bytes = 0;

	while (file && getline(&line, &line_bytes, file) > 0) {
		if (check_line(&search, line))
			return true;
	}
	return false;
}
