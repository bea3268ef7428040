// SPDX-License-Identifier: GPL-2.0-or-later
/* One damaged record, case by case: what chance would seldom bring about. */
#include "store_fixture.h"

/* Sequence numbers go on above the largest; one that is out of reach must not make them start again. */
static void sequence_at_its_end(void **state)
{
	static const uint64_t wild[] = {
		UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 56, (UINT64_C(1) << 56) - 1, (UINT64_C(1) << 55) + 9, 0};
	struct store_config config = fixture_config(64 * KIB, 16 * KIB, MIB);
	uint8_t data[GRANULE_BYTES];

	(void)state;
	for (unsigned i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		int fd = fixture_format(&config);
		struct store *store = fixture_open(fd);
		struct object object;
		uint32_t id;

		for (uint64_t granule = 0; granule < 64; granule++) {
			stamp_fill(data, granule, stamp_make(1, STAMP_TEXT));
			assert_int_equal(store_write(store_io(store, 0), granule, 1, data), 0);
		}
		assert_int_equal(store_flush(store, FIXTURE_WAIT_NS), 0);
		id = map_load(store, 0);
		record_read(&store->image.records[id], &object);
		object.seq = wild[i];
		record_write(&store->image.records[id], &object);
		store_close(store);

		store = fixture_open(fd);
		assert_int_equal(store_read(store_io(store, 0), 0, 1, data), -EIO);
		/* Decoded frames are remembered, objects replaced, ids and perhaps numbers used again. */
		for (uint32_t round = 2; round < 80; round++) {
			uint64_t granule = 16 + round * 7 % 48;

			assert_int_equal(store_read(store_io(store, 0), granule, 1, data), 0);
			stamp_fill(data, granule, stamp_make(round, STAMP_TEXT));
			assert_int_equal(store_write(store_io(store, 0), granule, 1, data), 0);
			assert_int_equal(store_flush(store, FIXTURE_WAIT_NS), 0);
			assert_int_equal(store_read(store_io(store, 0), granule, 1, data), 0);
			assert_true(stamp_is(data, granule, stamp_make(round, STAMP_TEXT)));
			record_read(&store->image.records[map_load(store, granule)], &object);
			assert_true(object.seq > 4 && object.seq != wild[i]);
		}
		/* What was written since is of a kind that the next recovery takes for good. */
		fixture_check(store, "after a wild sequence number");
		store_close(store);
		store = fixture_open(fd);
		for (uint64_t granule = 16; granule < 64; granule++)
			assert_int_equal(store_read(store_io(store, 0), granule, 1, data), 0);
		store_close(store);
		close(fd);
	}
}

/* One record grown over its neighbours, or put on one of them, costs itself alone, whichever comes first in the map. */
static void one_record_over_many(void **state)
{
	struct store_config config = fixture_config(64 * KIB, 4 * KIB, 2 * MIB);
	uint8_t data[GRANULE_BYTES];

	(void)state;
	for (uint64_t victim = 0; victim < 512; victim += 37) {
		for (unsigned kind = 0; kind < 3; kind++) {
			int fd = fixture_format(&config);
			struct store *store = fixture_open(fd);
			struct object object;
			uint32_t id;

			/* A text in every other granule, so that each is an object of its own. */
			for (uint64_t granule = 0; granule < 512; granule += 2) {
				stamp_fill(data, granule, stamp_make(1, STAMP_TEXT));
				assert_int_equal(store_write(store_io(store, 0), granule, 1, data), 0);
			}
			assert_int_equal(store_flush(store, FIXTURE_WAIT_NS), 0);
			victim &= ~UINT64_C(1);
			id = map_load(store, victim);
			record_read(&store->image.records[id], &object);
			if (kind == 0)
				object.stored_bytes = (uint32_t)(GRANULE_BYTES + sizeof(struct frame_entry));
			else if (kind == 1)
				object.place = object.place ? 0 : 9;
			else
				object.place += 1;
			record_write(&store->image.records[id], &object);
			store_close(store);
			store = fixture_open(fd);
			fixture_check(store, "one record over many");
			for (uint64_t granule = 0; granule < 512; granule += 2) {
				int result = store_read(store_io(store, 0), granule, 1, data);

				if (granule != victim)
					assert_int_equal(result, 0);
				if (granule == victim && kind != 0)
					assert_int_equal(result, -EIO);
				if (result == 0)
					assert_true(stamp_is(data, granule, stamp_make(1, STAMP_TEXT)));
			}
			store_close(store);
			close(fd);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequence_at_its_end),
		cmocka_unit_test(one_record_over_many),
	};

	return cmocka_run_group_tests_name("record_damage", tests, NULL, NULL);
}
