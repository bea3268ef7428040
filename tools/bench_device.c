// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bench_device: passes over block devices with the memory of real programs, on
 * command, so that devices can take turns under one set of contents. Made for
 * tools/bench_zram, which starts it. Commands come as lines on standard input;
 * each gets one JSON object on a line of standard output.
 */
#include "bench_pass.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "load_content.h"
#include "load_heap.h"
#include "parse.h"

#define WORDS_MAX 4
#define LINE_BYTES 512
#define VERSION_MAX 1000000
#define POOL_MAX_BYTES (16 * GIB)

struct settings {
	const struct load_content_kind *kind;
	uint64_t pool_bytes;
};

struct command {
	const char *name;
	const char *arguments;
	const char *summary;
	unsigned words; /* with the name */
	int (*run)(const struct bench_target *target, char **words);
};

/* ---- commands: 0, or a negative errno after one line on stderr ---- */

static int wrong_word(const char *what, const char *word)
{
	fprintf(stderr, "bench_device: '%s' is no %s\n", word, what);
	return -EINVAL;
}

static int wrong_request(const char *name, const char *node, int result)
{
	fprintf(stderr, "bench_device: %s %s: %s\n", name, node, strerror(-result));
	return result;
}

static int parse_version(const char *word, uint64_t *ret_version)
{
	long version;

	if (parse_int(word, 0, VERSION_MAX, &version) < 0)
		return wrong_word("version (0 to 1000000)", word);
	*ret_version = (uint64_t)version;
	return 0;
}

static int run_pass(const struct bench_target *target, enum bench_direction direction, char **words, uint64_t version)
{
	struct bench_cost cost;
	long streams;
	int result;

	if (parse_int(words[2], 1, BENCH_STREAMS_MAX, &streams) < 0)
		return wrong_word("number of streams (1 to 64)", words[2]);
	result = bench_pass(target, direction, (unsigned)streams, version, &cost);
	if (result < 0)
		return wrong_request(words[0], words[1], result);
	printf("{\"bytes\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.2f}\n", (unsigned long long)cost.bytes,
		cost.seconds, cost.cpu_seconds);
	return 0;
}

static int run_write(const struct bench_target *target, char **words)
{
	uint64_t version;
	int result = parse_version(words[3], &version);

	return result < 0 ? result : run_pass(target, BENCH_WRITE, words, version);
}

static int run_read(const struct bench_target *target, char **words)
{
	return run_pass(target, BENCH_READ, words, 0);
}

static int run_verify(const struct bench_target *target, char **words)
{
	uint64_t version, wrong_bytes;
	int result = parse_version(words[2], &version);

	if (result < 0)
		return result;
	result = bench_verify(target, version, &wrong_bytes);
	if (result < 0)
		return wrong_request(words[0], words[1], result);
	printf("{\"bytes\": %llu, \"wrong_bytes\": %llu}\n", (unsigned long long)(target->folios * BENCH_FOLIO_BYTES),
		(unsigned long long)wrong_bytes);
	return 0;
}

static int run_latency(const struct bench_target *target, char **words, bool writes_beside)
{
	struct bench_latency latency;
	uint64_t version = 0;
	long milliseconds;
	int result = writes_beside ? parse_version(words[3], &version) : 0;

	if (result < 0)
		return result;
	if (parse_int(words[2], 1, 600000, &milliseconds) < 0)
		return wrong_word("number of milliseconds (1 to 600000)", words[2]);
	if (target->folios < 2)
		return wrong_word("device of at least 4 MiB", words[1]);
	result = bench_latency(target, (double)milliseconds / 1000, writes_beside, version, &latency);
	if (result < 0)
		return wrong_request(words[0], words[1], result);
	printf("{\"reads\": %llu, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f, \"written_mib_s\": %.1f}\n",
		(unsigned long long)latency.reads, latency.p50_us, latency.p99_us, latency.max_us,
		latency.written_mib_s);
	return 0;
}

static int run_idle(const struct bench_target *target, char **words)
{
	return run_latency(target, words, false);
}

static int run_beside(const struct bench_target *target, char **words)
{
	return run_latency(target, words, true);
}

static const struct command commands[] = {
	{"write", "NODE STREAMS VERSION", "a pass of 2 MiB writes", 4, run_write},
	{"read", "NODE STREAMS", "a pass of 2 MiB reads", 3, run_read},
	{"verify", "NODE VERSION", "reads all of it and compares", 3, run_verify},
	{"idle", "NODE MILLISECONDS", "random 4 KiB reads of the first half, one at a time", 3, run_idle},
	{"beside", "NODE MILLISECONDS VERSION", "the same while the second half is written, 2 MiB at a time", 4,
		run_beside},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* ---- lines ---- */

static int open_target(const char *node, const struct load_content *content, struct bench_target *ret_target)
{
	int fd = open(node, O_RDWR | O_DIRECT | O_CLOEXEC);
	off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);

	if (fd < 0 || end < 0) {
		fprintf(stderr, "bench_device: %s: %s\n", node, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	if ((uint64_t)end < BENCH_FOLIO_BYTES) {
		fprintf(stderr, "bench_device: %s is smaller than 2 MiB\n", node);
		close(fd);
		return -1;
	}
	*ret_target = (struct bench_target){
		.fd = fd,
		.folios = (uint64_t)end / BENCH_FOLIO_BYTES,
		.pool = content->pool,
		.pool_folios = content->pool_folios,
	};
	return 0;
}

static int run_words(char **words, unsigned count, const struct load_content *content)
{
	struct bench_target target;
	int result;

	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(words[0], commands[i].name) != 0)
			continue;
		if (count != commands[i].words) {
			fprintf(stderr, "bench_device: usage: %s %s\n", commands[i].name, commands[i].arguments);
			return -EINVAL;
		}
		if (open_target(words[1], content, &target) < 0)
			return -EINVAL;
		result = commands[i].run(&target, words);
		close(target.fd);
		return result;
	}
	return wrong_word("command", words[0]);
}

/* Ends at the first line that fails: whoever sends them waits for an answer to each. */
static int run_lines(const struct load_content *content)
{
	char line[LINE_BYTES], *words[WORDS_MAX], *rest, *word;
	unsigned count;

	while (fgets(line, sizeof(line), stdin)) {
		count = 0;
		for (word = strtok_r(line, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
			if (count < WORDS_MAX)
				words[count] = word;
			count++;
		}
		if (count == 0)
			continue;
		if (run_words(words, count, content) < 0)
			return 1;
		fflush(stdout);
	}
	return 0;
}

/* ---- options ---- */

static void usage(FILE *out)
{
	fprintf(out, "usage: bench_device [--pool SIZE] [--content KIND]\n\n"
		     "Does to block devices (all that is on them is lost) what lines of standard input say:\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-7s %-26s %s\n", commands[i].name, commands[i].arguments, commands[i].summary);
	fprintf(out, "\n  --pool SIZE     of the contents, a multiple of 2M (default 128M)\n"
		     "  --content KIND  heap (default): memory of real programs; or as for swapload\n"
		     "  --help\n");
}

static int parse_arguments(int argc, char **argv, struct settings *settings)
{
	static const struct option options[] = {
		{"pool", required_argument, NULL, 'p'},
		{"content", required_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'h') {
			usage(stdout);
			exit(0);
		} else if (option == 'p') {
			if (parse_size(optarg, &settings->pool_bytes) < 0 || settings->pool_bytes == 0 ||
				settings->pool_bytes % BENCH_FOLIO_BYTES || settings->pool_bytes > POOL_MAX_BYTES)
				return wrong_word("size of a pool, a multiple of 2M up to 16G", optarg);
		} else if (option == 'c') {
			settings->kind = load_content_kind_find(optarg);
			if (!settings->kind)
				return wrong_word("kind of contents", optarg);
		} else {
			return -EINVAL;
		}
	}
	return optind == argc ? 0 : wrong_word("option", argv[optind]);
}

int main(int argc, char **argv)
{
	struct settings settings = {.kind = &load_content_kinds[0], .pool_bytes = 128 * MIB};
	struct load_content content;
	int result = parse_arguments(argc, argv, &settings);

	if (result < 0)
		return 2;
	if (load_content_init(settings.kind, 1, settings.pool_bytes, &content) < 0)
		return 1;
	printf("{\"content\": \"%s\", \"sources\": \"%s\", \"pool_bytes\": %llu, \"lz4\": \"%s\", \"zstd\": \"%s\"}\n",
		settings.kind->name, load_heap_sources(), (unsigned long long)(content.pool_folios * BENCH_FOLIO_BYTES),
		LZ4_versionString(), ZSTD_versionString());
	fflush(stdout);
	result = run_lines(&content);
	load_content_deinit(&content);
	return result;
}
