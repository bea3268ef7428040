// SPDX-License-Identifier: GPL-2.0-or-later
/* From what the driver can do to what the device is made like. */
#include "ublk_plan.h"

#include "transport.h"
#include "units.h"

#include <errno.h>

#define DEPTH 64U
#define DEPTH_WITH_BUFFERS 8U
#define REQUEST_MAX_WITH_BUFFERS ((uint32_t)(2 * MIB)) /* no folio of a kernel without USER_COPY is larger */
#define DISCARD_MAX_BYTES ((uint32_t)(64 * MIB))       /* one is carried out by one thread, before others of its tags */

#define WANTED \
	(UBLK_USER_RECOVERY | UBLK_USER_RECOVERY_REISSUE | UBLK_CMD_IOCTL_ENCODE | UBLK_USER_COPY | UBLK_UPDATE_SIZE | \
		UBLK_QUIESCE | UBLK_SAFE_STOP_DEV | UBLK_NO_AUTO_PART_SCAN)

static unsigned shift_of(uint32_t power_of_two)
{
	return (unsigned)__builtin_ctz(power_of_two);
}

/* Requests are asked again only where a device outlives its server. */
static uint64_t choose_features(uint64_t features)
{
	features &= WANTED;
	if (!(features & UBLK_USER_RECOVERY))
		features &= ~(UBLK_USER_RECOVERY_REISSUE | UBLK_QUIESCE);
	return features;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

struct ublk_plan ublk_plan_make(const struct transport_config *config, uint64_t features, unsigned depth)
{
	bool user_copy = features & UBLK_USER_COPY;
	unsigned wanted = depth ? depth : user_copy ? DEPTH : DEPTH_WITH_BUFFERS;
	struct ublk_plan plan = {
		.features = choose_features(features),
		.request_max_bytes =
			user_copy ? config->unit_bytes : min_u32(config->unit_bytes, REQUEST_MAX_WITH_BUFFERS),
		.queues = (uint16_t)config->io_threads,
		.depth = (uint16_t)min_u32(wanted, UBLK_DEPTH_MAX),
		.threads = (uint16_t)config->io_threads,
	};

	return plan;
}

struct ublk_info ublk_plan_info(const struct ublk_plan *plan, uint64_t cookie)
{
	struct ublk_info info = {
		.queues = plan->queues,
		.depth = plan->depth,
		.request_max_bytes = plan->request_max_bytes,
		.id = UBLK_ANY_ID,
		.server = -1,
		.features = plan->features,
		.cookie = cookie,
	};

	return info;
}

/* It has at most as many queues as CPUs, and may know of more features than were asked for. */
int ublk_plan_accept(struct ublk_plan *plan, const struct ublk_info *info)
{
	if (info->queues == 0 || info->queues > plan->queues || info->depth != plan->depth ||
		info->request_max_bytes != plan->request_max_bytes)
		return -EOPNOTSUPP;
	if ((info->features ^ plan->features) & UBLK_USER_COPY)
		return -EOPNOTSUPP;
	plan->queues = info->queues;
	plan->features = info->features & plan->features;
	return 0;
}

/* Nothing is lost at a power cut that was not lost anyway: there is no cache to flush. */
struct ublk_params ublk_plan_params(const struct ublk_plan *plan, const struct transport_config *config)
{
	struct ublk_params params = {
		.bytes = UBLK_PARAMS_BYTES,
		.types = UBLK_PARAMS_BASIC,
		.logical_block_shift = GRANULE_SHIFT,
		.physical_block_shift = GRANULE_SHIFT,
		.io_opt_shift = (uint8_t)shift_of(plan->request_max_bytes),
		.io_min_shift = GRANULE_SHIFT,
		.max_sectors = plan->request_max_bytes >> UBLK_SECTOR_SHIFT,
		.chunk_sectors = plan->request_max_bytes >> UBLK_SECTOR_SHIFT,
		.size_sectors = config->size_bytes >> UBLK_SECTOR_SHIFT,
	};

	if (config->discard) {
		params.types |= UBLK_PARAMS_DISCARD;
		params.discard_granularity_bytes = GRANULE_BYTES;
		params.max_discard_sectors = DISCARD_MAX_BYTES >> UBLK_SECTOR_SHIFT;
		params.max_write_zeroes_sectors = DISCARD_MAX_BYTES >> UBLK_SECTOR_SHIFT;
		params.max_discard_segments = 1;
	}
	return params;
}

/* Threads beyond the queues have nothing to do. */
size_t ublk_plan_buffers_before(const struct ublk_plan *plan, unsigned thread)
{
	unsigned of_one = plan->features & UBLK_USER_COPY ? 1 : plan->depth;

	return (size_t)min_u32(thread, plan->queues) * of_one * plan->request_max_bytes;
}

size_t ublk_plan_buffer_offset(const struct ublk_plan *plan, unsigned tag)
{
	return plan->features & UBLK_USER_COPY ? 0 : (size_t)tag * plan->request_max_bytes;
}

int32_t ublk_plan_result(const struct ublk_request *desc)
{
	return desc->sectors > INT32_MAX >> UBLK_SECTOR_SHIFT ? INT32_MAX
							      : (int32_t)(desc->sectors << UBLK_SECTOR_SHIFT);
}

bool ublk_plan_can_take_over(const struct ublk_plan *plan)
{
	return plan->features & UBLK_USER_RECOVERY && plan->features & UBLK_USER_RECOVERY_REISSUE;
}
