/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file system of the FUSE transport: a root directory with one file, and what its operations do to the device. */
#ifndef TRANSPORT_FUSE_FILE_H
#define TRANSPORT_FUSE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;
struct fault;
struct fuse_args;
struct fuse_session;

/* What an operation finds about the thread that runs it. */
struct fuse_file_thread {
	struct device *device;
	struct fault *fault; /* NULL: none */
	bool discard;        /* taken; else refused */
	unsigned thread;     /* index for device_submit */
	void *data;          /* for the answer of a read; a write's data may lie in it */
	size_t data_bytes;
	uint64_t received_ns; /* of the request in work */
};

/* For the calling thread, before its first request; kept by pointer. */
void fuse_file_set_thread(struct fuse_file_thread *thread);

/* A session that negotiates requests of at most *request_max_bytes, kept by pointer. NULL: no memory. */
struct fuse_session *fuse_file_session(struct fuse_args *args, unsigned *request_max_bytes);

#endif
