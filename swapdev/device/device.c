// SPDX-License-Identifier: GPL-2.0-or-later
/* One request: checked, cut at unit borders, carried out by the store, counted, answered. */
#include "device.h"

#include "clock.h"
#include "inflight.h"
#include "split.h"
#include "stats.h"
#include "store.h"
#include "units.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

/* What was waiting for a server comes at once. */
#define OUTAGE_SLACK_NS (200 * UINT64_C(1000000))

struct device {
	_Atomic uint64_t size_bytes;
	uint32_t unit_bytes;
	unsigned io_threads;
	struct store *store;
	struct store_io *io[STORE_THREADS_MAX]; /* each used by one I/O thread */
	struct inflight *inflight[STORE_THREADS_MAX];
	struct stats_takeovers *takeovers;
	bool has_suspects;
	uint64_t opened_ns;
	uint64_t moved; /* answers and room made, when the watchdog last saw them move */
	uint64_t moved_ns;
};

_Static_assert(sizeof(struct inflight) <= STORE_REQUEST_BYTES, "notes fit into the image");

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
	device->store = store;
	for (unsigned i = 0; i < config.io_threads; i++) {
		device->io[i] = store_io(store, i);
		device->inflight[i] = store_request(store, i);
	}
	*ret = device;
	return 0;
}

void device_destroy(struct device *device)
{
	free(device);
}

uint64_t device_size_bytes(const struct device *device)
{
	return atomic_load_explicit(&device->size_bytes, memory_order_acquire);
}

void device_update_size(struct device *device)
{
	struct store_config config;

	store_get_config(device->store, &config);
	atomic_store_explicit(&device->size_bytes, config.size_bytes, memory_order_release);
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
	uint64_t size_bytes = device_size_bytes(device);

	return length_bytes != 0 && (offset_bytes | length_bytes) % GRANULE_BYTES == 0 && offset_bytes < size_bytes &&
	       length_bytes <= size_bytes - offset_bytes;
}

static int fetch_unit(void *request, void *to)
{
	return ((const struct request *)request)->fetch(request, to);
}

/* Small units may have to become objects at once, out of memory of our own. */
static bool goes_straight_into_slot(const struct device *device, const struct request *request)
{
	return request->op == REQUEST_WRITE && request->fetch && device->unit_bytes >= 2 * MIB &&
	       request->length_bytes == device->unit_bytes && request->offset_bytes % device->unit_bytes == 0;
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
	if (goes_straight_into_slot(device, request))
		return store_write_unit(io, request->offset_bytes >> GRANULE_SHIFT, fetch_unit, (void *)(uintptr_t)request);
	if (request->op == REQUEST_WRITE && request->fetch)
		error = request->fetch(request, request->data);
	if (error < 0)
		return error;
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
	uint64_t done_ns = store_io_done_ns(io);

	if ((unsigned)request->op >= sizeof(kinds) / sizeof(kinds[0]) || request->length_bytes < GRANULE_BYTES)
		return;
	/* One that was refused before the store began on it. */
	if (done_ns < request->received_ns)
		done_ns = clock_ns();
	stats_request(store_io_stats(io), kinds[request->op], request->length_bytes,
		done_ns > request->received_ns ? done_ns - request->received_ns : 0, error);
}

void device_open(struct device *device, uint64_t reaped_ns, bool crashed)
{
	uint64_t now_ns = clock_ns();

	/* It may have grown since this server was prepared. */
	device_update_size(device);
	for (unsigned i = 0; i < device->io_threads; i++)
		device->has_suspects |= inflight_take_over(device->inflight[i], crashed, now_ns);
	device->takeovers = &store_stats(device->store)->takeovers;
	atomic_store(&device->takeovers->reaped_ns, reaped_ns);
	if (reaped_ns)
		atomic_fetch_add(&device->takeovers->count, 1);
	device->opened_ns = device->moved_ns = now_ns;
}

void device_count_requeued(struct device *device)
{
	atomic_fetch_add_explicit(&device->takeovers->requeued, 1, memory_order_relaxed);
}

uint64_t device_stalled_ns(struct device *device)
{
	uint64_t now_ns = clock_ns(), moved = store_progress(device->store);
	bool running = false;

	for (unsigned i = 0; i < device->io_threads; i++) {
		moved += atomic_load_explicit(&device->inflight[i]->answered, memory_order_relaxed);
		running |= atomic_load_explicit(&device->inflight[i]->running_since_ns, memory_order_relaxed) != 0;
	}
	if (moved != device->moved || !running)
		device->moved_ns = now_ns;
	device->moved = moved;
	return now_ns - device->moved_ns;
}

/* Crashes that a request has been through. */
static uint32_t find_crashes(struct device *device, const struct inflight_range *range, uint64_t now_ns)
{
	uint32_t crashes = 0;

	for (unsigned i = 0; i < device->io_threads && !crashes && device->has_suspects; i++)
		crashes = inflight_find(device->inflight[i], range, now_ns);
	return crashes;
}

/* The first answer after a take-over ends the outage, unless it is to a request that came much later: that had none. */
static void count_outage(struct device *device, uint64_t received_ns)
{
	struct stats_takeovers *takeovers = device->takeovers;
	uint64_t reaped_ns, outage_ns;

	if (!atomic_load_explicit(&takeovers->reaped_ns, memory_order_relaxed))
		return;
	reaped_ns = atomic_exchange(&takeovers->reaped_ns, 0);
	if (!reaped_ns)
		return;
	outage_ns = (received_ns > device->opened_ns + OUTAGE_SLACK_NS ? device->opened_ns : clock_ns()) - reaped_ns;
	atomic_store(&takeovers->last_outage_ns, outage_ns);
	if (outage_ns > atomic_load(&takeovers->worst_outage_ns))
		atomic_store(&takeovers->worst_outage_ns, outage_ns);
}

static int run_request(struct device *device, struct store_io *io, const struct request *request, uint32_t crashes)
{
	if (crashes >= INFLIGHT_CRASHES_MAX) {
		atomic_fetch_add(&device->takeovers->blamed, 1);
		return -EIO;
	}
	/* Nothing to flush: an acknowledged write is in the image, and the image is memory. */
	return request->op == REQUEST_FLUSH ? 0 : run_pieces(device, io, request);
}

void device_submit(struct device *device, unsigned thread, struct request *request)
{
	const struct inflight_range range = {
		.offset_bytes = request->offset_bytes, .length_bytes = request->length_bytes, .op = request->op};
	struct inflight *inflight = device->inflight[thread];
	struct store_io *io = device->io[thread];
	uint32_t crashes;
	int error;

	assert(thread < device->io_threads);
	crashes = find_crashes(device, &range, request->received_ns);
	inflight_begin(inflight, &range, crashes, request->received_ns);
	error = run_request(device, io, request, crashes);
	count_request(io, request, error);
	request->complete(request, error);
	inflight_end(inflight);
	count_outage(device, request->received_ns);
}
