/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Free runs of the pool's tree: of one chunk from its bits, of two neighbours from theirs. Nothing is locked here. */
#ifndef STORE_POOL_RUN_H
#define STORE_POOL_RUN_H

#include "bits.h"
#include "pool.h"

/* Runs are counted up to here: no object is as long, and 32 bits never overflow. */
#define RUN_LINES_MAX (UINT32_C(1) << 31)

static inline uint32_t run_add(uint32_t left, uint32_t right)
{
	uint64_t sum = (uint64_t)left + right;

	return sum < RUN_LINES_MAX ? (uint32_t)sum : RUN_LINES_MAX;
}

static inline struct pool_run run_join(struct pool_run left, struct pool_run right, uint64_t half_lines)
{
	uint32_t across = run_add(left.suffix, right.prefix);
	struct pool_run run = {left.prefix, right.suffix, left.longest > right.longest ? left.longest : right.longest};

	if (left.prefix == half_lines)
		run.prefix = run_add(left.prefix, right.prefix);
	if (right.suffix == half_lines)
		run.suffix = run_add(left.suffix, right.suffix);
	if (across > run.longest)
		run.longest = across;
	return run;
}

static inline struct pool_run chunk_run(const uint64_t *bits, uint32_t used_lines)
{
	struct pool_run run = {0, 0, 0};
	uint32_t at = 0;

	if (!used_lines)
		return (struct pool_run){POOL_CHUNK_LINES, POOL_CHUNK_LINES, POOL_CHUNK_LINES};
	while (at < POOL_CHUNK_LINES) {
		uint32_t span = bits_span(bits, at, false);

		if (at == 0)
			run.prefix = span;
		if (span > run.longest)
			run.longest = span;
		at += span;
		run.suffix = at == POOL_CHUNK_LINES ? span : 0;
		at += at < POOL_CHUNK_LINES ? bits_span(bits, at, true) : 0;
	}
	return run;
}

#endif
