/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server: the process that answers the device's requests. It is forked by
 * the keeper, opens the store on the keeper's image, serves, and leaves when
 * it is told to, when the transport ends, or when the keeper is gone.
 */
#ifndef SWAPDEV_SERVER_H
#define SWAPDEV_SERVER_H

#include "daemon.h"

struct transport;

struct server_start {
	const struct daemon_options *options;
	struct transport *transport;
	unsigned unsafe; /* what the keeper accepted: enum control_unsafe */
	int image_fd;
	int listen_fd;
	int link_fd; /* to the keeper; see daemon.h */
	int keeper_pid;
};

/* The whole life of the process; returns its exit code. */
int server_main(const struct server_start *start);

#endif
