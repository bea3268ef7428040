// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A damaged image: whatever its bytes are, it is refused, or it opens, keeps
 * straight books, reads every granule or says EIO, and is a good device again
 * once everything was written.
 *
 * Input: edits of a true image, each | region:3 shape:3 sum:1 | position:3 | value:8 |.
 */
#include "image.h"
#include "codec.h"
#include "store.h"
#include "sum.h"
#include "units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNIT_BYTES (64 * KIB)
#define SIZE_BYTES (8 * UNIT_BYTES)
#define GRANULES (SIZE_BYTES / GRANULE_BYTES)
#define PAGES_MAX 2048
#define EDIT_BYTES 12
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The true image: its pages that are not zeros. */
static struct {
	uint64_t bytes;
	unsigned pages;
	uint64_t offset[PAGES_MAX];
	uint8_t page[PAGES_MAX][GRANULE_BYTES];
	struct superblock super;
} origin;

static uint8_t buffer[UNIT_BYTES];

static void fill(uint64_t granule, unsigned kind)
{
	uint64_t state = granule * UINT64_C(0x9e3779b97f4a7c15) + kind + 1;

	for (uint64_t at = 0; at < GRANULE_BYTES; at += sizeof(state)) {
		if (kind == 1 || (kind == 2 && at % 64 < 16)) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
		}
		memcpy(buffer + at, &state, sizeof(state));
	}
}

/* Objects raw, compressed and same-filled, with dead granules; slots in use; holes. */
static void populate(struct store *store)
{
	struct store_io *io = store_io(store, 0);

	for (uint64_t granule = 0; granule < GRANULES; granule++) {
		fill(granule, granule / 5 % 3);
		CHECK(store_write(io, granule, 1, buffer) == 0, "write");
	}
	CHECK(store_flush(store, WAIT_NS) == 0, "flush");
	for (uint64_t granule = 3; granule < GRANULES; granule += 7) {
		fill(granule, 2);
		CHECK(store_write(io, granule, 1, buffer) == 0, "overwrite");
	}
	CHECK(store_compact(store, WAIT_NS, NULL, NULL) == 0, "compact");
	for (uint64_t granule = 0; granule < GRANULES; granule += 9)
		CHECK(store_discard(io, granule, 1) == 0, "discard");
	for (uint64_t granule = 20; granule < 40; granule += 3)
		CHECK(store_write(io, granule, 1, buffer) == 0, "into slots");
}

static void keep_pages(int fd)
{
	static const uint8_t zeros[GRANULE_BYTES];
	off_t at = 0;

	while ((at = lseek(fd, at, SEEK_DATA)) >= 0) {
		uint8_t *page = origin.page[origin.pages];

		CHECK(pread(fd, page, GRANULE_BYTES, at) == (ssize_t)GRANULE_BYTES, "pread");
		if (memcmp(page, zeros, GRANULE_BYTES) != 0) {
			origin.offset[origin.pages++] = (uint64_t)at;
			CHECK(origin.pages < PAGES_MAX, "the true image is too large");
		}
		at += (off_t)GRANULE_BYTES;
	}
}

static void make_origin(void)
{
	const struct store_config config = {
		.size_bytes = SIZE_BYTES,
		.max_size_bytes = SIZE_BYTES + UNIT_BYTES,
		.limit_bytes = UINT64_MAX,
		.unit_bytes = UNIT_BYTES,
		.frame_bytes = 8 * KIB,
		.codec = CODEC_LZ4,
		.level = 1,
		.slots = 2,
		.io_threads = 1,
		.compress_threads = 1,
	};
	int fd = memfd_create("origin", MFD_CLOEXEC);
	struct stat status;
	struct store *store;

	CHECK(fd >= 0 && store_format(fd, &config) == 0 && store_open(&store, fd) == 0, "the true image");
	populate(store);
	store_close(store);
	CHECK(fstat(fd, &status) == 0, "fstat");
	origin.bytes = (uint64_t)status.st_size;
	keep_pages(fd);
	memcpy(&origin.super, origin.page[0], sizeof(origin.super));
	close(fd);
}

/* Where edits go: the parts of the regions that are in use, and a little beyond. */
static void place(unsigned region, uint64_t *ret_offset, uint64_t *ret_bytes)
{
	static const struct {
		int region;
		uint64_t bytes;
	} places[8] = {
		{-1, sizeof(struct superblock)},
		{REGION_MAP, (GRANULES + 8) * sizeof(map_word)},
		{REGION_RECORDS, 96 * sizeof(struct record)},
		{REGION_SLOTS, 2 * sizeof(struct slot_header)},
		{REGION_ARENA, 2048},
		{REGION_ARENA, 512 * KIB},
		{REGION_STATS, 512},
		{REGION_RECORDS, 96 * sizeof(struct record)},
	};

	*ret_offset = places[region].region < 0 ? 0 : origin.super.region[places[region].region].offset;
	*ret_bytes = places[region].bytes;
}

/* One edit: 1, 2, 4 or 8 bytes set, added to, or turned, or copied from elsewhere in the region. Returns what may be asked of the opening. */
static bool edit(int fd, const uint8_t *input)
{
	unsigned region = input[0] & 7, shape = input[0] >> 3 & 7;
	uint64_t offset, bytes, position = input[1] | (uint64_t)input[2] << 8 | (uint64_t)input[3] << 16;
	size_t width = (size_t)1 << (shape & 3);
	uint64_t value, now = 0;

	place(region, &offset, &bytes);
	memcpy(&value, input + 4, sizeof(value));
	position = position % (bytes / width) * width;
	CHECK(pread(fd, &now, width, (off_t)(offset + position)) == (ssize_t)width, "pread");
	if (shape >= 4 && value % 3 == 0) {
		uint64_t from = value / 3 % (bytes / width) * width;

		CHECK(pread(fd, &value, width, (off_t)(offset + from)) == (ssize_t)width, "pread");
	} else if (shape >= 4 && value % 3 == 1) {
		value = now + (uint64_t)(int64_t)(int8_t)(value >> 8);
	} else if (shape >= 4) {
		value = now ^ UINT64_C(1) << (value >> 8) % (8 * width);
	}
	CHECK(pwrite(fd, &value, width, (off_t)(offset + position)) == (ssize_t)width, "pwrite");
	if (region == 0 && input[0] & 64) {
		struct superblock super;

		/* As a writer of another kind would leave it. */
		CHECK(pread(fd, &super, sizeof(super), 0) == (ssize_t)sizeof(super), "pread");
		super.sum = sum64(&super, offsetof(struct superblock, sum));
		CHECK(pwrite(fd, &super, sizeof(super), 0) == (ssize_t)sizeof(super), "pwrite");
	}
	return region != 0;
}

static void check_books(struct store *store, const char *when)
{
	char problem[256] = "";

	CHECK(store_check(store, problem, sizeof(problem)) == 0, "%s: %s", when, problem);
}

/* Good or EIO; a unit's answer is that of its granules. */
static void read_all(struct store *store, uint64_t granules, bool must_be_good)
{
	struct store_io *io = store_io(store, 0);

	for (uint64_t unit = 0; unit < granules; unit += UNIT_BYTES / GRANULE_BYTES) {
		uint64_t end = unit + UNIT_BYTES / GRANULE_BYTES;
		int whole, worst = 0;

		end = end < granules ? end : granules;
		for (uint64_t granule = unit; granule < end; granule++) {
			int result = store_read(io, granule, 1, buffer);

			CHECK(result == 0 || (result == -EIO && !must_be_good), "read: %d", result);
			worst = result ? result : worst;
		}
		whole = store_read(io, unit, (uint32_t)(end - unit), buffer);
		CHECK(whole == worst, "a unit answers %d, its granules %d", whole, worst);
	}
}

static void check_opened(struct store *store)
{
	struct store_config config;
	struct store_io *io = store_io(store, 0);
	uint64_t granules;

	store_get_config(store, &config);
	CHECK(!store_config_problem(&config), "it opened with a configuration that is not possible");
	granules = config.size_bytes / GRANULE_BYTES;
	check_books(store, "opened");
	read_all(store, granules, false);
	store_compact(store, WAIT_NS, NULL, NULL);
	check_books(store, "compacted");
	read_all(store, granules, false);
	for (uint64_t granule = 0; granule < granules; granule++) {
		int result;

		fill(granule, granule % 3);
		result = granule % 4 ? store_write(io, granule, 1, buffer) : store_discard(io, granule, 1);
		CHECK(result == 0, "write or discard: %d", result);
	}
	check_books(store, "written");
	CHECK(store_flush(store, WAIT_NS) == 0, "slots cannot be closed");
	check_books(store, "closed");
	read_all(store, granules, true);
	CHECK(store_set_size(store, config.max_size_bytes) == 0, "it does not grow");
	read_all(store, config.max_size_bytes / GRANULE_BYTES, true);
	for (uint64_t granule = granules; granule < config.max_size_bytes / GRANULE_BYTES; granule++) {
		fill(granule, granule % 3);
		CHECK(store_write(io, granule, 1, buffer) == 0, "write into the new part");
	}
	check_books(store, "grown");
	read_all(store, config.max_size_bytes / GRANULE_BYTES, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store *store;
	bool must_open = true;
	int fd, result;

	if (!origin.pages)
		make_origin();
	fd = memfd_create("image", MFD_CLOEXEC);
	CHECK(fd >= 0 && ftruncate(fd, (off_t)origin.bytes) == 0, "memfd");
	for (unsigned i = 0; i < origin.pages; i++)
		CHECK(pwrite(fd, origin.page[i], GRANULE_BYTES, (off_t)origin.offset[i]) == (ssize_t)GRANULE_BYTES,
			"pwrite");
	for (size_t at = 0; at + EDIT_BYTES <= size && at < 64 * EDIT_BYTES; at += EDIT_BYTES)
		must_open &= edit(fd, data + at);
	result = store_open(&store, fd);
	CHECK(result == 0 || !must_open, "damage outside the superblock: not opened, %d", result);
	CHECK(result <= 0, "store_open: %d", result);
	if (result == 0) {
		check_opened(store);
		store_close(store);
	}
	close(fd);
	return 0;
}
