// SPDX-License-Identifier: GPL-2.0-or-later
/* The search in the transport table, over backends that the test itself is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <errno.h>

#include <cmocka.h>

#include "transport.h"
#include "transport_ops.h"

static int fuse_result, ublk_result;
static unsigned probes;

static int fake_probe(int result, char *problem, size_t problem_bytes)
{
	probes++;
	if (result)
		snprintf(problem, problem_bytes, "its node is not there");
	return result;
}

static int probe_fuse(char *problem, size_t problem_bytes)
{
	return fake_probe(fuse_result, problem, problem_bytes);
}

static int probe_ublk(char *problem, size_t problem_bytes)
{
	return fake_probe(ublk_result, problem, problem_bytes);
}

const struct transport_ops fuse_transport_ops = {
	.name = "fuse",
	.summary = "a stand-in",
	.probe = probe_fuse,
};

const struct transport_ops ublk_transport_ops = {
	.name = "ublk",
	.summary = "a stand-in",
	.probe = probe_ublk,
};

static void test_by_name(void **state)
{
	(void)state;
	probes = 0;
	fuse_result = ublk_result = -ENOENT;
	assert_ptr_equal(transport_find("fuse"), &fuse_transport_ops);
	assert_ptr_equal(transport_find("ublk"), &ublk_transport_ops);
	assert_int_equal(probes, 0); /* who names one gets it, and its own error later */
	assert_null(transport_find("fus"));
	assert_null(transport_find("fuse3"));
	assert_null(transport_find("replay"));
	assert_null(transport_find(""));
}

static void test_auto_asks_the_probes(void **state)
{
	(void)state;
	probes = 0;
	fuse_result = ublk_result = 0;
	assert_ptr_equal(transport_find("auto"), &ublk_transport_ops);
	assert_int_equal(probes, 1);
	ublk_result = -ENOENT;
	assert_ptr_equal(transport_find("auto"), &fuse_transport_ops);
	assert_int_equal(probes, 3);
	fuse_result = -ENOENT;
	assert_null(transport_find("auto"));
	assert_int_equal(probes, 5);
}

static void test_table_is_terminated_and_named_once(void **state)
{
	unsigned count = 0;

	(void)state;
	while (transport_table[count])
		count++;
	assert_true(count >= 1);
	for (unsigned i = 0; i < count; i++) {
		assert_string_not_equal(transport_table[i]->name, "auto");
		assert_string_not_equal(transport_table[i]->name, "replay");
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(transport_table[i]->name, transport_table[j]->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_name),
		cmocka_unit_test(test_auto_asks_the_probes),
		cmocka_unit_test(test_table_is_terminated_and_named_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
