// SPDX-License-Identifier: GPL-2.0-or-later
/* The objects around the codecs: names, table, what create takes and destroy gives back, and that runs take nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "alloc_count.h"
#include "codec_rig.h"
#include "units.h"

static atomic_ulong mmap_calls;
static size_t mapped_bytes_live;
static bool mmap_must_fail;

void *__real_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *address, size_t bytes);
int __wrap_munmap(void *address, size_t bytes);

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	void *mapping;

	atomic_fetch_add(&mmap_calls, 1);
	if (mmap_must_fail) {
		errno = EAGAIN;
		return MAP_FAILED;
	}
	mapping = __real_mmap(address, bytes, protection, flags, fd, offset);
	if (mapping != MAP_FAILED)
		mapped_bytes_live += bytes;
	return mapping;
}

int __wrap_munmap(void *address, size_t bytes)
{
	int result = __real_munmap(address, bytes);

	if (result == 0)
		mapped_bytes_live -= bytes;
	return result;
}

static void test_runs_neither_allocate_nor_map(void **state)
{
	static const struct codec_choice choices[] = {
		{CODEC_COPY, 0}, {CODEC_LZ4, 1}, {CODEC_LZ4HC, 9}, {CODEC_ZSTD, -5}, {CODEC_ZSTD, 3}, {CODEC_ZSTD, 19}};
	struct rig rig = rig_create(64 * KIB);
	uint8_t *src = guarded_head(&rig.src), *stored = guarded_head(&rig.stored), *out = guarded_head(&rig.out);
	void *volatile probe;
	unsigned long allocated = alloc_count(), mapped;

	(void)state;
	probe = malloc(100);
	free(probe);
	assert_true(alloc_count() > allocated); /* the counter counts */
	content_fill(CONTENT_HEAP, 1, src, 64 * KIB);
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		struct compressor *compressor = create(choices[i].id, choices[i].level, 64 * KIB);
		ssize_t stored_bytes, refused;
		int decoded, damaged;

		allocated = alloc_count();
		mapped = atomic_load(&mmap_calls);
		stored_bytes = compressor_run(compressor, src, 64 * KIB, stored, BOUND_BYTES(64 * KIB));
		decoded =
			decompressor_run(rig.decompressor, choices[i].id, stored, (size_t)stored_bytes, out, 64 * KIB);
		damaged = decompressor_run(
			rig.decompressor, choices[i].id, stored, (size_t)stored_bytes - 1, out, 64 * KIB);
		refused = compressor_run(compressor, src, 64 * KIB, stored, 100);
		assert_int_equal(alloc_count(), allocated);
		assert_int_equal(atomic_load(&mmap_calls), mapped);
		assert_int_equal(decoded, 0);
		assert_int_equal(damaged, -EBADMSG);
		assert_int_equal(refused, -ENOSPC);
		compressor_destroy(compressor);
	}
	rig_destroy(&rig);
}

/* Whole pages, all of them present from the start, all of them given back; a failed create leaves nothing. */
static void test_create_and_destroy(void **state)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), live = mapped_bytes_live;
	struct compressor *compressor = create(CODEC_ZSTD, 3, 2 * MIB), *untouched = compressor;
	struct decompressor *decompressor = NULL, *kept;
	unsigned char present[1024];

	(void)state;
	assert_int_equal(mapped_bytes_live - live, compressor_bytes(compressor));
	assert_int_equal(compressor_bytes(compressor) % page_bytes, 0);
	assert_true(compressor_bytes(compressor) / page_bytes <= sizeof(present));
	assert_int_equal(mincore(compressor, compressor_bytes(compressor), present), 0);
	for (size_t page = 0; page < compressor_bytes(compressor) / page_bytes; page++)
		assert_true(present[page] & 1);
	assert_int_equal(compressor_choice(compressor).id, CODEC_ZSTD);
	assert_int_equal(compressor_choice(compressor).level, 3);
	assert_int_equal(decompressor_create(&decompressor, 2 * MIB), 0);
	assert_int_equal(mapped_bytes_live - live, compressor_bytes(compressor) + decompressor_bytes(decompressor));
	kept = decompressor;

	mmap_must_fail = true;
	assert_int_equal(compressor_create(&untouched, (struct codec_choice){CODEC_LZ4, 1}, 4096), -ENOMEM);
	assert_int_equal(decompressor_create(&kept, 4096), -ENOMEM);
	mmap_must_fail = false;
	assert_ptr_equal(untouched, compressor);
	assert_ptr_equal(kept, decompressor);

	compressor_destroy(compressor);
	decompressor_destroy(decompressor);
	compressor_destroy(NULL);
	decompressor_destroy(NULL);
	assert_int_equal(mapped_bytes_live, live);
}

static void test_create_refuses(void **state)
{
	static const struct codec_choice bad[] = {{CODEC_COPY, 1}, {CODEC_LZ4, 0}, {CODEC_LZ4, 65538}, {CODEC_LZ4HC, 0},
		{CODEC_LZ4HC, 13}, {CODEC_ZSTD, -8}, {CODEC_ZSTD, 20}, {CODEC_COUNT, 1}, {(enum codec_id)1000, 1}};
	static const size_t bad_sizes[] = {0, 1, 4095, 16 * MIB + 1, SIZE_MAX};
	struct compressor *compressor = NULL;
	struct decompressor *decompressor = NULL;
	uint8_t byte = 1, out[8];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(compressor_create(&compressor, bad[i], 4096), -EINVAL);
	for (size_t i = 0; i < sizeof(bad_sizes) / sizeof(bad_sizes[0]); i++) {
		assert_int_equal(
			compressor_create(&compressor, (struct codec_choice){CODEC_LZ4, 1}, bad_sizes[i]), -EINVAL);
		assert_int_equal(decompressor_create(&decompressor, bad_sizes[i]), -EINVAL);
	}
	assert_null(compressor);
	assert_null(decompressor);
	compressor = create(CODEC_COPY, 0, 4096);
	assert_int_equal(compressor_run(compressor, &byte, 0, out, sizeof(out)), -EINVAL);
	assert_int_equal(compressor_run(compressor, &byte, 4097, out, sizeof(out)), -EINVAL);
	compressor_destroy(compressor);
}

struct errand {
	struct rig *rig;
	struct compressor *compressor;
};

static void *run_errand(void *argument)
{
	struct errand *errand = argument;

	round_trip_content(errand->rig, errand->compressor, CONTENT_MIXED, 64 * KIB);
	return NULL;
}

/* Made here, used there, used here again. */
static void test_context_of_another_thread(void **state)
{
	static const struct codec_choice choices[] = {{CODEC_LZ4, 1}, {CODEC_LZ4HC, 9}, {CODEC_ZSTD, 3}};
	struct rig rig = rig_create(64 * KIB);

	(void)state;
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		struct compressor *compressor = create(choices[i].id, choices[i].level, 64 * KIB);
		struct errand errand = {.rig = &rig, .compressor = compressor};
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, run_errand, &errand), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		round_trip_content(&rig, compressor, CONTENT_HEAP, 64 * KIB);
		compressor_destroy(compressor);
	}
	rig_destroy(&rig);
}

static void test_parse(void **state)
{
	static const struct {
		const char *text, *formatted;
		enum codec_id id;
		int level;
	} good[] = {
		{"copy", "copy", CODEC_COPY, 0},
		{"lz4", "lz4:1", CODEC_LZ4, 1},
		{"lz4:1", "lz4:1", CODEC_LZ4, 1},
		{"lz4:65537", "lz4:65537", CODEC_LZ4, 65537},
		{"lz4hc", "lz4hc:9", CODEC_LZ4HC, 9},
		{"lz4hc:12", "lz4hc:12", CODEC_LZ4HC, 12},
		{"zstd", "zstd:3", CODEC_ZSTD, 3},
		{"zstd:-7", "zstd:-7", CODEC_ZSTD, -7},
		{"zstd:19", "zstd:19", CODEC_ZSTD, 19},
	};
	static const char *const bad[] = {"", ":", ":3", "zstd:", "zstd:03x", "zstd:x", "zstd: 3", "zstd:+3", "zstd:3 ",
		"zstd:20", "zstd:-8", "zstd:--1", "zstd:99999999999999999999", "zstd:3:3", "lz4:0", "lz4:-1",
		"lz4:65538", "lz4hc:0", "lz4hc:13", "copy:", "copy:1", "copy:0", "zst", "zstdd", "ZSTD", " zstd",
		"lz4h", "lzo", "lz4\n"};
	char buffer[16];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct codec_choice choice = {CODEC_COUNT, -1};

		assert_int_equal(codec_parse(good[i].text, &choice), 0);
		assert_int_equal(choice.id, good[i].id);
		assert_int_equal(choice.level, good[i].level);
		assert_string_equal(codec_format(choice, buffer, sizeof(buffer)), good[i].formatted);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct codec_choice choice = {CODEC_COUNT, -1};

		if (codec_parse(bad[i], &choice) != -EINVAL)
			fail_msg("\"%s\" was taken", bad[i]);
		assert_int_equal(choice.id, CODEC_COUNT);
		assert_int_equal(choice.level, -1);
	}
}

static void test_table(void **state)
{
	const char *expected = "copy, lz4[:1..65537], lz4hc[:1..12], zstd[:-7..19]";
	char buffer[128];

	(void)state;
	for (unsigned id = 0; id < CODEC_COUNT; id++)
		assert_int_equal(codec_ops(id)->id, id);
	assert_null(codec_ops(CODEC_COUNT));
	assert_null(codec_ops(UINT32_MAX));
	assert_string_equal(codec_list(buffer, sizeof(buffer)), expected);
	for (size_t bytes = 1; bytes < 60; bytes++) {
		memset(buffer, '#', sizeof(buffer));
		codec_list(buffer, bytes);
		assert_int_equal(strlen(buffer), bytes <= strlen(expected) ? bytes - 1 : strlen(expected));
		assert_memory_equal(buffer, expected, strlen(buffer));
		assert_int_equal(buffer[bytes], '#');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_create_and_destroy),
		cmocka_unit_test(test_create_refuses),
		cmocka_unit_test(test_runs_neither_allocate_nor_map),
		cmocka_unit_test(test_context_of_another_thread),
	};

	alloc_count_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
