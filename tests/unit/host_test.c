// SPDX-License-Identifier: GPL-2.0-or-later
/* What base reads of the host, on a made-up one: small files, control groups, /proc/swaps; and who has a device open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cgroup.h"
#include "made_host.h"
#include "opener.h"
#include "swaps.h"
#include "textfile.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_LIMIT_V1 "9223372036854771712\n"

/* ---- small files ---- */

static void text_files_are_read_up_to_what_fits(void **state)
{
	char path[128], text[8] = "before";

	(void)state;
	snprintf(path, sizeof(path), "%s/file", host_root);
	assert_int_equal(textfile_read(path, text, sizeof(text)), -ENOENT);
	assert_string_equal(text, "before");
	host_put("/file", "12\n34\n5678");
	assert_int_equal(textfile_read(path, text, sizeof(text)), 7);
	assert_string_equal(text, "12\n34\n5");
	assert_true(textfile_line(path, text, sizeof(text)));
	assert_string_equal(text, "12");
	host_put("/file", "");
	assert_false(textfile_line(path, text, sizeof(text)));
	assert_string_equal(text, "");
	assert_int_equal(textfile_read(host_root, text, sizeof(text)), -EISDIR);
}

/* ---- control groups ---- */

static void assert_limit(const char *wanted)
{
	char text[300] = "";

	assert_true(cgroup_find_limit(host_root, text, sizeof(text)));
	assert_string_equal(text, wanted);
}

static void assert_no_limit(void)
{
	char text[300] = "untouched";

	if (cgroup_find_limit(host_root, text, sizeof(text)))
		fail_msg("a limit where there is none: %s", text);
	assert_string_equal(text, "untouched");
}

/* /v2 is mounted with the given root; the process is in the given group. */
static void put_v2(const char *root, const char *group)
{
	char text[512];

	snprintf(text, sizeof(text),
		"30 23 0:26 / /proc rw,nosuid shared:5 - proc proc rw\n"
		"35 24 0:30 %s /v2 rw,nosuid,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
		root);
	host_put("/proc/self/mountinfo", text);
	snprintf(text, sizeof(text), "0::%s\n", group);
	host_put("/proc/self/cgroup", text);
}

static void v2_limits_are_found_on_the_group_and_all_above(void **state)
{
	(void)state;
	put_v2("/", "/user.slice/session-1.scope");
	host_put("/v2/cgroup.controllers", "cpu memory\n");
	host_put("/v2/user.slice/memory.max", "max\n");
	host_put("/v2/user.slice/memory.high", "max\n");
	host_put("/v2/user.slice/cpu.max", "max 100000\n");
	host_put("/v2/user.slice/session-1.scope/memory.max", "max\n");
	host_put("/v2/user.slice/session-1.scope/memory.high", "max\n");
	host_put("/v2/user.slice/session-1.scope/cpu.max", "max 100000\n");
	assert_no_limit();

	host_put("/v2/user.slice/session-1.scope/memory.max", "536870912\n");
	assert_limit("/v2/user.slice/session-1.scope/memory.max is 536870912");
	host_put("/v2/user.slice/session-1.scope/memory.max", "max\n");

	host_put("/v2/user.slice/memory.high", "1073741824\n");
	assert_limit("/v2/user.slice/memory.high is 1073741824");
	host_put("/v2/user.slice/memory.high", "max\n");

	host_put("/v2/user.slice/cpu.max", "50000 100000\n");
	assert_limit("/v2/user.slice/cpu.max is 50000 100000");
	host_put("/v2/user.slice/cpu.max", "max 100000\n");

	/* In a container the root of what is mounted may itself be limited. */
	host_put("/v2/memory.max", "0\n");
	assert_limit("/v2/memory.max is 0");
}

static void v1_limits_are_found_in_each_hierarchy(void **state)
{
	(void)state;
	host_put("/proc/self/mountinfo", "36 31 0:33 / /memory rw - cgroup cgroup rw,memory\n"
					 "37 31 0:34 / /cpu rw,relatime shared:3 - cgroup cgroup rw,cpu,cpuacct\n");
	host_put("/proc/self/cgroup", "5:memory:/a/b\n4:cpu,cpuacct:/c\n3:cpuset:/d\n1:name=systemd:/e\n0::/\n");
	host_put("/memory/memory.limit_in_bytes", NO_LIMIT_V1);
	host_put("/memory/a/memory.limit_in_bytes", NO_LIMIT_V1);
	host_put("/memory/a/b/memory.limit_in_bytes", NO_LIMIT_V1);
	host_put("/cpu/c/cpu.cfs_quota_us", "-1\n");
	assert_no_limit();

	host_put("/memory/a/memory.limit_in_bytes", "268435456\n");
	assert_limit("/memory/a/memory.limit_in_bytes is 268435456");
	host_put("/memory/a/memory.limit_in_bytes", NO_LIMIT_V1);

	host_put("/cpu/c/cpu.cfs_quota_us", "20000\n");
	assert_limit("/cpu/c/cpu.cfs_quota_us is 20000");
}

static void groups_are_seen_from_the_root_that_is_mounted(void **state)
{
	(void)state;
	/* The mount shows a part of the hierarchy; the group's path is from its top. */
	put_v2("/docker/123", "/docker/123/inner");
	host_put("/v2/inner/memory.max", "max\n");
	host_put("/v2/memory.max", "max\n");
	assert_no_limit();
	host_put("/v2/inner/memory.max", "4096\n");
	assert_limit("/v2/inner/memory.max is 4096");

	/* A group outside of the mount, or of the name space: only the mount's own root can be looked at. */
	put_v2("/docker/123", "/elsewhere");
	assert_no_limit();
	put_v2("/", "/../../elsewhere");
	assert_no_limit();
	host_put("/v2/memory.max", "4096\n");
	assert_limit("/v2/memory.max is 4096");
}

static void nothing_is_found_where_nothing_is(void **state)
{
	(void)state;
	assert_no_limit();
	host_put("/proc/self/cgroup", "0::/x\n\nnonsense\n4:memory\n");
	assert_no_limit();
	host_put("/proc/self/mountinfo", "nonsense\n");
	assert_no_limit();
}

/* ---- swaps ---- */

static void lines_of_swaps_are_taken_apart(void **state)
{
	struct swap_entry entry = {0};

	(void)state;
	assert_int_equal(swaps_parse_line("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n", &entry), -EINVAL);
	assert_int_equal(swaps_parse_line("", &entry), -EINVAL);
	assert_int_equal(
		swaps_parse_line("/dev/loop3                              partition\t1048572\t\t2048\t\t-2\n", &entry),
		0);
	assert_string_equal(entry.path, "/dev/loop3");
	assert_int_equal(entry.size_bytes, 1048572 * KIB);
	assert_int_equal(entry.used_bytes, 2 * MIB);
	assert_int_equal(entry.priority, -2);
	assert_false(entry.deleted);
	assert_int_equal(swaps_parse_line("/dev/loop7\\040(deleted) partition 8 4 100\n", &entry), 0);
	assert_string_equal(entry.path, "/dev/loop7");
	assert_true(entry.deleted);
	assert_int_equal(swaps_parse_line("/a\\040b\\134c file 8 4 5\n", &entry), 0);
	assert_string_equal(entry.path, "/a b\\c");
	assert_false(entry.deleted);
}

static void a_list_of_swaps_is_read_and_searched(void **state)
{
	struct swap_entry entries[40];
	char path[128], text[40 * 90] = "Filename Type Size Used Priority\n";
	size_t length = strlen(text);

	(void)state;
	host_put("/swaps", "Filename Type Size Used Priority\n/dev/none1 partition 8 4 5\n/dev/none2 file 16 0 -2\n"
			   "/dev/none3 file 1 0 1\n");
	snprintf(path, sizeof(path), "%s/swaps", host_root);
	assert_int_equal(swaps_read(path, entries, 2), 2);
	assert_ptr_equal(swaps_find(entries, 2, "/dev/none2"), &entries[1]);
	assert_null(swaps_find(entries, 2, "/dev/none3"));

	/* More than one buffer: no line is lost or cut where one ends. */
	for (int i = 0; i < 40; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length,
			"/dev/a/node/with/a/name/%d%*s %d %d %d\n", i, 40 + i % 7, "partition", i + 1, i, -i);
	host_put("/swaps", text);
	assert_int_equal(swaps_read(path, entries, 40), 40);
	for (int i = 0; i < 40; i++) {
		snprintf(text, sizeof(text), "/dev/a/node/with/a/name/%d", i);
		assert_string_equal(entries[i].path, text);
		assert_int_equal(entries[i].size_bytes, (uint64_t)(i + 1) * 1024);
		assert_int_equal(entries[i].priority, -i);
	}
	unlink(path);
	assert_int_equal(swaps_read(path, entries, 2), -ENOENT);
}

static bool swapped(const char *swaps, const char *node)
{
	char path[128];

	host_put("/swaps", swaps);
	snprintf(path, sizeof(path), "%s/swaps", host_root);
	return swaps_file_has_node(path, node);
}

static void swaps_are_matched_by_device(void **state)
{
	static const char header[] = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
	char text[2048];

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
	snprintf(text, sizeof(text), "%s/%0900d file 1 0 -2\n/dev/loop3 partition 1 0 -2\n", header, 0);
	assert_true(swapped(text, "/dev/loop3")); /* behind a line longer than any buffer of a line */
	assert_true(swaps_file_has_node("/proc/self", "/dev/loop3"));          /* cannot be read: taken for yes */
	assert_false(swaps_file_has_node("/nonexistent/swaps", "/dev/loop3")); /* a kernel without swap */
}

static void swaps_are_matched_by_another_name_of_the_device(void **state)
{
	char text[256], link_path[128];
	struct stat status;

	(void)state;
	if (stat("/dev/loop0", &status) < 0)
		skip();
	snprintf(link_path, sizeof(link_path), "%s/by-name", host_root);
	assert_int_equal(symlink("/dev/loop0", link_path), 0);
	snprintf(text, sizeof(text), "Filename Type Size Used Priority\n%s partition 1 0 -2\n", link_path);
	assert_true(swapped(text, "/dev/loop0"));
	assert_false(swapped(text, "/dev/loop1"));
}

/* ---- openers ---- */

/* A child that has the node open until it is killed; 0: it could not be opened. */
static pid_t hold(const char *node)
{
	int pipe_fds[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(pipe_fds), 0);
	pid = fork();
	if (pid == 0) {
		int fd = open(node, O_RDONLY | O_NONBLOCK);

		if (fd < 0 || write(pipe_fds[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(pipe_fds[1]);
	if (read(pipe_fds[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = 0;
	}
	close(pipe_fds[0]);
	return pid;
}

static void openers_of_a_node_are_found_by_device(void **state)
{
	static const char node[] = "/dev/loop7";
	pid_t others[2] = {0, 0}, pid;
	char link_path[128], name[32] = "";
	struct stat status;

	(void)state;
	/* A device nobody else has open; a name of our own for it must not matter. */
	if (stat(node, &status) < 0 || opener_find(node, others, name, sizeof(name)) != 0)
		skip();
	snprintf(link_path, sizeof(link_path), "%s/loop7", host_root);
	if (mknod(link_path, S_IFBLK | 0600, status.st_rdev) < 0)
		skip();
	for (int own_name = 0; own_name < 2; own_name++) {
		pid = hold(own_name ? link_path : node);
		if (pid == 0)
			skip();
		assert_int_equal(opener_find(node, others, name, sizeof(name)), pid);
		assert_string_equal(name, "host_test");
		others[0] = pid;
		assert_int_equal(opener_find(node, others, name, sizeof(name)), 0);
		others[0] = 0;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		assert_int_equal(opener_find(node, others, name, sizeof(name)), 0);
	}
	assert_int_equal(opener_find("/dev/null", others, name, sizeof(name)), 0);
	assert_int_equal(opener_find("/nonexistent", others, name, sizeof(name)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(text_files_are_read_up_to_what_fits, host_make, host_remove),
		cmocka_unit_test_setup_teardown(v2_limits_are_found_on_the_group_and_all_above, host_make, host_remove),
		cmocka_unit_test_setup_teardown(v1_limits_are_found_in_each_hierarchy, host_make, host_remove),
		cmocka_unit_test_setup_teardown(groups_are_seen_from_the_root_that_is_mounted, host_make, host_remove),
		cmocka_unit_test_setup_teardown(nothing_is_found_where_nothing_is, host_make, host_remove),
		cmocka_unit_test_setup_teardown(lines_of_swaps_are_taken_apart, host_make, host_remove),
		cmocka_unit_test_setup_teardown(a_list_of_swaps_is_read_and_searched, host_make, host_remove),
		cmocka_unit_test_setup_teardown(swaps_are_matched_by_device, host_make, host_remove),
		cmocka_unit_test_setup_teardown(
			swaps_are_matched_by_another_name_of_the_device, host_make, host_remove),
		cmocka_unit_test_setup_teardown(openers_of_a_node_are_found_by_device, host_make, host_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
