// SPDX-License-Identifier: GPL-2.0-or-later
/* What is kept beside the payload, how tightly, how soon it goes back, and how fast an image is opened. */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define FLUSH_NS (60 * UINT64_C(1000000000))

static void sleep_ms(long milliseconds)
{
	const struct timespec pause = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};

	nanosleep(&pause, NULL);
}

static struct stats_gauges *gauges(const struct bench_store *store)
{
	return &store_stats(store->store)->gauges;
}

static double file_bytes(const struct bench_store *store)
{
	struct stat status;

	return fstat(store->fd, &status) == 0 ? (double)status.st_blocks * 512 : -1;
}

static int write_folios(struct bench_store *store, const uint8_t *corpus, size_t corpus_folios, size_t folios)
{
	int result = 0;

	for (size_t i = 0; i < folios && result == 0; i++)
		result = store_write(
			store->io, i * FOLIO_GRANULES, FOLIO_GRANULES, corpus + i % corpus_folios * FOLIO_BYTES);
	return result < 0 ? result : store_flush(store->store, FLUSH_NS);
}

/* Whole folios, 64 KiB pieces and single granules at random, about equally often; then nothing. */
static int churn(struct bench_store *store, const uint8_t *corpus, size_t corpus_folios, size_t folios, uint64_t seconds)
{
	uint64_t random = 88172645463325252ULL, end_ns = clock_ns() + seconds * UINT64_C(1000000000);
	int result = 0;

	while (clock_ns() < end_ns && result == 0) {
		static const uint32_t counts[] = {FOLIO_GRANULES, 16, 1};
		uint32_t count = counts[bench_random(&random) % 3];
		uint64_t granule = bench_random(&random) % (folios * FOLIO_GRANULES) / count * count;
		uint64_t source = bench_random(&random) % (corpus_folios * FOLIO_GRANULES) / count * count;

		result = store_write(store->io, granule, count, corpus + source * GRANULE_BYTES);
	}
	return result;
}

static double ready_over_live(const struct bench_store *store)
{
	const struct stats_gauges *now = gauges(store);
	double live = (double)now->extent_bytes - (double)store_dead_bytes(store->store);

	return (double)now->arena_ready_bytes / live;
}

static struct spread single(double value)
{
	return (struct spread){value, value, value};
}

static int memory_run(struct bench *bench, struct bench_store *store, const uint8_t *corpus, size_t corpus_folios,
	size_t folios)
{
	double data_bytes = (double)(folios * FOLIO_BYTES), empty_bytes = file_bytes(store), left_bytes;
	int result = write_folios(store, corpus, corpus_folios, folios);

	if (result < 0)
		return result;
	report_title(bench, "memory, lz4, 64K frames");
	report(bench, "metadata_share", "map, records, tables / data, whole folios",
		single(100.0 * (double)store_metadata_bytes(store->store) / data_bytes), "%", "<= 0.3");
	result = churn(store, corpus, corpus_folios, folios, bench->quick ? 1 : 10);
	if (result < 0)
		return result;
	sleep_ms(1000);
	report(bench, "ready_churn", "ready / live, 1 s after churn", single(ready_over_live(store)), "x", "<= 1.10");
	result = store_compact(store->store, FLUSH_NS, NULL, NULL);
	if (result < 0)
		return result;
	report(bench, "ready_compacted", "ready / live, after compact", single(ready_over_live(store)), "x", "<= 1.03");
	for (size_t i = 0; i < folios && result == 0; i++)
		result = store_discard(store->io, i * FOLIO_GRANULES, FOLIO_GRANULES);
	sleep_ms(5000);
	left_bytes = file_bytes(store) - empty_bytes;
	report(bench, "left_after_discard_mib", "memory of the image beyond an empty one, 5 s after discard",
		single(left_bytes / (double)MIB), "MiB", "<= 0");
	return result;
}

int bench_memory(struct bench *bench)
{
	size_t corpus_folios = 32, folios = bench->quick ? 64 : 2048;
	struct store_config config = bench_store_defaults(folios * FOLIO_BYTES);
	uint8_t *corpus = corpus_create(corpus_folios);
	struct bench_store store;
	int result = corpus ? bench_store_open(&store, &config) : -ENOMEM;

	if (result == 0) {
		result = store_start(store.store);
		if (result == 0)
			result = memory_run(bench, &store, corpus, corpus_folios, folios);
		bench_store_close(&store);
	}
	if (result < 0)
		fprintf(stderr, "bench_store: memory: %s\n", strerror(-result));
	free(corpus);
	return result;
}

/* ---- recovery ---- */

/* Opens the image so often; milliseconds of each recovery. */
static int reopen(struct bench *bench, struct bench_store *store, const char *name, const char *text, const char *bar)
{
	double milliseconds[BENCH_ROUNDS_MAX];
	int result = 0;

	for (long round = 0; round < bench->rounds && result == 0; round++) {
		store_close(store->store);
		store->store = NULL;
		result = store_open(&store->store, store->fd);
		if (result == 0)
			milliseconds[round] = (double)gauges(store)->recovery_ns / 1e6;
	}
	if (result == 0)
		report(bench, name, text, spread_of(milliseconds, (size_t)bench->rounds), "ms", bar);
	return result;
}

static int recover_folios(struct bench *bench, const uint8_t *corpus, size_t corpus_folios)
{
	size_t folios = bench->quick ? 64 : 8192;
	struct store_config config = bench_store_defaults(folios * FOLIO_BYTES);
	struct bench_store store;
	int result = bench_store_open(&store, &config);

	if (result < 0)
		return result;
	result = store_start(store.store);
	if (result == 0)
		result = write_folios(&store, corpus, corpus_folios, folios);
	if (result == 0)
		result = reopen(bench, &store, "recover_ms", bench->quick ? "128 MiB of whole folios" : "16 GiB of whole folios",
			"<= 20");
	bench_store_close(&store);
	return result;
}

/* Granule by granule with a unit's stride, so that no slot gathers neighbours. */
static int write_singles(struct bench_store *store, const uint8_t *corpus, size_t corpus_folios, size_t folios)
{
	int result = 0;

	for (uint32_t within = 0; within < FOLIO_GRANULES; within++) {
		for (size_t folio = 0; folio < folios && result == 0; folio++)
			result = store_write(store->io, folio * FOLIO_GRANULES + within, 1,
				corpus + ((folio % corpus_folios) * FOLIO_GRANULES + within) * GRANULE_BYTES);
		if (within % 2 == 0 && result == 0)
			result = store_flush(store->store, FLUSH_NS);
	}
	return result < 0 ? result : store_flush(store->store, FLUSH_NS);
}

static int recover_singles(struct bench *bench, const uint8_t *corpus, size_t corpus_folios)
{
	size_t folios = bench->quick ? 8 : 512;
	struct store_config config = bench_store_defaults(folios * FOLIO_BYTES);
	struct bench_store store;
	int result = bench_store_open(&store, &config);

	if (result < 0)
		return result;
	result = store_start(store.store);
	if (result == 0)
		result = write_singles(&store, corpus, corpus_folios, folios);
	if (result == 0 && !bench->json)
		printf("(%llu objects)\n", (unsigned long long)gauges(&store)->objects);
	if (result == 0)
		result = reopen(bench, &store, "recover_singles_ms",
			bench->quick ? "16 MiB of single granules" : "1 GiB of single granules", "<= 200");
	bench_store_close(&store);
	return result;
}

int bench_recover(struct bench *bench)
{
	size_t corpus_folios = 32;
	uint8_t *corpus = corpus_create(corpus_folios);
	int result = corpus ? 0 : -ENOMEM;

	report_title(bench, "opening an image (recovery), lz4");
	if (result == 0)
		result = recover_folios(bench, corpus, corpus_folios);
	if (result == 0)
		result = recover_singles(bench, corpus, corpus_folios);
	if (result < 0)
		fprintf(stderr, "bench_store: recover: %s\n", strerror(-result));
	free(corpus);
	return result;
}
