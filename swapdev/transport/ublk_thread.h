/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One I/O thread of a ublk server: a ring, and the queue and the buffer that are its own.
 *
 *   I/O thread:  ring -> fault rule -> copy in (write) -> device -> copy out (read) -> answer, and fetch the next
 *
 * It takes a request through all of it; it neither allocates nor logs.
 */
#ifndef TRANSPORT_UBLK_THREAD_H
#define TRANSPORT_UBLK_THREAD_H

#include "ublk_plan.h"

#include <liburing.h>
#include <stdbool.h>

struct device;
struct fault;

/* What all threads of a server see; constant while they run, save `stopping`. */
struct ublk_served {
	struct device *device;
	struct fault *fault; /* NULL: none */
	struct ublk_plan plan;
	bool plain_codes;
	_Atomic uint8_t *given; /* of struct transport */
	uint8_t *buffers;       /* of all threads */
	int stop_fd;            /* event: `stopping` is set */
	_Atomic bool stopping;
	/* From serve_open on. */
	int fd;               /* /dev/ublkcN */
	const uint8_t *descs; /* mapping: queue after queue */
	size_t queue_descs_bytes;
};

struct ublk_thread {
	struct ublk_served *served;
	unsigned index; /* and that of its queue */
	/* the thread's own */
	struct io_uring ring;
	bool has_ring;
	uint8_t *buffer;
	unsigned fetched; /* tags that the kernel has, or whose request is in work */
};

/*
 * All three on the thread itself, in this order; tear_down also after an
 * error. They return 0 or -errno. fetch hands the tags over, so that the
 * kernel may start the device; serve returns at the end of the device or when
 * `stopping` is set.
 */
int ublk_thread_set_up(struct ublk_thread *thread);
int ublk_thread_fetch(struct ublk_thread *thread);
int ublk_thread_serve(struct ublk_thread *thread);
void ublk_thread_tear_down(struct ublk_thread *thread);

#endif
