/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pool: which 64-byte lines of the arena are taken.
 *
 * Bookkeeping is out of band, in private memory, rebuilt by recovery: one bit
 * per line (one 4 KiB page per 2 MiB chunk), and over the chunks a binary tree
 * whose nodes hold { free run at the start, at the end, longest }. So the
 * lowest run that fits is found in O(log chunks), runs span chunks, and free
 * neighbours are one run without any merging step.
 *
 * Life of a chunk:
 *
 *            grow (growth thread: populate)
 *   ABSENT -----------------------------------> READY <---+
 *      ^                                         | |      | pool_reopen
 *      |        punch (worker: empty, not wanted)| | close| (what could not move stays)
 *      +-----------------------------------------+ v      |
 *                                                CLOSED --+
 *
 * GROWING and PUNCHING are READY or ABSENT while the system call runs outside
 * the lock. Only READY chunks have free runs in the tree; frees are noted in
 * every state.
 *
 * One mutex, a leaf: nothing is locked and no system call is made under it.
 */
#ifndef STORE_POOL_H
#define STORE_POOL_H

#include "units.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define POOL_LINE_SHIFT 6
#define POOL_LINE_BYTES (UINT64_C(1) << POOL_LINE_SHIFT)
#define POOL_CHUNK_BYTES (2 * MIB)
#define POOL_CHUNK_LINES ((uint32_t)(POOL_CHUNK_BYTES >> POOL_LINE_SHIFT))
#define POOL_CHUNK_WORDS (POOL_CHUNK_LINES / 64)
#define POOL_NONE UINT64_MAX

enum pool_chunk_state {
	CHUNK_ABSENT,
	CHUNK_GROWING,
	CHUNK_READY,
	CHUNK_CLOSED,
	CHUNK_PUNCHING,
};

struct pool_run {
	uint32_t prefix;
	uint32_t suffix;
	uint32_t longest;
};

struct pool_chunk {
	uint32_t used_lines;
	uint8_t state; /* enum pool_chunk_state */
};

struct pool {
	pthread_mutex_t lock;
	uint32_t chunks;
	uint32_t leaves;	   /* chunks rounded up to a power of two */
	struct pool_chunk *chunk;  /* lock; sparse: zero is ABSENT */
	uint64_t *bits;		   /* lock; sparse: POOL_CHUNK_WORDS per chunk; 1 = taken */
	struct pool_run *tree;	   /* lock; sparse: [1] root, [leaves + i] chunk i */
	bool *block_present;	   /* by the thread that grows: entries of 512 chunks were populated */
	uint64_t used_lines;	   /* lock, like all below */
	uint32_t ready_chunks;	   /* READY, CLOSED and on their way */
	_Atomic uint32_t empty_chunks; /* READY with no line taken; changed under lock, read anywhere */
	uint32_t absent_hint;	   /* no ABSENT chunk below */
	uint32_t ready_end;	   /* only ABSENT chunks from here on */
};

static inline uint64_t pool_lines(uint64_t bytes)
{
	return (bytes + POOL_LINE_BYTES - 1) >> POOL_LINE_SHIFT;
}

/* Maps the sparse tables for an arena of that many bytes (a multiple of 2 MiB). Returns 0 or -ENOMEM. */
int pool_init(struct pool *pool, uint64_t arena_bytes);
void pool_deinit(struct pool *pool);

/* Takes the lowest run of `lines`; returns its first line or POOL_NONE. */
uint64_t pool_alloc(struct pool *pool, uint64_t lines);
void pool_free(struct pool *pool, uint64_t line, uint64_t lines);

/* Takes exactly these lines, if all are free in READY chunks. Returns true when it did. */
bool pool_take(struct pool *pool, uint64_t line, uint64_t lines);

/* Free lines in READY chunks next to a taken extent, before and behind it. */
void pool_around(struct pool *pool, uint64_t line, uint64_t lines, uint64_t *ret_before, uint64_t *ret_after);

/* Longest free run there is, in lines. */
uint64_t pool_longest(struct pool *pool);

/*
 * Growing, in two steps around the caller's populating of the chunk's memory:
 * begin picks the ABSENT chunk that best serves a run of want_chunks (UINT32_MAX:
 * none left) and populates the private tables for it; end makes it READY, or
 * ABSENT again when populating failed.
 */
uint32_t pool_grow_begin(struct pool *pool, uint32_t want_chunks);
void pool_grow_end(struct pool *pool, uint32_t chunk, bool populated);

/* Punching: begin takes one empty READY chunk out (UINT32_MAX: none), highest first; end makes it ABSENT, or READY again. */
uint32_t pool_punch_begin(struct pool *pool);
void pool_punch_end(struct pool *pool, uint32_t chunk, bool punched);

/*
 * Closes up to max READY chunks that are not empty, emptiest first, each with
 * at most most_lines taken, together no more than budget_lines: nothing is
 * placed there until pool_reopen. Their numbers, ascending, go to ret.
 */
unsigned pool_close(struct pool *pool, uint32_t *ret, unsigned max, uint32_t most_lines, uint64_t budget_lines);

/*
 * The same for the chunks in use of `width` neighbours, the window where they
 * are least used, on average at most most_lines: what is moved out of
 * neighbours leaves one long run, in which large payloads lie end to end.
 */
unsigned pool_close_window(struct pool *pool, uint32_t *ret, unsigned width, uint32_t most_lines);
void pool_reopen(struct pool *pool, const uint32_t *chunks, unsigned count);

struct pool_usage {
	uint64_t used_bytes;
	uint64_t ready_bytes;
	uint64_t empty_bytes;
};
void pool_usage(struct pool *pool, struct pool_usage *ret);

static inline uint64_t pool_empty_bytes(const struct pool *pool)
{
	return atomic_load_explicit(&pool->empty_chunks, memory_order_relaxed) * POOL_CHUNK_BYTES;
}

/* Private memory that the ready chunks' tables take. */
uint64_t pool_table_bytes(struct pool *pool);

/* ---- recovery: one thread, before anything else ---- */

/*
 * Marks an extent that a record names; its chunks become GROWING until
 * pool_recover_end. Returns 0, -ENOMEM, or -EEXIST when a line is already taken (nothing is changed then).
 */
int pool_recover_extent(struct pool *pool, uint64_t line, uint64_t lines);

/*
 * Calls visit for each chunk, with_data or not; visit populates or punches it and returns 0 or -errno, or 1 if a chunk
 * without data is present and stays so, empty. Then the tree is built.
 */
int pool_recover_end(struct pool *pool, int (*visit)(void *arg, uint32_t chunk, bool with_data), void *arg);

/* Recounts bits, counts and tree. Returns NULL or what is wrong. The pool must be quiet. */
const char *pool_check(struct pool *pool);

#endif
