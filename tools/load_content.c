// SPDX-License-Identifier: GPL-2.0-or-later
/* The pool of contents, the stamps in its pages, and the comparison. */
#include "load_content.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "load_heap.h"

static long fill_generated(int (*generate)(uint64_t seed, uint64_t number, uint8_t *folio), uint64_t seed,
	uint8_t *pool, size_t folio_count)
{
	int error;

	for (size_t i = 0; i < folio_count; i++) {
		error = generate(seed, i, pool + i * LOAD_FOLIO_BYTES);
		if (error < 0) {
			fprintf(stderr, "swapload: cannot generate contents: %s\n", strerror(-error));
			return error;
		}
	}
	return (long)folio_count;
}

static long fill_synthetic(uint64_t seed, uint8_t *pool, size_t folio_count)
{
	return fill_generated(load_generate_synthetic, seed, pool, folio_count);
}

static long fill_random(uint64_t seed, uint8_t *pool, size_t folio_count)
{
	return fill_generated(load_generate_random, seed, pool, folio_count);
}

static long fill_text(uint64_t seed, uint8_t *pool, size_t folio_count)
{
	return fill_generated(load_generate_text, seed, pool, folio_count);
}

static long fill_zero(uint64_t seed, uint8_t *pool, size_t folio_count)
{
	(void)seed;
	memset(pool, 0, folio_count * LOAD_FOLIO_BYTES);
	return (long)folio_count;
}

static long fill_heap(uint64_t seed, uint8_t *pool, size_t folio_count)
{
	(void)seed;
	return load_heap_fill(pool, folio_count);
}

const struct load_content_kind load_content_kinds[] = {
	{"heap", "memory of python3, perl, cc1, node and awk started for this", true, true, fill_heap},
	{"synthetic", "seeded imitation of heaps, the same on every machine", true, false, fill_synthetic},
	{"random", "does not compress", true, false, fill_random},
	{"zero", "zeros only", false, false, fill_zero},
	{"text", "seeded log lines", true, false, fill_text},
	{NULL, NULL, false, false, NULL},
};

const struct load_content_kind *load_content_kind_find(const char *name)
{
	for (const struct load_content_kind *kind = load_content_kinds; kind->name; kind++) {
		if (strcmp(kind->name, name) == 0)
			return kind;
	}
	return NULL;
}

int load_content_init(
	const struct load_content_kind *kind, uint64_t seed, uint64_t pool_bytes, struct load_content *ret_content)
{
	struct load_content content = {.kind = kind, .seed = seed, .mapped_bytes = pool_bytes};
	int error = 0;
	long filled;

	content.pool =
		mmap(NULL, pool_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (content.pool == MAP_FAILED) {
		error = -errno;
		fprintf(stderr, "swapload: cannot map %llu bytes for the pool of contents: %s; give a smaller --pool\n",
			(unsigned long long)pool_bytes, strerror(errno));
		return error;
	}
	content.locked = mlock(content.pool, pool_bytes) == 0;
	filled = kind->fill(seed, content.pool, pool_bytes / LOAD_FOLIO_BYTES);
	if (filled < 0) {
		load_content_deinit(&content);
		return (int)filled;
	}
	content.pool_folios = (size_t)filled;
	*ret_content = content;
	return 0;
}

void load_content_deinit(struct load_content *content)
{
	if (content->pool)
		munmap(content->pool, content->mapped_bytes);
	content->pool = NULL;
}

/*
 * A stamp, little-endian in the first 8 bytes of a page:
 *
 *  63    56 55          32 31                 0
 * +--------+--------------+--------------------+
 * | region |   version    |        page        |
 * +--------+--------------+--------------------+
 */
#define STAMP_BYTES sizeof(uint64_t)

static uint64_t stamp_make(struct load_page_id id)
{
	return (uint64_t)id.region << 56 | (uint64_t)(id.version & LOAD_VERSION_MAX) << 32 | (uint32_t)id.page;
}

struct load_page_id load_stamp_parts(uint64_t stamp)
{
	return (struct load_page_id){
		.page = (uint32_t)stamp,
		.region = (uint32_t)(stamp >> 56),
		.version = (uint32_t)(stamp >> 32) & LOAD_VERSION_MAX,
	};
}

/* The next version of a folio is the next pool folio: no byte range stays the same by design. */
static const uint8_t *pool_page(const struct load_content *content, struct load_page_id id)
{
	uint64_t folio = id.page / LOAD_FOLIO_PAGES + 3 * id.region + id.version;

	return content->pool + folio % content->pool_folios * LOAD_FOLIO_BYTES +
	       id.page % LOAD_FOLIO_PAGES * LOAD_PAGE_BYTES;
}

void load_content_write(const struct load_content *content, struct load_page_id id, void *page)
{
	const uint8_t *from = pool_page(content, id);
	uint64_t stamp = htole64(stamp_make(id));

	if (content->kind->has_stamp)
		memcpy(page, &stamp, STAMP_BYTES);
	else
		memcpy(page, from, STAMP_BYTES);
	memcpy((uint8_t *)page + STAMP_BYTES, from + STAMP_BYTES, LOAD_PAGE_BYTES - STAMP_BYTES);
}

static bool is_zero(const void *page)
{
	const uint8_t *bytes = page;

	return !bytes[0] && memcmp(bytes, bytes + 1, LOAD_PAGE_BYTES - 1) == 0;
}

bool load_content_is_right(const struct load_content *content, struct load_page_id id, const void *page)
{
	const uint8_t *from;
	uint64_t stamp = htole64(stamp_make(id));

	if (id.version == LOAD_VERSION_NONE)
		return is_zero(page);
	from = pool_page(content, id);
	if (memcmp(page, content->kind->has_stamp ? (const void *)&stamp : from, STAMP_BYTES) != 0)
		return false;
	return memcmp((const uint8_t *)page + STAMP_BYTES, from + STAMP_BYTES, LOAD_PAGE_BYTES - STAMP_BYTES) == 0;
}

void load_content_compare(const struct load_content *content, struct load_page_id id, const void *page,
	struct load_mismatch *ret_mismatch)
{
	struct load_mismatch mismatch = {.id = id, .all_zero = is_zero(page)};
	const uint8_t *found = page;
	uint8_t expected[LOAD_PAGE_BYTES] = {0};
	size_t shown;

	if (id.version != LOAD_VERSION_NONE)
		load_content_write(content, id, expected);
	memcpy(&mismatch.found_stamp, found, STAMP_BYTES);
	mismatch.found_stamp = le64toh(mismatch.found_stamp);
	for (uint32_t i = 0; i < LOAD_PAGE_BYTES; i++) {
		if (found[i] == expected[i])
			continue;
		if (!mismatch.bytes)
			mismatch.offset = i;
		mismatch.bytes++;
	}
	shown = LOAD_PAGE_BYTES - mismatch.offset;
	if (shown > LOAD_MISMATCH_BYTES)
		shown = LOAD_MISMATCH_BYTES;
	mismatch.address = (uint64_t)(uintptr_t)page + mismatch.offset;
	memcpy(mismatch.expected, expected + mismatch.offset, shown);
	memcpy(mismatch.found, found + mismatch.offset, shown);
	*ret_mismatch = mismatch;
}
