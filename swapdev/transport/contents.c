// SPDX-License-Identifier: GPL-2.0-or-later
/* What replayed writes contain. */
#include "contents.h"

#include "units.h"

#include <stddef.h>

#define STAMP_WORDS 2
#define PHRASE_WORDS 8
#define GRANULE_WORDS (GRANULE_BYTES / sizeof(uint64_t))

/* Spreads small differences of the input over all bits. */
static uint64_t mix(uint64_t value)
{
	value = (value ^ value >> 29) * UINT64_C(0xc2b2ae3d27d4eb4f);
	value = (value ^ value >> 32) * UINT64_C(0x9fb21c651e98df25);
	return value ^ value >> 28;
}

void contents_init(struct contents *contents, uint64_t seed, uint64_t stream)
{
	*contents = (struct contents){.state = mix(seed + 1) ^ mix(~stream)};
}

uint64_t contents_random(struct contents *contents)
{
	contents->state += UINT64_C(0x9e3779b97f4a7c15);
	return mix(contents->state);
}

uint64_t contents_random_below(struct contents *contents, uint64_t limit)
{
	return (uint64_t)(((unsigned __int128)contents_random(contents) * limit) >> 64);
}

static void fill_same(struct contents *contents, uint64_t *words)
{
	uint64_t word = contents_random_below(contents, 4) ? contents_random(contents) : 0;

	for (size_t i = 0; i < GRANULE_WORDS; i++)
		words[i] = word;
}

/*
 * A stamp of place and time comes first, so that no two granules are equal
 * and one that turns up in the wrong place, or a version late, is seen.
 */
static void fill_granule(struct contents *contents, uint64_t *words, uint64_t offset_bytes)
{
	size_t noise_words = GRANULE_WORDS * contents->random_percent / 100;
	uint64_t phrase[PHRASE_WORDS];
	size_t i = STAMP_WORDS;

	words[0] = offset_bytes;
	words[1] = contents_random(contents);
	while (i < noise_words)
		words[i++] = contents_random(contents);
	for (size_t p = 0; p < PHRASE_WORDS; p++)
		phrase[p] = mix(offset_bytes + p);
	for (; i < GRANULE_WORDS; i++)
		words[i] = phrase[i % PHRASE_WORDS];
}

void contents_fill(struct contents *contents, void *data, uint64_t offset_bytes, uint64_t length_bytes)
{
	for (uint64_t at = 0; at < length_bytes; at += GRANULE_BYTES) {
		uint64_t *words = (uint64_t *)data + at / sizeof(uint64_t);

		if (contents_random_below(contents, 100) < contents->same_percent)
			fill_same(contents, words);
		else
			fill_granule(contents, words, offset_bytes + at);
	}
}
