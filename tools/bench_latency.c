// SPDX-License-Identifier: GPL-2.0-or-later
/* Latencies of small requests: writes to an open slot; reads alone and beside writes at full rate. */
#include "bench.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ACK_WRITES 20000
/* Faults come one after another with work between them, not back to back. */
#define READ_PAUSE_NS 300000

int bench_ack(struct bench *bench)
{
	struct store_config config = bench_store_defaults(64 * MIB);
	struct bench_store store;
	uint8_t *corpus = corpus_create(1);
	double median[BENCH_ROUNDS_MAX];
	double *microseconds = calloc(ACK_WRITES, sizeof(*microseconds));
	int result = corpus && microseconds ? bench_store_open(&store, &config) : -ENOMEM;

	if (result == 0)
		result = store_start(store.store);
	for (long round = 0; round < bench->rounds && result == 0; round++) {
		for (uint32_t i = 0; i < ACK_WRITES && result == 0; i++) {
			/* Never all of the unit: the slot stays open. */
			uint32_t granule = i % (FOLIO_GRANULES - 1);
			uint64_t begin_ns = clock_ns();

			result = store_write(store.io, granule, 1, corpus + granule * GRANULE_BYTES);
			microseconds[i] = (double)(clock_ns() - begin_ns) / 1000;
		}
		median[round] = spread_of(microseconds, ACK_WRITES).median;
	}
	if (result == 0) {
		report_title(bench, "small writes");
		report(bench, "ack4k_us", "write 4K to an open slot, median", spread_of(median, (size_t)bench->rounds),
			"us", "<= 1");
		bench_store_close(&store);
	}
	free(corpus);
	free(microseconds);
	return result;
}

struct mixed {
	struct bench_store store;
	const uint8_t *corpus;
	size_t folios; /* first half is read, second half written */
	_Atomic bool stop;
	_Atomic uint64_t written;
};

static void *write_at_full_rate(void *argument)
{
	struct mixed *mixed = argument;
	struct store_io *io = store_io(mixed->store.store, 1);

	for (size_t i = 0; !atomic_load(&mixed->stop); i++) {
		size_t folio = mixed->folios / 2 + i % (mixed->folios / 2);

		if (store_write(io, folio * FOLIO_GRANULES, FOLIO_GRANULES, mixed->corpus + folio * FOLIO_BYTES) < 0)
			abort();
		atomic_fetch_add(&mixed->written, FOLIO_BYTES);
	}
	return NULL;
}

/* p99 of random 4 KiB reads of the first half, in microseconds. */
static double read_p99(struct mixed *mixed, size_t reads, double *microseconds)
{
	const struct timespec pause = {.tv_nsec = READ_PAUSE_NS};
	uint64_t random = 88172645463325252ULL;
	uint8_t plain[GRANULE_BYTES];

	for (size_t i = 0; i < reads; i++) {
		uint64_t granule = bench_random(&random) % (mixed->folios / 2 * FOLIO_GRANULES);
		uint64_t begin_ns;

		nanosleep(&pause, NULL);
		begin_ns = clock_ns();
		if (store_read(mixed->store.io, granule, 1, plain) < 0)
			abort();
		microseconds[i] = (double)(clock_ns() - begin_ns) / 1000;
	}
	spread_of(microseconds, reads);
	return microseconds[reads * 99 / 100];
}

static int run_mixed(struct bench *bench, struct mixed *mixed, double *idle, double *busy, double *ratio)
{
	size_t reads = bench->quick ? 200 : 4000;
	double *microseconds = calloc(reads, sizeof(*microseconds));
	int result = microseconds ? 0 : -ENOMEM;

	for (size_t folio = 0; folio < mixed->folios / 2 && result == 0; folio++)
		result = store_write(mixed->store.io, folio * FOLIO_GRANULES, FOLIO_GRANULES,
			mixed->corpus + folio * FOLIO_BYTES);
	if (result == 0)
		result = store_flush(mixed->store.store, UINT64_C(10000000000));
	for (long round = 0; round < bench->rounds && result == 0; round++) {
		pthread_t writer;

		idle[round] = read_p99(mixed, reads, microseconds);
		atomic_store(&mixed->stop, false);
		result = -pthread_create(&writer, NULL, write_at_full_rate, mixed);
		if (result < 0)
			break;
		busy[round] = read_p99(mixed, reads, microseconds);
		atomic_store(&mixed->stop, true);
		pthread_join(writer, NULL);
		ratio[round] = busy[round] / idle[round];
	}
	free(microseconds);
	return result;
}

int bench_mixed(struct bench *bench)
{
	struct mixed mixed = {.folios = bench->quick ? 8 : 64};
	struct store_config config = bench_store_defaults(mixed.folios * FOLIO_BYTES);
	double idle[BENCH_ROUNDS_MAX], busy[BENCH_ROUNDS_MAX], ratio[BENCH_ROUNDS_MAX];
	size_t rounds = (size_t)bench->rounds;
	uint8_t *corpus = corpus_create(mixed.folios);
	int result = corpus ? bench_store_open(&mixed.store, &config) : -ENOMEM;

	mixed.corpus = corpus;
	if (result == 0) {
		result = store_start(mixed.store.store);
		if (result == 0)
			result = run_mixed(bench, &mixed, idle, busy, ratio);
		bench_store_close(&mixed.store);
	}
	if (result == 0) {
		report_title(bench, "4 KiB reads beside 2 MiB writes at full rate, lz4");
		report(bench, "read4k_p99_idle_us", "read 4K p99, nothing else", spread_of(idle, rounds), "us", "");
		report(bench, "read4k_p99_busy_us", "read 4K p99, beside writes", spread_of(busy, rounds), "us", "");
		report(bench, "read4k_p99_ratio", "busy / idle", spread_of(ratio, rounds), "x", "<= 3");
	}
	free(corpus);
	return result;
}
