// SPDX-License-Identifier: GPL-2.0-or-later
/* Staging slots: where every write lands, and where a folio is put together again. */
#include "store_internal.h"

#include <errno.h>
#include <string.h>

#define WAIT_SLICE_NS (20 * UINT64_C(1000000))

void staging_init(struct store *store)
{
	struct staging *staging = &store->staging;

	pthread_mutex_init(&staging->lock, NULL);
	cond_init(&staging->slot_free);
	cond_init(&staging->work);
	staging->free = store->image.super->slots;
}

int staging_find(const struct store *store, uint64_t unit)
{
	for (unsigned slot = 0; slot < store->image.super->slots; slot++) {
		if (atomic_load_explicit(&store->image.slots[slot].unit, memory_order_relaxed) == unit)
			return (int)slot;
	}
	return -1;
}

int staging_reserve(struct store *store)
{
	struct staging *staging = &store->staging;
	unsigned slots = store->image.super->slots;
	int taken = -1;

	pthread_mutex_lock(&staging->lock);
	for (unsigned slot = 0; slot < slots && staging->free && taken < 0; slot++) {
		if (staging->slot[slot].state != SLOT_FREE)
			continue;
		taken = (int)slot;
		staging->slot[slot].state = SLOT_TAKEN;
		staging->free--;
	}
	pthread_mutex_unlock(&staging->lock);
	return taken;
}

static bool any_open(const struct store *store)
{
	bool open = false;

	for (unsigned slot = 0; slot < store->image.super->slots; slot++)
		open |= store->staging.slot[slot].state == SLOT_OPEN;
	return open;
}

bool staging_open(struct store *store, unsigned slot, uint64_t unit, uint64_t now_ns)
{
	struct staging *staging = &store->staging;
	bool first;

	pthread_mutex_lock(&staging->lock);
	first = !any_open(store);
	staging->slot[slot].state = SLOT_OPEN;
	atomic_store_explicit(&staging->slot[slot].last_write_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&store->image.slots[slot].unit, unit, memory_order_release);
	pthread_mutex_unlock(&staging->lock);
	hook(HOOK_SLOT_HEADER);
	return first;
}

void staging_free(struct store *store, unsigned slot)
{
	struct staging *staging = &store->staging;

	pthread_mutex_lock(&staging->lock);
	staging->slot[slot].state = SLOT_FREE;
	staging->free++;
	atomic_fetch_add_explicit(&staging->freed, 1, memory_order_relaxed);
	stall_end(&staging->stall);
	atomic_store_explicit(&staging->wanted, 0, memory_order_relaxed);
	pthread_mutex_unlock(&staging->lock);
	pthread_cond_broadcast(&staging->slot_free);
}

/* The lock, so that no worker is between its look and its sleep; signalled without, or who wakes would wait for it. */
void staging_wake(struct store *store)
{
	pthread_mutex_lock(&store->staging.lock);
	pthread_mutex_unlock(&store->staging.lock);
	pthread_cond_signal(&store->staging.work);
}

void staging_want(struct store *store)
{
	atomic_fetch_add_explicit(&store->staging.wanted, 1, memory_order_relaxed);
	staging_wake(store);
}

bool staging_wait(struct store *store)
{
	uint64_t deadline_ns = clock_ns() + WAIT_SLICE_NS;
	struct staging *staging = &store->staging;
	bool free;

	pthread_mutex_lock(&staging->lock);
	if (!staging->free && !atomic_load(&store->stopping)) {
		atomic_fetch_add_explicit(&staging->wanted, 1, memory_order_relaxed);
		pthread_cond_signal(&staging->work);
		cond_wait_until(&staging->slot_free, &staging->lock, deadline_ns);
	}
	free = staging->free > 0;
	pthread_mutex_unlock(&staging->lock);
	return free;
}
