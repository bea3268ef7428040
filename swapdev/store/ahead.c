// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Standing by: maps what the server has ready of the arena, so that a take-over
 * need not. Where the image has small pages, that is most of the outage.
 *
 * Populating must not bring back what the server punches at that moment. Both
 * say in the superblock which chunk they are at, then look at what the other
 * says; at least one of them sees it, and lets the chunk be:
 *
 *   standby   mapping = chunk, punching != chunk, all of it in the file: populate, mapping = none
 *   server    punching = chunk, mapping != chunk: punch, punching = none
 *
 * A chunk that is being made ready is not all in the file. A mark that a dead
 * process left is taken back by its successor; until then one chunk is left out.
 *
 * The server notes each chunk before it punches it. So the standby knows which
 * of those it has mapped are still what they were, and a recovery need not look
 * at them again, page by page.
 */
#include "store_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* At most a tenth of a CPU, and none while nothing changes. */
#define WORK_NS (2 * UINT64_C(1000000))
#define PAUSE_NS (18 * UINT64_C(1000000))
#define REST_NS (250 * UINT64_C(1000000))

static uint32_t mark_of(uint32_t chunk)
{
	return chunk + 1;
}

bool ahead_lets_punch(struct store *store, uint32_t chunk)
{
	struct superblock *super = store->image.super;

	atomic_store(&super->punching, mark_of(chunk));
	if (atomic_load(&super->mapping) == mark_of(chunk)) {
		atomic_store(&super->punching, 0);
		return false;
	}
	atomic_store(&super->punched[atomic_load(&super->punches) % PUNCHES_KEPT], chunk);
	atomic_fetch_add(&super->punches, 1);
	return true;
}

void ahead_punched(struct store *store)
{
	atomic_store(&store->image.super->punching, 0);
}

static const uint8_t *chunk_start(const struct store *store, uint32_t chunk)
{
	return store->image.arena + chunk * POOL_CHUNK_BYTES;
}

/* The first chunk from `chunk` on that has something in the file, or UINT32_MAX. */
static uint32_t find_chunk(const struct store *store, uint32_t chunk)
{
	uint64_t left = store->image.arena_bytes - chunk * POOL_CHUNK_BYTES;
	uint64_t next = image_next(&store->image, chunk_start(store, chunk), left);

	return next == left ? UINT32_MAX : chunk + (uint32_t)(next / POOL_CHUNK_BYTES);
}

static int map_if_there(const struct image *image, const void *start, uint64_t bytes)
{
	return image_has(image, start, bytes) ? image_populate(image, start, bytes) : 0;
}

/*
 * Forgets the chunks that have been punched since the last time; all, if some of them may not be in the list any more,
 * even since we began to read it. Another process writes it: any value.
 */
static void forget_punched(struct store *store)
{
	const struct superblock *super = store->image.super;
	uint64_t punches = atomic_load(&super->punches);
	struct ahead *ahead = &store->ahead;

	for (uint64_t at = ahead->punches; at != punches && punches - at <= PUNCHES_KEPT; at++) {
		uint32_t chunk = atomic_load(&super->punched[at % PUNCHES_KEPT]);

		if (chunk < store->pool.chunks)
			ahead->mapped[chunk] = false;
	}
	if (atomic_load(&super->punches) - ahead->punches > PUNCHES_KEPT)
		memset(ahead->mapped, 0, store->pool.chunks * sizeof(*ahead->mapped));
	ahead->punches = punches;
}

static void map_chunk(struct store *store, uint32_t chunk)
{
	struct superblock *super = store->image.super;

	atomic_store(&super->mapping, mark_of(chunk));
	if (atomic_load(&super->punching) != mark_of(chunk) &&
		image_has(&store->image, chunk_start(store, chunk), POOL_CHUNK_BYTES))
		store->ahead.mapped[chunk] =
			image_populate(&store->image, chunk_start(store, chunk), POOL_CHUNK_BYTES) == 0;
	if (!store->ahead.mapped[chunk])
		store->ahead.blocks = 0; /* another pass, even if nothing else changes */
	atomic_store(&super->mapping, 0);
}

/* Is there anything new since the last pass? */
static bool has_changed(struct store *store)
{
	struct ahead *ahead = &store->ahead;
	uint64_t punches = ahead->punches;
	struct stat status = {0};
	bool changed;

	forget_punched(store);
	fstat(store->image.fd, &status);
	changed = punches != ahead->punches || status.st_blocks != ahead->blocks;
	ahead->blocks = status.st_blocks;
	return changed;
}

/* The next chunk that is there and not mapped, or UINT32_MAX. */
static uint32_t find_unmapped(const struct store *store)
{
	uint32_t chunk = store->ahead.next;

	do {
		while (chunk < store->pool.chunks && store->ahead.mapped[chunk])
			chunk++;
		if (chunk >= store->pool.chunks)
			return UINT32_MAX;
		chunk = find_chunk(store, chunk);
	} while (chunk != UINT32_MAX && store->ahead.mapped[chunk]);
	return chunk;
}

/* Maps the next chunk; false: the pass is over. */
static bool ahead_step(struct store *store)
{
	struct ahead *ahead = &store->ahead;
	uint32_t chunk = UINT32_MAX;

	pthread_mutex_lock(&ahead->lock);
	if (!ahead->ended && ahead->next == 0)
		image_visit_fixed(&store->image, map_if_there);
	if (!ahead->ended)
		chunk = find_unmapped(store);
	if (chunk != UINT32_MAX)
		map_chunk(store, chunk);
	ahead->next = chunk == UINT32_MAX ? 0 : chunk + 1;
	pthread_mutex_unlock(&ahead->lock);
	return chunk != UINT32_MAX;
}

uint64_t ahead_work(struct store *store)
{
	struct ahead *ahead = &store->ahead;
	uint64_t until_ns = clock_ns() + WORK_NS;

	if (ahead->next == 0 && !has_changed(store))
		return REST_NS;
	while (ahead_step(store)) {
		if (clock_ns() >= until_ns)
			return PAUSE_NS;
	}
	return REST_NS;
}

int ahead_begin(struct store *store)
{
	struct superblock *super = store->image.super;
	struct ahead *ahead = &store->ahead;

	pthread_mutex_init(&ahead->lock, NULL);
	ahead->mapped = calloc(store->pool.chunks, sizeof(*ahead->mapped));
	ahead->punches = atomic_load(&super->punches);
	atomic_store(&super->mapping, 0);
	return ahead->mapped ? 0 : -ENOMEM;
}

void ahead_end(struct store *store)
{
	pthread_mutex_lock(&store->ahead.lock);
	store->ahead.ended = true;
	pthread_mutex_unlock(&store->ahead.lock);
	/* The dead predecessor's. */
	atomic_store(&store->image.super->punching, 0);
	forget_punched(store);
}

bool ahead_has(const struct store *store, uint32_t chunk)
{
	return store->ahead.mapped[chunk];
}

void ahead_destroy(struct store *store)
{
	free(store->ahead.mapped);
}
