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

/* Returns 0, -ESTALE (gone or changed: nothing to do) or -ENOSPC. */
static int move_object(struct store *store, struct worker *worker, uint32_t id, const struct object *object)
{
	uint64_t unit = unit_of(store, object->first), lines = object_lines(object);
	uint64_t line = POOL_NONE;
	bool moved = false;

	worker->slice_ns = clock_ns();
	unit_lock_shared(store, unit);
	if (still_there(store, id, object)) {
		line = room_alloc(store, lines, ROOM_MOVE);
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
		if (move_object(store, worker, id, &object) == 0)
			return true;
	}
	round_end(store);
	return true;
}
