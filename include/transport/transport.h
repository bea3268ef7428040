/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transports: how requests reach the device.
 *
 * A transport has two halves in two kinds of processes. The keeper's half
 * makes what must outlive a server (mount, descriptors, block device) and takes
 * it down; the server's half receives requests on I/O threads. Servers may die
 * and be replaced; the block device and what it has been asked stay.
 *
 *   keeper:   prepare ----------------------> attach -> (node ready) ... -> detach
 *   server:   serve_start -> serve_open(first) -> serve ......... (dies)
 *   standby:            serve_start ................ serve_open(take-over) -> serve
 *
 * struct transport is the keeper's half: memory shared by keeper, helper and
 * servers, also after exec, so it holds numbers and text but no pointers. It
 * outlives servers; what a successor must know of its predecessor stands there.
 * struct transport_server is one server's own.
 *
 * attach runs when the first server has opened. After the last server is gone,
 * detach must end in bounded time and leave nothing: no mount, no block
 * device, no process.
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
	uint64_t size_bytes; /* of the block device */
	uint32_t unit_bytes;
	unsigned io_threads;
	bool discard;
	bool merge; /* fuse: let the loop device merge requests */
	char fault[128]; /* the fault transport's rule, see fault.h; "" = none */
};

struct transport;	 /* state_bytes of shared memory, zeroed before prepare */
struct transport_server; /* each transport's own */

struct transport_ops {
	const char *name;
	const char *summary; /* for help texts */
	size_t state_bytes;  /* of struct transport */

	/* Can it work on this machine? 0, or -errno with one line for the user in problem: what is missing, what to do. */
	int (*probe)(char *problem, size_t problem_bytes);

	/* ---- keeper ---- */
	int (*prepare)(struct transport *transport, const struct transport_config *config, char *problem, size_t problem_bytes);
	/* The descriptor that servers inherit, by its number; -1: none. */
	int (*server_fd)(const struct transport *transport);
	/* Brings the block device up; its node goes to node (e.g. "/dev/loop3"). Called by a helper process of the keeper: may block on I/O that the server answers. */
	int (*attach)(struct transport *transport, char *node, size_t node_bytes, char *problem, size_t problem_bytes);
	/* A server killed now can be replaced, and what it was asked is asked again. Known after attach; if not, why not in problem. */
	bool (*can_take_over)(struct transport *transport, char *problem, size_t problem_bytes);
	/* Can the block device grow while it is in use? If not, why not in problem. Any process, after attach. */
	bool (*can_grow)(const struct transport *transport, char *problem, size_t problem_bytes);
	/*
	 * Tells the kernel the device's size, if it does not know it yet; NULL where nothing can grow. The store is as
	 * large before: the block device is never larger than what is behind it. Waits a few seconds at most. Returns 0,
	 * or -errno with one line in problem; may be tried again.
	 */
	int (*set_size)(struct transport *transport, uint64_t size_bytes, char *problem, size_t problem_bytes);
	/*
	 * Before the server is ended for an upgrade: it gets no more requests and, where possible, ends by itself when it
	 * has answered those it has; NULL where nothing of the kind can be done. Waits a second at most.
	 */
	void (*relieve)(struct transport *transport);
	/*
	 * Makes the device's I/O fail from now on; repeatable, never waits. For a server that is killed but hangs
	 * inside the kernel, waiting for its own device, and for one that cannot be replaced.
	 */
	void (*fail_io)(struct transport *transport);
	/*
	 * Takes everything down; repeatable; also after a dead server or a half-done attach. Returns 0 when nothing
	 * is left, -EBUSY while somebody (swap, a mount) still holds the block device: its I/O fails, call again.
	 */
	int (*detach)(struct transport *transport);

	/* ---- server ---- */
	/*
	 * All that can be done before this server's turn: threads (waiting), buffers, touched and locked. The device's
	 * store is not recovered yet. Nothing is received and the kernel side is not touched.
	 */
	int (*serve_start)(struct transport_server **ret, struct transport *transport, struct device *device, char *problem,
		size_t problem_bytes);
	/*
	 * This server's turn: its store is recovered and, if take_over, its predecessor has been reaped. Makes what was
	 * in flight come again, once, before the first receive, and lets the threads receive. Returns when they may.
	 */
	int (*serve_open)(struct transport_server *server, bool take_over, char *problem, size_t problem_bytes);
	/* Waits until the kernel side ends or serve_stop is called; joins the threads. Also without serve_open. Returns 0 or -errno. */
	int (*serve)(struct transport_server *server);
	/* From another thread; idempotent. */
	void (*serve_stop)(struct transport_server *server);
};

/* The transports of transport_list.h, in its order, NULL terminated. */
extern const struct transport_ops *const transport_table[];

/* By name; "auto" is the first whose probe passes. NULL: none. */
const struct transport_ops *transport_find(const char *name);

#endif
