// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * storm_check PROCESSES MIB SECONDS: each process has so much memory, touches
 * it page by page at random, compares what it finds with what it wrote last,
 * and writes anew; more than the machine has, so that it swaps as a whole.
 * Prints how much was verified and the longest that one access took. Exit
 * status: 0 all right, 1 wrong bytes or a process that died (said).
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES 4096
#define PROCESSES_MAX 16

/* One process's result, in memory that all share. */
struct result {
	uint64_t accesses;
	uint64_t worst_ns;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A third of the words does not compress. */
static void fill(uint64_t *words, uint64_t page, uint64_t number)
{
	uint64_t state = (page + 1) * 0x9e3779b97f4a7c15 ^ number;

	for (unsigned i = 0; i < PAGE_BYTES / sizeof(*words); i++)
		words[i] = i % 3 == 0 ? next_random(&state) : i % 3 == 1 ? page : number;
}

static int verify(const uint64_t *words, uint64_t page, uint64_t number)
{
	uint64_t expected[PAGE_BYTES / sizeof(uint64_t)];

	fill(expected, page, number);
	return memcmp(words, expected, PAGE_BYTES);
}

/* Says where before it dies: an access that the kernel could not serve, or a pointer that was itself swapped wrongly. */
static void say_fault(int number, siginfo_t *info, void *context)
{
	(void)context;
	printf("signal %d, code %d, at %p\n", number, info->si_code, info->si_addr);
	fflush(stdout);
	signal(number, SIG_DFL);
}

static void catch_faults(void)
{
	const struct sigaction action = {.sa_sigaction = say_fault, .sa_flags = SA_SIGINFO};

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

static int run(unsigned index, uint64_t pages, uint64_t until_ns, struct result *result)
{
	uint64_t *memory = mmap(NULL, pages * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *number = calloc(pages, sizeof(*number));
	uint64_t state = index + 1;

	if (memory == MAP_FAILED || !number)
		return 2;
	catch_faults();
	printf("process %u: memory at %p, numbers at %p\n", index, (void *)memory, (void *)number);
	fflush(stdout);
	while (now_ns() < until_ns) {
		uint64_t page = next_random(&state) % pages, begin_ns = now_ns(), took_ns;
		uint64_t *words = memory + page * (PAGE_BYTES / sizeof(*memory));

		if (number[page] && verify(words, page, number[page]) != 0) {
			printf("process %u: page %llu is wrong\n", index, (unsigned long long)page);
			return 1;
		}
		fill(words, page, ++number[page]);
		took_ns = now_ns() - begin_ns;
		result->accesses++;
		if (took_ns > result->worst_ns)
			result->worst_ns = took_ns;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned processes = argc == 4 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	struct result *results = mmap(NULL, PROCESSES_MAX * sizeof(*results), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t accesses = 0, worst_ns = 0, until_ns;
	int bad = 0;

	if (processes < 1 || processes > PROCESSES_MAX || results == MAP_FAILED) {
		fprintf(stderr, "usage: storm_check PROCESSES MIB SECONDS\n");
		return 3;
	}
	until_ns = now_ns() + strtoull(argv[3], NULL, 10) * 1000000000;
	for (unsigned i = 0; i < processes; i++)
		if (fork() == 0)
			_exit(run(i, strtoull(argv[2], NULL, 10) * 256, until_ns, &results[i]));
	for (unsigned i = 0; i < processes; i++) {
		int status;

		wait(&status);
		if (WIFSIGNALED(status))
			printf("a process died of signal %d\n", WTERMSIG(status));
		bad |= status != 0;
	}
	for (unsigned i = 0; i < processes; i++) {
		accesses += results[i].accesses;
		worst_ns = results[i].worst_ns > worst_ns ? results[i].worst_ns : worst_ns;
	}
	printf("%llu accesses, the slowest %.3f s\n", (unsigned long long)accesses, (double)worst_ns / 1e9);
	return bad;
}
