// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cache of decoded frames: which frame goes when another one comes, against
 * a model; what is in use never goes; threads that want the same frame decode
 * it once; a frame that cannot be decoded leaves nothing behind.
 */
#include "store_fixture.h"

#define ENTRIES 5
#define ENTRY_BYTES GRANULE_BYTES
#define THREADS 4

static uint8_t area[ENTRIES * ENTRY_BYTES];

static struct frame_cache *cache_create(unsigned entries)
{
	struct frame_cache *cache = malloc(sizeof(*cache));

	assert_non_null(cache);
	assert_int_equal(frame_cache_init(cache, entries, area, ENTRY_BYTES), 0);
	return cache;
}

static void cache_destroy(struct frame_cache *cache)
{
	frame_cache_deinit(cache);
	/* And once more: nothing is left of it. */
	frame_cache_deinit(cache);
	free(cache);
}

static struct frame_key key_of(uint32_t number)
{
	return (struct frame_key){.id = 1 + number / 3, .index = number % 3, .seq = 100 + number, .seed = ~number};
}

/* Stands for the bytes of a frame. */
static void decode(struct frame_cache_entry *entry, uint32_t number)
{
	stamp_fill(entry->data, number, stamp_make(number + 1, STAMP_SMALL));
}

static bool is_decoded(const struct frame_cache_entry *entry, uint32_t number)
{
	return stamp_is(entry->data, number, stamp_make(number + 1, STAMP_SMALL));
}

/* Gets it, decodes it if need be, and lets go of it. Was it there? */
static bool visit(struct frame_cache *cache, uint32_t number)
{
	const struct frame_key key = key_of(number);
	bool decoded;
	struct frame_cache_entry *entry = frame_cache_get(cache, &key, &decoded);

	if (!decoded)
		decode(entry, number);
	assert_true(is_decoded(entry, number));
	frame_cache_release(entry);
	return decoded;
}

/* ---- the model: numbers in order of use, the last one first ---- */

struct model {
	uint32_t number[ENTRIES];
	unsigned count;
};

/* Puts a number in front; was it there? */
static bool model_visit(struct model *model, uint32_t number)
{
	unsigned at = 0;
	bool known;

	while (at < model->count && model->number[at] != number)
		at++;
	known = at < model->count;
	if (!known) {
		model->count += model->count < ENTRIES;
		at = model->count - 1;
	}
	memmove(model->number + 1, model->number, at * sizeof(model->number[0]));
	model->number[0] = number;
	return known;
}

static void model_forget(struct model *model, uint32_t number)
{
	unsigned at = 0;

	while (at < model->count && model->number[at] != number)
		at++;
	if (at == model->count)
		return;
	model->count--;
	memmove(model->number + at, model->number + at + 1, (model->count - at) * sizeof(model->number[0]));
}

/* A failed decode takes the oldest frame if the cache is full, and the place it leaves is the next to be taken. */
static void fail_to_decode(struct frame_cache *cache, struct model *model, uint32_t number)
{
	const struct frame_key key = key_of(number);
	bool decoded;
	struct frame_cache_entry *entry = frame_cache_get(cache, &key, &decoded);

	assert_int_equal(decoded, model_visit(model, number));
	if (decoded) {
		frame_cache_release(entry);
		return;
	}
	memset(entry->data, 0xee, ENTRY_BYTES);
	frame_cache_drop(entry);
	model_forget(model, number);
}

static void the_least_recently_used_goes(void **state)
{
	struct frame_cache *cache = cache_create(ENTRIES);
	struct model model = {.count = 0};
	uint64_t random = random_seed(1);
	unsigned hits = 0;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		uint32_t number = (uint32_t)random_below(&random, 2 * ENTRIES);

		if (random_below(&random, 8) == 0) {
			fail_to_decode(cache, &model, number);
		} else {
			bool known = model_visit(&model, number);

			assert_int_equal(visit(cache, number), known);
			hits += known;
		}
	}
	assert_true(hits > 2000);
	cache_destroy(cache);
}

/* Each part of the key counts. */
static void only_the_whole_key_is_found(void **state)
{
	const struct frame_key key = {.id = 7, .index = 3, .seq = 90, .seed = UINT64_C(0x123456789abcdef0)};
	struct frame_key others[] = {key, key, key, key, key, key};
	bool decoded;

	(void)state;
	others[0].id = 3;
	others[1].index = 7;
	others[2].seq++;
	others[3].seed ^= 1;
	others[4].seed ^= UINT64_C(1) << 63;
	others[5].id = 3;
	others[5].index = 7;
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct frame_cache *cache = cache_create(ENTRIES);

		frame_cache_release(frame_cache_get(cache, &key, &decoded));
		assert_false(decoded);
		frame_cache_release(frame_cache_get(cache, &others[i], &decoded));
		assert_false(decoded);
		frame_cache_release(frame_cache_get(cache, &key, &decoded));
		assert_true(decoded);
		cache_destroy(cache);
	}
}

/* Entries in use, by readers or decoders, keep their frames; the others serve, the oldest first. */
static void what_is_in_use_stays(void **state)
{
	struct frame_cache *cache = cache_create(ENTRIES);
	struct frame_cache_entry *held[ENTRIES - 1];
	bool decoded;

	(void)state;
	for (uint32_t number = 0; number < ENTRIES; number++)
		assert_false(visit(cache, number));
	for (uint32_t number = 0; number < ENTRIES - 1; number++) {
		/* Every second one for a frame of its own, not yet decoded: it takes the oldest. */
		const struct frame_key key = key_of(number % 2 ? number : number + 100);

		held[number] = frame_cache_get(cache, &key, &decoded);
		assert_int_equal(decoded, number % 2);
	}
	for (uint32_t number = 200; number < 220; number++) {
		const struct frame_key key = key_of(number);
		struct frame_cache_entry *entry = frame_cache_get(cache, &key, &decoded);

		assert_false(decoded);
		for (unsigned i = 0; i < ENTRIES - 1; i++)
			assert_ptr_not_equal(entry, held[i]);
		decode(entry, number);
		frame_cache_release(entry);
		assert_true(visit(cache, number));
	}
	for (uint32_t number = 0; number < ENTRIES - 1; number++) {
		if (number % 2)
			assert_true(is_decoded(held[number], number));
		else
			decode(held[number], number + 100);
		frame_cache_release(held[number]);
	}
	for (uint32_t number = 0; number < ENTRIES - 1; number++)
		assert_true(visit(cache, number % 2 ? number : number + 100));
	cache_destroy(cache);
}

/* ---- threads ---- */

struct crowd {
	struct frame_cache *cache;
	pthread_barrier_t start;
	uint32_t rounds;
	uint32_t numbers;
	uint64_t wanted; /* visits of each thread */
	_Atomic uint64_t decodes;
	_Atomic uint64_t failures;
	_Atomic uint64_t wrong;
	unsigned left; /* entries that have a frame in the end */
};

struct member {
	struct crowd *crowd;
	pthread_t thread;
	uint64_t random;
};

static void run_crowd(struct crowd *crowd, unsigned entries, void *(*main)(void *))
{
	struct member members[THREADS];

	crowd->cache = cache_create(entries);
	assert_int_equal(pthread_barrier_init(&crowd->start, NULL, THREADS), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		members[i] = (struct member){.crowd = crowd, .random = random_seed(i + 1)};
		assert_int_equal(pthread_create(&members[i].thread, NULL, main, &members[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(members[i].thread, NULL);
	pthread_barrier_destroy(&crowd->start);
	for (unsigned i = 0; i < entries; i++)
		crowd->left += crowd->cache->entry[i].where != 0;
	cache_destroy(crowd->cache);
}

/* All want the same frame at the same time, and decoding takes a while. */
static void *same_frame_main(void *argument)
{
	struct member *member = argument;
	struct crowd *crowd = member->crowd;

	for (uint32_t number = 0; number < crowd->rounds; number++) {
		const struct frame_key key = key_of(number);
		struct frame_cache_entry *entry;
		bool decoded;

		pthread_barrier_wait(&crowd->start);
		entry = frame_cache_get(crowd->cache, &key, &decoded);
		if (!decoded) {
			atomic_fetch_add(&crowd->decodes, 1);
			usleep((useconds_t)random_below(&member->random, 200));
			decode(entry, number);
		}
		if (!is_decoded(entry, number))
			atomic_fetch_add(&crowd->wrong, 1);
		frame_cache_release(entry);
	}
	return NULL;
}

static void a_frame_is_decoded_once(void **state)
{
	struct crowd crowd = {.rounds = FIXTURE_IS_TSAN ? 500 : 3000};

	(void)state;
	run_crowd(&crowd, ENTRIES, same_frame_main);
	assert_int_equal(crowd.wrong, 0);
	assert_int_equal(crowd.decodes, crowd.rounds);
	assert_int_equal(crowd.left, ENTRIES);
}

/* The same where no decode succeeds: each thread tries for itself and nobody gets anything. */
static void *bad_frame_main(void *argument)
{
	struct member *member = argument;
	struct crowd *crowd = member->crowd;

	for (uint32_t number = 0; number < crowd->rounds; number++) {
		const struct frame_key key = key_of(number);
		struct frame_cache_entry *entry;
		bool decoded;

		pthread_barrier_wait(&crowd->start);
		entry = frame_cache_get(crowd->cache, &key, &decoded);
		if (decoded) {
			atomic_fetch_add(&crowd->wrong, 1);
			frame_cache_release(entry);
			continue;
		}
		atomic_fetch_add(&crowd->failures, 1);
		usleep((useconds_t)random_below(&member->random, 100));
		frame_cache_drop(entry);
	}
	return NULL;
}

static void a_bad_frame_fails_for_everyone(void **state)
{
	struct crowd crowd = {.rounds = FIXTURE_IS_TSAN ? 500 : 3000};

	(void)state;
	run_crowd(&crowd, ENTRIES, bad_frame_main);
	assert_int_equal(crowd.wrong, 0);
	assert_int_equal(crowd.failures, (uint64_t)crowd.rounds * THREADS);
	assert_int_equal(crowd.left, 0);
}

/* Any frames, and too few entries for all threads: some must wait until one is free. */
static void *few_entries_main(void *argument)
{
	struct member *member = argument;
	struct crowd *crowd = member->crowd;

	for (uint64_t i = 0; i < crowd->wanted; i++) {
		uint32_t number = (uint32_t)random_below(&member->random, crowd->numbers);
		const struct frame_key key = key_of(number);
		bool decoded;
		struct frame_cache_entry *entry = frame_cache_get(crowd->cache, &key, &decoded);

		if (!decoded && random_below(&member->random, 10) == 0) {
			memset(entry->data, 0xee, ENTRY_BYTES);
			frame_cache_drop(entry);
			continue;
		}
		if (!decoded) {
			atomic_fetch_add(&crowd->decodes, 1);
			decode(entry, number);
		}
		if (!is_decoded(entry, number))
			atomic_fetch_add(&crowd->wrong, 1);
		frame_cache_release(entry);
	}
	return NULL;
}

static void threads_share_few_entries(void **state)
{
	(void)state;
	for (unsigned entries = 1; entries <= ENTRIES; entries++) {
		struct crowd crowd = {.numbers = 1 + entries * 3 / 2, .wanted = FIXTURE_IS_TSAN ? 5000 : 40000};

		run_crowd(&crowd, entries, few_entries_main);
		assert_int_equal(crowd.wrong, 0);
		/* Both ways were taken. */
		assert_true(crowd.decodes > crowd.wanted / 100 && crowd.decodes < THREADS * crowd.wanted * 9 / 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_recently_used_goes),
		cmocka_unit_test(only_the_whole_key_is_found),
		cmocka_unit_test(what_is_in_use_stays),
		cmocka_unit_test(a_frame_is_decoded_once),
		cmocka_unit_test(a_bad_frame_fails_for_everyone),
		cmocka_unit_test(threads_share_few_entries),
	};

	return cmocka_run_group_tests_name("frame_cache", tests, NULL, NULL);
}
