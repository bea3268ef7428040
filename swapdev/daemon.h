/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of folioswapd share: its options, its exit codes, and the messages between keeper and servers. */
#ifndef SWAPDEV_DAEMON_H
#define SWAPDEV_DAEMON_H

#include "store.h"

#include <stdbool.h>
#include <stdint.h>

struct transport_ops;

enum daemon_exit {
	DAEMON_DONE = 0,
	DAEMON_FAILED = 1,
	DAEMON_USAGE = 2,
	DAEMON_UNSAFE = 3, /* what --allow-unsafe would accept */
	DAEMON_BUSY = 4,
	DAEMON_STRANGER = 5, /* a server that does not know its keeper's start block */
};

struct daemon_options {
	char name[16];
	struct store_config store;
	const struct transport_ops *transport;
	char fault[128];
	bool discard;
	bool merge;
	bool no_standby;
	bool allow_unsafe;
	bool foreground;
	int ready_fd; /* -1: none */
};

/*
 * Between the keeper and each server (the one that serves, and the one that stands by):
 *
 *   server: READY (all is prepared) or FAILED, once
 *   keeper: GO (it is your turn), once
 *   server: SERVING or FAILED, once; then ALIVE every second while requests move
 *   keeper: ATTACHED, to the first one alone; others find the node in their start block
 *   keeper: STOP; server: REFUSED, or STOPPING, after which it exits
 *   server: UPGRADE; keeper: NOT_UPGRADED, or the server is replaced
 *   server: SET_SIZE (the store has grown); keeper: SIZE_SET
 *   keeper: STANDBY, whenever that is another process
 */
enum link_kind {
	LINK_READY = 1,
	LINK_FAILED,  /* text: one line for the user */
	LINK_SERVING,
	LINK_ALIVE,
	LINK_ENDED,   /* the transport has ended: no successor can help */
	LINK_REFUSED, /* text: why */
	LINK_STOPPING,
	LINK_UPGRADE, /* text: path of a binary */
	LINK_CHANGED, /* settings that a standby has prepared for */
	LINK_GO,
	LINK_ATTACHED, /* text: the device node */
	LINK_STOP,     /* whoever uses the device, save swap */
	LINK_NOT_UPGRADED, /* text: why */
	LINK_STANDBY,
	LINK_SET_SIZE,
	LINK_SIZE_SET, /* text: why not; "": the block device has grown */
	LINK_RELIEVED, /* another server takes over: that the transport ends is no error */
};

struct link_message {
	uint32_t kind;
	int32_t exit_code;  /* of LINK_FAILED: enum daemon_exit */
	uint64_t reaped_ns; /* of LINK_GO: when the predecessor was, 0: there was none */
	uint32_t crashed;   /* of LINK_GO: it died of itself, or hung */
	int32_t pid;	    /* of LINK_STANDBY, 0: none */
	uint64_t size_bytes; /* of LINK_SERVING, LINK_SET_SIZE: of the store; of LINK_SIZE_SET: what was asked */
	char text[224];
};

/* How long nothing may move while requests wait, before the keeper ends a server that can be replaced. */
#define WATCHDOG_NS (10 * UINT64_C(1000000000))

/* Over a SEQPACKET socket pair; never blocks. Returns 0 or -errno. */
int link_send_message(int fd, const struct link_message *message);

/* The same with kind, exit code and text alone; text may be NULL. */
int link_send(int fd, enum link_kind kind, int exit_code, const char *text);

/* Returns 0, -EAGAIN (nothing there), -ECONNRESET (the other side is gone), -EPROTO. */
int link_receive(int fd, struct link_message *ret);

/*
 * From now on the program that started the daemon has what it waited for: a
 * terminal or pipe that is its own is given back, and log lines go to the kernel's log.
 */
void daemon_leave_caller(const struct daemon_options *options);

#endif
