// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Many threads: four writers on stripes of units of their own check every byte,
 * two more write and read the same units, where each granule must be all of one
 * write; a control thread changes everything that can be changed meanwhile.
 *
 * FOLIOSWAP_SECONDS bounds each run (default: operations do).
 */
#include "store_fixture.h"

#define STRIPES 4
#define SHARERS 2
#define SHARED_UNITS 6
#define THREADS (STRIPES + SHARERS)

struct run {
	struct store_config config;
	struct store *store;
	int fd;
	uint64_t granules;
	uint64_t unit_granules;
	uint64_t units;
	uint32_t *stamp; /* of the stripes: each written by its thread alone */
	_Atomic uint32_t number;
	_Atomic uint64_t operations;
	_Atomic unsigned running;
	uint64_t wanted; /* operations */
	uint64_t end_ns;
	char failure[300]; /* of the first thread that failed */
	_Atomic bool failed;
};

struct thread {
	struct run *run;
	struct store_io *io;
	unsigned index;
	uint64_t random;
	uint8_t *buffer;
	pthread_t thread;
};

static void fails(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void fails(struct run *run, const char *format, ...)
{
	va_list arguments;

	if (atomic_exchange(&run->failed, true))
		return;
	va_start(arguments, format);
	vsnprintf(run->failure, sizeof(run->failure), format, arguments);
	va_end(arguments);
}

static bool goes_on(struct run *run)
{
	return !atomic_load(&run->failed) && clock_ns() < run->end_ns &&
	       atomic_fetch_add(&run->operations, 1) < run->wanted;
}

/* ---- stripes ---- */

static struct range stripe_range(struct thread *thread)
{
	struct run *run = thread->run;
	uint64_t mine = (run->units - SHARED_UNITS) / STRIPES;
	uint64_t unit = SHARED_UNITS + random_below(&thread->random, mine) * STRIPES + thread->index;

	return range_in_unit(&thread->random, run->granules, run->unit_granules, unit);
}

static void stripe_write(struct thread *thread, struct range range)
{
	uint32_t number = atomic_fetch_add(&thread->run->number, 1) + 1;
	uint32_t stamp = stamp_make(number, (enum stamp_kind)random_below(&thread->random, STAMP_KINDS));
	int result;

	stamp_fill_range(thread->buffer, range.granule, range.count, stamp);
	result = fixture_write(thread->run->store, thread->io, range.granule, range.count, thread->buffer, number);
	if (result != 0 && (result != -ENOSPC || thread->run->config.limit_bytes == UINT64_MAX))
		fails(thread->run, "write of granules %llu + %u: %d", (unsigned long long)range.granule, range.count,
			result);
	for (uint32_t i = 0; i < range.count && result == 0; i++)
		thread->run->stamp[range.granule + i] = stamp;
}

static void stripe_read(struct thread *thread, struct range range)
{
	int result = store_read(thread->io, range.granule, range.count, thread->buffer);

	if (result != 0)
		fails(thread->run, "read of granules %llu + %u: %d", (unsigned long long)range.granule, range.count,
			result);
	for (uint32_t i = 0; i < range.count; i++) {
		uint32_t stamp = thread->run->stamp[range.granule + i];

		if (!stamp_is(thread->buffer + i * GRANULE_BYTES, range.granule + i, stamp))
			fails(thread->run, "granule %llu is not what was written (stamp %u)",
				(unsigned long long)range.granule + i, stamp);
	}
}

static void stripe_discard(struct thread *thread, struct range range)
{
	int result = store_discard(thread->io, range.granule, range.count);

	if (result != 0)
		fails(thread->run, "discard: %d", result);
	memset(thread->run->stamp + range.granule, 0, range.count * sizeof(*thread->run->stamp));
}

static void *stripe_main(void *argument)
{
	struct thread *thread = argument;

	while (goes_on(thread->run)) {
		uint64_t kind = random_below(&thread->random, 10);
		struct range range = stripe_range(thread);

		if (kind < 5)
			stripe_write(thread, range);
		else if (kind < 9)
			stripe_read(thread, range);
		else
			stripe_discard(thread, range);
	}
	atomic_fetch_sub(&thread->run->running, 1);
	return NULL;
}

/* ---- shared units ---- */

/* Zeros, or all of one write: its first word says which. */
static bool is_whole(const uint8_t *at, uint64_t granule)
{
	uint64_t name;

	memcpy(&name, at, sizeof(name));
	if (name == 0)
		return stamp_is(at, granule, 0);
	return name >> 32 == granule && stamp_kind((uint32_t)name) >= STAMP_SMALL &&
	       stamp_is(at, granule, (uint32_t)name);
}

static void shared_read(struct thread *thread, struct range range)
{
	int result = store_read(thread->io, range.granule, range.count, thread->buffer);

	if (result != 0)
		fails(thread->run, "shared read: %d", result);
	for (uint32_t i = 0; i < range.count; i++) {
		if (!is_whole(thread->buffer + i * GRANULE_BYTES, range.granule + i))
			fails(thread->run, "granule %llu is torn between two writes",
				(unsigned long long)range.granule + i);
	}
}

static void shared_write(struct thread *thread, struct range range)
{
	uint32_t number = atomic_fetch_add(&thread->run->number, 1) + 1;
	enum stamp_kind kind =
		(enum stamp_kind)(STAMP_SMALL + random_below(&thread->random, STAMP_KINDS - STAMP_SMALL));
	int result;

	stamp_fill_range(thread->buffer, range.granule, range.count, stamp_make(number, kind));
	result = fixture_write(thread->run->store, thread->io, range.granule, range.count, thread->buffer, number);
	if (result != 0 && (result != -ENOSPC || thread->run->config.limit_bytes == UINT64_MAX))
		fails(thread->run, "shared write: %d", result);
}

static void *sharer_main(void *argument)
{
	struct thread *thread = argument;
	struct run *run = thread->run;

	while (goes_on(run)) {
		uint64_t kind = random_below(&thread->random, 10);
		struct range range = range_in_unit(&thread->random, run->granules, run->unit_granules,
			random_below(&thread->random, SHARED_UNITS));

		if (kind < 5)
			shared_write(thread, range);
		else if (kind < 9)
			shared_read(thread, range);
		else if (store_discard(thread->io, range.granule, range.count) != 0)
			fails(run, "shared discard");
	}
	atomic_fetch_sub(&run->running, 1);
	return NULL;
}

/* ---- the control thread: this one ---- */

static void set_codec(struct run *run, uint64_t *random)
{
	static const struct codec_choice choices[] = {{CODEC_LZ4, 1}, {CODEC_ZSTD, 1}, {CODEC_LZ4HC, 2},
		{CODEC_COPY, 0}, {CODEC_LZ4, 60000}, {CODEC_ZSTD, -5}};
	struct codec_choice choice = choices[random_below(random, 6)];

	if (store_set_codec(run->store, choice.id, choice.level) != 0)
		fails(run, "codec %u level %d", choice.id, choice.level);
}

static void set_limit(struct run *run, uint64_t *random)
{
	uint64_t limit = run->config.limit_bytes;

	if (limit == UINT64_MAX)
		return;
	limit = random_below(random, 2) ? limit : fixture_limit(run->config, random_below(random, 4 * MIB));
	if (store_set_limit(run->store, limit) != 0)
		fails(run, "limit %llu", (unsigned long long)limit);
}

static void control(struct run *run, uint64_t *random)
{
	unsigned orders = order_of_bytes(run->config.unit_bytes) + 1;

	while (atomic_load(&run->running)) {
		int result = 0;

		usleep((useconds_t)random_below(random, 5000));
		switch (random_below(random, 6)) {
		case 0:
			set_codec(run, random);
			break;
		case 1:
			result = store_set_frame(run->store, (uint32_t)(GRANULE_BYTES << random_below(random, orders)));
			break;
		case 2:
			set_limit(run, random);
			break;
		case 3:
			/* While others write it may or may not get to an end. */
			store_compact(run->store, 20000000, NULL, NULL);
			break;
		case 4:
			store_flush(run->store, 5000000);
			break;
		default:
			break;
		}
		if (result != 0)
			fails(run, "setting: %d", result);
	}
}

/* ---- all together ---- */

/* The accounts as kept under way, before a recovery makes them anew. Workers may have a last chunk in hand. */
static void check_accounts(struct run *run)
{
	char problem[256] = "";

	for (unsigned i = 0; i < 100 && store_check(run->store, problem, sizeof(problem)) != 0; i++)
		usleep(20000);
	fixture_check(run->store, "quiet");
}

static void check_end(struct run *run, struct thread *thread)
{
	if (run->config.limit_bytes != UINT64_MAX)
		assert_int_equal(store_set_limit(run->store, run->config.limit_bytes), 0);
	assert_int_equal(store_flush(run->store, FIXTURE_WAIT_NS), 0);
	assert_int_equal(store_compact(run->store, FIXTURE_WAIT_NS, NULL, NULL), 0);
	for (uint64_t unit = 0; unit < run->units; unit++) {
		struct range range = {unit * run->unit_granules, (uint32_t)run->unit_granules};

		if (unit < SHARED_UNITS)
			shared_read(thread, range);
		else
			stripe_read(thread, range);
	}
}

static void check_sums(struct run *run)
{
	struct stats_sum *sum = malloc(sizeof(*sum));

	assert_non_null(sum);
	stats_sum(store_stats(run->store), sum);
	assert_int_equal(sum->io.bad_frames, 0);
	assert_true(sum->io.frame_hits > 0);
	print_message("%llu operations, %llu direct, %llu bytes dropped, %llu rewritten, %llu moved, %llu slot waits, %llu "
		      "refused\n",
		(unsigned long long)run->operations, (unsigned long long)sum->io.direct_objects,
		(unsigned long long)sum->worker.closed_dropped_bytes, (unsigned long long)sum->worker.rewritten_objects,
		(unsigned long long)sum->worker.moved_objects, (unsigned long long)sum->io.slot_waits,
		(unsigned long long)sum->io.refused);
	free(sum);
}

static void start_threads(struct run *run, struct thread *threads)
{
	run->running = THREADS;
	for (unsigned i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){
			.run = run,
			.io = store_io(run->store, i),
			.index = i,
			.random = random_seed(i + 1 + 1000 * fixture_number("FOLIOSWAP_SEED", 0)),
			.buffer = aligned_alloc(4096, run->config.unit_bytes),
		};
		assert_non_null(threads[i].buffer);
		assert_int_equal(
			pthread_create(&threads[i].thread, NULL, i < STRIPES ? stripe_main : sharer_main, &threads[i]),
			0);
	}
}

static void run_threads(struct store_config config, uint64_t wanted)
{
	uint64_t seconds = fixture_number("FOLIOSWAP_SECONDS", FIXTURE_IS_TSAN ? 15 : 60), random = random_seed(77);
	struct run run = {
		.config = config,
		.granules = config.size_bytes / GRANULE_BYTES,
		.unit_granules = config.unit_bytes / GRANULE_BYTES,
		.units = config.size_bytes / config.unit_bytes,
		.wanted = wanted * fixture_number("FOLIOSWAP_OPS", 1),
		.end_ns = clock_ns() + seconds * UINT64_C(1000000000),
		.fd = fixture_format(&config),
	};
	struct thread threads[THREADS];

	run.stamp = calloc(run.granules, sizeof(*run.stamp));
	assert_non_null(run.stamp);
	run.store = fixture_open(run.fd);
	assert_int_equal(store_start(run.store), 0);
	start_threads(&run, threads);
	control(&run, &random);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i].thread, NULL);
	if (!run.failed)
		check_end(&run, &threads[0]);
	if (run.failed)
		fail_msg("%s", run.failure);
	check_accounts(&run);
	check_sums(&run);
	/* Threads stopped: now everything can be recounted; and a recovery finds the same. */
	store_close(run.store);
	run.store = fixture_open(run.fd);
	fixture_check(run.store, "opened again");
	for (unsigned i = 0; i < THREADS; i++)
		threads[i].io = store_io(run.store, i);
	check_end(&run, &threads[0]);
	if (run.failed)
		fail_msg("opened again: %s", run.failure);
	fixture_check(run.store, "at the end");
	store_close(run.store);
	for (unsigned i = 0; i < THREADS; i++)
		free(threads[i].buffer);
	free(run.stamp);
	close(run.fd);
}

static struct store_config config_of(uint64_t unit_bytes, uint64_t size_bytes)
{
	struct store_config config = fixture_config(unit_bytes, 16 * KIB, size_bytes);

	config.io_threads = THREADS;
	config.compress_threads = 2;
	config.slots = 4;
	config.reserve_bytes = 4 * MIB;
	return config;
}

static void small_units(void **state)
{
	(void)state;
	run_threads(config_of(64 * KIB, 12 * MIB), 150000);
}

static void large_units(void **state)
{
	(void)state;
	run_threads(config_of(2 * MIB, 32 * MIB), 4000);
}

static void one_slot(void **state)
{
	struct store_config config = config_of(64 * KIB, 4 * MIB);

	(void)state;
	config.slots = 1;
	config.compress_threads = 1;
	run_threads(config, 30000);
}

static void under_limit(void **state)
{
	struct store_config config = config_of(64 * KIB, 24 * MIB);

	(void)state;
	config.limit_bytes = fixture_limit(config, 4 * MIB);
	run_threads(config, 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_units),
		cmocka_unit_test(large_units),
		cmocka_unit_test(one_slot),
		cmocka_unit_test(under_limit),
	};

	cmocka_set_test_filter(getenv("CMOCKA_TEST_FILTER"));
	return cmocka_run_group_tests_name("store_threads", tests, NULL, NULL);
}
