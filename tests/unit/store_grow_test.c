// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A store that grows: what was there stays, the new part is holes, in use or after a death between the steps. The model
 * test grows, too; here are the borders, the errors and the deaths.
 */
#include "store_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define UNIT_BYTES (64 * KIB)
#define UNIT_GRANULES (UNIT_BYTES / GRANULE_BYTES)
#define OLD_GRANULES (20 * UNIT_GRANULES + 3) /* the last unit is not whole */
#define MAX_BYTES (64 * MIB)

struct run {
	int fd;
	struct store *store;
	struct store_io *io;
	uint8_t *buffer;
};

static void run_open(struct run *run)
{
	run->store = fixture_open(run->fd);
	run->io = store_io(run->store, 0);
}

static void run_init(struct run *run)
{
	struct store_config config = fixture_config(UNIT_BYTES, 16 * KIB, OLD_GRANULES * GRANULE_BYTES);

	config.max_size_bytes = MAX_BYTES;
	*run = (struct run){.fd = fixture_format(&config), .buffer = aligned_alloc(GRANULE_BYTES, UNIT_BYTES)};
	assert_non_null(run->buffer);
	run_open(run);
}

static void run_deinit(struct run *run)
{
	store_close(run->store);
	close(run->fd);
	free(run->buffer);
}

static uint64_t size_now(const struct run *run)
{
	struct store_config config;

	store_get_config(run->store, &config);
	assert_int_equal(config.max_size_bytes, MAX_BYTES);
	return config.size_bytes;
}

/* Pieces of units, so that there are slots, objects of several kinds, and holes. */
static void write_range(struct run *run, uint64_t from, uint64_t to, uint32_t number)
{
	uint32_t count;

	for (uint64_t granule = from; granule < to; granule += count) {
		uint32_t stamp = stamp_make(number, (enum stamp_kind)(granule / 8 % STAMP_KINDS));

		count = 8 - granule % 8;
		count = to - granule < count ? (uint32_t)(to - granule) : count;
		stamp_fill_range(run->buffer, granule, count, stamp);
		assert_int_equal(store_write(run->io, granule, count, run->buffer), 0);
	}
}

static void check_range(struct run *run, uint64_t from, uint64_t to, uint32_t number)
{
	for (uint64_t granule = from; granule < to; granule++) {
		uint32_t stamp = number ? stamp_make(number, (enum stamp_kind)(granule / 8 % STAMP_KINDS)) : 0;

		assert_int_equal(store_read(run->io, granule, 1, run->buffer), 0);
		if (!stamp_is(run->buffer, granule, stamp))
			fail_msg("wrong bytes in granule %llu", (unsigned long long)granule);
	}
}

/* Nothing is taken that reaches beyond the end. */
static void check_end(struct run *run, uint64_t granules)
{
	assert_int_equal(size_now(run), granules * GRANULE_BYTES);
	memset(run->buffer, 1, UNIT_BYTES);
	assert_int_equal(store_write(run->io, granules, 1, run->buffer), -EINVAL);
	assert_int_equal(store_read(run->io, granules, 1, run->buffer), -EINVAL);
	assert_int_equal(store_discard(run->io, granules, 1), -EINVAL);
	if (granules % UNIT_GRANULES) {
		assert_int_equal(store_write(run->io, granules - 1, 2, run->buffer), -EINVAL);
		assert_int_equal(store_read(run->io, granules - 1, 2, run->buffer), -EINVAL);
	}
	assert_int_equal(run->store->gauges->map_bytes, round_up_u64(granules * 4, run->store->image.page_bytes));
}

static void reopen(struct run *run)
{
	store_close(run->store);
	run_open(run);
}

/* ---- growing ---- */

static void grows(void **state)
{
	static const uint64_t sizes[] = {OLD_GRANULES + 1, 21 * UNIT_GRANULES, 21 * UNIT_GRANULES + 1, 1024, 1025, 5000,
		MAX_BYTES / GRANULE_BYTES};
	uint64_t granules = OLD_GRANULES;
	struct run run;

	(void)state;
	run_init(&run);
	write_range(&run, 0, granules, 1);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		check_end(&run, granules);
		assert_int_equal(store_set_size(run.store, sizes[i] * GRANULE_BYTES), 0);
		check_end(&run, sizes[i]);
		check_range(&run, 0, granules, i + 1);
		check_range(&run, granules, sizes[i], 0);
		fixture_check(run.store, "grown");
		if (i % 2)
			reopen(&run);
		check_range(&run, 0, granules, i + 1);
		granules = sizes[i];
		write_range(&run, 0, granules, i + 2);
		fixture_check(run.store, "written");
		if (i % 3 == 0)
			assert_int_equal(store_flush(run.store, FIXTURE_WAIT_NS), 0);
	}
	reopen(&run);
	check_end(&run, granules);
	check_range(&run, 0, granules, sizeof(sizes) / sizeof(sizes[0]) + 1);
	fixture_check(run.store, "opened again");
	run_deinit(&run);
}

static void refuses(void **state)
{
	static const uint64_t wrong[] = {0, GRANULE_BYTES, (OLD_GRANULES - 1) * GRANULE_BYTES,
		MAX_BYTES + GRANULE_BYTES, OLD_GRANULES * GRANULE_BYTES + 1, OLD_GRANULES * GRANULE_BYTES + 512,
		UINT64_MAX, INT64_MAX, UINT64_MAX - GRANULE_BYTES + 1};
	struct run run;
	uint64_t memory;

	(void)state;
	run_init(&run);
	write_range(&run, 0, OLD_GRANULES, 1);
	memory = fixture_file_memory(run.fd);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(store_set_size(run.store, wrong[i]), -EINVAL);
		check_end(&run, OLD_GRANULES);
	}
	assert_int_equal(store_set_size(run.store, OLD_GRANULES * GRANULE_BYTES), 0);
	check_end(&run, OLD_GRANULES);
	assert_int_equal(fixture_file_memory(run.fd), memory);
	check_range(&run, 0, OLD_GRANULES, 1);
	run_deinit(&run);
}

/* The kernel has no page for some of the new words: the store is as it was, and takes no more memory. */
static void refuses_without_memory(void **state)
{
	struct run run;
	uint8_t *hole;
	uint64_t memory;

	(void)state;
	run_init(&run);
	write_range(&run, 0, OLD_GRANULES, 1);
	assert_int_equal(store_flush(run.store, FIXTURE_WAIT_NS), 0);
	hole = (uint8_t *)run.store->image.map + 8 * GRANULE_BYTES;
	memory = fixture_file_memory(run.fd);
	assert_int_equal(munmap(hole, GRANULE_BYTES), 0);
	assert_int_equal(store_set_size(run.store, MAX_BYTES), -ENOMEM);
	assert_int_equal(fixture_file_memory(run.fd), memory);
	check_end(&run, OLD_GRANULES);
	fixture_check(run.store, "not grown");
	assert_ptr_equal(mmap(hole, GRANULE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, run.fd,
				 hole - run.store->image.base),
		hole);
	assert_int_equal(store_set_size(run.store, MAX_BYTES), 0);
	check_range(&run, 0, OLD_GRANULES, 1);
	check_range(&run, OLD_GRANULES, MAX_BYTES / GRANULE_BYTES, 0);
	fixture_check(run.store, "grown");
	run_deinit(&run);
}

/* Words beyond the end are checked by nobody, so none of them may come into use. */
static void forgets_damage(void **state)
{
	static const uint32_t words[] = {1, 2, 3, MAP_LOST, MAP_SLOT_BIT, MAP_SLOT_BIT | 1, UINT32_MAX, 77777};
	struct run run;

	(void)state;
	run_init(&run);
	write_range(&run, 0, OLD_GRANULES, 1);
	for (unsigned round = 0; round < 2; round++) {
		uint64_t end = size_now(&run) / GRANULE_BYTES;

		for (uint64_t granule = end; granule < end + 3000; granule++)
			run.store->image.map[granule] = words[granule % 8];
		if (round)
			reopen(&run);
		assert_int_equal(store_set_size(run.store, (end + 2900) * GRANULE_BYTES), 0);
		check_range(&run, 0, OLD_GRANULES, 1);
		check_range(&run, OLD_GRANULES, end + 2900, 0);
		fixture_check(run.store, "grown over damage");
	}
	run_deinit(&run);
}

/* ---- beside requests ---- */

struct beside {
	struct run *run;
	uint64_t from;
	_Atomic bool *stop;
	uint64_t rounds;
};

/* Half a thread's granules lie in the unit that grows from within. */
static void *write_beside(void *argument)
{
	struct beside *beside = argument;
	struct store_io *io = store_io(beside->run->store, 1);
	uint8_t *buffer = malloc(UNIT_BYTES);

	while (!atomic_load(beside->stop) || beside->rounds < 10) {
		uint32_t stamp = stamp_make((uint32_t)++beside->rounds, STAMP_TEXT);

		for (uint64_t granule = beside->from; granule < OLD_GRANULES; granule++) {
			stamp_fill(buffer, granule, stamp);
			assert_int_equal(store_write(io, granule, 1, buffer), 0);
			memset(buffer, 0, GRANULE_BYTES);
			assert_int_equal(store_read(io, granule, 1, buffer), 0);
			assert_true(stamp_is(buffer, granule, stamp));
		}
	}
	free(buffer);
	return NULL;
}

static void grows_beside_requests(void **state)
{
	_Atomic bool stop = false;
	struct run run;
	struct beside beside = {.run = &run, .from = OLD_GRANULES - 6, .stop = &stop};
	uint64_t granules = OLD_GRANULES;
	pthread_t thread;

	(void)state;
	run_init(&run);
	write_range(&run, 0, beside.from, 1);
	assert_int_equal(store_start(run.store), 0);
	assert_int_equal(pthread_create(&thread, NULL, write_beside, &beside), 0);
	while (granules < MAX_BYTES / GRANULE_BYTES) {
		uint64_t more = granules / 40 + 1, left = MAX_BYTES / GRANULE_BYTES - granules;

		more = more < left ? more : left;
		assert_int_equal(store_set_size(run.store, (granules + more) * GRANULE_BYTES), 0);
		check_range(&run, granules, granules + more, 0);
		write_range(&run, granules, granules + more, 1);
		granules += more;
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(store_flush(run.store, FIXTURE_WAIT_NS), 0);
	fixture_check(run.store, "grown beside requests");
	reopen(&run);
	check_range(&run, 0, beside.from, 1);
	check_range(&run, OLD_GRANULES, granules, 1);
	run_deinit(&run);
}

/* ---- deaths ---- */

static enum store_hook doom;

static void die_at(enum store_hook hook)
{
	if (hook == doom)
		kill(getpid(), SIGKILL);
}

/* Dies of growing; HOOK_COUNT: it is done when it is killed. */
static void grow_and_die(struct run *run, uint64_t size_bytes, enum store_hook hook)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		run_open(run);
		doom = hook;
		store_hook = die_at;
		if (store_set_size(run->store, size_bytes) == 0)
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void survives_deaths(void **state)
{
	static const enum store_hook hooks[] = {HOOK_GROW_MAP, HOOK_GROW_SIZE, HOOK_COUNT};
	uint64_t granules = OLD_GRANULES, written = OLD_GRANULES;
	struct run run;

	(void)state;
	run_init(&run);
	write_range(&run, 0, granules, 1);
	for (unsigned round = 0; round < 12; round++) {
		enum store_hook hook = hooks[round % 3];
		uint64_t wanted = granules + 1 + round * 300, memory;

		store_close(run.store);
		memory = fixture_file_memory(run.fd);
		grow_and_die(&run, wanted * GRANULE_BYTES, hook);
		run_open(&run);
		if (hook == HOOK_GROW_MAP)
			assert_int_equal(fixture_file_memory(run.fd), memory);
		else
			granules = wanted;
		check_end(&run, granules);
		check_range(&run, 0, written, 1);
		check_range(&run, written, granules, 0);
		fixture_check(run.store, "after a death");
		if (round % 4 == 3) {
			write_range(&run, written, granules, 1);
			written = granules;
			/* The same image's memory is compared above. */
			assert_int_equal(store_compact(run.store, FIXTURE_WAIT_NS, NULL, NULL), 0);
		}
		reopen(&run);
	}
	assert_true(granules > OLD_GRANULES + 2000);
	run_deinit(&run);
}

/* One that was prepared before its predecessor grew serves what that has left. */
static void standby_finds_it(void **state)
{
	struct store *standby;
	struct run run;

	(void)state;
	run_init(&run);
	write_range(&run, 0, OLD_GRANULES, 1);
	assert_int_equal(store_prepare(&standby, run.fd), 0);
	assert_int_equal(store_set_size(run.store, MAX_BYTES), 0);
	write_range(&run, OLD_GRANULES, MAX_BYTES / GRANULE_BYTES, 1);
	store_close(run.store);
	assert_int_equal(store_recover(standby), 0);
	run.store = standby;
	run.io = store_io(standby, 0);
	check_end(&run, MAX_BYTES / GRANULE_BYTES);
	check_range(&run, 0, MAX_BYTES / GRANULE_BYTES, 1);
	fixture_check(run.store, "taken over");
	run_deinit(&run);
}

/* What can be grown to costs no memory. */
static void room_for_growth_is_free(void **state)
{
	struct store_config config = fixture_config(2 * MIB, 64 * KIB, 256 * MIB);
	uint64_t memory[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		int fd;
		struct store *store;

		config.max_size_bytes = i ? 64 * GIB : config.size_bytes;
		fd = fixture_format(&config);
		store = fixture_open(fd);
		memory[i] = fixture_file_memory(fd);
		store_close(store);
		close(fd);
	}
	assert_int_equal(memory[1], memory[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows),
		cmocka_unit_test(refuses),
		cmocka_unit_test(refuses_without_memory),
		cmocka_unit_test(forgets_damage),
		cmocka_unit_test(grows_beside_requests),
		cmocka_unit_test(survives_deaths),
		cmocka_unit_test(standby_finds_it),
		cmocka_unit_test(room_for_growth_is_free),
	};

	cmocka_set_test_filter(getenv("CMOCKA_TEST_FILTER"));
	return cmocka_run_group_tests_name("store_grow", tests, NULL, NULL);
}
