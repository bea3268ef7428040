// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frames shared by the I/O threads of a store: a folio that several threads
 * read page by page is decoded once; a damaged one fails for each of them; and
 * while objects are written over, freed and their ids used again, nobody reads
 * anything but what was last written.
 *
 * FOLIOSWAP_SECONDS bounds each run of the last test, FOLIOSWAP_OPS multiplies it.
 */
#include "store_fixture.h"

#define READERS 4
#define WRITER READERS /* the writer's I/O thread */
#define UNIT_BYTES (2 * MIB)
#define UNIT_GRANULES ((uint32_t)(UNIT_BYTES / GRANULE_BYTES))

static struct store_config config_of(uint64_t frame_bytes, unsigned units)
{
	struct store_config config = fixture_config(UNIT_BYTES, frame_bytes, units * UNIT_BYTES);

	config.io_threads = READERS + 1;
	config.reserve_bytes = 4 * MIB;
	return config;
}

static struct stats_io *stats_of(struct store *store)
{
	struct stats_sum *sum = malloc(sizeof(*sum));
	struct stats_io *io = aligned_alloc(CACHE_LINE_BYTES, sizeof(*io));

	assert_true(sum && io);
	stats_sum(store_stats(store), sum);
	*io = sum->io;
	free(sum);
	return io;
}

static void write_units(struct store *store, unsigned units, uint32_t stamp)
{
	uint8_t *data = aligned_alloc(4096, UNIT_BYTES);

	assert_non_null(data);
	for (unsigned unit = 0; unit < units; unit++) {
		stamp_fill_range(data, unit * UNIT_GRANULES, UNIT_GRANULES, stamp);
		assert_int_equal(store_write(store_io(store, WRITER), unit * UNIT_GRANULES, UNIT_GRANULES, data), 0);
	}
	assert_int_equal(store_flush(store, FIXTURE_WAIT_NS), 0);
	free(data);
}

/* ---- pages of a few units, handed out one by one to whoever asks next ---- */

struct crowd {
	struct store *store;
	unsigned readers;
	uint32_t units; /* read side by side: page 0 of each, then page 1 */
	uint32_t pages; /* of each unit */
	uint32_t stamp; /* what is expected; 0: -EIO and zeros */
	_Atomic uint32_t page;
	_Atomic uint32_t wrong;
	pthread_barrier_t start;
};

struct reader {
	struct crowd *crowd;
	struct store_io *io;
	pthread_t thread;
};

static void *crowd_main(void *argument)
{
	struct reader *reader = argument;
	struct crowd *crowd = reader->crowd;
	uint8_t data[GRANULE_BYTES];
	uint32_t page;

	pthread_barrier_wait(&crowd->start);
	while ((page = atomic_fetch_add(&crowd->page, 1)) < crowd->units * crowd->pages) {
		uint64_t granule = page % crowd->units * UNIT_GRANULES + page / crowd->units;
		int result;

		memset(data, 0x5a, sizeof(data));
		result = store_read(reader->io, granule, 1, data);
		if (result != (crowd->stamp ? 0 : -EIO) || !stamp_is(data, granule, crowd->stamp))
			atomic_fetch_add(&crowd->wrong, 1);
	}
	return NULL;
}

static void read_together(struct crowd *crowd)
{
	struct reader readers[READERS];

	crowd->page = 0;
	assert_int_equal(pthread_barrier_init(&crowd->start, NULL, crowd->readers), 0);
	for (unsigned i = 0; i < crowd->readers; i++) {
		readers[i] = (struct reader){.crowd = crowd, .io = store_io(crowd->store, i)};
		assert_int_equal(pthread_create(&readers[i].thread, NULL, crowd_main, &readers[i]), 0);
	}
	for (unsigned i = 0; i < crowd->readers; i++)
		pthread_join(readers[i].thread, NULL);
	pthread_barrier_destroy(&crowd->start);
	assert_int_equal(crowd->wrong, 0);
}

/* Reads so many units side by side, of each as many frames as there is room for; returns how many. */
static uint32_t read_side_by_side(
	struct store *store, unsigned readers, uint32_t units, uint64_t frame_bytes, uint32_t stamp)
{
	const struct frame_cache *cache = frame_bytes > SCRATCH_FRAME_BYTES ? &store->large_cache : &store->small_cache;
	uint32_t frame_granules = (uint32_t)(frame_bytes / GRANULE_BYTES), frames = cache->entries / units;
	struct crowd crowd = {.store = store, .readers = readers, .units = units, .stamp = stamp};

	if (frames > UNIT_GRANULES / frame_granules)
		frames = UNIT_GRANULES / frame_granules;
	assert_true(frames > 0);
	crowd.pages = frames * frame_granules;
	read_together(&crowd);
	return units * frames;
}

/*
 * Each frame is decoded once, whoever reads which page. No more frames than
 * there are entries: a thread that the scheduler forgets may come back to any.
 */
static void decoded_once(void **state)
{
	static const uint64_t frames[] = {16 * KIB, 64 * KIB, 128 * KIB, UNIT_BYTES};
	const uint32_t stamp = stamp_make(3, STAMP_TEXT);

	(void)state;
	for (unsigned i = 0; i < 4 * READERS * READERS; i++) {
		uint64_t frame_bytes = frames[i % 4];
		unsigned readers = 1 + i / 4 % READERS, units = 1 + i / 4 / READERS;
		struct store_config config = config_of(frame_bytes, units);
		int fd = fixture_format(&config);
		struct store *store = fixture_open(fd);
		struct stats_io *stats;
		uint32_t count;

		write_units(store, units, stamp);
		count = read_side_by_side(store, readers, units, frame_bytes, stamp);
		stats = stats_of(store);
		assert_int_equal(stats->frame_misses, count);
		assert_int_equal(stats->frame_hits + count, count * (frame_bytes / GRANULE_BYTES));
		assert_int_equal(stats->read_decoded_bytes, count * frame_bytes);
		free(stats);
		store_close(store);
		close(fd);
	}
}

/* A damaged frame fails for every reader every time, and is not there when its bytes are good again. */
static void damaged_for_everyone(void **state)
{
	static const uint64_t frames[] = {64 * KIB, UNIT_BYTES};

	(void)state;
	for (unsigned i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		struct store_config config = config_of(frames[i], 1);
		int fd = fixture_format(&config);
		struct crowd crowd = {
			.store = fixture_open(fd), .readers = READERS, .units = 1, .pages = UNIT_GRANULES};
		struct store *store = crowd.store;
		struct frame_cache *cache = i ? &store->large_cache : &store->small_cache;
		struct object object;
		struct stats_io *stats;
		struct frame_entry *table;

		write_units(store, 1, stamp_make(5, STAMP_TEXT));
		record_read(&store->image.records[map_load(store, 0)], &object);
		table = (struct frame_entry *)(store->image.arena + (object.place << POOL_LINE_SHIFT));
		for (uint32_t frame = 0; frame < UNIT_BYTES / frames[i]; frame++)
			table[frame].sum ^= 1;
		read_together(&crowd);
		stats = stats_of(store);
		assert_int_equal(stats->bad_frames, UNIT_GRANULES);
		assert_int_equal(stats->frame_misses, UNIT_GRANULES);
		assert_int_equal(stats->read_decoded_bytes, 0);
		free(stats);
		for (unsigned entry = 0; entry < cache->entries; entry++)
			assert_int_equal(cache->entry[entry].where, 0);

		for (uint32_t frame = 0; frame < UNIT_BYTES / frames[i]; frame++)
			table[frame].sum ^= 1;
		crowd.stamp = stamp_make(5, STAMP_TEXT);
		read_together(&crowd);
		stats = stats_of(store);
		assert_int_equal(stats->bad_frames, UNIT_GRANULES);
		assert_true(stats->read_decoded_bytes >= UNIT_BYTES);
		free(stats);
		store_close(store);
		close(fd);
	}
}

/*
 * A record damaged after its frames were decoded: what was right for the old
 * one is not delivered for the new one.
 */
static void a_damaged_record_finds_nothing(void **state)
{
	struct store_config config = config_of(UNIT_BYTES, 2);
	int fd = fixture_format(&config);
	struct store *store = fixture_open(fd);
	uint8_t *data = aligned_alloc(4096, UNIT_BYTES);
	struct object good, bad;
	map_word id;

	(void)state;
	assert_non_null(data);
	/* Not a whole unit, so that it may seem to lie elsewhere in it. */
	stamp_fill_range(data, 8, 256, stamp_make(1, STAMP_TEXT));
	assert_int_equal(store_write(store_io(store, WRITER), 8, 256, data), 0);
	assert_int_equal(store_flush(store, FIXTURE_WAIT_NS), 0);
	assert_int_equal(store_read(store_io(store, 0), 8, 1, data), 0);
	id = map_load(store, 8);
	record_read(&store->image.records[id], &good);
	for (int shift = -8; shift <= 8; shift += 4) {
		bad = good;
		bad.first = (uint32_t)((int)bad.first + shift);
		record_write(&store->image.records[id], &bad);
		assert_int_equal(store_read(store_io(store, 1), 100, 1, data), shift ? -EIO : 0);
		assert_true(stamp_is(data, 100, shift ? 0 : stamp_make(1, STAMP_TEXT)));
	}
	record_write(&store->image.records[id], &good);
	assert_int_equal(store_read(store_io(store, 1), 100, 1, data), 0);
	assert_true(stamp_is(data, 100, stamp_make(1, STAMP_TEXT)));
	free(data);
	store_close(store);
	close(fd);
}

/* ---- where they lie ---- */

struct area {
	const uint8_t *start;
	uint64_t bytes;
};

/* Each in its region, and none over another one. */
static void check_areas(const struct store *store, enum image_region region, const struct area *areas, unsigned count)
{
	const struct image_extent *extent = &store->image.super->region[region];
	const uint8_t *start = store->image.base + extent->offset;

	for (unsigned i = 0; i < count; i++) {
		assert_true(areas[i].start >= start);
		assert_true(areas[i].start + areas[i].bytes <= start + extent->bytes);
		for (unsigned j = 0; j < i; j++)
			assert_true(areas[i].start >= areas[j].start + areas[j].bytes ||
				    areas[j].start >= areas[i].start + areas[i].bytes);
	}
}

static void check_store_areas(const struct store *store)
{
	const struct image *image = &store->image;
	const struct superblock *super = image->super;
	const struct frame_cache *caches[] = {&store->small_cache, &store->large_cache};
	const uint64_t frames[] = {SCRATCH_FRAME_BYTES, super->unit_bytes};
	struct area areas[2 * STORE_THREADS_MAX + FRAME_CACHE_ENTRIES_MAX + 2];
	unsigned count = 0;

	for (unsigned i = 0; i < super->io_threads; i++)
		areas[count++] =
			(struct area){scratch_direct_payload(image, i), frame_payload_max_bytes(SCRATCH_DIRECT_BYTES)};
	for (unsigned i = 0; i < super->compress_threads; i++)
		areas[count++] = (struct area){scratch_payload(image, i), frame_payload_max_bytes(super->unit_bytes)};
	for (unsigned large = 0; large < (super->unit_bytes > SCRATCH_FRAME_BYTES ? 2 : 1); large++) {
		for (unsigned i = 0; i < 2; i++)
			areas[count++] = (struct area){scratch_rewrite(image, i, frames[large]), frames[large]};
		assert_true(caches[large]->entries >= super->io_threads);
		assert_int_equal(caches[large]->entry_bytes, frames[large]);
		for (unsigned i = 0; i < caches[large]->entries; i++)
			areas[count++] = (struct area){caches[large]->entry[i].data, caches[large]->entry_bytes};
		check_areas(store, large ? REGION_LARGE : REGION_SCRATCH, areas, count);
		count = 0;
	}
}

static void nothing_lies_over_another(void **state)
{
	static const struct {
		uint64_t unit_bytes;
		unsigned io_threads, compress_threads;
	} shapes[] = {{64 * KIB, 1, 1}, {64 * KIB, 32, 32}, {2 * MIB, 1, 2}, {2 * MIB, 5, 1}, {2 * MIB, 32, 3},
		{16 * MIB, 2, 2}};

	(void)state;
	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct store_config config = fixture_config(shapes[i].unit_bytes, 4 * KIB, 2 * shapes[i].unit_bytes);
		struct store *store;
		int fd;

		config.io_threads = shapes[i].io_threads;
		config.compress_threads = shapes[i].compress_threads;
		fd = fixture_format(&config);
		store = fixture_open(fd);
		check_store_areas(store);
		store_close(store);
		close(fd);
	}
}

/* ---- objects come and go under readers ---- */

#define CHURN_UNITS 5

struct churn {
	struct store *store;
	/* Per granule: the number of the last write that was begun, and of the last that was over. */
	_Atomic uint32_t begun[CHURN_UNITS * UNIT_GRANULES];
	_Atomic uint32_t over[CHURN_UNITS * UNIT_GRANULES];
	uint32_t number;
	uint8_t *data; /* the writer's */
	uint64_t random;
	_Atomic bool done;
	_Atomic uint64_t wrong; /* of the first: granule << 32 | what was read instead */
};

struct churn_reader {
	struct churn *churn;
	struct store_io *io;
	uint64_t random;
	pthread_t thread;
};

/* The number of the write that all of the granule is of; UINT32_MAX: of none. */
static uint32_t number_of(const uint8_t *at, uint64_t granule)
{
	uint64_t name;

	memcpy(&name, at, sizeof(name));
	return name >> 32 == granule && stamp_is(at, granule, (uint32_t)name) ? (uint32_t)name / STAMP_KINDS
									      : UINT32_MAX;
}

/* Nothing older than what was over before, nothing newer than what was begun by then. */
static void churn_read(struct churn_reader *reader, uint64_t granule, uint32_t count)
{
	struct churn *churn = reader->churn;
	uint8_t data[8 * GRANULE_BYTES];
	uint32_t least[8];
	int result;

	for (uint32_t i = 0; i < count; i++)
		least[i] = atomic_load(&churn->over[granule + i]);
	result = store_read(reader->io, granule, count, data);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t most = atomic_load(&churn->begun[granule + i]);
		uint32_t got = result == 0 ? number_of(data + i * GRANULE_BYTES, granule + i) : UINT32_MAX;
		uint64_t none = 0;

		if (got < least[i] || got > most)
			atomic_compare_exchange_strong(&churn->wrong, &none, (granule + i) << 32 | got);
	}
}

/* As faults' read-ahead comes: from somewhere in a unit some pages on, one or eight at a time. */
static void *churn_main(void *argument)
{
	struct churn_reader *reader = argument;
	struct churn *churn = reader->churn;

	while (!atomic_load(&churn->done) && !atomic_load(&churn->wrong)) {
		uint64_t unit = random_below(&reader->random, CHURN_UNITS);
		uint32_t step = random_below(&reader->random, 2) ? 1 : 8;
		uint64_t at = random_below(&reader->random, UNIT_GRANULES) & ~(uint64_t)(step - 1);

		for (uint32_t i = 0; i < 4 && at < UNIT_GRANULES; i++, at += step)
			churn_read(reader, unit * UNIT_GRANULES + at, step);
	}
	return NULL;
}

static void churn_write(struct churn *churn, struct range range)
{
	enum stamp_kind kind = (enum stamp_kind)(STAMP_SMALL + random_below(&churn->random, STAMP_KINDS - STAMP_SMALL));
	uint32_t number = ++churn->number;

	stamp_fill_range(churn->data, range.granule, range.count, stamp_make(number, kind));
	for (uint32_t i = 0; i < range.count; i++)
		atomic_store(&churn->begun[range.granule + i], number);
	assert_int_equal(store_write(store_io(churn->store, WRITER), range.granule, range.count, churn->data), 0);
	for (uint32_t i = 0; i < range.count; i++)
		atomic_store(&churn->over[range.granule + i], number);
}

/* One write, of a whole unit or a part, sometimes with another frame size, sometimes seen through to an object. */
static void churn_step(struct churn *churn)
{
	static const uint32_t frames[] = {4 * KIB, 16 * KIB, 64 * KIB, 128 * KIB, UNIT_BYTES, UNIT_BYTES};

	if (random_below(&churn->random, 4) == 0)
		assert_int_equal(store_set_frame(churn->store, frames[random_below(&churn->random, 6)]), 0);
	churn_write(churn, range_pick(&churn->random, CHURN_UNITS * UNIT_GRANULES, UNIT_GRANULES));
	if (random_below(&churn->random, 2) == 0)
		store_flush(churn->store, FIXTURE_WAIT_NS);
	if (random_below(&churn->random, 16) == 0)
		store_compact(churn->store, 20000000, NULL, NULL);
	usleep((useconds_t)random_below(&churn->random, 1000));
}

static void check_churned(struct churn *churn)
{
	struct stats_sum *sum = malloc(sizeof(*sum));
	uint64_t objects = 0;

	if (churn->wrong)
		fail_msg("granule %llu: number %u was read, %u is the last", (unsigned long long)(churn->wrong >> 32),
			(unsigned)churn->wrong, churn->begun[churn->wrong >> 32]);
	assert_non_null(sum);
	stats_sum(store_stats(churn->store), sum);
	for (unsigned order = 0; order < ORDER_COUNT; order++)
		objects += sum->worker.closed_objects[order];
	print_message("%u writes, %llu objects of %u ids, %llu hits, %llu misses\n", churn->number,
		(unsigned long long)objects, churn->store->ids.end, (unsigned long long)sum->io.frame_hits,
		(unsigned long long)sum->io.frame_misses);
	assert_int_equal(sum->io.bad_frames, 0);
	assert_true(sum->io.frame_hits > 0 && sum->io.frame_misses > 0);
	free(sum);
}

static void never_anything_old(void **state)
{
	struct store_config config = config_of(UNIT_BYTES, CHURN_UNITS);
	uint64_t wanted = (FIXTURE_IS_TSAN ? 100 : 400) * fixture_number("FOLIOSWAP_OPS", 1);
	uint64_t end_ns = clock_ns() + fixture_number("FOLIOSWAP_SECONDS", 8) * UINT64_C(1000000000);
	struct churn_reader readers[READERS];
	struct churn *churn = calloc(1, sizeof(*churn));
	int fd = fixture_format(&config);

	(void)state;
	assert_non_null(churn);
	churn->store = fixture_open(fd);
	churn->random = random_seed(7 + 1000 * fixture_number("FOLIOSWAP_SEED", 0));
	churn->data = aligned_alloc(4096, UNIT_BYTES);
	assert_non_null(churn->data);
	assert_int_equal(store_start(churn->store), 0);
	for (unsigned unit = 0; unit < CHURN_UNITS; unit++)
		churn_write(churn, (struct range){unit * UNIT_GRANULES, UNIT_GRANULES});
	for (unsigned i = 0; i < READERS; i++) {
		readers[i] = (struct churn_reader){
			.churn = churn, .io = store_io(churn->store, i), .random = random_seed(i + 1)};
		assert_int_equal(pthread_create(&readers[i].thread, NULL, churn_main, &readers[i]), 0);
	}
	while (churn->number < wanted && clock_ns() < end_ns && !atomic_load(&churn->wrong))
		churn_step(churn);
	atomic_store(&churn->done, true);
	for (unsigned i = 0; i < READERS; i++)
		pthread_join(readers[i].thread, NULL);
	check_churned(churn);
	assert_int_equal(store_flush(churn->store, FIXTURE_WAIT_NS), 0);
	store_close(churn->store);
	free(churn->data);
	free(churn);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decoded_once),
		cmocka_unit_test(damaged_for_everyone),
		cmocka_unit_test(a_damaged_record_finds_nothing),
		cmocka_unit_test(nothing_lies_over_another),
		cmocka_unit_test(never_anything_old),
	};

	cmocka_set_test_filter(getenv("CMOCKA_TEST_FILTER"));
	return cmocka_run_group_tests_name("frame_share", tests, NULL, NULL);
}
