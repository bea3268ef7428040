/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device: one request from a transport, cut at unit borders, given to the
 * store piece by piece, measured, answered through the request's own function.
 *
 * State of a request (one thread takes it through all of them):
 *
 *   transport fills it -> device_submit -> split -> store, per piece
 *                                             \-> first error kept, rest still done
 *   transport answers  <- complete() <- counted <-/
 */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

struct store;
struct stats_io;

enum request_op {
	REQUEST_READ,
	REQUEST_WRITE,
	REQUEST_DISCARD,
	REQUEST_WRITE_ZEROES,
	REQUEST_FLUSH,
};

struct request {
	enum request_op op;
	uint64_t offset_bytes;
	uint64_t length_bytes; /* 0 for flush only */
	void *data;	       /* length_bytes; NULL for discard, write-zeroes, flush */
	/*
	 * Writes whose bytes are still the transport's: brings all of them to `to`, data or where they are to stay. On
	 * the submitting thread, before complete. Returns 0 or -errno. NULL: they are in data.
	 */
	int (*fetch)(const struct request *request, void *to);
	uint64_t received_ns;  /* clock_ns() when the transport got it */
	/* Called once, on the submitting thread. error: 0 or negative errno. */
	void (*complete)(struct request *request, int error);
	void *transport_data;
};

struct device;

/* device is a view of a store, which need not be recovered yet; it starts nothing. Returns 0 or -ENOMEM. */
int device_create(struct device **ret, struct store *store);
void device_destroy(struct device *device); /* NULL is fine */

uint64_t device_size_bytes(const struct device *device);
uint32_t device_unit_bytes(const struct device *device);
unsigned device_io_threads(const struct device *device);

/*
 * Carries the request out and calls complete before it returns. thread: index
 * of the I/O thread, 0 .. device_io_threads - 1, used by one thread at a time.
 * Ranges are checked here: misaligned to 4 KiB, empty, or beyond the end is -EINVAL.
 */
void device_submit(struct device *device, unsigned thread, struct request *request);

/* The store has grown: requests up to its new end are taken from now on. Any thread. */
void device_update_size(struct device *device);

/*
 * When the store is recovered, once, before the first request. reaped_ns: clock_ns() when the predecessor was seen to
 * have ended, 0: there was none. crashed: it died of itself or hung, so what it had in execution is suspect: a request
 * in execution at two crashes in a row is answered EIO when it comes again.
 */
void device_open(struct device *device, uint64_t reaped_ns, bool crashed);

/* A request came that the predecessor had been given already. Any thread. */
void device_count_requeued(struct device *device);

/*
 * For how long a request has been in execution while nothing at all moved: no answer, no room made for a write. For a
 * watchdog: one thread, every second or so.
 */
uint64_t device_stalled_ns(struct device *device);

#endif
