// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The pool against a naive model: one byte per line, one state per chunk,
 * everything found by scanning. After each step both must agree.
 */
#include "store_fixture.h"

#define EXTENTS_MAX 4096

struct extent {
	uint64_t line;
	uint64_t lines;
};

struct model {
	struct pool pool;
	uint32_t chunks;
	uint8_t *taken; /* per line */
	uint8_t *state; /* per chunk: enum pool_chunk_state */
	struct extent extent[EXTENTS_MAX];
	unsigned extents;
	uint32_t closed[64];
	unsigned closed_count;
	uint64_t random;
	uint64_t found; /* allocations that found a place */
	uint64_t spanning;
	uint64_t exact;
};

static void model_init(struct model *model, uint32_t chunks, uint64_t seed)
{
	memset(model, 0, sizeof(*model));
	model->chunks = chunks;
	model->taken = calloc(chunks, POOL_CHUNK_LINES);
	model->state = calloc(chunks, 1);
	model->random = random_seed(seed);
	assert_non_null(model->taken);
	assert_non_null(model->state);
	assert_int_equal(pool_init(&model->pool, chunks * POOL_CHUNK_BYTES), 0);
}

static void model_deinit(struct model *model)
{
	pool_deinit(&model->pool);
	free(model->taken);
	free(model->state);
}

/* ---- the naive answers ---- */

static uint32_t model_used(const struct model *model, uint32_t chunk)
{
	const uint64_t *at = (const uint64_t *)(model->taken + (uint64_t)chunk * POOL_CHUNK_LINES);
	uint32_t used = 0;

	/* Eight lines at a time: a word of zeros and ones times this has their sum in its top byte. */
	for (uint32_t word = 0; word < POOL_CHUNK_LINES / 8; word++)
		used += (uint32_t)(at[word] * UINT64_C(0x0101010101010101) >> 56);
	return used;
}

static bool model_is_empty(const struct model *model, uint32_t chunk)
{
	return !memchr(model->taken + (uint64_t)chunk * POOL_CHUNK_LINES, 1, POOL_CHUNK_LINES);
}

/* The lowest run of free lines in ready chunks, and the longest there is. */
static uint64_t model_find(const struct model *model, uint64_t lines, uint64_t *ret_longest)
{
	uint64_t run = 0, found = POOL_NONE, at = 0, end = (uint64_t)model->chunks * POOL_CHUNK_LINES;

	*ret_longest = 0;
	while (at < end) {
		const uint8_t *next;
		uint64_t chunk_end = (at / POOL_CHUNK_LINES + 1) * POOL_CHUNK_LINES, stop;

		if (model->state[at / POOL_CHUNK_LINES] != CHUNK_READY || model->taken[at]) {
			run = 0;
			at = model->state[at / POOL_CHUNK_LINES] != CHUNK_READY ? chunk_end : at + 1;
			continue;
		}
		next = memchr(model->taken + at, 1, chunk_end - at);
		stop = next ? (uint64_t)(next - model->taken) : chunk_end;
		run += stop - at;
		at = stop;
		if (run > *ret_longest)
			*ret_longest = run;
		if (run >= lines && found == POOL_NONE)
			found = stop - run;
	}
	return found;
}

/* The first absent chunk of the lowest window of `want` that are absent or empty, else the first absent one. */
static uint32_t model_grow_choice(const struct model *model, uint32_t want)
{
	uint32_t first = UINT32_MAX;

	for (uint32_t start = 0; start + want <= model->chunks; start++) {
		uint32_t absent = UINT32_MAX, i = start;

		for (; i < start + want; i++) {
			if (model->state[i] == CHUNK_CLOSED || !model_is_empty(model, i))
				break;
			if (model->state[i] == CHUNK_ABSENT && absent == UINT32_MAX)
				absent = i;
		}
		if (i == start + want && absent != UINT32_MAX)
			return absent;
	}
	for (uint32_t i = model->chunks; i-- > 0;)
		first = model->state[i] == CHUNK_ABSENT ? i : first;
	return first;
}

static void compare(struct model *model)
{
	struct pool_usage usage;
	const char *problem = pool_check(&model->pool);
	uint64_t used = 0, longest, ready = 0, empty = 0;

	if (problem)
		fail_msg("pool_check: %s", problem);
	for (uint32_t chunk = 0; chunk < model->chunks; chunk++) {
		uint32_t chunk_used = model_used(model, chunk);

		assert_int_equal(model->pool.chunk[chunk].state, model->state[chunk]);
		assert_int_equal(model->pool.chunk[chunk].used_lines, chunk_used);
		used += chunk_used;
		ready += model->state[chunk] != CHUNK_ABSENT;
		empty += model->state[chunk] == CHUNK_READY && !chunk_used;
	}
	pool_usage(&model->pool, &usage);
	assert_int_equal(usage.used_bytes, used * POOL_LINE_BYTES);
	assert_int_equal(usage.ready_bytes, ready * POOL_CHUNK_BYTES);
	assert_int_equal(usage.empty_bytes, empty * POOL_CHUNK_BYTES);
	assert_int_equal(pool_empty_bytes(&model->pool), usage.empty_bytes);
	model_find(model, 1, &longest);
	assert_int_equal(pool_longest(&model->pool), longest);
}

/* ---- steps ---- */

static uint64_t pick_lines(struct model *model)
{
	switch (random_below(&model->random, 6)) {
	case 0:
		return 1;
	case 1:
		return 1 + random_below(&model->random, 70);
	case 2:
		return 1 + random_below(&model->random, POOL_CHUNK_LINES);
	case 3:
		return POOL_CHUNK_LINES - 1 + random_below(&model->random, 3);
	case 4:
		return 1 + random_below(&model->random, 2 * POOL_CHUNK_LINES + 1000);
	default:
		return 64 + random_below(&model->random, 4) * 64;
	}
}

static void step_alloc(struct model *model)
{
	uint64_t lines = pick_lines(model), longest;
	uint64_t expected = model_find(model, lines, &longest);

	if (model->extents == EXTENTS_MAX)
		return;
	assert_int_equal(pool_alloc(&model->pool, lines), expected);
	if (expected == POOL_NONE)
		return;
	memset(model->taken + expected, 1, lines);
	model->extent[model->extents++] = (struct extent){expected, lines};
	model->found++;
	model->spanning += expected / POOL_CHUNK_LINES != (expected + lines - 1) / POOL_CHUNK_LINES;
}

static void step_free(struct model *model)
{
	unsigned index;
	struct extent extent;

	if (!model->extents)
		return;
	index = (unsigned)random_below(&model->random, model->extents);
	extent = model->extent[index];
	model->extent[index] = model->extent[--model->extents];
	memset(model->taken + extent.line, 0, extent.lines);
	pool_free(&model->pool, extent.line, extent.lines);
}

/* What was asked for exactly is had when every line of it is free and ready, and not otherwise. */
static void step_take(struct model *model)
{
	uint64_t lines = pick_lines(model), end = (uint64_t)model->chunks * POOL_CHUNK_LINES;
	uint64_t line = random_below(&model->random, end);
	bool expected = true;

	/* Often just behind an extent, where holes begin. */
	if (model->extents && random_below(&model->random, 2)) {
		const struct extent *extent = &model->extent[random_below(&model->random, model->extents)];

		line = extent->line + extent->lines < end ? extent->line + extent->lines : 0;
	}
	lines = lines < end - line ? lines : end - line;
	for (uint64_t at = line; at < line + lines && expected; at++)
		expected = !model->taken[at] && model->state[at / POOL_CHUNK_LINES] == CHUNK_READY;
	if (model->extents == EXTENTS_MAX)
		return;
	assert_int_equal(pool_take(&model->pool, line, lines), expected);
	if (!expected)
		return;
	memset(model->taken + line, 1, lines);
	model->extent[model->extents++] = (struct extent){line, lines};
	model->exact++;
}

static bool is_ready_and_free(const struct model *model, uint64_t line)
{
	return !model->taken[line] && model->state[line / POOL_CHUNK_LINES] == CHUNK_READY;
}

static void check_around(struct model *model)
{
	uint64_t before, after, expected_before = 0, expected_after = 0;
	struct extent extent;

	if (!model->extents)
		return;
	extent = model->extent[random_below(&model->random, model->extents)];
	while (expected_before < extent.line && is_ready_and_free(model, extent.line - expected_before - 1))
		expected_before++;
	while (extent.line + extent.lines + expected_after < (uint64_t)model->chunks * POOL_CHUNK_LINES &&
		is_ready_and_free(model, extent.line + extent.lines + expected_after))
		expected_after++;
	pool_around(&model->pool, extent.line, extent.lines, &before, &after);
	assert_int_equal(before, expected_before);
	assert_int_equal(after, expected_after);
}

static void some_allocs_and_frees(struct model *model)
{
	for (unsigned i = 0; i < 3; i++) {
		if (random_below(&model->random, 2))
			step_alloc(model);
		else
			step_free(model);
	}
}

/* Between begin and end other threads allocate and free. */
static void step_grow(struct model *model)
{
	uint32_t want = 1 + (uint32_t)random_below(&model->random, 4);
	uint32_t expected = model_grow_choice(model, want);
	bool populated = random_below(&model->random, 8) != 0;

	assert_int_equal(pool_grow_begin(&model->pool, want), expected);
	if (expected == UINT32_MAX)
		return;
	model->state[expected] = CHUNK_GROWING;
	compare(model);
	some_allocs_and_frees(model);
	pool_grow_end(&model->pool, expected, populated);
	model->state[expected] = populated ? CHUNK_READY : CHUNK_ABSENT;
}

static void step_punch(struct model *model)
{
	uint32_t expected = UINT32_MAX;
	bool punched = random_below(&model->random, 8) != 0;

	for (uint32_t chunk = 0; chunk < model->chunks; chunk++) {
		if (model->state[chunk] == CHUNK_READY && model_is_empty(model, chunk))
			expected = chunk;
	}
	assert_int_equal(pool_punch_begin(&model->pool), expected);
	if (expected == UINT32_MAX)
		return;
	model->state[expected] = CHUNK_PUNCHING;
	compare(model);
	some_allocs_and_frees(model);
	pool_punch_end(&model->pool, expected, punched);
	model->state[expected] = punched ? CHUNK_ABSENT : CHUNK_READY;
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

/* The emptiest that fit max, most_lines and budget, by sorting: how many, and the lines taken in them. */
static unsigned model_close_expects(
	const struct model *model, unsigned max, uint32_t most_lines, uint64_t budget_lines, uint64_t *ret_lines)
{
	uint32_t used[64];
	unsigned candidates = 0, count = 0;

	*ret_lines = 0;
	for (uint32_t chunk = 0; chunk < model->chunks; chunk++) {
		uint32_t lines = model_used(model, chunk);

		if (model->state[chunk] == CHUNK_READY && lines && lines <= most_lines)
			used[candidates++] = lines;
	}
	qsort(used, candidates, sizeof(used[0]), compare_numbers);
	while (count < candidates && count < max && *ret_lines + used[count] <= budget_lines)
		*ret_lines += used[count++];
	return count;
}

/* What was closed is ascending, was ready, and holds that many lines. */
static void note_closed(struct model *model, uint64_t expected_lines)
{
	uint64_t lines = 0;

	for (unsigned i = 0; i < model->closed_count; i++) {
		assert_int_equal(model->state[model->closed[i]], CHUNK_READY);
		assert_true(i == 0 || model->closed[i - 1] < model->closed[i]);
		lines += model_used(model, model->closed[i]);
		model->state[model->closed[i]] = CHUNK_CLOSED;
	}
	assert_int_equal(lines, expected_lines);
}

static void step_close(struct model *model)
{
	unsigned max = 1 + (unsigned)random_below(&model->random, 4);
	uint32_t most_lines = 1 + (uint32_t)random_below(&model->random, POOL_CHUNK_LINES);
	uint64_t budget_lines = random_below(&model->random, 3 * POOL_CHUNK_LINES), expected_lines;
	unsigned expected = model_close_expects(model, max, most_lines, budget_lines, &expected_lines);

	if (model->closed_count)
		return;
	model->closed_count = pool_close(&model->pool, model->closed, max, most_lines, budget_lines);
	assert_int_equal(model->closed_count, expected);
	for (unsigned i = 0; i < model->closed_count; i++) {
		uint32_t used = model_used(model, model->closed[i]);

		assert_true(used > 0 && used <= most_lines);
	}
	note_closed(model, expected_lines);
}

/* Chunks in use of the window of ready ones that is least used per chunk in use; the lowest of equals; 0: none. */
static unsigned model_window_expects(
	const struct model *model, uint32_t width, uint32_t most_lines, uint64_t *ret_lines, uint32_t *ret_first)
{
	unsigned best_busy = 0;

	*ret_lines = 0;
	for (uint32_t start = 0; start + width <= model->chunks; start++) {
		uint64_t lines = 0;
		unsigned busy = 0, ready = 0;

		for (uint32_t chunk = start; chunk < start + width; chunk++) {
			uint32_t used = model_used(model, chunk);

			ready += model->state[chunk] == CHUNK_READY;
			busy += used > 0;
			lines += used;
		}
		if (ready < width || busy < 2 || lines > (uint64_t)most_lines * busy)
			continue;
		if (best_busy && lines * best_busy >= *ret_lines * busy)
			continue;
		best_busy = busy;
		*ret_lines = lines;
		*ret_first = start;
	}
	return best_busy;
}

static void step_close_window(struct model *model)
{
	uint32_t width = 2 + (uint32_t)random_below(&model->random, 3), first = 0;
	uint32_t most_lines = 1 + (uint32_t)random_below(&model->random, POOL_CHUNK_LINES);
	uint64_t expected_lines;
	unsigned expected = model_window_expects(model, width, most_lines, &expected_lines, &first);

	if (model->closed_count)
		return;
	model->closed_count = pool_close_window(&model->pool, model->closed, width, most_lines);
	assert_int_equal(model->closed_count, expected);
	for (unsigned i = 0; i < model->closed_count; i++)
		assert_true(model->closed[i] >= first && model->closed[i] < first + width);
	note_closed(model, expected_lines);
}

static void step_reopen(struct model *model)
{
	pool_reopen(&model->pool, model->closed, model->closed_count);
	for (unsigned i = 0; i < model->closed_count; i++)
		model->state[model->closed[i]] = CHUNK_READY;
	model->closed_count = 0;
}

static void one_step(struct model *model)
{
	uint64_t kind = random_below(&model->random, 100);

	check_around(model);
	if (kind < 34)
		step_alloc(model);
	else if (kind < 40)
		step_take(model);
	else if (kind < 76)
		step_free(model);
	else if (kind < 84)
		step_grow(model);
	else if (kind < 88)
		step_punch(model);
	else if (kind < 91)
		step_close(model);
	else if (kind < 94)
		step_close_window(model);
	else
		step_reopen(model);
}

/* ---- recovery ---- */

struct visits {
	const struct model *model;
	uint32_t next;
};

static int visit(void *argument, uint32_t chunk, bool with_data)
{
	struct visits *visits = argument;

	assert_int_equal(chunk, visits->next++);
	/* A chunk whose extents were all freed again may be kept or given back. */
	if (!model_is_empty(visits->model, chunk))
		assert_true(with_data);
	return 0;
}

static void shuffle_extents(struct model *model)
{
	for (unsigned i = model->extents; i > 1; i--) {
		unsigned other = (unsigned)random_below(&model->random, i);
		struct extent extent = model->extent[other];

		model->extent[other] = model->extent[i - 1];
		model->extent[i - 1] = extent;
	}
}

/* An extent that shares at least one line with a marked one is refused, and leaves no trace. */
static void refuse_overlap(struct model *model, unsigned marked)
{
	struct extent extent = model->extent[random_below(&model->random, marked)];
	uint64_t inside = extent.line + random_below(&model->random, extent.lines);
	uint64_t lines = pick_lines(model), line = inside - random_below(&model->random, lines);
	uint64_t used = model->pool.used_lines;

	if (inside + 1 < lines)
		line = inside;
	if (line + lines > (uint64_t)model->chunks * POOL_CHUNK_LINES)
		lines = 1 + inside - line;
	assert_int_equal(pool_recover_extent(&model->pool, line, lines), -EEXIST);
	assert_int_equal(model->pool.used_lines, used);
}

/* A new pool is told the extents in another order; then it is in the same state, but for chunks without data. */
static void recover_pool(struct model *model, bool free_some)
{
	struct visits visits = {.model = model};
	unsigned freed = 0;

	step_reopen(model);
	pool_deinit(&model->pool);
	assert_int_equal(pool_init(&model->pool, model->chunks * POOL_CHUNK_BYTES), 0);
	shuffle_extents(model);
	for (unsigned i = 0; i < model->extents; i++) {
		assert_int_equal(pool_recover_extent(&model->pool, model->extent[i].line, model->extent[i].lines), 0);
		if (random_below(&model->random, 4) == 0)
			refuse_overlap(model, i + 1);
	}
	/* Objects that turned out to have no words are freed before the end. */
	for (; free_some && model->extents; freed++)
		step_free(model);
	assert_int_equal(pool_recover_end(&model->pool, visit, &visits), 0);
	assert_int_equal(visits.next, model->chunks);
	for (uint32_t chunk = 0; chunk < model->chunks; chunk++) {
		if (!model_is_empty(model, chunk))
			model->state[chunk] = CHUNK_READY;
		else
			model->state[chunk] = freed ? model->pool.chunk[chunk].state : CHUNK_ABSENT;
		assert_true(model->state[chunk] == CHUNK_READY || model->state[chunk] == CHUNK_ABSENT);
	}
	compare(model);
}

static void run(uint32_t chunks, unsigned steps, uint64_t seed)
{
	struct model *model = calloc(1, sizeof(*model));

	assert_non_null(model);
	model_init(model, chunks, seed);
	steps *= (unsigned)fixture_number("FOLIOSWAP_OPS", 1);
	for (unsigned step = 1; step <= steps; step++) {
		one_step(model);
		compare(model);
		if (step % 500 == 0)
			recover_pool(model, step % 1000 == 0);
	}
	assert_true(model->found > steps / 20);
	assert_true(model->exact > steps / 200);
	assert_true(chunks < 5 || model->spanning > 10);
	model_deinit(model);
	free(model);
}

static void one_chunk(void **state)
{
	(void)state;
	run(1, 2000, 1);
}

static void three_chunks(void **state)
{
	(void)state;
	run(3, 2000, 2);
}

static void eight_chunks(void **state)
{
	(void)state;
	run(8, 3000, 3);
}

static void thirteen_chunks(void **state)
{
	(void)state;
	run(13, 2000, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_chunk),
		cmocka_unit_test(three_chunks),
		cmocka_unit_test(eight_chunks),
		cmocka_unit_test(thirteen_chunks),
	};

	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
