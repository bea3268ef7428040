// SPDX-License-Identifier: GPL-2.0-or-later
/* One request: checked, cut at unit borders, carried out by the store, counted, answered. */
#include "device.h"

#include "clock.h"
#include "split.h"
#include "stats.h"
#include "store.h"
#include "units.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

struct device {
	uint64_t size_bytes;
	uint32_t unit_bytes;
	unsigned io_threads;
	struct store_io *io[STORE_THREADS_MAX]; /* each used by one I/O thread */
};

int device_create(struct device **ret, struct store *store)
{
	struct device *device = calloc(1, sizeof(*device));
	struct store_config config;

	if (!device)
		return -ENOMEM;
	store_get_config(store, &config);
	device->size_bytes = config.size_bytes;
	device->unit_bytes = config.unit_bytes;
	device->io_threads = config.io_threads;
	for (unsigned i = 0; i < config.io_threads; i++)
		device->io[i] = store_io(store, i);
	*ret = device;
	return 0;
}

void device_destroy(struct device *device)
{
	free(device);
}

uint64_t device_size_bytes(const struct device *device)
{
	return device->size_bytes;
}

uint32_t device_unit_bytes(const struct device *device)
{
	return device->unit_bytes;
}

unsigned device_io_threads(const struct device *device)
{
	return device->io_threads;
}

static bool op_has_data(enum request_op op)
{
	return op == REQUEST_READ || op == REQUEST_WRITE;
}

/* Written so that no sum can wrap. */
static bool range_is_valid(const struct device *device, uint64_t offset_bytes, uint64_t length_bytes)
{
	return length_bytes != 0 && (offset_bytes | length_bytes) % GRANULE_BYTES == 0 &&
	       offset_bytes < device->size_bytes && length_bytes <= device->size_bytes - offset_bytes;
}

static int run_piece(struct store_io *io, const struct request *request, const struct split_piece *piece)
{
	switch (request->op) {
	case REQUEST_READ:
		return store_read(io, piece->granule, piece->count, (char *)request->data + piece->data_offset_bytes);
	case REQUEST_WRITE:
		return store_write(io, piece->granule, piece->count, (char *)request->data + piece->data_offset_bytes);
	case REQUEST_DISCARD:
	case REQUEST_WRITE_ZEROES:
		return store_discard(io, piece->granule, piece->count);
	case REQUEST_FLUSH:
		break;
	}
	return -EINVAL;
}

/*
 * A piece that fails does not keep the others from being tried, so what
 * becomes of a range does not depend on where in it the bad piece lies. The
 * caller learns one error for the whole of it: the first.
 */
static int run_pieces(const struct device *device, struct store_io *io, const struct request *request)
{
	struct split split;
	struct split_piece piece;
	int error = 0;

	if (!range_is_valid(device, request->offset_bytes, request->length_bytes) ||
		(op_has_data(request->op) && !request->data))
		return -EINVAL;
	split_init(&split, request->offset_bytes, request->length_bytes, device->unit_bytes);
	while (split_next(&split, &piece)) {
		int piece_error = run_piece(io, request, &piece);

		if (!error)
			error = piece_error;
	}
	return error;
}

/* Requests of no kind, and refused ones too small for any order, leave no trace in the statistics. */
static void count_request(struct store_io *io, const struct request *request, int error)
{
	static const enum stats_kind kinds[] = {
		[REQUEST_READ] = STATS_READ,
		[REQUEST_WRITE] = STATS_WRITE,
		[REQUEST_DISCARD] = STATS_DISCARD,
		[REQUEST_WRITE_ZEROES] = STATS_DISCARD,
	};
	uint64_t now_ns = clock_ns();

	if ((unsigned)request->op >= sizeof(kinds) / sizeof(kinds[0]) || request->length_bytes < GRANULE_BYTES)
		return;
	stats_request(store_io_stats(io), kinds[request->op], request->length_bytes,
		now_ns > request->received_ns ? now_ns - request->received_ns : 0, error);
}

void device_submit(struct device *device, unsigned thread, struct request *request)
{
	struct store_io *io;
	int error = 0;

	assert(thread < device->io_threads);
	io = device->io[thread];
	/* Nothing to flush: an acknowledged write is in the image, and the image is memory. */
	if (request->op != REQUEST_FLUSH)
		error = run_pieces(device, io, request);
	count_request(io, request, error);
	request->complete(request, error);
}
