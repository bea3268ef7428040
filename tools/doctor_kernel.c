// SPDX-License-Identifier: GPL-2.0-or-later
/* Checks: the kernel, its transports, and what this process may do. */
#include "doctor.h"

#include "cleanup.h"
#include "cli_process.h"
#include "ublk_control.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

#define CHILD_TIMEOUT_MS 5000

unsigned doctor_version(const char *root, char *release, size_t release_bytes)
{
	unsigned major = 0, minor = 0;

	doctor_read(root, "/proc/sys/kernel/osrelease", release, release_bytes);
	sscanf(release, "%u.%u", &major, &minor);
	return major * 1000 + minor;
}

static void check_kernel(const char *root, struct doctor_result *result)
{
	char release[128];
	unsigned version = doctor_version(root, release, sizeof(release));

	if (version < 5014)
		doctor_fail(result, "use a kernel from 5.14 on",
			"Linux %s cannot make memory ready ahead without faults", release);
	else if (version < 6004)
		doctor_warn(result, "use a kernel from 6.4 on",
			"Linux %s has no tmpfs with noswap: only the server's locks keep the image in memory", release);
	else
		doctor_ok(result, "Linux %s", release);
}

static void check_fuse(const char *root, struct doctor_result *result)
{
	char path[256];
	CLEANUP(close_fd) int fd = open(doctor_path(root, "/dev/fuse", path, sizeof(path)), O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		doctor_ok(result, "/dev/fuse opens");
	else if (doctor_exists(root, UBLK_CONTROL_NODE))
		doctor_warn(result, "modprobe fuse, if the fuse transport is wanted", "/dev/fuse does not open: %s",
			strerror(errno));
	else
		doctor_fail(result, "modprobe fuse, and run as root", "/dev/fuse does not open: %s", strerror(errno));
}

static void check_loop(const char *root, struct doctor_result *result)
{
	char path[256];
	CLEANUP(close_fd) int fd = open(doctor_path(root, "/dev/loop-control", path, sizeof(path)), O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		doctor_ok(result, "/dev/loop-control opens");
	else if (doctor_exists(root, UBLK_CONTROL_NODE))
		doctor_warn(result, "modprobe loop, if the fuse transport is wanted",
			"/dev/loop-control does not open: %s", strerror(errno));
	else
		doctor_fail(result, "modprobe loop, and run as root; the fuse transport needs a loop device",
			"/dev/loop-control does not open: %s", strerror(errno));
}

static void check_noswap(const char *root, struct doctor_result *result)
{
	CLEANUP(close_fd) int fd = fsopen("tmpfs", FSOPEN_CLOEXEC);

	(void)root;
	if (fd < 0)
		doctor_fail(result, "run as root with CAP_SYS_ADMIN", "no tmpfs can be made for the image: %s",
			strerror(errno));
	else if (fsconfig(fd, FSCONFIG_SET_FLAG, "noswap", NULL, 0) < 0)
		doctor_warn(result, "use a kernel from 6.4 on",
			"tmpfs does not know noswap (%s): only the server's locks keep the image in memory",
			strerror(errno));
	else
		doctor_ok(result, "tmpfs knows noswap");
}

static int try_io_flusher(void *arg)
{
	(void)arg;
	return prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static void check_io_flusher(const char *root, struct doctor_result *result)
{
	int error = process_bounded(try_io_flusher, NULL, CHILD_TIMEOUT_MS);

	(void)root;
	if (error)
		doctor_fail(result,
			"give CAP_SYS_RESOURCE; add --allow-unsafe goes on, fit for swap of a memory cgroup but not of "
			"the machine",
			"PR_SET_IO_FLUSHER is refused (%s): an allocation of the daemon may wait for its own device",
			strerror(-error));
	else
		doctor_ok(result, "PR_SET_IO_FLUSHER works");
}

static int try_oom_score(void *arg)
{
	CLEANUP(close_fd) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	(void)arg;
	return fd < 0 || write(fd, "-1000", 5) < 0 ? -errno : 0;
}

static void check_oom_score(const char *root, struct doctor_result *result)
{
	int error = process_bounded(try_oom_score, NULL, CHILD_TIMEOUT_MS);

	(void)root;
	if (error)
		doctor_fail(result, "give CAP_SYS_RESOURCE; add --allow-unsafe goes on",
			"oom_score_adj -1000 is refused (%s): the OOM killer may pick the daemon", strerror(-error));
	else
		doctor_ok(result, "oom_score_adj -1000 is allowed");
}

/* With no limit to hide behind, only the capability lets this pass. */
static int try_lock(void *arg)
{
	struct rlimit none = {0, 0};
	static char page[4096];

	(void)arg;
	if (setrlimit(RLIMIT_MEMLOCK, &none) < 0 || mlock(page, sizeof(page)) < 0)
		return -errno;
	return 0;
}

static void check_lock(const char *root, struct doctor_result *result)
{
	int error = process_bounded(try_lock, NULL, CHILD_TIMEOUT_MS);

	(void)root;
	if (error)
		doctor_fail(result, "give CAP_IPC_LOCK",
			"memory cannot be locked (%s): the daemon could be swapped out to itself", strerror(-error));
	else
		doctor_ok(result, "memory can be locked without limit");
}

static void check_admin(const char *root, struct doctor_result *result)
{
	char path[256], line[256];
	CLEANUP(fclose) FILE *file = fopen(doctor_path(root, "/proc/self/status", path, sizeof(path)), "re");
	unsigned long long effective = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "CapEff: %llx", &effective) == 1)
			break;
	}
	if (effective & 1ULL << CAP_SYS_ADMIN)
		doctor_ok(result, "CAP_SYS_ADMIN is there");
	else
		doctor_fail(result, "run as root", "no CAP_SYS_ADMIN: no mounts, no devices, no swapon");
}

static void check_fuse_pages(const char *root, struct doctor_result *result)
{
	long long pages;

	if (!doctor_read_number(root, "/proc/sys/fs/fuse/max_pages_limit", &pages))
		doctor_ok(result, "requests of up to 256 pages over FUSE");
	else if (pages < 256)
		doctor_warn(result, "sysctl fs.fuse.max_pages_limit=512",
			"fs.fuse.max_pages_limit is %lld: a huge page comes in many parts", pages);
	else
		doctor_ok(result, "fs.fuse.max_pages_limit is %lld", pages);
}

static void check_fuse_timeouts(const char *root, struct doctor_result *result)
{
	long long standard = 0, most = 0;

	doctor_read_number(root, "/proc/sys/fs/fuse/default_request_timeout", &standard);
	doctor_read_number(root, "/proc/sys/fs/fuse/max_request_timeout", &most);
	if (standard || most)
		doctor_warn(result, "sysctl fs.fuse.default_request_timeout=0 fs.fuse.max_request_timeout=0",
			"fs.fuse.default_request_timeout is %lld s, max_request_timeout %lld s: the kernel ends a FUSE "
			"device that is slow",
			standard, most);
	else
		doctor_ok(result, "the kernel sets no time limit on FUSE requests");
}

const struct doctor_check doctor_kernel_checks[] = {
	{"kernel", check_kernel},
	{"ublk", doctor_check_ublk},
	{"fuse", check_fuse},
	{"loop", check_loop},
	{"fuse-max-pages", check_fuse_pages},
	{"fuse-timeouts", check_fuse_timeouts},
	{"noswap", check_noswap},
	{"takeover", doctor_check_takeover},
	{"cap-sys-admin", check_admin},
	{"io-flusher", check_io_flusher},
	{"oom-score", check_oom_score},
	{"memory-lock", check_lock},
	{NULL, NULL},
};
