// SPDX-License-Identifier: GPL-2.0-or-later
/* Residency, step by step: each is one function and one bit of enum control_unsafe. */
#include "resident.h"

#include "cgroup.h"
#include "cleanup.h"
#include "control.h"
#include "log.h"
#include "parse.h"
#include "textfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#define PR_GET_IO_FLUSHER 58
#endif

#define HEAP_AHEAD_BYTES (512 * 1024)
#define HEAP_TOP_PAD_BYTES (256 * 1024)
#define NICE_WANTED (-5)
#define TASK_NOIO 0x00080000UL /* PF_MEMALLOC_NOIO in the flags of /proc/PID/stat: what IO_FLUSHER sets */

void resident_report_add(struct resident_report *report, unsigned bit, const char *format, ...)
{
	char *detail = report->detail[__builtin_ctz(bit)];
	va_list arguments;

	report->unsafe |= bit;
	va_start(arguments, format);
	vsnprintf(detail, sizeof(report->detail[0]), format, arguments);
	va_end(arguments);
}

void resident_io_flusher(struct resident_report *report)
{
	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) < 0)
		resident_report_add(report, CONTROL_UNSAFE_IO_FLUSHER, "prctl: %s", strerror(errno));
	else if (prctl(PR_GET_IO_FLUSHER, 0, 0, 0, 0) != 1)
		resident_report_add(report, CONTROL_UNSAFE_IO_FLUSHER, "prctl said yes, but reads back as not set");
}

void resident_oom_score(struct resident_report *report)
{
	CLEANUP(close_fd) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "-1000\n", 6) != 6)
		resident_report_add(report, CONTROL_UNSAFE_OOM_SCORE, "/proc/self/oom_score_adj: %s", strerror(errno));
}

void resident_nice(struct resident_report *report)
{
	int now;

	errno = 0;
	now = getpriority(PRIO_PROCESS, 0);
	if (errno == 0 && now <= NICE_WANTED)
		return;
	if (setpriority(PRIO_PROCESS, 0, NICE_WANTED) < 0)
		resident_report_add(report, CONTROL_UNSAFE_NICE, "setpriority: %s", strerror(errno));
}

static bool has_ipc_lock(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	return data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK);
}

void resident_memlock(struct resident_report *report)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	if (setrlimit(RLIMIT_MEMLOCK, &limit) == 0 || has_ipc_lock())
		return;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY)
		return;
	resident_report_add(report, CONTROL_UNSAFE_MLOCK, "RLIMIT_MEMLOCK is %llu KiB and cannot be raised",
		(unsigned long long)limit.rlim_cur / 1024);
}

void resident_cgroup(struct resident_report *report)
{
	char limit[sizeof(report->detail[0])];

	if (cgroup_find_limit("", limit, sizeof(limit)))
		resident_report_add(report, CONTROL_UNSAFE_CGROUP, "%s", limit);
}

void resident_min_free(struct resident_report *report, const char *sysctl_path)
{
	char text[32];
	ssize_t got;
	long kbytes;

	got = textfile_read(sysctl_path, text, sizeof(text));
	if (got < 0) {
		resident_report_add(report, CONTROL_UNSAFE_MIN_FREE, "%s: %s", sysctl_path, strerror((int)-got));
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	if (parse_int(text, 0, INT32_MAX, &kbytes) < 0 || kbytes < CONTROL_MIN_FREE_KIB)
		resident_report_add(report, CONTROL_UNSAFE_MIN_FREE, "it is %s: sysctl vm.min_free_kbytes=%d", text,
			CONTROL_MIN_FREE_KIB);
}

void resident_warn_of_fuse_timeouts(void)
{
	static const char *const names[] = {"default_request_timeout", "max_request_timeout"};
	char path[64], text[32];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "/proc/sys/fs/fuse/%s", names[i]);
		if (textfile_read(path, text, sizeof(text)) > 0 && strtol(text, NULL, 10) > 0)
			log_warning("fs.fuse.%s is %ld s: the device dies when one request takes longer; set it to 0",
				names[i], strtol(text, NULL, 10));
	}
}

void resident_prepare(struct resident_report *report, bool on_fuse)
{
	resident_io_flusher(report);
	resident_oom_score(report);
	resident_memlock(report);
	resident_nice(report);
	resident_cgroup(report);
	if (on_fuse)
		resident_min_free(report, "/proc/sys/vm/min_free_kbytes");
}

int resident_heap(void)
{
	void *ahead;

	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TRIM_THRESHOLD, -1);
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TOP_PAD, HEAP_TOP_PAD_BYTES);
	ahead = malloc(HEAP_AHEAD_BYTES);
	if (!ahead)
		return -ENOMEM;
	explicit_bzero(ahead, HEAP_AHEAD_BYTES); /* a plain memset before free is optimised away */
	free(ahead);
	return 0;
}

static int lock_memory(int flags)
{
	return mlockall(flags) < 0 ? -errno : 0;
}

int resident_lock_all(void)
{
	return lock_memory(MCL_CURRENT | MCL_FUTURE);
}

/* Without MCL_CURRENT both calls below leave existing mappings as they are. */
int resident_lock_on_fault(void)
{
	return lock_memory(MCL_FUTURE | MCL_ONFAULT);
}

int resident_lock_future(void)
{
	return lock_memory(MCL_FUTURE);
}

/* The flags are the ninth field; the second one, the name, may hold blanks and brackets. */
static bool thread_has_io_flusher(const char *stat_text)
{
	const char *field = strrchr(stat_text, ')');
	int number;

	for (number = 2; field && number < 9; number++)
		field = strchr(field + 1, ' ');
	return field && (strtoul(field + 1, NULL, 10) & TASK_NOIO);
}

int resident_threads_without_io_flusher(void)
{
	char path[64], text[512];
	struct dirent *entry;
	int missing = 0;
	DIR *tasks;

	tasks = opendir("/proc/self/task");
	if (!tasks)
		return -errno;
	while ((entry = readdir(tasks)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", entry->d_name);
		if (textfile_read(path, text, sizeof(text)) < 0 || !thread_has_io_flusher(text))
			missing++;
	}
	closedir(tasks);
	return missing;
}

void resident_hide(void)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}
