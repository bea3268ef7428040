/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Seeded contents that resemble memory, and buffers between pages that may not
 * be touched: the codec libraries are not built with sanitizers, so a guard
 * page is what catches them reading or writing one byte too far.
 */
#ifndef TESTS_CODEC_CONTENT_H
#define TESTS_CODEC_CONTENT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum content {
	CONTENT_ZEROS,
	CONTENT_SAME_WORD,
	CONTENT_TEXT,
	CONTENT_HEAP,
	CONTENT_RANDOM,
	CONTENT_MIXED,
	CONTENT_COUNT,
};

/* xorshift64*; the state may not be 0. */
static inline uint64_t content_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static inline uint64_t content_seed(uint64_t number)
{
	uint64_t state = number * UINT64_C(0x9e3779b97f4a7c15) + 1;

	content_random(&state);
	return state ? state : 1;
}

static inline void content_fill_text(uint8_t *at, size_t bytes, uint64_t *state)
{
	static const char words[][12] = {"the ", "page ", "is ", "of ", "memory ", "swap ", "a ", "folio ", "kernel ",
		"and ", "stored ", "frame ", "to ", "in ", "order ", "\n"};

	while (bytes > 0) {
		uint64_t random = content_random(state);
		const char *word = words[(random & 15) < (random >> 4 & 15) ? random & 15 : random >> 4 & 15];
		size_t length = strlen(word);

		if (length > bytes)
			length = bytes;
		memcpy(at, word, length);
		at += length;
		bytes -= length;
	}
}

/* Objects of four to ten words: a type pointer out of few, a near pointer, counters, characters, empty fields. */
static inline void content_fill_heap(uint8_t *at, size_t bytes, uint64_t *state)
{
	const uint64_t types = UINT64_C(0x0000559a13c40000), heap = UINT64_C(0x00007f21a8000000);
	size_t done = 0;

	while (done < bytes) {
		uint64_t object[10] = {0};
		uint64_t random = content_random(state);
		size_t words = 4 + random % 7;
		size_t length = words * sizeof(object[0]);

		object[0] = types + (random >> 8 & 15) * 0x1a0;
		object[1] = 1 + (random >> 12 & 3);
		object[2] = heap + done + ((random >> 16 & 0xfff) << 4);
		object[3] = random >> 32 & 0xff;
		if (words > 6)
			content_fill_text((uint8_t *)&object[4], random >> 40 & 15, state);
		if (words > 8)
			object[8] = content_random(state);
		if (length > bytes - done)
			length = bytes - done;
		memcpy(at + done, object, length);
		done += length;
	}
}

static inline void content_fill_random(uint8_t *at, size_t bytes, uint64_t *state)
{
	for (size_t done = 0; done < bytes; done += 8) {
		uint64_t word = content_random(state);

		memcpy(at + done, &word, bytes - done < 8 ? bytes - done : 8);
	}
}

static inline void content_fill_same_word(uint8_t *at, size_t bytes, uint64_t *state)
{
	uint64_t word = content_random(state);

	for (size_t done = 0; done < bytes; done += 8)
		memcpy(at + done, &word, bytes - done < 8 ? bytes - done : 8);
}

static inline void content_fill(enum content content, uint64_t seed, uint8_t *at, size_t bytes)
{
	uint64_t state = content_seed(seed);

	switch (content) {
	case CONTENT_ZEROS:
		memset(at, 0, bytes);
		break;
	case CONTENT_SAME_WORD:
		content_fill_same_word(at, bytes, &state);
		break;
	case CONTENT_TEXT:
		content_fill_text(at, bytes, &state);
		break;
	case CONTENT_HEAP:
		content_fill_heap(at, bytes, &state);
		break;
	case CONTENT_RANDOM:
		content_fill_random(at, bytes, &state);
		break;
	default:
		for (size_t done = 0; done < bytes; done += 4096)
			content_fill((enum content)(content_random(&state) % CONTENT_MIXED), content_random(&state),
				at + done, bytes - done < 4096 ? bytes - done : 4096);
		break;
	}
}

struct guarded {
	uint8_t *mapping;
	size_t mapped_bytes;
	size_t page_bytes;
};

static inline struct guarded guarded_create(size_t bytes_max)
{
	struct guarded guarded = {.page_bytes = (size_t)sysconf(_SC_PAGESIZE)};
	size_t inner_bytes = (bytes_max + guarded.page_bytes - 1) / guarded.page_bytes * guarded.page_bytes;

	guarded.mapped_bytes = inner_bytes + 2 * guarded.page_bytes;
	guarded.mapping = mmap(NULL, guarded.mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (guarded.mapping == MAP_FAILED ||
		mprotect(guarded.mapping + guarded.page_bytes, inner_bytes, PROT_READ | PROT_WRITE) != 0)
		abort();
	return guarded;
}

static inline void guarded_destroy(struct guarded *guarded)
{
	munmap(guarded->mapping, guarded->mapped_bytes);
}

/* The first byte lies behind a guard page. */
static inline uint8_t *guarded_head(const struct guarded *guarded)
{
	return guarded->mapping + guarded->page_bytes;
}

/* Byte `bytes` of it is a guard page. */
static inline uint8_t *guarded_tail(const struct guarded *guarded, size_t bytes)
{
	return guarded->mapping + guarded->mapped_bytes - guarded->page_bytes - bytes;
}

#endif
