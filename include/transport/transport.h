/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transports: how requests reach the device.
 *
 * A transport has two halves in two processes. The keeper's half makes what
 * must outlive a server (mount, descriptors, loop device) and takes it down;
 * the server's half receives requests on I/O threads.
 *
 *   keeper:  prepare ----------------> attach -> (device node ready) ... -> detach
 *   server:            serve (blocks, I/O threads) ............. stop
 *
 * prepare runs before the server is forked, attach when the server has said
 * that it receives. After the server is gone, detach must end in bounded time
 * and leave nothing: no mount, no loop device, no process.
 */
#ifndef TRANSPORT_TRANSPORT_H
#define TRANSPORT_TRANSPORT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;

/* What both halves need to know; filled by the keeper, inherited by fork. */
struct transport_config {
	char directory[128];	/* private, mode 0700, exists: for mount points */
	uint64_t size_bytes;
	uint32_t unit_bytes;
	unsigned io_threads;
	bool discard;
	bool merge; /* fuse: let the loop device merge requests */
	char fault[128]; /* the fault transport's rule, see fault.h; "" = none */
};

struct transport; /* each transport's own state */

struct transport_ops {
	const char *name;
	const char *summary; /* for help texts */

	/* Can it work on this machine? 0, or -errno with one line for the user in problem: what is missing, what to do. */
	int (*probe)(char *problem, size_t problem_bytes);

	/* ---- keeper ---- */
	int (*prepare)(struct transport **ret, const struct transport_config *config, char *problem, size_t problem_bytes);
	/* Brings the block device up; its node goes to node (e.g. "/dev/loop3"). Called by a helper process of the keeper: may block on I/O that the server answers. */
	int (*attach)(struct transport *transport, char *node, size_t node_bytes, char *problem, size_t problem_bytes);
	/*
	 * Makes the device's I/O fail from now on; repeatable, never waits. For a server that is killed but hangs
	 * inside the kernel, waiting for its own device.
	 */
	void (*fail_io)(struct transport *transport);
	/*
	 * Takes everything down; repeatable; also after a dead server or a half-done attach. Returns 0 when nothing
	 * is left, -EBUSY while somebody (swap, a mount) still holds the block device: its I/O fails, call again.
	 */
	int (*detach)(struct transport *transport);

	/* ---- server ---- */
	/* Everything before the first receive: threads, buffers, touched and locked. */
	int (*serve_start)(struct transport *transport, struct device *device, char *problem, size_t problem_bytes);
	/* Receives until the kernel side ends or serve_stop is called; joins the threads. Returns 0 or -errno. */
	int (*serve)(struct transport *transport);
	/* From another thread; idempotent. */
	void (*serve_stop)(struct transport *transport);
};

/* The transports of transport_list.h, in its order, NULL terminated. */
extern const struct transport_ops *const transport_table[];

/* By name; "auto" is the first whose probe passes. NULL: none. */
const struct transport_ops *transport_find(const char *name);

#endif
