// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests: write into a slot, read from wherever the words point, discard.
 *
 *   write   exclusive: copy into the unit's slot, store words, acknowledged
 *           no slot free: small ones become an object at once, others wait
 *   unit    no lock: its bytes are fetched into a slot of their own; exclusive: header, words
 *   read    shared:    holes, slots, frames
 *   discard exclusive: store words
 */
#include "bits.h"
#include "store_internal.h"

#include <errno.h>
#include <string.h>

static bool range_is_valid(const struct store *store, uint64_t granule, uint32_t count)
{
	uint64_t granules = store_granules(store);

	return count && granule < granules && count <= granules - granule &&
	       unit_of(store, granule) == unit_of(store, granule + count - 1);
}

static void begin(struct store_io *io, enum stats_kind kind)
{
	io->kind = kind;
	io->slice_ns = clock_ns();
}

static void stage(struct store_io *io, enum stats_stage stage)
{
	stage_end(&io->stats->stage_ns[io->kind][stage], &io->slice_ns);
}

/* A wait for the lock is a stage of its own, the clock not read when there is none; before: what ends with the wait. */
static void lock_exclusive(struct store_io *io, uint64_t unit, enum stats_stage before)
{
	if (unit_trylock_exclusive(io->store, unit))
		return;
	stage(io, before);
	unit_lock_exclusive(io->store, unit);
	stage(io, STATS_WAIT);
}

static void lock_shared(struct store_io *io, uint64_t unit)
{
	if (unit_trylock_shared(io->store, unit))
		return;
	unit_lock_shared(io->store, unit);
	stage(io, STATS_WAIT);
}

static bool range_has_hole(const struct store *store, uint64_t granule, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		map_word word = map_load(store, granule + i);

		if (word == MAP_HOLE || word == MAP_LOST)
			return true;
	}
	return false;
}

struct write {
	uint64_t granule;
	uint32_t count;
	const void *data;
	store_fetch *fetch; /* of a whole unit, instead of data */
	void *fetch_arg;
};

/* Words of granules whose bytes are in the slot. Unit lock, exclusive. */
static void point_to_slot(struct store_io *io, unsigned index, uint64_t granule, uint32_t count)
{
	struct slot *slot = &io->store->staging.slot[index];

	hook(HOOK_SLOT_COPY);
	stage(io, STATS_COPY);
	map_replace(io->store, granule, count, map_word_slot(index));
	atomic_store_explicit(&slot->last_write_ns, io->slice_ns, memory_order_relaxed);
	hook(HOOK_SLOT_WORDS);
}

static void copy_into_slot(struct store_io *io, unsigned index, uint64_t granule, uint32_t count, const void *data)
{
	struct store *store = io->store;
	uint32_t within = (uint32_t)granule & (store->unit_granules - 1);

	bits_set(store->staging.slot[index].changed, within, within + count, true);
	memcpy(slot_data(store, index) + ((uint64_t)within << GRANULE_SHIFT), data, count * GRANULE_BYTES);
	point_to_slot(io, index, granule, count);
}

/* The write's slot, found or taken, or -1. *ret_first: a worker is to hear of it. Unit lock, exclusive. */
static int find_or_take_slot(struct store_io *io, uint64_t unit, bool *ret_first)
{
	struct store *store = io->store;
	int slot = staging_find(store, unit);

	*ret_first = false;
	if (slot >= 0)
		return slot;
	slot = staging_reserve(store);
	if (slot >= 0)
		*ret_first = staging_open(store, (unsigned)slot, unit, io->slice_ns);
	return slot;
}

static bool write_is_admitted(struct store *store, uint64_t granule, uint32_t count)
{
	return room_admits(store, count * GRANULE_BYTES) ||
	       (!range_has_hole(store, granule, count) && room_admits(store, 0));
}

/* After a write into a slot, no lock held. news: of a complete slot, or of the first one that is open. */
static void staged(struct store_io *io, bool news)
{
	atomic_store_explicit(&io->store->last_write_ns, io->slice_ns, memory_order_relaxed);
	if (news)
		staging_wake(io->store);
	stage(io, STATS_POOL);
}

/* Returns 0, -EAGAIN (no slot), -ENOSPC. */
static int write_staged(struct store_io *io, const struct write *write)
{
	struct store *store = io->store;
	uint64_t unit = unit_of(store, write->granule);
	bool complete, first;
	int slot;

	lock_exclusive(io, unit, STATS_COPY);
	if (!write_is_admitted(store, write->granule, write->count)) {
		unit_unlock(store, unit);
		return -ENOSPC;
	}
	slot = find_or_take_slot(io, unit, &first);
	if (slot < 0) {
		unit_unlock(store, unit);
		return -EAGAIN;
	}
	copy_into_slot(io, (unsigned)slot, write->granule, write->count, write->data);
	complete = atomic_load_explicit(&store->staging.slot[slot].granules, memory_order_relaxed) ==
		   store->unit_granules;
	unit_unlock(store, unit);
	staged(io, complete || first);
	return 0;
}

/* The unit's bytes are in the taken slot. If it has one already, they are copied there. Returns 0 or -ENOSPC. */
static int publish_unit(struct store_io *io, const struct write *write, unsigned taken)
{
	struct store *store = io->store;
	uint64_t unit = unit_of(store, write->granule);
	int slot;

	lock_exclusive(io, unit, STATS_COPY);
	if (!write_is_admitted(store, write->granule, write->count)) {
		unit_unlock(store, unit);
		staging_free(store, taken);
		return -ENOSPC;
	}
	slot = staging_find(store, unit);
	if (slot < 0) {
		staging_open(store, taken, unit, io->slice_ns);
		point_to_slot(io, taken, write->granule, write->count);
	} else {
		copy_into_slot(io, (unsigned)slot, write->granule, write->count, slot_data(store, taken));
	}
	unit_unlock(store, unit);
	if (slot >= 0)
		staging_free(store, taken);
	staged(io, true);
	return 0;
}

/* Returns 0, -EAGAIN (no slot), -ENOSPC, -EIO (not fetched). */
static int write_fetched(struct store_io *io, const struct write *write)
{
	struct store *store = io->store;
	int slot = staging_reserve(store);

	if (slot < 0)
		return -EAGAIN;
	if (write->fetch(write->fetch_arg, slot_data(store, (unsigned)slot)) < 0) {
		staging_free(store, (unsigned)slot);
		return -EIO;
	}
	return publish_unit(io, write, (unsigned)slot);
}

static int write_direct(struct store_io *io, const struct write *write)
{
	struct store *store = io->store;
	uint64_t granule = write->granule;
	uint32_t count = write->count;
	uint64_t unit = unit_of(store, granule);
	const struct object_writer writer = {
		.store = store,
		.encoder = encoder_acquire(&io->encoder),
		.payload = io->payload,
		.stage_ns = io->stats->stage_ns[STATS_WRITE],
		.slice_ns = &io->slice_ns,
		.class = ROOM_NEW,
	};
	struct object object;
	uint32_t id;
	int result = object_create(&writer, granule, count, write->data, &id, &object);

	encoder_release(&io->encoder);
	if (result < 0)
		return result;
	lock_exclusive(io, unit, STATS_POOL);
	map_replace(store, granule, count, id);
	hook(HOOK_DIRECT_WORDS);
	unit_unlock(store, unit);
	stats_count(&io->stats->direct_objects, 1);
	if (object_is_raw(&object))
		stats_count(&io->stats->raw_bytes, count * GRANULE_BYTES);
	atomic_store_explicit(&store->last_write_ns, io->slice_ns, memory_order_relaxed);
	stage(io, STATS_POOL);
	staging_want(store);
	return 0;
}

/* Lets the janitor win room; false: there is nothing to win, or this write or all of them have waited long enough. */
static bool wait_for_room(struct store_io *io, uint64_t begin_ns)
{
	struct store *store = io->store;
	const struct timespec pause = {.tv_nsec = 2000000};

	stats_count(&io->stats->room_waits, 1);
	if (!store->started)
		return store_step(store, true);
	if (!janitor_left_bytes(store) || room_is_stuck(store) || clock_ns() - begin_ns >= PRESSURE_WAIT_NS ||
		!stall_left_ns(&store->room_stall, PRESSURE_ALL_WAIT_NS))
		return false;
	staging_wake(store);
	nanosleep(&pause, NULL);
	return true;
}

/* Lets a worker close a slot; false: none was freed for too long, or slots cannot be closed for want of room. */
static bool wait_for_slot(struct store_io *io)
{
	struct store *store = io->store;
	uint64_t most_ns = WRITE_WAIT_NS;

	stats_count(&io->stats->slot_waits, 1);
	/* Nobody else will close one. */
	if (!store->started)
		return store_step(store, true);
	if (staging_wait(store))
		return true;
	if (atomic_load(&store->starved))
		most_ns = room_is_stuck(store) ? 0 : STARVED_WAIT_NS;
	return stall_left_ns(&store->staging.stall, most_ns) > 0;
}

static int write_once(struct store_io *io, const struct write *write)
{
	int result = write->fetch ? write_fetched(io, write) : write_staged(io, write);

	if (result == -EAGAIN && write->count * GRANULE_BYTES < DIRECT_MAX_BYTES && write->data)
		result = write_direct(io, write);
	return result;
}

static int write_until_done(struct store_io *io, const struct write *write)
{
	struct store *store = io->store;
	uint64_t begin_ns = io->slice_ns;
	int result;

	for (;;) {
		result = write_once(io, write);
		if (result == 0)
			break;
		if (result != -ENOSPC && result != -EAGAIN)
			return result;
		if (result == -ENOSPC && !wait_for_room(io, begin_ns))
			return -ENOSPC;
		if (result == -EAGAIN && !wait_for_slot(io))
			return -ENOSPC;
		stage(io, STATS_WAIT);
	}
	/* Writing over old data is admitted longer than new data is. */
	if (gauge_get(&store->room_stall.since_ns) && room_admits(store, write->count * GRANULE_BYTES))
		stall_end(&store->room_stall);
	return 0;
}

static int run_write(struct store_io *io, const struct write *write)
{
	int result;

	if (!range_is_valid(io->store, write->granule, write->count))
		return -EINVAL;
	begin(io, STATS_WRITE);
	result = write_until_done(io, write);
	if (result == -ENOSPC)
		stats_count(&io->stats->refused, 1);
	return result;
}

int store_write(struct store_io *io, uint64_t granule, uint32_t count, const void *data)
{
	return run_write(io, &(struct write){.granule = granule, .count = count, .data = data});
}

int store_write_unit(struct store_io *io, uint64_t granule, store_fetch *fetch, void *fetch_arg)
{
	return run_write(io,
		&(struct write){
			.granule = granule,
			.count = io->store->unit_granules,
			.fetch = fetch,
			.fetch_arg = fetch_arg,
		});
}

static int read_object(struct store_io *io, uint64_t granule, uint32_t count, uint32_t id, uint8_t *plain)
{
	struct store *store = io->store;
	const struct frame_reader reader = {.decompressor = io->decompressor,
		.small = &store->small_cache,
		.large = &store->large_cache,
		.stats = io->stats};
	struct object object;
	int result = -EIO;

	if (id < store->image.records_max)
		record_read(&store->image.records[id], &object);
	/* Recovery has checked it; a word or record that was damaged since must still not lead anywhere else. */
	if (id < store->image.records_max && object_is_sane(store, &object) && granule >= object.first &&
		granule + count <= (uint64_t)object.first + object.count) {
		stats_count(&io->stats->read_asked_bytes, count * GRANULE_BYTES);
		result = frame_read(&reader, id, &object, object_payload(store, &object),
			(uint32_t)(granule - object.first), count, plain);
	} else {
		memset(plain, 0, count * GRANULE_BYTES);
		stats_count(&io->stats->bad_frames, 1);
	}
	stage(io, STATS_CODEC);
	return result;
}

static int read_run(struct store_io *io, uint64_t granule, uint32_t count, map_word word, uint8_t *plain)
{
	struct store *store = io->store;
	uint64_t bytes = count * GRANULE_BYTES, within = granule & (store->unit_granules - 1);
	unsigned slot = map_word_slot_index(word);

	if (map_word_is_object(word))
		return read_object(io, granule, count, word, plain);
	if (map_word_is_slot(word) && slot < store->image.super->slots)
		memcpy(plain, slot_data(store, slot) + (within << GRANULE_SHIFT), bytes);
	else
		memset(plain, 0, bytes);
	stage(io, STATS_COPY);
	if (word == MAP_HOLE || (map_word_is_slot(word) && slot < store->image.super->slots))
		return 0;
	stats_count(&io->stats->bad_frames, 1);
	return -EIO;
}

int store_read(struct store_io *io, uint64_t granule, uint32_t count, void *data)
{
	struct store *store = io->store;
	uint64_t unit = unit_of(store, granule), end = granule + count;
	uint8_t *plain = data;
	int result = 0;

	if (!range_is_valid(store, granule, count))
		return -EINVAL;
	begin(io, STATS_READ);
	lock_shared(io, unit);
	while (granule < end) {
		map_word word;
		uint32_t run = map_run(store, granule, (uint32_t)(end - granule), &word);

		if (read_run(io, granule, run, word, plain) < 0)
			result = -EIO;
		plain += run * GRANULE_BYTES;
		granule += run;
	}
	unit_unlock(store, unit);
	return result;
}

int store_discard(struct store_io *io, uint64_t granule, uint32_t count)
{
	struct store *store = io->store;
	uint64_t unit = unit_of(store, granule);

	if (!range_is_valid(store, granule, count))
		return -EINVAL;
	begin(io, STATS_DISCARD);
	lock_exclusive(io, unit, STATS_POOL);
	map_replace(store, granule, count, MAP_HOLE);
	hook(HOOK_DISCARD);
	unit_unlock(store, unit);
	atomic_store_explicit(&store->last_write_ns, io->slice_ns, memory_order_relaxed);
	stage(io, STATS_POOL);
	/* What became empty goes back to the system even if nothing else ever happens. */
	staging_wake(store);
	return 0;
}
