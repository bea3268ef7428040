// SPDX-License-Identifier: GPL-2.0-or-later
/* The report for people. */
#include <inttypes.h>
#include <string.h>

#include "load_heap.h"
#include "load_report.h"
#include "parse.h"

#define SIZE_TEXT_BYTES 16

static void write_head(const struct load_run *run, FILE *to)
{
	const struct load_options *options = run->options;
	char size[SIZE_TEXT_BYTES], limit[SIZE_TEXT_BYTES], pool[SIZE_TEXT_BYTES];
	const char *sources = options->content->is_private ? load_heap_sources() : "";

	format_size(run->workers[0].region_bytes * options->workers, size, sizeof(size));
	format_size(options->limit_bytes, limit, sizeof(limit));
	format_size(run->content.pool_folios * LOAD_FOLIO_BYTES, pool, sizeof(pool));
	fprintf(to, "workload    %s, %u worker%s, THP %s", options->workload->name, options->workers,
		options->workers == 1 ? "" : "s", load_thp_name(options->thp));
	if (options->thp != LOAD_THP_OFF && !load_thp_was_available(options))
		fprintf(to, ", not available (transparent_hugepage/%s)",
			options->workload->shares_memory ? "shmem_enabled" : "enabled");
	fputc('\n', to);
	fprintf(to, "content     %s%s%s%s, pool %s, seed %" PRIu64 "\n", options->content->name, *sources ? " (" : "",
		sources, *sources ? ")" : "", pool, options->seed);
	fprintf(to, "size        %s, limit %s\n\n", size, options->limit_bytes ? limit : "none");
}

static void write_passes(const struct load_run *run, FILE *to)
{
	const struct load_pass *pass;

	fprintf(to, "%4s  %-8s %10s %10s %9s %12s %12s\n", "pass", "phase", "MiB", "MB/s", "seconds", "major faults",
		"minor faults");
	for (unsigned i = 0; i < run->pass_count; i++) {
		pass = &run->passes[i];
		fprintf(to, "%4u  %-8s %10.1f %10.1f %9.3f %12" PRIu64 " %12" PRIu64 "\n", pass->number, pass->phase,
			(double)pass->effort.bytes / (double)MIB, load_mb_s(pass->effort.bytes, pass->seconds),
			pass->seconds, pass->effort.major_faults, pass->effort.minor_faults);
	}
	fputc('\n', to);
}

static void write_mix(const struct load_totals *totals, FILE *to)
{
	const struct load_mix *mix = &totals->mix;

	if (!mix->reads)
		return;
	fprintf(to,
		"operations  %.0f/s: %" PRIu64 " reads, %" PRIu64 " rewrites, %" PRIu64 " frees of 64K, %" PRIu64
		" refills\n",
		totals->operations_s, mix->reads, mix->writes, mix->frees, mix->refills);
	fprintf(to, "major fault p50 %.1f us, p99 %.1f us, max %.1f us of %" PRIu64 " reads\n", totals->fault_p50_us,
		totals->fault_p99_us, totals->fault_max_us, mix->faults);
}

static void write_bytes(const char *label, const uint8_t *bytes, FILE *to)
{
	fprintf(to, "  %s", label);
	for (unsigned i = 0; i < LOAD_MISMATCH_BYTES; i++)
		fprintf(to, " %02x", bytes[i]);
	fputc('\n', to);
}

/* Where a wrong page seems to come from. */
static void write_origin(const struct load_run *run, const struct load_mismatch *mismatch, FILE *to)
{
	struct load_page_id id = load_stamp_parts(mismatch->found_stamp);

	if (mismatch->all_zero)
		fprintf(to, "  the whole page is zero\n");
	else if (run->options->content->has_stamp && id.region < run->options->workers && id.version &&
		 id.page < run->workers[0].region_bytes / LOAD_PAGE_BYTES)
		fprintf(to, "  the page found carries the stamp of worker %u, page %" PRIu64 ", version %u\n",
			id.region, id.page, id.version);
	else
		fprintf(to, "  the page found carries no stamp of this run\n");
}

static void write_mismatch(const struct load_run *run, const struct load_mismatch *mismatch, FILE *to)
{
	fprintf(to,
		"first mismatch: address 0x%" PRIx64 ", worker %u, page %" PRIu64
		", version %u, byte %u of the page, %u bytes "
		"of it differ\n",
		mismatch->address, mismatch->id.region, mismatch->id.page, mismatch->id.version, mismatch->offset,
		mismatch->bytes);
	if (run->options->content->is_private) {
		fprintf(to, "  the bytes are not shown: memory of processes\n");
	} else {
		write_bytes("expected", mismatch->expected, to);
		write_bytes("found   ", mismatch->found, to);
	}
	write_origin(run, mismatch, to);
}

static void write_sums(const struct load_run *run, const struct load_totals *totals, FILE *to)
{
	char text[SIZE_TEXT_BYTES], peak[SIZE_TEXT_BYTES];
	const struct load_counters *changes = &totals->changes;

	if (totals->out_mb_s > 0)
		fprintf(to, "out         %.1f MB/s\n", totals->out_mb_s);
	if (totals->in_mb_s > 0)
		fprintf(to, "in          %.1f MB/s\n", totals->in_mb_s);
	if (run->free_s >= 0)
		fprintf(to, "free        %.4f s for a region with %s in swap\n", run->free_s,
			format_size(run->freed_swap_bytes, text, sizeof(text)));
	write_mix(totals, to);
	fprintf(to, "swap        peak %s, %s when held\n", format_size(run->swap_peak_bytes, peak, sizeof(peak)),
		format_size(run->held_swap_bytes, text, sizeof(text)));
	fprintf(to,
		"machine     thp_fault_alloc %" PRIu64 ", thp_swpout %" PRIu64 ", thp_swpout_fallback %" PRIu64
		", pswpin %" PRIu64 ", pswpout %" PRIu64 "\n",
		changes->thp_fault_alloc, changes->thp_swpout, changes->thp_swpout_fallback, changes->pswpin,
		changes->pswpout);
	fprintf(to, "CPU         user %.2f s, system %.2f s, %" PRIu64 " major faults\n",
		(double)totals->effort.user_us / 1e6, (double)totals->effort.system_us / 1e6,
		totals->effort.major_faults);
}

void load_report_text(const struct load_run *run, const struct load_totals *totals, int error, FILE *to)
{
	char verified[SIZE_TEXT_BYTES];

	write_head(run, to);
	write_passes(run, to);
	write_sums(run, totals, to);
	fprintf(to, "verified    %s, ", format_size(totals->verified_bytes, verified, sizeof(verified)));
	if (totals->mismatched_bytes)
		fprintf(to, "%" PRIu64 " bytes WRONG\n", totals->mismatched_bytes);
	else
		fprintf(to, "%s%s\n", totals->verified_bytes ? "every byte right" : "nothing yet",
			error ? ": the run did not finish" : "");
	if (totals->first_mismatch)
		write_mismatch(run, totals->first_mismatch, to);
}
