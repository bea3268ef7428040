// SPDX-License-Identifier: GPL-2.0-or-later
/* Taking heaps of programs that start slowly, not at all, or never get data: wrappers around the system's perl. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "load_generate.h"
#include "load_heap.h"

#define PERL "/usr/bin/perl"
#define FOLIOS 4

struct rig {
	char folder[64];
	char *old_path;
	char said[4096]; /* on stderr */
	uint8_t *pool;
};

static int make_rig(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	strcpy(rig->folder, "/tmp/load_heap_test.XXXXXX");
	if (!mkdtemp(rig->folder))
		return -1;
	rig->old_path = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
	rig->pool = malloc(FOLIOS * LOAD_FOLIO_BYTES);
	setenv("PATH", rig->folder, 1);
	*state = rig;
	return 0;
}

static int remove_rig(void **state)
{
	static const char *const names[] = {"python3", "perl", "node", "stderr"};
	struct rig *rig = *state;
	char path[96];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", rig->folder, names[i]);
		unlink(path);
	}
	rmdir(rig->folder);
	setenv("PATH", rig->old_path, 1);
	free(rig->old_path);
	free(rig->pool);
	free(rig);
	return 0;
}

static void make_program(const struct rig *rig, const char *name, const char *script)
{
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", rig->folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "#!/bin/sh\n%s\n", script);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0755), 0);
}

static long fill(struct rig *rig)
{
	int kept = dup(STDERR_FILENO);
	char path[96];
	FILE *file;
	long filled;

	snprintf(path, sizeof(path), "%s/stderr", rig->folder);
	file = fopen(path, "w+");
	assert_non_null(file);
	dup2(fileno(file), STDERR_FILENO);
	filled = load_heap_fill(rig->pool, FOLIOS);
	dup2(kept, STDERR_FILENO);
	close(kept);
	rewind(file);
	rig->said[fread(rig->said, 1, sizeof(rig->said) - 1, file)] = '\0';
	fclose(file);
	if (filled < 0) {
		print_message("skipped: no process memory to be had here: %s\n", rig->said);
		skip();
	}
	return filled;
}

/* Three seconds are more than a grown process may be quiet for; the one beside it is ready at once. */
static void test_slow_start_is_waited_for(void **state)
{
	struct rig *rig = *state;

	if (access(PERL, X_OK) < 0)
		skip();
	make_program(rig, "python3",
		"exec " PERL " -e 'my $data = join \"\", map { chr(32 + $_ % 90) x 7 } 1..3000000; "
		"sleep 1000 while 1'");
	make_program(rig, "perl", "/bin/sleep 3; exec " PERL " \"$@\"");
	assert_int_equal(fill(rig), FOLIOS);
	assert_string_equal(load_heap_sources(), "python3 perl");
	assert_string_equal(rig->said, "");
}

static void test_left_out_is_said(void **state)
{
	struct rig *rig = *state;

	if (access(PERL, X_OK) < 0)
		skip();
	make_program(rig, "python3", "exit 3");
	make_program(rig, "perl", "exec " PERL " \"$@\"");
	assert_int_equal(fill(rig), FOLIOS);
	assert_string_equal(load_heap_sources(), "perl");
	assert_string_equal(rig->said, "swapload: warning: content heap is without python3: it ended by itself\n");
}

/* Nor does one that never gets anything hold the others up for ever. */
static void test_waiting_is_bounded(void **state)
{
	struct rig *rig = *state;
	uint64_t start_ns = clock_ns();

	if (access(PERL, X_OK) < 0)
		skip();
	make_program(rig, "perl", "exec " PERL " \"$@\"");
	make_program(rig, "node", "/bin/sleep 1000");
	assert_int_equal(fill(rig), FOLIOS);
	assert_string_equal(load_heap_sources(), "perl");
	assert_non_null(strstr(rig->said, "without node: it had not grown enough in time\n"));
	assert_in_range((clock_ns() - start_ns) / 1000000000, 10, 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_slow_start_is_waited_for, make_rig, remove_rig),
		cmocka_unit_test_setup_teardown(test_left_out_is_said, make_rig, remove_rig),
		cmocka_unit_test_setup_teardown(test_waiting_is_bounded, make_rig, remove_rig),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
