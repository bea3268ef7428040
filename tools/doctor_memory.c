// SPDX-License-Identifier: GPL-2.0-or-later
/* Checks: huge pages, limits, and the settings of reclaim and swap. */
#include "doctor.h"

#include "cgroup.h"
#include "cleanup.h"
#include "control.h"
#include "swaps.h"
#include "ublk_control.h"

#include <string.h>

#define TEXT_OF(macro) TEXT_OF_(macro)
#define TEXT_OF_(text) #text
#define THP "/sys/kernel/mm/transparent_hugepage/"

static void check_huge_pages(const char *root, struct doctor_result *result)
{
	char enabled[32], defrag[32];
	long long bytes = 0;

	if (!doctor_read_choice(root, THP "enabled", enabled, sizeof(enabled))) {
		doctor_warn(result, "use a kernel with CONFIG_TRANSPARENT_HUGEPAGE",
			"no transparent huge pages: everything is swapped out in base pages");
		return;
	}
	doctor_read_choice(root, THP "defrag", defrag, sizeof(defrag));
	doctor_read_number(root, THP "hpage_pmd_size", &bytes);
	if (strcmp(enabled, "never") == 0)
		doctor_warn(result, "echo madvise > " THP "enabled",
			"huge pages are off: everything is swapped out in base pages");
	else
		doctor_ok(result, "huge pages of %lld KiB: enabled %s, defrag %s", bytes / 1024, enabled, defrag);
}

static void check_shmem(const char *root, struct doctor_result *result)
{
	char enabled[32];

	if (!doctor_read_choice(root, THP "shmem_enabled", enabled, sizeof(enabled)))
		doctor_ok(result, "no huge pages for tmpfs: the image has base pages");
	else if (strcmp(enabled, "deny") == 0)
		doctor_warn(result, "echo never > " THP "shmem_enabled (mounts may then still ask for them)",
			"tmpfs may have no huge pages: the image takes longer to map and to read");
	else
		doctor_ok(result, "shmem_enabled is %s: the image asks for huge pages by itself", enabled);
}

/* The counters tell what no setting does: whether huge pages leave memory whole. */
static void check_thp_swap(const char *root, struct doctor_result *result)
{
	long long whole, split;

	if (!doctor_read_key(root, "/proc/vmstat", "thp_swpout", &whole) ||
		!doctor_read_key(root, "/proc/vmstat", "thp_swpout_fallback", &split))
		doctor_warn(result, "use a kernel with CONFIG_THP_SWAP",
			"this kernel does not count huge pages that are swapped out");
	else if (whole + split == 0)
		doctor_ok(result, "no huge page was swapped out since the start");
	else if (split > whole)
		doctor_warn(result,
			"more swap space, --unit of the huge page size, and discard keep whole clusters free",
			"%lld huge pages were swapped out whole, %lld had to be split", whole, split);
	else
		doctor_ok(result, "%lld huge pages were swapped out whole, %lld split", whole, split);
}

static void check_cgroup(const char *root, struct doctor_result *result)
{
	char limit[300];

	if (cgroup_find_limit(root, limit, sizeof(limit)))
		doctor_fail(result, "start the daemon in a group without limits, e.g. as a system service",
			"%s: a limit on the daemon throttles or kills what keeps others' memory", limit);
	else
		doctor_ok(result, "no limit of memory or CPU on this control group and those above it");
}

static void check_min_free(const char *root, struct doctor_result *result)
{
	long long kib = 0;

	doctor_read_number(root, "/proc/sys/vm/min_free_kbytes", &kib);
	if (kib >= CONTROL_MIN_FREE_KIB)
		doctor_ok(result, "vm.min_free_kbytes is %lld", kib);
	else if (doctor_exists(root, UBLK_CONTROL_NODE))
		doctor_ok(result, "vm.min_free_kbytes is %lld, enough for ublk; the fuse transport wants %d", kib,
			CONTROL_MIN_FREE_KIB);
	else
		doctor_fail(result, "sysctl vm.min_free_kbytes=" TEXT_OF(CONTROL_MIN_FREE_KIB) " or more",
			"vm.min_free_kbytes is %lld: FUSE and loop would hang when the machine is short of memory",
			kib);
}

static void check_page_cluster(const char *root, struct doctor_result *result)
{
	long long shift = 0;

	doctor_read_number(root, "/proc/sys/vm/page-cluster", &shift);
	if (shift < 3)
		doctor_warn(result, "sysctl vm.page-cluster=3",
			"vm.page-cluster is %lld: reads of %lld pages, so a frame is decoded for little", shift,
			1LL << (shift > 0 ? shift : 0));
	else
		doctor_ok(result, "vm.page-cluster is %lld: reads of up to %lld pages", shift, 1LL << shift);
}

static void check_swappiness(const char *root, struct doctor_result *result)
{
	long long swappiness = 60;

	doctor_read_number(root, "/proc/sys/vm/swappiness", &swappiness);
	if (swappiness < 10)
		doctor_warn(result, "sysctl vm.swappiness=60 to 150",
			"vm.swappiness is %lld: the kernel drops file pages rather than swap", swappiness);
	else
		doctor_ok(result, "vm.swappiness is %lld", swappiness);
}

static void check_zswap(const char *root, struct doctor_result *result)
{
	char enabled[8];

	doctor_read(root, "/sys/module/zswap/parameters/enabled", enabled, sizeof(enabled));
	if (enabled[0] == 'Y' || enabled[0] == '1')
		doctor_warn(result, "echo N > /sys/module/zswap/parameters/enabled",
			"zswap stands in front: it takes the pages first, one by one");
	else
		doctor_ok(result, "no zswap in front");
}

static void check_overcommit(const char *root, struct doctor_result *result)
{
	long long mode = 0;

	doctor_read_number(root, "/proc/sys/vm/overcommit_memory", &mode);
	if (mode == 2)
		doctor_warn(result, "sysctl vm.overcommit_memory=0, or keep the commit limit high",
			"vm.overcommit_memory is 2: swapoff is refused when it would lower the commit limit too far");
	else
		doctor_ok(result, "vm.overcommit_memory is %lld", mode);
}

static void check_ghosts(const char *root, struct doctor_result *result)
{
	struct swap_entry entries[SWAPS_MAX];
	char path[256];
	int count = swaps_read(doctor_path(root, "/proc/swaps", path, sizeof(path)), entries, SWAPS_MAX);

	for (int i = 0; i < count; i++) {
		if (entries[i].deleted) {
			doctor_fail(result, "restart the machine: what is swapped out there cannot be had back",
				"/proc/swaps lists '%s (deleted)'", entries[i].path);
			return;
		}
	}
	doctor_ok(result, "no swap whose device is gone");
}

static void check_hibernation(const char *root, struct doctor_result *result)
{
	char modes[128], command_line[2048];
	const char *resume;

	doctor_read(root, "/proc/cmdline", command_line, sizeof(command_line));
	resume = strstr(command_line, "resume=");
	if (resume && (resume == command_line || resume[-1] == ' '))
		doctor_warn(result,
			"'folioswap del --all' before hibernating: the daemon is frozen then and cannot serve",
			"this system is set up to hibernate (%.*s)", (int)strcspn(resume, " "), resume);
	else if (doctor_read_choice(root, "/sys/power/disk", modes, sizeof(modes)) && strcmp(modes, "disabled") != 0)
		doctor_ok(result, "hibernation is possible but no resume= is set up");
	else
		doctor_ok(result, "no hibernation");
}

const struct doctor_check doctor_memory_checks[] = {
	{"huge-pages", check_huge_pages},
	{"image-huge-pages", check_shmem},
	{"thp-swap", check_thp_swap},
	{"cgroup", check_cgroup},
	{"min-free", check_min_free},
	{"page-cluster", check_page_cluster},
	{"swappiness", check_swappiness},
	{"zswap", check_zswap},
	{"overcommit", check_overcommit},
	{"ghosts", check_ghosts},
	{"hibernation", check_hibernation},
	{NULL, NULL},
};
