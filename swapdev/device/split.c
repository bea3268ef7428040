// SPDX-License-Identifier: GPL-2.0-or-later
/* Cuts a byte range at unit borders. */
#include "split.h"

#include "units.h"

void split_init(struct split *split, uint64_t offset_bytes, uint64_t length_bytes, uint32_t unit_bytes)
{
	*split = (struct split){
		.granule = offset_bytes >> GRANULE_SHIFT,
		.granules_left = length_bytes >> GRANULE_SHIFT,
		.unit_granules = unit_bytes >> GRANULE_SHIFT,
	};
}

bool split_next(struct split *split, struct split_piece *ret)
{
	uint64_t count = split->unit_granules - (split->granule & (split->unit_granules - 1));

	if (!split->granules_left)
		return false;
	if (count > split->granules_left)
		count = split->granules_left;
	*ret = (struct split_piece){
		.granule = split->granule,
		.count = (uint32_t)count,
		.data_offset_bytes = split->data_offset_bytes,
	};
	split->granule += count;
	split->granules_left -= count;
	split->data_offset_bytes += count << GRANULE_SHIFT;
	return true;
}
