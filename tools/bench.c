// SPDX-License-Identifier: GPL-2.0-or-later
/* Corpus, store, medians and report of bench_store. */
#include "bench.h"
#include "imagefile.h"
#include "load_generate.h"

#include <errno.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

static void cpu_model(char *text, size_t bytes)
{
	char line[256];
	FILE *file = fopen("/proc/cpuinfo", "re");

	snprintf(text, bytes, "unknown");
	while (file && fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) == 0 && colon) {
			snprintf(text, bytes, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
			break;
		}
	}
	if (file)
		fclose(file);
}

void bench_begin(struct bench *bench)
{
	struct utsname system;
	char cpu[128];

	uname(&system);
	cpu_model(cpu, sizeof(cpu));
	bench->first_field = false;
	if (bench->json)
		printf("{\"version\": \"%s\", \"cpu_model\": \"%s\", \"cpus\": %ld, \"kernel\": \"%s\", "
		       "\"zstd\": \"%s\", \"lz4\": \"%s\", \"corpus\": \"synthetic, seed 1\", \"rounds\": %ld",
			FOLIOSWAP_VERSION, cpu, sysconf(_SC_NPROCESSORS_ONLN), system.release, ZSTD_versionString(),
			LZ4_versionString(), bench->rounds);
	else
		printf("bench_store %s on %s, %ld CPUs, Linux %s, zstd %s, lz4 %s; synthetic heaps, seed 1; %ld rounds%s\n",
			FOLIOSWAP_VERSION, cpu, sysconf(_SC_NPROCESSORS_ONLN), system.release, ZSTD_versionString(),
			LZ4_versionString(), bench->rounds, bench->quick ? "; quick: figures mean nothing" : "");
}

void bench_end(struct bench *bench)
{
	if (bench->json)
		printf("}\n");
}

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

struct spread spread_of(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare_doubles);
	return (struct spread){values[count / 2], values[0], values[count - 1]};
}

void report_title(const struct bench *bench, const char *title)
{
	if (!bench->json)
		printf("\n%-44s %10s %10s %10s  %-6s %s\n", title, "median", "min", "max", "", "bar");
}

void report(struct bench *bench, const char *name, const char *text, struct spread value, const char *unit,
	const char *bar)
{
	if (bench->json)
		printf(", \"%s\": %.4f", name, value.median);
	else
		printf("%-44s %10.3f %10.3f %10.3f  %-6s %s\n", text, value.median, value.least, value.most, unit, bar);
	fflush(stdout);
}

uint8_t *corpus_create(size_t folios)
{
	uint8_t *corpus = aligned_alloc(FOLIO_BYTES, folios * FOLIO_BYTES);
	int result = corpus ? 0 : -ENOMEM;

	for (size_t i = 0; i < folios && result == 0; i++)
		result = load_generate_synthetic(1, i, corpus + i * FOLIO_BYTES);
	if (result == 0)
		return corpus;
	fprintf(stderr, "bench_store: a corpus of %zu MiB: %s\n", folios * 2, strerror(-result));
	free(corpus);
	return NULL;
}

struct store_config bench_store_defaults(uint64_t size_bytes)
{
	return (struct store_config){
		.size_bytes = size_bytes,
		.max_size_bytes = size_bytes,
		.limit_bytes = UINT64_MAX,
		.reserve_bytes = 16 * MIB,
		.unit_bytes = FOLIO_BYTES,
		.frame_bytes = 64 * KIB,
		.codec = CODEC_LZ4,
		.level = 1,
		.slots = 4,
		.io_threads = 2,
		.compress_threads = 2,
	};
}

int bench_store_open(struct bench_store *bench_store, const struct store_config *config)
{
	bool swappable;
	int result;

	/* As the daemon makes it: on huge pages where the machine has them. */
	bench_store->fd = imagefile_create(&swappable);
	result = bench_store->fd < 0 ? bench_store->fd : store_format(bench_store->fd, config);
	if (result == 0)
		result = store_open(&bench_store->store, bench_store->fd);
	if (result < 0) {
		fprintf(stderr, "bench_store: a store of %llu MiB: %s\n",
			(unsigned long long)(config->size_bytes / MIB), strerror(-result));
		if (bench_store->fd >= 0)
			close(bench_store->fd);
		return result;
	}
	bench_store->io = store_io(bench_store->store, 0);
	bench_store->granules_per_unit = (uint32_t)(config->unit_bytes / GRANULE_BYTES);
	return 0;
}

void bench_store_close(struct bench_store *bench_store)
{
	store_close(bench_store->store);
	close(bench_store->fd);
}

double thread_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

uint64_t bench_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}
