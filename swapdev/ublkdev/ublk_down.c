// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The end of a device, step by step; each looks at the device anew, so that it does not matter who began.
 *
 *   has a block device  --nobody has it open--> stopped --> deleted --> the number is free
 */
#include "ublk_down.h"

#include "ublk_node.h"

#include "cleanup.h"
#include "clock.h"
#include "opener.h"
#include "swaps.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define DEVICES_MAX 256
#define PAUSE_US 2000
#define NS_PER_MS UINT64_C(1000000)
#define STEP_MS 1000

int ublk_find(struct ublk_control *control, uint64_t cookie, struct ublk_info *ret)
{
	uint32_t ids[DEVICES_MAX];
	int count = ublk_list(ids, DEVICES_MAX);

	for (int i = 0; i < count; i++) {
		struct ublk_info info;
		int error = ublk_control_info(control, ids[i], &info);

		if (error < 0 && error != -ENODEV)
			return error;
		if (error == 0 && info.cookie == cookie) {
			*ret = info;
			return 0;
		}
	}
	return -ENODEV;
}

/*
 * Drivers that cannot look for themselves: nobody starts to swap to a node or mounts it while we have claimed it. One
 * who opens it just now makes the deletion wait, not more.
 */
static int stop_claimed(struct ublk_control *control, uint32_t id)
{
	const pid_t none[] = {getpid(), 0};
	CLEANUP(close_fd) int claim_fd = -1;
	char node[UBLK_NODE_BYTES], name[32];

	ublk_block_node(id, node);
	if (swaps_has_node(node))
		return -EBUSY;
	claim_fd = open(node, O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK);
	if (claim_fd < 0 && errno == EBUSY)
		return -EBUSY;
	if (opener_find(node, none, name, sizeof(name)) > 0)
		return -EBUSY;
	return ublk_control_do(control, UBLK_STOP_DEV, id, 0, STEP_MS);
}

static int stop(struct ublk_control *control, const struct ublk_info *info)
{
	if (info->features & UBLK_SAFE_STOP_DEV)
		return ublk_control_do(control, UBLK_TRY_STOP_DEV, info->id, 0, STEP_MS);
	return stop_claimed(control, info->id);
}

static int delete (struct ublk_control *control, uint32_t id)
{
	int error = ublk_control_do(control, UBLK_DEL_DEV_ASYNC, id, 0, STEP_MS);

	if (error == -EOPNOTSUPP || error == -EINVAL)
		error = ublk_control_do(control, UBLK_DEL_DEV, id, 0, STEP_MS);
	return error;
}

/* Returns 0 when it is gone, -EAGAIN when there is more to do, or -errno. */
static int step(struct ublk_control *control, uint32_t id, uint64_t cookie)
{
	struct ublk_info info;
	int error;

	error = ublk_control_info(control, id, &info);
	if (error == -ENODEV || (error == 0 && info.cookie != cookie))
		return 0;
	if (error == 0 && info.state != UBLK_DEAD)
		error = stop(control, &info);
	else if (error == 0)
		error = delete (control, id);
	return error == 0 || error == -ENODEV ? -EAGAIN : error;
}

int ublk_take_down(struct ublk_control *control, uint32_t id, uint64_t cookie, unsigned wait_ms)
{
	uint64_t give_up_ns = clock_ns() + wait_ms * NS_PER_MS;
	int error;

	while ((error = step(control, id, cookie)) != 0) {
		if (error != -EAGAIN && error != -EBUSY && error != -ETIMEDOUT && error != -EINTR)
			return error;
		if (clock_ns() >= give_up_ns)
			return -EBUSY;
		usleep(PAUSE_US);
	}
	return 0;
}
