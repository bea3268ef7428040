/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What bench_device does to a block device: passes of 2 MiB requests, from one
 * end to the other, by as many processes as wanted, each on a CPU and a part of
 * the device of its own; and single 4 KiB reads. All of it past the page cache.
 *
 * Folio f of version v holds pool folio f + v: what is written straight out of
 * the pool costs no copy, and another version leaves no folio as it was.
 */
#ifndef BENCH_PASS_H
#define BENCH_PASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_FOLIO_BYTES (UINT64_C(2) << 20)
#define BENCH_STREAMS_MAX 64

struct bench_target {
	int fd; /* O_DIRECT */
	uint64_t folios;
	const uint8_t *pool;
	size_t pool_folios;
};

enum bench_direction { BENCH_WRITE, BENCH_READ };

struct bench_cost {
	uint64_t bytes;
	double seconds;     /* from the first request to the last answer */
	double cpu_seconds; /* of the whole machine, until what was answered early is done, too */
};

struct bench_latency {
	uint64_t reads;
	double p50_us, p99_us, max_us;
	double written_mib_s; /* by the writer beside it */
};

/* Each returns 0 or the negative errno of the first request that failed. */

int bench_pass(const struct bench_target *target, enum bench_direction direction, unsigned streams, uint64_t version,
	struct bench_cost *ret_cost);

/* Reads all of it; how many of its bytes are not those of that version. */
int bench_verify(const struct bench_target *target, uint64_t version, uint64_t *ret_wrong_bytes);

/* Random 4 KiB reads of the first half for so long; writes_beside: while the second half is written at full rate. */
int bench_latency(const struct bench_target *target, double seconds, bool writes_beside, uint64_t version,
	struct bench_latency *ret_latency);

#endif
