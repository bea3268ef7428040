/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The image: one file that holds everything a request depends on, addressed by
 * offsets only, so that a server that dies loses nothing.
 *
 * Large regions begin on 2 MiB borders, the small ones share their first huge
 * pages (each on its own would cost 10 MiB). Those marked * have address space
 * for the largest size and are populated as far as they are in use.
 *
 *   superblock   what the image is, where its regions lie
 *   slots        one header per staging slot
 *   requests     per I/O thread: the request in execution (for a successor)
 *   stats        the shared statistics page
 *   scratch      compression output per thread, the cache of decoded frames; no content outlives the process
 *   staging      slots x unit: plain bytes of units being gathered
 *   map          one word per granule (the only truth about it)
 *   records *    one per object
 *   large *      scratch for frames beyond 64 KiB: populated when such a frame size is set
 *   arena *      payloads, in multiples of 64 bytes
 *
 * Publication (who stores what, in which order; any prefix is a valid image):
 *
 *   bytes in slot or arena -> record -> map words (release) -> acknowledge
 *
 * Records, slots and extents that no word names are garbage, swept by the next
 * recovery. Everything else (locks, free space, live counts) is private memory
 * rebuilt by recovery.
 */
#ifndef STORE_IMAGE_H
#define STORE_IMAGE_H

#include "store.h"
#include "units.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_MAGIC UINT64_C(0x31494f494c4f4646) /* "FFOLIOI1" */
#define IMAGE_VERSION 3
#define IMAGE_ALIGN (2 * MIB)

/* Bits of superblock.features: a program that does not know one refuses the image. None so far. */
#define IMAGE_FEATURES_KNOWN UINT64_C(0)

enum image_region {
	REGION_SLOTS,
	REGION_REQUESTS,
	REGION_STATS,
	REGION_SCRATCH,
	REGION_STAGING,
	REGION_MAP,
	REGION_RECORDS,
	REGION_LARGE,
	REGION_ARENA,
	REGION_COUNT,
};

struct image_extent {
	uint64_t offset;
	uint64_t bytes;
};

#define PUNCHES_KEPT 256

struct superblock {
	/* Written once by store_format, covered by sum. */
	uint64_t magic;
	uint32_t version;
	uint32_t bytes; /* sizeof(struct superblock) of the writer */
	uint64_t features;
	uint64_t max_size_bytes;
	uint64_t reserve_bytes;
	uint32_t unit_bytes;
	uint32_t slots;
	uint32_t io_threads;
	uint32_t compress_threads;
	struct image_extent region[REGION_COUNT];
	uint64_t sum; /* XXH3 of all bytes before it */

	/* Changed by the control thread while running; each is range-checked when read. */
	_Atomic uint64_t size_bytes;
	_Atomic uint64_t limit_bytes;
	_Atomic uint64_t ceiling_floor_bytes; /* see room_ceiling(); any value is sane */
	_Atomic uint64_t codec_level; /* codec in the high half, level in the low: they change together */
	_Atomic uint32_t frame_bytes;
	_Atomic uint32_t frame_largest_bytes; /* of all ever set: sizes the buffers for decoded frames */

	/* Between the server and the one that stands by, see ahead.c. Chunk + 1; 0: none. */
	_Atomic uint32_t mapping;
	_Atomic uint32_t punching;
	_Atomic uint64_t punches; /* so far; the last of them, by number modulo PUNCHES_KEPT: */
	_Atomic uint32_t punched[PUNCHES_KEPT];
};
_Static_assert(sizeof(struct superblock) <= 4096, "the superblock is one page");

static inline uint64_t codec_level_pack(unsigned codec, int level)
{
	return (uint64_t)codec << 32 | (uint32_t)level;
}

static inline unsigned codec_level_codec(uint64_t codec_level)
{
	return (unsigned)(codec_level >> 32);
}

static inline int codec_level_level(uint64_t codec_level)
{
	return (int)(int32_t)(uint32_t)codec_level;
}

/*
 * Map word: the state of one granule. One aligned 32-bit store moves a granule
 * from one state to another.
 *
 *   0                           hole, reads as zeros
 *   1 .. 0x7ffffffe             object id: the granule is inside that object
 *   0x7fffffff                  lost: a recovery found its word, record or slot damaged; EIO until written or discarded
 *   0x80000000 | slot           in a staging slot, at the granule's place in its unit
 */
typedef uint32_t map_word;

#define MAP_HOLE UINT32_C(0)
#define MAP_LOST UINT32_C(0x7fffffff)
#define MAP_SLOT_BIT UINT32_C(0x80000000)

static inline map_word map_word_slot(unsigned slot)
{
	return MAP_SLOT_BIT | slot;
}

static inline bool map_word_is_slot(map_word word)
{
	return word & MAP_SLOT_BIT;
}

static inline bool map_word_is_object(map_word word)
{
	return word != MAP_HOLE && word < MAP_LOST;
}

static inline unsigned map_word_slot_index(map_word word)
{
	return word & ~MAP_SLOT_BIT;
}

/*
 * Object record: 32 bytes, four words, read and written with relaxed atomics
 * (publication orders them, not the accesses). Never changes while a map word
 * names it, except `place`: one release store when the copy at the new place
 * is complete.
 *
 *  span    63      48 47      32 31                0
 *         [ filled   | count    | first granule     ]
 *  form    63      32 31   24 23   16 15    8 7     0
 *         [ stored    | 0     | flags | frame| codec ]
 *  place   63  56 55                               0
 *         [ tier | offset in the arena / 64          ]   same-filled objects: the repeated word
 *  seq    [ counts objects, never used twice         ]
 *
 * count    granules covered, within one unit
 * filled   of those, how many were live when it was written (the rest are zeros in the payload)
 * stored   payload bytes, not rounded; for same-filled a check sum of span, place and seq
 * frame    log2 of granules per frame; the last frame may be shorter
 * tier     0: arena
 */
struct record {
	_Atomic uint64_t span;
	_Atomic uint64_t form;
	_Atomic uint64_t place;
	_Atomic uint64_t seq;
};
_Static_assert(sizeof(struct record) == 32, "record budget");

#define RECORD_SAME (1U << 0) /* every word of it is `place` */
#define RECORD_FLAGS_KNOWN RECORD_SAME

/* A record taken apart. */
struct object {
	uint32_t first;
	uint32_t count;
	uint32_t filled;
	uint32_t stored_bytes;
	uint8_t codec;
	uint8_t frame_order;
	uint8_t flags;
	uint64_t place;
	uint64_t seq;
};

#define PLACE_TIER_SHIFT 56
#define PLACE_OFFSET_MASK ((UINT64_C(1) << PLACE_TIER_SHIFT) - 1)

static inline uint64_t place_arena(uint64_t offset_lines)
{
	return offset_lines;
}

static inline bool place_is_arena(uint64_t place)
{
	return (place >> PLACE_TIER_SHIFT) == 0;
}

static inline uint64_t place_offset_lines(uint64_t place)
{
	return place & PLACE_OFFSET_MASK;
}

static inline void record_write(struct record *record, const struct object *object)
{
	atomic_store_explicit(&record->span,
		(uint64_t)object->filled << 48 | (uint64_t)object->count << 32 | object->first, memory_order_relaxed);
	atomic_store_explicit(&record->form,
		(uint64_t)object->stored_bytes << 32 | (uint64_t)object->flags << 16 |
			(uint64_t)object->frame_order << 8 | object->codec,
		memory_order_relaxed);
	atomic_store_explicit(&record->place, object->place, memory_order_relaxed);
	atomic_store_explicit(&record->seq, object->seq, memory_order_relaxed);
}

static inline void record_read(const struct record *record, struct object *ret)
{
	uint64_t span = atomic_load_explicit(&record->span, memory_order_relaxed);
	uint64_t form = atomic_load_explicit(&record->form, memory_order_relaxed);

	ret->first = (uint32_t)span;
	ret->count = (uint32_t)(span >> 32) & 0xffff;
	ret->filled = (uint32_t)(span >> 48);
	ret->codec = (uint8_t)form;
	ret->frame_order = (uint8_t)(form >> 8);
	ret->flags = (uint8_t)(form >> 16);
	ret->stored_bytes = (uint32_t)(form >> 32);
	ret->place = atomic_load_explicit(&record->place, memory_order_acquire);
	ret->seq = atomic_load_explicit(&record->seq, memory_order_relaxed);
}

/* Slot header: the unit whose bytes the slot holds. Stored before a word names the slot. */
struct slot_header {
	_Atomic uint64_t unit; /* SLOT_UNIT_NONE: free */
} __attribute__((aligned(CACHE_LINE_BYTES)));

#define SLOT_UNIT_NONE UINT64_MAX

/* A mapped image. Pointers into the mapping are private to this process. */
struct image {
	uint8_t *base;
	uint64_t bytes;
	uint64_t page_bytes; /* that the file is made of: 2 MiB on a tmpfs with huge pages */
	int fd;		     /* the caller's */
	struct superblock *super;
	_Atomic map_word *map;
	struct record *records;
	struct slot_header *slots;
	uint8_t *staging;
	uint8_t *scratch;
	uint8_t *large;
	uint8_t *arena;
	uint64_t records_max; /* ids are 1 .. records_max - 1 */
	uint64_t arena_bytes;
};

/* Superblock and file size for a configuration that store_config_problem() accepts. Returns 0 or -errno. */
int image_format(int fd, const struct store_config *config);

/* The configuration that a superblock holds. */
void image_config(const struct superblock *super, struct store_config *ret);

/* Maps and checks; nothing is written. Returns 0, -EPROTO or -errno. */
int image_map(struct image *image, int fd);
/* Checks the superblock once more: for who mapped it long before its turn. Returns 0 or -EPROTO. */
int image_check(const struct image *image);
void image_unmap(struct image *image);

/* Populates a range of the image for writing, so that no later access can fail for want of memory. Returns 0 or -errno. */
int image_populate(const struct image *image, const void *start, uint64_t bytes);

/* Gives a range (multiples of 2 MiB) back to the system; it reads as zeros afterwards. Returns 0 or -errno. */
int image_punch(const struct image *image, const void *start, uint64_t bytes);

/* Calls visit for each part that is present as long as the device lives: all but arena and records. Stops at an error. */
int image_visit_fixed(
	const struct image *image, int (*visit)(const struct image *image, const void *start, uint64_t bytes));

/* Is all of it there, as the file has it, without touching it? */
bool image_has(const struct image *image, const void *start, uint64_t bytes);

/* How far behind start the next byte is that is there; bytes: none of so many. */
uint64_t image_next(const struct image *image, const void *start, uint64_t bytes);

/*
 * Scratch, by what it is for. Frames up to SCRATCH_FRAME_BYTES are decoded in
 * the scratch region, larger ones in the large region.
 *
 *   scratch  io x [direct payload], compression threads x [payload], [rewrite buffers], [small cache]
 *   large    [rewrite buffers], [large cache]
 */
#define SCRATCH_FRAME_BYTES (64 * KIB)
#define SCRATCH_DIRECT_BYTES (64 * KIB)

/* Entries of the two caches of decoded frames. */
static inline unsigned scratch_small_entries(unsigned io_threads)
{
	return 4 * io_threads;
}

/* One for each thread, and two that it may come back to. */
static inline unsigned scratch_large_entries(unsigned io_threads)
{
	return io_threads + 2;
}

uint8_t *scratch_direct_payload(const struct image *image, unsigned io);
uint8_t *scratch_payload(const struct image *image, unsigned worker);
uint8_t *scratch_small_cache(const struct image *image); /* entries of SCRATCH_FRAME_BYTES */
uint8_t *scratch_large_cache(const struct image *image); /* entries of a unit */
/* One of the janitor's two buffers of a frame each. */
uint8_t *scratch_rewrite(const struct image *image, unsigned index, uint64_t frame_bytes);

#endif
