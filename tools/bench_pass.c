// SPDX-License-Identifier: GPL-2.0-or-later
/* Processes that wait for each other, then send requests; the clock and the CPU time around them. */
#include "bench_pass.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
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
	enum bench_direction direction;
	uint64_t first_folio, end_folio;
	uint64_t version;
	unsigned cpu; /* the how manieth of those that we may use */
	bool endless; /* again and again, until it is told to stop; else once from one end to the other */
	uint64_t bytes;
	uint64_t end_ns;
	int result;
	pid_t pid;
};

/* Streams are processes: in uml two threads of one never run at once, and the one that waits burns a CPU over it. */
struct team {
	pthread_barrier_t ready, start;
	_Atomic bool stop;
	const struct bench_target *target;
	unsigned count;
	struct stream streams[BENCH_STREAMS_MAX];
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

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return;
	count = CPU_COUNT(&allowed);
	index %= (unsigned)count;
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || index-- > 0)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
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

static uint8_t *buffer_map(void)
{
	uint8_t *buffer = mmap(
		NULL, BENCH_FOLIO_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return buffer == MAP_FAILED ? NULL : buffer;
}

static bool is_over(const struct team *team, const struct stream *stream, uint64_t folio)
{
	return stream->endless ? atomic_load(&team->stop) : folio == stream->end_folio;
}

static void stream_run(struct team *team, struct stream *stream)
{
	const struct bench_target *target = team->target;
	uint64_t folio = stream->first_folio;
	uint8_t *buffer = buffer_map();

	pin(stream->cpu);
	/* A child has yet to find the pages of shared memory: not while the clock runs. Older kernels do it then. */
	if (stream->direction == BENCH_WRITE)
		madvise((void *)(uintptr_t)target->pool, target->pool_folios * BENCH_FOLIO_BYTES, MADV_POPULATE_READ);
	stream->result = buffer ? 0 : -ENOMEM;
	pthread_barrier_wait(&team->ready);
	pthread_barrier_wait(&team->start);
	while (stream->result == 0 && !is_over(team, stream, folio)) {
		if (folio == stream->end_folio) {
			folio = stream->first_folio;
			stream->version++;
		}
		stream->result = request(target, stream->direction, folio++, stream->version, buffer);
		stream->bytes += BENCH_FOLIO_BYTES;
	}
	stream->end_ns = clock_ns();
}

/* NULL: no memory. */
static struct team *team_create(const struct bench_target *target, unsigned count)
{
	struct team *team =
		mmap(NULL, sizeof(*team), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	pthread_barrierattr_t shared;

	if (team == MAP_FAILED)
		return NULL;
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&team->ready, &shared, count + 1);
	pthread_barrier_init(&team->start, &shared, count + 1);
	team->target = target;
	team->count = count;
	return team;
}

static void team_destroy(struct team *team)
{
	munmap(team, sizeof(*team));
}

/* Returns when each of them waits for team_start. */
static void team_gather(struct team *team)
{
	for (unsigned i = 0; i < team->count; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			stream_run(team, &team->streams[i]);
			_exit(0);
		}
		if (pid < 0) {
			/* Some may wait for the others, who will never come: they end with us. */
			fprintf(stderr, "bench_device: cannot start a process: %s\n", strerror(errno));
			exit(1);
		}
		team->streams[i].pid = pid; /* not straight from fork: the memory is the child's, too */
	}
	pthread_barrier_wait(&team->ready);
}

static void team_start(struct team *team)
{
	pthread_barrier_wait(&team->start);
}

static int team_wait(struct team *team, uint64_t *ret_end_ns)
{
	int result = 0, status;

	*ret_end_ns = 0;
	for (unsigned i = 0; i < team->count; i++) {
		const struct stream *stream = &team->streams[i];

		if (waitpid(stream->pid, &status, 0) != stream->pid || status != 0)
			result = -ECHILD;
		if (stream->end_ns > *ret_end_ns)
			*ret_end_ns = stream->end_ns;
		if (result == 0)
			result = stream->result;
	}
	return result;
}

int bench_pass(const struct bench_target *target, enum bench_direction direction, unsigned streams, uint64_t version,
	struct bench_cost *ret_cost)
{
	struct team *team = team_create(target, streams);
	uint64_t begin_ns, end_ns;
	double busy_before;
	int result;

	if (!team)
		return -ENOMEM;
	for (unsigned i = 0; i < streams; i++)
		team->streams[i] = (struct stream){
			.direction = direction,
			.first_folio = target->folios * i / streams,
			.end_folio = target->folios * (i + 1) / streams,
			.version = version,
			.cpu = i,
		};
	team_gather(team);
	busy_before = busy_seconds();
	begin_ns = clock_ns();
	team_start(team);
	result = team_wait(team, &end_ns);
	usleep(SETTLE_US);
	*ret_cost = (struct bench_cost){
		.bytes = target->folios * BENCH_FOLIO_BYTES,
		.seconds = (double)(end_ns - begin_ns) / 1e9,
		.cpu_seconds = busy_seconds() - busy_before,
	};
	team_destroy(team);
	return result;
}

int bench_verify(const struct bench_target *target, uint64_t version, uint64_t *ret_wrong_bytes)
{
	uint8_t *buffer = buffer_map();
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
	uint8_t *buffer = buffer_map();
	cpu_set_t before; /* the writer beside it is on the first */
	long reads = 0;

	if (!buffer)
		return -ENOMEM;
	sched_getaffinity(0, sizeof(before), &before);
	pin(1);
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
	sched_setaffinity(0, sizeof(before), &before);
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
	uint64_t begin_ns, end_ns;
	struct team *team;
	int result = 0;
	long reads;

	if (!microseconds)
		return -ENOMEM;
	if (!writes_beside) {
		reads = read_granules(target, seconds, microseconds);
	} else {
		team = team_create(target, 1);
		if (!team)
			return -ENOMEM;
		team->streams[0] = (struct stream){.direction = BENCH_WRITE,
			.first_folio = target->folios / 2,
			.end_folio = target->folios,
			.version = version,
			.endless = true};
		team_gather(team);
		begin_ns = clock_ns();
		team_start(team);
		reads = read_granules(target, seconds, microseconds);
		atomic_store(&team->stop, true);
		result = team_wait(team, &end_ns);
		latency.written_mib_s =
			(double)team->streams[0].bytes / (double)MIB / ((double)(end_ns - begin_ns) / 1e9);
		team_destroy(team);
	}
	if (reads <= 0)
		return reads < 0 ? (int)reads : -ETIME;
	sum_up(microseconds, reads, &latency);
	*ret_latency = latency;
	return result;
}
