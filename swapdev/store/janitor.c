// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The janitor decides what is worth doing now: give empty chunks back, rewrite
 * objects with dead granules, move payloads together.
 *
 * Pace. While writes come in, only what is very cheap for what it wins; once
 * they have stopped for JANITOR_QUIET_NS, until little is left; when room is
 * short or a compaction was asked for, as far as it goes.
 */
#include "store_internal.h"

#include <errno.h>
#include <stdlib.h>

#define JANITOR_QUIET_NS (100 * UINT64_C(1000000))
#define JANITOR_RETRY_NS (250 * UINT64_C(1000000))

struct pace {
	uint64_t dead_bytes_max;  /* more is rewritten */
	uint64_t holes_bytes_max; /* more is moved together */
	uint64_t keep_bytes;	  /* empty chunks beyond are given back */
	uint32_t live_share_max;  /* of 256: objects above are left alone */
	uint32_t used_share_max;  /* of 256: chunks above are left alone */
	bool thorough;
};

static uint64_t reserve_bytes(const struct store *store)
{
	uint64_t want_bytes = room_want_chunks(store->image.super->unit_bytes) * POOL_CHUNK_BYTES;
	uint64_t reserve = store->image.super->reserve_bytes;

	return round_up_u64(reserve > want_bytes ? reserve : want_bytes, POOL_CHUNK_BYTES);
}

static struct pace pace_thorough(struct store *store)
{
	uint64_t stored = gauge_get(&store->gauges->extent_bytes);

	return (struct pace){
		.dead_bytes_max = 0,
		.holes_bytes_max = stored / 128 + POOL_CHUNK_BYTES,
		.keep_bytes = reserve_bytes(store),
		.live_share_max = 256,
		.used_share_max = 253,
		.thorough = true,
	};
}

static struct pace pace_quiet(struct store *store)
{
	uint64_t stored = gauge_get(&store->gauges->extent_bytes);

	return (struct pace){
		.dead_bytes_max = stored / 64,
		.holes_bytes_max = stored / 32 + POOL_CHUNK_BYTES,
		.keep_bytes = reserve_bytes(store),
		.live_share_max = 250,
		.used_share_max = 248,
	};
}

static struct pace pace_busy(struct store *store)
{
	uint64_t stored = gauge_get(&store->gauges->extent_bytes);

	return (struct pace){
		.dead_bytes_max = stored / 8 + POOL_CHUNK_BYTES,
		.holes_bytes_max = stored / 8 + 4 * POOL_CHUNK_BYTES,
		.keep_bytes = reserve_bytes(store) + 8 * POOL_CHUNK_BYTES,
		.live_share_max = 128,
		.used_share_max = 128,
	};
}

static struct pace pace_at(struct store *store, uint64_t now_ns)
{
	uint64_t last_write_ns = gauge_get(&store->last_write_ns);

	if (atomic_load(&store->compact) || atomic_load(&store->starved) || !room_admits(store, store->image.super->unit_bytes)) {
		struct pace pace = pace_thorough(store);

		/* A slot waits for one long run: the smallest holes are worth moving together. */
		if (atomic_load(&store->starved))
			pace.holes_bytes_max = 0;
		return pace;
	}
	return now_ns < last_write_ns + JANITOR_QUIET_NS ? pace_busy(store) : pace_quiet(store);
}

static uint64_t holes_bytes(struct store *store)
{
	struct pool_usage usage;

	pool_usage(&store->pool, &usage);
	return usage.ready_bytes - usage.empty_bytes - usage.used_bytes;
}

/* A slot waits for room that is there in pieces: what won nothing before is tried again, now and then. */
static void retry_when_starved(struct store *store, uint64_t now_ns)
{
	struct janitor *janitor = &store->janitor;

	if (!atomic_load(&store->starved) || now_ns < janitor->retried_ns + JANITOR_RETRY_NS)
		return;
	janitor->retried_ns = now_ns;
	atomic_store_explicit(&janitor->rewrite_useless_dead, JANITOR_ANY, memory_order_relaxed);
	atomic_store_explicit(&janitor->move_useless_used, JANITOR_ANY, memory_order_relaxed);
}

bool janitor_rewrite_is_useless(const struct store *store)
{
	return gauge_get(&store->janitor.rewrite_useless_dead) == gauge_get(&store->dead_bytes);
}

bool janitor_move_is_useless(const struct store *store, uint64_t used_bytes)
{
	uint64_t was = gauge_get(&store->janitor.move_useless_used);

	return was != JANITOR_ANY && used_bytes + was / 64 >= was && used_bytes <= was + was / 64;
}

static uint64_t excess(uint64_t bytes, uint64_t most_bytes)
{
	return bytes > most_bytes ? bytes - most_bytes : 0;
}

/* Rounds of moving win nothing more: a compaction goes on by sliding, once through the arena. */
static bool slides_now(const struct store *store)
{
	return atomic_load(&store->compact) && !atomic_load(&store->janitor.slid) &&
	       janitor_move_is_useless(store, gauge_get(&store->gauges->extent_bytes));
}

/* Janitor work above these limits. */
static uint64_t left_bytes(struct store *store, const struct pace *pace)
{
	uint64_t left = 0, empty = pool_empty_bytes(&store->pool);

	if (!janitor_rewrite_is_useless(store))
		left += excess(gauge_get(&store->dead_bytes), pace->dead_bytes_max);
	if (!janitor_move_is_useless(store, gauge_get(&store->gauges->extent_bytes)) || slides_now(store))
		left += excess(holes_bytes(store), pace->holes_bytes_max);
	if (empty >= pace->keep_bytes + POOL_CHUNK_BYTES)
		left += empty - pace->keep_bytes;
	return left;
}

bool janitor_has_later_work(struct store *store)
{
	struct pace pace = atomic_load(&store->compact) ? pace_thorough(store) : pace_quiet(store);

	return left_bytes(store, &pace) > 0;
}

uint64_t janitor_left_bytes(struct store *store)
{
	struct pace pace = pace_at(store, clock_ns());

	return left_bytes(store, &pace);
}

/* Rewriting compresses anew what moving only copies: first what there is more of to win, but a round is ended. */
static bool win_step(struct store *store, struct worker *worker, const struct pace *pace)
{
	uint64_t dead = excess(gauge_get(&store->dead_bytes), pace->dead_bytes_max);
	uint64_t holes = excess(holes_bytes(store), pace->holes_bytes_max);
	bool move = store->janitor.victim_count || holes;

	if (move && (store->janitor.victim_count || holes > dead) &&
		move_step(store, worker, pace->used_share_max, pace->thorough))
		return true;
	if (dead && rewrite_step(store, worker, pace->live_share_max))
		return true;
	return move && move_step(store, worker, pace->used_share_max, pace->thorough);
}

/* What rounds of moving cannot do: a run for a slot that waits, the last holes of a compaction. */
static bool gather_step(struct store *store, struct worker *worker, const struct pace *pace)
{
	struct janitor *janitor = &store->janitor;

	if (janitor->victim_count)
		return false;
	if (atomic_load(&store->starved))
		return slide_step(store, worker, 2 * room_largest_lines(store));
	if (!slides_now(store) || !excess(holes_bytes(store), pace->holes_bytes_max))
		return false;
	if (slide_step(store, worker, UINT64_MAX))
		return true;
	atomic_store(&janitor->slid, true);
	return false;
}

bool janitor_step(struct store *store, struct worker *worker)
{
	struct pace pace;
	bool done;

	if (pthread_mutex_trylock(&store->janitor.lock) != 0)
		return false;
	retry_when_starved(store, worker->slice_ns);
	pace = pace_at(store, worker->slice_ns);
	done = room_punch_step(store, worker, pace.keep_bytes) || win_step(store, worker, &pace) ||
	       gather_step(store, worker, &pace);
	pthread_mutex_unlock(&store->janitor.lock);
	return done;
}

int janitor_init(struct store *store)
{
	pthread_mutex_init(&store->janitor.lock, NULL);
	store->janitor.rewrite_useless_dead = JANITOR_ANY;
	store->janitor.move_useless_used = JANITOR_ANY;
	store->janitor.victims = calloc(VICTIMS_MAX, sizeof(*store->janitor.victims));
	store->janitor.sliding = calloc(SLIDE_OBJECTS, sizeof(*store->janitor.sliding));
	return store->janitor.victims && store->janitor.sliding ? 0 : -ENOMEM;
}

void janitor_deinit(struct store *store)
{
	free(store->janitor.victims);
	free(store->janitor.sliding);
	pthread_mutex_destroy(&store->janitor.lock);
}
