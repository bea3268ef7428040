// SPDX-License-Identifier: GPL-2.0-or-later
/* Limits of memory and CPU on this process's control group and all groups above it. */
#include "resident.h"

#include "cleanup.h"
#include "control.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 1024
/* Version 1 says "no limit" as the largest multiple of the page size; nobody means 4 EiB. */
#define MEMORY_UNLIMITED (UINT64_C(1) << 62)

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

static bool find_mount(const char *mountinfo_path, const char *controller, struct mount_line *ret)
{
	CLEANUP(fclose) FILE *file = fopen(mountinfo_path, "re");
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

/* Returns false when there is no such file (not enabled, or the root group) or it says "no limit". */
static bool has_limit(const char *directory, const struct limit_file *limit, char *value, size_t value_bytes)
{
	char path[PATH_BYTES + 64];
	CLEANUP(fclose) FILE *file = NULL;

	snprintf(path, sizeof(path), "%s/%s", directory, limit->file);
	file = fopen(path, "re");
	if (!file || !fgets(value, (int)value_bytes, file))
		return false;
	value[strcspn(value, "\n")] = '\0';
	return !limit->is_unlimited(value);
}

static bool check_group(struct resident_report *report, const char *directory, const char *controller)
{
	char value[64];
	size_t i;

	for (i = 0; i < LIMIT_FILES; i++) {
		if (strcmp(limit_files[i].controller, controller) != 0)
			continue;
		if (has_limit(directory, &limit_files[i], value, sizeof(value))) {
			resident_report_add(
				report, CONTROL_UNSAFE_CGROUP, "%s/%s is %s", directory, limit_files[i].file, value);
			return true;
		}
	}
	return false;
}

/* group as /proc/self/cgroup gives it; a group outside of what is mounted here shows only the mount's own root. */
static void check_upwards(
	struct resident_report *report, const struct mount_line *mount, const char *group, const char *controller)
{
	char directory[PATH_BYTES];
	size_t point_length = strlen(mount->point), root_length = strlen(mount->root);
	const char *below = group;
	char *slash;

	if (strcmp(mount->root, "/") != 0)
		below = strncmp(group, mount->root, root_length) == 0 ? group + root_length : "";
	if (strstr(below, "/..") || strcmp(below, "/") == 0)
		below = "";
	if ((size_t)snprintf(directory, sizeof(directory), "%s%s", mount->point, below) >= sizeof(directory))
		return;
	while (!check_group(report, directory, controller) && strlen(directory) > point_length) {
		slash = strrchr(directory, '/');
		*slash = '\0';
	}
}

/* A line of /proc/self/cgroup: "4:cpu,cpuacct:/group", or "0::/group" for version 2. */
static void check_line(struct resident_report *report, char *line, const char *mountinfo_path)
{
	static const char *const controllers[] = {"memory", "cpu", ""};
	struct mount_line mount;
	char *list, *group;
	size_t i;

	line[strcspn(line, "\n")] = '\0';
	list = strchr(line, ':');
	group = list ? strchr(list + 1, ':') : NULL;
	if (!group)
		return;
	*group++ = '\0';
	list++;
	for (i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
		if (controllers[i][0] == '\0' ? list[0] != '\0' : !list_has(list, controllers[i]))
			continue;
		if (find_mount(mountinfo_path, controllers[i], &mount))
			check_upwards(report, &mount, group, controllers[i]);
	}
}

void resident_cgroup(struct resident_report *report, const char *cgroup_path, const char *mountinfo_path)
{
	CLEANUP(fclose) FILE *file = fopen(cgroup_path, "re");
	CLEANUP(free) char *line = NULL;
	size_t line_bytes = 0;

	while (file && getline(&line, &line_bytes, file) > 0)
		check_line(report, line, mountinfo_path);
}
