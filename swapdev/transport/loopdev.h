/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One loop device over one file: found, configured for direct I/O, checked,
 * and taken down again.
 *
 * It is configured to clear itself when its last opener closes it, so its
 * owner keeps it open: when the owner dies, however it dies, the device goes,
 * or goes at the last `swapoff` or umount. struct loopdev may lie in memory
 * that two processes share: what detach needs is in it before the kernel's
 * side exists.
 */
#ifndef TRANSPORT_LOOPDEV_H
#define TRANSPORT_LOOPDEV_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct loopdev {
	int number;        /* -1: none */
	char backing[192]; /* the file's path as the kernel shows it: whose device a number is */
	bool discard;      /* wanted */
	bool merge;        /* wanted: the queue may merge requests */
	unsigned request_max_bytes;
	bool clearing;      /* the kernel has been told: it goes with the last opener */
	mode_t mode_before; /* of the node, and its owners */
	uid_t uid_before;
	gid_t gid_before;
	int nomerges_before;
	int max_sectors_kb_before;
};

/*
 * For the file at this path. discard: the queue shall take discards; else it
 * is made to find out that the file refuses them. merge: neighbouring requests
 * may become one, for which the loop driver allocates (GFP_NOIO). request_max_bytes:
 * no request shall be larger, a multiple of 4 KiB.
 */
void loopdev_init(
	struct loopdev *loop, const char *backing_path, bool discard, bool merge, unsigned request_max_bytes);

/*
 * Attaches the file; blocks on its I/O. The node is 0600 root.
 * *ret_fd is what keeps the device; the caller's to close. Returns 0, or
 * -errno with one line in problem and nothing left.
 */
int loopdev_attach(struct loopdev *loop, int backing_fd, int *ret_fd, char *problem, size_t problem_bytes);

/* "/dev/loopN" */
void loopdev_node(const struct loopdev *loop, char *node, size_t node_bytes);

/*
 * Takes the device down and gives the node its old mode. fd: from attach, or
 * -1; closed. The file's I/O must fail or work, not hang. Returns 0 when it
 * is gone, -EBUSY while others hold it open: it goes when they close it. The
 * first call waits up to two seconds for them, later ones only look.
 */
int loopdev_detach(struct loopdev *loop, int fd);

#endif
