// SPDX-License-Identifier: GPL-2.0-or-later
/* Keeps decoded frames: finds them without a lock that all would share, and replaces the least recently used. */
#include "frame_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int frame_cache_init(struct frame_cache *cache, unsigned entries, uint8_t *data, uint64_t entry_bytes)
{
	pthread_rwlockattr_t attributes;

	memset(cache, 0, sizeof(*cache));
	cache->entry = aligned_alloc(CACHE_LINE_BYTES, entries * sizeof(*cache->entry));
	if (!cache->entry)
		return -ENOMEM;
	memset(cache->entry, 0, entries * sizeof(*cache->entry));
	cache->entries = entries;
	cache->entry_bytes = entry_bytes;
	pthread_mutex_init(&cache->claiming, NULL);
	/* Who waits for an entry while all are busy is not kept waiting by readers that keep coming. */
	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	for (unsigned i = 0; i < entries; i++) {
		pthread_rwlock_init(&cache->entry[i].lock, &attributes);
		cache->entry[i].data = data + i * entry_bytes;
	}
	pthread_rwlockattr_destroy(&attributes);
	return 0;
}

void frame_cache_deinit(struct frame_cache *cache)
{
	if (!cache->entry)
		return;
	for (unsigned i = 0; i < cache->entries; i++)
		pthread_rwlock_destroy(&cache->entry[i].lock);
	pthread_mutex_destroy(&cache->claiming);
	free(cache->entry);
	cache->entry = NULL;
}

static uint64_t key_where(const struct frame_key *key)
{
	return (uint64_t)key->id << 32 | key->index;
}

static bool entry_is(const struct frame_cache_entry *entry, const struct frame_key *key)
{
	return atomic_load_explicit(&entry->where, memory_order_relaxed) == key_where(key) &&
	       atomic_load_explicit(&entry->seq, memory_order_relaxed) == key->seq &&
	       atomic_load_explicit(&entry->seed, memory_order_relaxed) == key->seed;
}

/* Under the entry's exclusive lock. */
static void entry_name(struct frame_cache_entry *entry, const struct frame_key *key)
{
	atomic_store_explicit(&entry->where, key_where(key), memory_order_relaxed);
	atomic_store_explicit(&entry->seq, key->seq, memory_order_relaxed);
	atomic_store_explicit(&entry->seed, key->seed, memory_order_relaxed);
}

static void entry_touch(struct frame_cache *cache, struct frame_cache_entry *entry)
{
	uint64_t now = atomic_fetch_add_explicit(&cache->clock, 1, memory_order_relaxed) + 1;

	atomic_store_explicit(&entry->used, now, memory_order_relaxed);
}

static struct frame_cache_entry *search(struct frame_cache *cache, const struct frame_key *key)
{
	for (unsigned i = 0; i < cache->entries; i++) {
		if (entry_is(&cache->entry[i], key))
			return &cache->entry[i];
	}
	return NULL;
}

/* The key's entry, locked shared, or NULL. Waits for the decode if it is under way. */
static struct frame_cache_entry *find(struct frame_cache *cache, const struct frame_key *key)
{
	struct frame_cache_entry *entry = search(cache, key);

	if (!entry)
		return NULL;
	pthread_rwlock_rdlock(&entry->lock);
	/* The decode may have failed, or the entry been taken for another frame. */
	if (!entry_is(entry, key)) {
		pthread_rwlock_unlock(&entry->lock);
		return NULL;
	}
	entry_touch(cache, entry);
	return entry;
}

/* The least recently used entry that is not among the busy ones. */
static unsigned oldest(const struct frame_cache *cache, const bool *busy)
{
	uint64_t least = UINT64_MAX;
	unsigned found = 0;

	for (unsigned i = 0; i < cache->entries; i++) {
		uint64_t used = atomic_load_explicit(&cache->entry[i].used, memory_order_relaxed);

		if (!busy[i] && used < least) {
			least = used;
			found = i;
		}
	}
	return found;
}

/* The least recently used entry that can be had at once, locked exclusive; if there is none, the oldest of all. */
static struct frame_cache_entry *lock_oldest(struct frame_cache *cache)
{
	bool busy[FRAME_CACHE_ENTRIES_MAX] = {false};
	unsigned first = oldest(cache, busy), at = first;

	for (unsigned tried = 0; tried < cache->entries; tried++) {
		if (pthread_rwlock_trywrlock(&cache->entry[at].lock) == 0)
			return &cache->entry[at];
		busy[at] = true;
		at = oldest(cache, busy);
	}
	/* Its holders copy or decode and wait for nothing: this ends, also for those who want to claim next. */
	pthread_rwlock_wrlock(&cache->entry[first].lock);
	return &cache->entry[first];
}

/* An entry for the key, locked exclusive, or NULL: another thread was quicker. */
static struct frame_cache_entry *claim(struct frame_cache *cache, const struct frame_key *key)
{
	struct frame_cache_entry *entry = NULL;

	pthread_mutex_lock(&cache->claiming);
	if (!search(cache, key)) {
		entry = lock_oldest(cache);
		entry_name(entry, key);
		entry_touch(cache, entry);
	}
	pthread_mutex_unlock(&cache->claiming);
	return entry;
}

struct frame_cache_entry *frame_cache_get(struct frame_cache *cache, const struct frame_key *key, bool *ret_decoded)
{
	for (;;) {
		struct frame_cache_entry *entry = find(cache, key);
		bool decoded = entry != NULL;

		if (!entry)
			entry = claim(cache, key);
		if (entry) {
			*ret_decoded = decoded;
			return entry;
		}
	}
}

void frame_cache_release(struct frame_cache_entry *entry)
{
	pthread_rwlock_unlock(&entry->lock);
}

void frame_cache_drop(struct frame_cache_entry *entry)
{
	atomic_store_explicit(&entry->where, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->used, 0, memory_order_relaxed);
	pthread_rwlock_unlock(&entry->lock);
}
