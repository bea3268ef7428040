/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The result of a run on standard output: an aligned block of text, or one JSON object. */
#ifndef LOAD_REPORT_H
#define LOAD_REPORT_H

#include <stdio.h>

#include "load_run.h"

/* Sums over a run; the two writers show nothing else. */
struct load_totals {
	double out_mb_s; /* 0: no such phase */
	double in_mb_s;
	struct load_effort effort; /* its times and bytes are not used */
	uint64_t verified_bytes;
	uint64_t mismatched_bytes;
	const struct load_mismatch *first_mismatch; /* NULL: none */
	struct load_counters changes;
	struct load_mix mix; /* its fault_ns is not used */
	double operations_s;
	double fault_p50_us;
	double fault_p99_us;
	double fault_max_us; /* of the sample */
};

/* error: what ended the run early, 0: it went to its end. Returns 0 or -ENOMEM. */
int load_report(const struct load_run *run, int error, FILE *to);

void load_report_text(const struct load_run *run, const struct load_totals *totals, int error, FILE *to);
void load_report_json(const struct load_run *run, const struct load_totals *totals, int error, FILE *to);

/* Names shared by both. */
const char *load_thp_name(enum load_thp thp);
bool load_thp_was_available(const struct load_options *options);
double load_mb_s(uint64_t bytes, double seconds);

#endif
