// SPDX-License-Identifier: GPL-2.0-or-later
/* The store against the bare codec: the same folios, the same frames, one thread, CPU time. */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_BYTES (64 * KIB)
#define FOLIO_FRAMES ((uint32_t)(FOLIO_BYTES / FRAME_BYTES))
#define READS_PER_FOLIO 16

static const struct {
	const char *label;
	struct codec_choice choice;
	const char *put_bar, *get_bar, *read_bar;
} rows[] = {
	{"lz4", {CODEC_LZ4, 1}, ">= 0.95", ">= 0.92", "<= 1.25"},
	{"zstd:1", {CODEC_ZSTD, 1}, ">= 0.97", ">= 0.97", "<= 1.15"},
	{"zstd:3", {CODEC_ZSTD, 3}, ">= 0.97", ">= 0.97", "<= 1.15"},
};

struct codec_run {
	const uint8_t *corpus;
	size_t folios;
	struct compressor *compressor;
	struct decompressor *decompressor;
	unsigned codec;
	uint8_t *packed;	/* folios x 2 MiB */
	uint32_t *packed_bytes; /* per frame */
	uint8_t *plain;		/* one folio */
	struct bench_store store;
};

static uint8_t *packed_frame(const struct codec_run *run, size_t frame)
{
	return run->packed + frame * FRAME_BYTES;
}

/* ---- one folio, the bare codec ---- */

static void bare_put(struct codec_run *run, size_t folio)
{
	for (size_t frame = folio * FOLIO_FRAMES; frame < (folio + 1) * FOLIO_FRAMES; frame++) {
		ssize_t bytes = compressor_run(run->compressor, run->corpus + frame * FRAME_BYTES, FRAME_BYTES,
			packed_frame(run, frame), FRAME_BYTES - 1);

		/* Raw where it does not shrink, as the store does. */
		if (bytes < 0)
			memcpy(packed_frame(run, frame), run->corpus + frame * FRAME_BYTES, FRAME_BYTES);
		run->packed_bytes[frame] = bytes < 0 ? (uint32_t)FRAME_BYTES : (uint32_t)bytes;
	}
}

static void bare_decode(struct codec_run *run, size_t frame, uint8_t *plain)
{
	if (run->packed_bytes[frame] == FRAME_BYTES)
		memcpy(plain, packed_frame(run, frame), FRAME_BYTES);
	else if (decompressor_run(run->decompressor, run->codec, packed_frame(run, frame), run->packed_bytes[frame],
			 plain, FRAME_BYTES) < 0)
		abort();
}

static void bare_get(struct codec_run *run, size_t folio)
{
	for (uint32_t frame = 0; frame < FOLIO_FRAMES; frame++)
		bare_decode(run, folio * FOLIO_FRAMES + frame, run->plain + frame * FRAME_BYTES);
}

/* One frame of each of the folio's neighbours, none twice in a row. */
static void bare_read(struct codec_run *run, size_t folio)
{
	for (size_t i = 0; i < READS_PER_FOLIO; i++)
		bare_decode(run, (folio * FOLIO_FRAMES + i * 37) % (run->folios * FOLIO_FRAMES), run->plain);
}

/* ---- one folio, the store ---- */

/* What the I/O thread does: copied into a slot and acknowledged. */
static void store_ack(struct codec_run *run, size_t folio)
{
	if (store_write(run->store.io, folio * FOLIO_GRANULES, FOLIO_GRANULES, run->corpus + folio * FOLIO_BYTES) < 0)
		abort();
}

/* What a compression thread does: the slot that has been complete for longest becomes an object. */
static void store_put(struct codec_run *run, size_t folio)
{
	(void)folio;
	if (!store_step(run->store.store, false))
		abort();
}

/* Both by one thread. */
static void store_ack_put(struct codec_run *run, size_t folio)
{
	store_ack(run, folio);
	store_put(run, folio);
}

static void store_get(struct codec_run *run, size_t folio)
{
	if (store_read(run->store.io, folio * FOLIO_GRANULES, FOLIO_GRANULES, run->plain) < 0)
		abort();
}

static void store_read4k(struct codec_run *run, size_t folio)
{
	for (size_t i = 0; i < READS_PER_FOLIO; i++) {
		uint64_t frame = (folio * FOLIO_FRAMES + i * 37) % (run->folios * FOLIO_FRAMES);

		if (store_read(run->store.io, frame * (FRAME_BYTES / GRANULE_BYTES) + (i & 15), 1, run->plain) < 0)
			abort();
	}
}

/* ---- turns ---- */

typedef void one_folio(struct codec_run *run, size_t folio);

static void nothing(struct codec_run *run, size_t folio)
{
	(void)run;
	(void)folio;
}

/*
 * Both sides over all folios, folio by folio in turns, so that what else the
 * machine does meets both alike; each side is half the set away from the
 * other, so that neither finds the other's bytes in the cache, and goes first
 * every second time. prepare is the store's and not timed. Returns the ratio
 * bare / store of CPU time.
 */
static double compare(struct codec_run *run, one_folio *bare, one_folio *prepare, one_folio *store)
{
	double seconds[2] = {0, 0};

	for (size_t i = 0; i < 2 * run->folios; i++) {
		unsigned side = (unsigned)(i ^ (i >> 1)) & 1;
		size_t folio = (i / 2 + side * (run->folios / 2)) % run->folios;
		double begin;

		(side ? prepare : nothing)(run, folio);
		begin = thread_seconds();
		(side ? store : bare)(run, folio);
		seconds[side] += thread_seconds() - begin;
	}
	return seconds[0] / seconds[1];
}

struct codec_figures {
	double put[BENCH_ROUNDS_MAX], ack_put[BENCH_ROUNDS_MAX], get[BENCH_ROUNDS_MAX], read[BENCH_ROUNDS_MAX];
};

static void turn(struct codec_run *run, struct codec_figures *figures, long round)
{
	/* Two slots are written ahead: by the time one is closed it has left the nearest caches, as another thread's would. */
	store_ack(run, 0);
	store_ack(run, 1);
	figures->put[round] = compare(run, bare_put, store_ack, store_put);
	figures->ack_put[round] = compare(run, bare_put, nothing, store_ack_put);
	if (store_flush(run->store.store, UINT64_C(1000000000)) < 0)
		abort();
	figures->get[round] = compare(run, bare_get, nothing, store_get);
	figures->read[round] = 1 / compare(run, bare_read, nothing, store_read4k);
}

static void report_row(struct bench *bench, size_t row, struct codec_figures *figures)
{
	size_t rounds = (size_t)bench->rounds;
	char text[64];

	/* The JSON fields are objects by codec: see report_codec_json. */
	snprintf(text, sizeof(text), "put 2M, %s: slot to object", rows[row].label);
	report(bench, NULL, text, spread_of(figures->put, rounds), "x", rows[row].put_bar);
	snprintf(text, sizeof(text), "     and the copy into the slot");
	report(bench, NULL, text, spread_of(figures->ack_put, rounds), "x", "");
	snprintf(text, sizeof(text), "get 2M, %s", rows[row].label);
	report(bench, NULL, text, spread_of(figures->get, rounds), "x", rows[row].get_bar);
	snprintf(text, sizeof(text), "read 4K, %s (store / one frame)", rows[row].label);
	report(bench, NULL, text, spread_of(figures->read, rounds), "x", rows[row].read_bar);
}

static void report_json(const char *name, const struct spread *values)
{
	printf(", \"%s\": {", name);
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
		printf("%s\"%s\": %.4f", row ? ", " : "", rows[row].label, values[row].median);
	printf("}");
}

static int run_row(struct bench *bench, const uint8_t *corpus, size_t folios, size_t row, struct codec_figures *figures)
{
	struct store_config config = bench_store_defaults(folios * FOLIO_BYTES);
	struct codec_run run = {.corpus = corpus, .folios = folios, .codec = rows[row].choice.id};
	int result;

	config.codec = rows[row].choice.id;
	config.level = rows[row].choice.level;
	run.packed = aligned_alloc(FOLIO_BYTES, folios * FOLIO_BYTES);
	run.packed_bytes = calloc(folios * FOLIO_FRAMES, sizeof(*run.packed_bytes));
	run.plain = aligned_alloc(FOLIO_BYTES, FOLIO_BYTES);
	result = run.packed && run.packed_bytes && run.plain ? 0 : -ENOMEM;
	if (result == 0)
		result = compressor_create(&run.compressor, rows[row].choice, FRAME_BYTES);
	if (result == 0)
		result = decompressor_create(&run.decompressor, FOLIO_BYTES);
	if (result == 0)
		result = bench_store_open(&run.store, &config);
	if (result == 0) {
		/* Once for the caches and the first touch of everything. */
		turn(&run, figures, 0);
		for (long round = 0; round < bench->rounds; round++)
			turn(&run, figures, round);
		bench_store_close(&run.store);
	}
	compressor_destroy(run.compressor);
	decompressor_destroy(run.decompressor);
	free(run.packed);
	free(run.packed_bytes);
	free(run.plain);
	return result;
}

int bench_codec(struct bench *bench)
{
	size_t folios = bench->quick ? 4 : 48, count = sizeof(rows) / sizeof(rows[0]), rounds = (size_t)bench->rounds;
	struct spread put[sizeof(rows) / sizeof(rows[0])], ack_put[sizeof(rows) / sizeof(rows[0])],
		get[sizeof(rows) / sizeof(rows[0])],
		read[sizeof(rows) / sizeof(rows[0])];
	uint8_t *corpus = corpus_create(folios);
	int result = corpus ? 0 : -ENOMEM;

	report_title(bench, "bare codec / store, CPU time of 64K frames");
	for (size_t row = 0; row < count && result == 0; row++) {
		struct codec_figures figures;

		result = run_row(bench, corpus, folios, row, &figures);
		if (result < 0)
			break;
		if (!bench->json)
			report_row(bench, row, &figures);
		put[row] = spread_of(figures.put, rounds);
		ack_put[row] = spread_of(figures.ack_put, rounds);
		get[row] = spread_of(figures.get, rounds);
		read[row] = spread_of(figures.read, rounds);
	}
	if (result == 0 && bench->json) {
		report_json("put_vs_codec", put);
		report_json("ack_put_vs_codec", ack_put);
		report_json("get_vs_codec", get);
		report_json("read4k_vs_frame", read);
	}
	free(corpus);
	return result;
}
