/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A memory cgroup of one's own for the workers, in whichever hierarchy the
 * system keeps memory: v1 (memory.limit_in_bytes; swap is not limited) or v2
 * (memory.max).
 *
 * One run at a time uses a name; what a killed run left behind under the name
 * is removed. Parent only, but for load_cgroup_join.
 */
#ifndef LOAD_CGROUP_H
#define LOAD_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Where the memory controller is, for the calling process. */
struct load_cgroup_place {
	unsigned version; /* 1 or 2 */
	char mount[PATH_MAX];
	char path[PATH_MAX]; /* the directory of the caller's own cgroup, below mount or equal to it */
};

/*
 * From the texts of /proc/self/cgroup and /proc/self/mountinfo. Returns 0,
 * -ENOENT (no memory controller is mounted) or -ENAMETOOLONG.
 */
int load_cgroup_find(const char *self_cgroup, const char *mountinfo, struct load_cgroup_place *ret_place);

struct load_cgroup {
	unsigned version; /* 0: none was created */
	int directory_fd; /* holds the lock on the name; -1: none */
	char path[PATH_MAX];
	char enabled_in[PATH_MAX]; /* v2: where this run switched the memory controller on; "" nowhere */
};

/* name: a single path component; limit_bytes 0: no limit. Returns 0 or a negative errno after saying what failed. */
int load_cgroup_create(const char *name, uint64_t limit_bytes, struct load_cgroup *ret_cgroup);

/* All processes in it must have ended. Safe on {.directory_fd = -1}, and twice. */
void load_cgroup_remove(struct load_cgroup *cgroup);

/* Moves the calling process in; later memory is charged there. Returns 0 or a negative errno. */
int load_cgroup_join(const struct load_cgroup *cgroup);

/* A number in memory.stat, 0 where it does not exist. */
uint64_t load_cgroup_stat(const struct load_cgroup *cgroup, const char *key);

/* What it has in swap now. */
uint64_t load_cgroup_swap_bytes(const struct load_cgroup *cgroup);

/* Processes of it that the kernel killed for want of memory. */
uint64_t load_cgroup_oom_kills(const struct load_cgroup *cgroup);

/* Asks the kernel to reclaim all that is left; takes as long as it takes. */
void load_cgroup_reclaim(const struct load_cgroup *cgroup);

#endif
