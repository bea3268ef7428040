// SPDX-License-Identifier: GPL-2.0-or-later
/* What a started ublk device's block device still needs. */
#include "ublk_disk.h"

#include "cleanup.h"
#include "clock.h"
#include "ublk_node.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 96
#define NODE_WAIT_MS 5000
#define UDEV_WAIT_NS UINT64_C(2000000000)
#define PAUSE_US 5000

static int queue_write(uint32_t id, const char *attribute, const char *value)
{
	CLEANUP(close_fd) int fd = -1;
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "/sys/block/ublkb%u/queue/%s", id, attribute);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, value, strlen(value)) < 0 ? -errno : 0;
}

/*
 * A single queue gets mq-deadline, which sorts for disks; and throttling of writes counts on a disk behind them, too.
 * Kernels without either have no such file or choice: that is as well. Whole units pass only if they may: the kernel's
 * own limit is lower, but not that of the device.
 */
static int set_queue(uint32_t id, uint32_t request_max_bytes)
{
	char text[16];

	queue_write(id, "scheduler", "none");
	queue_write(id, "wbt_lat_usec", "0");
	snprintf(text, sizeof(text), "%" PRIu64, request_max_bytes / KIB);
	return queue_write(id, "max_sectors_kb", text);
}

/* udev answers a new device with its own idea of owner and mode; its queue file is there while it works. */
static void wait_for_udev(void)
{
	uint64_t give_up_ns = clock_ns() + UDEV_WAIT_NS;

	if (access("/run/udev/control", F_OK) != 0)
		return;
	usleep(PAUSE_US);
	while (access("/run/udev/queue", F_OK) == 0 && clock_ns() < give_up_ns)
		usleep(PAUSE_US);
}

static int protect_node(const char *node)
{
	CLEANUP(close_fd) int fd = open(node, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	if (fd < 0)
		return -errno;
	wait_for_udev();
	if (fchownat(fd, "", 0, 0, AT_EMPTY_PATH) < 0 || chmod(node, 0600) < 0 || fstat(fd, &status) < 0)
		return -errno;
	return S_ISBLK(status.st_mode) && (status.st_mode & 07777) == 0600 && status.st_uid == 0 ? 0 : -EPERM;
}

int ublk_disk_set_up(uint32_t id, uint32_t request_max_bytes, char *problem, size_t problem_bytes)
{
	const char *what = "find";
	char node[UBLK_NODE_BYTES];
	int error;

	ublk_block_node(id, node);
	error = ublk_wait_block_node(id, NODE_WAIT_MS);
	if (error == 0) {
		what = "set the mode of";
		error = protect_node(node);
	}
	if (error == 0) {
		what = "set the queue of";
		error = set_queue(id, request_max_bytes);
	}
	if (error < 0)
		snprintf(problem, problem_bytes, "cannot %s %s: %s", what, node, strerror(-error));
	return error;
}
