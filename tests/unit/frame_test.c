// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frames: every codec, frame order and odd length back byte for byte; damage
 * costs its own frame and no other; a decoded frame is used again only for the
 * object it came from.
 */
#include "store_fixture.h"

#define GRANULES_MAX 64
#define OBJECT_ID 7
#define SMALL_ENTRIES 4
#define SMALL_BYTES (64 * KIB)
#define LARGE_ENTRIES 2
#define LARGE_BYTES (GRANULES_MAX * GRANULE_BYTES)

struct fixture {
	struct compressor *compressor;
	struct decompressor *decompressor;
	struct frame_cache small;
	struct frame_cache large;
	struct stats_io *stats;
	struct object object;
	uint8_t *plain;
	uint8_t *payload;
	uint8_t *out;
	uint8_t *area; /* both caches */
	uint64_t random;
};

static const struct codec_choice choices[] = {
	{CODEC_COPY, 0}, {CODEC_LZ4, 1}, {CODEC_LZ4HC, 4}, {CODEC_ZSTD, 1}, {CODEC_ZSTD, 7}};
#define CHOICES (sizeof(choices) / sizeof(choices[0]))

static void caches_create(struct fixture *fixture)
{
	assert_int_equal(frame_cache_init(&fixture->small, SMALL_ENTRIES, fixture->area, SMALL_BYTES), 0);
	assert_int_equal(frame_cache_init(&fixture->large, LARGE_ENTRIES, fixture->area + SMALL_ENTRIES * SMALL_BYTES,
				 LARGE_BYTES),
		0);
}

static void caches_destroy(struct fixture *fixture)
{
	frame_cache_deinit(&fixture->small);
	frame_cache_deinit(&fixture->large);
}

static void fixture_create(struct fixture *fixture, struct codec_choice choice)
{
	uint64_t bytes = GRANULES_MAX * GRANULE_BYTES;

	memset(fixture, 0, sizeof(*fixture));
	fixture->random = random_seed(choice.id + 1);
	fixture->plain = malloc(bytes);
	fixture->payload = aligned_alloc(64, round_up_u64(frame_payload_max_bytes(bytes) + 1, 64));
	fixture->out = malloc(bytes);
	fixture->area = malloc(SMALL_ENTRIES * SMALL_BYTES + LARGE_ENTRIES * LARGE_BYTES);
	fixture->stats = aligned_alloc(64, sizeof(*fixture->stats));
	assert_true(fixture->plain && fixture->payload && fixture->out && fixture->area && fixture->stats);
	memset(fixture->stats, 0, sizeof(*fixture->stats));
	assert_int_equal(compressor_create(&fixture->compressor, choice, bytes), 0);
	assert_int_equal(decompressor_create(&fixture->decompressor, bytes), 0);
	caches_create(fixture);
}

static void fixture_destroy(struct fixture *fixture)
{
	compressor_destroy(fixture->compressor);
	decompressor_destroy(fixture->decompressor);
	caches_destroy(fixture);
	free(fixture->plain);
	free(fixture->payload);
	free(fixture->out);
	free(fixture->area);
	free(fixture->stats);
}

/* An object of granules of the kinds in mask, as object_create would make it. */
static void encode(struct fixture *fixture, uint32_t count, unsigned frame_order, unsigned kinds)
{
	static uint64_t seq = 40;

	fixture->object = (struct object){
		.first = 1024, .count = count, .filled = count, .frame_order = (uint8_t)frame_order, .seq = ++seq};
	for (uint32_t i = 0; i < count; i++) {
		enum stamp_kind kind;

		do
			kind = (enum stamp_kind)random_below(&fixture->random, STAMP_KINDS);
		while (!(kinds & 1U << kind));
		stamp_fill(fixture->plain + i * GRANULE_BYTES, i, stamp_make((uint32_t)seq, kind));
	}
	fixture->payload[frame_payload_max_bytes(count * GRANULE_BYTES)] = 0xee;
	frame_encode(fixture->compressor, &fixture->object, fixture->plain, fixture->payload);
}

#define ALL_KINDS ((1U << STAMP_KINDS) - 1)

static int read_part(struct fixture *fixture, uint32_t first, uint32_t count)
{
	const struct frame_reader reader = {fixture->decompressor, &fixture->small, &fixture->large, fixture->stats};

	memset(fixture->out, 0x5a, count * GRANULE_BYTES);
	return frame_read(&reader, OBJECT_ID, &fixture->object, fixture->payload, first, count, fixture->out);
}

static bool out_is_plain(const struct fixture *fixture, uint32_t first, uint32_t count)
{
	return memcmp(fixture->out, fixture->plain + first * GRANULE_BYTES, count * GRANULE_BYTES) == 0;
}

/* The table as the format says: ascending ends, every frame shorter than its plain bytes, or raw. */
static void check_format(const struct fixture *fixture)
{
	const struct object *object = &fixture->object;
	const struct frame_entry *table = (const struct frame_entry *)fixture->payload;
	uint32_t frames = (object->count + (1U << object->frame_order) - 1) / (1U << object->frame_order), end = 0;
	bool shrank = false;

	for (uint32_t i = 0; i < frames; i++) {
		uint64_t left = (object->count - (i << object->frame_order)) * GRANULE_BYTES;
		uint64_t plain =
			left < GRANULE_BYTES << object->frame_order ? left : GRANULE_BYTES << object->frame_order;
		const uint8_t *stored = fixture->payload + frames * sizeof(*table) + end;

		assert_true(table[i].end > end);
		assert_true(table[i].end - end <= plain);
		shrank |= table[i].end - end < plain;
		if (table[i].end - end == plain)
			assert_memory_equal(stored, fixture->plain + (i << object->frame_order) * GRANULE_BYTES, plain);
		end = table[i].end;
	}
	assert_int_equal(object->stored_bytes, frames * sizeof(*table) + end);
	assert_true(object->stored_bytes <= frame_payload_max_bytes(object->count * GRANULE_BYTES));
	assert_int_equal(object->codec, shrank ? compressor_choice(fixture->compressor).id : CODEC_COPY);
	assert_int_equal(fixture->payload[frame_payload_max_bytes(object->count * GRANULE_BYTES)], 0xee);
}

static void round_trips(void **state)
{
	static const uint32_t counts[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 63, 64};
	struct fixture fixture;

	(void)state;
	for (unsigned choice = 0; choice < CHOICES; choice++) {
		fixture_create(&fixture, choices[choice]);
		for (unsigned frame_order = 0; frame_order <= 6; frame_order++) {
			for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
				encode(&fixture, counts[i], frame_order, ALL_KINDS);
				check_format(&fixture);
				assert_int_equal(read_part(&fixture, 0, counts[i]), 0);
				assert_true(out_is_plain(&fixture, 0, counts[i]));
				for (unsigned part = 0; part < 12; part++) {
					uint32_t first = (uint32_t)random_below(&fixture.random, counts[i]);
					uint32_t count = 1 + (uint32_t)random_below(&fixture.random, counts[i] - first);

					assert_int_equal(read_part(&fixture, first, count), 0);
					assert_true(out_is_plain(&fixture, first, count));
				}
			}
		}
		assert_int_equal(fixture.stats->bad_frames, 0);
		fixture_destroy(&fixture);
	}
}

static void same_filled_needs_no_payload(void **state)
{
	const struct frame_reader reader = {NULL, NULL, NULL, NULL};
	struct object object = {.first = 0,
		.count = 5,
		.filled = 5,
		.flags = RECORD_SAME,
		.place = UINT64_C(0x0123456789abcdef),
		.seq = 1};
	uint64_t out[3 * GRANULE_BYTES / 8 + 1];

	(void)state;
	out[3 * GRANULE_BYTES / 8] = 1;
	assert_int_equal(frame_read(&reader, 1, &object, NULL, 1, 3, (uint8_t *)out), 0);
	for (unsigned i = 0; i < 3 * GRANULE_BYTES / 8; i++)
		assert_int_equal(out[i], object.place);
	assert_int_equal(out[3 * GRANULE_BYTES / 8], 1);
}

/* Everything is read at once and granule by granule: the frames in `bad` are EIO and zero, all else is there. */
static void expect_bad_frames(struct fixture *fixture, uint64_t bad, const char *what)
{
	const struct object *object = &fixture->object;
	uint32_t frames = frame_count(object->count, object->frame_order);
	uint64_t bad_before = fixture->stats->bad_frames;
	static const uint8_t zeros[GRANULE_BYTES];

	bad &= frames == 64 ? UINT64_MAX : (UINT64_C(1) << frames) - 1;
	if (read_part(fixture, 0, object->count) != (bad ? -EIO : 0))
		fail_msg("%s: whole read", what);
	for (uint32_t i = 0; i < object->count; i++) {
		bool is_bad = bad >> (i >> object->frame_order) & 1;
		const uint8_t *at = fixture->out + i * GRANULE_BYTES;

		if (memcmp(at, is_bad ? zeros : fixture->plain + i * GRANULE_BYTES, GRANULE_BYTES) != 0)
			fail_msg("%s: granule %u of a whole read", what, i);
	}
	assert_int_equal(fixture->stats->bad_frames - bad_before, __builtin_popcountll(bad));
	for (uint32_t i = 0; i < object->count; i++) {
		bool is_bad = bad >> (i >> object->frame_order) & 1;

		caches_destroy(fixture);
		caches_create(fixture);
		if (read_part(fixture, i, 1) != (is_bad ? -EIO : 0))
			fail_msg("%s: granule %u alone: answer", what, i);
		if (memcmp(fixture->out, is_bad ? zeros : fixture->plain + i * GRANULE_BYTES, GRANULE_BYTES) != 0)
			fail_msg("%s: granule %u alone: bytes", what, i);
	}
}

static struct frame_entry *table_of(struct fixture *fixture)
{
	return (struct frame_entry *)fixture->payload;
}

static void damaged_table(void **state)
{
	struct fixture fixture;

	(void)state;
	for (unsigned choice = 0; choice < CHOICES; choice++) {
		fixture_create(&fixture, choices[choice]);
		for (unsigned frame_order = 0; frame_order <= 3; frame_order++) {
			uint32_t frames;

			encode(&fixture, 29, frame_order, ALL_KINDS);
			frames = frame_count(29, frame_order);
			for (uint32_t i = 0; i < frames; i++) {
				const uint32_t was = table_of(&fixture)[i].end;
				const uint32_t ends[] = {0, was - 1, was + 1, was ^ 0x80000000, UINT32_MAX,
					i ? table_of(&fixture)[i - 1].end : 0};

				/* This frame's end, and the next one's beginning. */
				for (unsigned j = 0; j < 6; j++) {
					table_of(&fixture)[i].end = ends[j];
					expect_bad_frames(&fixture, UINT64_C(3) << i, "end");
				}
				table_of(&fixture)[i].end = was;
				table_of(&fixture)[i].sum ^= 0x10;
				expect_bad_frames(&fixture, UINT64_C(1) << i, "sum");
				table_of(&fixture)[i].sum ^= 0x10;
			}
			expect_bad_frames(&fixture, 0, "undamaged");
		}
		fixture_destroy(&fixture);
	}
}

static void damaged_bytes(void **state)
{
	struct fixture fixture;

	(void)state;
	for (unsigned choice = 0; choice < CHOICES; choice++) {
		fixture_create(&fixture, choices[choice]);
		for (unsigned round = 0; round < 60; round++) {
			unsigned frame_order = round % 4;
			uint32_t frames, index, begin, at;
			uint8_t *stored;

			encode(&fixture, 23, frame_order, ALL_KINDS);
			frames = frame_count(23, frame_order);
			index = (uint32_t)random_below(&fixture.random, frames);
			begin = index ? table_of(&fixture)[index - 1].end : 0;
			stored = fixture.payload + frames * sizeof(struct frame_entry);
			at = begin + (uint32_t)random_below(&fixture.random, table_of(&fixture)[index].end - begin);
			stored[at] ^= (uint8_t)(1 << random_below(&fixture.random, 8));
			expect_bad_frames(&fixture, UINT64_C(1) << index, "one bit");
		}
		fixture_destroy(&fixture);
	}
}

/* The same good bytes under a record that says something else must not be taken for good. */
static void record_and_payload_must_belong_together(void **state)
{
	struct fixture fixture;
	struct object good;

	(void)state;
	for (unsigned choice = 0; choice < CHOICES; choice++) {
		fixture_create(&fixture, choices[choice]);
		encode(&fixture, 16, 2, 1U << STAMP_TEXT);
		good = fixture.object;
		for (int change = -1; change <= 1; change += 2) {
			fixture.object.first = good.first + change;
			expect_bad_frames(&fixture, UINT64_MAX, "first");
			fixture.object = good;
			fixture.object.seq = good.seq + change;
			expect_bad_frames(&fixture, UINT64_MAX, "seq");
			fixture.object = good;
		}
		if (good.codec != CODEC_COPY) {
			fixture.object.codec = good.codec == CODEC_LZ4 ? CODEC_LZ4HC : CODEC_LZ4;
			expect_bad_frames(&fixture, UINT64_MAX, "codec");
			fixture.object = good;
		}
		/* Shorter: the table has another length, the frames lie elsewhere. */
		fixture.object.count = 12;
		expect_bad_frames(&fixture, UINT64_MAX, "count");
		fixture.object = good;
		fixture.object.stored_bytes--;
		expect_bad_frames(&fixture, UINT64_C(1) << 3, "stored");
		fixture.object.stored_bytes = sizeof(struct frame_entry);
		expect_bad_frames(&fixture, UINT64_MAX, "stored less than the table");
		fixture_destroy(&fixture);
	}
}

/* Granule by granule: each frame is decoded once. */
static void hits_are_counted(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_create(&fixture, choices[1]);
	encode(&fixture, 64, 3, 1U << STAMP_TEXT);
	for (uint32_t i = 0; i < 64; i++) {
		assert_int_equal(read_part(&fixture, i, 1), 0);
		assert_true(out_is_plain(&fixture, i, 1));
		assert_int_equal(fixture.stats->frame_misses, i / 8 + 1);
		assert_int_equal(fixture.stats->frame_hits, i - i / 8);
		assert_int_equal(fixture.stats->read_decoded_bytes, (i / 8 + 1) * 8 * GRANULE_BYTES);
	}
	/* The four last used are there still, the one before them is not. */
	for (uint32_t frame = 4; frame < 8; frame++)
		assert_int_equal(read_part(&fixture, frame * 8, 1), 0);
	assert_int_equal(fixture.stats->frame_misses, 8);
	assert_int_equal(read_part(&fixture, 3 * 8, 1), 0);
	assert_int_equal(fixture.stats->frame_misses, 9);
	/* A whole frame goes straight to the reader and is neither. */
	assert_int_equal(read_part(&fixture, 8, 8), 0);
	assert_true(out_is_plain(&fixture, 8, 8));
	assert_int_equal(fixture.stats->frame_misses, 9);
	assert_int_equal(fixture.stats->frame_hits, 56 + 4);
	fixture_destroy(&fixture);
}

/* The id comes back with other bytes: only (id, seq) together name an object. */
static void never_a_stale_hit(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_create(&fixture, choices[3]);
	for (unsigned round = 0; round < 300; round++) {
		uint32_t count = 2 + (uint32_t)random_below(&fixture.random, 20);

		encode(&fixture, count, 1 + round % 3, ALL_KINDS);
		for (unsigned i = 0; i < 8; i++) {
			uint32_t first = (uint32_t)random_below(&fixture.random, count);

			assert_int_equal(read_part(&fixture, first, 1), 0);
			assert_true(out_is_plain(&fixture, first, 1));
		}
	}
	assert_true(fixture.stats->frame_hits > 300);
	fixture_destroy(&fixture);
}

/* A damaged frame must not be remembered, nor what its entry held before. */
static void a_failed_decode_leaves_no_entry(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_create(&fixture, choices[1]);
	encode(&fixture, 8, 2, 1U << STAMP_TEXT);
	table_of(&fixture)[0].sum ^= 1;
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(read_part(&fixture, 1, 1), -EIO);
	table_of(&fixture)[0].sum ^= 1;
	assert_int_equal(read_part(&fixture, 1, 1), 0);
	assert_true(out_is_plain(&fixture, 1, 1));
	assert_int_equal(fixture.stats->frame_hits, 0);
	fixture_destroy(&fixture);
}

/* Frames of every size by turns, each in the cache that it fits into, never mix bytes. */
static void small_and_large_frames(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_create(&fixture, choices[1]);
	for (unsigned round = 0; round < 400; round++) {
		unsigned frame_order = (unsigned)random_below(&fixture.random, 7);
		uint32_t first;

		encode(&fixture, GRANULES_MAX - round % 3, frame_order, ALL_KINDS);
		for (unsigned i = 0; i < 10; i++) {
			first = (uint32_t)random_below(&fixture.random, fixture.object.count - 1);
			assert_int_equal(read_part(&fixture, first, 1 + i % 2), 0);
			assert_true(out_is_plain(&fixture, first, 1 + i % 2));
		}
	}
	fixture_destroy(&fixture);
}

static unsigned entries_of(const struct frame_cache *cache, const struct object *object)
{
	unsigned count = 0;

	for (unsigned i = 0; i < cache->entries; i++)
		count += cache->entry[i].where && cache->entry[i].seq == object->seq;
	return count;
}

/* Large frames are kept as well, as many as there are entries; small ones beside them cost none of them. */
static void large_frames_are_kept(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_create(&fixture, choices[1]);
	encode(&fixture, GRANULES_MAX, 5, 1U << STAMP_TEXT);
	for (uint32_t i = 0; i < 2 * GRANULES_MAX; i++) {
		uint32_t first = i % 2 ? GRANULES_MAX / 2 + i / 4 : i / 4;

		assert_int_equal(read_part(&fixture, first, 1), 0);
		assert_true(out_is_plain(&fixture, first, 1));
	}
	assert_int_equal(fixture.stats->frame_misses, 2);
	assert_int_equal(fixture.stats->frame_hits, 2 * GRANULES_MAX - 2);
	assert_int_equal(fixture.stats->read_decoded_bytes, GRANULES_MAX * GRANULE_BYTES);
	/* 48 granules: the second frame is as short as a small one, and lies among them. */
	encode(&fixture, 48, 5, 1U << STAMP_TEXT);
	for (unsigned round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 48; i++) {
			assert_int_equal(read_part(&fixture, i, 1), 0);
			assert_true(out_is_plain(&fixture, i, 1));
		}
	}
	assert_int_equal(fixture.stats->frame_misses, 4);
	assert_int_equal(entries_of(&fixture.large, &fixture.object), 1);
	assert_int_equal(entries_of(&fixture.small, &fixture.object), 1);
	fixture_destroy(&fixture);
}

/*
 * Frames of two objects in the same caches, small and large ones by turns: the
 * other object's is never taken for good.
 */
static void two_objects(void **state)
{
	static const unsigned orders[][2] = {{2, 2}, {2, 6}, {6, 2}, {6, 6}, {4, 5}};
	struct fixture fixture;

	(void)state;
	fixture_create(&fixture, choices[1]);
	for (unsigned pair = 0; pair < 5; pair++) {
		struct frame_reader reader = {fixture.decompressor, &fixture.small, &fixture.large, fixture.stats};
		struct object other;
		uint8_t *other_payload, *other_plain;

		encode(&fixture, GRANULES_MAX, orders[pair][0], ALL_KINDS);
		other = fixture.object;
		other_payload = aligned_alloc(64, round_up_u64(other.stored_bytes, 64));
		other_plain = malloc(GRANULES_MAX * GRANULE_BYTES);
		assert_true(other_payload && other_plain);
		memcpy(other_payload, fixture.payload, other.stored_bytes);
		memcpy(other_plain, fixture.plain, GRANULES_MAX * GRANULE_BYTES);
		encode(&fixture, GRANULES_MAX, orders[pair][1], ALL_KINDS);
		for (unsigned i = 0; i < 400; i++) {
			uint32_t first = (uint32_t)random_below(&fixture.random, GRANULES_MAX);

			if (random_below(&fixture.random, 2)) {
				assert_int_equal(read_part(&fixture, first, 1), 0);
				assert_true(out_is_plain(&fixture, first, 1));
				continue;
			}
			assert_int_equal(
				frame_read(&reader, OBJECT_ID + 1, &other, other_payload, first, 1, fixture.out), 0);
			assert_memory_equal(fixture.out, other_plain + first * GRANULE_BYTES, GRANULE_BYTES);
		}
		free(other_payload);
		free(other_plain);
	}
	fixture_destroy(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips),
		cmocka_unit_test(same_filled_needs_no_payload),
		cmocka_unit_test(damaged_table),
		cmocka_unit_test(damaged_bytes),
		cmocka_unit_test(record_and_payload_must_belong_together),
		cmocka_unit_test(hits_are_counted),
		cmocka_unit_test(never_a_stale_hit),
		cmocka_unit_test(a_failed_decode_leaves_no_entry),
		cmocka_unit_test(small_and_large_frames),
		cmocka_unit_test(large_frames_are_kept),
		cmocka_unit_test(two_objects),
	};

	return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
