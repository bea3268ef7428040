// SPDX-License-Identifier: GPL-2.0-or-later
/* Whole runs of swapload without a limit: right ones, damaged ones, and workers that die. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "load_report.h"
#include "load_run.h"
#include "load_stop.h"

#define SIZE_BYTES (8 * MIB)
#define WORKERS 2
#define OPERATIONS 20000

static int signal_fd;

static struct load_options options_for(const struct load_workload *workload)
{
	/* Its own, so that another run on this machine does not matter. */
	static char cgroup_name[40];

	snprintf(cgroup_name, sizeof(cgroup_name), "swapload-test-%d", (int)getpid());
	return (struct load_options){
		.workload = workload,
		.content = load_content_kind_find("synthetic"),
		.size_bytes = SIZE_BYTES,
		.pool_bytes = 4 * MIB,
		.seed = 3,
		.passes = 2,
		.workers = WORKERS,
		.duration_s = 1,
		.operations = OPERATIONS,
		.json = true,
		.cgroup_name = cgroup_name,
	};
}

static int mute(void)
{
	int kept = dup(STDERR_FILENO), null_fd = open("/dev/null", O_WRONLY);

	dup2(null_fd, STDERR_FILENO);
	close(null_fd);
	return kept;
}

static void unmute(int kept)
{
	dup2(kept, STDERR_FILENO);
	close(kept);
}

static uint64_t sum_of(const struct load_run *run, size_t member_offset)
{
	uint64_t sum = 0, one;

	for (unsigned i = 0; i < run->started; i++) {
		memcpy(&one, (const char *)&run->workers[i] + member_offset, sizeof(one));
		sum += one;
	}
	return sum;
}

#define SUM(run, member) sum_of(run, offsetof(struct load_worker, member))

static void assert_no_children(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* region_bytes is rounded up to the host's huge pages. */
static uint64_t total_bytes(const struct load_run *run)
{
	return run->workers[0].region_bytes * run->options->workers;
}

static void run_right(const struct load_workload *workload, uint64_t verified_shares, unsigned passes)
{
	struct load_options options = options_for(workload);
	struct load_run run;

	assert_int_equal(load_run_init(&options, signal_fd, &run), 0);
	assert_int_equal(workload->drive(&run), 0);
	assert_int_equal(SUM(&run, verified_bytes), verified_shares * total_bytes(&run));
	assert_int_equal(SUM(&run, mismatched_bytes), 0);
	assert_int_equal(run.pass_count, passes);
	assert_int_equal(load_run_deinit(&run), 0);
	assert_no_children();
}

static void test_sequential_workloads(void **state)
{
	(void)state;
	run_right(&load_seq, 2, 3);
	run_right(&load_usemem, 1, 3);
	run_right(&load_shmem, 2, 4);
}

/* Pages given back are at most an eighth, all else was refilled; every write made a new version of its page. */
static void check_versions(const struct load_run *run, uint64_t writes)
{
	const struct load_worker *worker;
	uint64_t pages, freed, versions = 0, pages_of_all = 0;

	for (unsigned i = 0; i < run->started; i++) {
		worker = &run->workers[i];
		pages = worker->region_bytes / LOAD_PAGE_BYTES;
		freed = 0;
		for (uint64_t page = 0; page < pages; page++) {
			freed += worker->versions[page] >> 31;
			versions += worker->versions[page] & LOAD_VERSION_MAX;
		}
		assert_in_range(freed, 1, pages / 8);
		pages_of_all += pages;
	}
	assert_true(versions >= pages_of_all + writes);
}

static void test_random_workload(void **state)
{
	struct load_options options = options_for(&load_random);
	struct load_run run;
	uint64_t reads, writes, frees;

	(void)state;
	assert_int_equal(load_run_init(&options, signal_fd, &run), 0);
	assert_int_equal(load_random.drive(&run), 0);
	reads = SUM(&run, mix.reads);
	writes = SUM(&run, mix.writes);
	frees = SUM(&run, mix.frees);
	/* Two passes of 20000: 60, 30 and 5 of a hundred, within six standard deviations. */
	assert_in_range(reads, 23400, 24600);
	assert_in_range(writes, 11450, 12550);
	assert_in_range(frees, 1000, 2270);
	assert_in_range(SUM(&run, mix.refills), 1, frees);
	assert_int_equal(SUM(&run, verified_bytes), 2 * total_bytes(&run) + (reads + writes) * LOAD_PAGE_BYTES);
	assert_int_equal(SUM(&run, mismatched_bytes), 0);
	check_versions(&run, writes);
	assert_int_equal(load_run_deinit(&run), 0);
	assert_no_children();
}

/* Out without swap is a clear failure; with swap on, everything must come back. */
static void test_pageout(void **state)
{
	struct load_options options = options_for(&load_pageout);
	int kept = mute(), error;
	struct load_run run;

	(void)state;
	assert_int_equal(load_run_init(&options, signal_fd, &run), 0);
	error = load_pageout.drive(&run);
	/* Swap on, but no cgroup: whether pages leave memory is the device's affair. */
	if (!run.before.swap_free_bytes || run.cgroup.version)
		assert_int_equal(error, run.before.swap_free_bytes ? 0 : -ENOSPC);
	assert_int_equal(SUM(&run, verified_bytes), error ? 0 : 2 * total_bytes(&run));
	assert_int_equal(load_run_deinit(&run), 0);
	unmute(kept);
	assert_no_children();
}

/* Phases that do what a bad device would. */
static void flip_a_bit(struct load_worker *worker, uint32_t version)
{
	(void)version;
	if (worker->index == 1)
		worker->region[5 * LOAD_PAGE_BYTES + 77] ^= 4;
}

static void repeat_a_page(struct load_worker *worker, uint32_t version)
{
	(void)version;
	memcpy(worker->region + 9 * LOAD_PAGE_BYTES, worker->region + 8 * LOAD_PAGE_BYTES, LOAD_PAGE_BYTES);
}

static void lose_a_page(struct load_worker *worker, uint32_t version)
{
	(void)version;
	memset(worker->region + worker->region_bytes - LOAD_PAGE_BYTES, 0, LOAD_PAGE_BYTES);
}

static void keep_an_old_page(struct load_worker *worker, uint32_t version)
{
	load_content_write(&worker->run->content, load_worker_page_id(worker, 0, version - 1), worker->region);
}

static int damage(load_phase_function *phase, load_phase_function *verify, struct load_run *run)
{
	static struct load_options options;
	int kept = mute(), error;

	options = options_for(&load_seq);
	assert_int_equal(load_run_init(&options, signal_fd, run), 0);
	assert_int_equal(load_run_phase(run, "write", 1, LOAD_OUT, load_phase_write, 2), 0);
	error = load_run_phase(run, "damage", 1, LOAD_NEITHER, phase, 2);
	if (error == 0)
		error = load_run_phase(run, "verify", 1, LOAD_IN, verify, verify == load_phase_rewrite ? 3 : 2);
	unmute(kept);
	return error;
}

static char *report_of(struct load_run *run, int error)
{
	size_t bytes = 0;
	char *text = NULL;
	FILE *file = open_memstream(&text, &bytes);

	assert_non_null(file);
	load_counters_read(&run->after);
	assert_int_equal(load_report(run, error, file), 0);
	fclose(file);
	return text;
}

static void test_a_flipped_bit_is_reported(void **state)
{
	struct load_run run;
	char *text, address[64];

	(void)state;
	assert_int_equal(damage(flip_a_bit, load_phase_verify, &run), -EBADMSG);
	assert_int_equal(run.workers[0].mismatched_bytes, 0);
	assert_int_equal(run.workers[1].mismatched_bytes, 1);
	assert_int_equal(run.workers[1].first_mismatch.id.page, 5);
	assert_int_equal(run.workers[1].first_mismatch.offset, 77);
	assert_int_equal(run.workers[1].first_mismatch.expected[0] ^ run.workers[1].first_mismatch.found[0], 4);
	text = report_of(&run, -EBADMSG);
	snprintf(address, sizeof(address), "\"address\": \"0x%llx\"",
		(unsigned long long)(uintptr_t)(run.workers[1].region + 5 * LOAD_PAGE_BYTES + 77));
	assert_non_null(strstr(text, address));
	assert_non_null(strstr(text, "\"mismatched_bytes\": 1,"));
	free(text);
	load_run_deinit(&run);
}

static void test_other_damage_is_found(void **state)
{
	struct load_run run;
	struct load_page_id found;

	(void)state;
	assert_int_equal(damage(repeat_a_page, load_phase_verify, &run), -EBADMSG);
	assert_int_equal(run.workers[0].first_mismatch.id.page, 9);
	found = load_stamp_parts(run.workers[0].first_mismatch.found_stamp);
	assert_int_equal(found.page, 8);
	load_run_deinit(&run);

	assert_int_equal(damage(lose_a_page, load_phase_verify, &run), -EBADMSG);
	assert_true(run.workers[0].first_mismatch.all_zero);
	load_run_deinit(&run);

	/* Found by the pass that would have written over it, too. */
	assert_int_equal(damage(keep_an_old_page, load_phase_rewrite, &run), -EBADMSG);
	found = load_stamp_parts(run.workers[0].first_mismatch.found_stamp);
	assert_int_equal(found.version, 1);
	load_run_deinit(&run);
	assert_no_children();
}

static void die_of_bus_error(struct load_worker *worker, uint32_t version)
{
	(void)version;
	signal(SIGBUS, SIG_DFL); /* sanitizers catch it */
	if (worker->index == 1)
		raise(SIGBUS);
}

static void test_a_dead_worker_is_reported(void **state)
{
	struct load_run run;

	(void)state;
	assert_int_equal(damage(die_of_bus_error, load_phase_verify, &run), -ECHILD);
	assert_int_not_equal(run.workers[0].pid, 0);
	assert_int_equal(run.workers[1].pid, 0);
	load_run_deinit(&run);
	assert_no_children();
}

static void test_private_bytes_are_not_shown(void **state)
{
	struct load_content_kind kind = *load_content_kind_find("random");
	struct load_options options = options_for(&load_seq);
	struct load_run run;
	char *text;

	(void)state;
	kind.is_private = true;
	options.content = &kind;
	assert_int_equal(load_run_init(&options, signal_fd, &run), 0);
	assert_int_equal(load_run_phase(&run, "write", 1, LOAD_OUT, load_phase_write, 1), 0);
	assert_int_equal(load_run_phase(&run, "damage", 1, LOAD_NEITHER, flip_a_bit, 1), 0);
	assert_int_equal(load_run_phase(&run, "verify", 1, LOAD_IN, load_phase_verify, 1), -EBADMSG);
	text = report_of(&run, -EBADMSG);
	assert_non_null(strstr(text, "\"expected\": null, \"found\": null"));
	assert_non_null(strstr(text, "\"found_stamp\": null"));
	free(text);
	load_run_deinit(&run);
}

static void test_hold_command(void **state)
{
	struct load_options options = options_for(&load_seq);
	int kept = mute();
	struct load_run run;

	(void)state;
	options.hold_command = "test $(echo $SWAPLOAD_PIDS | wc -w) = 2 && test -n \"$SWAPLOAD_SWAPPED_BYTES\"";
	assert_int_equal(load_run_init(&options, signal_fd, &run), 0);
	assert_int_equal(load_run_hold(&run), 0);
	options.hold_command = "exit 3";
	assert_int_equal(load_run_hold(&run), -ECANCELED);
	load_run_deinit(&run);
	unmute(kept);
	assert_no_children();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequential_workloads),
		cmocka_unit_test(test_random_workload),
		cmocka_unit_test(test_pageout),
		cmocka_unit_test(test_a_flipped_bit_is_reported),
		cmocka_unit_test(test_other_damage_is_found),
		cmocka_unit_test(test_a_dead_worker_is_reported),
		cmocka_unit_test(test_private_bytes_are_not_shown),
		cmocka_unit_test(test_hold_command),
	};

	signal_fd = load_stop_init();
	if (signal_fd < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
