/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line of swapload. */
#ifndef LOAD_OPTIONS_H
#define LOAD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "load_content.h"

#define LOAD_WORKERS_MAX 64
#define LOAD_PASSES_MAX 1000

struct load_workload;

enum load_thp {
	LOAD_THP_SYSTEM, /* as /sys/kernel/mm/transparent_hugepage says */
	LOAD_THP_ON,
	LOAD_THP_OFF,
};

struct load_options {
	const struct load_workload *workload;
	const struct load_content_kind *content;
	uint64_t size_bytes;  /* all workers together; whole folios for each of them */
	uint64_t limit_bytes; /* 0: none, the caller's cgroup */
	uint64_t pool_bytes;
	uint64_t seed;
	unsigned passes;
	unsigned workers;
	enum load_thp thp;
	unsigned duration_s;
	uint64_t operations; /* of all workers together; 0: by duration */
	unsigned hold_s;
	const char *hold_command;
	const char *cgroup_name;
	bool json;
};

enum {
	LOAD_EXIT_RIGHT = 0,
	LOAD_EXIT_FAILED = 1, /* a byte was wrong, a worker died, or the run could not be made */
	LOAD_EXIT_USAGE = 2,
};

/*
 * Returns -1: options are filled, run; else the code to exit with (help and
 * version print to stdout, errors one line to stderr).
 */
int load_options_parse(int argc, char **argv, struct load_options *ret_options);

#endif
