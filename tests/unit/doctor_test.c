// SPDX-License-Identifier: GPL-2.0-or-later
/* The checks of doctor on made-up hosts. */
#include "cli_capture.h"

#include "doctor.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

static char root[64];

static int remove_entry(const char *path, const struct stat *status, int flag, struct FTW *ftw)
{
	(void)status;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/folioswap-doctor-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	(void)state;
	return nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Writes a file of the made-up host, with the directories above it. */
static void put(const char *path, const char *text)
{
	char full[512];
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	file = fopen(full, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static const struct doctor_check *find(const char *name)
{
	const struct doctor_check *const lists[] = {doctor_kernel_checks, doctor_memory_checks, doctor_device_checks};

	for (unsigned i = 0; i < 3; i++)
		for (const struct doctor_check *check = lists[i]; check->name; check++)
			if (strcmp(check->name, name) == 0)
				return check;
	fail_msg("no check '%s'", name);
	return NULL;
}

static void expect(const char *name, enum doctor_status status, const char *found)
{
	struct doctor_result result = {.status = 77};

	find(name)->run(root, &result);
	if (result.status != status || !strstr(result.found, found))
		fail_msg("%s: %d '%s', not %d '%s'", name, (int)result.status, result.found, (int)status, found);
	assert_int_equal(result.advice[0] == '\0', status == DOCTOR_OK);
}

static void test_kernel(void **state)
{
	(void)state;
	put("/proc/sys/kernel/osrelease", "5.10.0-8-amd64\n");
	expect("kernel", DOCTOR_FAIL, "5.10");
	put("/proc/sys/kernel/osrelease", "6.1.0-40-amd64\n");
	expect("kernel", DOCTOR_WARN, "noswap");
	put("/proc/sys/kernel/osrelease", "6.6.1\n");
	expect("kernel", DOCTOR_WARN, "FUSE");
	put("/proc/sys/kernel/osrelease", "6.18.0\n");
	expect("kernel", DOCTOR_OK, "6.18.0");
	put("/proc/sys/kernel/osrelease", "10.1.0\n");
	expect("kernel", DOCTOR_OK, "10.1.0");
}

static void test_transports(void **state)
{
	(void)state;
	put("/proc/sys/kernel/osrelease", "6.18.0\n");
	expect("fuse", DOCTOR_FAIL, "/dev/fuse");
	expect("loop", DOCTOR_FAIL, "/dev/loop-control");
	expect("ublk", DOCTOR_WARN, "no ublk");
	put("/lib/modules/6.18.0/modules.dep", "kernel/a.ko:\nkernel/drivers/block/ublk_drv.ko:\n");
	expect("ublk", DOCTOR_WARN, "not loaded");
	put("/dev/ublk-control", "");
	expect("ublk", DOCTOR_OK, "");
	expect("fuse", DOCTOR_OK, "there is ublk");
	put("/dev/fuse", "");
	expect("fuse", DOCTOR_OK, "opens");
	expect("fuse-timeouts", DOCTOR_OK, "no time limit");
	put("/proc/sys/fs/fuse/default_request_timeout", "0\n");
	put("/proc/sys/fs/fuse/max_request_timeout", "30\n");
	expect("fuse-timeouts", DOCTOR_WARN, "max_request_timeout 30 s");
	put("/proc/sys/fs/fuse/max_pages_limit", "32\n");
	expect("fuse-max-pages", DOCTOR_WARN, "32");
	put("/proc/sys/kernel/io_uring_disabled", "2\n");
	expect("io-uring", DOCTOR_WARN, "2");
}

static void test_settings(void **state)
{
	(void)state;
	put("/proc/sys/vm/min_free_kbytes", "16383\n");
	expect("min-free", DOCTOR_FAIL, "16383");
	put("/proc/sys/vm/min_free_kbytes", "16384\n");
	expect("min-free", DOCTOR_OK, "16384");
	put("/proc/sys/vm/min_free_kbytes", "100\n");
	put("/dev/ublk-control", "");
	expect("min-free", DOCTOR_OK, "not for fuse");
	put("/proc/sys/vm/page-cluster", "0\n");
	expect("page-cluster", DOCTOR_WARN, "reads of 1 pages");
	put("/proc/sys/vm/page-cluster", "3\n");
	expect("page-cluster", DOCTOR_OK, "8 pages");
	put("/proc/sys/vm/swappiness", "0\n");
	expect("swappiness", DOCTOR_WARN, "0");
	put("/sys/module/zswap/parameters/enabled", "Y\n");
	expect("zswap", DOCTOR_WARN, "zswap");
	put("/sys/module/zswap/parameters/enabled", "N\n");
	expect("zswap", DOCTOR_OK, "");
	put("/proc/sys/vm/overcommit_memory", "2\n");
	expect("overcommit", DOCTOR_WARN, "2");
}

static void test_huge_pages(void **state)
{
	(void)state;
	expect("huge-pages", DOCTOR_WARN, "no transparent huge pages");
	put("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
	expect("huge-pages", DOCTOR_WARN, "off");
	put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
	put("/sys/kernel/mm/transparent_hugepage/defrag", "always defer [madvise] never\n");
	put("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "16777216\n");
	expect("huge-pages", DOCTOR_OK, "16384 KiB: enabled madvise, defrag madvise");
	put("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size advise never [deny] force\n");
	expect("image-huge-pages", DOCTOR_WARN, "tmpfs");
	put("/proc/vmstat", "thp_swpout 10\nthp_swpout_fallback 30\n");
	expect("thp-swap", DOCTOR_WARN, "10 huge pages were swapped out whole, 30");
	put("/proc/vmstat", "thp_swpout 30\nthp_swpout_fallback 10\n");
	expect("thp-swap", DOCTOR_OK, "30");
}

static void test_swaps(void **state)
{
	(void)state;
	put("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 8 0 -2\n");
	expect("ghosts", DOCTOR_OK, "");
	put("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 8 0 -2\n/dev/ublkb0\\040(deleted) "
			   "partition 8 4 5\n");
	expect("ghosts", DOCTOR_FAIL, "/dev/ublkb0");
	put("/proc/cmdline", "root=/dev/sda1 noresume=1 quiet\n");
	expect("hibernation", DOCTOR_OK, "");
	put("/proc/cmdline", "root=/dev/sda1 resume=/dev/sda2 quiet\n");
	expect("hibernation", DOCTOR_WARN, "(resume=/dev/sda2)");
}

static void test_cgroup_v2(void **state)
{
	(void)state;
	expect("cgroup", DOCTOR_OK, "");
	put("/proc/self/mounts", "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
	put("/proc/self/cgroup", "0::/system.slice/a.service\n");
	put("/sys/fs/cgroup/system.slice/a.service/memory.max", "max\n");
	put("/sys/fs/cgroup/system.slice/a.service/memory.high", "max\n");
	put("/sys/fs/cgroup/system.slice/a.service/cpu.max", "max 100000\n");
	put("/sys/fs/cgroup/system.slice/memory.max", "max\n");
	put("/sys/fs/cgroup/other/memory.max", "4096\n");
	expect("cgroup", DOCTOR_OK, "");
	put("/sys/fs/cgroup/system.slice/memory.high", "1073741824\n");
	expect("cgroup", DOCTOR_FAIL, "/sys/fs/cgroup/system.slice/memory.high is 1073741824");
	put("/sys/fs/cgroup/system.slice/memory.high", "max\n");
	put("/sys/fs/cgroup/system.slice/a.service/cpu.max", "50000 100000\n");
	expect("cgroup", DOCTOR_FAIL, "cpu.max is 50000");
}

static void test_cgroup_v1(void **state)
{
	(void)state;
	put("/proc/self/mounts", "cgroup /sys/fs/cgroup/memory cgroup rw,nosuid,memory 0 0\n"
				 "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n");
	put("/proc/self/cgroup", "4:memory:/a/b\n2:cpu,cpuacct:/\n0::/\n");
	put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
	expect("cgroup", DOCTOR_OK, "");
	put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "268435456\n");
	expect("cgroup", DOCTOR_FAIL, "/sys/fs/cgroup/memory/a/memory.limit_in_bytes is 268435456");
	put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "20000\n");
	expect("cgroup", DOCTOR_FAIL, "cpu.cfs_quota_us is 20000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kernel, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_transports, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_settings, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_huge_pages, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_swaps, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_cgroup_v2, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_cgroup_v1, make_root, remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
