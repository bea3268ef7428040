// SPDX-License-Identifier: GPL-2.0-or-later
/* What looks at the surroundings, on made-up ones: control groups, sysctl, /proc/swaps, threads, the image file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control.h"
#include "imagefile.h"
#include "resident.h"
#include "swaps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif
#define TMPFS_MAGIC_NUMBER 0x01021994
#define NO_LIMIT_V1 "9223372036854771712\n"

static char base[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(base, sizeof(base), "/tmp/resident_test.XXXXXX");
	return mkdtemp(base) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command);
}

/* Writes a file below base, making its directories. */
static void put(const char *file, const char *text)
{
	char path[256], *slash;
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", base, file);
	for (slash = path + strlen(base) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
		*slash = '/';
	}
	out = fopen(path, "w");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	fclose(out);
}

static void check(struct resident_report *report)
{
	char cgroup[128], mountinfo[128];

	memset(report, 0, sizeof(*report));
	snprintf(cgroup, sizeof(cgroup), "%s/cgroup", base);
	snprintf(mountinfo, sizeof(mountinfo), "%s/mountinfo", base);
	resident_cgroup(report, cgroup, mountinfo);
}

static void assert_limit(const char *word)
{
	struct resident_report report;

	check(&report);
	assert_int_equal(report.unsafe, CONTROL_UNSAFE_CGROUP);
	if (!strstr(report.detail[5], word))
		fail_msg("'%s' is not in '%s'", word, report.detail[5]);
}

static void assert_no_limit(void)
{
	struct resident_report report;

	check(&report);
	if (report.unsafe)
		fail_msg("a limit where there is none: %s", report.detail[5]);
}

/* base/v2 is mounted with the given root; the process is in the given group. */
static void put_v2(const char *root, const char *group)
{
	char text[512];

	snprintf(text, sizeof(text),
		"30 23 0:26 / /proc rw,nosuid shared:5 - proc proc rw\n"
		"35 24 0:30 %s %s/v2 rw,nosuid,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
		root, base);
	put("mountinfo", text);
	snprintf(text, sizeof(text), "0::%s\n", group);
	put("cgroup", text);
}

static void v2_limits_are_found_on_the_group_and_all_above(void **state)
{
	(void)state;
	put_v2("/", "/user.slice/session-1.scope");
	put("v2/cgroup.controllers", "cpu memory\n");
	put("v2/user.slice/memory.max", "max\n");
	put("v2/user.slice/memory.high", "max\n");
	put("v2/user.slice/cpu.max", "max 100000\n");
	put("v2/user.slice/session-1.scope/memory.max", "max\n");
	put("v2/user.slice/session-1.scope/memory.high", "max\n");
	put("v2/user.slice/session-1.scope/cpu.max", "max 100000\n");
	assert_no_limit();

	put("v2/user.slice/session-1.scope/memory.max", "536870912\n");
	assert_limit("session-1.scope/memory.max is 536870912");
	put("v2/user.slice/session-1.scope/memory.max", "max\n");

	put("v2/user.slice/memory.high", "1073741824\n");
	assert_limit("user.slice/memory.high is 1073741824");
	put("v2/user.slice/memory.high", "max\n");

	put("v2/user.slice/cpu.max", "50000 100000\n");
	assert_limit("user.slice/cpu.max is 50000 100000");
	put("v2/user.slice/cpu.max", "max 100000\n");

	/* In a container the root of what is mounted may itself be limited. */
	put("v2/memory.max", "0\n");
	assert_limit("v2/memory.max is 0");
}

static void v1_limits_are_found_in_each_hierarchy(void **state)
{
	char text[512];

	(void)state;
	snprintf(text, sizeof(text),
		"36 31 0:33 / %s/memory rw - cgroup cgroup rw,memory\n"
		"37 31 0:34 / %s/cpu rw,relatime shared:3 - cgroup cgroup rw,cpu,cpuacct\n",
		base, base);
	put("mountinfo", text);
	put("cgroup", "5:memory:/a/b\n4:cpu,cpuacct:/c\n3:cpuset:/d\n1:name=systemd:/e\n0::/\n");
	put("memory/memory.limit_in_bytes", NO_LIMIT_V1);
	put("memory/a/memory.limit_in_bytes", NO_LIMIT_V1);
	put("memory/a/b/memory.limit_in_bytes", NO_LIMIT_V1);
	put("cpu/c/cpu.cfs_quota_us", "-1\n");
	assert_no_limit();

	put("memory/a/memory.limit_in_bytes", "268435456\n");
	assert_limit("memory/a/memory.limit_in_bytes is 268435456");
	put("memory/a/memory.limit_in_bytes", NO_LIMIT_V1);

	put("cpu/c/cpu.cfs_quota_us", "20000\n");
	assert_limit("cpu/c/cpu.cfs_quota_us is 20000");
}

static void groups_are_seen_from_the_root_that_is_mounted(void **state)
{
	(void)state;
	/* The mount shows a part of the hierarchy; the group's path is from its top. */
	put_v2("/docker/123", "/docker/123/inner");
	put("v2/inner/memory.max", "max\n");
	put("v2/memory.max", "max\n");
	assert_no_limit();
	put("v2/inner/memory.max", "4096\n");
	assert_limit("v2/inner/memory.max is 4096");

	/* A group outside of the mount, or of the name space: only the mount's own root can be looked at. */
	put_v2("/docker/123", "/elsewhere");
	assert_no_limit();
	put_v2("/", "/../../elsewhere");
	assert_no_limit();
	put("v2/memory.max", "4096\n");
	assert_limit("v2/memory.max is 4096");
}

static void nothing_is_found_where_nothing_is(void **state)
{
	(void)state;
	assert_no_limit();
	put("cgroup", "0::/x\n\nnonsense\n4:memory\n");
	assert_no_limit();
	put("mountinfo", "nonsense\n");
	assert_no_limit();
}

static void min_free_is_compared_as_a_number(void **state)
{
	static const struct {
		const char *text;
		bool is_enough;
	} cases[] = {{"16383\n", false}, {"16384\n", true}, {"67584\n", true}, {"0\n", false}, {"", false},
		{"many\n", false}};
	struct resident_report report;
	char path[128];
	size_t i;

	(void)state;
	snprintf(path, sizeof(path), "%s/min_free", base);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put("min_free", cases[i].text);
		memset(&report, 0, sizeof(report));
		resident_min_free(&report, path);
		assert_int_equal(report.unsafe, cases[i].is_enough ? 0 : CONTROL_UNSAFE_MIN_FREE);
	}
	memset(&report, 0, sizeof(report));
	resident_min_free(&report, "/nonexistent");
	assert_int_equal(report.unsafe, CONTROL_UNSAFE_MIN_FREE);
}

static void threads_are_looked_at_one_by_one(void **state)
{
	(void)state;
	if (prctl(PR_SET_IO_FLUSHER, 0, 0, 0, 0) < 0) {
		assert_int_equal(resident_threads_without_io_flusher(), 1); /* not allowed here: this one lacks it */
		return;
	}
	assert_int_equal(resident_threads_without_io_flusher(), 1);
	prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
	assert_int_equal(resident_threads_without_io_flusher(), 0);
	prctl(PR_SET_IO_FLUSHER, 0, 0, 0, 0);
}

static bool swapped(const char *swaps, const char *node)
{
	char path[128];

	put("swaps", swaps);
	snprintf(path, sizeof(path), "%s/swaps", base);
	return swaps_file_has_node(path, node);
}

static void swaps_are_matched_by_device(void **state)
{
	static const char header[] = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
	char text[1024];

	(void)state;
	assert_false(swapped("", "/dev/loop3"));
	assert_false(swapped(header, "/dev/loop3"));
	snprintf(text, sizeof(text), "%s/dev/loop3                              partition\t65532\t\t0\t\t-2\n", header);
	assert_true(swapped(text, "/dev/loop3"));
	assert_false(swapped(text, "/dev/loop"));
	assert_false(swapped(text, "/dev/loop33"));
	snprintf(text, sizeof(text), "%s/swapfile file 1 0 -2\n/dev/loop3\\040(deleted) partition 65532 115 -3\n",
		header);
	assert_true(swapped(text, "/dev/loop3"));
	assert_false(swapped(text, "/dev/loop4"));
	snprintf(text, sizeof(text), "%s/dev/my\\040disk partition 1 0 -2\n", header);
	assert_true(swapped(text, "/dev/my disk"));
	assert_false(swaps_file_has_node("/nonexistent/swaps", "/dev/loop3")); /* a kernel without swap */
}

static void swaps_are_matched_by_another_name_of_the_device(void **state)
{
	char text[256], link_path[128];
	struct stat status;

	(void)state;
	if (stat("/dev/loop0", &status) < 0)
		skip();
	snprintf(link_path, sizeof(link_path), "%s/by-name", base);
	assert_int_equal(symlink("/dev/loop0", link_path), 0);
	snprintf(text, sizeof(text), "Filename Type Size Used Priority\n%s partition 1 0 -2\n", link_path);
	assert_true(swapped(text, "/dev/loop0"));
	assert_false(swapped(text, "/dev/loop1"));
}

static void the_image_is_private_and_cannot_be_swapped(void **state)
{
	bool swappable = true;
	struct statfs where;
	struct stat status;
	char byte = 'x';
	int fd, read_fd;

	(void)state;
	fd = imagefile_create(&swappable);
	if (fd == -EPERM)
		skip();
	assert_true(fd >= 0);
	assert_int_equal(fstatfs(fd, &where), 0);
	assert_int_equal(where.f_type, TMPFS_MAGIC_NUMBER);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_nlink, 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
	assert_int_equal(pwrite(fd, &byte, 1, ((off_t)1 << 40) - 1), 1);

	read_fd = imagefile_reopen_readonly(fd);
	assert_true(read_fd >= 0);
	byte = 0;
	assert_int_equal(pread(read_fd, &byte, 1, ((off_t)1 << 40) - 1), 1);
	assert_int_equal(byte, 'x');
	assert_int_equal(pwrite(read_fd, &byte, 1, 0), -1);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, read_fd, 0), MAP_FAILED);
	close(read_fd);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(v2_limits_are_found_on_the_group_and_all_above, set_up, tear_down),
		cmocka_unit_test_setup_teardown(v1_limits_are_found_in_each_hierarchy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(groups_are_seen_from_the_root_that_is_mounted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_is_found_where_nothing_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(min_free_is_compared_as_a_number, set_up, tear_down),
		cmocka_unit_test(threads_are_looked_at_one_by_one),
		cmocka_unit_test_setup_teardown(swaps_are_matched_by_device, set_up, tear_down),
		cmocka_unit_test_setup_teardown(swaps_are_matched_by_another_name_of_the_device, set_up, tear_down),
		cmocka_unit_test(the_image_is_private_and_cannot_be_swapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
