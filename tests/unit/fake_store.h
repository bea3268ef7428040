/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A store for tests of what lies above it: it defines the store_* functions
 * that the device uses, over a plain array, and writes every call down.
 * Compile fake_store.c into the test instead of linking the real store.
 *
 * Calls may come from several threads (one lock around everything).
 */
#ifndef TESTS_FAKE_STORE_H
#define TESTS_FAKE_STORE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "stats.h"
#include "store.h"

enum fake_op {
	FAKE_READ,
	FAKE_WRITE,
	FAKE_DISCARD,
};

struct fake_call {
	enum fake_op op;
	unsigned io; /* index of the I/O thread's handle */
	uint64_t granule;
	uint32_t count;
	const void *data;
	int result;
};

/* with_memory false: data is not kept and not touched, so that a device of many TiB costs nothing. */
struct store *fake_store_create(uint64_t size_bytes, uint32_t unit_bytes, unsigned io_threads, bool with_memory);
void fake_store_destroy(struct store *store);

/* A write that fails with it has put down the first half of its first granule. */
#define FAKE_TORN (-EUCLEAN)

/* The call with this number from now on (1 = the next, below 4096) fails with error and touches nothing (but see FAKE_TORN). */
void fake_store_fail(struct store *store, unsigned call, int error);

/* Every such write and discard fails with error and touches nothing; 0: none. */
void fake_store_fail_changes(struct store *store, unsigned every, int error);

/* What was called since the last fake_store_forget(); only the first 4096 are kept, all are counted. */
const struct fake_call *fake_store_calls(const struct store *store);
size_t fake_store_call_count(const struct store *store);
void fake_store_forget(struct store *store);

/* It says another size from now on; one with memory must not be asked for the new part. */
void fake_store_set_size(struct store *store, uint64_t size_bytes);

/* The plain array, to look into or to damage. */
uint8_t *fake_store_memory(struct store *store);

#endif
