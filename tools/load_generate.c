// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Seeded contents: imitated process heaps, text, noise.
 *
 * One statement draws one number: the order in which a compiler evaluates the
 * parts of an expression must not show in the bytes.
 */
#include "load_generate.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "load_rng.h"

/* Tuned by measuring (load_test.c holds the ratios): see the top of load_generate.h. */
#define WORDS 2048
#define WORD_BYTES 24
#define TYPES 96
#define FIELDS_MAX 9
#define ARENAS 6
#define RECENT 16
#define ACTIVE_TYPES 3
#define ACTIVE_WORDS 12
#define NEW_TYPE_PERCENT 2
#define NEW_WORD_PERCENT 35

enum field_kind {
	FIELD_CONSTANT, /* type pointers, flags: the same in every object of the type */
	FIELD_COUNT,    /* reference counts, lengths: small */
	FIELD_NEAR,     /* pointer to an object allocated shortly before */
	FIELD_RECENT,   /* pointer that was stored elsewhere already */
	FIELD_FAR,      /* pointer anywhere into an arena */
	FIELD_HASH,     /* 64 bits of noise */
	FIELD_NAME,     /* a word, padded to 8 bytes */
	FIELD_ZERO,
	FIELD_KINDS
};

static const uint8_t field_weights[FIELD_KINDS] = {
	[FIELD_CONSTANT] = 30,
	[FIELD_COUNT] = 16,
	[FIELD_NEAR] = 14,
	[FIELD_RECENT] = 10,
	[FIELD_FAR] = 6,
	[FIELD_HASH] = 5,
	[FIELD_NAME] = 10,
	[FIELD_ZERO] = 10,
};

struct type {
	unsigned field_count;
	uint8_t kinds[FIELDS_MAX];
	uint64_t constants[FIELDS_MAX];
};

/* What a process is made of: one per folio, the words are the seed's. */
struct world {
	struct load_rng rng;
	char words[WORDS][WORD_BYTES];
	struct type types[TYPES];
	uint64_t arenas[ARENAS];
	uint64_t recent[RECENT];
	uint16_t active_types[ACTIVE_TYPES]; /* heaps are local: what was allocated just now comes again */
	uint16_t active_words[ACTIVE_WORDS];
	uint64_t cursor; /* address of the object being written */
};

/* Small numbers far more often than large ones, as words and types are used. */
static uint32_t skewed_below(struct load_rng *rng, uint32_t limit)
{
	uint32_t bound = load_rng_below(rng, limit) + 1;

	return load_rng_below(rng, bound);
}

static void make_words(struct load_rng rng, char words[WORDS][WORD_BYTES])
{
	static const char consonants[] = "bcdfghklmnprstvwst";
	static const char vowels[] = "aeiouaeio";
	char *at;

	for (unsigned i = 0; i < WORDS; i++) {
		at = words[i];
		memset(at, 0, WORD_BYTES);
		for (unsigned left = 1 + load_rng_below(&rng, 5); left; left--) {
			*at++ = consonants[load_rng_below(&rng, sizeof(consonants) - 1)];
			*at++ = vowels[load_rng_below(&rng, sizeof(vowels) - 1)];
			if (load_rng_below(&rng, 3) == 0)
				*at++ = consonants[load_rng_below(&rng, sizeof(consonants) - 1)];
		}
		if (load_rng_below(&rng, 6) == 0)
			*at++ = '_';
	}
}

static uint8_t pick_kind(struct load_rng *rng)
{
	unsigned sum = 0, kind = 0;

	for (unsigned i = 0; i < FIELD_KINDS; i++)
		sum += field_weights[i];
	for (unsigned at = load_rng_below(rng, sum); at >= field_weights[kind]; kind++)
		at -= field_weights[kind];
	return (uint8_t)kind;
}

static void make_type(struct world *world, struct type *type)
{
	struct load_rng *rng = &world->rng;

	type->field_count = 3 + load_rng_below(rng, FIELDS_MAX - 3);
	for (unsigned i = 0; i < type->field_count; i++) {
		type->kinds[i] = i ? pick_kind(rng) : FIELD_CONSTANT;
		if (load_rng_below(rng, 3))
			type->constants[i] = world->arenas[0] + load_rng_below(rng, 1 << 16) * 16;
		else
			type->constants[i] = load_rng_below(rng, 1 << 10);
	}
}

static struct world *world_create(uint64_t seed, uint64_t folio_number)
{
	struct world *world = calloc(1, sizeof(*world));

	if (!world)
		return NULL;
	make_words(load_rng_seeded(seed, 0), world->words);
	world->rng = load_rng_seeded(seed, folio_number + 1);
	for (unsigned i = 0; i < ARENAS; i++)
		world->arenas[i] = UINT64_C(0x7f0000000000) | (load_rng_next(&world->rng) & UINT64_C(0xffffff00000));
	for (unsigned i = 0; i < TYPES; i++)
		make_type(world, &world->types[i]);
	world->cursor = world->arenas[1];
	for (unsigned i = 0; i < RECENT; i++)
		world->recent[i] = world->cursor + 16 * i;
	return world;
}

static uint64_t make_field(struct world *world, const struct type *type, unsigned field)
{
	struct load_rng *rng = &world->rng;
	uint64_t arena;

	switch (type->kinds[field]) {
	case FIELD_CONSTANT:
		return type->constants[field];
	case FIELD_COUNT:
		return skewed_below(rng, load_rng_below(rng, 8) ? 4 : 200);
	case FIELD_NEAR:
		return world->cursor - 16 * (1 + load_rng_below(rng, 200));
	case FIELD_RECENT:
		return world->recent[skewed_below(rng, RECENT)];
	case FIELD_FAR:
		arena = world->arenas[2 + load_rng_below(rng, ARENAS - 2)];
		return arena + 16 * load_rng_below(rng, 1 << 16);
	case FIELD_HASH:
		return load_rng_next(rng);
	default:
		return 0;
	}
}

static const char *pick_word(struct world *world)
{
	uint16_t *active = &world->active_words[load_rng_below(&world->rng, ACTIVE_WORDS)];

	if (load_rng_below(&world->rng, 100) < NEW_WORD_PERCENT)
		*active = (uint16_t)skewed_below(&world->rng, WORDS);
	return world->words[*active];
}

static const struct type *pick_type(struct world *world)
{
	uint16_t *active = &world->active_types[skewed_below(&world->rng, ACTIVE_TYPES)];

	if (load_rng_below(&world->rng, 100) < NEW_TYPE_PERCENT)
		*active = (uint16_t)skewed_below(&world->rng, TYPES);
	return &world->types[*active];
}

/* Writes at most room words of 8 bytes at to, which is zero. Returns how many. */
static size_t put_name(struct world *world, uint8_t *to, size_t room)
{
	const char *word = pick_word(world);
	size_t bytes = strlen(word) + 1, words = (bytes + 7) / 8;

	if (words > room)
		return room;
	memcpy(to, word, bytes);
	return words;
}

/* The same; an object that does not fit is cut. */
static size_t put_object(struct world *world, uint8_t *to, size_t room)
{
	const struct type *type = pick_type(world);
	size_t done = 0;
	uint64_t value;

	for (unsigned i = 0; i < type->field_count && done < room; i++) {
		if (type->kinds[i] == FIELD_NAME) {
			done += put_name(world, to + 8 * done, room - done);
			continue;
		}
		value = htole64(make_field(world, type, i));
		memcpy(to + 8 * done, &value, sizeof(value));
		done++;
	}
	done += done & 1; /* allocators round to 16 bytes */
	world->recent[load_rng_below(&world->rng, RECENT)] = world->cursor;
	world->cursor += 8 * done;
	return done;
}

int load_generate_synthetic(uint64_t seed, uint64_t folio_number, uint8_t *folio)
{
	CLEANUP(free) struct world *world = world_create(seed, folio_number);
	size_t words = LOAD_FOLIO_BYTES / 8;

	if (!world)
		return -ENOMEM;
	memset(folio, 0, LOAD_FOLIO_BYTES);
	for (size_t done = 0; done < words;)
		done += put_object(world, folio + 8 * done, words - done);
	return 0;
}

/* Log lines: a rising time, a number, a few words. */
static size_t put_line(struct world *world, uint64_t *clock, char *to, size_t room)
{
	const char *program = pick_word(world);
	unsigned process = skewed_below(&world->rng, 5000);
	char line[8 * WORD_BYTES + 64];
	int length;

	*clock += load_rng_below(&world->rng, 4000);
	length = snprintf(line, sizeof(line), "%llu.%03llu %s[%u]:", (unsigned long long)(*clock / 1000),
		(unsigned long long)(*clock % 1000), program, process);
	for (unsigned left = 3 + load_rng_below(&world->rng, 5); left; left--)
		length += snprintf(line + length, sizeof(line) - (size_t)length, " %s", pick_word(world));
	line[length++] = '\n';
	if ((size_t)length > room)
		length = (int)room;
	memcpy(to, line, (size_t)length);
	return (size_t)length;
}

int load_generate_text(uint64_t seed, uint64_t folio_number, uint8_t *folio)
{
	CLEANUP(free) struct world *world = world_create(seed, folio_number);
	uint64_t clock = UINT64_C(1700000000000) + folio_number * 1000000;

	if (!world)
		return -ENOMEM;
	for (size_t done = 0; done < LOAD_FOLIO_BYTES;)
		done += put_line(world, &clock, (char *)folio + done, LOAD_FOLIO_BYTES - done);
	return 0;
}

int load_generate_random(uint64_t seed, uint64_t folio_number, uint8_t *folio)
{
	struct load_rng rng = load_rng_seeded(seed, folio_number + 1);
	uint64_t value;

	for (size_t done = 0; done < LOAD_FOLIO_BYTES; done += sizeof(value)) {
		value = htole64(load_rng_next(&rng));
		memcpy(folio + done, &value, sizeof(value));
	}
	return 0;
}
