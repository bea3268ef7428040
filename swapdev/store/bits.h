/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs in the bitmap of one chunk: 1 = taken. Nothing is locked here. */
#ifndef STORE_BITS_H
#define STORE_BITS_H

#include <stdbool.h>
#include <stdint.h>

/* Bits of a chunk: a page of them. */
#define BITS_COUNT UINT32_C(32768)

/* Ones at bit positions from .. to - 1 of a word. */
static inline uint64_t word_mask(unsigned from, unsigned to)
{
	uint64_t below_to = to == 64 ? UINT64_MAX : (UINT64_C(1) << to) - 1;

	return below_to & ~((UINT64_C(1) << from) - 1);
}

static inline void bits_set(uint64_t *bits, uint32_t from, uint32_t to, bool taken)
{
	uint32_t word = from / 64, last = (to - 1) / 64;
	uint64_t mask = word_mask(from % 64, word == last ? (to - 1) % 64 + 1 : 64);

	for (; word <= last; word++) {
		bits[word] = taken ? bits[word] | mask : bits[word] & ~mask;
		mask = word + 1 == last ? word_mask(0, (to - 1) % 64 + 1) : UINT64_MAX;
	}
}

/* Is one of the bits from .. to - 1 set? */
static inline bool bits_any(const uint64_t *bits, uint32_t from, uint32_t to)
{
	uint32_t word = from / 64, last = (to - 1) / 64;
	uint64_t any;

	if (word == last)
		return bits[word] & word_mask(from % 64, (to - 1) % 64 + 1);
	any = (bits[word] & word_mask(from % 64, 64)) | (bits[last] & word_mask(0, (to - 1) % 64 + 1));
	/* No way out in the middle: the compiler takes several words at a time. */
	for (word++; word < last; word++)
		any |= bits[word];
	return any;
}

/* How many bits from `at` on are 1 (taken) or 0, up to the end. */
static inline uint32_t bits_span(const uint64_t *bits, uint32_t at, bool taken)
{
	uint32_t start = at;

	while (at < BITS_COUNT) {
		uint64_t word = taken ? ~bits[at / 64] : bits[at / 64];

		word >>= at % 64;
		if (word)
			return at + (uint32_t)__builtin_ctzll(word) - start;
		at = (at | 63) + 1;
	}
	return BITS_COUNT - start;
}

/* How many bits next before `at` are 0, down to the start. */
static inline uint32_t bits_free_before(const uint64_t *bits, uint32_t at)
{
	uint32_t end = at;

	while (at > 0) {
		uint32_t in_word = (at - 1) % 64 + 1;
		uint64_t word = bits[(at - 1) / 64] << (64 - in_word);

		if (word) {
			uint32_t zeros = (uint32_t)__builtin_clzll(word);

			return end - at + (zeros < in_word ? zeros : in_word);
		}
		at -= in_word;
	}
	return end;
}

/* First run of at least `lines` zeros in bits that are known to have one. */
static inline uint32_t bits_find(const uint64_t *bits, uint32_t lines)
{
	uint32_t at = 0;

	while (at < BITS_COUNT) {
		uint32_t run;

		at += bits_span(bits, at, true);
		run = bits_span(bits, at, false);
		if (run >= lines)
			return at;
		at += run;
	}
	return at;
}

#endif
