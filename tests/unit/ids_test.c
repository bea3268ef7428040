// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Object ids against a model of one byte per id: lowest first, groups made
 * ready and given back, the table's ragged end, recovery.
 */
#include "store_fixture.h"

struct model {
	struct image image;
	struct ids ids;
	uint32_t records;
	uint32_t groups;
	uint8_t *taken;
	bool *ready;
	uint32_t *list; /* ids taken, in no order */
	uint32_t count;
	uint64_t random;
};

static void model_init(struct model *model, uint32_t records, uint64_t seed)
{
	*model = (struct model){
		.records = records,
		.groups = (records + IDS_GROUP - 1) / IDS_GROUP,
		.random = random_seed(seed),
	};
	model->taken = calloc(model->groups, IDS_GROUP);
	model->ready = calloc(model->groups, sizeof(bool));
	model->list = calloc(records, sizeof(uint32_t));
	assert_true(model->taken && model->ready && model->list);

	model->image.fd = memfd_create("records", MFD_CLOEXEC);
	model->image.bytes = round_up_u64(records * sizeof(struct record), IMAGE_ALIGN);
	assert_int_equal(ftruncate(model->image.fd, (off_t)model->image.bytes), 0);
	model->image.base = mmap(NULL, model->image.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, model->image.fd, 0);
	assert_true(model->image.base != MAP_FAILED);
	model->image.records = (struct record *)model->image.base;
	model->image.records_max = records;
	assert_int_equal(ids_init(&model->ids, &model->image), 0);
}

static void model_deinit(struct model *model)
{
	ids_deinit(&model->ids);
	munmap(model->image.base, model->image.bytes);
	close(model->image.fd);
	free(model->taken);
	free(model->ready);
	free(model->list);
}

static bool exists(const struct model *model, uint32_t id)
{
	return id != 0 && id < model->records;
}

static uint32_t lowest_free(const struct model *model)
{
	for (uint32_t group = 0; group < model->groups; group++) {
		for (uint32_t id = group * IDS_GROUP; model->ready[group] && id < (group + 1) * IDS_GROUP; id++) {
			if (exists(model, id) && !model->taken[id])
				return id;
		}
	}
	return 0;
}

static bool group_is_empty(const struct model *model, uint32_t group)
{
	return !memchr(model->taken + (uint64_t)group * IDS_GROUP, 1, IDS_GROUP);
}

static uint32_t ready_groups(const struct model *model)
{
	uint32_t ready = 0;

	for (uint32_t group = 0; group < model->groups; group++)
		ready += model->ready[group];
	return ready;
}

/* What may be compared after every step without going through every id. */
static void compare(struct model *model)
{
	assert_int_equal(model->ids.used, model->count);
	assert_int_equal(ids_ready_bytes(&model->ids), ready_groups(model) * (uint64_t)IDS_GROUP_BYTES);
	for (uint32_t group = 0; group < model->groups; group++)
		assert_int_equal(model->ids.group[group].ready, model->ready[group]);
}

static void compare_all(struct model *model)
{
	uint64_t free_ids = 0;

	compare(model);
	for (uint32_t id = 1; id < model->records; id++) {
		assert_int_equal(ids_recover_is_taken(&model->ids, id), model->taken[id]);
		free_ids += model->ready[id / IDS_GROUP] && !model->taken[id];
		if (model->taken[id])
			assert_true(id < model->ids.end);
	}
	assert_int_equal(model->ids.free_ready, free_ids);
}

static void take(struct model *model, uint32_t expected)
{
	uint32_t id = ids_alloc(&model->ids);

	assert_int_equal(id, expected);
	if (!id)
		return;
	assert_int_equal(ids_live(&model->ids, id), 0);
	/* The record must be there to be written, and the count holds a whole unit. */
	record_write(&model->image.records[id], &(struct object){.first = id, .count = 1, .filled = 1, .seq = id});
	ids_set_live(&model->ids, id, UNIT_MAX_BYTES / GRANULE_BYTES);
	assert_int_equal(ids_live(&model->ids, id), 4096);
	ids_set_live(&model->ids, id, 0);
	model->taken[id] = 1;
	model->list[model->count++] = id;
}

static void give(struct model *model, uint32_t index)
{
	uint32_t id = model->list[index];

	model->list[index] = model->list[--model->count];
	model->taken[id] = 0;
	ids_free(&model->ids, id);
}

static void grow(struct model *model)
{
	uint32_t group = 0;

	while (group < model->groups && model->ready[group])
		group++;
	assert_int_equal(ids_grow(&model->ids), group == model->groups ? -ENOSPC : 0);
	if (group < model->groups)
		model->ready[group] = true;
	compare(model);
}

/* Of a record that may have been given back: a look through the mapping would bring the page back. */
static uint64_t file_seq(const struct model *model, uint32_t id)
{
	uint64_t seq;
	off_t at = (off_t)(id * sizeof(struct record) + offsetof(struct record, seq));

	assert_int_equal(pread(model->image.fd, &seq, sizeof(seq), at), sizeof(seq));
	return seq;
}

/* Only an empty group may go, never the first, never the only spare when the first is more than half full. */
static void shrink(struct model *model)
{
	bool shrunk = ids_shrink(&model->ids);
	uint32_t gone = 0, empty = 0;

	for (uint32_t group = 1; group < model->groups; group++) {
		empty += model->ready[group] && group_is_empty(model, group);
		if (model->ready[group] && !model->ids.group[group].ready)
			gone = group;
	}
	assert_true(model->ids.group[0].ready == model->ready[0]);
	assert_int_equal(gone != 0, shrunk);
	if (!shrunk) {
		assert_true(empty <= 1);
		return;
	}
	assert_true(group_is_empty(model, gone));
	model->ready[gone] = false;
	for (uint32_t id = gone * IDS_GROUP; id < (gone + 1) * IDS_GROUP && id < model->records; id += 997)
		assert_int_equal(file_seq(model, id), 0);
	compare(model);
}

/* Every id once, in order, to the ragged end and not beyond. */
static void lowest_first_to_the_end(void **state)
{
	const uint32_t records = 2 * IDS_GROUP + 1000;
	struct model model;

	(void)state;
	model_init(&model, records, 1);
	assert_int_equal(ids_alloc(&model.ids), 0);
	for (uint32_t id = 1; id < records; id++) {
		if (id == 1 || id % IDS_GROUP == 0) {
			assert_int_equal(ids_alloc(&model.ids), 0);
			grow(&model);
		}
		take(&model, id);
	}
	take(&model, 0);
	assert_int_equal(ids_grow(&model.ids), -ENOSPC);
	assert_int_equal(model.ids.free_ready, 0);
	compare_all(&model);
	/* The last ones freed are the only ones to be had again. */
	give(&model, records - 2);
	take(&model, records - 1);
	take(&model, 0);
	model_deinit(&model);
}

static void table_ends_on_a_group(void **state)
{
	struct model model;

	(void)state;
	model_init(&model, IDS_GROUP, 2);
	grow(&model);
	for (uint32_t id = 1; id < IDS_GROUP; id++)
		take(&model, id);
	take(&model, 0);
	compare_all(&model);
	model_deinit(&model);

	/* One record in the last group, which is id 65536 itself. */
	model_init(&model, IDS_GROUP + 1, 3);
	grow(&model);
	grow(&model);
	for (uint32_t id = 1; id <= IDS_GROUP; id++)
		take(&model, id);
	take(&model, 0);
	compare_all(&model);
	model_deinit(&model);

	/* Smaller than one word of the bitmap. */
	model_init(&model, 40, 4);
	grow(&model);
	for (uint32_t id = 1; id < 40; id++)
		take(&model, id);
	take(&model, 0);
	compare_all(&model);
	model_deinit(&model);
}

static void give_many(struct model *model)
{
	uint32_t count = (uint32_t)random_below(&model->random, model->count + 1);

	while (count--)
		give(model, (uint32_t)random_below(&model->random, model->count));
}

/* Each lowest id is looked for from the last one on: nothing below was freed meanwhile. */
static void take_many(struct model *model)
{
	uint32_t count = (uint32_t)random_below(&model->random, IDS_GROUP), expected = lowest_free(model);

	while (count-- && expected) {
		take(model, expected);
		while (exists(model, expected) && (model->taken[expected] || !model->ready[expected / IDS_GROUP]))
			expected++;
		if (!exists(model, expected))
			expected = lowest_free(model);
	}
	if (!expected)
		take(model, 0);
}

static void recover_ids(struct model *model)
{
	uint64_t memory;

	ids_deinit(&model->ids);
	assert_int_equal(ids_init(&model->ids, &model->image), 0);
	memset(model->ready, 0, model->groups * sizeof(bool));
	/* In no order, as words name them. */
	for (uint32_t i = model->count; i-- > 0;) {
		uint32_t id = model->list[i];

		assert_false(ids_recover_is_taken(&model->ids, id));
		assert_int_equal(ids_recover_group(&model->ids, id), 0);
		ids_recover_take(&model->ids, id);
		assert_true(ids_recover_is_taken(&model->ids, id));
		model->ready[id / IDS_GROUP] = true;
	}
	assert_int_equal(ids_recover_end(&model->ids), 0);
	compare_all(model);
	for (uint32_t i = 0; i < model->count; i++)
		assert_int_equal(model->image.records[model->list[i]].seq, model->list[i]);
	/* Groups without an id in use were given back, but for the page that the table ends in. */
	memory = fixture_file_memory(model->image.fd);
	assert_true(memory <= ready_groups(model) * (uint64_t)IDS_GROUP * sizeof(struct record) + GRANULE_BYTES);
}

static void random_operations(void **state)
{
	struct model model;
	unsigned rounds = (unsigned)(300 * fixture_number("FOLIOSWAP_OPS", 1));

	(void)state;
	model_init(&model, 4 * IDS_GROUP + 77, 5);
	for (unsigned round = 0; round < rounds; round++) {
		switch (random_below(&model.random, 8)) {
		case 0:
			grow(&model);
			break;
		case 1:
			shrink(&model);
			break;
		case 2:
			/* Everything goes now and then, so that groups become empty. */
			while (model.count && round % 16 == 2)
				give(&model, model.count - 1);
			break;
		case 3:
		case 4:
			give_many(&model);
			break;
		case 5:
			if (round % 4 == 0)
				recover_ids(&model);
			break;
		default:
			take_many(&model);
			break;
		}
		compare(&model);
		if (round % 20 == 0)
			compare_all(&model);
	}
	compare_all(&model);
	model_deinit(&model);
}

/* Memory of groups that became empty goes back, down to the first and at most one spare. */
static void groups_are_given_back(void **state)
{
	struct model model;

	(void)state;
	model_init(&model, 3 * IDS_GROUP, 6);
	for (unsigned group = 0; group < 3; group++)
		grow(&model);
	for (uint32_t id = 1; id < 3 * IDS_GROUP; id++)
		take(&model, id);
	shrink(&model);
	assert_int_equal(ready_groups(&model), 3);
	while (model.count > IDS_GROUP - 1)
		give(&model, model.count - 1);
	for (unsigned i = 0; i < 4; i++)
		shrink(&model);
	assert_int_equal(ready_groups(&model), 2);
	while (model.count > 10)
		give(&model, model.count - 1);
	for (unsigned i = 0; i < 4; i++)
		shrink(&model);
	assert_int_equal(ready_groups(&model), 1);
	assert_true(fixture_file_memory(model.image.fd) <= IDS_GROUP * sizeof(struct record));
	compare_all(&model);
	grow(&model);
	compare_all(&model);
	model_deinit(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lowest_first_to_the_end),
		cmocka_unit_test(table_ends_on_a_group),
		cmocka_unit_test(random_operations),
		cmocka_unit_test(groups_are_given_back),
	};

	return cmocka_run_group_tests_name("ids", tests, NULL, NULL);
}
