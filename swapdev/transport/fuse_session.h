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

#include <stdbool.h>
#include <stddef.h>

#define FUSE_SERVER_FILE "swap"

struct device;
struct transport_config;
struct transport_server;

/* The kernel's first request, kept for successors: what was negotiated must be the same in all of them. */
struct fuse_hello {
	unsigned bytes; /* 0: not yet received */
	unsigned char request[256];
};

/* Does this kernel send again what a dead server was given (Linux 6.9)? */
bool fuse_hello_has_resend(const struct fuse_hello *hello);

/* The largest read or write that will be negotiated; both halves need it, and it is the same in both. */
unsigned fuse_server_request_max_bytes(void);

/*
 * A server on a mounted /dev/fuse descriptor. The threads exist and their
 * buffers are touched when it returns; they wait for fuse_server_open. hello is
 * shared with the other servers. Returns 0, or -errno with one line in problem
 * and nothing left.
 */
int fuse_server_create(struct transport_server **ret, struct device *device, int fuse_fd, struct fuse_hello *hello,
	const struct transport_config *config, char *problem, size_t problem_bytes);

/*
 * Lets the threads receive. take_over: before that the session is brought to where the predecessor's was, and the
 * kernel is told, once, to send again what that had been given. Returns 0 or -errno with one line in problem.
 */
int fuse_server_open(struct transport_server *server, bool take_over, char *problem, size_t problem_bytes);

/* Serves until the connection ends or fuse_server_stop is called; joins the threads. Returns 0 or -errno. */
int fuse_server_run(struct transport_server *server);

/* Another thread; returns at once. Only before fuse_server_run has returned. */
void fuse_server_stop(struct transport_server *server);

#endif
