// SPDX-License-Identifier: GPL-2.0-or-later
/* A file on a detached noswap tmpfs, or a memfd where the kernel is too old for one. */
#include "imagefile.h"

#include "cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

static bool has_huge_pages(void)
{
	return access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0;
}

static bool has_several_nodes(void)
{
	CLEANUP(fclose) FILE *file = fopen("/sys/devices/system/node/online", "re");
	char nodes[64] = "";

	return file && fgets(nodes, sizeof(nodes), file) && strpbrk(nodes, ",-");
}

static int set_string(int context, const char *key, const char *value)
{
	return fsconfig(context, FSCONFIG_SET_STRING, key, value, 0) < 0 ? -errno : 0;
}

/* Huge pages and interleaving are speed, not safety: where the kernel refuses them the file works without. */
static int configure(int context)
{
	int error;

	if (fsconfig(context, FSCONFIG_SET_FLAG, "noswap", NULL, 0) < 0)
		return -errno;
	error = set_string(context, "size", "0");
	if (error == 0)
		error = set_string(context, "mode", "0600");
	if (error < 0)
		return error;
	if (has_huge_pages())
		set_string(context, "huge", "always");
	if (has_several_nodes())
		set_string(context, "mpol", "interleave");
	return fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ? -errno : 0;
}

static int create_on_tmpfs(void)
{
	CLEANUP(close_fd) int context = -1;
	CLEANUP(close_fd) int mount = -1;
	int error, fd;

	context = fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (context < 0)
		return -errno;
	error = configure(context);
	if (error < 0)
		return error;
	mount = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (mount < 0)
		return -errno;
	fd = openat(mount, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

int imagefile_create(bool *ret_swappable)
{
	int fd;

	fd = create_on_tmpfs();
	if (fd >= 0) {
		*ret_swappable = false;
		return fd;
	}
	if (fd != -EINVAL && fd != -ENOSYS)
		return fd;
	fd = memfd_create("folioswap", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_swappable = true;
	return fd;
}

int imagefile_reopen_readonly(int image_fd)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", image_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
