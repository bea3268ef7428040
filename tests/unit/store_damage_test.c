// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Damage: words, records, slot headers, frame tables and frames of a closed
 * image, and of a running store, are overwritten. What each damage may cost is
 * worked out here from the undamaged image; everything else must be there byte
 * for byte, nothing may be wrong bytes, and what was lost must become good again.
 *
 * FOLIOSWAP_OPS multiplies the rounds, FOLIOSWAP_SEED starts another sequence.
 */
#include "store_fixture.h"

struct run {
	struct store_config config;
	int base; /* the undamaged image */
	int fd;	  /* the copy in work */
	struct image image;
	uint32_t *stamp;
	uint8_t *fate; /* per granule: enum fate */
	uint8_t *payload_bad; /* per granule: its frame was damaged */
	uint32_t bent[16];    /* ids whose record was damaged */
	unsigned bent_count;
	uint64_t granules;
	uint64_t unit_granules;
	uint64_t random;
	uint8_t *buffer; /* one unit */
	unsigned round;
	char what[900]; /* damage done in this round */
	uint64_t lost;	/* granules that were EIO, over all rounds */
};

enum fate {
	FATE_EXACT,	/* nothing concerns it */
	FATE_CONCERNED, /* EIO, or the right bytes: never wrong ones */
	FATE_BAD,	/* EIO */
	FATE_ANY,	/* led by its word to bytes that were rightly there once: nobody can know */
};

static void say(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct run *run, const char *format, ...)
{
	size_t length = strlen(run->what);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(run->what + length, sizeof(run->what) - length, format, arguments);
	va_end(arguments);
}

/* ---- an image with everything in it ---- */

static void write_stamped(struct run *run, struct store *store, struct range range, uint32_t stamp)
{
	stamp_fill_range(run->buffer, range.granule, range.count, stamp);
	assert_int_equal(store_write(store_io(store, 0), range.granule, range.count, run->buffer), 0);
	for (uint32_t i = 0; i < range.count; i++)
		run->stamp[range.granule + i] = stamp;
}

static void discard(struct run *run, struct store *store, struct range range)
{
	assert_int_equal(store_discard(store_io(store, 0), range.granule, range.count), 0);
	memset(run->stamp + range.granule, 0, range.count * sizeof(*run->stamp));
}

static void populate(struct run *run, struct store *store, unsigned writes)
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

static void run_init(struct run *run, struct store_config config, uint64_t seed)
{
	struct store *store;

	*run = (struct run){
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

static void run_deinit(struct run *run)
{
	close(run->base);
	free(run->stamp);
	free(run->fate);
	free(run->payload_bad);
	free(run->buffer);
}

/* A fresh copy, holes left out, mapped for damaging. */
static void begin_round(struct run *run)
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
			size_t bytes = (size_t)(hole - at) < run->config.unit_bytes ? (size_t)(hole - at) :
										      run->config.unit_bytes;

			assert_int_equal(pread(run->base, run->buffer, bytes, at), bytes);
			assert_int_equal(pwrite(run->fd, run->buffer, bytes, at), bytes);
			at += (off_t)bytes;
		}
	}
	assert_int_equal(image_map(&run->image, run->fd), 0);
}

static map_word word_at(const struct run *run, uint64_t granule)
{
	return atomic_load(&run->image.map[granule]);
}

/* Of the undamaged image: damage of this round must not change what is expected of the rest of it. */
static map_word base_word(const struct run *run, uint64_t granule)
{
	map_word word;
	off_t at = (off_t)(run->image.super->region[REGION_MAP].offset + granule * sizeof(word));

	assert_int_equal(pread(run->base, &word, sizeof(word), at), sizeof(word));
	return word;
}

static uint64_t pick_granule(struct run *run)
{
	return random_below(&run->random, run->granules);
}

/* An object that is named, with its record; 0 when none was met. */
static uint32_t pick_object(struct run *run, struct object *ret)
{
	for (unsigned i = 0; i < 200; i++) {
		map_word word = base_word(run, pick_granule(run));

		if (!map_word_is_object(word))
			continue;
		record_read(&run->image.records[word], ret);
		return word;
	}
	fail_msg("the image has no objects");
	return 0;
}

/* ---- damages ---- */

static map_word wild_word(struct run *run, uint64_t granule)
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

static void damage_word(struct run *run)
{
	uint64_t granule = pick_granule(run);
	map_word was = word_at(run, granule), word = wild_word(run, granule);

	say(run, "word %llu: %08x -> %08x; ", (unsigned long long)granule, was, word);
	atomic_store(&run->image.map[granule], word);
}

/* A value near the old one, with a bit turned, or any. */
static uint64_t bent(struct run *run, uint64_t value, unsigned bits)
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

static void bend_field(struct run *run, struct object *object)
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

static void damage_record(struct run *run)
{
	struct object object, was;
	uint32_t id = pick_object(run, &object);

	was = object;
	bend_field(run, &object);
	record_write(&run->image.records[id], &object);
	say(run, "id %u: first %u>%u count %u>%u filled %u>%u codec %u>%u order %u>%u flags %u>%u stored %u>%u place "
		 "%llx>%llx seq %llx>%llx; ",
		id, was.first, object.first, was.count, object.count, was.filled, object.filled, was.codec,
		object.codec, was.frame_order, object.frame_order, was.flags, object.flags, was.stored_bytes,
		object.stored_bytes, (unsigned long long)was.place, (unsigned long long)object.place,
		(unsigned long long)was.seq, (unsigned long long)object.seq);
	run->bent[run->bent_count++] = id;
}

static void damage_slot(struct run *run)
{
	unsigned slot = (unsigned)random_below(&run->random, run->config.slots);
	uint64_t was = run->image.slots[slot].unit, unit = random_below(&run->random, run->granules / run->unit_granules);

	if (random_below(&run->random, 3) == 0)
		unit = random_below(&run->random, 2) ? SLOT_UNIT_NONE : random_next(&run->random);
	say(run, "slot %u: %llx -> %llx; ", slot, (unsigned long long)was, (unsigned long long)unit);
	atomic_store(&run->image.slots[slot].unit, unit);
}

/* The object's granules of frames first .. last. */
static void mark_frames(struct run *run, uint32_t id, const struct object *object, uint32_t first, uint32_t last)
{
	for (uint32_t i = 0; i < object->count; i++) {
		uint32_t frame = i >> object->frame_order;

		if (frame >= first && frame <= last && base_word(run, object->first + i) == id)
			run->payload_bad[object->first + i] = 1;
	}
}

/* One bit of the payload: in the table it costs the frame, or two of them; in a frame that one. */
static void damage_payload(struct run *run)
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
static void damage(struct run *run, unsigned count)
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

static bool is_bent(const struct run *run, map_word id)
{
	for (unsigned i = 0; i < run->bent_count; i++) {
		if (run->bent[i] == id)
			return true;
	}
	return false;
}

static bool covers(const struct run *run, uint32_t id, uint64_t granule)
{
	struct object object;

	if (id >= run->image.records_max)
		return false;
	record_read(&run->image.records[id], &object);
	return granule >= object.first && granule < (uint64_t)object.first + object.count;
}

static bool slot_is_units(const struct run *run, map_word word, uint64_t granule)
{
	unsigned slot = map_word_slot_index(word);

	return slot < run->config.slots && run->image.slots[slot].unit == granule / run->unit_granules;
}

/* Of a granule whose own word was damaged. */
static enum fate fate_of_wild_word(const struct run *run, map_word word, uint64_t granule)
{
	if (word == MAP_HOLE || (map_word_is_slot(word) && slot_is_units(run, word, granule)) ||
		(map_word_is_object(word) && covers(run, word, granule)))
		return FATE_ANY;
	return FATE_BAD;
}

/* Of a granule whose word is what it was. */
static enum fate fate_of_good_word(const struct run *run, map_word word, uint64_t granule)
{
	if (map_word_is_slot(word))
		return slot_is_units(run, word, granule) ? FATE_EXACT : FATE_BAD;
	if (!map_word_is_object(word))
		return FATE_EXACT;
	if (is_bent(run, word))
		return FATE_CONCERNED;
	return run->payload_bad[granule] ? FATE_BAD : FATE_EXACT;
}

static void doom_named(struct run *run, map_word word)
{
	for (uint64_t granule = 0; granule < run->granules; granule++) {
		if (word_at(run, granule) == word && run->fate[granule] == FATE_EXACT)
			run->fate[granule] = FATE_CONCERNED;
	}
}

static void work_out_fates(struct run *run)
{
	for (uint64_t granule = 0; granule < run->granules; granule++) {
		map_word was = base_word(run, granule), word = word_at(run, granule);

		run->fate[granule] = (uint8_t)(word == was ? fate_of_good_word(run, word, granule) :
							     fate_of_wild_word(run, word, granule));
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

/* ---- what came of it ---- */

static bool is_zeros(const uint8_t *at)
{
	static const uint8_t zeros[GRANULE_BYTES];

	return memcmp(at, zeros, GRANULE_BYTES) == 0;
}

static void check_granule(struct run *run, uint64_t granule, int result)
{
	enum fate fate = (enum fate)run->fate[granule];
	bool right = result == 0 && stamp_is(run->buffer, granule, run->stamp[granule]);
	bool bad = result == -EIO && is_zeros(run->buffer);

	if (fate == FATE_ANY || (fate == FATE_EXACT && right) || (fate == FATE_BAD && bad) ||
		(fate == FATE_CONCERNED && (right || bad)))
		return;
	fail_msg("round %u: granule %llu (%s): answer %d, bytes %s. Damage: %s", run->round,
		(unsigned long long)granule, fate == FATE_EXACT ? "of no concern" : fate == FATE_BAD ? "bad" : "concerned",
		result, right ? "right" : "wrong", run->what);
}

/* Granule by granule, then unit by unit: the same answer, damaged granules zero, the others delivered. */
static void check_reads(struct run *run, struct store *store, uint8_t *ret_bad)
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

			if (ret_bad[granule + i] ? !is_zeros(at) :
				(run->fate[granule + i] != FATE_ANY &&
						   !stamp_is(at, granule + i, run->stamp[granule + i])))
				fail_msg("round %u: granule %llu in a unit. Damage: %s", run->round,
					(unsigned long long)granule + i, run->what);
		}
	}
}

static void check_store(struct run *run, struct store *store, const char *when)
{
	char text[1000];

	snprintf(text, sizeof(text), "%s, round %u, damage: %s", when, run->round, run->what);
	fixture_check(store, text);
}

/* What was lost is good again once it is written or discarded, and then nothing is left of the damage. */
static void heal(struct run *run, struct store *store, const uint8_t *bad, uint32_t *stamp)
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

static void check_healed(struct run *run, struct store *store, const uint32_t *stamp)
{
	for (uint64_t granule = 0; granule < run->granules; granule++) {
		int result = store_read(store_io(store, 1), granule, 1, run->buffer);

		if (result != 0 || !stamp_is(run->buffer, granule, stamp[granule]))
			fail_msg("round %u: granule %llu is not good again (%d). Damage: %s", run->round,
				(unsigned long long)granule, result, run->what);
	}
}

static void end_round(struct run *run)
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
	struct run run;

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

/* Turns one bit of a frame of the object at granule. Returns the frame's granules, or none: same-filled, or in a slot. */
static struct range damage_running(struct run *run, struct store *store, uint64_t granule)
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
	return (struct range){object.first + (index << object.frame_order), (uint32_t)(frame.plain_bytes / GRANULE_BYTES)};
}

/* Reads of the damaged frame are refused and counted, until its granules are written again, one by one. */
static void check_running_damage(struct run *run, struct store *store, struct range range, map_word word)
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
	struct run run;
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

/* ---- single cases ---- */

/* Sequence numbers go on above the largest; one that is out of reach must not make them start again. */
static void sequence_at_its_end(void **state)
{
	static const uint64_t wild[] = {UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 56, (UINT64_C(1) << 56) - 1,
		(UINT64_C(1) << 55) + 9, 0};
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
		cmocka_unit_test(closed_small_units),
		cmocka_unit_test(closed_larger_frames),
		cmocka_unit_test(closed_large_units),
		cmocka_unit_test(running),
		cmocka_unit_test(sequence_at_its_end),
		cmocka_unit_test(one_record_over_many),
	};

	cmocka_set_test_filter(getenv("CMOCKA_TEST_FILTER"));
	return cmocka_run_group_tests_name("store_damage", tests, NULL, NULL);
}
