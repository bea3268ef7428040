// SPDX-License-Identifier: GPL-2.0-or-later
/* The pool at the ends of its range: arenas of terabytes, and of nothing. */
#include "store_fixture.h"

static int visit_nothing(void *argument, uint32_t chunk, bool with_data)
{
	(void)argument;
	(void)chunk;
	(void)with_data;
	return 0;
}

/* One chunk of very many is ready; free_lines of it are free, at its start or at its end. */
static void one_ready_chunk(uint32_t chunks, uint32_t chunk, uint32_t free_lines, bool at_start)
{
	uint64_t start = (uint64_t)chunk * POOL_CHUNK_LINES;
	uint64_t taken = at_start ? start + free_lines : start;
	uint64_t expected = at_start ? start : start + POOL_CHUNK_LINES - free_lines;
	struct pool pool;

	assert_int_equal(pool_init(&pool, chunks * POOL_CHUNK_BYTES), 0);
	assert_int_equal(pool_recover_extent(&pool, taken, POOL_CHUNK_LINES - free_lines), 0);
	assert_int_equal(pool_recover_end(&pool, visit_nothing, NULL), 0);
	assert_int_equal(pool_longest(&pool), free_lines);
	assert_int_equal(pool_alloc(&pool, free_lines - 10), expected);
	assert_int_equal(pool_alloc(&pool, 11), POOL_NONE);
	assert_int_equal(pool_alloc(&pool, 10), expected + free_lines - 10);
	assert_null(pool_check(&pool));
	pool_deinit(&pool);
}

/*
 * An arena of 2 TiB, nearly all of it absent: runs in different halves of the
 * tree must never be taken for neighbours, whatever the width of the numbers.
 */
static void very_large_arena(void **state)
{
	const uint32_t chunks = 1 << 20;

	(void)state;
	for (uint32_t eighth = 0; eighth < 8; eighth++) {
		uint32_t chunk = chunks / 8 * eighth;

		one_ready_chunk(chunks, chunk, 100, true);
		one_ready_chunk(chunks, chunk + chunks / 8 - 1, 100, false);
		one_ready_chunk(chunks, chunk + 1, 20, false);
	}
}

static void refused_arenas(void **state)
{
	struct pool pool;

	(void)state;
	assert_int_equal(pool_init(&pool, 0), -EINVAL);
	pool_deinit(&pool);
	assert_int_equal(pool_init(&pool, POOL_CHUNK_BYTES - 1), -EINVAL);
	pool_deinit(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(very_large_arena),
		cmocka_unit_test(refused_arenas),
	};

	return cmocka_run_group_tests_name("pool_arena", tests, NULL, NULL);
}
