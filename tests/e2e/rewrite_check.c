// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rewrite_check DEVICE SECONDS: threads write a few granules of their own over
 * and over and read each back at once, with O_DIRECT. A write that is executed
 * a second time after a later one, or not at all, is seen at once. Exit status:
 * 0 all right (SIGTERM ends it early), 1 wrong bytes (said), 2 an I/O error (said). The longest that a
 * thread had to wait for one request is printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS 3 /* few: each comes back to its granules while a slow request is still in execution */
#define GRANULES 2 /* of each thread */
#define GRANULE_BYTES 4096

static _Atomic int result;
static _Atomic bool stop;
static int fd;

struct writer {
	pthread_t thread;
	uint64_t index;
	uint64_t requests;
	uint64_t worst_ns;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Words that name the granule and the write; half of them do not compress. */
static void fill(uint64_t *words, uint64_t granule, uint64_t number)
{
	uint64_t random = (granule << 32 | number) * 0x9e3779b97f4a7c15 | 1;

	for (unsigned i = 0; i < GRANULE_BYTES / sizeof(*words); i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		words[i] = i % 8 == 0 ? number : i % 2 ? granule : random;
	}
}

static void fail(int code, const char *what, uint64_t granule, uint64_t number, uint64_t found)
{
	int none = 0;

	if (atomic_compare_exchange_strong(&result, &none, code))
		printf("%s: granule %llu, write %llu, found %llu (%s)\n", what, (unsigned long long)granule,
			(unsigned long long)number, (unsigned long long)found, strerror(errno));
	stop = true;
}

static void note_wait(struct writer *writer, uint64_t begin_ns)
{
	uint64_t took_ns = now_ns() - begin_ns;

	writer->requests++;
	if (took_ns > writer->worst_ns)
		writer->worst_ns = took_ns;
}

static void check(struct writer *writer, uint64_t *got, uint64_t *expected, uint64_t granule, uint64_t number)
{
	uint64_t begin_ns = now_ns();

	if (pread(fd, got, GRANULE_BYTES, (off_t)(granule * GRANULE_BYTES)) != GRANULE_BYTES)
		fail(2, "read", granule, number, 0);
	note_wait(writer, begin_ns);
	fill(expected, granule, number);
	if (!stop && memcmp(expected, got, GRANULE_BYTES) != 0)
		fail(1, "wrong bytes", granule, number, got[0]);
}

static void *writer_main(void *argument)
{
	struct writer *writer = argument;
	uint64_t *plain = aligned_alloc(GRANULE_BYTES, GRANULE_BYTES), *got = aligned_alloc(GRANULE_BYTES, GRANULE_BYTES);
	uint64_t last[GRANULES] = {0};

	for (uint64_t number = 1; plain && got && !stop; number++) {
		/* Neighbours belong to different threads, so that they share units, slots and objects. */
		uint64_t own = number % GRANULES, granule = own * THREADS + writer->index, begin_ns = now_ns();

		fill(plain, granule, number);
		if (pwrite(fd, plain, GRANULE_BYTES, (off_t)(granule * GRANULE_BYTES)) != GRANULE_BYTES)
			fail(2, "write", granule, number, 0);
		note_wait(writer, begin_ns);
		last[own] = number;
		for (unsigned i = 0; i < GRANULES && !stop; i++)
			if (last[i])
				check(writer, got, plain, i * THREADS + writer->index, last[i]);
	}
	free(plain);
	free(got);
	return NULL;
}

static void on_signal(int number)
{
	(void)number;
	stop = true;
}

int main(int argc, char **argv)
{
	static struct writer writers[THREADS];
	uint64_t requests = 0, worst_ns = 0, end_ns;

	if (argc != 3) {
		fprintf(stderr, "usage: rewrite_check DEVICE SECONDS\n");
		return 3;
	}
	fd = open(argv[1], O_RDWR | O_DIRECT);
	if (fd < 0) {
		perror(argv[1]);
		return 3;
	}
	signal(SIGTERM, on_signal);
	end_ns = now_ns() + strtoull(argv[2], NULL, 10) * 1000000000;
	for (unsigned i = 0; i < THREADS; i++) {
		writers[i].index = i;
		if (pthread_create(&writers[i].thread, NULL, writer_main, &writers[i]) != 0)
			return 3;
	}
	while (!stop && now_ns() < end_ns)
		usleep(10000);
	stop = true;
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(writers[i].thread, NULL);
		requests += writers[i].requests;
		worst_ns = writers[i].worst_ns > worst_ns ? writers[i].worst_ns : worst_ns;
	}
	printf("%llu requests, the slowest %.1f ms\n", (unsigned long long)requests, (double)worst_ns / 1e6);
	return result;
}
