/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sizes and ratios that are shown, from the store's gauges. Pure.
 *
 *   swapped    what /proc/swaps says is in use
 *   data       granules that the device holds
 *   payload    their stored frames and frame tables
 *   index      4 bytes for each live granule and 32 for each object
 *   stored     arena chunks that are not empty (extents and the holes between
 *              them), what is still plain in slots, and the index: what zram
 *              calls mem_used_total
 *   resident   RSS of the daemon's processes, the one that stands by too:
 *              stored and all fixed cost
 *
 *   effective ratio  swapped / stored: what the memory buys
 *   dead share       (data - swapped) / data: kept for nobody, because the
 *                    kernel has not discarded it (yet)
 *
 * Swapped can exceed data: pages of zeros never reach a device. The dead
 * share is then 0.
 */
#ifndef TOOLS_FIGURES_H
#define TOOLS_FIGURES_H

#include "stats.h"

#include <stdint.h>

#define FIGURES_NONE UINT64_MAX /* of a size; a ratio without a value is NAN */

struct figures {
	uint64_t swapped_bytes; /* FIGURES_NONE: not swapped on */
	uint64_t data_bytes;
	uint64_t payload_bytes;
	uint64_t index_bytes;
	uint64_t stored_bytes;
	uint64_t resident_bytes;
	uint64_t other_bytes; /* resident, but in no gauge, nor the standby's: programs, libraries, stacks */
	double effective_ratio;
	double dead_share;
	double payload_ratio;  /* data / payload */
	double stored_ratio;   /* data / stored */
	double resident_ratio; /* data / resident */
};

uint64_t figures_index_bytes(uint64_t live_bytes, uint64_t objects);
uint64_t figures_stored_bytes(const struct stats_gauges *gauges);

/* over / under, NAN when under is 0 or one of them is FIGURES_NONE. */
double figures_ratio(uint64_t over, uint64_t under);

/* daemon_bytes: RSS of keeper and server. swapped_bytes: FIGURES_NONE when the device is not swapped on. */
void figures_compute(const struct stats_gauges *gauges, uint64_t daemon_bytes, uint64_t standby_bytes,
	uint64_t swapped_bytes, struct figures *ret);

#endif
