// SPDX-License-Identifier: GPL-2.0-or-later
/* The statistics page: sums word by word, damaged headers, a reader beside its writers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <cmocka.h>

#include "clock.h"
#include "stats.h"

#define IO_THREADS 3
#define WORKERS 2
#define WRITER_REQUESTS 20000

static struct stats_page *page_create(unsigned io_threads, unsigned workers)
{
	size_t bytes = stats_page_bytes(io_threads, workers);
	struct stats_page *page = aligned_alloc(CACHE_LINE_BYTES, bytes);

	assert_non_null(page);
	memset(page, 0, bytes);
	stats_page_init(page, io_threads, workers);
	return page;
}

static void test_layout(void **state)
{
	static const unsigned shapes[][2] = {{1, 1}, {1, 64}, {64, 1}, {7, 3}, {64, 64}};

	(void)state;
	for (unsigned s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		unsigned io_threads = shapes[s][0], workers = shapes[s][1];
		struct stats_page *page = page_create(io_threads, workers);
		char *end = (char *)page + stats_page_bytes(io_threads, workers);
		char *expected = (char *)(page + 1);

		for (unsigned i = 0; i < io_threads; i++, expected += sizeof(struct stats_io))
			assert_ptr_equal(stats_page_io(page, i), expected);
		for (unsigned i = 0; i < workers; i++, expected += sizeof(struct stats_worker))
			assert_ptr_equal(stats_page_worker(page, i), expected);
		assert_ptr_equal(expected, end);
		assert_int_equal((uintptr_t)stats_page_worker(page, 0) % CACHE_LINE_BYTES, 0);
		assert_int_equal(stats_page_check(page, stats_page_bytes(io_threads, workers)), 0);
		assert_true(page->started_ns > 0 && page->started_ns <= clock_ns());
		free(page);
	}
}

static void check_refused(const struct stats_page *good, size_t bytes, size_t field, size_t field_bytes, uint64_t value)
{
	struct stats_page damaged = *good;

	memcpy((char *)&damaged + field, &value, field_bytes);
	assert_int_equal(stats_page_check(&damaged, bytes), -EPROTO);
}

#define CHECK_REFUSED(field, value) \
	check_refused(page, bytes, offsetof(struct stats_page, field), sizeof(page->field), (value))

static void test_damaged_headers(void **state)
{
	struct stats_page *page = page_create(IO_THREADS, WORKERS);
	size_t bytes = stats_page_bytes(IO_THREADS, WORKERS);

	(void)state;
	assert_int_equal(stats_page_check(page, bytes), 0);
	assert_int_equal(stats_page_check(page, bytes + 4096), 0);
	assert_int_equal(stats_page_check(page, bytes - 1), -EPROTO);
	assert_int_equal(stats_page_check(page, sizeof(*page) - 1), -EPROTO);
	assert_int_equal(stats_page_check(page, 0), -EPROTO);
	CHECK_REFUSED(magic, STATS_MAGIC ^ 1);
	CHECK_REFUSED(magic, 0);
	CHECK_REFUSED(version, STATS_VERSION + 1);
	CHECK_REFUSED(version, 0);
	CHECK_REFUSED(io_threads, 0);
	CHECK_REFUSED(io_threads, IO_THREADS + 1); /* runs into the workers */
	CHECK_REFUSED(io_threads, STATS_THREADS_MAX + 1);
	CHECK_REFUSED(io_threads, UINT32_MAX);
	CHECK_REFUSED(workers, 0);
	CHECK_REFUSED(workers, WORKERS + 1);
	CHECK_REFUSED(workers, UINT32_MAX);
	CHECK_REFUSED(io_shard_bytes, sizeof(struct stats_io) - 8);
	CHECK_REFUSED(io_shard_bytes, 0);
	CHECK_REFUSED(worker_shard_bytes, sizeof(struct stats_worker) + 8);
	CHECK_REFUSED(io_offset, 0);
	CHECK_REFUSED(io_offset, sizeof(*page) - CACHE_LINE_BYTES);
	CHECK_REFUSED(io_offset, sizeof(*page) + 8);
	CHECK_REFUSED(io_offset, sizeof(*page) + CACHE_LINE_BYTES); /* runs into the workers */
	CHECK_REFUSED(io_offset, UINT32_MAX - 63);
	CHECK_REFUSED(worker_offset, 0);
	CHECK_REFUSED(worker_offset, page->worker_offset - CACHE_LINE_BYTES);
	CHECK_REFUSED(worker_offset, page->worker_offset + CACHE_LINE_BYTES);
	CHECK_REFUSED(worker_offset, UINT32_MAX - 63);
	bytes += 4096; /* there would be room */
	CHECK_REFUSED(worker_offset, page->worker_offset + 8);
	free(page);
}

static void test_thread_limit_counts(void **state)
{
	struct stats_page *page = page_create(STATS_THREADS_MAX, 1);
	size_t bytes = stats_page_bytes(STATS_THREADS_MAX, 1);

	(void)state;
	page->io_threads++; /* room is there, but no program makes so many */
	page->worker_offset += page->io_shard_bytes;
	assert_int_equal(stats_page_check(page, 2 * bytes), -EPROTO);
	free(page);
}

static void check_op(const struct stats_op *op, uint64_t requests, uint64_t bytes, uint64_t errors, uint64_t max_ns)
{
	assert_int_equal(op->requests, requests);
	assert_int_equal(op->bytes, bytes);
	assert_int_equal(op->errors, errors);
	assert_int_equal(op->latency.max_ns, max_ns);
	assert_int_equal(hist_count(&op->latency), requests);
}

static void test_request(void **state)
{
	struct stats_page *page = page_create(1, 1);
	struct stats_io *io = stats_page_io(page, 0);
	unsigned filled = 0;

	(void)state;
	stats_request(io, STATS_READ, 4096, 700, 0);
	stats_request(io, STATS_READ, 8191, 900, -EIO); /* still order 0 */
	stats_request(io, STATS_READ, 8192, 5, 0);
	stats_request(io, STATS_WRITE, 2 * MIB, 80000, 0);
	stats_request(io, STATS_WRITE, 16 * MIB, 90000, -ENOSPC);
	stats_request(io, STATS_DISCARD, UINT64_C(1) << 40, 1, 0); /* above the last order: counted there */
	check_op(&io->op[STATS_READ][0], 2, 4096 + 8191, 1, 900);
	check_op(&io->op[STATS_READ][1], 1, 8192, 0, 5);
	check_op(&io->op[STATS_WRITE][9], 1, 2 * MIB, 0, 80000);
	check_op(&io->op[STATS_WRITE][12], 1, 16 * MIB, 1, 90000);
	check_op(&io->op[STATS_DISCARD][12], 1, UINT64_C(1) << 40, 0, 1);
	for (unsigned kind = 0; kind < STATS_KINDS; kind++)
		for (unsigned order = 0; order < ORDER_COUNT; order++)
			filled += io->op[kind][order].requests != 0;
	assert_int_equal(filled, 5);
	free(page);
}

/* Every word of a shard gets a value of its own, so that a counter that is left out or added twice shows. */
static void fill_words(uint64_t *words, size_t count, uint64_t shard)
{
	for (size_t i = 0; i < count; i++)
		words[i] = (i + 1) * 1000 + shard;
}

static void check_sum_words(const uint64_t *words, const bool *is_maximum, size_t count, unsigned shards)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t sum = 0;
		uint64_t maximum = 0;

		for (unsigned s = 0; s < shards; s++) {
			sum += (i + 1) * 1000 + s;
			maximum = (i + 1) * 1000 + s;
		}
		assert_int_equal(words[i], is_maximum[i] ? maximum : sum);
	}
}

#define IO_WORDS (offsetof(struct stats_io, raw_bytes) / sizeof(uint64_t) + 1)
#define WORKER_WORDS ((offsetof(struct stats_worker, close_ns) + sizeof(struct hist)) / sizeof(uint64_t))

static void test_sum_has_every_counter(void **state)
{
	struct stats_page *page = page_create(IO_THREADS, WORKERS);
	struct stats_sum *sum = aligned_alloc(CACHE_LINE_BYTES, sizeof(*sum));
	bool *is_maximum = calloc(IO_WORDS, sizeof(*is_maximum));

	(void)state;
	assert_non_null(sum);
	assert_non_null(is_maximum);
	memset(sum, 0xee, sizeof(*sum));
	for (unsigned i = 0; i < IO_THREADS; i++)
		fill_words((uint64_t *)(void *)stats_page_io(page, i), IO_WORDS, i);
	for (unsigned i = 0; i < WORKERS; i++)
		fill_words((uint64_t *)(void *)stats_page_worker(page, i), WORKER_WORDS, i);
	stats_sum(page, sum);
	for (unsigned kind = 0; kind < STATS_KINDS; kind++)
		for (unsigned order = 0; order < ORDER_COUNT; order++)
			is_maximum[offsetof(struct stats_io, op[kind][order].latency.max_ns) / sizeof(uint64_t)] = true;
	check_sum_words((const uint64_t *)(const void *)&sum->io, is_maximum, IO_WORDS, IO_THREADS);
	memset(is_maximum, 0, WORKER_WORDS * sizeof(*is_maximum));
	is_maximum[offsetof(struct stats_worker, close_ns.max_ns) / sizeof(uint64_t)] = true;
	check_sum_words((const uint64_t *)(const void *)&sum->worker, is_maximum, WORKER_WORDS, WORKERS);
	free(is_maximum);
	free(sum);
	free(page);
}

struct writer {
	pthread_t thread;
	struct stats_page *page;
	unsigned index;
};

static void *writer_run(void *arg)
{
	struct writer *writer = arg;
	struct stats_io *io = stats_page_io(writer->page, writer->index);

	for (unsigned i = 0; i < WRITER_REQUESTS; i++) {
		stats_request(io, i % STATS_KINDS, GRANULE_BYTES << (i % 10), i * 37, i % 7 ? 0 : -EIO);
		stats_count(&io->slot_waits, 1);
		atomic_fetch_add_explicit(&writer->page->gauges.live_bytes, 4096, memory_order_relaxed);
	}
	return NULL;
}

static uint64_t sum_requests(const struct stats_sum *sum)
{
	uint64_t requests = 0;

	for (unsigned kind = 0; kind < STATS_KINDS; kind++)
		for (unsigned order = 0; order < ORDER_COUNT; order++)
			requests += sum->io.op[kind][order].requests;
	return requests;
}

/* A later look never shows less than an earlier one, in no word of the sum. */
static void check_not_less(const struct stats_sum *before, const struct stats_sum *now)
{
	const uint64_t *old_words = (const uint64_t *)(const void *)&before->io;
	const uint64_t *new_words = (const uint64_t *)(const void *)&now->io;

	for (size_t i = 0; i < IO_WORDS; i++)
		assert_true(new_words[i] >= old_words[i]);
}

static void test_reader_beside_writers(void **state)
{
	struct stats_page *page = page_create(IO_THREADS, 1);
	struct stats_sum *sums = aligned_alloc(CACHE_LINE_BYTES, 2 * sizeof(*sums));
	struct writer writers[IO_THREADS];
	uint64_t looks = 0, live = 0, requests;

	(void)state;
	assert_non_null(sums);
	memset(sums, 0, 2 * sizeof(*sums));
	for (unsigned i = 0; i < IO_THREADS; i++) {
		writers[i] = (struct writer){.page = page, .index = i};
		assert_int_equal(pthread_create(&writers[i].thread, NULL, writer_run, &writers[i]), 0);
	}
	do {
		const struct stats_sum *now = &sums[looks % 2];
		uint64_t live_now;

		stats_sum(page, &sums[looks % 2]);
		check_not_less(&sums[(looks + 1) % 2], now);
		live_now = atomic_load_explicit(&page->gauges.live_bytes, memory_order_relaxed);
		assert_true(live_now >= live);
		live = live_now;
		requests = sum_requests(now);
		looks++;
	} while (requests < IO_THREADS * WRITER_REQUESTS);
	for (unsigned i = 0; i < IO_THREADS; i++)
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
	stats_sum(page, &sums[0]);
	assert_int_equal(sum_requests(&sums[0]), IO_THREADS * WRITER_REQUESTS);
	assert_int_equal(sums[0].io.slot_waits, IO_THREADS * WRITER_REQUESTS);
	assert_int_equal(page->gauges.live_bytes, IO_THREADS * WRITER_REQUESTS * UINT64_C(4096));
	free(sums);
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_damaged_headers),
		cmocka_unit_test(test_thread_limit_counts),
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_sum_has_every_counter),
		cmocka_unit_test(test_reader_beside_writers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
