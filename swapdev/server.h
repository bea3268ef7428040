/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server: the process that answers the device's requests. The keeper forks
 * it and it executes a binary anew, today's or, in an upgrade, another one: so
 * all it knows is in a start block, and in descriptors.
 *
 *   PREPARED --(GO)--> SERVING --> ended: told to, the transport ended, the keeper is gone
 *
 * It prepares all it can before its turn: memory locked, image mapped, tables
 * and contexts made, threads waiting. One that stands by for a predecessor is
 * the same process in the same state.
 */
#ifndef SWAPDEV_SERVER_H
#define SWAPDEV_SERVER_H

#include "daemon.h"

#include <sys/types.h>

/* The keeper's and the server's binary may differ: one that does not know the block's layout refuses it. */
#define SERVER_START_MAGIC 0x73666f6cU
#define SERVER_START_VERSION 4

struct server_start {
	uint32_t magic;
	uint32_t version;
	uint32_t bytes;
	uint32_t unsafe; /* what the keeper accepted: enum control_unsafe */
	int32_t image_fd;
	int32_t listen_fd;
	int32_t link_fd;      /* to the keeper; see daemon.h */
	int32_t state_fd;     /* struct transport */
	int32_t transport_fd; /* what the transport needs, or -1 */
	int32_t keeper_pid;
	int64_t started_s; /* CLOCK_REALTIME of the device's start */
	uint32_t log_has_prefix; /* its standard error is a pipe; this is what the log behind it wants */
	char transport[16];
	char node[64]; /* "" until the keeper has attached */
	struct daemon_options options; /* pointers in it mean nothing */
};

/* A descriptor (of memory) with the block in it, for server_main in the program that is executed. Returns it or -errno. */
int server_start_write(const struct server_start *start);

/* The whole life of the process; returns its exit code. */
int server_main(int start_fd);

#endif
