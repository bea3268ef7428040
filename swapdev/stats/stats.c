// SPDX-License-Identifier: GPL-2.0-or-later
/* The statistics page: layout, checks for foreign readers, recording a request, sums over the shards. */
#include "stats.h"

#include "clock.h"

#include <errno.h>
#include <string.h>

_Static_assert(sizeof(struct stats_page) % CACHE_LINE_BYTES == 0, "shards follow on a line of their own");
_Static_assert(sizeof(struct stats_io) % CACHE_LINE_BYTES == 0, "two writers never share a line");
_Static_assert(sizeof(struct stats_worker) % CACHE_LINE_BYTES == 0, "two writers never share a line");
_Static_assert(sizeof(struct stats_page) + STATS_THREADS_MAX * (sizeof(struct stats_io) + sizeof(struct stats_worker)) <
		       UINT32_MAX,
	"offsets in the header are 32 bits");

size_t stats_page_bytes(unsigned io_threads, unsigned workers)
{
	return sizeof(struct stats_page) + io_threads * sizeof(struct stats_io) + workers * sizeof(struct stats_worker);
}

void stats_page_init(struct stats_page *page, unsigned io_threads, unsigned workers)
{
	page->magic = STATS_MAGIC;
	page->version = STATS_VERSION;
	page->io_threads = io_threads;
	page->workers = workers;
	page->io_shard_bytes = sizeof(struct stats_io);
	page->worker_shard_bytes = sizeof(struct stats_worker);
	page->io_offset = sizeof(struct stats_page);
	page->worker_offset = page->io_offset + io_threads * page->io_shard_bytes;
	page->started_ns = clock_ns();
}

/* Do count shards from offset on lie behind the header, on whole cache lines, inside the page? */
static bool shards_are_inside(uint64_t offset, uint64_t count, uint64_t shard_bytes, size_t bytes)
{
	return count >= 1 && count <= STATS_THREADS_MAX && offset >= sizeof(struct stats_page) &&
	       offset % CACHE_LINE_BYTES == 0 && offset + count * shard_bytes <= bytes;
}

int stats_page_check(const struct stats_page *page, size_t bytes)
{
	uint64_t io_end, worker_end;

	if (bytes < sizeof(*page) || page->magic != STATS_MAGIC || page->version != STATS_VERSION)
		return -EPROTO;
	if (page->io_shard_bytes != sizeof(struct stats_io) || page->worker_shard_bytes != sizeof(struct stats_worker))
		return -EPROTO;
	if (!shards_are_inside(page->io_offset, page->io_threads, sizeof(struct stats_io), bytes) ||
		!shards_are_inside(page->worker_offset, page->workers, sizeof(struct stats_worker), bytes))
		return -EPROTO;
	io_end = page->io_offset + page->io_threads * (uint64_t)sizeof(struct stats_io);
	worker_end = page->worker_offset + page->workers * (uint64_t)sizeof(struct stats_worker);
	if (page->io_offset < worker_end && page->worker_offset < io_end)
		return -EPROTO; /* they overlap */
	return 0;
}

static const void *shard_at(const struct stats_page *page, uint32_t offset, size_t shard_bytes, unsigned index)
{
	return (const char *)page + offset + index * shard_bytes;
}

struct stats_io *stats_page_io(struct stats_page *page, unsigned index)
{
	return (struct stats_io *)shard_at(page, page->io_offset, sizeof(struct stats_io), index);
}

struct stats_worker *stats_page_worker(struct stats_page *page, unsigned index)
{
	return (struct stats_worker *)shard_at(page, page->worker_offset, sizeof(struct stats_worker), index);
}

void stats_request(struct stats_io *io, enum stats_kind kind, uint64_t bytes, uint64_t latency_ns, int error)
{
	struct stats_op *op = &io->op[kind][order_of_bytes(bytes)];

	stats_count(&op->requests, 1);
	stats_count(&op->bytes, bytes);
	if (error)
		stats_count(&op->errors, 1);
	hist_record(&op->latency, latency_ns);
}

/* into is the reader's own memory; from is being written by its owner. */
static void add_counters(uint64_t *into, const uint64_t *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		into[i] += stats_load(&from[i]);
}

static void add_counter(uint64_t *into, const uint64_t *from)
{
	add_counters(into, from, 1);
}

static void add_op(struct stats_op *into, const struct stats_op *from)
{
	add_counter(&into->requests, &from->requests);
	add_counter(&into->bytes, &from->bytes);
	add_counter(&into->errors, &from->errors);
	hist_add(&into->latency, &from->latency);
}

static void add_io(struct stats_io *into, const struct stats_io *from)
{
	for (unsigned kind = 0; kind < STATS_KINDS; kind++) {
		for (unsigned order = 0; order < ORDER_COUNT; order++)
			add_op(&into->op[kind][order], &from->op[kind][order]);
		add_counters(into->stage_ns[kind], from->stage_ns[kind], STATS_STAGES);
	}
	add_counter(&into->read_asked_bytes, &from->read_asked_bytes);
	add_counter(&into->read_decoded_bytes, &from->read_decoded_bytes);
	add_counter(&into->frame_hits, &from->frame_hits);
	add_counter(&into->frame_misses, &from->frame_misses);
	add_counter(&into->direct_objects, &from->direct_objects);
	add_counter(&into->slot_waits, &from->slot_waits);
	add_counter(&into->room_waits, &from->room_waits);
	add_counter(&into->refused, &from->refused);
	add_counter(&into->bad_frames, &from->bad_frames);
	add_counter(&into->raw_bytes, &from->raw_bytes);
}

static void add_worker(struct stats_worker *into, const struct stats_worker *from)
{
	add_counters(into->closed_objects, from->closed_objects, ORDER_COUNT);
	add_counters(into->closed_bytes, from->closed_bytes, ORDER_COUNT);
	add_counters(into->closed_stored_bytes, from->closed_stored_bytes, ORDER_COUNT);
	add_counter(&into->closed_dropped_bytes, &from->closed_dropped_bytes);
	add_counter(&into->rewritten_objects, &from->rewritten_objects);
	add_counter(&into->rewritten_bytes, &from->rewritten_bytes);
	add_counter(&into->moved_objects, &from->moved_objects);
	add_counter(&into->moved_bytes, &from->moved_bytes);
	add_counter(&into->punched_bytes, &from->punched_bytes);
	add_counter(&into->raw_bytes, &from->raw_bytes);
	add_counters(into->stage_ns, from->stage_ns, STATS_STAGES);
	add_counter(&into->cpu_ns, &from->cpu_ns);
	hist_add(&into->close_ns, &from->close_ns);
}

void stats_sum(const struct stats_page *page, struct stats_sum *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (unsigned i = 0; i < page->io_threads; i++)
		add_io(&ret->io, shard_at(page, page->io_offset, sizeof(struct stats_io), i));
	for (unsigned i = 0; i < page->workers; i++)
		add_worker(&ret->worker, shard_at(page, page->worker_offset, sizeof(struct stats_worker), i));
}
