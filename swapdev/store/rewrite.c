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

/* One rewrite: what is read, and how far it was read. Granules are relative to the old object. */
struct rewrite {
	struct store *store;
	struct worker *worker;
	uint32_t old_id;
	struct object old;
	uint32_t low;  /* the new object begins here */
	uint32_t high; /* and ends before here */
	uint32_t live;
	uint32_t id; /* of the new object */
	uint8_t *decoded; /* frame `decoded_index` of the old object */
	uint32_t decoded_index;
	uint8_t *plain; /* a frame of the new object */
};

static bool is_live(const struct rewrite *rewrite, uint32_t granule)
{
	return map_load(rewrite->store, rewrite->old.first + granule) == rewrite->old_id;
}

/* From the frame of the first live granule to the last one: frames of both objects then match. */
static void measure(struct rewrite *rewrite)
{
	rewrite->live = 0;
	for (uint32_t i = 0; i < rewrite->old.count; i++) {
		if (!is_live(rewrite, i))
			continue;
		if (!rewrite->live++)
			rewrite->low = i >> rewrite->old.frame_order << rewrite->old.frame_order;
		rewrite->high = i + 1;
	}
}

static int decode_old_frame(struct rewrite *rewrite, uint32_t index)
{
	const struct object *old = &rewrite->old;
	struct frame frame;
	int result = 0;

	if (rewrite->decoded_index == index)
		return 0;
	result = frame_find(old, object_payload(rewrite->store, old), index, &frame);
	if (result == 0)
		result = frame_decode(rewrite->worker->decompressor, old->codec, &frame, rewrite->decoded);
	rewrite->decoded_index = result == 0 ? index : UINT32_MAX;
	return result;
}

/* Live granules of the old object, zeros for the dead. */
static const uint8_t *fill_live(void *arg, uint32_t first, uint32_t count)
{
	struct rewrite *rewrite = arg;
	unsigned order = rewrite->old.frame_order;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t granule = rewrite->low + first + i;
		uint8_t *plain = rewrite->plain + ((uint64_t)i << GRANULE_SHIFT);

		if (!is_live(rewrite, granule)) {
			memset(plain, 0, GRANULE_BYTES);
			continue;
		}
		if (decode_old_frame(rewrite, granule >> order) < 0)
			return NULL;
		memcpy(plain, rewrite->decoded + ((uint64_t)(granule & ((1U << order) - 1)) << GRANULE_SHIFT), GRANULE_BYTES);
	}
	return rewrite->plain;
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

/* Of raw objects only that which was not raw before: the same data does not count twice. */
static void count_raw(const struct rewrite *rewrite)
{
	struct object made;

	record_read(&rewrite->store->image.records[rewrite->id], &made);
	if (object_is_raw(&made) && !object_is_raw(&rewrite->old))
		stats_count(&rewrite->worker->stats->raw_bytes, made.count * GRANULE_BYTES);
}

/* Makes the new object. Shared unit lock. Returns 0, -ESTALE (nothing is live), -ENOSPC, -EIO. */
static int rewrite_encode(struct rewrite *rewrite)
{
	struct worker *worker = rewrite->worker;
	const struct image *image = &rewrite->store->image;
	const struct object_writer writer = {
		.store = rewrite->store,
		.encoder = encoder_acquire(&worker->encoder),
		.payload = worker->payload,
		.stage_ns = worker->stats->stage_ns,
		.slice_ns = &worker->slice_ns,
		.class = ROOM_OLD,
	};
	int result = -ESTALE;

	measure(rewrite);
	rewrite->decoded = scratch_rewrite(image, 0, GRANULE_BYTES << rewrite->old.frame_order);
	rewrite->plain = scratch_rewrite(image, 1, GRANULE_BYTES << writer.encoder->frame_order);
	rewrite->decoded_index = UINT32_MAX;
	if (rewrite->live)
		result = object_create_from(&writer, rewrite->old.first + rewrite->low, rewrite->high - rewrite->low,
			rewrite->live, fill_live, rewrite, &rewrite->id);
	if (result == 0)
		count_raw(rewrite);
	encoder_release(&worker->encoder);
	return result;
}

/* Names the new object in place of the old one; false: a word has changed meanwhile. Exclusive unit lock. */
static bool rewrite_publish(const struct rewrite *rewrite)
{
	struct store *store = rewrite->store;
	uint64_t at = rewrite->old.first + rewrite->low, end = rewrite->old.first + rewrite->high;

	if (!still_is(store, rewrite->old_id, &rewrite->old) || ids_live(&store->ids, rewrite->old_id) != rewrite->live)
		return false;
	while (at < end) {
		map_word word;
		uint32_t run = map_run(store, at, (uint32_t)(end - at), &word);

		if (word == rewrite->old_id)
			map_replace(store, at, run, rewrite->id);
		at += run;
	}
	return true;
}

static bool rewrite_object(struct store *store, struct worker *worker, uint32_t id, const struct object *chosen)
{
	struct rewrite rewrite = {.store = store, .worker = worker, .old_id = id};
	uint64_t unit = unit_of(store, chosen->first);
	int result = -ESTALE;
	bool published;

	worker->slice_ns = clock_ns();
	unit_lock_shared(store, unit);
	if (still_is(store, id, chosen)) {
		record_read(&store->image.records[id], &rewrite.old);
		result = rewrite_encode(&rewrite);
	}
	unit_unlock(store, unit);
	if (result < 0)
		return false;

	unit_lock_exclusive(store, unit);
	published = rewrite_publish(&rewrite);
	unit_unlock(store, unit);
	if (!published) {
		object_free(store, rewrite.id);
		return false;
	}
	stats_count(&worker->stats->rewritten_objects, 1);
	stats_count(&worker->stats->rewritten_bytes, rewrite.live * GRANULE_BYTES);
	return true;
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
