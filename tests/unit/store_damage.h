/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Damage to an image: an image with everything in it, copies of it to be
 * overwritten, seeded damages, and what each of them may cost, worked out from
 * the undamaged image and the damaged words alone.
 */
#ifndef UNIT_STORE_DAMAGE_H
#define UNIT_STORE_DAMAGE_H

#include "store_fixture.h"

struct damaged {
	struct store_config config;
	int base; /* the undamaged image */
	int fd;   /* the copy in work */
	struct image image;
	uint32_t *stamp;
	uint8_t *fate;        /* per granule: enum fate */
	uint8_t *payload_bad; /* per granule: its frame was damaged */
	uint32_t bent[16];    /* ids whose record was damaged */
	unsigned bent_count;
	uint64_t granules;
	uint64_t unit_granules;
	uint64_t random;
	uint8_t *buffer; /* one unit */
	unsigned round;
	char what[900]; /* damage done in this round */
	uint64_t lost;  /* granules that were EIO, over all rounds */
};

enum fate {
	FATE_EXACT,     /* nothing concerns it */
	FATE_CONCERNED, /* EIO, or the right bytes: never wrong ones */
	FATE_BAD,       /* EIO */
	FATE_ANY,       /* led by its word to bytes that were rightly there once: nobody can know */
};

static inline void say(struct damaged *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline void say(struct damaged *run, const char *format, ...)
{
	size_t length = strlen(run->what);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(run->what + length, sizeof(run->what) - length, format, arguments);
	va_end(arguments);
}

/* ---- an image with everything in it ---- */

static inline void write_stamped(struct damaged *run, struct store *store, struct range range, uint32_t stamp)
{
	stamp_fill_range(run->buffer, range.granule, range.count, stamp);
	assert_int_equal(store_write(store_io(store, 0), range.granule, range.count, run->buffer), 0);
	for (uint32_t i = 0; i < range.count; i++)
		run->stamp[range.granule + i] = stamp;
}

static inline void discard(struct damaged *run, struct store *store, struct range range)
{
	assert_int_equal(store_discard(store_io(store, 0), range.granule, range.count), 0);
	memset(run->stamp + range.granule, 0, range.count * sizeof(*run->stamp));
}

static inline void populate(struct damaged *run, struct store *store, unsigned writes)
{
	static uint32_t number = 0;

	for (unsigned i = 0; i < writes; i++) {
		struct range range = range_pick(&run->random, run->granules, run->unit_granules);
		enum stamp_kind kind = (enum stamp_kind)(1 + random_below(&run->random, STAMP_KINDS - 1));

		if (random_below(&run->random, 8) == 0)
			discard(run, store, range);
		else
			write_stamped(run, store, range, stamp_make(++number, kind));
		if (random_below(&run->random, 3) == 0)
			store_step(store, random_below(&run->random, 2));
	}
}

static inline void run_init(struct damaged *run, struct store_config config, uint64_t seed)
{
	struct store *store;

	*run = (struct damaged){
		.config = config,
		.granules = config.size_bytes / GRANULE_BYTES,
		.unit_granules = config.unit_bytes / GRANULE_BYTES,
		.random = random_seed(seed + 1000 * fixture_number("FOLIOSWAP_SEED", 0)),
		.base = fixture_format(&config),
		.fd = -1,
	};
	run->stamp = calloc(run->granules, sizeof(*run->stamp));
	run->fate = calloc(run->granules, 1);
	run->payload_bad = calloc(run->granules, 1);
	run->buffer = aligned_alloc(4096, config.unit_bytes);
	assert_true(run->stamp && run->fate && run->payload_bad && run->buffer);
	store = fixture_open(run->base);
	populate(run, store, (unsigned)(run->granules / 4));
	/* Rewritten objects, then dead granules and open slots on top. */
	assert_int_equal(store_compact(store, FIXTURE_WAIT_NS, NULL, NULL), 0);
	populate(run, store, (unsigned)(run->granules / 16));
	for (uint64_t granule = 1; granule < run->granules; granule += 2 * run->unit_granules)
		write_stamped(run, store, (struct range){granule, 2}, stamp_make((uint32_t)granule, STAMP_TEXT));
	assert_true(store->staging.free < config.slots);
	store_close(store);
}

static inline void run_deinit(struct damaged *run)
{
	close(run->base);
	free(run->stamp);
	free(run->fate);
	free(run->payload_bad);
	free(run->buffer);
}

/* A fresh copy, holes left out, mapped for damaging. */
static inline void begin_round(struct damaged *run)
{
	off_t at = 0, hole;

	run->round++;
	run->what[0] = 0;
	memset(run->fate, FATE_EXACT, run->granules);
	memset(run->payload_bad, 0, run->granules);
	run->bent_count = 0;
	run->fd = memfd_create("copy", MFD_CLOEXEC);
	assert_int_equal(ftruncate(run->fd, (off_t)fixture_file_bytes(run->base)), 0);
	while ((at = lseek(run->base, at, SEEK_DATA)) >= 0) {
		hole = lseek(run->base, at, SEEK_HOLE);
		while (at < hole) {
			size_t bytes = (size_t)(hole - at) < run->config.unit_bytes ? (size_t)(hole - at)
										    : run->config.unit_bytes;

			assert_int_equal(pread(run->base, run->buffer, bytes, at), bytes);
			assert_int_equal(pwrite(run->fd, run->buffer, bytes, at), bytes);
			at += (off_t)bytes;
		}
	}
	assert_int_equal(image_map(&run->image, run->fd), 0);
}

static inline map_word word_at(const struct damaged *run, uint64_t granule)
{
	return atomic_load(&run->image.map[granule]);
}

/* Of the undamaged image: damage of this round must not change what is expected of the rest of it. */
static inline map_word base_word(const struct damaged *run, uint64_t granule)
{
	map_word word;
	off_t at = (off_t)(run->image.super->region[REGION_MAP].offset + granule * sizeof(word));

	assert_int_equal(pread(run->base, &word, sizeof(word), at), sizeof(word));
	return word;
}

static inline uint64_t pick_granule(struct damaged *run)
{
	return random_below(&run->random, run->granules);
}

/* An object that is named, with its record; 0 when none was met. */
static inline uint32_t pick_object(struct damaged *run, struct object *ret)
{
	for (unsigned i = 0; i < 200; i++) {
		map_word word = base_word(run, pick_granule(run));

		if (!map_word_is_object(word))
			continue;
		record_read(&run->image.records[word], ret);
		return word;
	}
	fail_msg("the image has no objects");
	abort();
}

/* ---- damages ---- */

static inline map_word wild_word(struct damaged *run, uint64_t granule)
{
	struct object object;

	switch (random_below(&run->random, 8)) {
	case 0:
		return MAP_LOST;
	case 1:
		return (uint32_t)random_below(&run->random, run->image.records_max);
	case 2:
		return (uint32_t)random_below(&run->random, MAP_LOST);
	case 3:
		return map_word_slot((unsigned)random_below(&run->random, run->config.slots));
	case 4:
		return map_word_slot((unsigned)random_below(&run->random, MAP_LOST));
	case 5:
		return word_at(run, granule) ^ 1U << random_below(&run->random, 32);
	default:
		return pick_object(run, &object);
	}
}

static inline void damage_word(struct damaged *run)
{
	uint64_t granule = pick_granule(run);
	map_word was = word_at(run, granule), word = wild_word(run, granule);

	say(run, "word %llu: %08x -> %08x; ", (unsigned long long)granule, was, word);
	atomic_store(&run->image.map[granule], word);
}

/* A value near the old one, with a bit turned, or any. */
static inline uint64_t bent(struct damaged *run, uint64_t value, unsigned bits)
{
	uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;

	switch (random_below(&run->random, 6)) {
	case 0:
		return (value + 1) & mask;
	case 1:
		return (value - 1) & mask;
	case 2:
		return (value + 16) & mask;
	case 3:
		return random_next(&run->random) & mask;
	case 4:
		return random_below(&run->random, 2) ? 0 : mask;
	default:
		return value ^ UINT64_C(1) << random_below(&run->random, bits);
	}
}

static inline void bend_field(struct damaged *run, struct object *object)
{
	struct object other;

	switch (random_below(&run->random, 10)) {
	case 0:
		object->first = (uint32_t)bent(run, object->first, 32);
		break;
	case 1:
		object->count = (uint32_t)bent(run, object->count, 16);
		break;
	case 2:
		object->filled = (uint32_t)bent(run, object->filled, 16);
		break;
	case 3:
		object->codec = (uint8_t)bent(run, object->codec, 8);
		break;
	case 4:
		object->frame_order = (uint8_t)bent(run, object->frame_order, 8);
		break;
	case 5:
		object->flags = (uint8_t)bent(run, object->flags, 8);
		break;
	case 6:
		object->stored_bytes = (uint32_t)bent(run, object->stored_bytes, 32);
		break;
	case 7:
		object->place = bent(run, object->place, 64);
		break;
	case 8:
		pick_object(run, &other);
		/* Onto another one's extent, or into the middle of it. */
		object->place = other.place + random_below(&run->random, 3);
		break;
	default:
		object->seq = bent(run, object->seq, 64);
		break;
	}
}

static inline void damage_record(struct damaged *run)
{
	struct object object, was;
	uint32_t id = pick_object(run, &object);

	was = object;
	bend_field(run, &object);
	record_write(&run->image.records[id], &object);
	say(run,
		"id %u: first %u>%u count %u>%u filled %u>%u codec %u>%u order %u>%u flags %u>%u stored %u>%u place "
		"%llx>%llx seq %llx>%llx; ",
		id, was.first, object.first, was.count, object.count, was.filled, object.filled, was.codec,
		object.codec, was.frame_order, object.frame_order, was.flags, object.flags, was.stored_bytes,
		object.stored_bytes, (unsigned long long)was.place, (unsigned long long)object.place,
		(unsigned long long)was.seq, (unsigned long long)object.seq);
	run->bent[run->bent_count++] = id;
}

static inline void damage_slot(struct damaged *run)
{
	unsigned slot = (unsigned)random_below(&run->random, run->config.slots);
	uint64_t was = run->image.slots[slot].unit,
		 unit = random_below(&run->random, run->granules / run->unit_granules);

	if (random_below(&run->random, 3) == 0)
		unit = random_below(&run->random, 2) ? SLOT_UNIT_NONE : random_next(&run->random);
	say(run, "slot %u: %llx -> %llx; ", slot, (unsigned long long)was, (unsigned long long)unit);
	atomic_store(&run->image.slots[slot].unit, unit);
}

/* The object's granules of frames first .. last. */
static inline void mark_frames(
	struct damaged *run, uint32_t id, const struct object *object, uint32_t first, uint32_t last)
{
	for (uint32_t i = 0; i < object->count; i++) {
		uint32_t frame = i >> object->frame_order;

		if (frame >= first && frame <= last && base_word(run, object->first + i) == id)
			run->payload_bad[object->first + i] = 1;
	}
}

/* One bit of the payload: in the table it costs the frame, or two of them; in a frame that one. */
static inline void damage_payload(struct damaged *run)
{
	struct object object;
	uint32_t id = pick_object(run, &object), frames, at, frame = 0;
	struct frame_entry table[512];
	uint8_t *payload;

	if (object.flags & RECORD_SAME)
		return;
	payload = run->image.arena + (place_offset_lines(object.place) << POOL_LINE_SHIFT);
	frames = frame_count(object.count, object.frame_order);
	assert_true(frames <= sizeof(table) / sizeof(table[0]));
	memcpy(table, payload, frames * sizeof(table[0]));
	at = (uint32_t)random_below(&run->random, random_below(&run->random, 2) ? object.stored_bytes : frames * 8);
	say(run, "payload of id %u at %u of %u; ", id, at, object.stored_bytes);
	if (at < frames * 8) {
		frame = at / 8;
		mark_frames(run, id, &object, frame, at % 8 < 4 ? frame + 1 : frame);
	} else {
		while (table[frame].end <= at - frames * 8)
			frame++;
		mark_frames(run, id, &object, frame, frame);
	}
	payload[at] ^= (uint8_t)(1 << random_below(&run->random, 8));
}

/* The payload first, one at most: where it lies, and what its table says, is known only of good records. */
static inline void damage(struct damaged *run, unsigned count)
{
	if (random_below(&run->random, 3) == 0)
		damage_payload(run);
	while (--count) {
		switch (random_below(&run->random, 6)) {
		case 0:
		case 1:
			damage_word(run);
			break;
		case 2:
			damage_slot(run);
			break;
		default:
			damage_record(run);
			break;
		}
	}
}

/* ---- what each may have cost ---- */

static inline bool is_bent(const struct damaged *run, map_word id)
{
	for (unsigned i = 0; i < run->bent_count; i++) {
		if (run->bent[i] == id)
			return true;
	}
	return false;
}

static inline bool covers(const struct damaged *run, uint32_t id, uint64_t granule)
{
	struct object object;

	if (id >= run->image.records_max)
		return false;
	record_read(&run->image.records[id], &object);
	return granule >= object.first && granule < (uint64_t)object.first + object.count;
}

static inline bool slot_is_units(const struct damaged *run, map_word word, uint64_t granule)
{
	unsigned slot = map_word_slot_index(word);

	return slot < run->config.slots && run->image.slots[slot].unit == granule / run->unit_granules;
}

/* Of a granule whose own word was damaged. */
static inline enum fate fate_of_wild_word(const struct damaged *run, map_word word, uint64_t granule)
{
	if (word == MAP_HOLE || (map_word_is_slot(word) && slot_is_units(run, word, granule)) ||
		(map_word_is_object(word) && covers(run, word, granule)))
		return FATE_ANY;
	return FATE_BAD;
}

/* Of a granule whose word is what it was. */
static inline enum fate fate_of_good_word(const struct damaged *run, map_word word, uint64_t granule)
{
	if (map_word_is_slot(word))
		return slot_is_units(run, word, granule) ? FATE_EXACT : FATE_BAD;
	if (!map_word_is_object(word))
		return FATE_EXACT;
	if (is_bent(run, word))
		return FATE_CONCERNED;
	return run->payload_bad[granule] ? FATE_BAD : FATE_EXACT;
}

static inline void doom_named(struct damaged *run, map_word word)
{
	for (uint64_t granule = 0; granule < run->granules; granule++) {
		if (word_at(run, granule) == word && run->fate[granule] == FATE_EXACT)
			run->fate[granule] = FATE_CONCERNED;
	}
}

static inline void work_out_fates(struct damaged *run)
{
	for (uint64_t granule = 0; granule < run->granules; granule++) {
		map_word was = base_word(run, granule), word = word_at(run, granule);

		run->fate[granule] = (uint8_t)(word == was ? fate_of_good_word(run, word, granule)
							   : fate_of_wild_word(run, word, granule));
	}
	for (uint64_t granule = 0; granule < run->granules; granule++) {
		map_word was = base_word(run, granule), word = word_at(run, granule);

		/* More words than were ever live: nobody can say which of them is wrong. */
		if (word != was && run->fate[granule] == FATE_ANY && map_word_is_object(word))
			doom_named(run, word);
		/* Neither of two that lie over each other is intact: one of them has to go. */
		if (run->payload_bad[granule] && run->bent_count)
			doom_named(run, was);
	}
}

#endif
