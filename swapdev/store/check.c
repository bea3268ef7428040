// SPDX-License-Identifier: GPL-2.0-or-later
/* Recounts everything that is kept twice, and says what differs first. */
#include "store_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct recount {
	uint16_t *live; /* per id */
	uint32_t slot_granules[STORE_SLOTS_MAX];
	uint64_t live_granules;
	uint64_t lost_granules;
	uint64_t objects;
	uint64_t object_granules;
	uint64_t payload_bytes;
	uint64_t lines;
	uint64_t dead_bytes;
};

struct problem {
	char *text;
	size_t bytes;
};

static int differs(const struct problem *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int differs(const struct problem *problem, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem->text, problem->bytes, format, arguments);
	va_end(arguments);
	return -EUCLEAN;
}

static int recount_word(struct store *store, struct recount *recount, uint64_t granule, const struct problem *problem)
{
	map_word word = map_load(store, granule);
	unsigned slot = map_word_slot_index(word);

	if (word == MAP_HOLE)
		return 0;
	if (word == MAP_LOST) {
		recount->lost_granules++;
		return 0;
	}
	recount->live_granules++;
	if (map_word_is_slot(word)) {
		if (slot >= store->image.super->slots || store->image.slots[slot].unit != unit_of(store, granule))
			return differs(problem, "granule %llu names slot %u, which is not its unit's",
				(unsigned long long)granule, slot);
		recount->slot_granules[slot]++;
		return 0;
	}
	if (word >= store->image.records_max || !ids_recover_is_taken(&store->ids, word))
		return differs(problem, "granule %llu names id %u, which is free", (unsigned long long)granule, word);
	recount->live[word]++;
	return 0;
}

static int recount_object(struct store *store, struct recount *recount, uint32_t id, const struct problem *problem)
{
	struct object object;

	if (!ids_recover_is_taken(&store->ids, id))
		return recount->live[id] == 0 && ids_live(&store->ids, id) == 0
			       ? 0
			       : differs(problem, "free id %u has a live count", id);
	record_read(&store->image.records[id], &object);
	if (!object_is_sane(store, &object))
		return differs(problem, "the record of id %u is not sane", id);
	if (ids_live(&store->ids, id) != recount->live[id])
		return differs(problem, "id %u: live count %u, words %u", id, ids_live(&store->ids, id),
			recount->live[id]);
	if (!recount->live[id])
		return differs(problem, "id %u is taken but no word names it", id);
	recount->objects++;
	recount->object_granules += object.count;
	recount->payload_bytes += object.flags & RECORD_SAME ? 0 : object.stored_bytes;
	recount->lines += object_lines(&object);
	recount->dead_bytes += object_dead_bytes(&object, recount->live[id]);
	return 0;
}

static int compare(const struct problem *problem, const char *what, uint64_t kept, uint64_t counted)
{
	if (kept == counted)
		return 0;
	return differs(problem, "%s: kept %llu, counted %llu", what, (unsigned long long)kept,
		(unsigned long long)counted);
}

static int compare_all(struct store *store, const struct recount *recount, const struct problem *problem)
{
	const struct stats_gauges *gauges = store->gauges;
	const struct {
		const char *what;
		uint64_t kept, counted;
	} pair[] = {
		{"live bytes", gauges->live_bytes, recount->live_granules * GRANULE_BYTES},
		{"lost granules", gauges->lost_granules, recount->lost_granules},
		{"objects", gauges->objects, recount->objects},
		{"ids in use", store->ids.used, recount->objects},
		{"plain bytes of objects", gauges->object_bytes, recount->object_granules * GRANULE_BYTES},
		{"payload bytes", gauges->payload_bytes, recount->payload_bytes},
		{"extent bytes", gauges->extent_bytes, recount->lines << POOL_LINE_SHIFT},
		{"lines taken in the pool", store->pool.used_lines, recount->lines},
		{"dead bytes", store->dead_bytes, recount->dead_bytes},
	};
	int result = 0;

	for (size_t i = 0; i < sizeof(pair) / sizeof(pair[0]) && result == 0; i++)
		result = compare(problem, pair[i].what, pair[i].kept, pair[i].counted);
	for (unsigned slot = 0; slot < store->image.super->slots && result == 0; slot++)
		result = compare(problem, "granules of a slot", store->staging.slot[slot].granules,
			recount->slot_granules[slot]);
	return result;
}

int store_check(struct store *store, char *text, size_t text_bytes)
{
	const struct problem problem = {text, text_bytes};
	uint32_t end = atomic_load(&store->ids.end);
	struct recount recount = {.live = calloc(store->image.records_max, sizeof(*recount.live))};
	const char *pool_problem;
	int result = recount.live ? 0 : -ENOMEM;

	pthread_mutex_lock(&store->janitor.lock); /* its work goes on after the last request was answered */
	pool_problem = pool_check(&store->pool);
	if (pool_problem)
		result = differs(&problem, "pool: %s", pool_problem);
	for (uint64_t granule = 0; granule < store_granules(store) && result == 0; granule++)
		result = recount_word(store, &recount, granule, &problem);
	for (uint32_t id = 1; id < end && result == 0; id++)
		result = recount_object(store, &recount, id, &problem);
	if (result == 0)
		result = compare_all(store, &recount, &problem);
	pthread_mutex_unlock(&store->janitor.lock);
	free(recount.live);
	return result;
}
