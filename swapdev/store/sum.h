/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check sums: XXH3 (xxhash, header only), the low 32 bits where 32 are kept. */
#ifndef STORE_SUM_H
#define STORE_SUM_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stddef.h>
#include <stdint.h>

static inline uint64_t sum64(const void *data, size_t bytes)
{
	return XXH3_64bits(data, bytes);
}

/* The seed ties the bytes to what they belong to: the same bytes elsewhere have another sum. */
static inline uint32_t sum32(const void *data, size_t bytes, uint64_t seed)
{
	return (uint32_t)XXH3_64bits_withSeed(data, bytes, seed);
}

#endif
