// SPDX-License-Identifier: GPL-2.0-or-later
/* Device nodes. devtmpfs makes them as soon as the device exists; a static /dev has none of them. */
#include "ublk_node.h"

#include "clock.h"
#include "textfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define CLASS_DIR "/sys/class/ublk-char"
#define PATH_BYTES 64
#define PAUSE_US 500
#define NS_PER_MS UINT64_C(1000000)
#define MAKE_AFTER_NS (100 * NS_PER_MS) /* the kernel's own are there long before */

void ublk_block_node(uint32_t id, char *node)
{
	snprintf(node, UBLK_NODE_BYTES, "/dev/ublkb%u", id);
}

static void make_node(const char *node, mode_t type, const char *dev_path)
{
	unsigned major_number, minor_number;
	char text[32];

	if (textfile_read(dev_path, text, sizeof(text)) > 0 && sscanf(text, "%u:%u", &major_number, &minor_number) == 2)
		(void)!mknod(node, type | 0600, makedev(major_number, minor_number));
}

static int try_open_server(uint32_t id, bool make)
{
	char node[PATH_BYTES], dev_path[PATH_BYTES];
	int fd;

	snprintf(node, sizeof(node), "/dev/ublkc%u", id);
	fd = open(node, O_RDWR | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && make) {
		snprintf(dev_path, sizeof(dev_path), CLASS_DIR "/ublkc%u/dev", id);
		make_node(node, S_IFCHR, dev_path);
		fd = open(node, O_RDWR | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

int ublk_open_server(uint32_t id, unsigned timeout_ms)
{
	uint64_t start_ns = clock_ns();
	int fd;

	for (;;) {
		uint64_t waited_ns = clock_ns() - start_ns;

		fd = try_open_server(id, waited_ns >= MAKE_AFTER_NS);
		if (fd >= 0 || (fd != -EBUSY && fd != -ENOENT && fd != -EINTR) || waited_ns >= timeout_ms * NS_PER_MS)
			return fd;
		usleep(PAUSE_US);
	}
}

int ublk_wait_block_node(uint32_t id, unsigned timeout_ms)
{
	char node[UBLK_NODE_BYTES], dev_path[PATH_BYTES];
	uint64_t start_ns = clock_ns();

	ublk_block_node(id, node);
	snprintf(dev_path, sizeof(dev_path), "/sys/block/ublkb%u/dev", id);
	while (access(node, F_OK) < 0) {
		uint64_t waited_ns = clock_ns() - start_ns;

		if (waited_ns >= timeout_ms * NS_PER_MS)
			return -ENOENT;
		if (waited_ns >= MAKE_AFTER_NS)
			make_node(node, S_IFBLK, dev_path);
		usleep(PAUSE_US);
	}
	return 0;
}

int ublk_list(uint32_t *ids, int max)
{
	DIR *class = opendir(CLASS_DIR);
	struct dirent *entry;
	int count = 0;

	while (class && count < max && (entry = readdir(class))) {
		if (sscanf(entry->d_name, "ublkc%u", &ids[count]) == 1)
			count++;
	}
	if (class)
		closedir(class);
	return count;
}
