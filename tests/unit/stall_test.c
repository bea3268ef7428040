// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A machine without memory: the growth thread stands still in the kernel. Writes
 * must be refused, the first ones after a bounded wait and then at once, reads
 * must go on, nothing acknowledged may be lost; when memory comes, so do writes.
 */
#include "store_fixture.h"

#include "clock.h"

#include <pthread.h>
#include <semaphore.h>

#define UNIT_BYTES (2 * MIB)
#define UNIT_GRANULES (UNIT_BYTES / GRANULE_BYTES)
#define UNITS 64
#define GRANULES 4096 /* more than can be ready */
#define SECOND_NS UINT64_C(1000000000)
/* Machines are busy, and sanitizers slow. */
#define AT_ONCE_NS (3 * SECOND_NS / 4)
#define FIRST_NS (12 * SECOND_NS)

static _Atomic bool no_memory;
static sem_t memory;

/* The kernel's loop around an allocation that may neither fail nor reclaim. */
static void stand_still(enum store_hook hook)
{
	if (hook == HOOK_POPULATE && atomic_load(&no_memory))
		sem_wait(&memory);
}

static void memory_comes(void)
{
	atomic_store(&no_memory, false);
	sem_post(&memory);
}

struct run {
	struct store *store;
	struct store_io *io;
	int fd;
	uint8_t *buffer;
	unsigned stored; /* units, from the first on */
};

static void run_init(struct run *run, uint64_t reserve_bytes)
{
	struct store_config config = fixture_config(UNIT_BYTES, 64 * KIB, UNITS * UNIT_BYTES);

	config.slots = 2;
	config.reserve_bytes = reserve_bytes;
	*run = (struct run){.fd = fixture_format(&config), .buffer = malloc(UNIT_BYTES)};
	run->store = fixture_open(run->fd);
	run->io = store_io(run->store, 0);
	sem_init(&memory, 0, 0);
	store_hook = stand_still;
	assert_int_equal(store_start(run->store), 0);
}

static void run_deinit(struct run *run)
{
	store_close(run->store);
	store_hook = NULL;
	sem_destroy(&memory);
	close(run->fd);
	free(run->buffer);
}

/* What does not compress, and differs from unit to unit. */
static void fill(uint8_t *buffer, unsigned unit)
{
	uint64_t state = random_seed(unit + 1);

	for (uint64_t at = 0; at < UNIT_BYTES; at += sizeof(uint64_t)) {
		uint64_t word = random_next(&state);

		memcpy(buffer + at, &word, sizeof(word));
	}
}

/* Returns how long it took; *ret_result: the store's answer. */
static uint64_t write_unit(struct run *run, unsigned unit, int *ret_result)
{
	uint64_t begin_ns = clock_ns();

	fill(run->buffer, unit);
	*ret_result = store_write(run->io, unit * UNIT_GRANULES, UNIT_GRANULES, run->buffer);
	return clock_ns() - begin_ns;
}

static void read_units(struct run *run)
{
	uint8_t *expected = malloc(UNIT_BYTES);

	for (unsigned unit = 0; unit < run->stored; unit++) {
		uint64_t begin_ns = clock_ns();

		assert_int_equal(store_read(run->io, unit * UNIT_GRANULES, UNIT_GRANULES, run->buffer), 0);
		assert_true(clock_ns() - begin_ns < AT_ONCE_NS);
		fill(expected, unit);
		assert_memory_equal(run->buffer, expected, UNIT_BYTES);
	}
	free(expected);
}

/* Until one is refused, which takes as long as waiting for a slot, then for the growth thread. */
static void fill_up(struct run *run)
{
	int result = 0;

	while (result == 0 && run->stored < UNITS) {
		uint64_t took_ns = write_unit(run, run->stored, &result);

		assert_true(took_ns < FIRST_NS);
		run->stored += result == 0;
	}
	assert_int_equal(result, -ENOSPC);
}

static void refuses_at_once(void **state)
{
	struct run run;
	int result;

	(void)state;
	run_init(&run, 8 * MIB);
	atomic_store(&no_memory, true);
	fill_up(&run);
	assert_true(run.stored >= 2);
	for (unsigned i = 0; i < 10; i++) {
		uint64_t took_ns = write_unit(&run, run.stored + i, &result);

		assert_int_equal(result, -ENOSPC);
		assert_true(took_ns < AT_ONCE_NS);
	}
	read_units(&run);
	memory_comes();
	assert_int_equal(store_flush(run.store, FIXTURE_WAIT_NS), 0);
	while (run.stored < UNITS) {
		write_unit(&run, run.stored, &result);
		assert_int_equal(result, 0);
		run.stored++;
	}
	assert_int_equal(store_flush(run.store, FIXTURE_WAIT_NS), 0);
	read_units(&run);
	fixture_check(run.store, "after memory came");
	run_deinit(&run);
}

/* Small writes without a slot, which an I/O thread stores by itself: the same. */
static void refuses_granules_at_once(void **state)
{
	unsigned refused = 0, late = 0;
	struct run run;

	(void)state;
	run_init(&run, 8 * MIB);
	atomic_store(&no_memory, true);
	fill_up(&run);
	fill(run.buffer, 0);
	/* What is left of the ready room takes some of them, and a worker that tries to close a slot holds some for moments. */
	for (unsigned i = 0; i < GRANULES; i++) {
		uint64_t begin_ns = clock_ns();
		int result = store_write(run.io, (run.stored + 1) * UNIT_GRANULES + i, 1, run.buffer);

		assert_true(result == 0 || result == -ENOSPC);
		assert_true(clock_ns() - begin_ns < (refused ? AT_ONCE_NS : FIRST_NS));
		refused += result != 0;
		late += result != 0 && i >= GRANULES - 100;
	}
	assert_true(late > 50);
	read_units(&run);
	memory_comes();
	assert_int_equal(store_flush(run.store, FIXTURE_WAIT_NS), 0);
	read_units(&run);
	run_deinit(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_at_once),
		cmocka_unit_test(refuses_granules_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
