// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One that stands by maps what the server has: page tables looked at through pagemap, the file's memory by the file. It
 * must never bring back what the server has punched.
 */
#include "store_fixture.h"

#include <fcntl.h>
#include <pthread.h>

#define UNIT_BYTES (2 * MIB)
#define UNIT_GRANULES (UNIT_BYTES / GRANULE_BYTES)
#define UNITS 24
#define RESERVE_BYTES (6 * MIB)

struct pair {
	int fd;
	struct store *server, *standby;
	uint8_t *buffer;
	uint64_t random;
};

static void pair_init(struct pair *pair, uint64_t reserve_bytes)
{
	struct store_config config = fixture_config(UNIT_BYTES, 64 * KIB, UNITS * UNIT_BYTES);

	config.reserve_bytes = reserve_bytes;
	*pair = (struct pair){
		.fd = fixture_format(&config),
		.buffer = aligned_alloc(GRANULE_BYTES, UNIT_BYTES),
		.random = random_seed(7),
	};
	assert_non_null(pair->buffer);
	pair->server = fixture_open(pair->fd);
	assert_int_equal(store_prepare(&pair->standby, pair->fd), 0);
}

static void pair_deinit(struct pair *pair)
{
	store_close(pair->standby);
	store_close(pair->server);
	close(pair->fd);
	free(pair->buffer);
}

static void fill(struct pair *pair, uint64_t unit, enum stamp_kind kind)
{
	stamp_fill_range(pair->buffer, unit * UNIT_GRANULES, UNIT_GRANULES, stamp_make(1, kind));
	assert_int_equal(store_write(store_io(pair->server, 0), unit * UNIT_GRANULES, UNIT_GRANULES, pair->buffer), 0);
}

/* A pass without its pauses. */
static void map_all(struct store *standby)
{
	while (ahead_work(standby) < UINT64_C(100) * 1000000)
		;
}

static bool page_is_mapped(const void *at)
{
	uint64_t entry = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(
		pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)at / page * sizeof(entry))), sizeof(entry));
	close(fd);
	return entry >> 63;
}

/* All of the chunk's pages, or none. */
static bool chunk_is_mapped(const struct store *store, uint32_t chunk)
{
	unsigned mapped = 0, pages = 0;

	for (uint64_t at = 0; at < POOL_CHUNK_BYTES; at += (uint64_t)sysconf(_SC_PAGESIZE), pages++)
		mapped += page_is_mapped(store->image.arena + chunk * POOL_CHUNK_BYTES + at);
	assert_true(mapped == 0 || mapped == pages);
	return mapped != 0;
}

static uint32_t count_mapped(const struct pair *pair)
{
	uint32_t mapped = 0;

	for (uint32_t chunk = 0; chunk < pair->server->pool.chunks; chunk++) {
		bool is_mapped = chunk_is_mapped(pair->standby, chunk);

		mapped += is_mapped;
		assert_int_equal(is_mapped, pair->server->pool.chunk[chunk].state == CHUNK_READY);
	}
	return mapped;
}

/* No chunk that the server does not have is in the file. */
static void check_file(const struct pair *pair)
{
	const struct store *server = pair->server;

	for (uint32_t chunk = 0; chunk < server->pool.chunks; chunk++) {
		uint64_t next =
			image_next(&server->image, server->image.arena + chunk * POOL_CHUNK_BYTES, POOL_CHUNK_BYTES);

		assert_int_equal(next < POOL_CHUNK_BYTES, server->pool.chunk[chunk].state == CHUNK_READY);
	}
}

static void maps_what_is_ready(void **state)
{
	uint64_t memory;
	struct pair pair;

	(void)state;
	pair_init(&pair, 0);
	map_all(pair.standby);
	assert_true(count_mapped(&pair) < UNITS / 2);
	for (uint64_t unit = 0; unit < UNITS; unit++)
		fill(&pair, unit, STAMP_RANDOM);
	assert_int_equal(store_flush(pair.server, FIXTURE_WAIT_NS), 0);
	memory = fixture_file_memory(pair.fd);
	map_all(pair.standby);
	assert_int_equal(fixture_file_memory(pair.fd), memory);
	assert_true(count_mapped(&pair) >= UNITS);
	/* Slots and map, too: they are as long as the device. */
	assert_true(page_is_mapped(pair.standby->image.staging));
	assert_true(page_is_mapped(pair.standby->image.map));

	for (uint64_t unit = 0; unit < UNITS / 2; unit++)
		assert_int_equal(store_discard(store_io(pair.server, 0), unit * UNIT_GRANULES, UNIT_GRANULES), 0);
	assert_int_equal(store_compact(pair.server, FIXTURE_WAIT_NS, NULL, NULL), 0);
	assert_true(fixture_file_memory(pair.fd) < memory);
	map_all(pair.standby);
	check_file(&pair);
	pair_deinit(&pair);
}

static void leaves_what_is_punched(void **state)
{
	struct superblock *super;
	struct pair pair;

	(void)state;
	pair_init(&pair, 0);
	for (uint64_t unit = 0; unit < 4; unit++)
		fill(&pair, unit, STAMP_RANDOM);
	assert_int_equal(store_flush(pair.server, FIXTURE_WAIT_NS), 0);
	super = pair.server->image.super;

	assert_true(ahead_lets_punch(pair.server, 1));
	map_all(pair.standby);
	assert_false(chunk_is_mapped(pair.standby, 1));
	assert_true(chunk_is_mapped(pair.standby, 0) && chunk_is_mapped(pair.standby, 2));
	ahead_punched(pair.server);
	map_all(pair.standby);
	assert_true(chunk_is_mapped(pair.standby, 1));

	/* Each of the last 256 is known, whatever the list says; of more than those, none. */
	assert_true(ahead_has(pair.standby, 1) && ahead_has(pair.standby, 2));
	for (unsigned i = 0; i < PUNCHES_KEPT; i++)
		super->punched[i] = i == 5 ? UINT32_MAX : 2;
	super->punches += PUNCHES_KEPT;
	ahead_end(pair.standby);
	assert_true(ahead_has(pair.standby, 1) && !ahead_has(pair.standby, 2));
	super->punches += PUNCHES_KEPT + 1;
	ahead_end(pair.standby);
	assert_false(ahead_has(pair.standby, 1));

	super->mapping = 3 + 1;
	assert_false(ahead_lets_punch(pair.server, 3));
	assert_int_equal(super->punching, 0);
	assert_true(ahead_lets_punch(pair.server, 2));
	ahead_punched(pair.server);
	/* What a dead one left is taken back by the next. */
	store_close(pair.standby);
	assert_int_equal(store_prepare(&pair.standby, pair.fd), 0);
	assert_true(ahead_lets_punch(pair.server, 3));
	store_close(pair.server);
	pair.server = NULL;
	assert_int_equal(pair.standby->image.super->punching, 3 + 1);
	assert_int_equal(store_recover(pair.standby), 0);
	assert_int_equal(pair.standby->image.super->punching, 0);
	pair_deinit(&pair);
}

/* A chunk that is being made ready is the server's to fill. */
static void leaves_what_grows(void **state)
{
	struct image *image;
	uint64_t memory;
	uint32_t chunk;
	struct pair pair;

	(void)state;
	pair_init(&pair, 0);
	image = &pair.server->image;
	chunk = pair.server->pool.chunks - 1;
	assert_int_equal(image_populate(image, image->arena + chunk * POOL_CHUNK_BYTES, 128 * KIB), 0);
	memory = fixture_file_memory(pair.fd);
	map_all(pair.standby);
	assert_int_equal(fixture_file_memory(pair.fd), memory);
	assert_false(chunk_is_mapped(pair.standby, chunk));
	pair_deinit(&pair);
}

static _Atomic bool over;

static void *stand_by(void *standby)
{
	while (!over) {
		((struct store *)standby)->ahead.punches = UINT64_MAX;
		ahead_work(standby);
	}
	return NULL;
}

/* Growing and punching beside one that maps as fast as it can. */
static void never_brings_back(void **state)
{
	unsigned rounds = 60 * (unsigned)fixture_number("FOLIOSWAP_OPS", 1);
	pthread_t thread;
	struct pair pair;

	(void)state;
	pair_init(&pair, 0);
	over = false;
	assert_int_equal(pthread_create(&thread, NULL, stand_by, pair.standby), 0);
	for (unsigned round = 0; round < rounds; round++) {
		uint64_t first = random_below(&pair.random, UNITS / 2),
			 units = 1 + random_below(&pair.random, UNITS / 2);

		for (uint64_t unit = first; unit < first + units; unit++)
			fill(&pair, unit, STAMP_RANDOM);
		assert_int_equal(store_flush(pair.server, FIXTURE_WAIT_NS), 0);
		for (uint64_t unit = first; unit < first + units; unit++)
			assert_int_equal(
				store_discard(store_io(pair.server, 0), unit * UNIT_GRANULES, UNIT_GRANULES), 0);
		while (store_step(pair.server, true))
			;
		check_file(&pair);
	}
	over = true;
	pthread_join(thread, NULL);
	fixture_check(pair.server, "in the end");
	check_file(&pair);
	pair_deinit(&pair);
}

/* The successor has what its predecessor kept ready, without giving it back in between. */
static void keeps_the_reserve(void **state)
{
	uint64_t memory;
	struct pair pair;

	(void)state;
	pair_init(&pair, RESERVE_BYTES);
	for (uint64_t unit = 0; unit < 3; unit++)
		fill(&pair, unit, STAMP_RANDOM);
	assert_int_equal(store_flush(pair.server, FIXTURE_WAIT_NS), 0);
	while (store_step(pair.server, true))
		;
	assert_true(pool_empty_bytes(&pair.server->pool) >= RESERVE_BYTES);
	memory = fixture_file_memory(pair.fd);
	map_all(pair.standby);
	store_close(pair.server);
	assert_int_equal(store_recover(pair.standby), 0);
	pair.server = pair.standby;
	pair.standby = NULL;
	assert_true(pool_empty_bytes(&pair.server->pool) >= RESERVE_BYTES);
	assert_int_equal(fixture_file_memory(pair.fd), memory);
	assert_int_equal(pair.server->image.super->punches, 0);
	fixture_check(pair.server, "after a take-over");
	check_file(&pair);
	pair_deinit(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_what_is_ready),
		cmocka_unit_test(leaves_what_is_punched),
		cmocka_unit_test(leaves_what_grows),
		cmocka_unit_test(never_brings_back),
		cmocka_unit_test(keeps_the_reserve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
