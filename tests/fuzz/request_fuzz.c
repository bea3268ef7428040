// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A stream of requests against device and store, without threads: after each
 * one the whole device must read as a plain array does, and at the end the
 * store must agree with its own books and come back the same from recovery.
 *
 * Input: 4 bytes choose the configuration, then each request is one byte of
 * what to do, two of place, one of length, one of contents.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "codec.h"
#include "device.h"
#include "stats.h"
#include "store.h"
#include "units.h"

#define UNIT_BYTES (64 * KIB)
#define SMALL_BYTES (6 * UNIT_BYTES)
#define LARGE_BYTES (64 * UNIT_BYTES) /* more than fits under the least limit */
#define REQUESTS_MAX 200
#define REOPENS_MAX 4
#define WAIT_NS (10 * UINT64_C(1000000000))

/* Prints and aborts: the fuzzer keeps the input. */
#define CHECK(condition, ...) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr); \
			abort(); \
		} \
	} while (0)

struct input {
	const uint8_t *at;
	size_t left;
};

struct subject {
	int image_fd;
	struct store *store;
	struct device *device;
	uint64_t size_bytes;
	bool has_limit; /* writes may be refused */
	unsigned reopens;
	uint64_t random;
	uint8_t model[LARGE_BYTES];
	uint8_t whole[LARGE_BYTES];
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Past its end the input reads as zeros. */
static unsigned take(struct input *input)
{
	if (!input->left)
		return 0;
	input->left--;
	return *input->at++;
}

static uint64_t random_next(struct subject *subject)
{
	subject->random = subject->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return subject->random >> 11 | subject->random << 53;
}

static void fill_granule(struct subject *subject, uint64_t *words, unsigned kind)
{
	const size_t count = GRANULE_BYTES / sizeof(*words);
	uint64_t word = random_next(subject);

	for (size_t i = 0; i < count; i++) {
		switch (kind) {
		case 0:
			words[i] = 0;
			break;
		case 1:
			words[i] = word; /* same-filled, each granule with another word */
			break;
		case 2:
			words[i] = UINT64_C(0x4141414141414141); /* same-filled over granules */
			break;
		case 3:
			words[i] = word + i % 16; /* shrinks well */
			break;
		case 4:
			words[i] = i % 2 ? random_next(subject) : word; /* shrinks a little */
			break;
		default:
			words[i] = random_next(subject); /* does not shrink */
		}
	}
}

/* Kinds 0 to 5 for all granules, or one of its own for each. */
static void fill(struct subject *subject, uint64_t *words, uint64_t length_bytes, unsigned contents)
{
	for (uint64_t at = 0; at < length_bytes; at += GRANULE_BYTES) {
		unsigned kind = contents % 7;

		if (kind == 6)
			kind = (unsigned)(random_next(subject) % 6);
		fill_granule(subject, words + at / sizeof(*words), kind);
	}
}

static void keep_answer(struct request *request, int error)
{
	int *answer = request->transport_data;

	CHECK(*answer == INT32_MAX, "completed twice");
	CHECK(error <= 0, "answered with the positive %d", error);
	*answer = error;
}

static int submit(struct subject *subject, enum request_op op, uint64_t offset, uint64_t length, void *data)
{
	int answer = INT32_MAX;
	struct request request = {
		.op = op,
		.offset_bytes = offset,
		.length_bytes = length,
		.data = data,
		.received_ns = clock_ns(),
		.complete = keep_answer,
		.transport_data = &answer,
	};

	device_submit(subject->device, 0, &request);
	CHECK(answer != INT32_MAX, "not completed");
	return answer;
}

static void compare_granule(const struct subject *subject, uint64_t granule, const uint8_t *found, const char *when)
{
	CHECK(memcmp(found, subject->model + granule * GRANULE_BYTES, GRANULE_BYTES) == 0, "granule %llu differs %s",
		(unsigned long long)granule, when);
}

static void compare_whole(struct subject *subject, const char *when)
{
	int error = submit(subject, REQUEST_READ, 0, subject->size_bytes, subject->whole);

	CHECK(error == 0, "reading the whole device %s: %s", when, strerror(-error));
	for (uint64_t granule = 0; granule < subject->size_bytes / GRANULE_BYTES; granule++)
		compare_granule(subject, granule, subject->whole + granule * GRANULE_BYTES, when);
}

/*
 * A refused write may have stored some of its pieces, but each whole or not at
 * all: what a piece's granules hold now is either all new or all old.
 */
static void settle_refused(struct subject *subject, uint64_t offset, uint64_t length, const uint8_t *new)
{
	uint64_t piece_bytes;

	CHECK(submit(subject, REQUEST_READ, 0, subject->size_bytes, subject->whole) == 0,
		"reading after a refused write");
	for (uint64_t at = 0; at < length; at += piece_bytes) {
		piece_bytes = UNIT_BYTES - (offset + at) % UNIT_BYTES;
		if (piece_bytes > length - at)
			piece_bytes = length - at;
		if (memcmp(subject->whole + offset + at, new + at, piece_bytes) == 0)
			memcpy(subject->model + offset + at, new + at, piece_bytes);
		else
			CHECK(memcmp(subject->whole + offset + at, subject->model + offset + at, piece_bytes) == 0,
				"a refused write left half of a piece");
	}
}

static void do_write(struct subject *subject, uint64_t offset, uint64_t length, unsigned contents)
{
	uint64_t *data = aligned_alloc(GRANULE_BYTES, length);
	int error;

	CHECK(data, "out of memory");
	fill(subject, data, length, contents);
	error = submit(subject, REQUEST_WRITE, offset, length, data);
	CHECK(error == 0 || (error == -ENOSPC && subject->has_limit), "write: %s", strerror(-error));
	if (error)
		settle_refused(subject, offset, length, (const uint8_t *)data);
	else
		memcpy(subject->model + offset, data, length);
	free(data);
}

static void do_read(struct subject *subject, uint64_t offset, uint64_t length)
{
	uint8_t *data = aligned_alloc(GRANULE_BYTES, length);
	int error;

	CHECK(data, "out of memory");
	memset(data, 0xa5, length);
	error = submit(subject, REQUEST_READ, offset, length, data);
	CHECK(error == 0, "read: %s", strerror(-error));
	for (uint64_t at = 0; at < length; at += GRANULE_BYTES)
		compare_granule(subject, (offset + at) / GRANULE_BYTES, data + at, "in a read");
	free(data);
}

static void do_discard(struct subject *subject, enum request_op op, uint64_t offset, uint64_t length)
{
	int error = submit(subject, op, offset, length, NULL);

	CHECK(error == 0, "discard: %s", strerror(-error));
	memset(subject->model + offset, 0, length);
}

/* Ranges nobody made sure of. A bad one must be refused before data, which is far too small for most, is touched. */
static void do_wild(struct subject *subject, struct input *input, enum request_op op)
{
	static uint8_t data[LARGE_BYTES];
	uint64_t values[2] = {0};
	unsigned __int128 end;
	bool is_valid;
	int error;

	for (unsigned i = 0; i < 2; i++) {
		unsigned shift = take(input) % 64;

		values[i] = (uint64_t)(int8_t)take(input) << shift;
	}
	end = (unsigned __int128)values[0] + values[1];
	is_valid = values[1] && values[0] % GRANULE_BYTES == 0 && values[1] % GRANULE_BYTES == 0 &&
		   end <= subject->size_bytes;
	if (is_valid && op == REQUEST_WRITE)
		return; /* do_write() knows what comes of that */
	error = submit(subject, op, values[0], values[1], data);
	CHECK(error == (is_valid ? 0 : -EINVAL), "wild request %llu+%llu: %s", (unsigned long long)values[0],
		(unsigned long long)values[1], strerror(-error));
	if (is_valid && op != REQUEST_READ)
		memset(subject->model + values[0], 0, values[1]);
}

static void subject_open(struct subject *subject)
{
	int error = store_open(&subject->store, subject->image_fd);

	CHECK(error == 0, "store_open: %s", strerror(-error));
	CHECK(device_create(&subject->device, subject->store) == 0, "device_create");
	device_open(subject->device, 0, false);
}

static void subject_close(struct subject *subject)
{
	device_destroy(subject->device);
	store_close(subject->store);
}

static void check_books(struct subject *subject)
{
	char problem[256] = "";

	CHECK(store_check(subject->store, problem, sizeof(problem)) == 0, "store_check: %s", problem);
}

static void do_reconfigure(struct subject *subject, unsigned choice)
{
	const struct codec_ops *ops = codec_ops(choice % CODEC_COUNT);
	uint32_t frame_bytes = (uint32_t)(GRANULE_BYTES << (choice / CODEC_COUNT % 5));

	CHECK(store_set_codec(subject->store, ops->id, ops->level_default) == 0, "store_set_codec");
	CHECK(store_set_frame(subject->store, frame_bytes) == 0, "store_set_frame");
}

static void do_maintain(struct subject *subject, unsigned choice)
{
	int error =
		choice % 2 ? store_compact(subject->store, WAIT_NS, NULL, NULL) : store_flush(subject->store, WAIT_NS);

	CHECK(error == 0 || subject->has_limit, "maintenance: %s", strerror(-error));
	check_books(subject);
}

static void do_reopen(struct subject *subject)
{
	if (subject->reopens++ == REOPENS_MAX)
		return; /* the slowest thing of all: a few are enough */
	subject_close(subject);
	subject_open(subject);
	check_books(subject);
}

/* The bits of `what`: 0-3 choose, the rest is an argument. */
static void run_one(struct subject *subject, struct input *input)
{
	unsigned what = take(input);
	uint64_t granules = subject->size_bytes / GRANULE_BYTES;
	uint64_t granule = (take(input) | take(input) << 8) % granules;
	uint64_t count = 1 + take(input) % 48;
	unsigned contents = take(input);
	uint64_t offset = granule * GRANULE_BYTES;
	uint64_t length = (count < granules - granule ? count : granules - granule) * GRANULE_BYTES;

	subject->random += contents;
	switch (what & 15) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4:
		do_write(subject, offset, length, contents);
		break;
	case 5: /* from here to the end, or much of it: as folios come */
		do_write(subject, offset, round_up_u64((subject->size_bytes - offset) / (1 + count % 8), GRANULE_BYTES),
			contents);
		break;
	case 6:
	case 7:
		do_read(subject, offset, length);
		return; /* nothing has changed: the next request finds the caches as they are */
	case 8:
		do_discard(subject, REQUEST_DISCARD, offset, length);
		break;
	case 9:
		do_discard(subject, REQUEST_WRITE_ZEROES, offset, length);
		break;
	case 10:
		CHECK(submit(subject, REQUEST_FLUSH, 0, 0, NULL) == 0, "flush");
		break;
	case 11:
	case 12:
		for (unsigned i = 0; i <= what >> 4 && store_step(subject->store, contents & 1); i++)
			;
		break;
	case 13:
		do_reopen(subject);
		break;
	case 14:
		if (what & 16)
			do_reconfigure(subject, contents);
		else
			do_maintain(subject, contents);
		break;
	default:
		do_wild(subject, input, (enum request_op)((what >> 4) % REQUEST_FLUSH));
	}
	if (contents & 128)
		compare_whole(subject, "after a request");
}

static struct store_config config_of(struct input *input)
{
	const struct codec_ops *ops = codec_ops(take(input) % CODEC_COUNT);
	unsigned frame_order = take(input) % 5;
	unsigned slots = 1 + take(input) % 4;
	unsigned limit = take(input);
	uint64_t size_bytes = limit & 1 ? LARGE_BYTES : SMALL_BYTES;
	struct store_config config = {
		.size_bytes = size_bytes,
		.max_size_bytes = size_bytes,
		.limit_bytes = UINT64_MAX,
		.unit_bytes = UNIT_BYTES,
		.frame_bytes = (uint32_t)(GRANULE_BYTES << frame_order),
		.codec = ops->id,
		.level = ops->level_default,
		.slots = slots,
		.io_threads = 1,
		.compress_threads = 1,
	};

	if (limit & 1) {
		config.limit_bytes = 0;
		while (config.limit_bytes < GIB && store_config_problem(&config))
			config.limit_bytes += 64 * KIB;
		config.limit_bytes += limit / 16 * 64 * KIB;
	}
	CHECK(!store_config_problem(&config), "a good configuration is refused: %s", store_config_problem(&config));
	return config;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct subject subject;
	struct input input = {data, size};
	struct store_config config = config_of(&input);
	int error;

	subject.size_bytes = config.size_bytes;
	subject.has_limit = config.limit_bytes != UINT64_MAX;
	subject.reopens = 0;
	subject.random = 0;
	memset(subject.model, 0, subject.size_bytes);
	subject.image_fd = memfd_create("request_fuzz", MFD_CLOEXEC);
	CHECK(subject.image_fd >= 0, "memfd_create: %s", strerror(errno));
	error = store_format(subject.image_fd, &config);
	CHECK(error == 0, "store_format: %s", strerror(-error));
	subject_open(&subject);
	for (unsigned i = 0; i < REQUESTS_MAX && input.left; i++)
		run_one(&subject, &input);
	compare_whole(&subject, "at the end");
	check_books(&subject);
	subject_close(&subject);
	subject_open(&subject);
	compare_whole(&subject, "after recovery");
	check_books(&subject);
	subject_close(&subject);
	close(subject.image_fd);
	return 0;
}
