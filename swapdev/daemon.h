/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of folioswapd share: its options, its exit codes, and the messages between keeper and server. */
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
};

struct daemon_options {
	char name[16];
	struct store_config store;
	const struct transport_ops *transport;
	char fault[128];
	bool discard;
	bool merge;
	bool allow_unsafe;
	bool foreground;
	int ready_fd; /* -1: none */
};

/*
 * From server to keeper: READY or FAILED, once; then REFUSED (a STOP) or
 * STOPPING, after which it exits. From keeper to server: ATTACHED, once; STOP.
 */
enum link_kind {
	LINK_READY = 1,
	LINK_FAILED,  /* text: one line for the user */
	LINK_REFUSED, /* text: why */
	LINK_STOPPING,
	LINK_ATTACHED, /* text: the device node */
	LINK_STOP,     /* whoever uses the device, save swap */
};

struct link_message {
	uint32_t kind;
	int32_t exit_code; /* of LINK_FAILED: enum daemon_exit */
	char text[248];
};

/* Over a SEQPACKET socket pair; never blocks. text may be NULL. Returns 0 or -errno. */
int link_send(int fd, enum link_kind kind, int exit_code, const char *text);

/* Returns 0, -EAGAIN (nothing there), -ECONNRESET (the other side is gone), -EPROTO. */
int link_receive(int fd, struct link_message *ret);

/*
 * From now on the program that started the daemon has what it waited for: a
 * terminal or pipe that is its own is given back, and log lines go to the kernel's log.
 */
void daemon_leave_caller(const struct daemon_options *options);

#endif
