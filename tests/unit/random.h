/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers of the unit tests' random runs: the same ones for the same state. */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static inline uint64_t random_seed(uint64_t number)
{
	uint64_t state = number * UINT64_C(0x9e3779b97f4a7c15) + 1;

	random_next(&state);
	return state ? state : 1;
}

static inline uint64_t random_below(uint64_t *state, uint64_t limit)
{
	return (random_next(state) >> 11) % limit;
}

#endif
