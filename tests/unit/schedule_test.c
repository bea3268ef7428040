// SPDX-License-Identifier: GPL-2.0-or-later
/* What a thread asks of the scheduler, read back from the kernel: of itself alone, and nothing else changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "schedule.h"

#define SLICE_NS 200000

/* The kernel's, of its first version: its header and the C library's cannot be included together. */
struct sched_attr {
	uint32_t size;
	uint32_t sched_policy;
	uint64_t sched_flags;
	int32_t sched_nice;
	uint32_t sched_priority;
	uint64_t sched_runtime;
	uint64_t sched_deadline;
	uint64_t sched_period;
};

static struct sched_attr attributes_now(void)
{
	struct sched_attr attributes = {0};

	assert_int_equal(syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0), 0);
	return attributes;
}

static struct sched_attr in_thread;

static void *ask(void *argument)
{
	(void)argument;
	schedule_nicer(3);
	schedule_soon();
	syscall(SYS_sched_getattr, 0, &in_thread, sizeof(in_thread), 0);
	return NULL;
}

static bool kernel_has_slices(void)
{
	struct utsname names;
	int major = 0, minor = 0;

	assert_int_equal(uname(&names), 0);
	assert_int_equal(sscanf(names.release, "%d.%d", &major, &minor), 2);
	return major > 6 || (major == 6 && minor >= 12);
}

static void test_thread_alone(void **state)
{
	struct sched_attr before = attributes_now(), after;
	pthread_t thread;

	(void)state;
	if (before.sched_policy != SCHED_OTHER || before.sched_nice > 16)
		skip();
	assert_int_equal(pthread_create(&thread, NULL, ask, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(in_thread.sched_policy, SCHED_OTHER);
	assert_int_equal(in_thread.sched_nice, before.sched_nice + 3);
	if (kernel_has_slices())
		assert_int_equal(in_thread.sched_runtime, SLICE_NS);
	after = attributes_now();
	assert_int_equal(after.sched_nice, before.sched_nice);
	assert_int_equal(after.sched_runtime, before.sched_runtime);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_thread_alone)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
