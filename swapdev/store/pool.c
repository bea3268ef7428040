// SPDX-License-Identifier: GPL-2.0-or-later
/* Lines of the arena: bitmap per chunk, tree of free runs over the chunks. */
#include "pool.h"
#include "bits.h"
#include "pool_run.h"
#include "sparse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Chunks whose entries in `chunk` and `tree` are made present together: 1 GiB of arena. */
#define BLOCK_CHUNKS 512

int pool_init(struct pool *pool, uint64_t arena_bytes)
{
	uint64_t chunks = arena_bytes / POOL_CHUNK_BYTES;
	uint32_t leaves = 1;

	memset(pool, 0, sizeof(*pool));
	if (!chunks || chunks >= UINT32_MAX / 2)
		return -EINVAL;
	while (leaves < chunks)
		leaves *= 2;
	pool->chunks = (uint32_t)chunks;
	pool->leaves = leaves;
	pthread_mutex_init(&pool->lock, NULL);
	pool->chunk = sparse_map(chunks * sizeof(*pool->chunk));
	pool->bits = sparse_map(chunks * POOL_CHUNK_WORDS * sizeof(*pool->bits));
	pool->tree = sparse_map(2UL * leaves * sizeof(*pool->tree));
	pool->block_present = calloc(chunks / BLOCK_CHUNKS + 1, sizeof(*pool->block_present));
	if (!pool->chunk || !pool->bits || !pool->tree || !pool->block_present) {
		pool_deinit(pool);
		return -ENOMEM;
	}
	return 0;
}

void pool_deinit(struct pool *pool)
{
	if (!pool->chunks)
		return;
	sparse_unmap(pool->chunk, pool->chunks * sizeof(*pool->chunk));
	sparse_unmap(pool->bits, pool->chunks * POOL_CHUNK_WORDS * sizeof(*pool->bits));
	sparse_unmap(pool->tree, 2UL * pool->leaves * sizeof(*pool->tree));
	free(pool->block_present);
	pthread_mutex_destroy(&pool->lock);
	memset(pool, 0, sizeof(*pool));
}

_Static_assert(BITS_COUNT == POOL_CHUNK_LINES, "bits.h knows the chunk");

static uint64_t *chunk_bits(struct pool *pool, uint32_t chunk)
{
	return pool->bits + (uint64_t)chunk * POOL_CHUNK_WORDS;
}

/* ---- tree ---- */

static void tree_update(struct pool *pool, uint32_t chunk)
{
	uint32_t node = pool->leaves + chunk;
	uint64_t half_lines = POOL_CHUNK_LINES;

	if (pool->chunk[chunk].state == CHUNK_READY)
		pool->tree[node] = chunk_run(chunk_bits(pool, chunk), pool->chunk[chunk].used_lines);
	else
		pool->tree[node] = (struct pool_run){0, 0, 0};
	for (node /= 2; node; node /= 2) {
		pool->tree[node] = run_join(pool->tree[2 * node], pool->tree[2 * node + 1], half_lines);
		half_lines *= 2;
	}
}

/* The lowest run of `lines`; the root says that there is one. Returns its first line. */
static uint64_t tree_find(struct pool *pool, uint64_t lines)
{
	uint32_t node = 1;
	uint64_t start = 0, node_lines = (uint64_t)pool->leaves * POOL_CHUNK_LINES;

	while (node < pool->leaves) {
		const struct pool_run *left = &pool->tree[2 * node], *right = left + 1;

		node_lines /= 2;
		if (left->longest >= lines) {
			node = 2 * node;
		} else if ((uint64_t)left->suffix + right->prefix >= lines) {
			return start + node_lines - left->suffix;
		} else {
			node = 2 * node + 1;
			start += node_lines;
		}
	}
	return start + bits_find(chunk_bits(pool, node - pool->leaves), (uint32_t)lines);
}

/* Calls set bits or clear bits chunk by chunk and keeps counts and tree true. */
static void mark(struct pool *pool, uint64_t line, uint64_t lines, bool taken)
{
	pool->used_lines += taken ? lines : -lines;
	while (lines) {
		uint32_t chunk = (uint32_t)(line / POOL_CHUNK_LINES), from = (uint32_t)(line % POOL_CHUNK_LINES);
		uint32_t part = POOL_CHUNK_LINES - from < lines ? POOL_CHUNK_LINES - from : (uint32_t)lines;
		struct pool_chunk *at = &pool->chunk[chunk];

		if (at->state == CHUNK_READY && !at->used_lines)
			pool->empty_chunks--;
		at->used_lines += taken ? part : -part;
		if (at->state == CHUNK_READY && !at->used_lines)
			pool->empty_chunks++;
		bits_set(chunk_bits(pool, chunk), from, from + part, taken);
		tree_update(pool, chunk);
		line += part;
		lines -= part;
	}
}

uint64_t pool_alloc(struct pool *pool, uint64_t lines)
{
	uint64_t line = POOL_NONE;

	pthread_mutex_lock(&pool->lock);
	if (pool->tree[1].longest >= lines) {
		line = tree_find(pool, lines);
		mark(pool, line, lines, true);
	}
	pthread_mutex_unlock(&pool->lock);
	return line;
}

void pool_free(struct pool *pool, uint64_t line, uint64_t lines)
{
	pthread_mutex_lock(&pool->lock);
	mark(pool, line, lines, false);
	pthread_mutex_unlock(&pool->lock);
}

static bool range_is_free(struct pool *pool, uint64_t line, uint64_t lines)
{
	while (lines) {
		uint32_t chunk = (uint32_t)(line / POOL_CHUNK_LINES), from = (uint32_t)(line % POOL_CHUNK_LINES);
		uint32_t part = POOL_CHUNK_LINES - from < lines ? POOL_CHUNK_LINES - from : (uint32_t)lines;

		if (bits_any(chunk_bits(pool, chunk), from, from + part))
			return false;
		line += part;
		lines -= part;
	}
	return true;
}

static bool range_is_ready(const struct pool *pool, uint64_t line, uint64_t lines)
{
	for (uint64_t chunk = line / POOL_CHUNK_LINES; chunk <= (line + lines - 1) / POOL_CHUNK_LINES; chunk++) {
		if (pool->chunk[chunk].state != CHUNK_READY)
			return false;
	}
	return true;
}

bool pool_take(struct pool *pool, uint64_t line, uint64_t lines)
{
	bool taken;

	pthread_mutex_lock(&pool->lock);
	taken = range_is_ready(pool, line, lines) && range_is_free(pool, line, lines);
	if (taken)
		mark(pool, line, lines, true);
	pthread_mutex_unlock(&pool->lock);
	return taken;
}

void pool_around(struct pool *pool, uint64_t line, uint64_t lines, uint64_t *ret_before, uint64_t *ret_after)
{
	uint32_t first = (uint32_t)(line / POOL_CHUNK_LINES), from = (uint32_t)(line % POOL_CHUNK_LINES);
	uint64_t end = line + lines;
	uint32_t last = (uint32_t)(end / POOL_CHUNK_LINES), to = (uint32_t)(end % POOL_CHUNK_LINES);
	uint64_t before = 0, after = 0;

	pthread_mutex_lock(&pool->lock);
	if (from && pool->chunk[first].state == CHUNK_READY)
		before = bits_free_before(chunk_bits(pool, first), from);
	for (uint32_t chunk = first; before == from + (uint64_t)(first - chunk) * POOL_CHUNK_LINES && chunk-- > 0;)
		before += pool->tree[pool->leaves + chunk].suffix;
	if (to && pool->chunk[last].state == CHUNK_READY)
		after = bits_span(chunk_bits(pool, last), to, false);
	if (!to || after == POOL_CHUNK_LINES - to) {
		uint32_t chunk = to ? last + 1 : last;

		while (chunk < pool->chunks && pool->tree[pool->leaves + chunk].prefix == POOL_CHUNK_LINES) {
			after += POOL_CHUNK_LINES;
			chunk++;
		}
		if (chunk < pool->chunks)
			after += pool->tree[pool->leaves + chunk].prefix;
	}
	pthread_mutex_unlock(&pool->lock);
	*ret_before = before;
	*ret_after = after;
}

uint64_t pool_longest(struct pool *pool)
{
	uint64_t longest;

	pthread_mutex_lock(&pool->lock);
	longest = pool->tree[1].longest;
	pthread_mutex_unlock(&pool->lock);
	return longest;
}

/* ---- growing and punching ---- */

/*
 * The private tables of a chunk made present: its own page of bits, and what
 * its block of chunks has in the other two, once for the block.
 */
static int chunk_tables_populate(struct pool *pool, uint32_t chunk)
{
	uint32_t block = chunk / BLOCK_CHUNKS, first = block * BLOCK_CHUNKS;
	uint32_t width = pool->chunks - first < BLOCK_CHUNKS ? pool->chunks - first : BLOCK_CHUNKS;
	int result = sparse_populate(chunk_bits(pool, chunk), POOL_CHUNK_WORDS * sizeof(uint64_t));

	if (result < 0 || pool->block_present[block])
		return result;
	result = sparse_populate(&pool->chunk[first], width * sizeof(pool->chunk[0]));
	for (uint32_t node = pool->leaves + first; node && result == 0; node /= 2, width = width / 2 + 2) {
		/* From an even node on, so that both children of every parent are there. */
		result = sparse_populate(&pool->tree[node & ~1U], (width + 2) * sizeof(pool->tree[0]));
	}
	pool->block_present[block] = result == 0;
	return result;
}

static bool chunk_is_or_becomes_empty(const struct pool_chunk *chunk)
{
	return chunk->state != CHUNK_CLOSED && !chunk->used_lines;
}

/*
 * The first ABSENT chunk of the lowest window of want_chunks that are absent
 * or empty, so that growing it brings a run of that length nearer; else the
 * first one at all.
 */
static uint32_t absent_find(struct pool *pool, uint32_t want_chunks)
{
	uint32_t first = UINT32_MAX, candidate = UINT32_MAX, run = 0;
	uint32_t chunk = pool->absent_hint > want_chunks ? pool->absent_hint - want_chunks : 0;

	for (; chunk < pool->chunks; chunk++) {
		const struct pool_chunk *at = &pool->chunk[chunk];

		if (at->state == CHUNK_ABSENT && first == UINT32_MAX)
			first = pool->absent_hint = chunk;
		if (!chunk_is_or_becomes_empty(at)) {
			run = 0;
			candidate = UINT32_MAX;
			continue;
		}
		if (at->state == CHUNK_ABSENT && candidate == UINT32_MAX)
			candidate = chunk;
		if (++run >= want_chunks && candidate != UINT32_MAX)
			return candidate;
	}
	return first;
}

uint32_t pool_grow_begin(struct pool *pool, uint32_t want_chunks)
{
	uint32_t chunk;

	pthread_mutex_lock(&pool->lock);
	chunk = absent_find(pool, want_chunks);
	if (chunk != UINT32_MAX) {
		pool->chunk[chunk].state = CHUNK_GROWING;
		pool->ready_chunks++;
		if (chunk >= pool->ready_end)
			pool->ready_end = chunk + 1;
	}
	pthread_mutex_unlock(&pool->lock);
	if (chunk != UINT32_MAX && chunk_tables_populate(pool, chunk) < 0) {
		pool_grow_end(pool, chunk, false);
		return UINT32_MAX;
	}
	return chunk;
}

void pool_grow_end(struct pool *pool, uint32_t chunk, bool populated)
{
	pthread_mutex_lock(&pool->lock);
	if (populated) {
		pool->chunk[chunk].state = CHUNK_READY;
		pool->empty_chunks++;
		tree_update(pool, chunk);
	} else {
		pool->chunk[chunk].state = CHUNK_ABSENT;
		pool->ready_chunks--;
		if (chunk < pool->absent_hint)
			pool->absent_hint = chunk;
		while (pool->ready_end && pool->chunk[pool->ready_end - 1].state == CHUNK_ABSENT)
			pool->ready_end--;
	}
	pthread_mutex_unlock(&pool->lock);
}

uint32_t pool_punch_begin(struct pool *pool)
{
	uint32_t found = UINT32_MAX;

	pthread_mutex_lock(&pool->lock);
	for (uint32_t chunk = pool->ready_end; pool->empty_chunks && chunk-- > 0;) {
		if (pool->chunk[chunk].state == CHUNK_READY && !pool->chunk[chunk].used_lines) {
			pool->chunk[chunk].state = CHUNK_PUNCHING;
			pool->empty_chunks--;
			tree_update(pool, chunk);
			found = chunk;
			break;
		}
	}
	pthread_mutex_unlock(&pool->lock);
	return found;
}

void pool_punch_end(struct pool *pool, uint32_t chunk, bool punched)
{
	pool_grow_end(pool, chunk, !punched);
}

/* ---- emptying chunks ---- */

/* Puts chunk into victims[0 .. count), which is sorted by used lines, if it belongs there. Returns the new count. */
static unsigned victims_insert(struct pool *pool, uint32_t *victims, unsigned count, unsigned max, uint32_t chunk)
{
	uint32_t used = pool->chunk[chunk].used_lines;
	unsigned at;

	if (count == max && used >= pool->chunk[victims[count - 1]].used_lines)
		return count;
	at = count < max ? count++ : count - 1;
	for (; at > 0 && pool->chunk[victims[at - 1]].used_lines > used; at--)
		victims[at] = victims[at - 1];
	victims[at] = chunk;
	return count;
}

static void sort_ascending(uint32_t *numbers, unsigned count)
{
	for (unsigned i = 1; i < count; i++) {
		uint32_t number = numbers[i];
		unsigned at = i;

		for (; at > 0 && numbers[at - 1] > number; at--)
			numbers[at] = numbers[at - 1];
		numbers[at] = number;
	}
}

unsigned pool_close(struct pool *pool, uint32_t *ret, unsigned max, uint32_t most_lines, uint64_t budget_lines)
{
	unsigned count = 0, taken = 0;

	pthread_mutex_lock(&pool->lock);
	for (uint32_t chunk = 0; chunk < pool->ready_end; chunk++) {
		const struct pool_chunk *at = &pool->chunk[chunk];

		if (at->state == CHUNK_READY && at->used_lines && at->used_lines <= most_lines)
			count = victims_insert(pool, ret, count, max, chunk);
	}
	for (; taken < count && pool->chunk[ret[taken]].used_lines <= budget_lines; taken++) {
		budget_lines -= pool->chunk[ret[taken]].used_lines;
		pool->chunk[ret[taken]].state = CHUNK_CLOSED;
		tree_update(pool, ret[taken]);
	}
	pthread_mutex_unlock(&pool->lock);
	sort_ascending(ret, taken);
	return taken;
}

/* The `width` READY chunks in a row whose chunks in use are least used; UINT32_MAX: none below most_lines each. */
static uint32_t window_find(struct pool *pool, uint32_t width, uint32_t most_lines)
{
	uint32_t best = UINT32_MAX, best_busy = 1, run = 0, busy = 0;
	uint64_t used = 0, best_used = UINT64_MAX / POOL_CHUNK_LINES;

	for (uint32_t chunk = 0; chunk < pool->ready_end; chunk++) {
		const struct pool_chunk *at = &pool->chunk[chunk];

		if (at->state != CHUNK_READY) {
			run = busy = 0;
			used = 0;
			continue;
		}
		if (run == width) {
			used -= pool->chunk[chunk - width].used_lines;
			busy -= pool->chunk[chunk - width].used_lines > 0;
			run--;
		}
		run++;
		used += at->used_lines;
		busy += at->used_lines > 0;
		if (run == width && busy > 1 && used <= (uint64_t)most_lines * busy &&
			used * best_busy < best_used * busy) {
			best = chunk - width + 1;
			best_used = used;
			best_busy = busy;
		}
	}
	return best;
}

unsigned pool_close_window(struct pool *pool, uint32_t *ret, unsigned width, uint32_t most_lines)
{
	uint32_t first;
	unsigned count = 0;

	pthread_mutex_lock(&pool->lock);
	first = window_find(pool, width, most_lines);
	for (uint32_t chunk = first; first != UINT32_MAX && chunk < first + width; chunk++) {
		if (!pool->chunk[chunk].used_lines)
			continue;
		pool->chunk[chunk].state = CHUNK_CLOSED;
		tree_update(pool, chunk);
		ret[count++] = chunk;
	}
	pthread_mutex_unlock(&pool->lock);
	return count;
}

void pool_reopen(struct pool *pool, const uint32_t *chunks, unsigned count)
{
	pthread_mutex_lock(&pool->lock);
	for (unsigned i = 0; i < count; i++) {
		pool->chunk[chunks[i]].state = CHUNK_READY;
		if (!pool->chunk[chunks[i]].used_lines)
			pool->empty_chunks++;
		tree_update(pool, chunks[i]);
	}
	pthread_mutex_unlock(&pool->lock);
}

void pool_usage(struct pool *pool, struct pool_usage *ret)
{
	pthread_mutex_lock(&pool->lock);
	ret->used_bytes = pool->used_lines << POOL_LINE_SHIFT;
	ret->ready_bytes = pool->ready_chunks * POOL_CHUNK_BYTES;
	ret->empty_bytes = pool->empty_chunks * POOL_CHUNK_BYTES;
	pthread_mutex_unlock(&pool->lock);
}

uint64_t pool_table_bytes(struct pool *pool)
{
	uint64_t per_chunk = POOL_CHUNK_WORDS * sizeof(uint64_t) + sizeof(struct pool_chunk) + 2 * sizeof(struct pool_run);
	uint64_t bytes;

	pthread_mutex_lock(&pool->lock);
	bytes = pool->ready_chunks * per_chunk;
	pthread_mutex_unlock(&pool->lock);
	return bytes;
}

/* ---- recovery ---- */

int pool_recover_extent(struct pool *pool, uint64_t line, uint64_t lines)
{
	uint32_t first = (uint32_t)(line / POOL_CHUNK_LINES), last = (uint32_t)((line + lines - 1) / POOL_CHUNK_LINES);

	/* Present first: reading would map the zero page, to be replaced a moment later. */
	for (uint32_t chunk = first; chunk <= last; chunk++) {
		int result = pool->chunk[chunk].state == CHUNK_ABSENT ? chunk_tables_populate(pool, chunk) : 0;

		if (result < 0)
			return result;
	}
	if (!range_is_free(pool, line, lines))
		return -EEXIST;
	for (uint32_t chunk = first; chunk <= last; chunk++) {
		uint64_t begin = chunk == first ? line % POOL_CHUNK_LINES : 0;
		uint64_t end = chunk == last ? (line + lines - 1) % POOL_CHUNK_LINES + 1 : POOL_CHUNK_LINES;

		if (pool->chunk[chunk].state == CHUNK_ABSENT) {
			pool->chunk[chunk].state = CHUNK_GROWING;
			pool->ready_chunks++;
			if (chunk >= pool->ready_end)
				pool->ready_end = chunk + 1;
		}
		bits_set(chunk_bits(pool, chunk), (uint32_t)begin, (uint32_t)end, true);
		pool->chunk[chunk].used_lines += (uint32_t)(end - begin);
	}
	pool->used_lines += lines;
	return 0;
}

static int recover_empty(struct pool *pool, uint32_t chunk)
{
	int result = chunk_tables_populate(pool, chunk);

	if (result < 0)
		return result;
	pool->ready_chunks++;
	if (chunk >= pool->ready_end)
		pool->ready_end = chunk + 1;
	pool_grow_end(pool, chunk, true);
	return 0;
}

int pool_recover_end(struct pool *pool, int (*visit)(void *arg, uint32_t chunk, bool with_data), void *arg)
{
	for (uint32_t chunk = 0; chunk < pool->chunks; chunk++) {
		bool with_data = pool->chunk[chunk].used_lines > 0;
		int result;

		/* All that was in it has been freed again. */
		if (!with_data && pool->chunk[chunk].state == CHUNK_GROWING) {
			pool->chunk[chunk].state = CHUNK_ABSENT;
			pool->ready_chunks--;
		}
		result = visit(arg, chunk, with_data);
		if (result > 0)
			result = recover_empty(pool, chunk);
		if (result < 0)
			return result;
		if (with_data) {
			pool->chunk[chunk].state = CHUNK_READY;
			tree_update(pool, chunk);
		}
	}
	return 0;
}

/* ---- check ---- */

static const char *chunk_check(struct pool *pool, uint32_t chunk)
{
	const struct pool_chunk *at = &pool->chunk[chunk];
	struct pool_run expected = {0, 0, 0}, found = pool->tree[pool->leaves + chunk];
	uint32_t used = 0;

	for (unsigned word = 0; word < POOL_CHUNK_WORDS; word++)
		used += (uint32_t)__builtin_popcountll(chunk_bits(pool, chunk)[word]);
	if (used != at->used_lines)
		return "a chunk's count of taken lines is not that of its bits";
	if (at->state == CHUNK_ABSENT && used)
		return "an absent chunk has lines taken";
	if (at->state == CHUNK_READY)
		expected = chunk_run(chunk_bits(pool, chunk), used);
	if (memcmp(&expected, &found, sizeof(found)) != 0)
		return "a chunk's free runs are not those of its bits";
	return NULL;
}

const char *pool_check(struct pool *pool)
{
	uint64_t used = 0;
	uint32_t ready = 0, empty = 0;
	const char *problem = NULL;

	pthread_mutex_lock(&pool->lock);
	for (uint32_t chunk = 0; chunk < pool->ready_end && !problem; chunk++) {
		const struct pool_chunk *at = &pool->chunk[chunk];

		if (at->state == CHUNK_ABSENT && !at->used_lines)
			continue;
		problem = chunk_check(pool, chunk);
		used += at->used_lines;
		ready++;
		empty += at->state == CHUNK_READY && !at->used_lines;
	}
	if (!problem && used != pool->used_lines)
		problem = "the sum of taken lines differs";
	if (!problem && (ready != pool->ready_chunks || empty != pool->empty_chunks))
		problem = "the number of ready or empty chunks differs";
	pthread_mutex_unlock(&pool->lock);
	return problem;
}
