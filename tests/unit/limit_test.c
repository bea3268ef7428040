// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The memory limit: what is refused was not stored, what was acknowledged
 * stays, overwriting and discarding always work, the limit is never exceeded,
 * and memory comes back.
 *
 * FOLIOSWAP_OPS multiplies the number of overwrites, FOLIOSWAP_SECONDS is for many_writers.
 */
#include "store_fixture.h"

struct run {
	struct store_config config;
	struct store *store;
	struct store_io *io;
	int fd;
	bool threads;
	uint32_t *stamp;
	uint64_t granules;
	uint64_t unit_granules;
	uint64_t units;
	uint64_t random;
	uint32_t number;
	uint8_t *buffer; /* one unit */
	pthread_t watcher;
	_Atomic bool watching;
	_Atomic uint64_t most_ready_bytes; /* seen by the watcher */
	bool open;
};

/* A test that fails leaves by longjmp: what then still runs is ended by the teardown. */
static struct run current;

/* Looks at the tables themselves, all the time, not at the gauges. */
static void *watcher_main(void *argument)
{
	struct run *run = argument;

	while (atomic_load(&run->watching)) {
		struct pool_usage usage;
		uint64_t ready;

		pool_usage(&run->store->pool, &usage);
		ready = usage.ready_bytes + ids_ready_bytes(&run->store->ids);
		if (ready > run->most_ready_bytes)
			atomic_store(&run->most_ready_bytes, ready);
		usleep(100);
	}
	return NULL;
}

static struct run *run_init(struct store_config config, bool threads)
{
	struct run *run = &current;

	memset(run, 0, sizeof(*run));
	run->config = config;
	run->granules = config.size_bytes / GRANULE_BYTES;
	run->unit_granules = config.unit_bytes / GRANULE_BYTES;
	run->units = run->granules / run->unit_granules;
	run->random = random_seed(fixture_number("FOLIOSWAP_SEED", 0) + 1);
	run->stamp = calloc(run->granules, sizeof(*run->stamp));
	run->buffer = aligned_alloc(4096, config.unit_bytes);
	assert_true(run->stamp && run->buffer);
	run->fd = fixture_format(&config);
	run->store = fixture_open(run->fd);
	run->io = store_io(run->store, 0);
	run->threads = threads;
	if (threads)
		assert_int_equal(store_start(run->store), 0);
	atomic_store(&run->watching, true);
	assert_int_equal(pthread_create(&run->watcher, NULL, watcher_main, run), 0);
	run->open = true;
	return run;
}

static void stop_watcher(struct run *run)
{
	if (atomic_exchange(&run->watching, false))
		pthread_join(run->watcher, NULL);
}

static void stop_watching(struct run *run)
{
	stop_watcher(run);
	if (run->most_ready_bytes > run->config.limit_bytes)
		fail_msg("%llu bytes were ready, the limit is %llu", (unsigned long long)run->most_ready_bytes,
			(unsigned long long)run->config.limit_bytes);
}

static int run_end(void **state)
{
	struct run *run = &current;

	(void)state;
	if (!run->open)
		return 0;
	run->open = false;
	stop_watcher(run);
	store_close(run->store);
	close(run->fd);
	free(run->stamp);
	free(run->buffer);
	return 0;
}

static void run_deinit(struct run *run)
{
	if (run->watching)
		stop_watching(run);
	run_end(NULL);
}

static int write_range(struct run *run, struct range range, enum stamp_kind kind)
{
	uint32_t stamp = stamp_make(++run->number, kind);
	uint64_t begin_ns = clock_ns();
	int result;

	stamp_fill_range(run->buffer, range.granule, range.count, stamp);
	result = store_write(run->io, range.granule, range.count, run->buffer);
	if (clock_ns() - begin_ns > 8 * UINT64_C(1000000000))
		fail_msg("a write took %llu ms", (unsigned long long)(clock_ns() - begin_ns) / 1000000);
	if (result == 0) {
		for (uint32_t i = 0; i < range.count; i++)
			run->stamp[range.granule + i] = stamp;
	} else {
		assert_int_equal(result, -ENOSPC);
	}
	return result;
}

static void overwrite(struct run *run, struct range range, enum stamp_kind kind, uint64_t turn)
{
	char problem[200] = "";

	if (write_range(run, range, kind) == 0)
		return;
	store_check(run->store, problem, sizeof(problem));
	fail_msg("overwrite %llu of granules %llu + %u was refused: %llu bytes of extents, %llu of arena and %llu of "
		 "records ready, limit %llu, %llu objects, %u slots free; %s",
		(unsigned long long)turn, (unsigned long long)range.granule, range.count,
		(unsigned long long)run->store->gauges->extent_bytes,
		(unsigned long long)run->store->gauges->arena_ready_bytes,
		(unsigned long long)run->store->gauges->records_ready_bytes,
		(unsigned long long)run->store->image.super->limit_bytes,
		(unsigned long long)run->store->gauges->objects, run->store->staging.free, problem);
}

static void discard_range(struct run *run, struct range range)
{
	assert_int_equal(store_discard(run->io, range.granule, range.count), 0);
	memset(run->stamp + range.granule, 0, range.count * sizeof(*run->stamp));
}

static void check_bytes(struct run *run)
{
	for (uint64_t granule = 0; granule < run->granules; granule += run->unit_granules) {
		uint32_t count = (uint32_t)run->unit_granules;

		assert_int_equal(store_read(run->io, granule, count, run->buffer), 0);
		for (uint32_t i = 0; i < count; i++) {
			if (!stamp_is(run->buffer + i * GRANULE_BYTES, granule + i, run->stamp[granule + i]))
				fail_msg("granule %llu is not what was acknowledged", (unsigned long long)granule + i);
		}
	}
}

/* Everything is quiet: also nothing may be stuck in a slot. Workers may have a last chunk in hand. */
static void check_quiet(struct run *run, const char *when)
{
	char problem[200];

	if (store_flush(run->store, FIXTURE_WAIT_NS) != 0)
		fail_msg("%s: slots cannot be closed", when);
	assert_int_equal(store_compact(run->store, FIXTURE_WAIT_NS, NULL, NULL), 0);
	for (unsigned i = 0; i < 100 && store_check(run->store, problem, sizeof(problem)) != 0; i++)
		usleep(20000);
	fixture_check(run->store, when);
	check_bytes(run);
}

/* Whole units until the first is refused. Returns how many were taken. */
static uint64_t fill_units(struct run *run, uint64_t from)
{
	uint64_t unit = from;

	while (unit < run->units &&
		write_range(run, (struct range){unit * run->unit_granules, (uint32_t)run->unit_granules},
			STAMP_RANDOM) == 0)
		unit++;
	return unit - from;
}

static uint64_t operations(uint64_t count)
{
	return (FIXTURE_IS_TSAN ? count / 10 : count) * fixture_number("FOLIOSWAP_OPS", 1);
}

static struct store_config config_of(uint64_t unit_bytes, uint64_t size_bytes, uint64_t above_bytes)
{
	struct store_config config = fixture_config(unit_bytes, 64 * KIB, size_bytes);

	config.limit_bytes = fixture_limit(config, above_bytes);
	return config;
}

/* What may be stored at least: the limit without headroom and records, and one chunk that is not quite full. */
static uint64_t least_stored_bytes(struct run *run)
{
	const struct stats_gauges *gauges = run->store->gauges;

	return gauges->limit_bytes - gauges->headroom_bytes - gauges->records_ready_bytes - POOL_CHUNK_BYTES -
	       run->config.unit_bytes;
}

static void whole_units(struct store_config config, bool threads, uint64_t overwrites)
{
	struct run *run;
	uint64_t filled, again;

	run = run_init(config, threads);
	filled = fill_units(run, 0);
	assert_true(filled < run->units);
	assert_true(filled * config.unit_bytes >= least_stored_bytes(run));
	assert_true(store_io_stats(run->io)->refused > 0);
	check_bytes(run);
	/* A refused write has left nothing behind, also not in part. */
	assert_int_equal(run->stamp[filled * run->unit_granules], 0);

	for (uint64_t i = 0; i < operations(overwrites); i++) {
		uint64_t unit = random_below(&run->random, filled);

		overwrite(
			run, (struct range){unit * run->unit_granules, (uint32_t)run->unit_granules}, STAMP_RANDOM, i);
	}
	check_quiet(run, "overwritten");

	/* A quarter discarded makes room for as much. */
	for (uint64_t unit = 0; unit < filled / 4; unit++)
		discard_range(run, (struct range){unit * run->unit_granules, (uint32_t)run->unit_granules});
	again = fill_units(run, filled);
	assert_true(again + 2 >= filled / 4);
	check_quiet(run, "filled again");
	run_deinit(run);
}

static void units_64k(void **state)
{
	(void)state;
	whole_units(config_of(64 * KIB, 64 * MIB, 12 * MIB), true, 3000);
}

static void units_64k_alone(void **state)
{
	(void)state;
	whole_units(config_of(64 * KIB, 64 * MIB, 12 * MIB), false, 3000);
}

static void units_64k_least(void **state)
{
	(void)state;
	whole_units(config_of(64 * KIB, 64 * MIB, 0), true, 1000);
	whole_units(config_of(64 * KIB, 64 * MIB, 0), false, 1000);
}

static void units_2m(void **state)
{
	struct store_config config = config_of(2 * MIB, 128 * MIB, 24 * MIB);

	(void)state;
	config.compress_threads = 2;
	config.limit_bytes = fixture_limit(config, 24 * MIB);
	whole_units(config, true, 150);
}

static void units_2m_alone(void **state)
{
	(void)state;
	whole_units(config_of(2 * MIB, 128 * MIB, 24 * MIB), false, 150);
}

/*
 * Stores of many limits, filled and stirred by two closing threads at once: an
 * object of incompressible 2 MiB is a little longer than a chunk, so the holes
 * between them are worthless until they are brought together. Which state comes
 * up depends on the threads' timing; more rounds see more of them.
 */
static void stirred(void **state)
{
	uint64_t rounds = 14 * fixture_number("FOLIOSWAP_OPS", 1);

	(void)state;
	for (uint64_t round = 0; round < rounds; round++) {
		struct store_config config = config_of(2 * MIB, 96 * MIB, 0);
		struct run *run;
		uint64_t filled;

		config.compress_threads = 2;
		config.limit_bytes = fixture_limit(config, (1 + round % 7) * 4 * MIB);
		run = run_init(config, true);
		run->random = random_seed(round);
		filled = fill_units(run, 0);
		for (unsigned i = 0; i < 20; i++) {
			uint64_t unit = random_below(&run->random, filled);
			struct range range = {unit * run->unit_granules, (uint32_t)run->unit_granules};

			if (random_below(&run->random, 5) == 0)
				discard_range(run, range);
			else
				write_range(run, range, random_below(&run->random, 3) ? STAMP_RANDOM : STAMP_HALF);
		}
		check_quiet(run, "stirred");
		run_deinit(run);
	}
}

/* Every other granule, each an object of its own; then overwritten one by one, from all over the device. */
static void single_granules(struct store_config config, bool threads, enum stamp_kind kind, uint64_t overwrites)
{
	struct run *run;
	uint64_t filled = 0;

	run = run_init(config, threads);
	while (filled < run->granules / 2 && write_range(run, (struct range){filled * 2, 1}, kind) == 0)
		filled++;
	assert_true(filled < run->granules / 2);
	assert_true(filled > 500);
	assert_int_equal(store_flush(run->store, FIXTURE_WAIT_NS), 0);
	check_bytes(run);
	for (uint64_t i = 0; i < operations(overwrites); i++)
		overwrite(run, (struct range){random_below(&run->random, filled) * 2, 1}, kind, i);
	check_quiet(run, "overwritten");
	for (uint64_t i = 0; i < filled; i += 2)
		discard_range(run, (struct range){i * 2, 1});
	for (uint64_t i = 0; i < filled; i += 4)
		overwrite(run, (struct range){i * 2, 1}, kind, i);
	check_quiet(run, "discarded and written again");
	run_deinit(run);
}

static void single_raw(void **state)
{
	(void)state;
	single_granules(config_of(64 * KIB, 64 * MIB, 6 * MIB), true, STAMP_RANDOM, 20000);
}

static void single_raw_alone(void **state)
{
	(void)state;
	single_granules(config_of(64 * KIB, 64 * MIB, 6 * MIB), false, STAMP_RANDOM, 20000);
}

static void single_raw_large_units(void **state)
{
	(void)state;
	single_granules(config_of(2 * MIB, 64 * MIB, 2 * MIB), true, STAMP_RANDOM, 20000);
}

/* So small that it is the ids that run out, with no room for another group of records. */
static void single_tiny(void **state)
{
	struct store_config config = config_of(64 * KIB, 768 * MIB, 6 * MIB);

	(void)state;
	if (FIXTURE_IS_TSAN)
		skip();
	single_granules(config, true, STAMP_SMALL, 15000);
}

/* One granule of each large object at a time: what is dead must be won back by rewriting, or nothing fits any more. */
static void granules_of_large_objects(void **state)
{
	struct run *run;
	uint64_t filled;

	(void)state;
	run = run_init(config_of(2 * MIB, 96 * MIB, 16 * MIB), true);
	filled = fill_units(run, 0);
	check_bytes(run);
	for (uint64_t i = 0; i < operations(3000); i++) {
		uint64_t granule = random_below(&run->random, filled * run->unit_granules);

		overwrite(run, (struct range){granule, 1}, i % 2 ? STAMP_WORD : STAMP_SMALL, i);
	}
	check_quiet(run, "overwritten");
	run_deinit(run);
}

/* Reads, discards and overwrites go on below what is stored; room comes back with the limit, or with discards. */
static void limit_changes(void **state)
{
	struct store_config config = config_of(64 * KIB, 64 * MIB, 16 * MIB);
	uint64_t low = config.limit_bytes - 10 * MIB, filled, more;
	struct run *run;

	(void)state;
	run = run_init(config, true);
	filled = fill_units(run, 0);
	check_quiet(run, "filled");
	stop_watching(run);
	assert_int_equal(store_set_limit(run->store, low), 0);
	assert_int_equal(store_set_limit(run->store, MIB), -EINVAL);
	assert_int_equal(run->store->gauges->limit_bytes, low);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t granule = (filled + i) * run->unit_granules;

		assert_int_equal(write_range(run, (struct range){granule, 1}, STAMP_RANDOM), -ENOSPC);
	}
	for (uint64_t i = 0; i < operations(1000); i++) {
		uint64_t unit = random_below(&run->random, filled);

		overwrite(
			run, (struct range){unit * run->unit_granules, (uint32_t)run->unit_granules}, STAMP_RANDOM, i);
	}
	check_quiet(run, "overwritten above the limit");

	/* Enough discarded: under the limit again, really, and new data is taken. */
	for (uint64_t unit = 0; unit < filled * 3 / 4; unit++)
		discard_range(run, (struct range){unit * run->unit_granules, (uint32_t)run->unit_granules});
	check_quiet(run, "discarded");
	usleep(300000);
	assert_true(run->store->gauges->arena_ready_bytes + run->store->gauges->records_ready_bytes <= low);
	more = fill_units(run, filled);
	assert_true(more > 5);
	check_quiet(run, "filled to the low limit");
	assert_true(run->store->gauges->arena_ready_bytes + run->store->gauges->records_ready_bytes <= low);

	assert_int_equal(store_set_limit(run->store, config.limit_bytes), 0);
	assert_true(fill_units(run, filled + more) * config.unit_bytes >= 8 * MIB);
	check_quiet(run, "filled to the high limit");
	assert_int_equal(store_set_limit(run->store, UINT64_MAX), 0);
	fill_units(run, 0);
	check_quiet(run, "no limit");
	run_deinit(run);
}

/* A device that was full is discarded whole: within five seconds the memory is back with the system. */
static void memory_comes_back(void **state)
{
	struct store_config config = config_of(64 * KIB, 64 * MIB, 40 * MIB);
	uint64_t fixed, before, after, deadline_ns, kept;
	struct run *run;

	(void)state;
	config.reserve_bytes = 4 * MIB;
	run = run_init(config, true);
	fixed = fixture_file_memory(run->fd) - run->store->gauges->arena_ready_bytes;
	fill_units(run, 0);
	assert_int_equal(store_flush(run->store, FIXTURE_WAIT_NS), 0);
	before = fixture_file_memory(run->fd);
	assert_true(before >= 38 * MIB);
	for (uint64_t unit = 0; unit < run->units; unit++)
		discard_range(run, (struct range){unit * run->unit_granules, (uint32_t)run->unit_granules});
	deadline_ns = clock_ns() + 5 * UINT64_C(1000000000);
	kept = config.reserve_bytes + POOL_CHUNK_BYTES;
	do {
		usleep(20000);
		after = fixture_file_memory(run->fd);
	} while ((after > fixed + kept || run->store->gauges->arena_ready_bytes > kept) && clock_ns() < deadline_ns);
	if (after > fixed + kept)
		fail_msg("%llu bytes before the discard, %llu after it, %llu are fixed", (unsigned long long)before,
			(unsigned long long)after, (unsigned long long)fixed);
	assert_true(run->store->gauges->arena_ready_bytes <= kept);
	assert_true(run->store->gauges->arena_ready_bytes >= config.reserve_bytes);
	assert_int_equal(run->store->gauges->live_bytes, 0);
	assert_int_equal(run->store->gauges->extent_bytes, 0);
	assert_int_equal(run->store->gauges->objects, 0);
	check_quiet(run, "discarded");
	run_deinit(run);
}

#define WRITERS 4

/* Has every fourth unit to itself. No assertion in its thread: what was wrong is told afterwards. */
struct writer {
	struct run *run;
	unsigned index;
	pthread_t thread;
	uint64_t random, deadline_ns, taken;
	uint32_t number;
	uint8_t *buffer;
	char wrong[100];
};

static bool writer_says(struct writer *writer, const char *what, uint64_t granule, int result)
{
	snprintf(writer->wrong, sizeof(writer->wrong), "%s at %llu: %d", what, (unsigned long long)granule, result);
	return false;
}

/* A write, or where there is no room now and then a discard that makes some. */
static bool writer_writes(struct writer *writer, struct range range)
{
	static const enum stamp_kind kinds[] = {STAMP_RANDOM, STAMP_RANDOM, STAMP_HALF, STAMP_TEXT, STAMP_SMALL};
	struct store_io *io = store_io(writer->run->store, writer->index);
	uint32_t stamp = stamp_make(++writer->number, kinds[random_below(&writer->random, 5)]);
	int result;

	stamp_fill_range(writer->buffer, range.granule, range.count, stamp);
	result = fixture_write(writer->run->store, io, range.granule, range.count, writer->buffer, range.granule);
	writer->taken += result == 0;
	if (result == -ENOSPC && random_below(&writer->random, 8) == 0) {
		stamp = 0;
		result = store_discard(io, range.granule, range.count);
	}
	for (uint32_t i = 0; result == 0 && i < range.count; i++)
		writer->run->stamp[range.granule + i] = stamp;
	return result == 0 || result == -ENOSPC || writer_says(writer, "write", range.granule, result);
}

static bool writer_reads(struct writer *writer, struct range range)
{
	const uint32_t *stamp = writer->run->stamp + range.granule;
	const uint8_t *bytes = writer->buffer;
	int result =
		store_read(store_io(writer->run->store, writer->index), range.granule, range.count, writer->buffer);

	for (uint32_t i = 0; result == 0 && i < range.count; i++, bytes += GRANULE_BYTES)
		result = stamp_is(bytes, range.granule + i, stamp[i]) ? 0 : -EBADMSG;
	return result == 0 || writer_says(writer, "read", range.granule, result);
}

static void *writer_main(void *argument)
{
	struct writer *writer = argument;
	struct run *run = writer->run;
	bool right = true;

	while (right && clock_ns() < writer->deadline_ns) {
		uint64_t unit = random_below(&writer->random, run->units / WRITERS) * WRITERS + writer->index;
		struct range range = range_in_unit(&writer->random, run->granules, run->unit_granules, unit);

		right = random_below(&writer->random, 4) ? writer_writes(writer, range) : writer_reads(writer, range);
	}
	return NULL;
}

/* The device is much larger than its memory, which is full before they begin. */
static void write_from_all_sides(struct store_config config)
{
	uint64_t write_ns = fixture_number("FOLIOSWAP_SECONDS", 2) * UINT64_C(1000000000);
	uint64_t taken = 0;
	struct writer writers[WRITERS];
	const char *wrong = NULL;
	struct run *run;

	config.io_threads = WRITERS;
	config.compress_threads = 2;
	config.limit_bytes = fixture_limit(config, config.size_bytes / 6);
	run = run_init(config, true);
	assert_true(fill_units(run, 0) < run->units);
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){.run = run, .index = i, .number = 1000000};
		writers[i].deadline_ns = clock_ns() + write_ns;
		writers[i].random = random_seed(run->random + i);
		writers[i].buffer = aligned_alloc(4096, config.unit_bytes);
		assert_int_equal(pthread_create(&writers[i].thread, NULL, writer_main, &writers[i]), 0);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		pthread_join(writers[i].thread, NULL);
		free(writers[i].buffer);
		taken += writers[i].taken;
		wrong = writers[i].wrong[0] ? writers[i].wrong : wrong;
	}
	if (wrong)
		fail_msg("%s", wrong);
	assert_true(taken > 0);
	check_quiet(run, "written from all sides");
	run_deinit(run);
}

static void many_writers(void **state)
{
	(void)state;
	write_from_all_sides(config_of(2 * MIB, 96 * MIB, 0));
	write_from_all_sides(config_of(64 * KIB, 64 * MIB, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(units_64k, run_end),
		cmocka_unit_test_teardown(units_64k_alone, run_end),
		cmocka_unit_test_teardown(units_64k_least, run_end),
		cmocka_unit_test_teardown(units_2m, run_end),
		cmocka_unit_test_teardown(units_2m_alone, run_end),
		cmocka_unit_test_teardown(stirred, run_end),
		cmocka_unit_test_teardown(single_raw, run_end),
		cmocka_unit_test_teardown(single_raw_alone, run_end),
		cmocka_unit_test_teardown(single_raw_large_units, run_end),
		cmocka_unit_test_teardown(single_tiny, run_end),
		cmocka_unit_test_teardown(granules_of_large_objects, run_end),
		cmocka_unit_test_teardown(limit_changes, run_end),
		cmocka_unit_test_teardown(memory_comes_back, run_end),
		cmocka_unit_test_teardown(many_writers, run_end),
	};

	cmocka_set_test_filter(getenv("CMOCKA_TEST_FILTER"));
	return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
