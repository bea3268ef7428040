// SPDX-License-Identifier: GPL-2.0-or-later
/* What looks at the surroundings: sysctl, threads, the image file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control.h"
#include "imagefile.h"
#include "made_host.h"
#include "resident.h"

#include <errno.h>
#include <fcntl.h>
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
	snprintf(path, sizeof(path), "%s/min_free", host_root);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		host_put("/min_free", cases[i].text);
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
		cmocka_unit_test_setup_teardown(min_free_is_compared_as_a_number, host_make, host_remove),
		cmocka_unit_test(threads_are_looked_at_one_by_one),
		cmocka_unit_test(the_image_is_private_and_cannot_be_swapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
