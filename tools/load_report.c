// SPDX-License-Identifier: GPL-2.0-or-later
/* Sums of a run, for whichever form the report has. */
#include "load_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "load_thp.h"
#include "load_workload.h"

const char *load_thp_name(enum load_thp thp)
{
	switch (thp) {
	case LOAD_THP_ON:
		return "on";
	case LOAD_THP_OFF:
		return "off";
	default:
		return "system";
	}
}

bool load_thp_was_available(const struct load_options *options)
{
	return options->thp != LOAD_THP_OFF &&
	       load_thp_is_available("", options->workload->shares_memory, options->thp == LOAD_THP_ON);
}

double load_mb_s(uint64_t bytes, double seconds)
{
	return seconds > 0 ? (double)bytes / 1e6 / seconds : 0;
}

static double rate_of(const struct load_run *run, enum load_direction direction)
{
	uint64_t bytes = 0;
	double seconds = 0;

	for (unsigned i = 0; i < run->pass_count; i++) {
		if (run->passes[i].direction != direction)
			continue;
		bytes += run->passes[i].effort.bytes;
		seconds += run->passes[i].seconds;
	}
	return load_mb_s(bytes, seconds);
}

static void sum_passes(const struct load_run *run, struct load_totals *totals)
{
	const struct load_effort *effort;
	double random_s = 0;

	for (unsigned i = 0; i < run->pass_count; i++) {
		effort = &run->passes[i].effort;
		totals->effort.major_faults += effort->major_faults;
		totals->effort.minor_faults += effort->minor_faults;
		totals->effort.user_us += effort->user_us;
		totals->effort.system_us += effort->system_us;
		if (strcmp(run->passes[i].phase, "random") == 0)
			random_s += run->passes[i].seconds;
	}
	if (random_s > 0)
		totals->operations_s =
			(double)(totals->mix.reads + totals->mix.writes + totals->mix.frees + totals->mix.refills) /
			random_s;
}

static void sum_workers(const struct load_run *run, struct load_totals *totals)
{
	const struct load_worker *worker;

	for (unsigned i = 0; i < run->started; i++) {
		worker = &run->workers[i];
		totals->verified_bytes += worker->verified_bytes;
		totals->mismatched_bytes += worker->mismatched_bytes;
		if (worker->mismatched_bytes && !totals->first_mismatch)
			totals->first_mismatch = &worker->first_mismatch;
		totals->mix.reads += worker->mix.reads;
		totals->mix.writes += worker->mix.writes;
		totals->mix.frees += worker->mix.frees;
		totals->mix.refills += worker->mix.refills;
		totals->mix.faults += worker->mix.faults;
	}
}

static int compare_ns(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

/* All workers' samples as one; workers that do the same have about the same number of faults. */
static int sum_latencies(const struct load_run *run, struct load_totals *totals)
{
	CLEANUP(free) uint32_t *samples = calloc((size_t)run->started * LOAD_LATENCY_SAMPLES + 1, sizeof(*samples));
	size_t count = 0, own;

	if (!samples)
		return -ENOMEM;
	for (unsigned i = 0; i < run->started; i++) {
		own = run->workers[i].mix.faults < LOAD_LATENCY_SAMPLES ? run->workers[i].mix.faults
									: LOAD_LATENCY_SAMPLES;
		memcpy(samples + count, run->workers[i].mix.fault_ns, own * sizeof(*samples));
		count += own;
	}
	if (!count)
		return 0;
	qsort(samples, count, sizeof(*samples), compare_ns);
	totals->fault_p50_us = samples[(count - 1) / 2] / 1e3;
	totals->fault_p99_us = samples[(count - 1) * 99 / 100] / 1e3;
	totals->fault_max_us = samples[count - 1] / 1e3;
	return 0;
}

static struct load_counters counters_since(const struct load_counters *before, const struct load_counters *after)
{
	return (struct load_counters){
		.thp_fault_alloc = after->thp_fault_alloc - before->thp_fault_alloc,
		.thp_swpout = after->thp_swpout - before->thp_swpout,
		.thp_swpout_fallback = after->thp_swpout_fallback - before->thp_swpout_fallback,
		.pswpin = after->pswpin - before->pswpin,
		.pswpout = after->pswpout - before->pswpout,
	};
}

int load_report(const struct load_run *run, int error, FILE *to)
{
	CLEANUP(free) struct load_totals *totals = calloc(1, sizeof(*totals));

	if (!totals || sum_latencies(run, totals) < 0)
		return -ENOMEM;
	sum_workers(run, totals);
	sum_passes(run, totals);
	totals->out_mb_s = rate_of(run, LOAD_OUT);
	totals->in_mb_s = rate_of(run, LOAD_IN);
	totals->changes = counters_since(&run->before, &run->after);
	if (run->options->json)
		load_report_json(run, totals, error, to);
	else
		load_report_text(run, totals, error, to);
	return 0;
}
