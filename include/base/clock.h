/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one clock of all latencies: CLOCK_MONOTONIC in nanoseconds. Any thread; does not block. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

#endif
