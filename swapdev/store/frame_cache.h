/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames decoded before, shared by all I/O threads: a folio that is read page
 * by page costs one decode, whichever threads the pages' requests come to.
 *
 *   get --(here)-------> shared, holds the frame --release--> kept
 *    |
 *    +--(not here)-----> exclusive, to be decoded --release--> kept
 *                                       |
 *                                       +---------drop-----> empty
 *
 * An entry has its key from the moment it is taken for it: who wants the same
 * frame meanwhile waits for that decode. An entry belongs to the object that
 * its key names, by a sequence number that is never used twice: what was freed
 * is never found again, and goes when its turn comes.
 *
 * Locks: cache.claiming -> entry.lock, both below a unit lock. A thread has one
 * entry at most, and takes nothing while it has it.
 */
#ifndef STORE_FRAME_CACHE_H
#define STORE_FRAME_CACHE_H

#include "units.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FRAME_CACHE_ENTRIES_MAX 128

struct frame_key {
	uint32_t id; /* of the object; never 0 */
	uint32_t index;
	uint64_t seq;
	uint64_t seed; /* the frame's: a record that was damaged since does not find what it had been before */
};

struct frame_cache_entry {
	pthread_rwlock_t lock; /* exclusive: key and data change; shared: data is read */
	_Atomic uint64_t used; /* the cache's clock when it was last got; 0: empty */
	/* Searched without the lock, then compared again under it. Changed by its exclusive holder. */
	_Atomic uint64_t where __attribute__((aligned(CACHE_LINE_BYTES))); /* id << 32 | index; 0: empty */
	_Atomic uint64_t seq;
	_Atomic uint64_t seed;
	uint8_t *data; /* never changes; cache.entry_bytes long */
} __attribute__((aligned(CACHE_LINE_BYTES)));

struct frame_cache {
	struct frame_cache_entry *entry;
	unsigned entries;
	uint64_t entry_bytes;
	_Atomic uint64_t clock;
	pthread_mutex_t claiming; /* one thread at a time gives an entry a new key */
};

/* data: entries (1 .. FRAME_CACHE_ENTRIES_MAX) x entry_bytes, touched by nobody until a frame is decoded. Returns 0 or -ENOMEM. */
int frame_cache_init(struct frame_cache *cache, unsigned entries, uint8_t *data, uint64_t entry_bytes);
/* Also of a cache that is all zeros. */
void frame_cache_deinit(struct frame_cache *cache);

/*
 * The key's entry, locked. *ret_decoded: its data is the frame. Otherwise the
 * caller decodes the frame into it, or drops it. May wait for another thread's
 * decode. A frame is in one entry at most.
 */
struct frame_cache_entry *frame_cache_get(struct frame_cache *cache, const struct frame_key *key, bool *ret_decoded);
void frame_cache_release(struct frame_cache_entry *entry);
/* Instead of release when there is no frame: those who wait for it will try themselves. */
void frame_cache_drop(struct frame_cache_entry *entry);

#endif
