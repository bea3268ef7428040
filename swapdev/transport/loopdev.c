// SPDX-License-Identifier: GPL-2.0-or-later
/* A loop device for the FUSE transport's file. */
#include "loopdev.h"

#include "cleanup.h"
#include "clock.h"
#include "textfile.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PATH_BYTES 96
#define ATTACH_TRY_NS UINT64_C(5000000000)
#define UDEV_WAIT_NS UINT64_C(2000000000)
#define DETACH_WAIT_NS UINT64_C(2000000000)
#define PAUSE_US 5000
#define NO_MERGES 2 /* queue/nomerges: not even simple ones */

static int fail(char *problem, size_t problem_bytes, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static int fail(char *problem, size_t problem_bytes, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem, problem_bytes, format, arguments);
	va_end(arguments);
	return error;
}

static void sysfs_path(const struct loopdev *loop, const char *attribute, char *path)
{
	snprintf(path, PATH_BYTES, "/sys/block/loop%d/%s", loop->number, attribute);
}

/* Without the newline at the end. Returns 0 or -errno. */
static int sysfs_read(const struct loopdev *loop, const char *attribute, char *text, size_t text_bytes)
{
	char path[PATH_BYTES];
	ssize_t got;

	sysfs_path(loop, attribute, path);
	got = textfile_read(path, text, text_bytes);
	if (got < 0)
		return (int)got;
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

static int sysfs_write(const struct loopdev *loop, const char *attribute, uint64_t value)
{
	CLEANUP(close_fd) int fd = -1;
	char path[PATH_BYTES], text[24];
	int length;

	sysfs_path(loop, attribute, path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	length = snprintf(text, sizeof(text), "%" PRIu64, value);
	return write(fd, text, (size_t)length) == length ? 0 : -errno;
}

void loopdev_init(
	struct loopdev *loop, const char *backing_path, bool discard, bool merge, unsigned request_max_bytes)
{
	memset(loop, 0, sizeof(*loop));
	loop->number = -1;
	loop->discard = discard;
	loop->merge = merge;
	loop->request_max_bytes = request_max_bytes;
	snprintf(loop->backing, sizeof(loop->backing), "%s", backing_path);
}

void loopdev_node(const struct loopdev *loop, char *node, size_t node_bytes)
{
	snprintf(node, node_bytes, "/dev/loop%d", loop->number);
}

/* Somebody's file lies under the number, ours or another. */
static bool is_bound(const struct loopdev *loop)
{
	char backing[8];

	return sysfs_read(loop, "loop/backing_file", backing, sizeof(backing)) == 0;
}

static bool is_ours(const struct loopdev *loop)
{
	char backing[sizeof(loop->backing) + 64];

	return sysfs_read(loop, "loop/backing_file", backing, sizeof(backing)) == 0 &&
	       strcmp(backing, loop->backing) == 0;
}

/* devtmpfs makes nodes; a static /dev has those that somebody thought of. */
static int make_node(struct loopdev *loop, const char *node)
{
	unsigned major_number, minor_number;
	char text[32];

	if (sysfs_read(loop, "dev", text, sizeof(text)) < 0 || sscanf(text, "%u:%u", &major_number, &minor_number) != 2)
		return -ENODEV;
	return mknod(node, S_IFBLK | 0600, makedev(major_number, minor_number)) < 0 && errno != EEXIST ? -errno : 0;
}

static int open_node(struct loopdev *loop)
{
	char node[PATH_BYTES];
	int error, fd;

	loopdev_node(loop, node, sizeof(node));
	fd = open(node, O_RDWR | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		error = make_node(loop, node);
		if (error < 0)
			return error;
		fd = open(node, O_RDWR | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

static int configure(int loop_fd, int backing_fd, const char *backing_path)
{
	struct loop_config config = {.fd = (uint32_t)backing_fd, .block_size = GRANULE_BYTES};

	config.info.lo_flags = LO_FLAGS_DIRECT_IO | LO_FLAGS_AUTOCLEAR;
	snprintf((char *)config.info.lo_file_name, sizeof(config.info.lo_file_name), "%.63s", backing_path);
	return ioctl(loop_fd, LOOP_CONFIGURE, &config) < 0 ? -errno : 0;
}

static bool takes_discard(const struct loopdev *loop)
{
	char text[24];

	return sysfs_read(loop, "queue/discard_max_bytes", text, sizeof(text)) == 0 && strcmp(text, "0") != 0;
}

/*
 * A discard_max_bytes of 0, written by somebody at any time before, stays with the number and newer kernels refuse to
 * raise it again. Only a new device under that number is without it.
 */
static void discard_number(struct loopdev *loop, int control_fd, int fd)
{
	ioctl(fd, LOOP_CLR_FD);
	close(fd);
	ioctl(control_fd, LOOP_CTL_REMOVE, loop->number);
}

/* One attempt. Returns the open device, -EAGAIN when another attempt may succeed, else -errno. */
static int claim_once(struct loopdev *loop, int control_fd, int backing_fd)
{
	int error, fd;

	loop->number = ioctl(control_fd, LOOP_CTL_GET_FREE);
	if (loop->number < 0)
		return -errno;
	fd = open_node(loop);
	error = fd < 0 ? fd : configure(fd, backing_fd, loop->backing);
	if (error == 0 && loop->discard && !takes_discard(loop)) {
		discard_number(loop, control_fd, fd);
		return -EAGAIN;
	}
	if (error == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	/* Others look for free devices at the same moment. */
	return error == -EBUSY || error == -ENXIO || error == -ENOENT ? -EAGAIN : error;
}

static int claim(struct loopdev *loop, int backing_fd, char *problem, size_t problem_bytes)
{
	CLEANUP(close_fd) int control_fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	uint64_t give_up_ns = clock_ns() + ATTACH_TRY_NS;
	int fd;

	if (control_fd < 0)
		return fail(problem, problem_bytes, -errno, "cannot open /dev/loop-control: %s", strerror(errno));
	while ((fd = claim_once(loop, control_fd, backing_fd)) == -EAGAIN && clock_ns() < give_up_ns)
		usleep(PAUSE_US);
	if (fd >= 0)
		return fd;
	if (fd == -EAGAIN)
		fail(problem, problem_bytes, fd,
			"no loop device to be had in 5 s: others take them, or refuse discard");
	else if (fd == -EINVAL || fd == -ENOTTY)
		fail(problem, problem_bytes, fd, "cannot set a loop device up: Linux 5.8 or later is needed");
	else
		fail(problem, problem_bytes, fd, "cannot set a loop device up: %s", strerror(-fd));
	loop->number = -1;
	return fd;
}

/* udev answers the configuring with its own idea of owner and mode; its queue file is there while it works. */
static void wait_for_udev(void)
{
	uint64_t give_up_ns = clock_ns() + UDEV_WAIT_NS;

	if (access("/run/udev/control", F_OK) != 0)
		return;
	usleep(PAUSE_US);
	while (access("/run/udev/queue", F_OK) == 0 && clock_ns() < give_up_ns)
		usleep(PAUSE_US);
}

static int protect_node(struct loopdev *loop, int fd)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return -errno;
	loop->mode_before = status.st_mode & 07777;
	loop->uid_before = status.st_uid;
	loop->gid_before = status.st_gid;
	wait_for_udev();
	if (fchown(fd, 0, 0) < 0 || fchmod(fd, 0600) < 0)
		return -errno;
	return 0;
}

static int read_number(const struct loopdev *loop, const char *attribute, int *ret)
{
	char text[24];
	int error;

	error = sysfs_read(loop, attribute, text, sizeof(text));
	if (error == 0)
		*ret = atoi(text);
	return error;
}

/*
 * What was before, for the next user. A number that a killed daemon has left has our own values: nobody else sets just
 * this size, so it gets the kernel's defaults back.
 */
static int remember_queue(struct loopdev *loop, int max_kb)
{
	int error;

	error = read_number(loop, "queue/nomerges", &loop->nomerges_before);
	if (error == 0)
		error = read_number(loop, "queue/max_sectors_kb", &loop->max_sectors_kb_before);
	if (error < 0 || loop->max_sectors_kb_before != max_kb)
		return error;
	loop->nomerges_before = 0;
	return read_number(loop, "queue/max_hw_sectors_kb", &loop->max_sectors_kb_before);
}

/* What the file system would have to cut in two is cut here, where the halves stay of one size. */
static int set_queue(struct loopdev *loop)
{
	int max_kb = (int)(loop->request_max_bytes / KIB);
	int error;

	error = remember_queue(loop, max_kb);
	if (error == 0)
		error = sysfs_write(loop, "queue/nomerges", loop->merge ? 0 : NO_MERGES);
	if (error == 0 && loop->max_sectors_kb_before > max_kb)
		error = sysfs_write(loop, "queue/max_sectors_kb", (uint64_t)max_kb);
	return error;
}

/* A loop device takes discards until its file has refused one; so that nobody is misled, that is now. */
static void refuse_discard(int fd)
{
	uint64_t range[2] = {0, GRANULE_BYTES};

	ioctl(fd, BLKDISCARD, range);
}

/* The kernel turns direct I/O off without a word when file and block size do not allow it. */
static int check_direct_io(const struct loopdev *loop)
{
	char text[8];

	return sysfs_read(loop, "loop/dio", text, sizeof(text)) == 0 && strcmp(text, "1") == 0 ? 0 : -EOPNOTSUPP;
}

static int finish(struct loopdev *loop, int fd, char *problem, size_t problem_bytes)
{
	int error;

	error = check_direct_io(loop);
	if (error < 0)
		return fail(problem, problem_bytes, error,
			"/dev/loop%d does not do direct I/O: swap through the page cache would deadlock", loop->number);
	error = protect_node(loop, fd);
	if (error < 0)
		return fail(problem, problem_bytes, error, "cannot set the mode of /dev/loop%d: %s", loop->number,
			strerror(-error));
	error = set_queue(loop);
	if (error < 0)
		return fail(problem, problem_bytes, error, "cannot set /sys/block/loop%d/queue: %s", loop->number,
			strerror(-error));
	if (!loop->discard)
		refuse_discard(fd);
	return 0;
}

int loopdev_attach(struct loopdev *loop, int backing_fd, int *ret_fd, char *problem, size_t problem_bytes)
{
	int error, fd;

	fd = claim(loop, backing_fd, problem, problem_bytes);
	if (fd < 0)
		return fd;
	error = finish(loop, fd, problem, problem_bytes);
	if (error < 0) {
		loopdev_detach(loop, fd);
		return error;
	}
	*ret_fd = fd;
	return 0;
}

/*
 * What outlives the configuration: the next user of the number shall find it as we did. Done while the number is still
 * ours, so that it cannot hit somebody who has taken it meanwhile; what could be read then was never there: the
 * server is gone.
 */
static void restore(const struct loopdev *loop)
{
	char node[PATH_BYTES];

	if (is_bound(loop) && !is_ours(loop))
		return;
	if (loop->max_sectors_kb_before > 0) {
		sysfs_write(loop, "queue/nomerges", (uint64_t)loop->nomerges_before);
		sysfs_write(loop, "queue/max_sectors_kb", (uint64_t)loop->max_sectors_kb_before);
	}
	loopdev_node(loop, node, sizeof(node));
	if (loop->mode_before == 0 || chown(node, loop->uid_before, loop->gid_before) < 0 ||
		chmod(node, loop->mode_before) < 0)
		return; /* it stays 0600 root */
}

/* Tells the kernel, once, and closes what keeps the device. */
static void clear(struct loopdev *loop, int fd)
{
	restore(loop);
	if (fd < 0 && is_ours(loop))
		fd = open_node(loop);
	if (fd >= 0 && is_ours(loop))
		ioctl(fd, LOOP_CLR_FD);
	if (fd >= 0)
		close(fd);
	loop->clearing = true;
}

int loopdev_detach(struct loopdev *loop, int fd)
{
	uint64_t give_up_ns = clock_ns();

	if (loop->number < 0)
		return 0;
	if (!loop->clearing) {
		clear(loop, fd);
		give_up_ns += DETACH_WAIT_NS;
	}
	/* Somebody who only looks (udev) lets go at once. */
	while (is_ours(loop)) {
		if (clock_ns() >= give_up_ns)
			return -EBUSY;
		usleep(PAUSE_US);
	}
	loop->number = -1;
	return 0;
}
