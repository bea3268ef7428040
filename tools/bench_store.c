// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bench_store: what the store costs beside the bare codec, in one run, and
 * what it keeps of the memory it is given. Single figures mean little on a
 * shared machine: both sides are timed in turns, and the median of the ratios
 * of neighbouring turns is printed with their spread.
 */
#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct bench_part parts[] = {
	{"codec", "whole folios in and out, one 4 KiB out of a folio, against the bare codec", bench_codec},
	{"ack", "acknowledging 4 KiB writes to an open slot", bench_ack},
	{"mixed", "4 KiB reads while 2 MiB writes run", bench_mixed},
	{"memory", "metadata, ready room after churn and after compact, memory given back", bench_memory},
	{"recover", "opening an image of whole folios, and one of single granules", bench_recover},
};

#define PARTS (sizeof(parts) / sizeof(parts[0]))

static void usage(FILE *out)
{
	fprintf(out, "usage: bench_store [--json] [--rounds N] [--quick] [PART...]\n\n");
	for (size_t i = 0; i < PARTS; i++)
		fprintf(out, "  %-10s %s\n", parts[i].name, parts[i].summary);
	fprintf(out, "\n  --json     one JSON object on standard output\n"
		     "  --rounds N turns of each comparison (default 7)\n"
		     "  --quick    small sets: shows that it runs, not what it measures\n"
		     "  --help\n");
}

static const struct bench_part *find_part(const char *name)
{
	for (size_t i = 0; i < PARTS; i++) {
		if (strcmp(parts[i].name, name) == 0)
			return &parts[i];
	}
	return NULL;
}

static int parse_arguments(int argc, char **argv, struct bench *bench)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"rounds", required_argument, NULL, 'r'},
		{"quick", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == 'h') {
			usage(stdout);
			exit(0);
		} else if (option == 'j') {
			bench->json = true;
		} else if (option == 'q') {
			bench->quick = true;
		} else if (option != 'r' || parse_int(optarg, 1, BENCH_ROUNDS_MAX, &bench->rounds) < 0) {
			if (option == 'r')
				fprintf(stderr, "bench_store: --rounds %s: a number from 1 to %d is needed\n", optarg,
					BENCH_ROUNDS_MAX);
			return -EINVAL;
		}
	}
	for (int i = optind; i < argc; i++) {
		if (!find_part(argv[i])) {
			fprintf(stderr, "bench_store: no part called %s (see --help)\n", argv[i]);
			return -EINVAL;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct bench bench = {.rounds = 7};
	int result = 0;

	if (parse_arguments(argc, argv, &bench) < 0)
		return 2;
	bench_begin(&bench);
	if (optind == argc) {
		for (size_t i = 0; i < PARTS && result == 0; i++)
			result = parts[i].run(&bench);
	}
	for (int i = optind; i < argc && result == 0; i++)
		result = find_part(argv[i])->run(&bench);
	if (result == 0)
		bench_end(&bench);
	return result < 0 ? 1 : 0;
}
