// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recovery: every start rebuilds the private tables from map and records.
 *
 *   1. every object that a map word names and whose record is good is taken:
 *      its id, and its extent in the pool. If two overlap, one record is
 *      wrong: once more from the start, those first whose frames all have
 *      their sum, then of the others what still has room
 *   2. every map word is counted where it belongs; one that names nothing good
 *      becomes LOST
 *   3. slots that no word names are freed; chunks without an extent are given
 *      back, the others populated
 *
 * Only words and slot headers are ever written, and each store alone leaves a
 * valid image: a recovery that dies is followed by another one.
 */
#include "store_internal.h"

#include <errno.h>
#include <string.h>

static void lose(struct store *store, uint64_t granule, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		atomic_store_explicit(&store->image.map[granule + i], MAP_LOST, memory_order_release);
	gauge_add(&store->gauges->lost_granules, count);
}

/* Of the granules of a run, those that the object can cover: a run may begin or end with a damaged word. */
static void covered(const struct object *object, uint64_t granule, uint32_t count, uint64_t *ret_from, uint64_t *ret_to)
{
	uint64_t first = object->first, end = first + object->count;
	uint64_t from = first > granule ? first : granule, to = end < granule + count ? end : granule + count;

	*ret_from = from < granule + count ? from : granule + count;
	*ret_to = to > *ret_from ? to : *ret_from;
}

/* Granules from `granule` to the end of its unit, or of the device. */
static uint32_t rest_of_unit(const struct store *store, uint64_t granule)
{
	uint64_t end = ((granule >> store->unit_order) + 1) << store->unit_order;

	return (uint32_t)((end < store_granules(store) ? end : store_granules(store)) - granule);
}

/* Every frame has its sum, and the last one ends where the record says. */
static bool object_is_intact(const struct store *store, const struct object *object)
{
	const uint8_t *payload = object_payload(store, object);
	const uint8_t *end = payload;

	for (uint32_t index = 0; index < frame_count(object->count, object->frame_order); index++) {
		struct frame frame;

		if (frame_find(object, payload, index, &frame) < 0 || !frame_is_intact(&frame))
			return false;
		end = frame.stored + frame.stored_bytes;
	}
	return end == payload + object->stored_bytes;
}

/* Takes the id and its extent. -EEXIST: the extent overlaps another one. */
static int take_object(struct store *store, uint32_t id, const struct object *object)
{
	uint64_t lines = object_lines(object);
	int result = 0;

	if (lines)
		result = pool_recover_extent(&store->pool, place_offset_lines(object->place), lines);
	if (result < 0)
		return result;
	ids_recover_take(&store->ids, id);
	/* A damaged number must not leave the counter without room: in one process it only has to be unique. */
	if (object->seq > atomic_load_explicit(&store->seq, memory_order_relaxed) && object->seq >> 55 == 0)
		atomic_store_explicit(&store->seq, object->seq, memory_order_relaxed);
	return 0;
}

/* Words of a run name id: take it if it was not met before and its record is good, and theirs. */
static int find_object(struct store *store, uint64_t granule, uint32_t count, uint32_t id, bool intact_only)
{
	struct object object;
	uint64_t from, to;
	int result;

	if (id >= store->image.records_max || ids_recover_is_taken(&store->ids, id))
		return 0;
	record_read(&store->image.records[id], &object);
	covered(&object, granule, count, &from, &to);
	if (!object_is_sane(store, &object) || from == to)
		return 0;
	if (intact_only && object_lines(&object) && !object_is_intact(store, &object))
		return 0;
	result = ids_recover_group(&store->ids, id);
	return result < 0 ? result : take_object(store, id, &object);
}

/* Calls find_object for every object named. -EEXIST: somewhere two overlap. */
static int find_objects(struct store *store, bool intact_only)
{
	uint64_t granules = store_granules(store), at = 0;
	bool overlap = false;

	while (at < granules) {
		map_word word;
		uint32_t count = map_run(store, at, rest_of_unit(store, at), &word);
		int result = map_word_is_object(word) ? find_object(store, at, count, word, intact_only) : 0;

		if (result == -EEXIST)
			overlap = true;
		else if (result < 0)
			return result;
		at += count;
	}
	return overlap ? -EEXIST : 0;
}

/* Only what the object cannot cover, or what is more than was ever live, is lost. */
static void count_object_words(struct store *store, uint64_t granule, uint32_t count, uint32_t id)
{
	struct object object;
	uint64_t from, to;
	uint32_t live;

	if (id >= store->image.records_max || !ids_recover_is_taken(&store->ids, id)) {
		lose(store, granule, count);
		return;
	}
	record_read(&store->image.records[id], &object);
	live = ids_live(&store->ids, id);
	covered(&object, granule, count, &from, &to);
	if (to - from > object.filled - live)
		to = from + (object.filled - live);
	lose(store, granule, (uint32_t)(from - granule));
	lose(store, to, (uint32_t)(granule + count - to));
	ids_set_live(&store->ids, id, live + (uint32_t)(to - from));
	gauge_add(&store->gauges->live_bytes, (to - from) * GRANULE_BYTES);
}

static void count_slot_words(struct store *store, uint64_t granule, uint32_t count, unsigned slot)
{
	if (slot >= store->image.super->slots ||
		atomic_load_explicit(&store->image.slots[slot].unit, memory_order_relaxed) != unit_of(store, granule)) {
		lose(store, granule, count);
		return;
	}
	atomic_fetch_add_explicit(&store->staging.slot[slot].granules, count, memory_order_relaxed);
	gauge_add(&store->gauges->live_bytes, count * GRANULE_BYTES);
	gauge_add(&store->gauges->slot_bytes, count * GRANULE_BYTES);
}

static void count_words(struct store *store)
{
	uint64_t granules = store_granules(store), at = 0;

	while (at < granules) {
		map_word word;
		uint32_t count = map_run(store, at, rest_of_unit(store, at), &word);

		if (map_word_is_slot(word))
			count_slot_words(store, at, count, map_word_slot_index(word));
		else if (map_word_is_object(word))
			count_object_words(store, at, count, word);
		else if (word == MAP_LOST)
			gauge_add(&store->gauges->lost_granules, count);
		at += count;
	}
}

/* Gauges and dead shares of what was taken; what was left without words is freed. */
static void count_objects(struct store *store)
{
	struct ids *ids = &store->ids;
	uint32_t end = atomic_load(&ids->end);

	for (uint32_t id = 1; id < end; id++) {
		uint32_t live;
		struct object object;

		if (!ids_recover_is_taken(ids, id))
			continue;
		live = ids_live(ids, id);
		record_read(&store->image.records[id], &object);
		gauges_object(store, &object, true);
		if (live == 0)
			object_free(store, id);
		else
			gauge_add(&store->dead_bytes, object_dead_bytes(&object, live));
	}
}

static void recover_slots(struct store *store)
{
	uint64_t now_ns = clock_ns();

	for (unsigned i = 0; i < store->image.super->slots; i++) {
		struct slot *slot = &store->staging.slot[i];

		if (atomic_load_explicit(&slot->granules, memory_order_relaxed)) {
			slot->state = SLOT_OPEN;
			atomic_store_explicit(&slot->last_write_ns, now_ns, memory_order_relaxed);
			store->staging.free--;
		} else {
			atomic_store_explicit(&store->image.slots[i].unit, SLOT_UNIT_NONE, memory_order_release);
		}
	}
}

/* Neighbouring chunks of one kind, populated or given back by one call. */
struct chunk_run {
	struct store *store;
	uint64_t first;
	uint64_t count;
	bool stays;
	uint64_t kept_bytes; /* empty ones, left of the reserve */
	uint32_t next;	     /* chunks before it are not in the file, or have been visited */
};

static int chunk_run_flush(struct chunk_run *run)
{
	struct image *image = &run->store->image;
	void *start = image->arena + run->first * POOL_CHUNK_BYTES;
	uint64_t bytes = run->count * POOL_CHUNK_BYTES;

	run->count = 0;
	if (!bytes)
		return 0;
	return run->stays ? image_populate(image, start, bytes) : image_punch(image, start, bytes);
}

/* What the predecessor kept ready need not be given back and got again. */
static bool is_of_reserve(struct chunk_run *run, uint32_t chunk)
{
	struct store *store = run->store;
	const uint8_t *start = store->image.arena + chunk * POOL_CHUNK_BYTES;

	if (chunk < run->next || run->kept_bytes >= store->image.super->reserve_bytes)
		return false;
	run->next = chunk + (uint32_t)(image_next(&store->image, start,
					       store->image.arena_bytes - chunk * POOL_CHUNK_BYTES) /
				       POOL_CHUNK_BYTES);
	return run->next == chunk && image_has(&store->image, start, POOL_CHUNK_BYTES) &&
	       room_may_grow(store, POOL_CHUNK_BYTES, ROOM_OLD);
}

static int visit_chunk(void *argument, uint32_t chunk, bool with_data)
{
	struct chunk_run *run = argument;
	bool kept = !with_data && is_of_reserve(run, chunk), stays = with_data || kept;
	int result = 0;

	if (run->stays != stays || (stays && ahead_has(run->store, chunk)))
		result = chunk_run_flush(run);
	run->stays = stays;
	run->kept_bytes += kept ? POOL_CHUNK_BYTES : 0;
	if (!run->count)
		run->first = chunk;
	if (!stays || !ahead_has(run->store, chunk))
		run->count++;
	return result < 0 ? result : kept;
}

/* All private tables as pool_init and ids_init left them. */
static int forget_objects(struct store *store)
{
	int result;

	pool_deinit(&store->pool);
	ids_deinit(&store->ids);
	result = pool_init(&store->pool, store->image.arena_bytes);
	return result < 0 ? result : ids_init(&store->ids, &store->image);
}

int recover(struct store *store)
{
	struct chunk_run run = {.store = store};
	int result = find_objects(store, false);

	if (result == -EEXIST) {
		result = forget_objects(store);
		if (result == 0)
			result = find_objects(store, true);
		if (result == 0 || result == -EEXIST)
			result = find_objects(store, false);
	}
	if (result == 0 || result == -EEXIST)
		result = ids_recover_group(&store->ids, 1);
	if (result < 0)
		return result;
	count_words(store);
	count_objects(store);
	recover_slots(store);
	result = ids_recover_end(&store->ids);
	if (result == 0)
		result = pool_recover_end(&store->pool, visit_chunk, &run);
	if (result == 0)
		result = chunk_run_flush(&run);
	return result;
}
