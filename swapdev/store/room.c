// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Room: ready arena and ready records, made ahead of need, within the limit.
 *
 *   limit  |<- extents, staged bytes ->|<- compression threads ->|<- moving ->|
 *
 * New data is admitted while extents, bytes in slots (each may turn out not to
 * compress), a unit per compression thread (rewriting) and what moving needs
 * (room_moving_bytes: the fuller the arena, the more a won chunk costs) fit under the
 * limit. Writes over old data may use the compression threads' part: what they
 * replace is dead, and comes back by rewriting. The last chunks are left to
 * moving alone, which gives back more than it takes, and the last run that a largest
 * extent fits in is never taken: sliding (move.c) makes long runs of holes with it.
 * Slots and the two reserved parts together are the headroom.
 */
#include "store_internal.h"

#include <errno.h>

/* For the growth thread to make room that may be made: it needs a processor, and the machine's memory. */
#define ROOM_WAIT_NS (2 * UINT64_C(1000000000))
/* Small pages are populated in such pieces: where memory is short, each that was got is seen. */
#define PIECE_BYTES (128 * KIB)
/* Whoever waits looks so often whether the growth thread still gets memory. */
#define SLICE_NS (50 * UINT64_C(1000000))

static uint64_t largest_extent_lines(uint32_t unit_bytes)
{
	return pool_lines(frame_payload_max_bytes(unit_bytes));
}

uint64_t room_largest_lines(const struct store *store)
{
	return largest_extent_lines(store->image.super->unit_bytes);
}

uint32_t room_want_chunks(uint32_t unit_bytes)
{
	return (uint32_t)((largest_extent_lines(unit_bytes) + POOL_CHUNK_LINES - 1) / POOL_CHUNK_LINES);
}

static uint64_t room_limit(const struct store *store)
{
	return atomic_load_explicit(&store->image.super->limit_bytes, memory_order_relaxed);
}

/* As many as slots and threads can ask for at once, and an eighth of a group. */
static uint32_t ids_reserve(const struct store *store)
{
	const struct superblock *super = store->image.super;

	return (super->slots + super->compress_threads + super->io_threads) * store->unit_granules + IDS_GROUP / 8;
}

/* Every granule in a slot may become an object of its own: ids for them, or room for one more group. */
static bool room_has_ids(const struct store *store, uint64_t room_bytes)
{
	uint32_t needed = ids_reserve(store) - IDS_GROUP / 8;
	uint32_t free_ids = atomic_load_explicit(&store->ids.free_ready, memory_order_relaxed);

	return free_ids >= needed || gauge_get(&store->gauges->extent_bytes) + IDS_GROUP_BYTES <= room_bytes;
}

void room_update_gauges(struct store *store)
{
	struct pool_usage usage;

	pool_usage(&store->pool, &usage);
	/* Once everything fits under the limit again, the limit is the ceiling for good. */
	if (usage.ready_bytes + ids_ready_bytes(&store->ids) + gauge_get(&store->headroom_bytes) <= room_limit(store))
		atomic_store_explicit(&store->image.super->ceiling_floor_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&store->gauges->arena_ready_bytes, usage.ready_bytes, memory_order_relaxed);
	atomic_store_explicit(&store->gauges->arena_empty_bytes, usage.empty_bytes, memory_order_relaxed);
	atomic_store_explicit(
		&store->gauges->records_ready_bytes, ids_ready_bytes(&store->ids), memory_order_relaxed);
}

/*
 * What the ready bytes may come to. A limit that was set below what is stored
 * cannot keep acknowledged writes in slots from being closed: until enough was
 * freed, what was stored then and the headroom are the ceiling.
 */
static uint64_t room_ceiling(const struct store *store)
{
	uint64_t limit = room_limit(store), floor = gauge_get(&store->image.super->ceiling_floor_bytes);

	return floor > limit ? floor : limit;
}

void room_set_floor(struct store *store, uint64_t limit_bytes)
{
	uint64_t headroom = gauge_get(&store->headroom_bytes), records = ids_ready_bytes(&store->ids), floor = 0;
	struct pool_usage usage;

	pool_usage(&store->pool, &usage);
	if (usage.ready_bytes + records + headroom > limit_bytes && limit_bytes < room_limit(store))
		floor = usage.ready_bytes + records + headroom;
	atomic_store(&store->image.super->ceiling_floor_bytes, floor);
}

uint64_t room_moving_bytes(uint32_t unit_bytes, uint64_t limit_bytes)
{
	uint64_t least = (2 * room_want_chunks(unit_bytes) + 2) * POOL_CHUNK_BYTES;
	uint64_t share = limit_bytes == UINT64_MAX ? 0 : limit_bytes / 32;

	return share > least ? share : least;
}

bool room_admits(struct store *store, uint64_t new_bytes)
{
	const struct superblock *super = store->image.super;
	const struct stats_gauges *gauges = store->gauges;
	uint64_t limit = new_bytes ? room_limit(store) : room_ceiling(store);
	uint64_t taken = gauge_get(&gauges->extent_bytes) + gauge_get(&gauges->slot_bytes) + new_bytes;
	uint64_t fixed = gauge_get(&gauges->records_ready_bytes) + room_moving_bytes(super->unit_bytes, limit);

	if (limit == UINT64_MAX)
		return true;
	if (!new_bytes)
		return limit > fixed && taken <= limit - fixed;
	fixed += (uint64_t)super->compress_threads * super->unit_bytes;
	return limit > fixed && taken <= limit - fixed && room_has_ids(store, limit - fixed);
}

bool room_may_grow(struct store *store, uint64_t bytes, enum room_class class)
{
	uint64_t limit = room_ceiling(store), ready;
	struct pool_usage usage;

	if (limit == UINT64_MAX)
		return true;
	pool_usage(&store->pool, &usage);
	ready = usage.ready_bytes + ids_ready_bytes(&store->ids) + bytes;
	if (class != ROOM_MOVE)
		ready += room_want_chunks(store->image.super->unit_bytes) * POOL_CHUNK_BYTES;
	return ready <= limit;
}

/* One more group of records must leave what is stored and what moving needs under the limit. */
static bool ids_group_fits(struct store *store)
{
	uint64_t limit = room_ceiling(store);
	uint64_t taken = gauge_get(&store->gauges->extent_bytes) + gauge_get(&store->gauges->slot_bytes) +
			 ids_ready_bytes(&store->ids) + IDS_GROUP_BYTES;

	return limit == UINT64_MAX || taken + room_moving_bytes(store->image.super->unit_bytes, limit) <= limit;
}

static void populating(struct store *store, bool begins)
{
	atomic_store_explicit(&store->growth.populating_since_ns, begins ? clock_ns() : 0, memory_order_relaxed);
}

static bool grow_ids(struct store *store, enum room_class class)
{
	uint32_t free_ids = atomic_load_explicit(&store->ids.free_ready, memory_order_relaxed);
	int result;

	if (free_ids >= ids_reserve(store) || !ids_group_fits(store) || !room_may_grow(store, IDS_GROUP_BYTES, class))
		return false;
	populating(store, true);
	result = ids_grow(&store->ids);
	populating(store, false);
	return result == 0;
}

/* Ends what pool_grow_begin() began. */
static bool populate_chunk(struct store *store, uint32_t chunk)
{
	uint64_t piece = store->image.page_bytes > PIECE_BYTES ? POOL_CHUNK_BYTES : PIECE_BYTES;
	uint8_t *start = store->image.arena + chunk * POOL_CHUNK_BYTES;
	int result = 0;

	for (uint64_t at = 0; at < POOL_CHUNK_BYTES && result == 0; at += piece) {
		populating(store, true);
		hook(HOOK_POPULATE);
		result = image_populate(&store->image, start + at, piece);
		populating(store, false);
	}
	pool_grow_end(&store->pool, chunk, result == 0);
	return result == 0;
}

static bool grow_arena(struct store *store, enum room_class class)
{
	struct pool_usage usage;
	uint32_t chunk;

	pool_usage(&store->pool, &usage);
	if (usage.empty_bytes >= store->image.super->reserve_bytes &&
		pool_longest(&store->pool) >= largest_extent_lines(store->image.super->unit_bytes))
		return false;
	if (!room_may_grow(store, POOL_CHUNK_BYTES, class))
		return false;
	chunk = pool_grow_begin(&store->pool, room_want_chunks(store->image.super->unit_bytes));
	return chunk != UINT32_MAX && populate_chunk(store, chunk);
}

bool room_grow_step(struct store *store, enum room_class class)
{
	bool grown = grow_ids(store, class);

	grown |= grow_arena(store, class);
	if (grown)
		room_update_gauges(store);
	return grown;
}

/* growth.lock. Returns the ask's number. */
static uint64_t growth_ask(struct growth *growth)
{
	if (growth->asks == growth->answered)
		pthread_cond_signal(&growth->wanted);
	return ++growth->asks;
}

/* The reserve is being eaten: the growth thread hears of it before anybody has to wait. */
static void growth_hint(struct growth *growth)
{
	pthread_mutex_lock(&growth->lock);
	if (growth->asks == growth->answered)
		growth_ask(growth);
	pthread_mutex_unlock(&growth->lock);
}

bool room_is_stuck(const struct store *store)
{
	uint64_t since_ns = gauge_get(&store->growth.populating_since_ns);

	return since_ns && clock_ns() - since_ns >= GROWTH_WAIT_NS;
}

static void growth_wait_slice(struct growth *growth, uint64_t deadline_ns)
{
	uint64_t until_ns = clock_ns() + SLICE_NS;

	cond_wait_until(&growth->grown, &growth->lock, until_ns < deadline_ns ? until_ns : deadline_ns);
}

/*
 * Asks the growth thread and waits for what it makes, or for a whole round in
 * which it made nothing; without one, grows here. False: another try is the
 * last. No other thread populates: where memory is short, that blocks.
 */
static bool growth_wait(struct store *store, enum room_class class, uint64_t deadline_ns)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct growth *growth = &store->growth;
	uint64_t ask, made;
	bool barren;

	if (!store->growth_started)
		return clock_ns() < deadline_ns && room_grow_step(store, class);
	pthread_mutex_lock(&growth->lock);
	growth->move |= class == ROOM_MOVE;
	ask = growth_ask(growth);
	made = growth->made;
	while (growth->answered < ask && growth->made == made && clock_ns() < deadline_ns && !room_is_stuck(store))
		growth_wait_slice(growth, deadline_ns);
	barren = growth->answered >= ask && growth->made == made;
	pthread_mutex_unlock(&growth->lock);
	/* There is enough, it found; others are taking it. */
	if (barren && class != ROOM_MOVE)
		nanosleep(&pause, NULL);
	return !(barren && class == ROOM_MOVE) && clock_ns() < deadline_ns && !room_is_stuck(store);
}

/* The growth thread goes on with it. */
static bool growth_hand_chunk(struct growth *growth, uint32_t chunk)
{
	bool handed;

	pthread_mutex_lock(&growth->lock);
	handed = growth->chunk == UINT32_MAX;
	if (handed)
		growth->chunk = chunk;
	pthread_mutex_unlock(&growth->lock);
	return handed;
}

bool room_fill_below(struct store *store, uint64_t line)
{
	uint32_t chunk;

	if (!room_may_grow(store, POOL_CHUNK_BYTES, ROOM_MOVE))
		return false;
	chunk = pool_grow_begin(&store->pool, 1);
	if (chunk == UINT32_MAX)
		return false;
	if (!store->growth_started && chunk < line / POOL_CHUNK_LINES)
		return populate_chunk(store, chunk);
	if (chunk < line / POOL_CHUNK_LINES && growth_hand_chunk(&store->growth, chunk))
		return growth_wait(store, ROOM_OLD, clock_ns() + ROOM_WAIT_NS);
	pool_grow_end(&store->pool, chunk, false);
	return false;
}

bool room_has_spare(struct store *store)
{
	uint32_t unit_bytes = store->image.super->unit_bytes;

	return pool_longest(&store->pool) >= largest_extent_lines(unit_bytes) ||
	       room_may_grow(store, room_want_chunks(unit_bytes) * POOL_CHUNK_BYTES, ROOM_MOVE);
}

/* What is ready, but never the last run that moving needs to make others out of holes. */
static uint64_t alloc_ready(struct store *store, uint64_t lines, enum room_class class)
{
	uint64_t line = pool_alloc(&store->pool, lines);

	if (line == POOL_NONE || class == ROOM_MOVE || room_has_spare(store))
		return line;
	pool_free(&store->pool, line, lines);
	return POOL_NONE;
}

uint64_t room_alloc(struct store *store, uint64_t lines, enum room_class class)
{
	uint64_t line = alloc_ready(store, lines, class), deadline_ns;
	bool again = true;

	if (line != POOL_NONE && store->growth_started && pool_empty_bytes(&store->pool) < store->image.super->reserve_bytes)
		growth_hint(&store->growth);
	if (line != POOL_NONE)
		return line;
	deadline_ns = clock_ns() + ROOM_WAIT_NS;
	while (line == POOL_NONE && again && room_may_grow(store, POOL_CHUNK_BYTES, class)) {
		again = growth_wait(store, class, deadline_ns);
		line = alloc_ready(store, lines, class);
	}
	return line;
}

uint32_t room_alloc_id(struct store *store)
{
	uint64_t deadline_ns = clock_ns() + ROOM_WAIT_NS;
	uint32_t id = ids_alloc(&store->ids);
	bool again = true;

	while (!id && again) {
		again = growth_wait(store, ROOM_OLD, deadline_ns);
		id = ids_alloc(&store->ids);
	}
	return id;
}

static bool punch_chunk(struct store *store, struct worker *worker)
{
	uint32_t chunk = pool_punch_begin(&store->pool);
	int result = -EBUSY;

	if (chunk == UINT32_MAX)
		return false;
	if (ahead_lets_punch(store, chunk)) {
		result = image_punch(
			&store->image, store->image.arena + chunk * POOL_CHUNK_BYTES, POOL_CHUNK_BYTES);
		ahead_punched(store);
	}
	pool_punch_end(&store->pool, chunk, result == 0);
	if (result == 0)
		stats_count(&worker->stats->punched_bytes, POOL_CHUNK_BYTES);
	return result == 0;
}

bool room_punch_step(struct store *store, struct worker *worker, uint64_t keep_bytes)
{
	bool punched = false;

	if (pool_empty_bytes(&store->pool) >= keep_bytes + POOL_CHUNK_BYTES)
		punched = punch_chunk(store, worker);
	if (!punched)
		punched = ids_shrink(&store->ids);
	if (punched)
		room_update_gauges(store);
	return punched;
}

static void growth_made(struct growth *growth)
{
	pthread_mutex_lock(&growth->lock);
	growth->made++;
	pthread_cond_broadcast(&growth->grown);
	pthread_mutex_unlock(&growth->lock);
}

/* What others have begun or asked for beyond the reserve, then the reserve. */
static void growth_round(struct store *store, bool move, uint32_t chunk)
{
	if (chunk != UINT32_MAX && populate_chunk(store, chunk))
		growth_made(&store->growth);
	if (move && room_grow_step(store, ROOM_MOVE))
		growth_made(&store->growth);
	while (!atomic_load(&store->stopping) && room_grow_step(store, ROOM_OLD))
		growth_made(&store->growth);
}

static void stand_by(struct store *store)
{
	pthread_mutex_lock(&store->growth.lock);
	while (!atomic_load(&store->recovered) && !atomic_load(&store->stopping)) {
		uint64_t rest_ns;

		pthread_mutex_unlock(&store->growth.lock);
		rest_ns = ahead_work(store);
		pthread_mutex_lock(&store->growth.lock);
		if (!atomic_load(&store->recovered) && !atomic_load(&store->stopping))
			cond_wait_until(&store->turn, &store->growth.lock, clock_ns() + rest_ns);
	}
	pthread_mutex_unlock(&store->growth.lock);
}

static void *growth_main(void *argument)
{
	struct store *store = argument;
	struct growth *growth = &store->growth;

	stand_by(store);
	if (!store_await_turn(store))
		return NULL;
	pthread_mutex_lock(&growth->lock);
	while (!atomic_load(&store->stopping)) {
		uint64_t asks = growth->asks;
		uint32_t chunk = growth->chunk;
		bool move = growth->move;

		if (asks == growth->answered) {
			pthread_cond_wait(&growth->wanted, &growth->lock);
			continue;
		}
		growth->move = false;
		pthread_mutex_unlock(&growth->lock);
		growth_round(store, move, chunk);
		pthread_mutex_lock(&growth->lock);
		if (chunk != UINT32_MAX)
			growth->chunk = UINT32_MAX;
		growth->answered = asks;
		pthread_cond_broadcast(&growth->grown);
	}
	pthread_mutex_unlock(&growth->lock);
	return NULL;
}

int growth_start(struct store *store)
{
	int result = -thread_create(&store->growth.thread, growth_main, store, "fs-growth");

	store->growth_started = result == 0;
	return result;
}

void growth_stop(struct store *store)
{
	if (!store->growth_started)
		return;
	pthread_mutex_lock(&store->growth.lock);
	pthread_cond_broadcast(&store->growth.wanted);
	pthread_cond_broadcast(&store->growth.grown);
	pthread_mutex_unlock(&store->growth.lock);
	pthread_join(store->growth.thread, NULL);
	store->growth_started = false;
}
