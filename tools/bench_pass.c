// SPDX-License-Identifier: GPL-2.0-or-later
/* Threads that wait for each other, then send requests; the clock and the CPU time around them. */
#include "bench_pass.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "load_rng.h"
#include "textfile.h"
#include "units.h"

/* A slot that is not full is closed after 50 ms, and compressing the last ones takes a few more. */
#define SETTLE_US 250000
/* Faults come one after another with work between them, not back to back. */
#define READ_PAUSE_US 300
#define READS_MAX 200000

struct stream {
	const struct bench_target *target;
	enum bench_direction direction;
	uint64_t first_folio, end_folio;
	uint64_t version;
	unsigned cpu;    /* the how manieth of those that we may use */
	uint8_t *buffer; /* of reads */
	pthread_barrier_t *start;
	_Atomic bool *stop; /* NULL: once from one end to the other; else again and again, until then */
	uint64_t bytes;
	uint64_t end_ns;
	int result;
	pthread_t thread;
};

/* Busy time of all CPUs. */
static double busy_seconds(void)
{
	unsigned long long user, nice, kernel, irq, softirq;
	char text[512];

	if (textfile_read("/proc/stat", text, sizeof(text)) < 0 ||
		sscanf(text, "cpu %llu %llu %llu %*u %*u %llu %llu", &user, &nice, &kernel, &irq, &softirq) != 5)
		return 0;
	return (double)(user + nice + kernel + irq + softirq) / (double)sysconf(_SC_CLK_TCK);
}

static void pin(unsigned index)
{
	cpu_set_t allowed, one;
	int count;

	if (sched_getaffinity(getpid(), sizeof(allowed), &allowed) < 0)
		return;
	count = CPU_COUNT(&allowed);
	index %= (unsigned)count;
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || index-- > 0)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
		return;
	}
}

static const uint8_t *content_of(const struct bench_target *target, uint64_t folio, uint64_t version)
{
	return target->pool + (folio + version) % target->pool_folios * BENCH_FOLIO_BYTES;
}

static int request(const struct bench_target *target, enum bench_direction direction, uint64_t folio, uint64_t version,
	uint8_t *buffer)
{
	off_t offset = (off_t)(folio * BENCH_FOLIO_BYTES);
	ssize_t done = direction == BENCH_WRITE
			       ? pwrite(target->fd, content_of(target, folio, version), BENCH_FOLIO_BYTES, offset)
			       : pread(target->fd, buffer, BENCH_FOLIO_BYTES, offset);

	if (done < 0)
		return -errno;
	return done == (ssize_t)BENCH_FOLIO_BYTES ? 0 : -EIO;
}

static void *stream_run(void *argument)
{
	struct stream *stream = argument;
	uint64_t folio = stream->first_folio;

	pin(stream->cpu);
	pthread_barrier_wait(stream->start);
	while (stream->result == 0 && (stream->stop ? !atomic_load(stream->stop) : folio < stream->end_folio)) {
		if (folio == stream->end_folio) {
			folio = stream->first_folio;
			stream->version++;
		}
		stream->result = request(stream->target, stream->direction, folio++, stream->version, stream->buffer);
		stream->bytes += BENCH_FOLIO_BYTES;
	}
	stream->end_ns = clock_ns();
	return NULL;
}

/* Starts them all; they wait at the barrier until the caller, too, is there. */
static int streams_start(struct stream *streams, unsigned count, pthread_barrier_t *start)
{
	int result = -pthread_barrier_init(start, NULL, count + 1);

	for (unsigned i = 0; i < count && result == 0; i++) {
		streams[i].start = start;
		result = -pthread_create(&streams[i].thread, NULL, stream_run, &streams[i]);
	}
	if (result < 0) {
		/* Some may wait for the others, who will never come. */
		fprintf(stderr, "bench_device: cannot start %u threads: %s\n", count, strerror(-result));
		exit(1);
	}
	return result;
}

static int streams_join(struct stream *streams, unsigned count, uint64_t *ret_end_ns)
{
	int result = 0;

	*ret_end_ns = 0;
	for (unsigned i = 0; i < count; i++) {
		pthread_join(streams[i].thread, NULL);
		if (streams[i].end_ns > *ret_end_ns)
			*ret_end_ns = streams[i].end_ns;
		if (result == 0)
			result = streams[i].result;
	}
	return result;
}

static uint8_t *buffers_map(unsigned count)
{
	uint8_t *buffers = mmap(NULL, count * BENCH_FOLIO_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return buffers == MAP_FAILED ? NULL : buffers;
}

int bench_pass(const struct bench_target *target, enum bench_direction direction, unsigned streams, uint64_t version,
	struct bench_cost *ret_cost)
{
	struct stream stream[BENCH_STREAMS_MAX] = {0};
	uint8_t *buffers = buffers_map(streams);
	pthread_barrier_t start;
	uint64_t begin_ns, end_ns;
	double busy_before;
	int result;

	if (!buffers)
		return -ENOMEM;
	for (unsigned i = 0; i < streams; i++)
		stream[i] = (struct stream){
			.target = target,
			.direction = direction,
			.first_folio = target->folios * i / streams,
			.end_folio = target->folios * (i + 1) / streams,
			.version = version,
			.cpu = i,
			.buffer = buffers + i * BENCH_FOLIO_BYTES,
		};
	streams_start(stream, streams, &start);
	busy_before = busy_seconds();
	begin_ns = clock_ns();
	pthread_barrier_wait(&start);
	result = streams_join(stream, streams, &end_ns);
	usleep(SETTLE_US);
	*ret_cost = (struct bench_cost){
		.bytes = target->folios * BENCH_FOLIO_BYTES,
		.seconds = (double)(end_ns - begin_ns) / 1e9,
		.cpu_seconds = busy_seconds() - busy_before,
	};
	pthread_barrier_destroy(&start);
	munmap(buffers, streams * BENCH_FOLIO_BYTES);
	return result;
}

int bench_verify(const struct bench_target *target, uint64_t version, uint64_t *ret_wrong_bytes)
{
	uint8_t *buffer = buffers_map(1);
	uint64_t wrong_bytes = 0;
	int result = buffer ? 0 : -ENOMEM;

	for (uint64_t folio = 0; folio < target->folios && result == 0; folio++) {
		const uint8_t *expected = content_of(target, folio, version);

		result = request(target, BENCH_READ, folio, version, buffer);
		if (result < 0 || memcmp(buffer, expected, BENCH_FOLIO_BYTES) == 0)
			continue;
		for (uint64_t i = 0; i < BENCH_FOLIO_BYTES; i++)
			wrong_bytes += buffer[i] != expected[i];
	}
	if (buffer)
		munmap(buffer, BENCH_FOLIO_BYTES);
	*ret_wrong_bytes = wrong_bytes;
	return result;
}

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Each read's time; returns how many, or the errno of one that failed. */
static long read_granules(const struct bench_target *target, double seconds, double *microseconds)
{
	uint64_t end_ns = clock_ns() + (uint64_t)(seconds * 1e9), begin_ns;
	uint32_t granules = (uint32_t)(target->folios / 2 * (BENCH_FOLIO_BYTES / GRANULE_BYTES));
	struct load_rng rng = load_rng_seeded(1, end_ns);
	uint8_t *buffer = buffers_map(1);
	long reads = 0;

	if (!buffer)
		return -ENOMEM;
	while (reads < READS_MAX && (begin_ns = clock_ns()) < end_ns) {
		off_t offset = (off_t)(load_rng_below(&rng, granules) * GRANULE_BYTES);
		ssize_t done = pread(target->fd, buffer, GRANULE_BYTES, offset);

		if (done != (ssize_t)GRANULE_BYTES) {
			reads = done < 0 ? -errno : -EIO;
			break;
		}
		microseconds[reads++] = (double)(clock_ns() - begin_ns) / 1000;
		usleep(READ_PAUSE_US);
	}
	munmap(buffer, BENCH_FOLIO_BYTES);
	return reads;
}

static void sum_up(double *microseconds, long reads, struct bench_latency *ret_latency)
{
	qsort(microseconds, (size_t)reads, sizeof(*microseconds), compare_doubles);
	ret_latency->reads = (uint64_t)reads;
	ret_latency->p50_us = microseconds[reads / 2];
	ret_latency->p99_us = microseconds[reads * 99 / 100];
	ret_latency->max_us = microseconds[reads - 1];
}

int bench_latency(const struct bench_target *target, double seconds, bool writes_beside, uint64_t version,
	struct bench_latency *ret_latency)
{
	CLEANUP(free) double *microseconds = malloc(READS_MAX * sizeof(*microseconds));
	struct bench_latency latency = {0};
	_Atomic bool stop = false;
	struct stream writer = {.target = target,
		.direction = BENCH_WRITE,
		.first_folio = target->folios / 2,
		.end_folio = target->folios,
		.version = version,
		.cpu = 0,
		.stop = &stop};
	pthread_barrier_t start;
	uint64_t begin_ns, end_ns;
	int result = 0;
	long reads;

	if (!microseconds)
		return -ENOMEM;
	if (!writes_beside) {
		reads = read_granules(target, seconds, microseconds);
	} else {
		streams_start(&writer, 1, &start);
		pthread_barrier_wait(&start);
		begin_ns = clock_ns();
		reads = read_granules(target, seconds, microseconds);
		atomic_store(&stop, true);
		result = streams_join(&writer, 1, &end_ns);
		latency.written_mib_s = (double)writer.bytes / (double)MIB / ((double)(end_ns - begin_ns) / 1e9);
		pthread_barrier_destroy(&start);
	}
	if (reads <= 0)
		return reads < 0 ? (int)reads : -ETIME;
	sum_up(microseconds, reads, &latency);
	*ret_latency = latency;
	return result;
}
