// SPDX-License-Identifier: GPL-2.0-or-later
/* Trace text: every kind of line, and every kind of line that must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <errno.h>

#include <cmocka.h>

#include "trace.h"
#include "units.h"

static struct trace *trace_of(const char *text)
{
	FILE *file = fmemopen((void *)text, strlen(text), "r");
	struct trace *trace = NULL;
	char problem[160] = "";

	assert_non_null(file);
	assert_int_equal(trace_create(&trace, file, problem, sizeof(problem)), 0);
	assert_string_equal(problem, "");
	fclose(file);
	return trace;
}

static void test_trace_text(void **state)
{
	static const struct trace_step expected[] = {
		{REQUEST_WRITE, 0, 2 * MIB},
		{REQUEST_READ, 4096, 64 * KIB},
		{REQUEST_DISCARD, 2 * MIB, 2 * MIB},
		{REQUEST_WRITE_ZEROES, 8192, 4096},
		{REQUEST_FLUSH, 0, 0},
		{REQUEST_READ, UINT64_C(1) << 42, 4096},
	};
	struct trace *trace =
		trace_of("# head\n\nW 0 2M\n  R\t4096   64K \r\nD 2097152 2MiB\nZ 8192 4096\nF\n \nR 4T 4K");

	(void)state;
	assert_int_equal(trace->count, 6);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(trace->steps[i].op, expected[i].op);
		assert_int_equal(trace->steps[i].offset_bytes, expected[i].offset_bytes);
		assert_int_equal(trace->steps[i].length_bytes, expected[i].length_bytes);
	}
	trace_destroy(trace);
	trace_destroy(NULL);
}

static void test_bad_trace_lines(void **state)
{
	static const char *const lines[] = {
		"W",
		"W 0",
		"W 0 0",
		"W 0 4095",
		"W 1 4096",
		"W 0 4096 1",
		"W -4096 4096",
		"W 0x1000 4096",
		"X 0 4096",
		"w 0 4096",
		"WR 0 4096",
		"F 0 0",
		"0 4096 W",
		"W 0 9223372036854775808",
		"W 0,4096",
		"W 4096",
	};

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct trace *untouched = (struct trace *)state;
		char text[128], problem[160] = "";
		FILE *file;

		snprintf(text, sizeof(text), "W 0 4096\n#\n%s\nR 0 4096\n", lines[i]);
		file = fmemopen(text, strlen(text), "r");
		assert_non_null(file);
		if (trace_create(&untouched, file, problem, sizeof(problem)) != -EINVAL)
			fail_msg("the line \"%s\" was taken", lines[i]);
		assert_ptr_equal(untouched, state);
		assert_non_null(strstr(problem, "line 3 "));
		fclose(file);
	}
}

/* One good line, then an error. */
static ssize_t failing_read(void *cookie, char *buffer, size_t bytes)
{
	static const char line[] = "W 0 4096\n";
	unsigned *reads = cookie;

	if ((*reads)++ || bytes < strlen(line)) {
		errno = EIO;
		return -1;
	}
	memcpy(buffer, line, strlen(line));
	return (ssize_t)strlen(line);
}

static void test_a_file_that_cannot_be_read(void **state)
{
	unsigned reads = 0;
	FILE *file = fopencookie(&reads, "r", (cookie_io_functions_t){.read = failing_read});
	struct trace *untouched = (struct trace *)state;
	char problem[160] = "";

	assert_non_null(file);
	assert_int_equal(trace_create(&untouched, file, problem, sizeof(problem)), -EIO);
	assert_ptr_equal(untouched, state);
	fclose(file);
}

static void test_long_traces_keep_all_steps(void **state)
{
	static char text[5000 * 16];
	struct trace *trace;
	int at = 0;

	(void)state;
	for (unsigned i = 0; i < 5000; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "R %uK 4K\n", i * 4);
	trace = trace_of(text);
	assert_int_equal(trace->count, 5000);
	for (unsigned i = 0; i < 5000; i++)
		assert_int_equal(trace->steps[i].offset_bytes, i * 4096);
	trace_destroy(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trace_text),
		cmocka_unit_test(test_bad_trace_lines),
		cmocka_unit_test(test_a_file_that_cannot_be_read),
		cmocka_unit_test(test_long_traces_keep_all_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
