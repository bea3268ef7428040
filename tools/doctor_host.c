// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading the host for the checks. */
#include "doctor.h"

#include "cleanup.h"

#include <stdarg.h>
#include <string.h>

#define PATH_BYTES 1024

static void set_result(struct doctor_result *result, enum doctor_status status, const char *advice, const char *format,
	va_list arguments)
{
	result->status = status;
	vsnprintf(result->found, sizeof(result->found), format, arguments);
	snprintf(result->advice, sizeof(result->advice), "%s", advice);
}

void doctor_ok(struct doctor_result *result, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	set_result(result, DOCTOR_OK, "", format, arguments);
	va_end(arguments);
}

void doctor_warn(struct doctor_result *result, const char *advice, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	set_result(result, DOCTOR_WARN, advice, format, arguments);
	va_end(arguments);
}

void doctor_fail(struct doctor_result *result, const char *advice, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	set_result(result, DOCTOR_FAIL, advice, format, arguments);
	va_end(arguments);
}

const char *doctor_path(const char *root, const char *path, char *buffer, size_t buffer_bytes)
{
	snprintf(buffer, buffer_bytes, "%s%s", root, path);
	return buffer;
}

bool doctor_exists(const char *root, const char *path)
{
	char full[2 * PATH_BYTES];

	return access(doctor_path(root, path, full, sizeof(full)), F_OK) == 0;
}

bool doctor_read(const char *root, const char *path, char *text, size_t text_bytes)
{
	char full[2 * PATH_BYTES];
	CLEANUP(fclose) FILE *file = fopen(doctor_path(root, path, full, sizeof(full)), "re");

	text[0] = '\0';
	if (!file || !fgets(text, (int)text_bytes, file))
		return false;
	text[strcspn(text, "\n")] = '\0';
	return true;
}

bool doctor_read_number(const char *root, const char *path, long long *ret)
{
	char text[64];

	return doctor_read(root, path, text, sizeof(text)) && sscanf(text, "%lld", ret) == 1;
}

bool doctor_read_choice(const char *root, const char *path, char *word, size_t word_bytes)
{
	char text[256], *begin, *end;

	word[0] = '\0';
	if (!doctor_read(root, path, text, sizeof(text)))
		return false;
	begin = strchr(text, '[');
	end = begin ? strchr(begin, ']') : NULL;
	if (!end)
		return false;
	*end = '\0';
	snprintf(word, word_bytes, "%s", begin + 1);
	return true;
}

bool doctor_read_key(const char *root, const char *path, const char *key, long long *ret)
{
	char full[2 * PATH_BYTES], line[256];
	CLEANUP(fclose) FILE *file = fopen(doctor_path(root, path, full, sizeof(full)), "re");
	size_t length = strlen(key);

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, length) == 0 && strchr(": \t", line[length]) &&
			sscanf(line + length + strspn(line + length, ": \t"), "%lld", ret) == 1)
			return true;
	}
	return false;
}

/* One knob of a control group; "is no limit" is what its value begins with, or a number of bytes beyond all memory. */
static const struct {
	const char *controller; /* version 1; "": version 2 */
	const char *file;
	const char *unlimited;
} knobs[] = {
	{"", "memory.max", "max"},
	{"", "memory.high", "max"},
	{"", "cpu.max", "max"},
	{"memory", "memory.limit_in_bytes", NULL},
	{"cpu", "cpu.cfs_quota_us", "-"},
};

static bool value_is_limit(const char *value, const char *unlimited)
{
	if (unlimited)
		return strncmp(value, unlimited, strlen(unlimited)) != 0;
	return strtoull(value, NULL, 10) < UINT64_C(1) << 62;
}

/* From the group up to the mount point's own directory. */
static bool climb(
	const char *root, const char *mount_point, const char *group, unsigned knob, char *text, size_t text_bytes)
{
	char directory[PATH_BYTES], path[PATH_BYTES + 64], value[64];
	size_t point_length = strlen(mount_point);

	snprintf(directory, sizeof(directory), "%s%s", mount_point, group);
	for (;;) {
		char *slash;

		snprintf(path, sizeof(path), "%s/%s", directory, knobs[knob].file);
		if (doctor_read(root, path, value, sizeof(value)) && value_is_limit(value, knobs[knob].unlimited)) {
			snprintf(text, text_bytes, "%s is %s", path, value);
			return true;
		}
		slash = strrchr(directory, '/');
		if (strlen(directory) <= point_length || !slash)
			return false;
		*slash = '\0';
	}
}

static bool list_has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL) {
		if (strncmp(list, word, length) == 0 && (list[length] == ',' || !list[length]))
			return true;
	}
	return false;
}

/* Where the hierarchy with this controller ("": version 2) is mounted. */
static bool find_mount_point(const char *root, const char *controller, char *point)
{
	char full[2 * PATH_BYTES], line[2 * PATH_BYTES], type[32], options[512];
	CLEANUP(fclose) FILE *file = fopen(doctor_path(root, "/proc/self/mounts", full, sizeof(full)), "re");

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*s %1023s %31s %511s", point, type, options) != 3)
			continue;
		if (*controller ? strcmp(type, "cgroup") == 0 && list_has_word(options, controller)
				: strcmp(type, "cgroup2") == 0)
			return true;
	}
	return false;
}

/* The group in a line of /proc/self/cgroup, "4:cpu,cpuacct:/group", if it is of the controller. */
static const char *group_of_line(char *line, const char *controller)
{
	char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;

	if (!group)
		return NULL;
	*group++ = '\0';
	list++;
	if (*controller ? !list_has_word(list, controller) : *list != '\0')
		return NULL;
	return strcmp(group, "/") == 0 ? "" : group;
}

static bool find_group(const char *root, const char *controller, char *group)
{
	char full[2 * PATH_BYTES], line[PATH_BYTES];
	CLEANUP(fclose) FILE *file = fopen(doctor_path(root, "/proc/self/cgroup", full, sizeof(full)), "re");

	while (file && fgets(line, sizeof(line), file)) {
		const char *found;

		line[strcspn(line, "\n")] = '\0';
		found = group_of_line(line, controller);
		if (found) {
			strcpy(group, found);
			return true;
		}
	}
	return false;
}

bool doctor_find_cgroup_limit(const char *root, char *text, size_t text_bytes)
{
	char point[PATH_BYTES], group[PATH_BYTES];

	for (unsigned knob = 0; knob < sizeof(knobs) / sizeof(knobs[0]); knob++) {
		if (find_mount_point(root, knobs[knob].controller, point) &&
			find_group(root, knobs[knob].controller, group) &&
			climb(root, point, group, knob, text, text_bytes))
			return true;
	}
	return false;
}
