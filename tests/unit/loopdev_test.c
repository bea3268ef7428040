// SPDX-License-Identifier: GPL-2.0-or-later
/* Loop devices over a plain file: what attach promises, and that detach leaves things as they were. Needs root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loopdev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SKIP 77
#define FILE_BYTES (1 << 20)
#define REQUEST_BYTES (256 * 1024)

struct rig {
	char path[64];
	int file_fd;
	struct loopdev loop;
	int loop_fd;
	char problem[200];
};

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void queue_value(int number, const char *attribute, char *text, size_t bytes)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/block/loop%d/%s", number, attribute);
	snprintf(text, bytes, "none");
	file = fopen(path, "r");
	if (!file)
		return;
	if (fgets(text, (int)bytes, file))
		text[strcspn(text, "\n")] = '\0';
	fclose(file);
}

static void assert_queue(int number, const char *attribute, const char *wanted)
{
	char text[256];

	queue_value(number, attribute, text, sizeof(text));
	assert_string_equal(text, wanted);
}

/* Whoever lists loop devices opens them for a moment, and so keeps them. */
static void assert_unbound_soon(int number)
{
	char text[256] = "";
	int tries;

	for (tries = 0; tries < 400 && strcmp(text, "none") != 0; tries++) {
		queue_value(number, "loop/backing_file", text, sizeof(text));
		usleep(5000);
	}
	assert_string_equal(text, "none");
}

static mode_t node_mode(int number)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/dev/loop%d", number);
	assert_int_equal(stat(path, &status), 0);
	return status.st_mode & 07777;
}

static void make_file(struct rig *rig)
{
	snprintf(rig->path, sizeof(rig->path), "/var/tmp/loopdev_test.XXXXXX");
	rig->file_fd = mkstemp(rig->path);
	assert_true(rig->file_fd >= 0);
	assert_int_equal(ftruncate(rig->file_fd, FILE_BYTES), 0);
	loopdev_init(&rig->loop, rig->path, false, false, REQUEST_BYTES);
	rig->loop_fd = -1;
}

static void attach(struct rig *rig)
{
	if (loopdev_attach(&rig->loop, rig->file_fd, &rig->loop_fd, rig->problem, sizeof(rig->problem)) < 0)
		fail_msg("%s", rig->problem);
	assert_true(rig->loop.number >= 0);
}

static void remove_file(struct rig *rig)
{
	close(rig->file_fd);
	unlink(rig->path);
}

static int first_free(void)
{
	int control_fd = open("/dev/loop-control", O_RDWR), number;

	number = ioctl(control_fd, LOOP_CTL_GET_FREE);
	close(control_fd);
	return number;
}

static void attach_sets_and_detach_restores(void **state)
{
	char node[64], merges_before[16], sectors_before[16];
	int number = first_free(), block_bytes = 0;
	struct loop_info64 info;
	mode_t mode_before;
	struct rig rig;

	(void)state;
	make_file(&rig);
	mode_before = node_mode(number);
	queue_value(number, "queue/nomerges", merges_before, sizeof(merges_before));
	queue_value(number, "queue/max_sectors_kb", sectors_before, sizeof(sectors_before));
	attach(&rig);
	if (rig.loop.number != number) { /* somebody else took it meanwhile */
		loopdev_detach(&rig.loop, rig.loop_fd);
		remove_file(&rig);
		skip();
	}
	loopdev_node(&rig.loop, node, sizeof(node));
	assert_int_equal(ioctl(rig.loop_fd, BLKSSZGET, &block_bytes), 0);
	assert_int_equal(block_bytes, 4096);
	assert_int_equal(ioctl(rig.loop_fd, LOOP_GET_STATUS64, &info), 0);
	assert_int_equal(
		info.lo_flags & (LO_FLAGS_AUTOCLEAR | LO_FLAGS_READ_ONLY | LO_FLAGS_PARTSCAN), LO_FLAGS_AUTOCLEAR);
	assert_queue(number, "loop/dio", "1");
	assert_queue(number, "loop/backing_file", rig.path);
	assert_queue(number, "queue/nomerges", "2");
	assert_queue(number, "queue/max_sectors_kb", "256");
	assert_int_equal(node_mode(number), 0600);

	assert_int_equal(loopdev_detach(&rig.loop, rig.loop_fd), 0);
	assert_int_equal(rig.loop.number, -1);
	assert_queue(number, "loop/backing_file", "none");
	assert_queue(number, "queue/nomerges", merges_before);
	assert_queue(number, "queue/max_sectors_kb", sectors_before);
	assert_int_equal(node_mode(number), mode_before);
	assert_int_equal(loopdev_detach(&rig.loop, -1), 0);
	remove_file(&rig);
}

static void bytes_go_to_the_file_and_come_from_it(void **state)
{
	unsigned char *wanted = aligned_alloc(4096, 8192), *got = aligned_alloc(4096, 8192);
	struct rig rig;
	size_t i;

	(void)state;
	make_file(&rig);
	attach(&rig);
	assert_true(wanted && got);
	for (i = 0; i < 8192; i++)
		wanted[i] = (unsigned char)(i * 7 + i / 256);
	assert_int_equal(pwrite(rig.loop_fd, wanted, 8192, 65536), 8192);
	assert_int_equal(fsync(rig.loop_fd), 0);
	assert_int_equal(pread(rig.file_fd, got, 8192, 65536), 8192);
	assert_memory_equal(got, wanted, 8192);
	assert_int_equal(loopdev_detach(&rig.loop, rig.loop_fd), 0);
	free(wanted);
	free(got);
	remove_file(&rig);
}

/* The owner's death is the close of its descriptor: nothing else is needed for the device to go. */
static void closing_the_descriptor_is_enough(void **state)
{
	char merges_before[16];
	struct rig rig;
	int number;

	(void)state;
	make_file(&rig);
	attach(&rig);
	number = rig.loop.number;
	snprintf(merges_before, sizeof(merges_before), "%d", rig.loop.nomerges_before);
	close(rig.loop_fd);
	assert_unbound_soon(number);
	assert_queue(number, "queue/nomerges", "2");
	assert_int_equal(loopdev_detach(&rig.loop, -1), 0);
	assert_queue(number, "queue/nomerges", merges_before);
	remove_file(&rig);
}

/* A daemon that was killed could not restore the queue; the next one on that number does it for both. */
static void what_a_killed_owner_left_is_set_right(void **state)
{
	char hardware_max[16];
	struct rig rig;
	int number;

	(void)state;
	make_file(&rig);
	attach(&rig);
	number = rig.loop.number;
	close(rig.loop_fd);
	assert_unbound_soon(number);
	loopdev_init(&rig.loop, rig.path, false, true, REQUEST_BYTES);
	attach(&rig);
	assert_queue(rig.loop.number, "queue/nomerges", "0");
	if (rig.loop.number == number) {
		queue_value(number, "queue/max_hw_sectors_kb", hardware_max, sizeof(hardware_max));
		assert_int_equal(loopdev_detach(&rig.loop, rig.loop_fd), 0);
		assert_queue(number, "queue/nomerges", "0");
		assert_queue(number, "queue/max_sectors_kb", hardware_max);
	} else { /* somebody else took it meanwhile */
		assert_int_equal(loopdev_detach(&rig.loop, rig.loop_fd), 0);
	}
	remove_file(&rig);
}

static void a_busy_device_goes_with_its_last_user(void **state)
{
	struct rig rig;
	char node[64];
	double begin;
	int user_fd, number;

	(void)state;
	make_file(&rig);
	attach(&rig);
	number = rig.loop.number;
	loopdev_node(&rig.loop, node, sizeof(node));
	user_fd = open(node, O_RDONLY | O_CLOEXEC);
	assert_true(user_fd >= 0);
	begin = now_s();
	assert_int_equal(loopdev_detach(&rig.loop, rig.loop_fd), -EBUSY);
	assert_true(now_s() - begin < 5);
	begin = now_s();
	assert_int_equal(loopdev_detach(&rig.loop, -1), -EBUSY);
	assert_true(now_s() - begin < 1);
	assert_queue(number, "loop/backing_file", rig.path);
	close(user_fd);
	assert_unbound_soon(number);
	assert_int_equal(loopdev_detach(&rig.loop, -1), 0);
	remove_file(&rig);
}

static void a_number_that_is_now_anothers_is_left_alone(void **state)
{
	struct rig dead, other;

	(void)state;
	make_file(&dead);
	make_file(&other);
	attach(&other);
	dead.loop.number = other.loop.number;
	assert_int_equal(loopdev_detach(&dead.loop, -1), 0);
	assert_queue(other.loop.number, "loop/backing_file", other.path);
	assert_int_equal(loopdev_detach(&other.loop, other.loop_fd), 0);
	remove_file(&dead);
	remove_file(&other);
}

static void what_cannot_be_attached_leaves_nothing(void **state)
{
	struct rig rig;
	int null_fd = open("/dev/null", O_RDWR);

	(void)state;
	make_file(&rig);
	assert_true(loopdev_attach(&rig.loop, null_fd, &rig.loop_fd, rig.problem, sizeof(rig.problem)) < 0);
	assert_non_null(strstr(rig.problem, "loop device"));
	assert_int_equal(rig.loop.number, -1);
	assert_int_equal(rig.loop_fd, -1);
	close(null_fd);
	remove_file(&rig);
}

static int attach_and_check(void)
{
	struct rig rig;
	char text[64];

	make_file(&rig);
	if (loopdev_attach(&rig.loop, rig.file_fd, &rig.loop_fd, rig.problem, sizeof(rig.problem)) < 0) {
		fprintf(stderr, "%s\n", rig.problem);
		return 1;
	}
	usleep(50000);
	queue_value(rig.loop.number, "loop/backing_file", text, sizeof(text));
	if (strcmp(text, rig.path) != 0 || loopdev_detach(&rig.loop, rig.loop_fd) != 0)
		return 1;
	remove_file(&rig);
	return 0;
}

static void several_at_once_get_one_each(void **state)
{
	pid_t pids[8];
	int status, i;

	(void)state;
	for (i = 0; i < 8; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(attach_and_check());
		assert_true(pids[i] > 0);
	}
	for (i = 0; i < 8; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attach_sets_and_detach_restores),
		cmocka_unit_test(bytes_go_to_the_file_and_come_from_it),
		cmocka_unit_test(closing_the_descriptor_is_enough),
		cmocka_unit_test(what_a_killed_owner_left_is_set_right),
		cmocka_unit_test(a_busy_device_goes_with_its_last_user),
		cmocka_unit_test(a_number_that_is_now_anothers_is_left_alone),
		cmocka_unit_test(what_cannot_be_attached_leaves_nothing),
		cmocka_unit_test(several_at_once_get_one_each),
	};

	if (geteuid() != 0 || access("/dev/loop-control", R_OK | W_OK) < 0) {
		puts("skipped: needs root and /dev/loop-control");
		return SKIP;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
