// SPDX-License-Identifier: GPL-2.0-or-later
/* Hands object ids out, lowest first, from groups that are ready. */
#include "ids.h"
#include "sparse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ids_init(struct ids *ids, const struct image *image)
{
	uint64_t groups = (image->records_max + IDS_GROUP - 1) >> IDS_GROUP_SHIFT;

	memset(ids, 0, sizeof(*ids));
	ids->image = image;
	ids->groups = (uint32_t)groups;
	pthread_mutex_init(&ids->lock, NULL);
	ids->group = calloc(groups, sizeof(*ids->group));
	ids->bits = sparse_map(groups * IDS_GROUP_WORDS * sizeof(*ids->bits));
	ids->live = sparse_map(groups * IDS_GROUP * sizeof(*ids->live));
	if (!ids->group || !ids->bits || !ids->live) {
		ids_deinit(ids);
		return -ENOMEM;
	}
	return 0;
}

void ids_deinit(struct ids *ids)
{
	if (!ids->groups)
		return;
	free(ids->group);
	sparse_unmap(ids->bits, ids->groups * IDS_GROUP_WORDS * sizeof(*ids->bits));
	sparse_unmap((void *)ids->live, (uint64_t)ids->groups * IDS_GROUP * sizeof(*ids->live));
	pthread_mutex_destroy(&ids->lock);
	memset(ids, 0, sizeof(*ids));
}

static uint64_t *group_bits(struct ids *ids, uint32_t group)
{
	return ids->bits + (uint64_t)group * IDS_GROUP_WORDS;
}

static uint64_t group_record_bytes(const struct ids *ids, uint32_t group)
{
	uint64_t first = (uint64_t)group << IDS_GROUP_SHIFT;
	uint64_t last = first + IDS_GROUP < ids->image->records_max ? first + IDS_GROUP : ids->image->records_max;

	return (last - first) * sizeof(struct record);
}

/* What can never be handed out: id 0, and ids past the table's end. */
static void group_reserve(struct ids *ids, uint32_t group)
{
	uint64_t first = (uint64_t)group << IDS_GROUP_SHIFT;
	uint64_t *bits = group_bits(ids, group);

	memset(bits, 0, IDS_GROUP_WORDS * sizeof(*bits));
	if (group == 0)
		bits[0] |= 1;
	for (uint64_t id = ids->image->records_max; id < first + IDS_GROUP; id++) {
		if (id >= first)
			bits[(id - first) / 64] |= UINT64_C(1) << (id % 64);
	}
}

static uint32_t group_reserved(const struct ids *ids, uint32_t group)
{
	return (uint32_t)(IDS_GROUP - group_record_bytes(ids, group) / sizeof(struct record)) + (group == 0);
}

static int group_populate(struct ids *ids, uint32_t group)
{
	uint64_t first = (uint64_t)group << IDS_GROUP_SHIFT;
	int result = image_populate(ids->image, &ids->image->records[first], group_record_bytes(ids, group));

	if (result == 0)
		result = sparse_populate(group_bits(ids, group), IDS_GROUP_WORDS * sizeof(uint64_t));
	if (result == 0)
		result = sparse_populate((void *)&ids->live[first], IDS_GROUP * sizeof(*ids->live));
	return result;
}

static void group_set_ready(struct ids *ids, uint32_t group)
{
	group_reserve(ids, group);
	ids->group[group] = (struct ids_group){.used = group_reserved(ids, group), .ready = true};
	ids->ready_groups++;
	ids->free_ready += IDS_GROUP - ids->group[group].used;
	if (group < ids->first_free)
		ids->first_free = group;
}

/* A free id of a ready group that has one. */
static uint32_t group_take(struct ids *ids, uint32_t group)
{
	struct ids_group *at = &ids->group[group];
	uint64_t *bits = group_bits(ids, group);

	uint32_t bit;

	while (bits[at->hint] == UINT64_MAX)
		at->hint++;
	bit = (uint32_t)__builtin_ctzll(~bits[at->hint]);
	bits[at->hint] |= UINT64_C(1) << bit;
	at->used++;
	return (group << IDS_GROUP_SHIFT) + at->hint * 64 + bit;
}

uint32_t ids_alloc(struct ids *ids)
{
	uint32_t id = 0;

	pthread_mutex_lock(&ids->lock);
	for (uint32_t group = ids->first_free; group < ids->groups; group++) {
		const struct ids_group *at = &ids->group[group];

		if (!at->ready || at->changing || at->used == IDS_GROUP)
			continue;
		id = group_take(ids, group);
		ids->first_free = group;
		ids->used++;
		ids->free_ready--;
		if (id >= atomic_load_explicit(&ids->end, memory_order_relaxed))
			atomic_store_explicit(&ids->end, id + 1, memory_order_release);
		break;
	}
	pthread_mutex_unlock(&ids->lock);
	return id;
}

void ids_free(struct ids *ids, uint32_t id)
{
	uint32_t group = id >> IDS_GROUP_SHIFT, word = (id & (IDS_GROUP - 1)) / 64;

	pthread_mutex_lock(&ids->lock);
	group_bits(ids, group)[word] &= ~(UINT64_C(1) << (id % 64));
	ids->group[group].used--;
	ids->used--;
	ids->free_ready++;
	if (word < ids->group[group].hint)
		ids->group[group].hint = word;
	if (group < ids->first_free)
		ids->first_free = group;
	pthread_mutex_unlock(&ids->lock);
}

int ids_grow(struct ids *ids)
{
	uint32_t group = 0;
	int result;

	pthread_mutex_lock(&ids->lock);
	while (group < ids->groups && (ids->group[group].ready || ids->group[group].changing))
		group++;
	if (group < ids->groups)
		ids->group[group].changing = true;
	pthread_mutex_unlock(&ids->lock);
	if (group == ids->groups)
		return -ENOSPC;

	result = group_populate(ids, group);
	pthread_mutex_lock(&ids->lock);
	ids->group[group].changing = false;
	if (result == 0)
		group_set_ready(ids, group);
	pthread_mutex_unlock(&ids->lock);
	return result;
}

static bool group_is_empty(const struct ids *ids, uint32_t group)
{
	const struct ids_group *at = &ids->group[group];

	return at->ready && !at->changing && at->used == group_reserved(ids, group);
}

bool ids_shrink(struct ids *ids)
{
	uint32_t victim = UINT32_MAX, empty = 0;

	pthread_mutex_lock(&ids->lock);
	for (uint32_t group = 1; group < ids->groups; group++) {
		if (group_is_empty(ids, group)) {
			victim = group;
			empty++;
		}
	}
	/* One spare, unless the first group, which always stays, has room enough. */
	if (empty == 1 && ids->group[0].used > IDS_GROUP / 2)
		victim = UINT32_MAX;
	if (victim != UINT32_MAX) {
		ids->group[victim].ready = false;
		ids->group[victim].changing = true;
		ids->ready_groups--;
		ids->free_ready -= IDS_GROUP - ids->group[victim].used;
	}
	pthread_mutex_unlock(&ids->lock);
	if (victim == UINT32_MAX)
		return false;

	image_punch(ids->image, &ids->image->records[(uint64_t)victim << IDS_GROUP_SHIFT],
		group_record_bytes(ids, victim));
	pthread_mutex_lock(&ids->lock);
	ids->group[victim].changing = false;
	pthread_mutex_unlock(&ids->lock);
	return true;
}

uint64_t ids_ready_bytes(struct ids *ids)
{
	uint64_t bytes;

	pthread_mutex_lock(&ids->lock);
	bytes = ids->ready_groups * (uint64_t)IDS_GROUP_BYTES;
	pthread_mutex_unlock(&ids->lock);
	return bytes;
}

int ids_recover_group(struct ids *ids, uint32_t id)
{
	uint32_t group = id >> IDS_GROUP_SHIFT;
	int result;

	if (ids->group[group].ready)
		return 0;
	result = group_populate(ids, group);
	if (result == 0)
		group_set_ready(ids, group);
	return result;
}

void ids_recover_take(struct ids *ids, uint32_t id)
{
	uint32_t group = id >> IDS_GROUP_SHIFT;

	group_bits(ids, group)[(id & (IDS_GROUP - 1)) / 64] |= UINT64_C(1) << (id % 64);
	ids->group[group].used++;
	ids->used++;
	ids->free_ready--;
	if (id >= ids->end)
		ids->end = id + 1;
}

bool ids_recover_is_taken(const struct ids *ids, uint32_t id)
{
	return ids->group[id >> IDS_GROUP_SHIFT].ready && (ids->bits[id / 64] >> (id % 64) & 1);
}

int ids_recover_end(struct ids *ids)
{
	uint32_t group = 0;

	while (group < ids->groups) {
		uint32_t end = group;
		uint64_t bytes = 0;
		int result = 0;

		for (; end < ids->groups && !ids->group[end].ready; end++)
			bytes += group_record_bytes(ids, end);
		if (bytes)
			result = image_punch(ids->image, &ids->image->records[(uint64_t)group << IDS_GROUP_SHIFT], bytes);
		if (result < 0)
			return result;
		group = end + 1;
	}
	return 0;
}
