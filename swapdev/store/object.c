// SPDX-License-Identifier: GPL-2.0-or-later
/* Objects: made from plain granules, named by map words, freed with the last of them. */
#include "store_internal.h"
#include "sum.h"

#include <errno.h>
#include <string.h>

/* Stands in `stored` of a same-filled record, which has no payload that could be checked. */
static uint32_t same_check(const struct object *object)
{
	const uint64_t words[] = {
		(uint64_t)object->filled << 48 | (uint64_t)object->count << 32 | object->first, object->place};

	return sum32(words, sizeof(words), object->seq);
}

uint64_t object_lines(const struct object *object)
{
	return object->flags & RECORD_SAME ? 0 : pool_lines(object->stored_bytes);
}

uint64_t object_dead_bytes(const struct object *object, uint32_t live)
{
	if (live >= object->filled)
		return 0;
	return (object_lines(object) << POOL_LINE_SHIFT) * (object->filled - live) / object->filled;
}

static bool payload_is_sane(const struct store *store, const struct object *object)
{
	uint64_t arena_lines = store->image.arena_bytes >> POOL_LINE_SHIFT;
	uint64_t table_bytes = frame_count(object->count, object->frame_order) * sizeof(struct frame_entry);
	uint64_t offset = place_offset_lines(object->place), lines = object_lines(object);

	return place_is_arena(object->place) && object->stored_bytes > table_bytes &&
	       object->stored_bytes <= table_bytes + object->count * GRANULE_BYTES && offset < arena_lines &&
	       lines <= arena_lines - offset;
}

bool object_is_sane(const struct store *store, const struct object *object)
{
	uint64_t last = (uint64_t)object->first + object->count - 1;

	if (!object->count || !object->filled || object->filled > object->count || last >= store_granules(store) ||
		unit_of(store, object->first) != unit_of(store, last))
		return false;
	/* A sequence number that no store can have reached would end the numbering. */
	if (object->seq == 0 || object->seq >> 56)
		return false;
	if (object->codec >= CODEC_COUNT || object->frame_order > store->unit_order ||
		(object->flags & ~RECORD_FLAGS_KNOWN))
		return false;
	if (object->flags & RECORD_SAME)
		return object->stored_bytes == same_check(object);
	return payload_is_sane(store, object);
}

/* Is plain one 64-bit word over and over? Most data says no within the first words. */
static bool same_filled(const uint8_t *plain, uint64_t bytes, uint64_t *ret_word)
{
	uint64_t word, last;

	memcpy(&word, plain, sizeof(word));
	memcpy(&last, plain + bytes - sizeof(last), sizeof(last));
	/* Equal to itself shifted by one word: equal throughout. */
	if (word != last || memcmp(plain, plain + sizeof(word), bytes - sizeof(word)) != 0)
		return false;
	*ret_word = word;
	return true;
}

void gauges_object(struct store *store, const struct object *object, bool add)
{
	struct stats_gauges *gauges = store->gauges;
	uint64_t plain_bytes = object->count * GRANULE_BYTES;
	uint64_t extent_bytes = object_lines(object) << POOL_LINE_SHIFT;
	void (*change)(_Atomic uint64_t *, uint64_t) = add ? gauge_add : gauge_sub;

	change(&gauges->objects, 1);
	change(&gauges->object_bytes, plain_bytes);
	if (object->flags & RECORD_SAME) {
		change(&gauges->same_bytes, plain_bytes);
		return;
	}
	change(&gauges->payload_bytes, object->stored_bytes);
	change(&gauges->extent_bytes, extent_bytes);
	if (object->codec == CODEC_COPY)
		change(&gauges->raw_bytes, plain_bytes);
	extent_bytes = gauge_get(&gauges->extent_bytes);
	if (add && extent_bytes > gauge_get(&gauges->extent_peak_bytes))
		atomic_store_explicit(&gauges->extent_peak_bytes, extent_bytes, memory_order_relaxed);
}

/* Copies what was compressed into the writer's scratch into an extent. */
static int object_store_payload(const struct object_writer *writer, struct object *object)
{
	struct store *store = writer->store;
	uint64_t line;

	stage_end(&writer->stage_ns[STATS_CODEC], writer->slice_ns);
	line = room_alloc(store, object_lines(object), writer->class);
	stage_end(&writer->stage_ns[STATS_POOL], writer->slice_ns);
	if (line == POOL_NONE)
		return -ENOSPC;
	object->place = place_arena(line);
	memcpy(store->image.arena + (line << POOL_LINE_SHIFT), writer->payload, object->stored_bytes);
	stage_end(&writer->stage_ns[STATS_COPY], writer->slice_ns);
	return 0;
}

/* Id and record of an object whose payload, if any, is in its extent. */
static int object_record(const struct object_writer *writer, const struct object *object, uint32_t *ret_id)
{
	struct store *store = writer->store;
	uint32_t id;

	hook(HOOK_PAYLOAD);
	id = room_alloc_id(store);
	if (!id) {
		if (!(object->flags & RECORD_SAME))
			pool_free(&store->pool, place_offset_lines(object->place), object_lines(object));
		return -ENOSPC;
	}
	record_write(&store->image.records[id], object);
	hook(HOOK_RECORD);
	gauges_object(store, object, true);
	stage_end(&writer->stage_ns[STATS_POOL], writer->slice_ns);
	*ret_id = id;
	return 0;
}

static void object_begin(const struct object_writer *writer, uint64_t first, uint32_t count, uint32_t filled,
	struct object *ret)
{
	*ret = (struct object){
		.first = (uint32_t)first,
		.count = count,
		.filled = filled,
		.frame_order = (uint8_t)writer->encoder->frame_order,
		.seq = atomic_fetch_add_explicit(&writer->store->seq, 1, memory_order_relaxed) + 1,
	};
}

int object_create(const struct object_writer *writer, uint64_t first, uint32_t count, const uint8_t *plain,
	uint32_t *ret_id, struct object *ret_object)
{
	int result = 0;

	object_begin(writer, first, count, count, ret_object);
	if (!same_filled(plain, count * GRANULE_BYTES, &ret_object->place)) {
		frame_encode(writer->encoder->compressor, ret_object, plain, writer->payload);
		result = object_store_payload(writer, ret_object);
	} else if (ret_object->place == 0) {
		*ret_id = MAP_HOLE;
		return 0;
	} else {
		ret_object->flags = RECORD_SAME;
		ret_object->codec = CODEC_COPY;
		ret_object->frame_order = 0;
		ret_object->stored_bytes = same_check(ret_object);
	}
	return result < 0 ? result : object_record(writer, ret_object, ret_id);
}

int object_create_from(const struct object_writer *writer, uint64_t first, uint32_t count, uint32_t filled,
	frame_fill *fill, void *arg, uint32_t *ret_id)
{
	struct object object;
	int result;

	object_begin(writer, first, count, filled, &object);
	result = frame_encode_from(writer->encoder->compressor, &object, fill, arg, writer->payload);
	if (result == 0)
		result = object_store_payload(writer, &object);
	return result < 0 ? result : object_record(writer, &object, ret_id);
}

void object_free(struct store *store, uint32_t id)
{
	struct object object;

	record_read(&store->image.records[id], &object);
	gauges_object(store, &object, false);
	if (!(object.flags & RECORD_SAME))
		pool_free(&store->pool, place_offset_lines(object.place), object_lines(&object));
	ids_free(&store->ids, id);
}

uint32_t map_run(const struct store *store, uint64_t granule, uint32_t count, map_word *ret_word)
{
	map_word word = map_load(store, granule);
	const map_word *words = (const map_word *)&store->image.map[granule];
	uint32_t run = 1;

	/* Equal to itself shifted by one word: equal throughout. The usual case for folios, and much faster. */
	if (count > 1 && memcmp(words, words + 1, (count - 1) * sizeof(*words)) == 0)
		run = count;
	while (run < count && map_load(store, granule + run) == word)
		run++;
	*ret_word = word;
	return run;
}

/* An object loses `count` of its granules. */
static void forget_object(struct store *store, uint32_t id, uint32_t count)
{
	uint32_t live = ids_live(&store->ids, id);
	struct object object;

	record_read(&store->image.records[id], &object);
	gauge_sub(&store->dead_bytes, object_dead_bytes(&object, live));
	live -= count;
	ids_set_live(&store->ids, id, live);
	if (live == 0)
		object_free(store, id);
	else
		gauge_add(&store->dead_bytes, object_dead_bytes(&object, live));
	stall_end(&store->room_stall); /* the janitor has something to win again */
}

void object_published(struct store *store, uint32_t id, uint32_t live)
{
	struct object object;

	if (live == 0) {
		object_free(store, id);
		return;
	}
	record_read(&store->image.records[id], &object);
	gauge_add(&store->dead_bytes, object_dead_bytes(&object, live));
}

static void forget_words(struct store *store, map_word word, uint32_t count)
{
	if (word == MAP_HOLE)
		return;
	if (word == MAP_LOST) {
		gauge_sub(&store->gauges->lost_granules, count);
		return;
	}
	gauge_sub(&store->gauges->live_bytes, count * GRANULE_BYTES);
	if (map_word_is_slot(word)) {
		struct slot *slot = &store->staging.slot[map_word_slot_index(word)];

		gauge_sub(&store->gauges->slot_bytes, count * GRANULE_BYTES);
		atomic_fetch_sub_explicit(&slot->granules, count, memory_order_relaxed);
	} else {
		forget_object(store, word, count);
	}
}

/* The new word's side: counted before it is stored, so that no count is ever too low. */
static void expect_words(struct store *store, map_word word, uint32_t count)
{
	if (word == MAP_HOLE)
		return;
	gauge_add(&store->gauges->live_bytes, count * GRANULE_BYTES);
	if (map_word_is_slot(word)) {
		gauge_add(&store->gauges->slot_bytes, count * GRANULE_BYTES);
		atomic_fetch_add_explicit(
			&store->staging.slot[map_word_slot_index(word)].granules, count, memory_order_relaxed);
	} else {
		ids_set_live(&store->ids, word, ids_live(&store->ids, word) + count);
	}
}

void map_replace(struct store *store, uint64_t granule, uint32_t count, map_word word)
{
	uint64_t end = granule + count;

	expect_words(store, word, count);
	while (granule < end) {
		map_word old;
		uint32_t run = map_run(store, granule, (uint32_t)(end - granule), &old);

		if (old != word) {
			for (uint32_t i = 0; i < run; i++)
				atomic_store_explicit(&store->image.map[granule + i], word, memory_order_release);
		}
		forget_words(store, old, run);
		granule += run;
	}
}
