/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Object ids: which records are taken, and how many map words name each.
 *
 * Ids are handed out lowest first, in groups of 65536, whose records are one
 * 2 MiB piece of the image. A group is made ready (records and private tables
 * populated) ahead of need by the growth thread, and given back when empty.
 *
 * The bitmap is under a mutex, a leaf. A live count is changed only by the
 * exclusive holder of the object's unit; anybody may look at it.
 */
#ifndef STORE_IDS_H
#define STORE_IDS_H

#include "image.h"

#include <pthread.h>

#define IDS_GROUP_SHIFT 16
#define IDS_GROUP (UINT32_C(1) << IDS_GROUP_SHIFT)
#define IDS_GROUP_WORDS (IDS_GROUP / 64)
/* Records of the image and private tables of one group. */
#define IDS_GROUP_BYTES (IDS_GROUP * (sizeof(struct record) + sizeof(uint16_t)) + IDS_GROUP / 8)

struct ids_group {
	uint32_t used;
	uint32_t hint;	/* no free id in words below */
	bool ready;
	bool changing; /* being populated or punched outside the lock */
};

struct ids {
	pthread_mutex_t lock;
	const struct image *image;
	uint32_t groups;
	struct ids_group *group;  /* lock */
	uint64_t *bits;		  /* lock; sparse; 1 = taken */
	_Atomic uint16_t *live;	  /* sparse */
	uint32_t first_free;	  /* lock; no free id in groups below */
	uint32_t ready_groups;	  /* lock */
	uint32_t used;		  /* lock */
	_Atomic uint32_t free_ready; /* free ids in ready groups; changed under lock, read anywhere */
	_Atomic uint32_t end;	  /* ids at or above were never taken since the last recovery */
};

/* Maps the tables; no group is ready. Returns 0 or -ENOMEM. */
int ids_init(struct ids *ids, const struct image *image);
void ids_deinit(struct ids *ids);

/* Takes the lowest free id of a ready group; 0: none (grow). Its live count is 0. */
uint32_t ids_alloc(struct ids *ids);
void ids_free(struct ids *ids, uint32_t id);

/* Growth thread and open: makes one more group ready. Returns 0, -ENOSPC (no more) or -errno. */
int ids_grow(struct ids *ids);
/* Gives one empty group back, keeping one spare. Returns true when it did. */
bool ids_shrink(struct ids *ids);
uint64_t ids_ready_bytes(struct ids *ids);

/* Recovery: makes the group of id ready if it is not; then ids_recover_take for each id in use. */
int ids_recover_group(struct ids *ids, uint32_t id);
void ids_recover_take(struct ids *ids, uint32_t id);
bool ids_recover_is_taken(const struct ids *ids, uint32_t id);
/* Gives the records of groups without an id in use back. Returns 0 or -errno. */
int ids_recover_end(struct ids *ids);

static inline uint32_t ids_live(const struct ids *ids, uint32_t id)
{
	return atomic_load_explicit(&ids->live[id], memory_order_relaxed);
}

static inline void ids_set_live(struct ids *ids, uint32_t id, uint32_t live)
{
	atomic_store_explicit(&ids->live[id], (uint16_t)live, memory_order_relaxed);
}

#endif
