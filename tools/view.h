/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A snapshot of one device: what its daemon says, its statistics page and its
 * line in /proc/swaps. All that list, stat and the metrics file show.
 */
#ifndef TOOLS_VIEW_H
#define TOOLS_VIEW_H

#include "control.h"
#include "figures.h"
#include "stats.h"
#include "swaps.h"

#include <stdint.h>

struct view {
	bool is_up;
	char state[16]; /* "up"; "silent": no answer, but its keeper lives; "dead" */
	struct control_info info;
	char codec[16];
	char unsafe[128];      /* "io-flusher,oom-score": words of info.unsafe */
	int32_t swap_priority; /* INT32_MIN: not swapped on */
	uint64_t taken_ns;     /* CLOCK_MONOTONIC */
	struct stats_gauges gauges;
	struct stats_takeovers takeovers; /* last and worst: UINT64_MAX while there was none */
	int32_t standby_pid;              /* INT32_MIN: none */
	struct figures figures;
	struct stats_sum sum;

	/* Out of sum. */
	uint64_t requests[STATS_KINDS];
	uint64_t bytes[STATS_KINDS];
	uint64_t errors[STATS_KINDS];
	double read_amplification; /* decoded / asked */
	double frame_hit_share;    /* of partial reads */
	uint64_t compress_cpu_ns;
};

/* Zeroed, or NULL (ENOMEM); a few hundred KiB, so not for the stack. */
struct view *view_create(void);
void view_destroy(struct view *view); /* NULL is fine */

/* Fills from parts; all are only read. swap: NULL when the device is not swapped on. Returns 0 or -EPROTO. */
int view_fill(struct view *view, const struct control_info *info, const struct stats_page *page, size_t page_bytes,
	const struct swap_entry *swap);

/* What can be said of a device whose server does not answer. */
void view_fill_dead(struct view *view, const char *name);

/* Asks device `name`. Returns 0 or an exit code (reported); the view is then filled as dead. */
int view_load(const char *name, struct view *view);

/*
 * ret becomes later with the statistics of what happened since earlier.
 * Maxima are those of the interval, to a bucket.
 */
void view_difference(struct view *ret, const struct view *later, const struct view *earlier);

#endif
