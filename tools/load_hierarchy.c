// SPDX-License-Identifier: GPL-2.0-or-later
/* Which cgroup hierarchy has the memory controller, and where the caller is in it. */
#include "load_cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Is word one of the items of a comma separated list of that length? */
static bool list_has(const char *list, size_t length, const char *word)
{
	const char *end = list + length;
	size_t item;

	for (const char *at = list; at < end; at += item + 1) {
		const char *comma = memchr(at, ',', (size_t)(end - at));

		item = (size_t)((comma ? comma : end) - at);
		if (item == strlen(word) && memcmp(at, word, item) == 0)
			return true;
	}
	return false;
}

static const char *next_line(const char *line)
{
	line += strcspn(line, "\n");
	return *line ? line + 1 : line;
}

/* "4:memory:/path" is v1 and wins; "0::/path" is v2. Returns the version, 0: neither. */
static unsigned own_path(const char *self_cgroup, char *ret_path, size_t path_bytes)
{
	const char *controllers, *path;
	unsigned version = 0;

	for (const char *line = self_cgroup; *line && version != 1; line = next_line(line)) {
		controllers = strchr(line, ':');
		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path || path > line + strcspn(line, "\n"))
			continue;
		if (list_has(controllers + 1, (size_t)(path - controllers - 1), "memory"))
			version = 1;
		else if (strncmp(line, "0::", 3) == 0)
			version = 2;
		else
			continue;
		snprintf(ret_path, path_bytes, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
	}
	return version;
}

struct mount_line {
	char root[PATH_MAX];
	char mount[PATH_MAX];
	char type[32];
	char options[1024];
};

static bool mount_line_parse(const char *line, struct mount_line *ret_line)
{
	const char *separator = strstr(line, " - ");

	if (!separator || separator > line + strcspn(line, "\n"))
		return false;
	return sscanf(line, "%*s %*s %*s %4095s %4095s", ret_line->root, ret_line->mount) == 2 &&
	       sscanf(separator + 3, "%31s %*s %1023s", ret_line->type, ret_line->options) == 2;
}

static bool is_wanted_mount(const struct mount_line *mount, unsigned version)
{
	if (version == 2)
		return strcmp(mount->type, "cgroup2") == 0;
	return strcmp(mount->type, "cgroup") == 0 && list_has(mount->options, strlen(mount->options), "memory");
}

/* In a container a part of the hierarchy is mounted: root is what the path has more than the mount shows. */
static const char *below_root(const char *path, const char *root)
{
	size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, length) != 0 || (path[length] && path[length] != '/'))
		return "";
	path += length;
	return strcmp(path, "/") == 0 ? "" : path;
}

int load_cgroup_find(const char *self_cgroup, const char *mountinfo, struct load_cgroup_place *ret_place)
{
	static struct mount_line mount;
	static char path[PATH_MAX];
	unsigned version = own_path(self_cgroup, path, sizeof(path));

	if (!version)
		return -ENOENT;
	for (const char *line = mountinfo; *line; line = next_line(line)) {
		if (!mount_line_parse(line, &mount) || !is_wanted_mount(&mount, version))
			continue;
		if (strlen(mount.mount) + strlen(path) >= PATH_MAX)
			return -ENAMETOOLONG;
		ret_place->version = version;
		snprintf(ret_place->mount, PATH_MAX, "%s", mount.mount);
		strcpy(stpcpy(ret_place->path, mount.mount), below_root(path, mount.root));
		return 0;
	}
	return -ENOENT;
}
