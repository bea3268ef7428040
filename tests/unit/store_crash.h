/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one that is killed: a child that works on the parent's image, notes in
 * shared memory what it is about to do and what was acknowledged, and dies at
 * a publication step, or when the parent likes.
 */
#ifndef UNIT_STORE_CRASH_H
#define UNIT_STORE_CRASH_H

#include "store_fixture.h"

#include <signal.h>

#define WRITERS 2
#define GRANULES_MAX (16 * MIB / GRANULE_BYTES)

struct request {
	_Atomic bool active;
	bool discard;
	struct range range;
	uint32_t stamp;
};

/* Lives in memory that outlasts the child. */
struct shared {
	_Atomic uint32_t stamp[GRANULES_MAX]; /* acknowledged */
	struct request request[WRITERS];
	_Atomic uint32_t numbers; /* stamps handed out */
	_Atomic bool opened;
	_Atomic uint64_t acknowledged;
	char failure[200]; /* what the child found wrong */
};

struct crash_run {
	struct store_config config;
	struct shared *shared;
	int fd;
	uint64_t granules;
	uint64_t unit_granules;
	uint64_t random;
	uint8_t *buffer; /* one unit */
	bool torn;       /* kills may have come in the middle of a copy */
	unsigned kills;
};

static inline uint64_t kills_scale(void)
{
	return fixture_number("FOLIOSWAP_KILLS", 1);
}

/* ---- the child ---- */

static struct {
	enum store_hook hook;
	_Atomic int left;
} doom;

static inline void die_at(enum store_hook hook)
{
	if (hook == doom.hook && atomic_fetch_sub(&doom.left, 1) == 1)
		kill(getpid(), SIGKILL);
}

static inline bool doom_is_moving(void)
{
	return doom.left > 0 && (doom.hook == HOOK_MOVE_COPY || doom.hook == HOOK_MOVE_PLACE);
}

struct writer {
	struct crash_run *run;
	struct store *store;
	struct store_io *io;
	unsigned index;
	unsigned stripes; /* this writer's units: those with unit % stripes == index */
	uint64_t random;
	uint8_t *buffer;
};

static inline void child_fails(struct crash_run *run, const char *what, uint64_t granule, int result)
{
	snprintf(run->shared->failure, sizeof(run->shared->failure), "%s, granule %llu, answer %d", what,
		(unsigned long long)granule, result);
	_exit(2);
}

static inline struct range writer_range(struct writer *writer)
{
	struct crash_run *run = writer->run;
	uint64_t units = (run->granules + run->unit_granules - 1) / run->unit_granules;
	uint64_t unit = random_below(&writer->random, units / writer->stripes) * writer->stripes + writer->index;

	return range_in_unit(&writer->random, run->granules, run->unit_granules, unit);
}

/* Noted before, executed, noted as acknowledged: the order that makes the note worth something. */
static inline int execute(struct writer *writer, struct range range, bool discard, uint32_t stamp)
{
	struct shared *shared = writer->run->shared;
	struct request *request = &shared->request[writer->index];
	int result;

	request->discard = discard;
	request->range = range;
	request->stamp = stamp;
	atomic_store(&request->active, true);
	if (discard) {
		result = store_discard(writer->io, range.granule, range.count);
	} else {
		stamp_fill_range(writer->buffer, range.granule, range.count, stamp);
		result = fixture_write(writer->store, writer->io, range.granule, range.count, writer->buffer, stamp);
	}
	if (result != 0 && (discard || result != -ENOSPC || writer->run->config.limit_bytes == UINT64_MAX))
		child_fails(writer->run, discard ? "discard" : "write", range.granule, result);
	for (uint32_t i = 0; i < range.count && result == 0; i++)
		atomic_store(&shared->stamp[range.granule + i], stamp);
	atomic_store(&request->active, false);
	atomic_fetch_add(&shared->acknowledged, 1);
	return result;
}

static inline void writer_write(struct writer *writer)
{
	enum stamp_kind kind = (enum stamp_kind)random_below(&writer->random, STAMP_KINDS + 2);
	uint32_t number = atomic_fetch_add(&writer->run->shared->numbers, 1) + 1;

	/* What does not compress comes up more often: it makes the arena large enough to be moved about. */
	kind = kind >= STAMP_KINDS ? STAMP_RANDOM : kind;
	execute(writer, writer_range(writer), false, stamp_make(number, kind));
}

static inline void writer_read(struct writer *writer)
{
	struct range range = writer_range(writer);
	int result = store_read(writer->io, range.granule, range.count, writer->buffer);

	if (result != 0)
		child_fails(writer->run, "read", range.granule, result);
	for (uint32_t i = 0; i < range.count; i++) {
		if (!stamp_is(writer->buffer + i * GRANULE_BYTES, range.granule + i,
			    writer->run->shared->stamp[range.granule + i]))
			child_fails(writer->run, "wrong bytes", range.granule + i, 0);
	}
}

static inline void writer_step(struct writer *writer)
{
	uint64_t kind = random_below(&writer->random, 100);

	if (kind < 65)
		writer_write(writer);
	else if (kind < 80)
		execute(writer, writer_range(writer), true, 0);
	else
		writer_read(writer);
}

/* A full device, then holes everywhere, so that there is something to move together. */
static inline void fill_and_discard(struct writer *writer)
{
	uint64_t units = writer->run->granules / writer->run->unit_granules, unit;
	uint32_t number = atomic_fetch_add(&writer->run->shared->numbers, 1) + 1;
	uint32_t half = (uint32_t)writer->run->unit_granules / 2;

	for (unit = writer->index; unit < units; unit += writer->stripes) {
		execute(writer, (struct range){unit * 2 * half, half}, false, stamp_make(number, STAMP_RANDOM));
		execute(writer, (struct range){unit * 2 * half + half, half}, false, stamp_make(number, STAMP_RANDOM));
	}
	for (unit = writer->index; unit < units; unit += writer->stripes) {
		if (random_below(&writer->random, 5) < 2)
			execute(writer, (struct range){unit * 2 * half, 2 * half}, true, 0);
	}
}

static inline void change_settings(struct store *store, uint64_t *random)
{
	static const struct codec_choice choices[] = {
		{CODEC_LZ4, 1}, {CODEC_ZSTD, 1}, {CODEC_LZ4HC, 2}, {CODEC_LZ4, 60000}, {CODEC_ZSTD, -5}};
	struct codec_choice choice = choices[random_below(random, 5)];
	unsigned orders = order_of_bytes(store->image.super->unit_bytes) + 1;

	if (random_below(random, 2))
		store_set_codec(store, choice.id, choice.level);
	else
		store_set_frame(store, (uint32_t)(GRANULE_BYTES << random_below(random, orders)));
}

static inline struct store *child_open(struct crash_run *run)
{
	struct store *store;
	int result = store_open(&store, run->fd);

	if (result != 0)
		child_fails(run, "open", 0, result);
	atomic_store(&run->shared->opened, true);
	return store;
}

/* Works without threads until the hook comes up. Exits 0 when it never does. */
static inline void child_of_one_thread(struct crash_run *run)
{
	struct store *store = child_open(run);
	struct writer writer = {.run = run,
		.store = store,
		.io = store_io(store, 0),
		.stripes = 1,
		.random = run->random,
		.buffer = run->buffer};

	store_hook = die_at;
	for (unsigned operation = 1; operation < 4000; operation++) {
		uint64_t kind = random_below(&writer.random, 1000);

		if (kind < 750)
			writer_step(&writer);
		else if (kind < 990)
			store_step(store, kind < 850);
		else if (kind < 994)
			store_flush(store, FIXTURE_WAIT_NS);
		else
			change_settings(store, &writer.random);
		if (operation % (doom_is_moving() ? 100 : 900) == 0) {
			fill_and_discard(&writer);
			store_compact(store, FIXTURE_WAIT_NS, NULL, NULL);
		}
	}
	_exit(0);
}

/* Only opens: what dies of it has changed nothing. */
static inline void child_that_recovers(struct crash_run *run)
{
	child_open(run);
	for (;;)
		pause();
}

static inline void *writer_main(void *argument)
{
	struct writer *writer = argument;

	for (unsigned operation = 1;; operation++) {
		writer_step(writer);
		if (doom_is_moving() && operation % 100 == 0) {
			fill_and_discard(writer);
			usleep(100000);
		}
	}
	return NULL;
}

/* Works with threads until it is killed, by a hook or by the parent. Exits 0 when nobody does it. */
static inline void child_of_many_threads(struct crash_run *run)
{
	uint64_t end_ns = clock_ns() + 3 * UINT64_C(1000000000);
	struct store *store = child_open(run);
	struct writer writer[WRITERS];
	pthread_t thread;

	store_hook = die_at;
	if (store_start(store) != 0)
		child_fails(run, "start", 0, 0);
	for (unsigned i = 0; i < WRITERS; i++) {
		writer[i] = (struct writer){.run = run,
			.store = store,
			.io = store_io(store, i),
			.index = i,
			.stripes = WRITERS,
			.random = random_next(&run->random),
			.buffer = malloc(run->config.unit_bytes)};
		if (pthread_create(&thread, NULL, writer_main, &writer[i]) != 0)
			child_fails(run, "thread", 0, 0);
	}
	while (clock_ns() < end_ns) {
		uint64_t kind = random_below(&run->random, 8);

		usleep((useconds_t)random_below(&run->random, 3000));
		if (kind == 0)
			store_compact(store, FIXTURE_WAIT_NS, NULL, NULL);
		else if (kind == 1)
			store_flush(store, 2000000);
		else if (kind == 2)
			change_settings(store, &run->random);
	}
	_exit(0);
}

#endif
