/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the workloads write and what they must find again.
 *
 * A pool of whole folios (2 MiB) is made once, before any worker is limited:
 * shared, touched and locked by the parent, so that it is charged to the
 * parent and never swapped to the device under test. The content of every page
 * ever written is computed from it, so no second copy of the working set is
 * held: folio f of region r in version v holds one pool folio as it is, its
 * pages in address order (a compressor of whole folios sees real neighbours),
 * and the first 8 bytes of each page are replaced by a stamp that names region,
 * page and version. Stale and misplaced pages are thus found as surely as
 * damaged ones. Zero content carries no stamp: it must stay zero.
 *
 * A page is 4 KiB here whatever the host's page size is.
 *
 * load_content_write and load_content_check: any thread or process, no
 * allocation, no system call.
 */
#ifndef LOAD_CONTENT_H
#define LOAD_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "load_generate.h"
#include "units.h"

#define LOAD_PAGE_BYTES GRANULE_BYTES
#define LOAD_FOLIO_PAGES (LOAD_FOLIO_BYTES / LOAD_PAGE_BYTES)

/* Version of a page that was never written, or was given back: reads as zeros. */
#define LOAD_VERSION_NONE 0

#define LOAD_REGION_MAX 255
#define LOAD_VERSION_MAX ((UINT32_C(1) << 24) - 1)

/* Fills all folios of the pool, or fewer. Returns how many (> 0) or a negative errno after saying what failed. */
typedef long load_fill_function(uint64_t seed, uint8_t *pool, size_t folio_count);

struct load_content_kind {
	const char *name;
	const char *summary;
	bool has_stamp;
	bool is_private; /* memory of real processes: never printed */
	load_fill_function *fill;
};

/* Ends with a kind whose name is NULL; the first one is the default. */
extern const struct load_content_kind load_content_kinds[];

/* NULL: no such kind. */
const struct load_content_kind *load_content_kind_find(const char *name);

struct load_content {
	const struct load_content_kind *kind;
	uint64_t seed;
	uint8_t *pool;
	size_t pool_folios;
	size_t mapped_bytes;
	bool locked; /* false: mlock was refused, the pool itself may be swapped */
};

/* Which page, of whom, and which content in its life; versions wrap, skipping 0: load_version_next. */
struct load_page_id {
	uint64_t page;
	uint32_t region;
	uint32_t version;
};

static inline uint32_t load_version_next(uint32_t version)
{
	return version == LOAD_VERSION_MAX ? 1 : version + 1;
}

#define LOAD_MISMATCH_BYTES 16

struct load_mismatch {
	uint64_t address; /* of the first byte that differs */
	struct load_page_id id;
	uint64_t found_stamp;
	uint32_t offset; /* of that byte in the page */
	uint32_t bytes;  /* how many bytes of the page differ */
	bool all_zero;
	uint8_t expected[LOAD_MISMATCH_BYTES]; /* from offset on, fewer at the end of the page */
	uint8_t found[LOAD_MISMATCH_BYTES];
};

/* pool_bytes: a multiple of 2 MiB. Returns 0 or a negative errno after saying what failed. */
int load_content_init(
	const struct load_content_kind *kind, uint64_t seed, uint64_t pool_bytes, struct load_content *ret_content);
void load_content_deinit(struct load_content *content);

void load_content_write(const struct load_content *content, struct load_page_id id, void *page);

/* True: every byte of page is as it was written under that id. */
bool load_content_is_right(const struct load_content *content, struct load_page_id id, const void *page);

/* Describes how a page that is not right differs. */
void load_content_compare(const struct load_content *content, struct load_page_id id, const void *page,
	struct load_mismatch *ret_mismatch);

/* The parts of a stamp, for the report of a mismatch. */
struct load_page_id load_stamp_parts(uint64_t stamp);

#endif
