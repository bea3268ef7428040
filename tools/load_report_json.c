// SPDX-License-Identifier: GPL-2.0-or-later
/* The report for programs: names are stable, strings come from tables or are numbers' digits. */
#include <inttypes.h>

#include "load_heap.h"
#include "load_report.h"

static void put_u64(FILE *to, const char *name, uint64_t value)
{
	fprintf(to, ",\n  \"%s\": %" PRIu64, name, value);
}

static void put_double(FILE *to, const char *name, double value, bool known)
{
	if (known)
		fprintf(to, ",\n  \"%s\": %.6f", name, value);
	else
		fprintf(to, ",\n  \"%s\": null", name);
}

static void put_head(FILE *to, const struct load_run *run)
{
	const struct load_options *options = run->options;

	fprintf(to, "{\n  \"workload\": \"%s\",\n  \"content\": \"%s\"", options->workload->name,
		options->content->name);
	fprintf(to, ",\n  \"heap_sources\": \"%s\"", options->content->is_private ? load_heap_sources() : "");
	fprintf(to, ",\n  \"thp\": \"%s\",\n  \"thp_available\": %s", load_thp_name(options->thp),
		load_thp_was_available(options) ? "true" : "false");
	put_u64(to, "seed", options->seed);
	put_u64(to, "workers", options->workers);
	put_u64(to, "size_bytes", run->workers[0].region_bytes * options->workers);
	put_u64(to, "limit_bytes", options->limit_bytes);
	put_u64(to, "pool_bytes", run->content.pool_folios * LOAD_FOLIO_BYTES);
}

static void put_passes(FILE *to, const struct load_run *run)
{
	const struct load_pass *pass;

	fprintf(to, ",\n  \"passes\": [");
	for (unsigned i = 0; i < run->pass_count; i++) {
		pass = &run->passes[i];
		fprintf(to,
			"%s\n    {\"pass\": %u, \"phase\": \"%s\", \"bytes\": %" PRIu64
			", \"mb_s\": %.3f, \"seconds\": %.6f, \"major_faults\": %" PRIu64 ", \"minor_faults\": %" PRIu64
			", \"user_s\": %.6f, \"sys_s\": %.6f}",
			i ? "," : "", pass->number, pass->phase, pass->effort.bytes,
			load_mb_s(pass->effort.bytes, pass->seconds), pass->seconds, pass->effort.major_faults,
			pass->effort.minor_faults, (double)pass->effort.user_us / 1e6,
			(double)pass->effort.system_us / 1e6);
	}
	fprintf(to, "%s]", run->pass_count ? "\n  " : "");
}

static void put_bytes(FILE *to, const char *name, const uint8_t *bytes, bool shown)
{
	if (!shown) {
		fprintf(to, ", \"%s\": null", name);
		return;
	}
	fprintf(to, ", \"%s\": \"", name);
	for (unsigned i = 0; i < LOAD_MISMATCH_BYTES; i++)
		fprintf(to, "%02x", bytes[i]);
	fputc('"', to);
}

static void put_mismatch(FILE *to, const struct load_run *run, const struct load_mismatch *mismatch)
{
	bool shown = !run->options->content->is_private;

	if (!mismatch) {
		fprintf(to, ",\n  \"first_mismatch\": null");
		return;
	}
	fprintf(to,
		",\n  \"first_mismatch\": {\"address\": \"0x%" PRIx64 "\", \"worker\": %u, \"page\": %" PRIu64
		", \"version\": %u, \"offset\": %u, \"bytes\": %u, \"all_zero\": %s",
		mismatch->address, mismatch->id.region, mismatch->id.page, mismatch->id.version, mismatch->offset,
		mismatch->bytes, mismatch->all_zero ? "true" : "false");
	if (shown)
		fprintf(to, ", \"found_stamp\": \"0x%016" PRIx64 "\"", mismatch->found_stamp);
	else
		fprintf(to, ", \"found_stamp\": null");
	put_bytes(to, "expected", mismatch->expected, shown);
	put_bytes(to, "found", mismatch->found, shown);
	fputc('}', to);
}

static void put_mix(FILE *to, const struct load_totals *totals)
{
	const struct load_mix *mix = &totals->mix;

	if (!mix->reads)
		return;
	put_double(to, "ops_s", totals->operations_s, true);
	put_u64(to, "reads", mix->reads);
	put_u64(to, "rewrites", mix->writes);
	put_u64(to, "frees", mix->frees);
	put_u64(to, "refills", mix->refills);
	put_u64(to, "read_major_faults", mix->faults);
	put_double(to, "fault_p50_us", totals->fault_p50_us, mix->faults);
	put_double(to, "fault_p99_us", totals->fault_p99_us, mix->faults);
	put_double(to, "fault_max_us", totals->fault_max_us, mix->faults);
}

void load_report_json(const struct load_run *run, const struct load_totals *totals, int error, FILE *to)
{
	put_head(to, run);
	put_passes(to, run);
	put_double(to, "out_mb_s", totals->out_mb_s, totals->out_mb_s > 0);
	put_double(to, "in_mb_s", totals->in_mb_s, totals->in_mb_s > 0);
	put_u64(to, "verified_bytes", totals->verified_bytes);
	put_u64(to, "mismatched_bytes", totals->mismatched_bytes);
	put_mismatch(to, run, totals->first_mismatch);
	put_mix(to, totals);
	put_u64(to, "major_faults", totals->effort.major_faults);
	put_u64(to, "minor_faults", totals->effort.minor_faults);
	put_u64(to, "thp_fault_alloc", totals->changes.thp_fault_alloc);
	put_u64(to, "thp_swpout", totals->changes.thp_swpout);
	put_u64(to, "thp_swpout_fallback", totals->changes.thp_swpout_fallback);
	put_u64(to, "pswpin", totals->changes.pswpin);
	put_u64(to, "pswpout", totals->changes.pswpout);
	put_double(to, "user_s", (double)totals->effort.user_us / 1e6, true);
	put_double(to, "sys_s", (double)totals->effort.system_us / 1e6, true);
	put_double(to, "free_s", run->free_s, run->free_s >= 0);
	put_u64(to, "swap_peak_kib", run->swap_peak_bytes / KIB);
	put_u64(to, "swap_held_kib", run->held_swap_bytes / KIB);
	fprintf(to, ",\n  \"finished\": %s\n}\n", error ? "false" : "true");
}
