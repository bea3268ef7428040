/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * store_compact on a thread of its own, so that the control thread goes on
 * answering. One at a time; started before the device serves, like every
 * thread. The event descriptor becomes readable when there is progress or an end.
 */
#ifndef SWAPDEV_COMPACTION_H
#define SWAPDEV_COMPACTION_H

#include <stdbool.h>
#include <stdint.h>

struct store;
struct compaction;

struct compaction_state {
	bool running;
	int result; /* of the last one, once it does not run any more */
	uint64_t done_bytes;
	uint64_t total_bytes;
};

/* Returns 0 or -errno. */
int compaction_create(struct compaction **ret, struct store *store);

/* Only while none runs. NULL is fine. */
void compaction_destroy(struct compaction *compaction);

int compaction_event_fd(const struct compaction *compaction);

/* Returns 0 or -EBUSY. */
int compaction_start(struct compaction *compaction, uint64_t timeout_ns);

/* Any thread. */
void compaction_get(struct compaction *compaction, struct compaction_state *ret);

/* The same, and makes the event descriptor unreadable until there is more. */
void compaction_take_event(struct compaction *compaction, struct compaction_state *ret);

#endif
