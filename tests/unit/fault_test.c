// SPDX-License-Identifier: GPL-2.0-or-later
/* Fault rules: strict parsing, exact turns against a model that counts, sudden death in a child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "device.h"
#include "fault.h"

#define MS_NS UINT64_C(1000000)
#define THREADS 4
#define REQUESTS_PER_THREAD 5000

static int apply(struct fault *fault, enum request_op op)
{
	struct request request = {.op = op, .length_bytes = 4096};

	return fault_apply(fault, &request);
}

static struct fault *create(const char *rule)
{
	struct fault *fault = NULL;

	assert_int_equal(fault_create(&fault, rule), 0);
	assert_non_null(fault);
	return fault;
}

static void test_empty_rule_is_no_fault(void **state)
{
	struct fault *fault = (struct fault *)state;

	assert_int_equal(fault_create(&fault, ""), 0);
	assert_null(fault);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(apply(fault, REQUEST_WRITE), 0);
	fault_destroy(fault);
}

static void test_bad_rules_are_refused(void **state)
{
	static const char *const rules[] = {
		" ",
		",",
		":",
		"=",
		"kill,",
		",kill",
		"kill:",
		"kill::at=1",
		"kil",
		"kill=1",
		"kill=",
		"KILL",
		"exit=0",
		"at=5",
		"delay",
		"delay=",
		"delay=50",
		"delay=ms",
		"delay=50m",
		"delay=50MS",
		"delay=-5ms",
		"delay=+5ms",
		"delay= 5ms",
		"delay=5 ms",
		"delay=5msx",
		"delay=0ms",
		"delay=61s",
		"delay=60001ms",
		"delay=1.5s",
		"delay=99999999999999999999ms",
		"error",
		"error=",
		"error=EFOO",
		"error=5",
		"error=eio",
		"error=EIO:",
		"error=EIO:at",
		"error=EIO:at=",
		"error=EIO:at=0",
		"error=EIO:at=-1",
		"error=EIO:at=x",
		"error=EIO:at=1x",
		"error=EIO:at=99999999999999999999",
		"error=EIO:every=0",
		"error=EIO:at=1:every=2",
		"error=EIO:at=1:at=1",
		"error=EIO:every=2:every=2",
		"error=EIO:op=",
		"error=EIO:op=writes",
		"error=EIO:op=write:op=read",
		"error=EIO:from=2",
		"error=EIO at=2",
		"error=EIO;kill",
		"error=EIO:at=1=2",
		"kill,kill,kill,kill,kill,kill,kill,kill,kill",
	};
	struct fault *untouched = (struct fault *)state;

	for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (fault_create(&untouched, rules[i]) != -EINVAL)
			fail_msg("the rule \"%s\" was taken", rules[i]);
		assert_ptr_equal(untouched, state);
	}
}

static void test_good_rules_are_taken(void **state)
{
	static const char *const rules[] = {
		"kill",
		"exit:at=3",
		"kill:op=flush:every=7",
		"delay=60s",
		"delay=60000ms",
		"delay=1ns:op=zeroes",
		"delay=50ms:every=100,error=EIO:at=5,kill:at=1000",
		"error=ENOSPC:op=write:at=9223372036854775807",
		"kill,kill,kill,kill,kill,kill,kill,kill",
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		fault_destroy(create(rules[i]));
	fault_destroy(NULL);
}

static void test_error_names(void **state)
{
	static const struct {
		const char *rule;
		int error;
	} names[] = {
		{"error=EIO", -EIO},
		{"error=ENOSPC", -ENOSPC},
		{"error=ENOMEM", -ENOMEM},
		{"error=EINVAL", -EINVAL},
		{"error=EAGAIN", -EAGAIN},
		{"error=ENODEV", -ENODEV},
		{"error=EOPNOTSUPP", -EOPNOTSUPP},
		{"error=ETIMEDOUT", -ETIMEDOUT},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct fault *fault = create(names[i].rule);

		for (unsigned turn = 0; turn < 3; turn++)
			assert_int_equal(apply(fault, REQUEST_READ), names[i].error);
		fault_destroy(fault);
	}
}

static void test_turns(void **state)
{
	struct fault *at = create("error=EIO:at=5");
	struct fault *every = create("error=ENOSPC:every=3");

	(void)state;
	for (unsigned turn = 1; turn <= 1000; turn++) {
		assert_int_equal(apply(at, REQUEST_WRITE), turn == 5 ? -EIO : 0);
		assert_int_equal(apply(every, REQUEST_WRITE), turn % 3 == 0 ? -ENOSPC : 0);
	}
	fault_destroy(at);
	fault_destroy(every);
}

static void test_only_matching_ops_count(void **state)
{
	static const char *const rules[] = {
		[REQUEST_READ] = "error=EIO:op=read:every=2",
		[REQUEST_WRITE] = "error=EIO:every=2:op=write",
		[REQUEST_DISCARD] = "error=EIO:op=discard:every=2",
		[REQUEST_WRITE_ZEROES] = "error=EIO:op=zeroes:every=2",
		[REQUEST_FLUSH] = "error=EIO:op=flush:every=2",
	};

	(void)state;
	for (unsigned wanted = REQUEST_READ; wanted <= REQUEST_FLUSH; wanted++) {
		struct fault *fault = create(rules[wanted]);
		unsigned seen = 0;

		for (unsigned i = 0; i < 300; i++) {
			unsigned op = (i * 7 + i / 5) % (REQUEST_FLUSH + 1);
			bool expected = op == wanted && ++seen % 2 == 0;

			assert_int_equal(apply(fault, op), expected ? -EIO : 0);
		}
		assert_true(seen > 20);
		fault_destroy(fault);
	}
}

static void test_first_error_wins_and_all_count(void **state)
{
	struct fault *fault = create("error=EIO:every=2,error=ENOSPC:every=3");

	(void)state;
	for (unsigned turn = 1; turn <= 60; turn++)
		assert_int_equal(apply(fault, REQUEST_READ), turn % 2 == 0 ? -EIO : turn % 3 == 0 ? -ENOSPC : 0);
	fault_destroy(fault);
}

static void test_delay_comes_before_the_answer(void **state)
{
	struct fault *fault = create("delay=30ms:at=2,error=EIO:at=2,delay=20000us:at=2");
	uint64_t start_ns = clock_ns();

	(void)state;
	assert_int_equal(apply(fault, REQUEST_READ), 0);
	assert_int_equal(apply(fault, REQUEST_READ), -EIO);
	assert_true(clock_ns() - start_ns >= 50 * MS_NS);
	fault_destroy(fault);
	/* 59 s that are not this request's: no need of luck to see that nobody sleeps. */
	fault = create("delay=59s:at=3,delay=59s:op=write");
	start_ns = clock_ns();
	assert_int_equal(apply(fault, REQUEST_READ), 0);
	assert_int_equal(apply(fault, REQUEST_READ), 0);
	assert_true(clock_ns() - start_ns < 50 * 1000 * MS_NS);
	fault_destroy(fault);
}

/* Runs requests in a child until the rule ends it; *ret_turns is how many it answered. Returns the wait status. */
static int run_to_death(const char *rule, unsigned *ret_turns)
{
	struct fault *fault = create(rule);
	int answered[2], status;
	pid_t child;
	char byte;

	assert_int_equal(pipe(answered), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		for (unsigned turn = 0; turn < 100; turn++) {
			fault_apply(fault, &(struct request){.op = REQUEST_WRITE});
			if (write(answered[1], "", 1) != 1)
				_exit(3);
		}
		_exit(2);
	}
	close(answered[1]);
	*ret_turns = 0;
	while (read(answered[0], &byte, 1) == 1)
		++*ret_turns;
	close(answered[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	fault_destroy(fault);
	return status;
}

static void test_sudden_death(void **state)
{
	unsigned turns;
	int status;

	(void)state;
	status = run_to_death("kill:at=10", &turns);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(turns, 9);
	status = run_to_death("error=EIO,exit:every=4", &turns);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_int_equal(turns, 3);
}

static void *count_errors(void *arg)
{
	struct fault *fault = arg;
	uintptr_t errors = 0;

	for (unsigned i = 0; i < REQUESTS_PER_THREAD; i++)
		errors += apply(fault, REQUEST_WRITE) != 0;
	return (void *)errors;
}

static void test_threads_share_the_count(void **state)
{
	struct fault *fault = create("error=EIO:every=10");
	pthread_t threads[THREADS];
	uintptr_t errors = 0;

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_errors, fault), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		void *result;

		assert_int_equal(pthread_join(threads[i], &result), 0);
		errors += (uintptr_t)result;
	}
	assert_int_equal(errors, THREADS * REQUESTS_PER_THREAD / 10);
	fault_destroy(fault);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_rule_is_no_fault),
		cmocka_unit_test(test_bad_rules_are_refused),
		cmocka_unit_test(test_good_rules_are_taken),
		cmocka_unit_test(test_error_names),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_only_matching_ops_count),
		cmocka_unit_test(test_first_error_wins_and_all_count),
		cmocka_unit_test(test_delay_comes_before_the_answer),
		cmocka_unit_test(test_sudden_death),
		cmocka_unit_test(test_threads_share_the_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
