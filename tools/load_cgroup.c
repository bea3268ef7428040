// SPDX-License-Identifier: GPL-2.0-or-later
/* Making, limiting, asking and removing the workers' memory cgroup. */
#include "load_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "cleanup.h"

#define REMOVE_TRIES 200
#define REMOVE_WAIT_MS 10

/* Reads a file of /proc or of a cgroup into text, ended by 0. Returns its length or a negative errno. */
static ssize_t read_text(const char *folder, const char *name, char *text, size_t text_bytes)
{
	char path[PATH_MAX + 64];
	CLEANUP(close_fd) int fd = -1;
	size_t used = 0;
	ssize_t got;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (used < text_bytes - 1) {
		got = read(fd, text + used, text_bytes - 1 - used);
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		used += (size_t)got;
	}
	text[used] = '\0';
	return (ssize_t)used;
}

static int write_text(const char *folder, const char *name, const char *text)
{
	char path[PATH_MAX + 64];
	CLEANUP(close_fd) int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return -errno;
	return 0;
}

static int find_own(struct load_cgroup_place *ret_place)
{
	static char self_cgroup[16384], mountinfo[262144];
	ssize_t error;

	error = read_text("/proc/self", "cgroup", self_cgroup, sizeof(self_cgroup));
	if (error >= 0)
		error = read_text("/proc/self", "mountinfo", mountinfo, sizeof(mountinfo));
	return error < 0 ? (int)error : load_cgroup_find(self_cgroup, mountinfo, ret_place);
}

static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
		if ((at == text || at[-1] == ' ') && (!at[length] || strchr(" \n", at[length])))
			return true;
	}
	return false;
}

/*
 * v2: children of a cgroup have the memory controller only where the cgroup
 * hands it down, and one that holds processes (save the root) may not start
 * to. So: the nearest one upward that does, or can be told to.
 */
static int find_v2_parent(struct load_cgroup_place *place, struct load_cgroup *cgroup)
{
	char handed_down[1024], *slash;

	for (;;) {
		if (read_text(place->path, "cgroup.subtree_control", handed_down, sizeof(handed_down)) >= 0 &&
			has_word(handed_down, "memory"))
			return 0;
		if (write_text(place->path, "cgroup.subtree_control", "+memory") == 0) {
			strcpy(cgroup->enabled_in, place->path);
			return 0;
		}
		slash = strrchr(place->path, '/');
		if (strlen(place->path) <= strlen(place->mount) || !slash)
			return -EACCES;
		*slash = '\0';
	}
}

/* Members that died just now count for a moment yet. Returns 0 or a negative errno. */
static int remove_directory(const char *path)
{
	for (unsigned tries = 1;; tries++) {
		if (rmdir(path) == 0)
			return 0;
		if (errno != EBUSY || tries == REMOVE_TRIES)
			return -errno;
		usleep(REMOVE_WAIT_MS * 1000);
	}
}

/* A killed run's: nobody holds its lock, and soon nobody is in it. */
static int remove_leftover(const char *path)
{
	CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char processes[64];
	int error;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -EBUSY;
	error = remove_directory(path);
	if (error == -EBUSY && read_text(path, "cgroup.procs", processes, sizeof(processes)) > 0)
		fprintf(stderr, "swapload: cgroup %s holds process %d\n", path, atoi(processes));
	return error;
}

static int make_directory(struct load_cgroup *cgroup)
{
	int error;

	if (mkdir(cgroup->path, 0755) < 0) {
		if (errno != EEXIST)
			return -errno;
		error = remove_leftover(cgroup->path);
		if (error < 0)
			return error;
		if (mkdir(cgroup->path, 0755) < 0)
			return -errno;
	}
	cgroup->directory_fd = open(cgroup->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup->directory_fd < 0)
		return -errno;
	return flock(cgroup->directory_fd, LOCK_EX | LOCK_NB) < 0 ? -EBUSY : 0;
}

static const char *advice(int error)
{
	switch (error) {
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return "run as root, or without --limit inside a cgroup that is limited already";
	case -EBUSY:
		return "another run uses it: wait for its end, or give another name with --cgroup";
	case -ENOENT:
		return "is a cgroup file system with the memory controller mounted?";
	default:
		return "see cgroups(7)";
	}
}

static int set_limit(const struct load_cgroup *cgroup, uint64_t limit_bytes)
{
	char limit[32];

	if (!limit_bytes)
		return 0;
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)limit_bytes);
	return write_text(cgroup->path, cgroup->version == 2 ? "memory.max" : "memory.limit_in_bytes", limit);
}

/* cgroup is zero but for directory_fd; what it holds after a failure is for load_cgroup_remove. */
static int create(const char *name, uint64_t limit_bytes, struct load_cgroup *cgroup)
{
	CLEANUP(free) struct load_cgroup_place *place = calloc(1, sizeof(*place));
	int error;

	if (!place)
		return -ENOMEM;
	error = find_own(place);
	if (error == 0 && place->version == 2)
		error = find_v2_parent(place, cgroup);
	if (error < 0)
		return error;
	if (strlen(place->path) + strlen(name) + 2 > PATH_MAX)
		return -ENAMETOOLONG;
	stpcpy(stpcpy(stpcpy(cgroup->path, place->path), "/"), name);
	error = make_directory(cgroup);
	if (error < 0)
		return error;
	cgroup->version = place->version;
	return set_limit(cgroup, limit_bytes);
}

int load_cgroup_create(const char *name, uint64_t limit_bytes, struct load_cgroup *ret_cgroup)
{
	CLEANUP(free) struct load_cgroup *cgroup = calloc(1, sizeof(*cgroup));
	int error;

	if (!cgroup)
		return -ENOMEM;
	cgroup->directory_fd = -1;
	error = create(name, limit_bytes, cgroup);
	if (error < 0) {
		fprintf(stderr, "swapload: cannot make memory cgroup %s (limit %llu bytes): %s; %s\n", name,
			(unsigned long long)limit_bytes, strerror(-error), advice(error));
		load_cgroup_remove(cgroup);
		return error;
	}
	*ret_cgroup = *cgroup;
	return 0;
}

void load_cgroup_remove(struct load_cgroup *cgroup)
{
	int error = cgroup->version ? remove_directory(cgroup->path) : 0;

	if (error < 0)
		fprintf(stderr, "swapload: cgroup %s could not be removed: %s\n", cgroup->path, strerror(-error));
	if (cgroup->directory_fd >= 0)
		close(cgroup->directory_fd);
	cgroup->directory_fd = -1;
	if (cgroup->enabled_in[0])
		write_text(cgroup->enabled_in, "cgroup.subtree_control", "-memory");
	cgroup->enabled_in[0] = '\0';
	cgroup->version = 0;
}

int load_cgroup_join(const struct load_cgroup *cgroup)
{
	return write_text(cgroup->path, "cgroup.procs", "0");
}

/* "key value" lines. */
static uint64_t number_in(const struct load_cgroup *cgroup, const char *file, const char *key)
{
	char text[16384];
	size_t length = strlen(key);

	if (!cgroup->version || read_text(cgroup->path, file, text, sizeof(text)) < 0)
		return 0;
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (strncmp(line, key, length) == 0 && line[length] == ' ')
			return strtoull(line + length, NULL, 10);
	}
	return 0;
}

uint64_t load_cgroup_stat(const struct load_cgroup *cgroup, const char *key)
{
	return number_in(cgroup, "memory.stat", key);
}

uint64_t load_cgroup_swap_bytes(const struct load_cgroup *cgroup)
{
	char text[64];

	if (cgroup->version != 2)
		return load_cgroup_stat(cgroup, "swap");
	return read_text(cgroup->path, "memory.swap.current", text, sizeof(text)) < 0 ? 0 : strtoull(text, NULL, 10);
}

uint64_t load_cgroup_oom_kills(const struct load_cgroup *cgroup)
{
	return number_in(cgroup, cgroup->version == 2 ? "memory.events" : "memory.oom_control", "oom_kill");
}

void load_cgroup_reclaim(const struct load_cgroup *cgroup)
{
	char text[32];

	if (cgroup->version == 1)
		write_text(cgroup->path, "memory.force_empty", "0");
	if (cgroup->version != 2 || read_text(cgroup->path, "memory.current", text, sizeof(text)) < 0)
		return;
	/* EAGAIN, where not all of it could go, is fine. */
	write_text(cgroup->path, "memory.reclaim", text);
}
