/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The FUSE transport, the server's half: a file system with one file, whose
 * reads, writes and discards are the device's requests.
 *
 *   I/O thread:  read(/dev/fuse) -> libfuse -> fault rule -> device -> reply
 *
 * Each thread has its own buffer and takes a request through all of it; it
 * neither allocates (libfuse's small request record aside, which comes from
 * the pre-grown heap) nor logs.
 */
#ifndef TRANSPORT_FUSE_SESSION_H
#define TRANSPORT_FUSE_SESSION_H

#include <stddef.h>

#define FUSE_SERVER_FILE "swap"

struct device;
struct fuse_server;
struct transport_config;

/* The largest read or write that will be negotiated; both halves need it, and it is the same in both. */
unsigned fuse_server_request_max_bytes(void);

/*
 * Takes a mounted /dev/fuse descriptor over, which nobody has read from yet.
 * The threads exist and their buffers are touched when it returns; they wait
 * for fuse_server_run. Returns 0, or -errno with one
 * line in problem and nothing left.
 */
int fuse_server_create(struct fuse_server **ret, struct device *device, int fuse_fd,
	const struct transport_config *config, char *problem, size_t problem_bytes);

/* Serves until the connection ends or fuse_server_stop is called; joins the threads. Returns 0 or -errno. */
int fuse_server_run(struct fuse_server *server);

/* Another thread; returns at once. Only before fuse_server_run has returned. */
void fuse_server_stop(struct fuse_server *server);

#endif
