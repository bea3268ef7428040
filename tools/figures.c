// SPDX-License-Identifier: GPL-2.0-or-later
/* Formulas of the figures that are shown. */
#include "figures.h"

#include "units.h"

#include <math.h>

#define MAP_WORD_BYTES 4
#define RECORD_BYTES 32

static uint64_t minus(uint64_t from, uint64_t what)
{
	return from > what ? from - what : 0;
}

uint64_t figures_index_bytes(uint64_t live_bytes, uint64_t objects)
{
	return (live_bytes >> GRANULE_SHIFT) * MAP_WORD_BYTES + objects * RECORD_BYTES;
}

uint64_t figures_stored_bytes(const struct stats_gauges *gauges)
{
	return minus(gauges->arena_ready_bytes, gauges->arena_empty_bytes) + gauges->slot_bytes +
	       figures_index_bytes(gauges->live_bytes, gauges->objects);
}

double figures_ratio(uint64_t over, uint64_t under)
{
	if (!under || under == FIGURES_NONE || over == FIGURES_NONE)
		return NAN;
	return (double)over / (double)under;
}

void figures_compute(const struct stats_gauges *gauges, uint64_t daemon_bytes, uint64_t standby_bytes,
	uint64_t swapped_bytes, struct figures *ret)
{
	uint64_t known =
		gauges->arena_ready_bytes + gauges->records_ready_bytes + gauges->map_bytes + gauges->fixed_bytes;
	uint64_t data = gauges->live_bytes, resident_bytes = daemon_bytes + standby_bytes;

	ret->swapped_bytes = swapped_bytes;
	ret->data_bytes = data;
	ret->payload_bytes = gauges->payload_bytes;
	ret->index_bytes = figures_index_bytes(data, gauges->objects);
	ret->stored_bytes = figures_stored_bytes(gauges);
	ret->resident_bytes = resident_bytes;
	ret->other_bytes = minus(daemon_bytes, known);
	ret->effective_ratio = figures_ratio(swapped_bytes, ret->stored_bytes);
	ret->dead_share = swapped_bytes == FIGURES_NONE ? NAN : figures_ratio(minus(data, swapped_bytes), data);
	ret->payload_ratio = figures_ratio(data, ret->payload_bytes);
	ret->stored_ratio = figures_ratio(data, ret->stored_bytes);
	ret->resident_ratio = figures_ratio(data, resident_bytes);
}
