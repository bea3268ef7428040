// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Closing: a slot's runs become objects.
 *
 *   pick (staging.lock) -> OPEN to CLOSING
 *   shared unit lock:      forget what changed, compress every run
 *   exclusive unit lock:   words of granules that have not changed since -> ids
 *                          none left in the slot -> slot header free, slot FREE
 *                          others                -> slot OPEN again
 *
 * A folio that is still being written when its slot is wanted is closed in parts: what has not changed is not compressed again.
 */
#include "bits.h"
#include "store_internal.h"

#include <string.h>

/* Writers may have stamped it after now_ns was read: then it is not quiet. */
static bool slot_is_due(const struct store *store, const struct slot *slot, uint64_t now_ns)
{
	uint64_t last_write_ns = atomic_load_explicit(&slot->last_write_ns, memory_order_relaxed);
	uint32_t granules = atomic_load_explicit(&slot->granules, memory_order_relaxed);

	return granules == store->unit_granules || atomic_load_explicit(&store->staging.wanted, memory_order_relaxed) ||
	       atomic_load_explicit(&store->staging.flush, memory_order_relaxed) ||
	       now_ns >= last_write_ns + SLOT_QUIET_NS;
}

/* Is a better to close than b: complete ones first, then the one longest without a write. */
static bool slot_goes_before(const struct store *store, const struct slot *a, const struct slot *b)
{
	bool a_complete = atomic_load_explicit(&a->granules, memory_order_relaxed) == store->unit_granules;
	bool b_complete = atomic_load_explicit(&b->granules, memory_order_relaxed) == store->unit_granules;

	if (a_complete != b_complete)
		return a_complete;
	return atomic_load_explicit(&a->last_write_ns, memory_order_relaxed) <
	       atomic_load_explicit(&b->last_write_ns, memory_order_relaxed);
}

static int pick_slot(struct store *store, uint64_t now_ns)
{
	struct staging *staging = &store->staging;
	int best = -1;

	pthread_mutex_lock(&staging->lock);
	for (unsigned i = 0; i < store->image.super->slots; i++) {
		const struct slot *slot = &staging->slot[i];

		if (slot->state != SLOT_OPEN || !slot_is_due(store, slot, now_ns))
			continue;
		if (best < 0 || slot_goes_before(store, slot, &staging->slot[best]))
			best = (int)i;
	}
	if (best >= 0)
		staging->slot[best].state = SLOT_CLOSING;
	pthread_mutex_unlock(&staging->lock);
	return best;
}

uint64_t close_next_due_ns(struct store *store, uint64_t now_ns)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < store->image.super->slots; i++) {
		const struct slot *slot = &store->staging.slot[i];
		uint64_t due_ns;

		if (slot->state != SLOT_OPEN)
			continue;
		due_ns = atomic_load_explicit(&slot->last_write_ns, memory_order_relaxed) + SLOT_QUIET_NS;
		if (slot_is_due(store, slot, now_ns) || due_ns <= now_ns)
			return 0;
		if (due_ns - now_ns < least)
			least = due_ns - now_ns;
	}
	return least;
}

static void count_closed(struct worker *worker, const struct object *object)
{
	unsigned order = order_of_bytes(object->count * GRANULE_BYTES);

	stats_count(&worker->stats->closed_objects[order], 1);
	stats_count(&worker->stats->closed_bytes[order], object->count * GRANULE_BYTES);
	stats_count(&worker->stats->closed_stored_bytes[order], object->stored_bytes);
	if (object_is_raw(object))
		stats_count(&worker->stats->raw_bytes, object->count * GRANULE_BYTES);
}

/* Compresses every run of the slot, under the shared unit lock. Returns the number of runs, or -errno with none left over. */
static int compress_runs(struct store *store, struct worker *worker, unsigned slot, uint64_t unit)
{
	struct object_writer writer = {
		.store = store,
		.encoder = encoder_acquire(&worker->encoder),
		.payload = worker->payload,
		.stage_ns = worker->stats->stage_ns,
		.slice_ns = &worker->slice_ns,
		.class = ROOM_OLD,
	};
	uint64_t start = unit << store->unit_order, at = start, end = start + store->unit_granules;
	int runs = 0, result = 0;

	if (end > store_granules(store))
		end = store_granules(store);
	while (at < end && result == 0) {
		map_word word;
		uint32_t count = map_run(store, at, (uint32_t)(end - at), &word);
		struct closed_run *run = &worker->run[runs];
		struct object object;

		if (word == map_word_slot(slot)) {
			const uint8_t *plain = slot_data(store, slot) + ((at - start) << GRANULE_SHIFT);

			run->first = (uint32_t)at;
			run->count = count;
			result = object_create(&writer, at, count, plain, &run->id, &object);
			if (result == 0) {
				runs++;
				count_closed(worker, &object);
			}
		}
		at += count;
	}
	encoder_release(&worker->encoder);
	while (result < 0 && runs > 0) {
		if (worker->run[--runs].id != MAP_HOLE)
			object_free(store, worker->run[runs].id);
	}
	return result < 0 ? result : runs;
}

/* Does the granule still have the bytes that were compressed? Unit lock, exclusive. */
static bool granule_is_as_was(const struct store *store, unsigned index, uint64_t granule)
{
	uint32_t within = (uint32_t)granule & (store->unit_granules - 1);

	return map_load(store, granule) == map_word_slot(index) &&
	       !bits_any(store->staging.slot[index].changed, within, within + 1);
}

/* Returns the number of granules whose words now name the object. */
static uint32_t publish_run(struct store *store, unsigned index, const struct closed_run *run)
{
	uint64_t at = run->first, end = at + run->count;
	uint32_t published = 0;

	while (at < end) {
		bool as_was = granule_is_as_was(store, index, at);
		uint32_t count = 1;

		while (at + count < end && granule_is_as_was(store, index, at + count) == as_was)
			count++;
		if (as_was) {
			map_replace(store, at, count, run->id);
			hook(HOOK_CLOSE_WORD);
			published += count;
		}
		at += count;
	}
	return published;
}

static void publish_runs(struct store *store, struct worker *worker, unsigned index, int runs)
{
	for (int i = 0; i < runs; i++) {
		const struct closed_run *run = &worker->run[i];
		uint32_t published = publish_run(store, index, run);

		stats_count(&worker->stats->closed_dropped_bytes, (run->count - published) * GRANULE_BYTES);
		if (run->id != MAP_HOLE && published < run->count)
			object_published(store, run->id, published);
	}
}

static void slot_reopen(struct store *store, unsigned index)
{
	pthread_mutex_lock(&store->staging.lock);
	store->staging.slot[index].state = SLOT_OPEN;
	pthread_mutex_unlock(&store->staging.lock);
}

/* Returns 0, or -ENOSPC when there was no room for the objects. */
static int close_slot(struct store *store, struct worker *worker, unsigned index)
{
	struct slot *slot = &store->staging.slot[index];
	uint64_t unit = atomic_load_explicit(&store->image.slots[index].unit, memory_order_relaxed);
	uint64_t begin_ns = worker->slice_ns;
	bool empty;
	int runs;

	if (!unit_trylock_shared(store, unit)) {
		unit_lock_shared(store, unit);
		stage_end(&worker->stats->stage_ns[STATS_WAIT], &worker->slice_ns);
	}
	memset(slot->changed, 0, sizeof(slot->changed));
	runs = compress_runs(store, worker, index, unit);
	unit_unlock(store, unit);
	hook(HOOK_CLOSE_MADE);

	if (!unit_trylock_exclusive(store, unit)) {
		stage_end(&worker->stats->stage_ns[STATS_POOL], &worker->slice_ns);
		unit_lock_exclusive(store, unit);
		stage_end(&worker->stats->stage_ns[STATS_WAIT], &worker->slice_ns);
	}
	publish_runs(store, worker, index, runs);
	hook(HOOK_CLOSE_WORDS);
	empty = atomic_load_explicit(&slot->granules, memory_order_relaxed) == 0;
	if (empty)
		atomic_store_explicit(&store->image.slots[index].unit, SLOT_UNIT_NONE, memory_order_release);
	unit_unlock(store, unit);

	if (empty)
		staging_free(store, index);
	else
		slot_reopen(store, index);
	stage_end(&worker->stats->stage_ns[STATS_POOL], &worker->slice_ns);
	hist_record(&worker->stats->close_ns, worker->slice_ns - begin_ns);
	return runs < 0 ? runs : 0;
}

bool close_step(struct store *store, struct worker *worker)
{
	int slot = pick_slot(store, worker->slice_ns);

	if (slot < 0)
		return false;
	atomic_store(&store->starved, close_slot(store, worker, (unsigned)slot) < 0);
	return true;
}
