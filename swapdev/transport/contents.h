/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Seeded random numbers and the contents of replayed writes: the same on every
 * machine for the same seed and stream. One thread each; no allocation.
 */
#ifndef TRANSPORT_CONTENTS_H
#define TRANSPORT_CONTENTS_H

#include <stdint.h>

struct contents {
	uint64_t state;
	unsigned random_percent; /* of the bytes of a granule */
	unsigned same_percent;   /* of the granules: filled with one word */
};

/* Two streams of one seed have nothing in common. */
void contents_init(struct contents *contents, uint64_t seed, uint64_t stream);

uint64_t contents_random(struct contents *contents);

/* 0 .. limit - 1; limit > 0. */
uint64_t contents_random_below(struct contents *contents, uint64_t limit);

/* Fills length_bytes (whole granules) at data, which is 8-byte aligned and meant for that offset of the device. */
void contents_fill(struct contents *contents, void *data, uint64_t offset_bytes, uint64_t length_bytes);

#endif
