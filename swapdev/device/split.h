/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A byte range of the device as pieces that the store takes: whole granules,
 * none crossing a unit. Pure arithmetic: no memory, no device, any thread.
 *
 *   struct split split;
 *   struct split_piece piece;
 *
 *   split_init(&split, offset_bytes, length_bytes, unit_bytes);
 *   while (split_next(&split, &piece))
 *           use piece.granule, piece.count, data + piece.data_offset_bytes
 */
#ifndef DEVICE_SPLIT_H
#define DEVICE_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

struct split_piece {
	uint64_t granule; /* first granule, counted from the start of the device */
	uint32_t count;   /* granules, at least one */
	uint64_t data_offset_bytes;
};

/* Where the iteration stands; for split.c alone. */
struct split {
	uint64_t granule;
	uint64_t granules_left;
	uint64_t data_offset_bytes;
	uint32_t unit_granules;
};

/* The range is aligned to granules and does not wrap; unit_bytes is a power of two of at least a granule. */
void split_init(struct split *split, uint64_t offset_bytes, uint64_t length_bytes, uint32_t unit_bytes);

/* Puts the next piece into ret, in rising order; false when the range is used up. */
bool split_next(struct split *split, struct split_piece *ret);

#endif
