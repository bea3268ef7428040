/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the store share.
 *
 * Lock order (each list is complete; never take to the left of what you hold):
 *
 *   unit lock (one at a time) -> staging.lock | pool.lock | ids.lock   (leaves)
 *   unit lock, shared -> frame_cache.claiming -> lock of a frame cache's entry (one at a time, a leaf)
 *
 * Unit lock, shared:    look up, copy from a slot, decode, compress a slot, allocate.
 * Unit lock, exclusive: copy into a slot, store words, replace `place`, free.
 *                       Nobody compresses, decodes, allocates, waits or does I/O under it.
 * Entry of a frame cache, shared: copy from it. Exclusive: decode into it; only who wants that frame waits.
 *
 * Threads: I/O threads (struct store_io each), compression threads (struct
 * worker each), one growth thread, one control thread. One compression thread
 * at a time is the janitor (janitor.lock, trylock only).
 */
#ifndef STORE_INTERNAL_H
#define STORE_INTERNAL_H

#include "clock.h"
#include "codec.h"
#include "frame.h"
#include "frame_cache.h"
#include "ids.h"
#include "image.h"
#include "pool.h"
#include "stats.h"
#include "store.h"

#include <pthread.h>
#include <stdatomic.h>

#define UNIT_LOCKS 1024

/* A request below this that finds neither its unit's slot nor a free one becomes an object at once. */
#define DIRECT_MAX_BYTES SCRATCH_DIRECT_BYTES
/* Its frames: small, since such requests are, and a context for small frames takes a third of the memory. */
#define DIRECT_FRAME_BYTES (16 * KIB)
/* A unit not written to for so long is closed. */
#define SLOT_QUIET_NS (50 * UINT64_C(1000000))
/* How long a write waits for a slot while none is freed at all, before it is refused: beyond the server's watchdog. */
#define WRITE_WAIT_NS (20 * UINT64_C(1000000000))
/* How long it may wait for the janitor, while that has something to win: on a busy machine half a second was not enough. */
#define PRESSURE_WAIT_NS (3 * UINT64_C(1000000000))
/* After so long without one that was admitted, others are not even let wait. */
#define PRESSURE_ALL_WAIT_NS (2 * PRESSURE_WAIT_NS)
/* How long for a slot when closing found no room: the janitor may have to slide much of the arena. */
#define STARVED_WAIT_NS (8 * UINT64_C(1000000000))
/* How long for ready room while one piece of memory does not come: the machine has none, and waiting frees none. */
#define GROWTH_WAIT_NS (UINT64_C(1000000000))

/*
 * Since when something that is waited for has not come. One for all waiters: who
 * comes later does not wait as long again, so that a store which cannot go on
 * refuses at once, and the kernel looks for memory elsewhere. Atomic, no lock.
 */
struct stall {
	_Atomic uint64_t since_ns; /* 0: nobody waits, or it has come since */
};

static inline void stall_end(struct stall *stall)
{
	if (atomic_load_explicit(&stall->since_ns, memory_order_relaxed))
		atomic_store_explicit(&stall->since_ns, 0, memory_order_relaxed);
}

/* What is left of most_ns; 0: it has lasted that long. The first one who asks begins it. */
static inline uint64_t stall_left_ns(struct stall *stall, uint64_t most_ns)
{
	uint64_t since_ns = 0, now_ns = clock_ns();

	if (atomic_compare_exchange_strong(&stall->since_ns, &since_ns, now_ns) || now_ns < since_ns)
		return most_ns;
	return now_ns - since_ns < most_ns ? most_ns - (now_ns - since_ns) : 0;
}

struct unit_lock {
	pthread_rwlock_t lock;
} __attribute__((aligned(CACHE_LINE_BYTES)));

/*
 * One staging slot's private side.
 *
 *   FREE --(write takes it)--> TAKEN --(unit named)--> OPEN --(worker)--> CLOSING --(published)--> FREE
 *                                                      ^                   |
 *                                                      +--(some changed)---+
 */
enum slot_state {
	SLOT_FREE,
	SLOT_TAKEN, /* by one thread; its header names no unit yet */
	SLOT_OPEN,
	SLOT_CLOSING,
};

struct slot {
	enum slot_state state;	       /* staging.lock */
	_Atomic uint32_t granules;     /* words that name it; changed under the unit lock, exclusive */
	_Atomic uint64_t last_write_ns; /* likewise */
	/* Granules written since closing began: set under the unit lock, exclusive; cleared by the closer under the shared. */
	uint64_t changed[UNIT_MAX_BYTES / GRANULE_BYTES / 64];
} __attribute__((aligned(CACHE_LINE_BYTES)));

struct staging {
	pthread_mutex_t lock;
	pthread_cond_t slot_free;    /* I/O threads wait here, bounded */
	pthread_cond_t work;	     /* compression threads wait here */
	struct slot slot[STORE_SLOTS_MAX];
	unsigned free;		     /* lock: slots in SLOT_FREE */
	_Atomic unsigned wanted;     /* writes that found no slot since one was last freed */
	_Atomic bool flush;	     /* close every open slot, quiet or not */
	_Atomic uint64_t freed;	     /* slots freed so far: whether anything moves */
	struct stall stall;	     /* of freeing one */
};

/* The codec contexts of one thread; replaced by the control thread when no one uses them. */
struct encoder {
	struct compressor *compressor;
	unsigned frame_order;
};

/* A thread's encoder, guarded like a hazard pointer: the control thread frees what is neither current nor in use. */
struct encoder_slot {
	_Atomic(struct encoder *) current;
	_Atomic(struct encoder *) in_use;
	size_t frame_max_bytes; /* frames of this thread are never larger, whatever is set */
};

struct store_io {
	struct store *store;
	unsigned index;
	struct stats_io *stats;
	enum stats_kind kind; /* of the request in execution: where stage times go */
	struct encoder_slot encoder;
	struct decompressor *decompressor;
	uint8_t *payload; /* scratch: one direct object */
	uint64_t slice_ns; /* clock at the last stage border */
} __attribute__((aligned(CACHE_LINE_BYTES)));

/* One run of a slot that became an object. */
struct closed_run {
	uint32_t first;
	uint32_t count;
	uint32_t id; /* MAP_HOLE: the run was zeros */
};

struct worker {
	struct store *store;
	unsigned index;
	pthread_t thread;
	struct stats_worker *stats;
	struct encoder_slot encoder;
	struct decompressor *decompressor;
	uint8_t *payload;	  /* scratch: one unit compressed */
	struct closed_run *run;	  /* unit granules of them */
	uint64_t slice_ns; /* clock at the last stage border, or when it last looked for work */
	uint64_t cpu_base_ns; /* of the threads that were this worker before */
} __attribute__((aligned(CACHE_LINE_BYTES)));

/* An object to be moved down, and where it lay when it was found. */
struct sliding {
	uint64_t line;
	uint32_t id;
};

struct janitor {
	pthread_mutex_t lock;	  /* trylock; its holder owns the rest */
	uint32_t rewrite_cursor;  /* id */
	uint32_t rewrite_share;	  /* objects at most this live (of 256) are rewritten in this pass; 0: no pass */
	bool rewrite_won;	  /* this pass has rewritten something */
	_Atomic uint64_t rewrite_useless_dead; /* dead bytes when a pass won nothing; JANITOR_ANY: none such */
	uint32_t *victims;	  /* chunks being emptied, ascending */
	unsigned victim_count;
	uint32_t move_cursor;	  /* id */
	unsigned move_rounds;	  /* since round_busy_bytes was noted */
	uint64_t round_busy_bytes; /* chunks in use then: ROUNDS_JUDGED rounds must end with fewer */
	struct sliding *sliding; /* SLIDE_OBJECTS: the next to be slid, ascending */
	unsigned slide_count;
	unsigned slide_at;
	uint64_t slide_cursor; /* line: those behind come next */
	bool slide_won;	       /* this pass has moved something */
	_Atomic bool slid;     /* a pass of this compaction has come to its end */
	uint64_t retried_ns; /* when the two marks were last taken back for a starved slot */
	_Atomic uint64_t move_useless_used; /* bytes in use when a round won nothing; JANITOR_ANY: none such */
};

#define JANITOR_ANY UINT64_MAX
/* Found by one look at all records. */
#define SLIDE_OBJECTS 1024
/* Chunks emptied in one round. */
#define VICTIMS_MAX 16
/* Nearly full chunks give little each: so many rounds together must win a chunk. */
#define ROUNDS_JUDGED 16

struct growth {
	pthread_t thread;
	pthread_mutex_t lock; /* leaf */
	pthread_cond_t wanted;
	pthread_cond_t grown;
	uint64_t asks;	    /* the thread works while they are more than it has answered */
	uint64_t answered;  /* asks that a whole round came after */
	uint64_t made;	    /* pieces of arena or records */
	bool move;	    /* one piece is wanted beyond what the thread takes by itself */
	uint32_t chunk;	    /* begun by the janitor (room_fill_below); UINT32_MAX: none */
	_Atomic uint64_t populating_since_ns; /* a piece of memory was asked for then, and has not come; 0: none */
};

struct ahead {
	pthread_mutex_t lock; /* a chunk is being mapped */
	bool ended;	      /* lock: the turn has come */
	bool *mapped;	      /* by chunk; this and the rest are the growth thread's, until its turn */
	uint32_t next;
	uint64_t punches; /* those before it are known */
	blkcnt_t blocks;
};

struct store {
	struct image image;
	struct pool pool;
	struct ids ids;
	struct unit_lock unit_lock[UNIT_LOCKS];
	struct staging staging;
	struct store_io *io;
	struct frame_cache small_cache; /* decoded frames up to SCRATCH_FRAME_BYTES */
	struct frame_cache large_cache; /* larger ones; its entries are present before such a frame exists */
	struct worker *worker;
	struct janitor janitor;
	struct growth growth;
	struct ahead ahead;
	struct stall room_stall; /* of admission, while the janitor has something to win */
	struct stats_page *stats;
	struct stats_gauges *gauges;
	_Atomic uint64_t seq;		/* last object's */
	_Atomic uint64_t dead_bytes;	/* of extents: the share of granules no word names any more */
	_Atomic uint64_t last_write_ns; /* coarse: of the last write or discard, for the janitor's pace */
	_Atomic uint64_t headroom_bytes;
	_Atomic bool starved; /* the last close found no room */
	_Atomic bool compact; /* control thread: the janitor goes as far as it gets */
	_Atomic bool stopping;
	_Atomic bool recovered; /* growth.lock and turn: threads that were started before wait for it */
	pthread_cond_t turn;
	uint64_t encoders_codec_level; /* what the contexts were made for */
	uint32_t encoders_frame_bytes;
	bool started; /* threads run */
	unsigned workers_started;
	bool growth_started;
	uint32_t unit_granules;
	unsigned unit_order;
};

/* ---- units ---- */

static inline uint64_t store_granules(const struct store *store)
{
	return store->image.super->size_bytes >> GRANULE_SHIFT;
}

static inline uint64_t unit_of(const struct store *store, uint64_t granule)
{
	return granule >> store->unit_order;
}

static inline pthread_rwlock_t *unit_rwlock(struct store *store, uint64_t unit)
{
	/* Neighbouring units lie on different locks; multiplication spreads strides. */
	return &store->unit_lock[(unit * UINT64_C(0x9e3779b97f4a7c15)) >> 54].lock;
}
_Static_assert(UNIT_LOCKS == 1 << (64 - 54), "unit_rwlock takes the top ten bits");

static inline void unit_lock_shared(struct store *store, uint64_t unit)
{
	pthread_rwlock_rdlock(unit_rwlock(store, unit));
}

static inline void unit_lock_exclusive(struct store *store, uint64_t unit)
{
	pthread_rwlock_wrlock(unit_rwlock(store, unit));
}

static inline bool unit_trylock_shared(struct store *store, uint64_t unit)
{
	return pthread_rwlock_tryrdlock(unit_rwlock(store, unit)) == 0;
}

static inline bool unit_trylock_exclusive(struct store *store, uint64_t unit)
{
	return pthread_rwlock_trywrlock(unit_rwlock(store, unit)) == 0;
}

static inline void unit_unlock(struct store *store, uint64_t unit)
{
	pthread_rwlock_unlock(unit_rwlock(store, unit));
}

static inline map_word map_load(const struct store *store, uint64_t granule)
{
	return atomic_load_explicit(&store->image.map[granule], memory_order_acquire);
}

static inline uint8_t *slot_data(const struct store *store, unsigned slot)
{
	return store->image.staging + (uint64_t)slot * ((uint64_t)store->unit_granules << GRANULE_SHIFT);
}

static inline void gauge_add(_Atomic uint64_t *gauge, uint64_t n)
{
	atomic_fetch_add_explicit(gauge, n, memory_order_relaxed);
}

static inline void gauge_sub(_Atomic uint64_t *gauge, uint64_t n)
{
	atomic_fetch_sub_explicit(gauge, n, memory_order_relaxed);
}

static inline uint64_t gauge_get(const _Atomic uint64_t *gauge)
{
	return atomic_load_explicit(gauge, memory_order_relaxed);
}

/* Adds the time since *slice to a stage and begins the next slice. */
static inline void stage_end(uint64_t *stage_ns, uint64_t *slice_ns)
{
	uint64_t now = clock_ns();

	stats_count(stage_ns, now - *slice_ns);
	*slice_ns = now;
}

/* ---- room.c: arena and records, with the limit and the growth thread ---- */

enum room_class {
	ROOM_NEW,  /* data that was not there: may not use the headroom */
	ROOM_OLD,  /* closing, rewriting */
	ROOM_MOVE, /* compaction: may use the last of it */
};

/* May so much new data be admitted? 0: a write over old data. Any thread. */
bool room_admits(struct store *store, uint64_t new_bytes);

/* Takes lines; POOL_NONE after a bounded wait. Under a shared unit lock or none. */
uint64_t room_alloc(struct store *store, uint64_t lines, enum room_class class);
uint32_t room_alloc_id(struct store *store);
/* Is there a run, ready or allowed to be, for the largest extent? */
bool room_has_spare(struct store *store);
/* Lines of the largest extent. */
uint64_t room_largest_lines(const struct store *store);
/* The growth thread has got no memory for so long that waiting for it is no use. */
bool room_is_stuck(const struct store *store);
/* Do so many bytes more of arena or records stay below the limit? */
bool room_may_grow(struct store *store, uint64_t bytes, enum room_class class);
/* Grows arena or ids by one piece if the reserve or a waiter wants it. True when something was done. */
bool room_grow_step(struct store *store, enum room_class class);
/* Makes the lowest absent chunk ready if it lies below that line and the limit allows it. */
bool room_fill_below(struct store *store, uint64_t line);
/* Gives back what is ready and empty beyond `keep_bytes`. True when something was done. */
bool room_punch_step(struct store *store, struct worker *worker, uint64_t keep_bytes);
/* Largest extent an object can take, in chunks of ready room that a contiguous run needs. */
uint32_t room_want_chunks(uint32_t unit_bytes);
/* What is left free under a limit so that moving can always win chunks: some largest extents, and a 32nd. */
uint64_t room_moving_bytes(uint32_t unit_bytes, uint64_t limit_bytes);
void room_update_gauges(struct store *store);
/* Before a limit is set: if it is below what is stored, room_ceiling() does not follow it at once. */
void room_set_floor(struct store *store, uint64_t limit_bytes);
int growth_start(struct store *store);
void growth_stop(struct store *store);

/* ---- object.c: objects and map words ---- */

struct object_writer {
	struct store *store;
	struct encoder *encoder;
	uint8_t *payload;
	uint64_t *stage_ns;
	uint64_t *slice_ns;
	enum room_class class;
};
/*
 * Makes an object of `count` granules at plain: payload in an extent, then the
 * record. *ret_id: its id, or MAP_HOLE when all of them are zeros. Returns 0 or
 * -ENOSPC. Shared unit lock or, for a direct object, none.
 */
int object_create(const struct object_writer *writer, uint64_t first, uint32_t count, const uint8_t *plain,
	uint32_t *ret_id, struct object *ret_object);

/* The same where fill makes the plain bytes, and only `filled` of the granules are live. Returns 0, -ENOSPC or -EIO. */
int object_create_from(const struct object_writer *writer, uint64_t first, uint32_t count, uint32_t filled,
	frame_fill *fill, void *arg, uint32_t *ret_id);

/* Words of `live` granules, fewer than it has, name the new object: counts the others as dead, or frees it. Unit lock,
 * exclusive, since before the words were stored. */
void object_published(struct store *store, uint32_t id, uint32_t live);

/* Frees an object that no word names: extent, id, gauges. */
void object_free(struct store *store, uint32_t id);

/* Adds an object to the gauges, or takes it off. */
void gauges_object(struct store *store, const struct object *object, bool add);

/* Extent of an object in lines; 0 for same-filled. */
uint64_t object_lines(const struct object *object);

/* Payload bytes whose granules are dead: extent x (filled - live) / filled. */
uint64_t object_dead_bytes(const struct object *object, uint32_t live);

/*
 * Is this record one that this program could have written, for this id and
 * this device? Everything that later code relies on is checked here.
 */
bool object_is_sane(const struct store *store, const struct object *object);

static inline const uint8_t *object_payload(const struct store *store, const struct object *object)
{
	return store->image.arena + (place_offset_lines(object->place) << POOL_LINE_SHIFT);
}

/*
 * Stores `word` into each of count map words from granule on, and takes the
 * old words back: live counts, slots, gauges; objects that lost their last
 * word are freed. Exclusive unit lock; one unit. For objects, word's live
 * count grows by count.
 */
void map_replace(struct store *store, uint64_t granule, uint32_t count, map_word word);

/* Granules from `granule` on, at most count, that have the same word. */
uint32_t map_run(const struct store *store, uint64_t granule, uint32_t count, map_word *ret_word);

/* ---- encoder.c ---- */

struct encoder *encoder_acquire(struct encoder_slot *slot);
void encoder_release(struct encoder_slot *slot);
/* Replaces every thread's encoder. Control thread, or before threads. */
int encoders_set(struct store *store, unsigned codec, int level, uint32_t frame_bytes);
void encoders_destroy(struct store *store);
/* Bytes locked by codec contexts. */
uint64_t encoders_bytes(const struct store *store);

/* ---- staging.c ---- */

void staging_init(struct store *store);
/* The slot of a unit, or -1. Under the unit's lock. */
int staging_find(const struct store *store, uint64_t unit);
/* Takes a free slot, whose bytes are the caller's until it names a unit or gives it back; -1: none. */
int staging_reserve(struct store *store);
/*
 * The taken slot is this unit's, which has none. Under the unit's lock, exclusive. True when no other is open: the
 * caller then wakes a worker, which may sleep without a date.
 */
bool staging_open(struct store *store, unsigned slot, uint64_t unit, uint64_t now_ns);
/* A slot without granules, whose header names no unit. */
void staging_free(struct store *store, unsigned slot);
/* Waits a little for a free slot. False: there is none yet. No lock held. */
bool staging_wait(struct store *store);
/* Tells the workers that a write found no slot. */
void staging_want(struct store *store);
/* There is work, or there will be at a date that no worker knows yet: wakes one that sleeps. */
void staging_wake(struct store *store);

/* ---- ahead.c ---- */

/* A process begins to stand by; its growth thread calls ahead_work() until its turn. Returns 0 or -ENOMEM. */
int ahead_begin(struct store *store);
/* Maps some of what the server has ready. Returns for how long to leave it then. */
uint64_t ahead_work(struct store *store);
/* The turn has come: nothing more is mapped ahead after it returns. */
void ahead_end(struct store *store);
/* Was the chunk mapped ahead, and is still what it was then? Recovery, after ahead_end(). */
bool ahead_has(const struct store *store, uint32_t chunk);
void ahead_destroy(struct store *store);
/* The server is about to punch a chunk: false: not now. After true, ahead_punched(). The janitor. */
bool ahead_lets_punch(struct store *store, uint32_t chunk);
void ahead_punched(struct store *store);

/* ---- close.c ---- */

/* Closes one slot that is due (complete, wanted, quiet; any when flushing) at slice_ns. True when one was tried. */
bool close_step(struct store *store, struct worker *worker);
/* Nanoseconds from now_ns until the next open slot is due; UINT64_MAX: none is open. Under staging.lock. */
uint64_t close_next_due_ns(struct store *store, uint64_t now_ns);

/* ---- janitor.c ---- */

/* One piece of the janitor's work at slice_ns; false: none then, or another thread is at it. */
bool janitor_step(struct store *store, struct worker *worker);
/* Is there work that the present pace leaves for a quieter moment? Any thread. */
bool janitor_has_later_work(struct store *store);
/* What the present pace would still do, in bytes. Any thread. */
uint64_t janitor_left_bytes(struct store *store);
/* A pass or round that won nothing is not repeated until this says so: what it depends on has changed. */
bool janitor_rewrite_is_useless(const struct store *store);
bool janitor_move_is_useless(const struct store *store, uint64_t used_bytes);
int janitor_init(struct store *store);
void janitor_deinit(struct store *store);

/* ---- rewrite.c, move.c ---- */

/* Rewrites the next object with few live granules. True while there is one. Janitor only. */
bool rewrite_step(struct store *store, struct worker *worker, uint32_t share_max);
/*
 * Moves the next object out of the chunks being emptied: the emptiest ones or,
 * thorough, neighbours. True when something was done. Janitor only.
 */
bool move_step(struct store *store, struct worker *worker, uint32_t used_share_max, bool thorough);
/*
 * Brings holes together, until there is a run of enough_lines. False: there is one, or a whole pass has moved nothing.
 * Janitor only, no round begun.
 */
bool slide_step(struct store *store, struct worker *worker, uint64_t enough_lines);

/* ---- worker.c ---- */

/* A named thread with a 128 KiB stack (a default one would be locked with all its 8 MiB). Returns 0 or a positive errno. */
int thread_create(pthread_t *ret, void *(*main)(void *), void *argument, const char *name);
/* Mutex and condition variables on CLOCK_MONOTONIC. */
void cond_init(pthread_cond_t *cond);
void cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ns);

int workers_start(struct store *store);
void workers_stop(struct store *store);

/* What a thread that was started before the recovery does first. False: there will be no turn. */
bool store_await_turn(struct store *store);

/* ---- grow.c ---- */

/* Gives map words beyond the end back: of a growth that came to nothing. Returns 0 or -errno. */
int map_trim(const struct store *store);
void map_set_gauge(struct store *store);

/* ---- recover.c ---- */

int recover(struct store *store);

/* ---- publication hooks: tests stop the process between steps ---- */

enum store_hook {
	HOOK_SLOT_HEADER,  /* header written, no word yet */
	HOOK_SLOT_COPY,	   /* bytes copied, words not yet stored */
	HOOK_SLOT_WORDS,   /* words stored, not acknowledged */
	HOOK_PAYLOAD,	   /* payload in its extent, no record */
	HOOK_RECORD,	   /* record written, no word */
	HOOK_CLOSE_MADE,   /* objects of a slot made, no lock held, no word yet */
	HOOK_CLOSE_WORD,   /* between the words of a closed slot */
	HOOK_CLOSE_WORDS,  /* all words of a closed slot stored, slot not freed */
	HOOK_DIRECT_WORDS, /* words of a direct object stored */
	HOOK_DISCARD,	   /* words cleared */
	HOOK_MOVE_COPY,	   /* copy at the new place complete */
	HOOK_MOVE_PLACE,   /* place stored, old extent not freed */
	HOOK_POPULATE,	   /* before a piece of arena is made ready */
	HOOK_GROW_MAP,	   /* words of the new part present, size not stored */
	HOOK_GROW_SIZE,	   /* size stored, nobody told */
	HOOK_COUNT,
};
/* NULL, except in tests. */
extern void (*store_hook)(enum store_hook hook);

static inline void hook(enum store_hook point)
{
	if (store_hook)
		store_hook(point);
}

#endif
