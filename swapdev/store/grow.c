// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Growing: the device gets more granules, holes at first, up to what the image has address space for.
 *
 *   map words of the new part present and 0 -> size stored -> whoever serves tells the kernel
 *
 * Dead before the size is stored, the device is what it was: the next recovery gives the words beyond its end back.
 * Dead afterwards, the store is larger than what the kernel knows of, which does no harm.
 */
#include "store_internal.h"

#include <errno.h>
#include <string.h>

/* Less than the watchdog waits, which may well look at the calling thread. */
#define GROW_WAIT_NS (5 * UINT64_C(1000000000))
#define GROW_PIECE_BYTES IMAGE_ALIGN

static uint64_t map_bytes(uint64_t size_bytes)
{
	return (size_bytes >> GRANULE_SHIFT) * sizeof(map_word);
}

int map_trim(const struct store *store)
{
	const struct image *image = &store->image;
	const struct image_extent *region = &image->super->region[REGION_MAP];
	uint64_t from = round_up_u64(region->offset + map_bytes(image->super->size_bytes), image->page_bytes);
	uint64_t to = round_up_u64(region->offset + region->bytes, image->page_bytes);

	return from < to ? image_punch(image, image->base + from, to - from) : 0;
}

void map_set_gauge(struct store *store)
{
	atomic_store(&store->gauges->map_bytes,
		round_up_u64(map_bytes(store->image.super->size_bytes), store->image.page_bytes));
}

/* What lies beyond the end was never checked: whatever stands there becomes holes. */
static int map_extend(struct store *store, uint64_t from_bytes, uint64_t to_bytes)
{
	uint64_t give_up_ns = clock_ns() + GROW_WAIT_NS, bytes;
	uint8_t *map = (uint8_t *)store->image.map;

	for (uint64_t at = from_bytes; at < to_bytes; at += bytes) {
		int result;

		bytes = to_bytes - at < GROW_PIECE_BYTES ? to_bytes - at : GROW_PIECE_BYTES;
		if (clock_ns() >= give_up_ns)
			return -ETIMEDOUT;
		result = image_populate(&store->image, map + at, bytes);
		if (result < 0)
			return result;
		memset(map + at, 0, bytes);
	}
	return 0;
}

int store_set_size(struct store *store, uint64_t size_bytes)
{
	struct superblock *super = store->image.super;
	uint64_t old_bytes = super->size_bytes;
	struct store_config config;
	int result;

	store_get_config(store, &config);
	config.size_bytes = size_bytes;
	if (size_bytes < old_bytes || store_config_problem(&config))
		return -EINVAL;
	if (size_bytes == old_bytes)
		return 0;
	result = map_extend(store, map_bytes(old_bytes), map_bytes(size_bytes));
	if (result < 0) {
		map_trim(store);
		return result;
	}
	hook(HOOK_GROW_MAP);
	atomic_store(&super->size_bytes, size_bytes);
	hook(HOOK_GROW_SIZE);
	map_set_gauge(store);
	return 0;
}
