// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rewriting: an object with dead granules is made anew from the live ones.
 *
 * It stays one object: from its first to its last live granule, with zeros for
 * the dead ones between, which cost nothing compressed. Objects are taken in
 * order of live share, by passes over the ids: a pass first finds the lowest
 * share at which enough dead bytes lie, then rewrites what is at or below it.
 */
#include "store_internal.h"

#include <errno.h>
#include <string.h>

#define SHARE_BUCKETS 256

/* Live granules in 1/256, rounded up: 256 = nothing dead. */
static uint32_t live_share(const struct object *object, uint32_t live)
{
	return (live * 256 + object->filled - 1) / object->filled;
}

/* A record that may be changing: good enough to choose by, checked again under the unit lock. */
static bool candidate(const struct store *store, uint32_t id, struct object *ret_object, uint32_t *ret_live)
{
	*ret_live = ids_live(&store->ids, id);
	if (*ret_live == 0)
		return false;
	record_read(&store->image.records[id], ret_object);
	return !(ret_object->flags & RECORD_SAME) && *ret_live < ret_object->filled;
}

/* The share at or below which half of all dead bytes lie, at most share_max; 0: not worth a pass. */
static uint32_t choose_share(struct store *store, uint32_t share_max)
{
	uint64_t dead[SHARE_BUCKETS + 1] = {0}, total = 0, sum = 0;
	uint32_t end = atomic_load_explicit(&store->ids.end, memory_order_acquire);

	for (uint32_t id = 1; id < end; id++) {
		struct object object;
		uint32_t live;

		if (!candidate(store, id, &object, &live))
			continue;
		dead[live_share(&object, live)] += object_dead_bytes(&object, live);
		total += object_dead_bytes(&object, live);
	}
	for (uint32_t share = 0; share <= share_max && total; share++) {
		sum += dead[share];
		if (2 * sum >= total)
			return share;
	}
	return sum ? share_max : 0;
}

struct rewrite {
	uint64_t first; /* of the new object */
	uint32_t count;
	uint32_t live;
	uint32_t id;
	struct object object;
};

/* Decodes every frame of the old object that has a live granule, and zeroes what is dead. */
static int decode_live(struct store *store, struct worker *worker, uint32_t id, const struct object *old,
	struct rewrite *rewrite)
{
	const struct frame_reader reader = {.decompressor = worker->decompressor};
	uint8_t *plain = store->janitor.plain;
	uint32_t frame_granules = 1U << old->frame_order, low = UINT32_MAX, high = 0;
	uint32_t live = 0;

	for (uint32_t begin = 0; begin < old->count; begin += frame_granules) {
		uint32_t end = begin + frame_granules < old->count ? begin + frame_granules : old->count;
		bool decoded = false;

		for (uint32_t i = begin; i < end; i++) {
			uint8_t *granule = plain + ((uint64_t)i << GRANULE_SHIFT);

			if (map_load(store, old->first + i) != id) {
				if (decoded)
					memset(granule, 0, GRANULE_BYTES);
				continue;
			}
			if (!decoded) {
				if (frame_read(&reader, id, old, object_payload(store, old), begin, end - begin,
					    plain + ((uint64_t)begin << GRANULE_SHIFT)) < 0)
					return -EIO;
				memset(plain + ((uint64_t)begin << GRANULE_SHIFT), 0, (i - begin) * GRANULE_BYTES);
				decoded = true;
			}
			low = low == UINT32_MAX ? i : low;
			high = i;
			live++;
		}
		if (!decoded)
			memset(plain + ((uint64_t)begin << GRANULE_SHIFT), 0, (end - begin) * GRANULE_BYTES);
	}
	if (!live)
		return -ESTALE;
	rewrite->first = old->first + low;
	rewrite->count = high - low + 1;
	rewrite->live = live;
	return 0;
}

/* Is id still the object it was when it was chosen? Under its unit's lock. */
static bool still_is(const struct store *store, uint32_t id, const struct object *object)
{
	struct object now;

	if (!ids_live(&store->ids, id))
		return false;
	record_read(&store->image.records[id], &now);
	return now.seq == object->seq && now.first == object->first;
}

static int rewrite_encode(struct store *store, struct worker *worker, const struct object *old, struct rewrite *rewrite)
{
	const struct object_writer writer = {
		.store = store,
		.encoder = encoder_acquire(&worker->encoder),
		.payload = worker->payload,
		.stage_ns = worker->stats->stage_ns,
		.slice_ns = &worker->slice_ns,
		.class = ROOM_OLD,
	};
	const uint8_t *plain = store->janitor.plain + ((rewrite->first - old->first) << GRANULE_SHIFT);
	int result = object_create(
		&writer, rewrite->first, rewrite->count, rewrite->live, plain, &rewrite->id, &rewrite->object);

	encoder_release(&worker->encoder);
	return result;
}

/* Names the new object in place of the old one; false: a word has changed meanwhile. Exclusive unit lock. */
static bool rewrite_publish(struct store *store, uint32_t id, const struct object *old, const struct rewrite *rewrite)
{
	uint64_t at = rewrite->first, end = rewrite->first + rewrite->count;

	if (!still_is(store, id, old) || ids_live(&store->ids, id) != rewrite->live)
		return false;
	while (at < end) {
		map_word word;
		uint32_t run = map_run(store, at, (uint32_t)(end - at), &word);

		if (word == id)
			map_replace(store, at, run, rewrite->id);
		at += run;
	}
	return true;
}

static bool rewrite_object(struct store *store, struct worker *worker, uint32_t id, const struct object *chosen)
{
	uint64_t unit = unit_of(store, chosen->first);
	struct object old;
	struct rewrite rewrite;
	int result = -ESTALE;
	bool published;

	worker->slice_ns = clock_ns();
	unit_lock_shared(store, unit);
	if (still_is(store, id, chosen)) {
		record_read(&store->image.records[id], &old);
		result = decode_live(store, worker, id, &old, &rewrite);
		stage_end(&worker->stats->stage_ns[STATS_CODEC], &worker->slice_ns);
		if (result == 0)
			result = rewrite_encode(store, worker, &old, &rewrite);
	}
	unit_unlock(store, unit);
	if (result < 0)
		return false;

	unit_lock_exclusive(store, unit);
	published = rewrite_publish(store, id, &old, &rewrite);
	unit_unlock(store, unit);
	if (!published && rewrite.id != MAP_HOLE)
		object_free(store, rewrite.id);
	if (published) {
		stats_count(&worker->stats->rewritten_objects, 1);
		stats_count(&worker->stats->rewritten_bytes, rewrite.live * GRANULE_BYTES);
	}
	return published;
}

bool rewrite_step(struct store *store, struct worker *worker, uint32_t share_max)
{
	struct janitor *janitor = &store->janitor;
	uint32_t end = atomic_load_explicit(&store->ids.end, memory_order_acquire);

	if (!janitor->rewrite_share) {
		if (janitor_rewrite_is_useless(store))
			return false;
		janitor->rewrite_share = choose_share(store, share_max);
		janitor->rewrite_cursor = 1;
		janitor->rewrite_won = false;
	}
	while (janitor->rewrite_share && janitor->rewrite_cursor < end) {
		uint32_t id = janitor->rewrite_cursor++, live;
		struct object object;

		if (candidate(store, id, &object, &live) && live_share(&object, live) <= janitor->rewrite_share &&
			rewrite_object(store, worker, id, &object)) {
			janitor->rewrite_won = true;
			return true;
		}
	}
	janitor->rewrite_share = 0;
	if (!janitor->rewrite_won)
		atomic_store_explicit(
			&janitor->rewrite_useless_dead, gauge_get(&store->dead_bytes), memory_order_relaxed);
	return janitor->rewrite_won;
}
