// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slots that change while they are compressed: what has changed stays in the slot, what has not is closed. The changes
 * are made by the hook between the two, from the closing thread itself.
 */
#include "store_fixture.h"

#define UNITS 6
#define GRANULES_MAX (UNITS * 2 * MIB / GRANULE_BYTES)

static struct {
	struct store *store;
	struct store_io *io;
	uint8_t *buffer;
	uint64_t unit_granules;
	uint64_t granules;
	uint64_t random;
	uint32_t numbers;
	uint32_t stamp[GRANULES_MAX];
	unsigned changes;       /* how many the hook is to make */
	uint64_t changed_bytes; /* of granules that were in the slot */
	uint64_t closings;
} run;

static void write_stamp(struct range range, uint32_t stamp)
{
	/* Its own, and no waiting for a slot: the hook writes while another slot is being closed by this very thread. */
	uint64_t choice = run.store->staging.free ? random_next(&run.random) >> 40 : 0;
	uint8_t *plain = aligned_alloc(GRANULE_BYTES, range.count * GRANULE_BYTES);

	assert_non_null(plain);
	stamp_fill_range(plain, range.granule, range.count, stamp);
	assert_int_equal(fixture_write(run.store, run.io, range.granule, range.count, plain, choice), 0);
	free(plain);
	for (uint32_t i = 0; i < range.count; i++)
		run.stamp[range.granule + i] = stamp;
}

static void discard(struct range range)
{
	assert_int_equal(store_discard(run.io, range.granule, range.count), 0);
	for (uint32_t i = 0; i < range.count; i++)
		run.stamp[range.granule + i] = 0;
}

static void change(uint64_t unit)
{
	struct range range = range_in_unit(&run.random, run.granules, run.unit_granules, unit);
	uint64_t kind = random_below(&run.random, STAMP_KINDS + 2);

	/* A part of a folio, mostly. */
	if (random_below(&run.random, 4) != 0)
		range.count = 1 + (range.count - 1) / 8;
	if (kind >= STAMP_KINDS)
		discard(range);
	else
		write_stamp(range, stamp_make(++run.numbers, (enum stamp_kind)kind));
}

static uint64_t closing_unit(void)
{
	for (unsigned i = 0; i < run.store->image.super->slots; i++) {
		if (run.store->staging.slot[i].state == SLOT_CLOSING)
			return run.store->image.slots[i].unit;
	}
	fail_msg("no slot is being closed");
	return 0;
}

/* Counts what was in the slot and has changed since, by words and stamps alone. */
static void change_while_closing(enum store_hook hook)
{
	uint64_t unit, first;
	uint32_t *before;

	if (hook != HOOK_CLOSE_MADE)
		return;
	unit = closing_unit();
	first = unit * run.unit_granules;
	before = calloc(run.unit_granules, sizeof(*before));
	assert_non_null(before);
	for (uint64_t i = 0; i < run.unit_granules && first + i < run.granules; i++)
		before[i] = map_word_is_slot(map_load(run.store, first + i)) ? run.stamp[first + i] + 1 : 0;
	for (unsigned i = 0; i < run.changes; i++)
		change(unit);
	for (uint64_t i = 0; i < run.unit_granules && first + i < run.granules; i++)
		run.changed_bytes += before[i] && run.stamp[first + i] + 1 != before[i] ? GRANULE_BYTES : 0;
	free(before);
	run.closings++;
}

static void check_bytes(void)
{
	for (uint64_t granule = 0; granule < run.granules; granule++) {
		assert_int_equal(store_read(run.io, granule, 1, run.buffer), 0);
		if (!stamp_is(run.buffer, granule, run.stamp[granule]))
			fail_msg("wrong bytes in granule %llu", (unsigned long long)granule);
	}
}

static uint64_t dropped_bytes(void)
{
	struct stats_sum *sum = malloc(sizeof(*sum));
	uint64_t bytes;

	assert_non_null(sum);
	stats_sum(store_stats(run.store), sum);
	bytes = sum->worker.closed_dropped_bytes;
	free(sum);
	return bytes;
}

static void start(uint64_t unit_bytes, uint64_t seed)
{
	struct store_config config = fixture_config(unit_bytes, 64 * KIB, UNITS * unit_bytes - 3 * GRANULE_BYTES);
	int fd = fixture_format(&config);

	memset(&run, 0, sizeof(run));
	run.unit_granules = unit_bytes / GRANULE_BYTES;
	run.granules = config.size_bytes / GRANULE_BYTES;
	run.random = random_seed(seed);
	run.buffer = aligned_alloc(GRANULE_BYTES, unit_bytes);
	assert_non_null(run.buffer);
	run.store = fixture_open(fd);
	run.io = store_io(run.store, 0);
	close(fd);
	store_hook = change_while_closing;
}

static void stop(void)
{
	store_hook = NULL;
	check_bytes();
	assert_true(run.closings > 0);
	assert_int_equal(dropped_bytes(), run.changed_bytes);
	store_close(run.store);
	free(run.buffer);
}

static void closes_in_parts(uint64_t unit_bytes, unsigned rounds)
{
	start(unit_bytes, unit_bytes);
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < 4; i++)
			change(random_below(&run.random, UNITS));
		run.changes = (unsigned)random_below(&run.random, 4);
		store_step(run.store, true);
		fixture_check(run.store, "after a closing");
		if (round % 16 == 0)
			check_bytes();
	}
	assert_true(run.changed_bytes > 0);
	stop();
}

static void small_units(void **state)
{
	(void)state;
	closes_in_parts(64 * KIB, 1500 * (unsigned)fixture_number("FOLIOSWAP_OPS", 1));
}

static void large_units(void **state)
{
	(void)state;
	closes_in_parts(2 * MIB, 60 * (unsigned)fixture_number("FOLIOSWAP_OPS", 1));
}

static void append_while_closing(enum store_hook hook)
{
	if (hook == HOOK_CLOSE_MADE && run.closings++ == 0)
		write_stamp((struct range){256, 256}, stamp_make(2, STAMP_TEXT));
}

/* A folio whose second half comes while its first is compressed: nothing is compressed twice. */
static void appended(void **state)
{
	(void)state;
	start(2 * MIB, 1);
	store_hook = append_while_closing;
	write_stamp((struct range){0, 256}, stamp_make(1, STAMP_TEXT));
	assert_true(store_step(run.store, true));
	assert_int_equal(run.store->gauges->objects, 1);
	assert_int_equal(run.store->gauges->slot_bytes, MIB);
	assert_true(store_step(run.store, true));
	assert_int_equal(run.store->gauges->objects, 2);
	assert_int_equal(run.store->gauges->slot_bytes, 0);
	stop();
}

static int fetch_fails(void *calls, void *to)
{
	(void)to;
	++*(unsigned *)calls;
	return -EFAULT;
}

/* A unit whose bytes do not come: nothing changes, and no slot is lost. */
static void not_fetched(void **state)
{
	unsigned calls = 0;

	(void)state;
	start(2 * MIB, 2);
	store_hook = NULL;
	write_stamp((struct range){512, 512}, stamp_make(1, STAMP_TEXT));
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(store_write_unit(run.io, i % 2 * 512, fetch_fails, &calls), -EIO);
	assert_int_equal(calls, 20);
	fixture_check(run.store, "after fetches that failed");
	assert_int_equal(run.store->staging.free, 3);
	run.closings++;
	stop();
}

/* The closer reads the clock before it looks at a slot, which may be written to in between: that is not a quiet one. */
static void written_after_the_look(void **state)
{
	struct slot *slot = NULL;

	(void)state;
	start(2 * MIB, 2);
	store_hook = NULL;
	write_stamp((struct range){0, 8}, stamp_make(1, STAMP_TEXT));
	for (unsigned i = 0; i < run.store->image.super->slots; i++)
		if (run.store->staging.slot[i].state == SLOT_OPEN)
			slot = &run.store->staging.slot[i];
	assert_non_null(slot);
	slot->last_write_ns = clock_ns() + 1000000000;
	while (store_step(run.store, false)) {
	}
	assert_int_equal(slot->state, SLOT_OPEN);
	assert_true(close_next_due_ns(run.store, clock_ns()) > 1000000000);
	slot->last_write_ns = clock_ns() - 1000000000;
	assert_int_equal(close_next_due_ns(run.store, clock_ns()), 0);
	assert_true(store_step(run.store, false));
	assert_int_equal(slot->state, SLOT_FREE);
	run.closings++;
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_units),
		cmocka_unit_test(large_units),
		cmocka_unit_test(appended),
		cmocka_unit_test(not_fetched),
		cmocka_unit_test(written_after_the_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
