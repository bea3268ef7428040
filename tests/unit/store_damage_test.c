// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Damage: words, records, slot headers, frame tables and frames of a closed
 * image, and of a running store, are overwritten. What no damage concerns must
 * be there byte for byte, nothing may be wrong bytes, and what was lost must
 * become good again.
 *
 * FOLIOSWAP_OPS multiplies the rounds, FOLIOSWAP_SEED starts another sequence.
 */
#include "store_damage.h"

/* ---- what came of it ---- */

static bool is_zeros(const uint8_t *at)
{
	static const uint8_t zeros[GRANULE_BYTES];

	return memcmp(at, zeros, GRANULE_BYTES) == 0;
}

static void check_granule(struct damaged *run, uint64_t granule, int result)
{
	enum fate fate = (enum fate)run->fate[granule];
	bool right = result == 0 && stamp_is(run->buffer, granule, run->stamp[granule]);
	bool bad = result == -EIO && is_zeros(run->buffer);

	if (fate == FATE_ANY || (fate == FATE_EXACT && right) || (fate == FATE_BAD && bad) ||
		(fate == FATE_CONCERNED && (right || bad)))
		return;
	fail_msg("round %u: granule %llu (%s): answer %d, bytes %s. Damage: %s", run->round,
		(unsigned long long)granule,
		fate == FATE_EXACT ? "of no concern"
		: fate == FATE_BAD ? "bad"
				   : "concerned",
		result, right ? "right" : "wrong", run->what);
}

/* Granule by granule, then unit by unit: the same answer, damaged granules zero, the others delivered. */
static void check_reads(struct damaged *run, struct store *store, uint8_t *ret_bad)
{
	struct store_io *io = store_io(store, 0);

	for (uint64_t granule = 0; granule < run->granules; granule++) {
		int result = store_read(io, granule, 1, run->buffer);

		check_granule(run, granule, result);
		ret_bad[granule] = result != 0;
		run->lost += result != 0;
	}
	for (uint64_t granule = 0; granule < run->granules; granule += run->unit_granules) {
		uint64_t left = run->granules - granule;
		uint32_t count = (uint32_t)(left < run->unit_granules ? left : run->unit_granules);
		bool any = memchr(ret_bad + granule, 1, count);

		if (store_read(io, granule, count, run->buffer) != (any ? -EIO : 0))
			fail_msg("round %u: unit of granule %llu. Damage: %s", run->round, (unsigned long long)granule,
				run->what);
		for (uint32_t i = 0; i < count; i++) {
			const uint8_t *at = run->buffer + i * GRANULE_BYTES;

			if (ret_bad[granule + i] ? !is_zeros(at)
						 : (run->fate[granule + i] != FATE_ANY &&
							   !stamp_is(at, granule + i, run->stamp[granule + i])))
				fail_msg("round %u: granule %llu in a unit. Damage: %s", run->round,
					(unsigned long long)granule + i, run->what);
		}
	}
}

static void check_store(struct damaged *run, struct store *store, const char *when)
{
	char text[1000];

	snprintf(text, sizeof(text), "%s, round %u, damage: %s", when, run->round, run->what);
	fixture_check(store, text);
}

/* What was lost is good again once it is written or discarded, and then nothing is left of the damage. */
static void heal(struct damaged *run, struct store *store, const uint8_t *bad, uint32_t *stamp)
{
	struct store_io *io = store_io(store, 1);

	for (uint64_t granule = 0; granule < run->granules; granule++) {
		stamp[granule] = run->stamp[granule];
		if (!bad[granule] && run->fate[granule] != FATE_ANY)
			continue;
		stamp[granule] = random_below(&run->random, 3) ? stamp_make(run->round, STAMP_HALF) : 0;
		stamp_fill(run->buffer, granule, stamp[granule]);
		if (stamp[granule])
			assert_int_equal(store_write(io, granule, 1, run->buffer), 0);
		else
			assert_int_equal(store_discard(io, granule, 1), 0);
		if (random_below(&run->random, 4) == 0)
			store_step(store, false);
	}
	assert_int_equal(store->gauges->lost_granules, 0);
}

static void check_healed(struct damaged *run, struct store *store, const uint32_t *stamp)
{
	for (uint64_t granule = 0; granule < run->granules; granule++) {
		int result = store_read(store_io(store, 1), granule, 1, run->buffer);

		if (result != 0 || !stamp_is(run->buffer, granule, stamp[granule]))
			fail_msg("round %u: granule %llu is not good again (%d). Damage: %s", run->round,
				(unsigned long long)granule, result, run->what);
	}
}

static void end_round(struct damaged *run)
{
	uint8_t *bad = calloc(run->granules, 1);
	uint32_t *stamp = calloc(run->granules, sizeof(*stamp));
	struct store *store;
	int result;

	assert_true(bad && stamp);
	image_unmap(&run->image);
	result = store_open(&store, run->fd);
	if (result != 0)
		fail_msg("round %u: open: %d. Damage: %s", run->round, result, run->what);
	check_store(run, store, "opened");
	check_reads(run, store, bad);
	/* Background work walks over damaged objects and leaves the rest whole. */
	if (run->round % 3 == 0) {
		assert_int_equal(store_compact(store, FIXTURE_WAIT_NS, NULL, NULL), 0);
		check_store(run, store, "compacted");
		check_reads(run, store, bad);
	}
	/* A second recovery finds the same. */
	if (run->round % 5 == 0) {
		store_close(store);
		store = fixture_open(run->fd);
		check_store(run, store, "opened again");
		check_reads(run, store, bad);
	}
	heal(run, store, bad, stamp);
	check_store(run, store, "healed");
	check_healed(run, store, stamp);
	assert_int_equal(store_compact(store, FIXTURE_WAIT_NS, NULL, NULL), 0);
	check_store(run, store, "healed and compacted");
	check_healed(run, store, stamp);
	store_close(store);
	close(run->fd);
	free(bad);
	free(stamp);
}

static void damage_closed(struct store_config config, uint64_t seed, unsigned rounds)
{
	struct damaged run;

	run_init(&run, config, seed);
	/* Undamaged, as the proof that damage makes the difference. */
	begin_round(&run);
	end_round(&run);
	assert_int_equal(run.lost, 0);
	rounds *= (unsigned)fixture_number("FOLIOSWAP_OPS", 1);
	for (unsigned i = 0; i < rounds; i++) {
		begin_round(&run);
		damage(&run, i % 2 ? 2 : 2 + (unsigned)random_below(&run.random, 12));
		work_out_fates(&run);
		end_round(&run);
	}
	assert_true(run.lost > rounds);
	print_message("%u rounds, %llu granules lost\n", rounds, (unsigned long long)run.lost);
	run_deinit(&run);
}

static struct store_config config_of(uint64_t unit_bytes, uint64_t frame_bytes, uint64_t size_bytes)
{
	struct store_config config = fixture_config(unit_bytes, frame_bytes, size_bytes);

	config.codec = frame_bytes > 8 * KIB ? CODEC_ZSTD : CODEC_LZ4;
	return config;
}

static void closed_small_units(void **state)
{
	(void)state;
	damage_closed(config_of(64 * KIB, 4 * KIB, 2 * MIB + 3 * GRANULE_BYTES), 1, 150);
}

static void closed_larger_frames(void **state)
{
	(void)state;
	damage_closed(config_of(64 * KIB, 16 * KIB, 2 * MIB), 2, 150);
}

static void closed_large_units(void **state)
{
	(void)state;
	damage_closed(config_of(2 * MIB, 64 * KIB, 6 * MIB), 3, 40);
}

/* ---- under a running store ---- */

/* Turns one bit of a frame of the object at granule. Returns the frame's granules; none: same-filled, or in a slot. */
static struct range damage_running(struct damaged *run, struct store *store, uint64_t granule)
{
	map_word word = map_load(store, granule);
	struct object object;
	struct frame frame;
	uint32_t index;
	uint8_t *payload;

	if (!map_word_is_object(word))
		return (struct range){0, 0};
	record_read(&store->image.records[word], &object);
	if (object.flags & RECORD_SAME)
		return (struct range){0, 0};
	payload = store->image.arena + (place_offset_lines(object.place) << POOL_LINE_SHIFT);
	index = (uint32_t)(granule - object.first) >> object.frame_order;
	assert_int_equal(frame_find(&object, payload, index, &frame), 0);
	payload += frame.stored - payload + random_below(&run->random, frame.stored_bytes);
	*payload ^= (uint8_t)(1 << random_below(&run->random, 8));
	return (struct range){
		object.first + (index << object.frame_order), (uint32_t)(frame.plain_bytes / GRANULE_BYTES)};
}

/* Reads of the damaged frame are refused and counted, until its granules are written again, one by one. */
static void check_running_damage(struct damaged *run, struct store *store, struct range range, map_word word)
{
	uint64_t before = store_io_stats(store_io(store, 0))->bad_frames;
	uint8_t *bad = calloc(run->granules, 1);

	assert_non_null(bad);
	for (uint32_t i = 0; i < range.count; i++) {
		if (map_load(store, range.granule + i) == word)
			run->fate[range.granule + i] = FATE_BAD;
	}
	check_reads(run, store, bad);
	assert_true(store_io_stats(store_io(store, 0))->bad_frames > before);
	/* Neither rewriting nor moving makes it better or worse. */
	assert_int_equal(store_compact(store, FIXTURE_WAIT_NS, NULL, NULL), 0);
	check_reads(run, store, bad);
	for (uint32_t i = 0; i < range.count; i++) {
		struct range one = {range.granule + i, 1};

		if (run->fate[one.granule] == FATE_EXACT)
			continue;
		run->fate[one.granule] = FATE_EXACT;
		write_stamped(run, store, one, run->stamp[one.granule]);
		check_reads(run, store, bad);
		fixture_check(store, "one granule of a damaged frame written");
	}
	free(bad);
}

static void running(void **state)
{
	struct damaged run;
	struct store *store;
	unsigned damaged = 0;

	(void)state;
	run_init(&run, config_of(64 * KIB, 16 * KIB, 2 * MIB), 4);
	for (unsigned round = 0; round < 100; round++) {
		uint64_t granule;
		struct range range;
		map_word word;

		begin_round(&run);
		image_unmap(&run.image);
		store = fixture_open(run.fd);
		granule = pick_granule(&run);
		word = map_load(store, granule);
		range = damage_running(&run, store, granule);
		if (range.count) {
			damaged++;
			check_running_damage(&run, store, range, word);
		}
		store_close(store);
		close(run.fd);
	}
	assert_true(damaged > 30);
	run_deinit(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_small_units),
		cmocka_unit_test(closed_larger_frames),
		cmocka_unit_test(closed_large_units),
		cmocka_unit_test(running),
	};

	cmocka_set_test_filter(getenv("CMOCKA_TEST_FILTER"));
	return cmocka_run_group_tests_name("store_damage", tests, NULL, NULL);
}
