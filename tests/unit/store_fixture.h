/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the tests of the store share: an image on a memfd, configurations,
 * granules that say who they are, ranges, the check after everything.
 */
#ifndef UNIT_STORE_FIXTURE_H
#define UNIT_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "codec.h"
#include "random.h"
#include "store_internal.h"
#include "units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define FIXTURE_IS_TSAN true
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FIXTURE_IS_TSAN true
#endif
#endif
#ifndef FIXTURE_IS_TSAN
#define FIXTURE_IS_TSAN false
#endif

#define FIXTURE_WAIT_NS (20 * UINT64_C(1000000000))

/* ---- random numbers: xorshift64*, the state is never 0 ---- */

/* A number from the environment, or the given one: how long, how often. */
static inline uint64_t fixture_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* ---- images ---- */

static inline struct store_config fixture_config(uint64_t unit_bytes, uint64_t frame_bytes, uint64_t size_bytes)
{
	return (struct store_config){
		.size_bytes = size_bytes,
		.max_size_bytes = size_bytes,
		.limit_bytes = UINT64_MAX,
		.reserve_bytes = 0,
		.unit_bytes = (uint32_t)unit_bytes,
		.frame_bytes = (uint32_t)frame_bytes,
		.codec = CODEC_LZ4,
		.level = 1,
		.slots = 4,
		.io_threads = 2,
		.compress_threads = 1,
	};
}

/* The least limit that a configuration may have, plus what is asked for. */
static inline uint64_t fixture_limit(struct store_config config, uint64_t above_bytes)
{
	config.limit_bytes = MIB;
	while (store_config_problem(&config))
		config.limit_bytes += MIB;
	return config.limit_bytes + above_bytes;
}

static inline int fixture_format(const struct store_config *config)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_null(store_config_problem(config));
	assert_int_equal(store_format(fd, config), 0);
	return fd;
}

static inline struct store *fixture_open(int fd)
{
	struct store *store = NULL;

	assert_int_equal(store_open(&store, fd), 0);
	assert_non_null(store);
	return store;
}

static inline uint64_t fixture_file_bytes(int fd)
{
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	return (uint64_t)status.st_size;
}

static inline uint64_t fixture_file_memory(int fd)
{
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	return (uint64_t)status.st_blocks * 512;
}

/*
 * store_check(), and what it does not look at: every slot is free, or open
 * with granules and a header that says so; slot bytes are the slots'.
 */
static inline void fixture_check(struct store *store, const char *when)
{
	const struct superblock *super = store->image.super;
	unsigned free_slots = 0;
	uint64_t slot_granules = 0;
	char problem[256] = "";

	if (store_check(store, problem, sizeof(problem)) != 0)
		fail_msg("%s: %s", when, problem);
	for (unsigned i = 0; i < super->slots; i++) {
		bool is_free = store->staging.slot[i].state == SLOT_FREE;

		free_slots += is_free;
		slot_granules += store->staging.slot[i].granules;
		if (is_free && (store->staging.slot[i].granules || store->image.slots[i].unit != SLOT_UNIT_NONE))
			fail_msg("%s: slot %u is free but names a unit or has granules", when, i);
		if (!is_free && store->image.slots[i].unit == SLOT_UNIT_NONE)
			fail_msg("%s: slot %u is taken but names no unit", when, i);
	}
	if (free_slots != store->staging.free)
		fail_msg("%s: %u slots are free, %u are counted", when, free_slots, store->staging.free);
	if (slot_granules * GRANULE_BYTES != store->gauges->slot_bytes)
		fail_msg("%s: slot bytes differ", when);
}

/* ---- writes, by both roads ---- */

struct fixture_source {
	const void *data;
	uint64_t bytes;
};

static inline int fixture_fetch(void *source, void *to)
{
	const struct fixture_source *from = (const struct fixture_source *)source;

	memcpy(to, from->data, from->bytes);
	return 0;
}

/* A whole unit is fetched by the store, if choice is odd. */
static inline int fixture_write(
	struct store *store, struct store_io *io, uint64_t granule, uint32_t count, const void *data, uint64_t choice)
{
	struct fixture_source source = {data, count * GRANULE_BYTES};

	if (count == store->unit_granules && choice % 2 != 0)
		return store_write_unit(io, granule, fixture_fetch, &source);
	return store_write(io, granule, count, data);
}

/* ---- granules that say who they are ---- */

enum stamp_kind {
	STAMP_ZEROS,
	STAMP_WORD,  /* one word over and over, the same in every granule of this stamp */
	STAMP_SMALL, /* 64 random bytes, then zeros */
	STAMP_TEXT,  /* shrinks to about a tenth */
	STAMP_HALF,
	STAMP_RANDOM,
	STAMP_KINDS,
};

/* A stamp is a number and a kind; 0 is a hole. */
static inline uint32_t stamp_make(uint32_t number, enum stamp_kind kind)
{
	return number * STAMP_KINDS + kind;
}

static inline enum stamp_kind stamp_kind(uint32_t stamp)
{
	return (enum stamp_kind)(stamp % STAMP_KINDS);
}

/* The bytes of one granule under one stamp; from STAMP_SMALL on the first word names both. */
static inline void stamp_fill(uint8_t *at, uint64_t granule, uint32_t stamp)
{
	enum stamp_kind kind = stamp_kind(stamp);
	uint64_t name = granule << 32 | stamp, state = random_seed(name), word = 0;

	if (kind == STAMP_WORD)
		word = random_seed(stamp);
	for (uint64_t i = 0; i < GRANULE_BYTES / sizeof(word); i++) {
		if (kind == STAMP_RANDOM || (kind == STAMP_HALF && i % 16 < 8))
			word = random_next(&state);
		else if (kind == STAMP_SMALL)
			word = i < 8 ? random_next(&state) : 0;
		else if (kind == STAMP_TEXT)
			word = i % 32 == 0 ? random_next(&state) : UINT64_C(0x2065766f6c20492e) + i % 12;
		memcpy(at + i * sizeof(word), &word, sizeof(word));
	}
	if (kind >= STAMP_SMALL)
		memcpy(at, &name, sizeof(name));
}

static inline void stamp_fill_range(uint8_t *at, uint64_t granule, uint32_t count, uint32_t stamp)
{
	for (uint32_t i = 0; i < count; i++)
		stamp_fill(at + i * GRANULE_BYTES, granule + i, stamp);
}

static inline bool stamp_is(const uint8_t *at, uint64_t granule, uint32_t stamp)
{
	static const uint8_t zeros[GRANULE_BYTES];
	uint8_t expected[GRANULE_BYTES];

	if (stamp_kind(stamp) == STAMP_ZEROS)
		return memcmp(at, zeros, GRANULE_BYTES) == 0;
	stamp_fill(expected, granule, stamp);
	return memcmp(at, expected, GRANULE_BYTES) == 0;
}

/* ---- ranges ---- */

struct range {
	uint64_t granule;
	uint32_t count;
};

/* Of the unit, all of it, one granule, or any part. */
static inline struct range range_in_unit(uint64_t *random, uint64_t granules, uint64_t unit_granules, uint64_t unit)
{
	uint64_t start = unit * unit_granules;
	uint64_t end = start + unit_granules < granules ? start + unit_granules : granules;
	unsigned shape = (unsigned)random_below(random, 4);
	struct range range = {start, (uint32_t)(end - start)};

	if (shape == 0)
		return range;
	range.granule = start + random_below(random, end - start);
	range.count = shape == 1 ? 1 : 1 + (uint32_t)random_below(random, end - range.granule);
	return range;
}

static inline struct range range_pick(uint64_t *random, uint64_t granules, uint64_t unit_granules)
{
	return range_in_unit(
		random, granules, unit_granules, random_below(random, (granules + unit_granules - 1) / unit_granules));
}

#endif
