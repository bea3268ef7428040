/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A log-linear latency histogram of fixed size.
 *
 * Values are nanoseconds. Below 2^HIST_MIN_SHIFT (256 ns) buckets are 8 ns
 * wide; above, each power of two is cut into 2^HIST_SUB_BITS (32) buckets of
 * equal width. A value is reported as the middle of its bucket, so it is off
 * by at most half a bucket: 1/64 = 1.6 % of the value. From 2^HIST_MAX_SHIFT
 * (17 s) on everything falls into the last bucket; the maximum is kept apart.
 *
 *   bucket  0 .. 31            8 ns each                0 ..   256 ns
 *          32 .. 63            8 ns each              256 ..   512 ns
 *          64 .. 95           16 ns each              512 ..  1024 ns
 *         ...
 *         832 .. 863          2^28 ns each            8.6 ..  17.2 s
 *
 * The scheme (exponent picks the group, the next bits the bucket) is that of
 * HdrHistogram and of fio's latency statistics.
 *
 * One thread writes a histogram, with relaxed atomic stores; any thread of
 * any process that maps it reads, and may see a sum that is a few events old.
 */
#ifndef STATS_HIST_H
#define STATS_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS 5
#define HIST_MIN_SHIFT 8
#define HIST_MAX_SHIFT 34
#define HIST_BUCKETS ((HIST_MAX_SHIFT - HIST_MIN_SHIFT + 1) << HIST_SUB_BITS)

struct hist {
	uint64_t max_ns;
	uint64_t total_ns;
	uint64_t count[HIST_BUCKETS];
};

/* Bucket of a value: 0 .. HIST_BUCKETS - 1. */
unsigned hist_bucket(uint64_t value_ns);

/* The middle of a bucket, in ns. */
uint64_t hist_bucket_middle_ns(unsigned bucket);

/* Counts one event. The owner thread only; wait-free. */
void hist_record(struct hist *hist, uint64_t value_ns);

/* into += from. into is the caller's; from may be written meanwhile. */
void hist_add(struct hist *into, const struct hist *from);

uint64_t hist_count(const struct hist *hist);

/*
 * The smallest value that at least permille/1000 of the events do not exceed
 * (990 = p99), never above max_ns; 0 when there are no events.
 */
uint64_t hist_quantile_ns(const struct hist *hist, unsigned permille);

#endif
