// SPDX-License-Identifier: GPL-2.0-or-later
/* The checks of doctor on made-up hosts. */
#include "cli_capture.h"

#include "doctor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "made_host.h"

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

	find(name)->run(host_root, &result);
	if (result.status != status || !strstr(result.found, found))
		fail_msg("%s: %d '%s', not %d '%s'", name, (int)result.status, result.found, (int)status, found);
	assert_int_equal(result.advice[0] == '\0', status == DOCTOR_OK);
}

static void test_kernel(void **state)
{
	(void)state;
	host_put("/proc/sys/kernel/osrelease", "5.10.0-8-amd64\n");
	expect("kernel", DOCTOR_FAIL, "5.10");
	host_put("/proc/sys/kernel/osrelease", "6.1.0-40-amd64\n");
	expect("kernel", DOCTOR_WARN, "noswap");
	host_put("/proc/sys/kernel/osrelease", "6.6.1\n");
	expect("kernel", DOCTOR_OK, "6.6.1");
	host_put("/proc/sys/kernel/osrelease", "6.18.0\n");
	expect("kernel", DOCTOR_OK, "6.18.0");
	host_put("/proc/sys/kernel/osrelease", "10.1.0\n");
	expect("kernel", DOCTOR_OK, "10.1.0");
}

static void test_transports(void **state)
{
	(void)state;
	host_put("/proc/sys/kernel/osrelease", "6.18.0\n");
	expect("fuse", DOCTOR_FAIL, "/dev/fuse");
	expect("loop", DOCTOR_FAIL, "/dev/loop-control");
	expect("ublk", DOCTOR_WARN, "this kernel has none");
	host_put("/lib/modules/6.18.0/modules.dep", "kernel/a.ko:\nkernel/drivers/block/ublk_drv.ko:\n");
	expect("ublk", DOCTOR_WARN, "not loaded");
	host_put("/dev/ublk-control", "");
	expect("ublk", DOCTOR_FAIL, "does not answer");
	host_put("/proc/sys/kernel/io_uring_disabled", "2\n");
	expect("ublk", DOCTOR_FAIL, "io_uring_disabled is 2");
	/* With it, the other transport is a choice. */
	expect("fuse", DOCTOR_WARN, "/dev/fuse");
	expect("loop", DOCTOR_WARN, "/dev/loop-control");
	host_put("/dev/fuse", "");
	expect("fuse", DOCTOR_OK, "opens");
	expect("fuse-timeouts", DOCTOR_OK, "no time limit");
	host_put("/proc/sys/fs/fuse/default_request_timeout", "0\n");
	host_put("/proc/sys/fs/fuse/max_request_timeout", "30\n");
	expect("fuse-timeouts", DOCTOR_WARN, "max_request_timeout 30 s");
	host_put("/proc/sys/fs/fuse/max_pages_limit", "32\n");
	expect("fuse-max-pages", DOCTOR_WARN, "32");
}

static struct doctor_result told_ublk(const char *release, uint64_t features)
{
	struct doctor_result result = {.status = 77};

	host_put("/proc/sys/kernel/osrelease", release);
	doctor_tell_ublk(host_root, features, &result);
	assert_int_equal(result.advice[0] == '\0', result.status == DOCTOR_OK);
	return result;
}

static void test_ublk_features(void **state)
{
	const uint64_t all = (UINT64_C(1) << 21) - 1;
	struct doctor_result result;

	(void)state;
	host_put("/proc/sys/kernel/osrelease", "5.15.0\n");
	expect("ublk", DOCTOR_WARN, "5.15.0 is older");
	result = told_ublk("7.3.4\n", all);
	assert_int_equal(result.status, DOCTOR_OK);
	assert_non_null(strstr(result.found, "NO_AUTO_PART_SCAN"));
	assert_null(strstr(result.found, "without"));
	/* What one can live without, and what not. */
	result = told_ublk("6.12.0\n", all & ~(UINT64_C(1) << 18));
	assert_int_equal(result.status, DOCTOR_OK);
	assert_non_null(strstr(result.found, "without NO_AUTO_PART_SCAN (new devices are read"));
	result = told_ublk("6.12.0\n", all & ~(UINT64_C(1) << 7));
	assert_int_equal(result.status, DOCTOR_WARN);
	assert_non_null(strstr(result.found, "without USER_COPY (requests of at most 2 MiB"));
	result = told_ublk("6.6.0\n", all);
	assert_int_equal(result.status, DOCTOR_WARN);
	assert_non_null(strstr(result.found, "up to 5 s"));
	/* The first driver lacks most; all of it is said. */
	result = told_ublk("6.1.0-40-amd64\n", 0x1e);
	assert_int_equal(result.status, DOCTOR_WARN);
	assert_non_null(strstr(result.found, "has USER_RECOVERY, USER_RECOVERY_REISSUE"));
	assert_non_null(strstr(result.found, "UPDATE_SIZE (a device cannot grow)"));
}

static void expect_takeover(
	const char *release, bool noswap, uint64_t features, enum doctor_status status, const char *found)
{
	struct doctor_result result = {.status = 77};

	host_put("/proc/sys/kernel/osrelease", release);
	doctor_tell_takeover(host_root, noswap, features, &result);
	if (result.status != status || !strstr(result.found, found))
		fail_msg("%s: %d '%s', not %d '%s'", release, (int)result.status, result.found, (int)status, found);
	assert_int_equal(result.advice[0] == '\0', status == DOCTOR_OK);
}

static void test_takeover(void **state)
{
	const uint64_t recovery = UINT64_C(1) << 3, reissue = UINT64_C(1) << 4, other = UINT64_C(1) << 7;

	(void)state;
	/* By the version alone, where nothing can be tried. */
	host_put("/proc/sys/kernel/osrelease", "6.3.9\n");
	expect("takeover", DOCTOR_WARN, "not replaced: its device's I/O fails at once");
	host_put("/proc/sys/kernel/osrelease", "6.8.0\n");
	expect("takeover", DOCTOR_WARN, "FUSE of Linux 6.8.0");
	host_put("/proc/sys/kernel/osrelease", "6.9.0\n");
	expect("takeover", DOCTOR_OK, "is replaced, over FUSE");
	/* What lies in memory that can be swapped out is lost with its server. */
	expect_takeover("6.12.0\n", false, recovery | reissue, DOCTOR_WARN, "without noswap (Linux 6.12.0)");
	expect_takeover("6.12.0\n", true, recovery | reissue | other, DOCTOR_OK, "over ublk and over FUSE");
	expect_takeover("6.6.0\n", true, recovery | reissue, DOCTOR_OK, "over ublk; over FUSE it is not");
	expect_takeover("6.12.0\n", true, recovery | other, DOCTOR_WARN, "over FUSE, but not over ublk");
	expect_takeover("6.12.0\n", true, reissue, DOCTOR_WARN, "over FUSE, but not over ublk");
	expect_takeover("6.6.0\n", true, other, DOCTOR_WARN, "FUSE of Linux 6.6.0");
}

static void test_settings(void **state)
{
	(void)state;
	host_put("/proc/sys/vm/min_free_kbytes", "16383\n");
	expect("min-free", DOCTOR_FAIL, "16383");
	host_put("/proc/sys/vm/min_free_kbytes", "16384\n");
	expect("min-free", DOCTOR_OK, "16384");
	host_put("/proc/sys/vm/min_free_kbytes", "100\n");
	expect("min-free", DOCTOR_FAIL, "100");
	host_put("/dev/ublk-control", "");
	expect("min-free", DOCTOR_OK, "100, enough for ublk");
	host_put("/proc/sys/vm/page-cluster", "0\n");
	expect("page-cluster", DOCTOR_WARN, "reads of 1 pages");
	host_put("/proc/sys/vm/page-cluster", "3\n");
	expect("page-cluster", DOCTOR_OK, "8 pages");
	host_put("/proc/sys/vm/swappiness", "0\n");
	expect("swappiness", DOCTOR_WARN, "0");
	host_put("/sys/module/zswap/parameters/enabled", "Y\n");
	expect("zswap", DOCTOR_WARN, "zswap");
	host_put("/sys/module/zswap/parameters/enabled", "N\n");
	expect("zswap", DOCTOR_OK, "");
	host_put("/proc/sys/vm/overcommit_memory", "2\n");
	expect("overcommit", DOCTOR_WARN, "2");
}

static void test_huge_pages(void **state)
{
	(void)state;
	expect("huge-pages", DOCTOR_WARN, "no transparent huge pages");
	host_put("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
	expect("huge-pages", DOCTOR_WARN, "off");
	host_put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
	host_put("/sys/kernel/mm/transparent_hugepage/defrag", "always defer [madvise] never\n");
	host_put("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "16777216\n");
	expect("huge-pages", DOCTOR_OK, "16384 KiB: enabled madvise, defrag madvise");
	host_put("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size advise never [deny] force\n");
	expect("image-huge-pages", DOCTOR_WARN, "tmpfs");
	host_put("/proc/vmstat", "thp_swpout 10\nthp_swpout_fallback 30\n");
	expect("thp-swap", DOCTOR_WARN, "10 huge pages were swapped out whole, 30");
	host_put("/proc/vmstat", "thp_swpout 30\nthp_swpout_fallback 10\n");
	expect("thp-swap", DOCTOR_OK, "30");
}

static void test_swaps(void **state)
{
	(void)state;
	host_put("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 8 0 -2\n");
	expect("ghosts", DOCTOR_OK, "");
	host_put("/proc/swaps",
		"Filename Type Size Used Priority\n/dev/sda2 partition 8 0 -2\n/dev/ublkb0\\040(deleted) "
		"partition 8 4 5\n");
	expect("ghosts", DOCTOR_FAIL, "/dev/ublkb0");
	host_put("/proc/cmdline", "root=/dev/sda1 noresume=1 quiet\n");
	expect("hibernation", DOCTOR_OK, "");
	host_put("/proc/cmdline", "root=/dev/sda1 resume=/dev/sda2 quiet\n");
	expect("hibernation", DOCTOR_WARN, "(resume=/dev/sda2)");
}

/* How limits are found: cgroup_test. */
static void test_cgroup(void **state)
{
	(void)state;
	expect("cgroup", DOCTOR_OK, "");
	host_put("/proc/self/mountinfo", "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	host_put("/proc/self/cgroup", "0::/a.service\n");
	host_put("/sys/fs/cgroup/a.service/memory.max", "max\n");
	expect("cgroup", DOCTOR_OK, "");
	host_put("/sys/fs/cgroup/a.service/memory.max", "4096\n");
	expect("cgroup", DOCTOR_FAIL, "/sys/fs/cgroup/a.service/memory.max is 4096");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kernel, host_make, host_remove),
		cmocka_unit_test_setup_teardown(test_transports, host_make, host_remove),
		cmocka_unit_test_setup_teardown(test_ublk_features, host_make, host_remove),
		cmocka_unit_test_setup_teardown(test_takeover, host_make, host_remove),
		cmocka_unit_test_setup_teardown(test_settings, host_make, host_remove),
		cmocka_unit_test_setup_teardown(test_huge_pages, host_make, host_remove),
		cmocka_unit_test_setup_teardown(test_swaps, host_make, host_remove),
		cmocka_unit_test_setup_teardown(test_cgroup, host_make, host_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
