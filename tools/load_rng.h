/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The seeded random numbers of swapload: one 64-bit state, the same sequence
 * on every machine (integers only). Not for secrets. Each thread its own.
 */
#ifndef LOAD_RNG_H
#define LOAD_RNG_H

#include <stdint.h>

struct load_rng {
	uint64_t state;
};

/* One round of a strong 64-bit mixer: spreads small inputs (page numbers, seeds) over all bits. */
static inline uint64_t load_mix(uint64_t value)
{
	value ^= value >> 32;
	value *= UINT64_C(0xd6e8feb86659fd93);
	value ^= value >> 32;
	value *= UINT64_C(0xd6e8feb86659fd93);
	value ^= value >> 32;
	return value;
}

/* Two seeds give unrelated sequences; stream tells users of one seed apart. */
static inline struct load_rng load_rng_seeded(uint64_t seed, uint64_t stream)
{
	return (struct load_rng){.state = load_mix(seed + 1) ^ load_mix(~stream)};
}

static inline uint64_t load_rng_next(struct load_rng *rng)
{
	rng->state += UINT64_C(0x9e3779b97f4a7c15);
	return load_mix(rng->state);
}

/* 0 .. limit - 1; limit > 0 and well below 2^32, so that the bias does not matter. */
static inline uint32_t load_rng_below(struct load_rng *rng, uint32_t limit)
{
	return (uint32_t)(((load_rng_next(rng) >> 32) * limit) >> 32);
}

#endif
