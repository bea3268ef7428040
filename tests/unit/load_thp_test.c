// SPDX-License-Identifier: GPL-2.0-or-later
/* The settings of huge pages, of a made-up host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "load_thp.h"
#include "made_host.h"

#define FOLDER "/sys/kernel/mm/transparent_hugepage"

static void expect(bool shared, bool when_asked, bool when_not)
{
	assert_int_equal(load_thp_is_available(host_root, shared, true), when_asked);
	assert_int_equal(load_thp_is_available(host_root, shared, false), when_not);
}

static void test_no_huge_pages_in_the_kernel(void **state)
{
	(void)state;
	expect(false, false, false);
	expect(true, false, false);
}

/* A kernel that has one size. */
static void test_one_size(void **state)
{
	(void)state;
	host_put(FOLDER "/enabled", "always [madvise] never\n");
	host_put(FOLDER "/shmem_enabled", "always within_size advise [never] deny force\n");
	expect(false, true, false);
	expect(true, false, false);
	host_put(FOLDER "/enabled", "[always] madvise never\n");
	host_put(FOLDER "/shmem_enabled", "always within_size [advise] never deny force\n");
	expect(false, true, true);
	expect(true, true, false);
	host_put(FOLDER "/enabled", "always madvise [never]\n");
	host_put(FOLDER "/shmem_enabled", "always [within_size] advise never deny force\n");
	expect(false, false, false);
	expect(true, true, true);
	host_put(FOLDER "/shmem_enabled", "always within_size advise never deny [force]\n");
	expect(true, true, true);
}

static void test_each_size_has_its_own(void **state)
{
	(void)state;
	host_put(FOLDER "/enabled", "always madvise [never]\n");
	host_put(FOLDER "/shmem_enabled", "always within_size advise [never] deny force\n");
	host_put(FOLDER "/hugepages-64kB/enabled", "always inherit madvise [never]\n");
	host_put(FOLDER "/hugepages-64kB/shmem_enabled", "always inherit within_size [advise] never\n");
	host_put(FOLDER "/hugepages-2048kB/enabled", "always [inherit] madvise never\n");
	host_put(FOLDER "/hugepages-2048kB/shmem_enabled", "always [inherit] within_size advise never\n");
	expect(false, false, false);
	expect(true, true, false);
	host_put(FOLDER "/hugepages-64kB/enabled", "[always] inherit madvise never\n");
	expect(false, true, true);
	host_put(FOLDER "/hugepages-64kB/enabled", "always inherit madvise [never]\n");
	host_put(FOLDER "/enabled", "always [madvise] never\n");
	expect(false, true, false);
	/* Not even the size that everybody may have is inherited: nothing is left. */
	host_put(FOLDER "/hugepages-2048kB/enabled", "always inherit madvise [never]\n");
	expect(false, false, false);
	host_put(FOLDER "/shmem_enabled", "always within_size advise never [deny] force\n");
	expect(true, false, false);
	host_put(FOLDER "/shmem_enabled", "always within_size advise never deny [force]\n");
	host_put(FOLDER "/hugepages-64kB/shmem_enabled", "always inherit within_size advise [never]\n");
	expect(true, true, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_huge_pages_in_the_kernel, host_make, host_remove),
		cmocka_unit_test_setup_teardown(test_one_size, host_make, host_remove),
		cmocka_unit_test_setup_teardown(test_each_size_has_its_own, host_make, host_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
