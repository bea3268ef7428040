// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sudden death. A child works on an image that the parent holds, and notes in
 * shared memory what was acknowledged; it is killed between two publication
 * steps, or anywhere. The parent opens the image and compares: acknowledged
 * granules are there, those of the request in execution are old or new.
 *
 * FOLIOSWAP_KILLS multiplies the number of kills, FOLIOSWAP_SEED starts another sequence.
 */
#include "store_crash.h"

#include <sys/wait.h>

/* The request in execution that covers a granule, or NULL. */
static const struct request *request_at(const struct crash_run *run, uint64_t granule)
{
	for (unsigned i = 0; i < WRITERS; i++) {
		const struct request *request = &run->shared->request[i];

		if (atomic_load(&request->active) && granule >= request->range.granule &&
			granule < request->range.granule + request->range.count)
			return request;
	}
	return NULL;
}

/* Every byte is that of one of the two: what a copy leaves that was cut short. */
static bool is_mixture(const uint8_t *at, uint64_t granule, uint32_t old, uint32_t new)
{
	uint8_t old_bytes[GRANULE_BYTES], new_bytes[GRANULE_BYTES];

	stamp_fill(old_bytes, granule, old);
	stamp_fill(new_bytes, granule, new);
	for (uint64_t i = 0; i < GRANULE_BYTES; i++) {
		if (at[i] != old_bytes[i] && at[i] != new_bytes[i])
			return false;
	}
	return true;
}

static void check_granule(const struct crash_run *run, const uint8_t *at, uint64_t granule)
{
	uint32_t stamp = run->shared->stamp[granule];
	const struct request *request;

	if (stamp_is(at, granule, stamp))
		return;
	request = request_at(run, granule);
	if (!request)
		fail_msg("kill %u: granule %llu is not what was acknowledged (stamp %u): %08x %08x", run->kills,
			(unsigned long long)granule, stamp, ((const uint32_t *)at)[0], ((const uint32_t *)at)[1]);
	else if (!stamp_is(at, granule, request->stamp) &&
		 !(run->torn && !request->discard && is_mixture(at, granule, stamp, request->stamp)))
		fail_msg("kill %u: granule %llu is neither old (stamp %u) nor new (%u)", run->kills,
			(unsigned long long)granule, stamp, request->stamp);
}

static void check_bytes(struct crash_run *run, struct store *store)
{
	for (uint64_t granule = 0; granule < run->granules; granule += run->unit_granules) {
		uint64_t left = run->granules - granule;
		uint32_t count = (uint32_t)(left < run->unit_granules ? left : run->unit_granules);

		assert_int_equal(store_read(store_io(store, 0), granule, count, run->buffer), 0);
		for (uint32_t i = 0; i < count; i++)
			check_granule(run, run->buffer + i * GRANULE_BYTES, granule + i);
	}
}

/* Pages of the file are those that are accounted for: whatever the dead one had in work was given back. */
static void check_memory(const struct crash_run *run, struct store *store)
{
	const struct superblock *super = store->image.super;
	uint64_t most = IMAGE_ALIGN + gauge_get(&store->gauges->arena_ready_bytes) +
			gauge_get(&store->gauges->records_ready_bytes);

	room_update_gauges(store);
	for (int region = 0; region < REGION_ARENA; region++) {
		if (region != REGION_RECORDS)
			most += round_up_u64(super->region[region].bytes, GRANULE_BYTES);
	}
	if (fixture_file_memory(run->fd) > most)
		fail_msg("kill %u: the image takes %llu bytes, %llu are accounted for", run->kills,
			(unsigned long long)fixture_file_memory(run->fd), (unsigned long long)most);
	if (store->gauges->arena_ready_bytes + store->gauges->records_ready_bytes > super->limit_bytes)
		fail_msg("kill %u: %llu bytes of arena and %llu of records are ready, the limit is %llu", run->kills,
			(unsigned long long)store->gauges->arena_ready_bytes,
			(unsigned long long)store->gauges->records_ready_bytes, (unsigned long long)super->limit_bytes);
}

/* As the transport does it: what was not answered is executed again. */
static void execute_again(struct crash_run *run, struct store *store)
{
	for (unsigned i = 0; i < WRITERS; i++) {
		struct request *request = &run->shared->request[i];
		struct writer writer = {
			.run = run, .store = store, .io = store_io(store, 0), .index = i, .buffer = run->buffer};

		if (!atomic_load(&request->active))
			continue;
		/* Refused for want of room it is given up: it may be half old, half new. */
		if (execute(&writer, request->range, request->discard, request->stamp) != 0)
			execute(&writer, request->range, true, 0);
	}
}

/* All slots can be had: one write to as many units takes them all, and no object is made. */
static void check_slots(struct crash_run *run, struct store *store)
{
	uint64_t direct = store_io_stats(store_io(store, 0))->direct_objects;
	struct writer writer = {.run = run, .store = store, .io = store_io(store, 0), .buffer = run->buffer};

	assert_int_equal(store_flush(store, FIXTURE_WAIT_NS), 0);
	assert_int_equal(store->staging.free, run->config.slots);
	for (unsigned i = 0; i < run->config.slots; i++)
		execute(&writer, (struct range){i * run->unit_granules, 1}, false, stamp_make(i + 1, STAMP_TEXT));
	if (run->config.limit_bytes == UINT64_MAX)
		assert_int_equal(store->staging.free, 0);
	assert_int_equal(store_io_stats(store_io(store, 0))->direct_objects, direct);
	fixture_check(store, "slots taken again");
}

static void open_and_check(struct crash_run *run)
{
	struct store *store = fixture_open(run->fd);

	assert_int_equal(store->gauges->lost_granules, 0);
	fixture_check(store, "after a kill");
	check_memory(run, store);
	check_bytes(run, store);
	execute_again(run, store);
	fixture_check(store, "after executing again");
	if (run->kills % 8 == 0) {
		check_slots(run, store);
		check_bytes(run, store);
	}
	store_close(store);
}

static void run_init(struct crash_run *run, struct store_config config, uint64_t seed)
{
	*run = (struct crash_run){
		.config = config,
		.granules = config.size_bytes / GRANULE_BYTES,
		.unit_granules = config.unit_bytes / GRANULE_BYTES,
		.random = random_seed(seed + 1000 * fixture_number("FOLIOSWAP_SEED", 0)),
		.buffer = aligned_alloc(4096, config.unit_bytes),
		.fd = fixture_format(&config),
	};
	run->shared = mmap(NULL, sizeof(*run->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(run->shared != MAP_FAILED);
	assert_non_null(run->buffer);
	assert_true(run->granules <= GRANULES_MAX);
}

static void run_deinit(struct crash_run *run)
{
	munmap(run->shared, sizeof(*run->shared));
	free(run->buffer);
	close(run->fd);
}

static pid_t start_child(struct crash_run *run, void (*child)(struct crash_run *run))
{
	pid_t pid;

	random_next(&run->random);
	atomic_store(&run->shared->opened, false);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		child(run);
		_exit(3);
	}
	return pid;
}

/* True when it was killed, false when it ended by itself without having found anything wrong. */
static bool wait_child(struct crash_run *run, pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
		run->kills++;
		return true;
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("after %u kills, child: status 0x%x: %s", run->kills, status, run->shared->failure);
	return false;
}

static void wait_opened(const struct crash_run *run)
{
	for (unsigned i = 0; i < 200000 && !atomic_load(&run->shared->opened); i++)
		usleep(50);
}

/* Kills in the middle of recoveries. */
static void kill_recoveries(struct crash_run *run, unsigned count, uint64_t most_us)
{
	while (count--) {
		pid_t pid = start_child(run, child_that_recovers);

		usleep((useconds_t)random_below(&run->random, most_us));
		kill(pid, SIGKILL);
		wait_child(run, pid);
	}
}

/* Growing has a test of its own. */
#define HOOKS HOOK_GROW_MAP

static void kill_at_hooks(struct store_config config, uint64_t seed, bool threads)
{
	static const int occurrences[] = {1, 2, 3, 10, 47};
	unsigned killed[HOOKS] = {0};
	struct crash_run run;

	run_init(&run, config, seed);
	run.torn = threads;
	for (uint64_t round = 0; round < kills_scale(); round++) {
		for (int hook = 0; hook < HOOKS; hook++) {
			for (unsigned i = 0; i < sizeof(occurrences) / sizeof(occurrences[0]); i++) {
				doom.hook = (enum store_hook)hook;
				doom.left = occurrences[i];
				if (wait_child(&run,
					    start_child(&run, threads ? child_of_many_threads : child_of_one_thread)))
					killed[hook]++;
				if (i == 2)
					kill_recoveries(&run, 2, 20000);
				open_and_check(&run);
			}
		}
	}
	for (int hook = 0; hook < HOOKS; hook++) {
		if (killed[hook] < 3)
			fail_msg("hook %d came up only %u times", hook, killed[hook]);
	}
	print_message("%u kills, %llu operations\n", run.kills, (unsigned long long)run.shared->acknowledged);
	run_deinit(&run);
}

static void kill_at_random(struct store_config config, uint64_t seed, uint64_t kills)
{
	struct crash_run run;

	run_init(&run, config, seed);
	run.torn = true;
	doom.left = -1;
	for (uint64_t i = 0; i < kills * kills_scale(); i++) {
		pid_t pid = start_child(&run, child_of_many_threads);

		wait_opened(&run);
		usleep((useconds_t)random_below(&run.random, i % 4 == 0 ? 60000 : 4000));
		kill(pid, SIGKILL);
		assert_true(wait_child(&run, pid));
		open_and_check(&run);
	}
	print_message("%u kills, %llu operations\n", run.kills, (unsigned long long)run.shared->acknowledged);
	run_deinit(&run);
}

static struct store_config small_units(void)
{
	struct store_config config = fixture_config(64 * KIB, 16 * KIB, 12 * MIB - 11 * GRANULE_BYTES);

	config.slots = 2;
	return config;
}

static struct store_config large_units(void)
{
	struct store_config config = fixture_config(2 * MIB, 64 * KIB, 14 * MIB);

	config.slots = 2;
	config.codec = CODEC_ZSTD;
	return config;
}

static void hooks_small_units(void **state)
{
	(void)state;
	kill_at_hooks(small_units(), 1, false);
}

static void hooks_large_units(void **state)
{
	(void)state;
	kill_at_hooks(large_units(), 2, false);
}

static void hooks_under_threads(void **state)
{
	(void)state;
	kill_at_hooks(small_units(), 3, true);
}

static void random_small_units(void **state)
{
	(void)state;
	kill_at_random(small_units(), 4, 60);
}

static void random_large_units(void **state)
{
	(void)state;
	kill_at_random(large_units(), 5, 30);
}

static void random_under_limit(void **state)
{
	struct store_config config = small_units();

	(void)state;
	config.limit_bytes = fixture_limit(config, 3 * MIB);
	config.reserve_bytes = 2 * MIB;
	kill_at_random(config, 6, 40);
}

/* An image with much in it dies in one recovery after the other; the one that gets through finds everything. */
static void recoveries(void **state)
{
	struct crash_run run;

	(void)state;
	run_init(&run, small_units(), 7);
	run.torn = true;
	for (unsigned round = 0; round < 3 * kills_scale(); round++) {
		pid_t pid;

		doom.left = -1;
		pid = start_child(&run, child_of_many_threads);
		wait_opened(&run);
		usleep(150000);
		kill(pid, SIGKILL);
		wait_child(&run, pid);
		kill_recoveries(&run, 12, 3000);
		kill_recoveries(&run, 12, 15000);
		open_and_check(&run);
	}
	run_deinit(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hooks_small_units),
		cmocka_unit_test(hooks_large_units),
		cmocka_unit_test(hooks_under_threads),
		cmocka_unit_test(random_small_units),
		cmocka_unit_test(random_large_units),
		cmocka_unit_test(random_under_limit),
		cmocka_unit_test(recoveries),
	};

	cmocka_set_test_filter(getenv("CMOCKA_TEST_FILTER"));
	return cmocka_run_group_tests_name("store_crash", tests, NULL, NULL);
}
