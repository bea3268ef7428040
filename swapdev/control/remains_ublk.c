// SPDX-License-Identifier: GPL-2.0-or-later
/* The ublk device of a dead keeper: known by the cookie in its directory. */
#include "remains_ublk.h"

#include "ublk_down.h"
#include "ublk_fail.h"
#include "ublk_node.h"

#include "cleanup.h"
#include "swaps.h"
#include "textfile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DOWN_MS 2000
#define PATH_BYTES 256

/* Returns 0 with the device, -ENODEV when there is none, or -errno. control is open when there is one. */
static int find(const char *directory, struct ublk_control *control, struct ublk_info *ret)
{
	char path[PATH_BYTES], text[32];
	uint64_t cookie;
	int error;

	control->fd = -1;
	snprintf(path, sizeof(path), "%s/ublk", directory);
	if (!textfile_line(path, text, sizeof(text)) || sscanf(text, "%" SCNx64, &cookie) != 1 || cookie == 0)
		return -ENODEV;
	error = ublk_control_open(control);
	return error < 0 ? error : ublk_find(control, cookie, ret);
}

bool remains_ublk_node(const char *directory, char *node, size_t node_bytes)
{
	CLEANUP(ublk_control_close) struct ublk_control control;
	char name[UBLK_NODE_BYTES];
	struct ublk_info info;

	if (find(directory, &control, &info) < 0)
		return false;
	ublk_block_node(info.id, name);
	snprintf(node, node_bytes, "%s", name);
	return true;
}

/* Its own servers die with their keeper, and may be about to. */
static bool is_failing(const struct ublk_info *info)
{
	char path[32], name[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)info->server);
	return info->state == UBLK_LIVE && textfile_line(path, name, sizeof(name)) && strcmp(name, UBLK_FAIL_NAME) == 0;
}

void remains_ublk_fail_io(const char *directory)
{
	CLEANUP(ublk_control_close) struct ublk_control control;
	struct ublk_info info;

	if (find(directory, &control, &info) == 0 && info.state != UBLK_DEAD && !is_failing(&info))
		ublk_fail_start(info.id, info.cookie, false);
}

static void tell_busy(uint32_t id, char *problem, size_t problem_bytes)
{
	char node[UBLK_NODE_BYTES];

	ublk_block_node(id, node);
	if (swaps_has_node(node))
		snprintf(problem, problem_bytes, "an earlier device of this name is dead but swapped on: swapoff %s",
			node);
	else
		snprintf(problem, problem_bytes, "an earlier device of this name is dead but %s is still open", node);
}

int remains_ublk_clear(const char *directory, char *problem, size_t problem_bytes)
{
	CLEANUP(ublk_control_close) struct ublk_control control;
	struct ublk_info info;
	int error;

	error = find(directory, &control, &info);
	if (error == -ENODEV)
		return 0;
	if (error == 0)
		error = ublk_take_down(&control, info.id, info.cookie, DOWN_MS);
	if (error == -EBUSY) {
		remains_ublk_fail_io(directory);
		tell_busy(info.id, problem, problem_bytes);
	} else if (error < 0) {
		snprintf(problem, problem_bytes, "cannot take an earlier ublk device down: %s", strerror(-error));
	}
	return error;
}
