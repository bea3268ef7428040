/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of bench_store share: the corpus, a store on a memfd, medians, the report. */
#ifndef BENCH_H
#define BENCH_H

#include "clock.h"
#include "codec.h"
#include "parse.h"
#include "stats.h"
#include "store.h"
#include "units.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_ROUNDS_MAX 31
#define FOLIO_BYTES (2 * MIB)
#define FOLIO_GRANULES ((uint32_t)(FOLIO_BYTES / GRANULE_BYTES))

struct bench {
	bool json;
	bool quick;
	long rounds;
	bool first_field; /* of the JSON object */
};

struct bench_part {
	const char *name;
	const char *summary;
	int (*run)(struct bench *bench); /* 0 or -errno, after a line on stderr */
};

int bench_codec(struct bench *bench);
int bench_ack(struct bench *bench);
int bench_mixed(struct bench *bench);
int bench_memory(struct bench *bench);
int bench_recover(struct bench *bench);

/* ---- report: a table row, or a field of the JSON object ---- */

void bench_begin(struct bench *bench);
void bench_end(struct bench *bench);

struct spread {
	double median, least, most;
};
struct spread spread_of(double *values, size_t count);

void report_title(const struct bench *bench, const char *title);
/* One figure: JSON name (codec may be NULL: then a plain field), text, spread, unit, and the bar it is held against. */
void report(struct bench *bench, const char *name, const char *text, struct spread value, const char *unit,
	const char *bar);

/* ---- corpus: heap-like folios from a seed ---- */

/* folios x 2 MiB, to be freed; NULL after a line on stderr. */
uint8_t *corpus_create(size_t folios);

/* ---- a store for measuring ---- */

struct bench_store {
	struct store *store;
	struct store_io *io;
	int fd;
	uint32_t granules_per_unit;
};

/* defaults: unit 2M, frame 64K, lz4, 4 slots, 2 + 2 threads, no limit; change what differs before bench_store_open. */
struct store_config bench_store_defaults(uint64_t size_bytes);
int bench_store_open(struct bench_store *bench_store, const struct store_config *config);
void bench_store_close(struct bench_store *bench_store);

/* Seconds of this thread's CPU. */
double thread_seconds(void);

uint64_t bench_random(uint64_t *state);

#endif
