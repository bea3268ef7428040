// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Moving: the emptiest chunks are emptied, so that they can be given back whole.
 *
 * A round closes a few chunks to new placements, goes once over the ids, and
 * copies every payload that touches one of them to the lowest run that fits
 * elsewhere, fresh room included: packed end to end there, what several chunks
 * held takes fewer. Single chunks, the emptiest first, give most for least; but
 * payloads of about a third of a chunk do not fill single chunks, so a thorough
 * round empties neighbours. The payload never changes while it is copied;
 * `place` is one store.
 */
#include "store_internal.h"

#include <errno.h>
#include <string.h>

#define ROUND_LINES (16 * MIB / POOL_LINE_BYTES)

enum move_to {
	MOVE_ANYWHERE,
	MOVE_LOWER,
	MOVE_INTO_SPARE,
	MOVE_EXACTLY,
};

static bool touches_victim(const struct janitor *janitor, const struct object *object)
{
	uint64_t line = place_offset_lines(object->place);
	uint32_t first = (uint32_t)(line / POOL_CHUNK_LINES);
	uint32_t last = (uint32_t)((line + object_lines(object) - 1) / POOL_CHUNK_LINES);
	unsigned low = 0, high = janitor->victim_count;

	/* The first victim at or above `first`. */
	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (janitor->victims[middle] < first)
			low = middle + 1;
		else
			high = middle;
	}
	return low < janitor->victim_count && janitor->victims[low] <= last;
}

static bool still_there(const struct store *store, uint32_t id, const struct object *object)
{
	struct object now;

	if (!ids_live(&store->ids, id))
		return false;
	record_read(&store->image.records[id], &now);
	return now.seq == object->seq && now.first == object->first && now.place == object->place;
}

/*
 * Anywhere, unless that takes the last run for a largest extent and the place
 * left behind does not make another one.
 */
static uint64_t alloc_for_move(struct store *store, const struct object *object, uint64_t lines)
{
	uint64_t line = room_alloc(store, lines, ROOM_MOVE), before, after;

	if (line == POOL_NONE || room_has_spare(store))
		return line;
	pool_around(&store->pool, place_offset_lines(object->place), lines, &before, &after);
	if (before + lines + after >= room_largest_lines(store))
		return line;
	pool_free(&store->pool, line, lines);
	return POOL_NONE;
}

static uint64_t find_place(struct store *store, const struct object *object, uint64_t lines, enum move_to to, uint64_t line)
{
	switch (to) {
	case MOVE_ANYWHERE:
		return alloc_for_move(store, object, lines);
	case MOVE_LOWER:
		line = alloc_for_move(store, object, lines);
		if (line == POOL_NONE || line < place_offset_lines(object->place))
			return line;
		pool_free(&store->pool, line, lines);
		return POOL_NONE;
	case MOVE_INTO_SPARE:
		return room_alloc(store, lines, ROOM_MOVE);
	case MOVE_EXACTLY:
		return pool_take(&store->pool, line, lines) ? line : POOL_NONE;
	}
	return POOL_NONE;
}

/* Returns 0, -ESTALE (gone or changed: nothing to do) or -ENOSPC. object->place becomes the new one. */
static int move_object(
	struct store *store, struct worker *worker, uint32_t id, struct object *object, enum move_to to, uint64_t exactly)
{
	uint64_t unit = unit_of(store, object->first), lines = object_lines(object);
	uint64_t line = POOL_NONE;
	bool moved = false;

	worker->slice_ns = clock_ns();
	unit_lock_shared(store, unit);
	if (still_there(store, id, object)) {
		line = find_place(store, object, lines, to, exactly);
		if (line != POOL_NONE)
			memcpy(store->image.arena + (line << POOL_LINE_SHIFT), object_payload(store, object),
				object->stored_bytes);
	} else {
		lines = 0;
	}
	unit_unlock(store, unit);
	stage_end(&worker->stats->stage_ns[STATS_COPY], &worker->slice_ns);
	if (line == POOL_NONE)
		return lines ? -ENOSPC : -ESTALE;
	hook(HOOK_MOVE_COPY);

	unit_lock_exclusive(store, unit);
	if (still_there(store, id, object)) {
		atomic_store_explicit(&store->image.records[id].place, place_arena(line), memory_order_release);
		hook(HOOK_MOVE_PLACE);
		moved = true;
	}
	pool_free(&store->pool, moved ? place_offset_lines(object->place) : line, lines);
	unit_unlock(store, unit);
	if (moved) {
		object->place = place_arena(line);
		stats_count(&worker->stats->moved_objects, 1);
		stats_count(&worker->stats->moved_bytes, object->stored_bytes);
	}
	return moved ? 0 : -ESTALE;
}

static void round_end(struct store *store)
{
	struct janitor *janitor = &store->janitor;
	struct pool_usage usage;

	pool_reopen(&store->pool, janitor->victims, janitor->victim_count);
	janitor->victim_count = 0;
	pool_usage(&store->pool, &usage);
	room_update_gauges(store);
	if (++janitor->move_rounds < ROUNDS_JUDGED)
		return;
	/* Chunks in use, empty ones left out, must have become fewer. */
	janitor->move_rounds = 0;
	if (usage.ready_bytes - usage.empty_bytes >= janitor->round_busy_bytes)
		atomic_store_explicit(&janitor->move_useless_used, usage.used_bytes, memory_order_relaxed);
}

static bool round_begin(struct store *store, uint32_t used_share_max, bool thorough)
{
	struct janitor *janitor = &store->janitor;
	struct pool_usage usage;

	pool_usage(&store->pool, &usage);
	if (janitor_move_is_useless(store, usage.used_bytes))
		return false;
	atomic_store_explicit(&janitor->move_useless_used, JANITOR_ANY, memory_order_relaxed);
	if (janitor->move_rounds == 0)
		janitor->round_busy_bytes = usage.ready_bytes - usage.empty_bytes;
	janitor->victim_count = 0;
	if (thorough)
		janitor->victim_count = pool_close_window(
			&store->pool, janitor->victims, VICTIMS_MAX, POOL_CHUNK_LINES / 256 * used_share_max);
	if (!janitor->victim_count)
		janitor->victim_count = pool_close(&store->pool, janitor->victims, VICTIMS_MAX,
			POOL_CHUNK_LINES / 256 * used_share_max, ROUND_LINES);
	janitor->move_cursor = 1;
	return janitor->victim_count > 0;
}

bool move_step(struct store *store, struct worker *worker, uint32_t used_share_max, bool thorough)
{
	struct janitor *janitor = &store->janitor;
	uint32_t end = atomic_load_explicit(&store->ids.end, memory_order_acquire);

	if (!janitor->victim_count && !round_begin(store, used_share_max, thorough))
		return false;
	while (janitor->move_cursor < end) {
		uint32_t id = janitor->move_cursor++;
		struct object object;

		if (!ids_live(&store->ids, id))
			continue;
		record_read(&store->image.records[id], &object);
		if ((object.flags & RECORD_SAME) || !object.stored_bytes || !touches_victim(janitor, &object))
			continue;
		/* What does not fit anywhere stays; its neighbours may still make room around it. */
		if (move_object(store, worker, id, &object, MOVE_ANYWHERE, 0) == 0)
			return true;
	}
	round_end(store);
	return true;
}

/* ---- sliding ---- */

/* Objects moved in one step, so that closing is not kept waiting. */
#define SLIDE_STEP 64

static void heap_sift(struct sliding *heap, unsigned count, unsigned at)
{
	struct sliding moved = heap[at];
	unsigned child;

	while ((child = 2 * at + 1) < count) {
		if (child + 1 < count && heap[child + 1].line > heap[child].line)
			child++;
		if (heap[child].line <= moved.line)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

static void heap_build(struct sliding *heap, unsigned count)
{
	for (unsigned at = count / 2; at-- > 0;)
		heap_sift(heap, count, at);
}

/* Keeps in heap (the highest on top once it is full) the SLIDE_OBJECTS lowest of all that were put in. */
static unsigned heap_put(struct sliding *heap, unsigned count, struct sliding sliding)
{
	if (count < SLIDE_OBJECTS) {
		heap[count++] = sliding;
		if (count == SLIDE_OBJECTS)
			heap_build(heap, count);
	} else if (sliding.line < heap[0].line) {
		heap[0] = sliding;
		heap_sift(heap, count, 0);
	}
	return count;
}

static void heap_sort(struct sliding *heap, unsigned count)
{
	heap_build(heap, count);
	while (count > 1) {
		struct sliding highest = heap[0];

		heap[0] = heap[--count];
		heap[count] = highest;
		heap_sift(heap, count, 0);
	}
}

/* The objects that lie lowest from `from` on, in ascending order, into janitor->sliding. */
static void find_lowest(struct store *store, uint64_t from)
{
	struct janitor *janitor = &store->janitor;
	uint32_t end = atomic_load_explicit(&store->ids.end, memory_order_acquire);
	unsigned count = 0;

	for (uint32_t id = 1; id < end; id++) {
		struct object object;
		uint64_t line;

		if (!ids_live(&store->ids, id))
			continue;
		record_read(&store->image.records[id], &object);
		line = place_offset_lines(object.place);
		if (!(object.flags & RECORD_SAME) && line >= from)
			count = heap_put(janitor->sliding, count, (struct sliding){line, id});
	}
	heap_sort(janitor->sliding, count);
	janitor->slide_count = count;
	janitor->slide_at = 0;
}

/*
 * Moves an object down: to the lowest run that it fits in, else to the start of the hole before it; one that is longer
 * than the hole, by way of the spare run. A chunk that was given back between two others is a border that nothing
 * moves over, so it is taken again: one at the end becomes free for it.
 */
static bool slide_object(struct store *store, struct worker *worker, const struct sliding *sliding)
{
	uint64_t before, after, lines;
	struct object object;

	if (!ids_live(&store->ids, sliding->id))
		return false;
	record_read(&store->image.records[sliding->id], &object);
	if ((object.flags & RECORD_SAME) || place_offset_lines(object.place) != sliding->line)
		return false;
	if (move_object(store, worker, sliding->id, &object, MOVE_LOWER, 0) == 0)
		return true;
	if (room_fill_below(store, sliding->line) && move_object(store, worker, sliding->id, &object, MOVE_LOWER, 0) == 0)
		return true;
	lines = object_lines(&object);
	pool_around(&store->pool, sliding->line, lines, &before, &after);
	if (!before)
		return false;
	if (before < lines) {
		if (move_object(store, worker, sliding->id, &object, MOVE_INTO_SPARE, 0) < 0)
			return false;
		if (place_offset_lines(object.place) < sliding->line)
			return true;
	}
	return move_object(store, worker, sliding->id, &object, MOVE_EXACTLY, sliding->line - before) == 0 || before < lines;
}

/*
 * Holes brought together: from the lowest object on, each one is moved down
 * over the hole before it, so that holes meet and become one. Goes on until
 * there is a run of enough_lines, or to the end.
 */
bool slide_step(struct store *store, struct worker *worker, uint64_t enough_lines)
{
	struct janitor *janitor = &store->janitor;

	if (pool_longest(&store->pool) >= enough_lines)
		return false;
	if (janitor->slide_at == janitor->slide_count) {
		find_lowest(store, janitor->slide_cursor);
		if (!janitor->slide_count) {
			bool won = janitor->slide_won;

			janitor->slide_cursor = 0;
			janitor->slide_won = false;
			return won;
		}
		janitor->slide_cursor = janitor->sliding[janitor->slide_count - 1].line + 1;
	}
	for (unsigned i = 0; i < SLIDE_STEP && janitor->slide_at < janitor->slide_count; i++) {
		janitor->slide_won |= slide_object(store, worker, &janitor->sliding[janitor->slide_at++]);
		if (pool_longest(&store->pool) >= enough_lines)
			break;
	}
	return true;
}
