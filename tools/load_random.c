// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * random: single pages read and rewritten anywhere, and pieces of 64 KiB given
 * back and refilled later. A device that hears of freed swap late, or in
 * larger steps, is left with dead data by it.
 *
 * What a page must hold stands in worker->versions: the version of its
 * content, and a flag while it is given back, when it must read as zeros.
 * Versions go on counting over a piece's absence, so old content that comes
 * back is found.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "clock.h"
#include "load_run.h"

#define PIECE_BYTES (64 * KIB)
#define PIECE_PAGES (PIECE_BYTES / LOAD_PAGE_BYTES)
#define FREED UINT32_C(0x80000000)
#define CLOCK_EVERY 64

/* Percent of the operations. */
#define READ_SHARE 60
#define WRITE_SHARE 30
#define FREE_SHARE 5

/* At most an eighth of the pieces is away at a time; the oldest is refilled first. */
#define AWAY_SHARE 8

_Static_assert((LOAD_VERSION_MAX & FREED) == 0, "the flag must stand beside the version");

struct away {
	uint32_t *pieces; /* ring */
	uint32_t room;
	uint32_t first;
	uint32_t count;
};

static uint64_t page_count(const struct load_worker *worker)
{
	return worker->region_bytes / LOAD_PAGE_BYTES;
}

static uint32_t expected_version(const struct load_worker *worker, uint64_t page)
{
	return worker->versions[page] & FREED ? LOAD_VERSION_NONE : worker->versions[page];
}

static void put_page(struct load_worker *worker, uint64_t page)
{
	uint32_t version = load_version_next(worker->versions[page] & ~FREED);

	load_content_write(&worker->run->content, load_worker_page_id(worker, page, version),
		worker->region + page * LOAD_PAGE_BYTES);
	worker->versions[page] = version;
}

/* Keeps each fault with the same chance, however many there will be. */
static void note_fault(struct load_worker *worker, uint64_t ns)
{
	uint64_t slot = worker->mix.faults++;

	if (slot >= LOAD_LATENCY_SAMPLES)
		slot = load_rng_below(&worker->rng, (uint32_t)(slot > UINT32_MAX - 1 ? UINT32_MAX : slot + 1));
	if (slot < LOAD_LATENCY_SAMPLES)
		worker->mix.fault_ns[slot] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

static long major_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_majflt;
}

static void read_page(struct load_worker *worker, uint64_t page)
{
	const volatile uint8_t *bytes = worker->region + page * LOAD_PAGE_BYTES;
	long faults_before = major_faults();
	uint64_t start_ns = clock_ns(), ns;

	(void)*bytes;
	ns = clock_ns() - start_ns;
	if (major_faults() != faults_before)
		note_fault(worker, ns);
	load_worker_verify(worker, page, expected_version(worker, page));
	worker->mix.reads++;
	worker->effort.bytes += LOAD_PAGE_BYTES;
}

static void rewrite_page(struct load_worker *worker, uint64_t page)
{
	load_worker_verify(worker, page, expected_version(worker, page));
	put_page(worker, page);
	worker->mix.writes++;
	worker->effort.bytes += LOAD_PAGE_BYTES;
}

static void free_piece(struct load_worker *worker, struct away *away)
{
	uint32_t piece = load_rng_below(&worker->rng, (uint32_t)(page_count(worker) / PIECE_PAGES));
	uint32_t *versions = worker->versions + piece * PIECE_PAGES;

	if (madvise(worker->region + piece * PIECE_BYTES, PIECE_BYTES, MADV_DONTNEED) < 0) {
		worker->error = -errno;
		worker->error_step = "madvise(MADV_DONTNEED)";
		return;
	}
	for (unsigned i = 0; i < PIECE_PAGES; i++)
		versions[i] |= FREED;
	away->pieces[(away->first + away->count++) % away->room] = piece;
	worker->mix.frees++;
}

/* Pages of it that were rewritten meanwhile stay as they are. */
static void refill_piece(struct load_worker *worker, struct away *away)
{
	uint64_t first = away->pieces[away->first] * PIECE_PAGES;

	away->first = (away->first + 1) % away->room;
	away->count--;
	for (uint64_t page = first; page < first + PIECE_PAGES; page++) {
		if (worker->versions[page] & FREED)
			put_page(worker, page);
	}
	worker->mix.refills++;
}

static void one_operation(struct load_worker *worker, struct away *away)
{
	unsigned dice = load_rng_below(&worker->rng, 100);
	uint64_t page = load_rng_below(&worker->rng, (uint32_t)page_count(worker));

	if (dice < READ_SHARE) {
		read_page(worker, page);
	} else if (dice < READ_SHARE + WRITE_SHARE) {
		rewrite_page(worker, page);
	} else if (dice < READ_SHARE + WRITE_SHARE + FREE_SHARE) {
		if (away->count < away->room)
			free_piece(worker, away);
	} else if (away->count) {
		refill_piece(worker, away);
	}
}

/* What the pass before left away would never come back otherwise. */
static void refill_all(struct load_worker *worker)
{
	for (uint64_t page = 0; page < page_count(worker); page++) {
		if (worker->versions[page] & FREED)
			put_page(worker, page);
	}
}

static void operate(struct load_worker *worker, uint32_t version)
{
	const struct load_options *options = worker->run->options;
	uint64_t end_ns = clock_ns() + options->duration_s * UINT64_C(1000000000);
	uint64_t limit = (options->operations + options->workers - 1) / options->workers;
	struct away away = {.room = (uint32_t)(page_count(worker) / PIECE_PAGES / AWAY_SHARE)};

	(void)version;
	away.pieces = calloc(away.room, sizeof(away.pieces[0]));
	if (!away.pieces) {
		worker->error = -ENOMEM;
		worker->error_step = "memory for the list of freed pieces";
		return;
	}
	refill_all(worker);
	for (uint64_t done = 0; !worker->error; done++) {
		if (limit ? done >= limit : done % CLOCK_EVERY == 0 && clock_ns() >= end_ns)
			break;
		one_operation(worker, &away);
	}
	free(away.pieces);
}

static void fill(struct load_worker *worker, uint32_t version)
{
	load_phase_write(worker, version);
	for (uint64_t page = 0; page < page_count(worker); page++)
		worker->versions[page] = version;
}

static void verify_all(struct load_worker *worker, uint32_t version)
{
	(void)version;
	for (uint64_t page = 0; page < page_count(worker); page++)
		load_worker_verify(worker, page, expected_version(worker, page));
	worker->effort.bytes = worker->region_bytes;
}

static int drive(struct load_run *run)
{
	int error = load_run_phase(run, "fill", 1, LOAD_OUT, fill, 1);

	for (unsigned pass = 1; error == 0 && pass <= run->options->passes; pass++) {
		error = load_run_phase(run, "random", pass, LOAD_NEITHER, operate, 1);
		if (error == 0)
			error = load_run_hold(run);
		if (error == 0)
			error = load_run_phase(run, "verify", pass, LOAD_IN, verify_all, 1);
	}
	return error;
}

const struct load_workload load_random = {
	.name = "random",
	.summary = "random reads and rewrites, with frees in 64 KiB pieces",
	.passes_default = 1,
	.drive = drive,
};
