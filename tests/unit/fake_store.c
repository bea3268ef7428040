// SPDX-License-Identifier: GPL-2.0-or-later
/* The plain-array store of the unit tests. */
#include "fake_store.h"

#include "clock.h"
#include "units.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_KEPT 4096

struct store_io {
	struct store *store;
	unsigned index;
	struct stats_io *stats;
};

struct store {
	struct store_config config;
	struct stats_page *stats;
	struct store_io io[STORE_THREADS_MAX];
	uint64_t request[STORE_THREADS_MAX][STORE_REQUEST_BYTES / sizeof(uint64_t)];
	uint8_t *memory;
	pthread_mutex_t lock; /* of all below */
	size_t call_count;
	size_t change_count;
	unsigned fail_every;
	int fail_error;
	struct fake_call calls[CALLS_KEPT];
	int failures[CALLS_KEPT]; /* by number of the call */
};

struct store *fake_store_create(uint64_t size_bytes, uint32_t unit_bytes, unsigned io_threads, bool with_memory)
{
	struct store *store = calloc(1, sizeof(*store));
	size_t stats_bytes = stats_page_bytes(io_threads, 1);

	if (!store)
		abort();
	store->config = (struct store_config){
		.size_bytes = size_bytes,
		.max_size_bytes = size_bytes,
		.unit_bytes = unit_bytes,
		.io_threads = io_threads,
	};
	pthread_mutex_init(&store->lock, NULL);
	store->stats = aligned_alloc(CACHE_LINE_BYTES, stats_bytes);
	store->memory = with_memory ? calloc(1, size_bytes) : NULL;
	if (!store->stats || (with_memory && !store->memory))
		abort();
	memset(store->stats, 0, stats_bytes);
	stats_page_init(store->stats, io_threads, 1);
	for (unsigned i = 0; i < io_threads; i++)
		store->io[i] = (struct store_io){store, i, stats_page_io(store->stats, i)};
	return store;
}

void fake_store_destroy(struct store *store)
{
	pthread_mutex_destroy(&store->lock);
	free(store->memory);
	free(store->stats);
	free(store);
}

void fake_store_fail(struct store *store, unsigned call, int error)
{
	store->failures[store->call_count + call - 1] = error;
}

void fake_store_fail_changes(struct store *store, unsigned every, int error)
{
	store->fail_every = every;
	store->fail_error = error;
}

const struct fake_call *fake_store_calls(const struct store *store)
{
	return store->calls;
}

size_t fake_store_call_count(const struct store *store)
{
	return store->call_count;
}

void fake_store_forget(struct store *store)
{
	store->call_count = 0;
	memset(store->calls, 0, sizeof(store->calls));
	memset(store->failures, 0, sizeof(store->failures));
}

void fake_store_set_size(struct store *store, uint64_t size_bytes)
{
	store->config.size_bytes = size_bytes;
}

uint8_t *fake_store_memory(struct store *store)
{
	return store->memory;
}

static int check_range(const struct store *store, uint64_t granule, uint32_t count)
{
	uint64_t unit_granules = store->config.unit_bytes / GRANULE_BYTES;

	if (!count || granule + count > store->config.size_bytes / GRANULE_BYTES)
		return -EINVAL;
	return granule / unit_granules == (granule + count - 1) / unit_granules ? 0 : -EINVAL;
}

static void carry_out(struct store *store, enum fake_op op, uint64_t granule, uint32_t count, void *data)
{
	uint8_t *at = store->memory + granule * GRANULE_BYTES;

	if (op == FAKE_READ)
		memcpy(data, at, count * GRANULE_BYTES);
	else if (op == FAKE_WRITE)
		memcpy(at, data, count * GRANULE_BYTES);
	else
		memset(at, 0, count * GRANULE_BYTES);
}

/* Under the lock. */
static int failure_of_call(struct store *store, enum fake_op op)
{
	if (op != FAKE_READ && store->fail_every && ++store->change_count % store->fail_every == 0)
		return store->fail_error;
	return store->call_count < CALLS_KEPT ? store->failures[store->call_count] : 0;
}

static int call(struct store_io *io, enum fake_op op, uint64_t granule, uint32_t count, void *data)
{
	struct store *store = io->store;
	int result = check_range(store, granule, count);

	pthread_mutex_lock(&store->lock);
	if (!result)
		result = failure_of_call(store, op);
	if (store->call_count < CALLS_KEPT)
		store->calls[store->call_count] = (struct fake_call){op, io->index, granule, count, data, result};
	store->call_count++;
	if (!result && store->memory)
		carry_out(store, op, granule, count, data);
	else if (result == FAKE_TORN && store->memory && op == FAKE_WRITE)
		memcpy(store->memory + granule * GRANULE_BYTES, data, GRANULE_BYTES / 2);
	pthread_mutex_unlock(&store->lock);
	return result;
}

int store_write(struct store_io *io, uint64_t granule, uint32_t count, const void *data)
{
	return call(io, FAKE_WRITE, granule, count, (void *)data);
}

int store_write_unit(struct store_io *io, uint64_t granule, store_fetch *fetch, void *fetch_arg)
{
	uint32_t bytes = io->store->config.unit_bytes;
	void *data = malloc(bytes);
	int result;

	if (!data)
		abort();
	result = fetch(fetch_arg, data) < 0 ? -EIO : store_write(io, granule, (uint32_t)(bytes / GRANULE_BYTES), data);
	free(data);
	return result;
}

int store_read(struct store_io *io, uint64_t granule, uint32_t count, void *data)
{
	return call(io, FAKE_READ, granule, count, data);
}

int store_discard(struct store_io *io, uint64_t granule, uint32_t count)
{
	return call(io, FAKE_DISCARD, granule, count, NULL);
}

void store_get_config(struct store *store, struct store_config *ret)
{
	*ret = store->config;
}

struct stats_page *store_stats(struct store *store)
{
	return store->stats;
}

struct store_io *store_io(struct store *store, unsigned index)
{
	return &store->io[index];
}

uint64_t store_io_done_ns(const struct store_io *io)
{
	(void)io;
	return clock_ns();
}

struct stats_io *store_io_stats(struct store_io *io)
{
	return io->stats;
}

void *store_request(struct store *store, unsigned index)
{
	return store->request[index];
}

uint64_t store_progress(struct store *store)
{
	(void)store;
	return 0;
}
