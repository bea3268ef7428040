// SPDX-License-Identifier: GPL-2.0-or-later
/* Pages of a stopped process, by /proc/PID/maps, pagemap and mem. */
#include "load_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "load_generate.h"

#define PAGEMAP_PRESENT (UINT64_C(1) << 63)
#define PAGEMAP_FILE_OR_SHARED (UINT64_C(1) << 61)

#define RANGES_MAX 4096
#define RANGE_MAX_BYTES (16 * GIB) /* above it: address space reserved (sanitizers do), too sparse to search */
#define FOLIO_HOST_PAGES_MAX (LOAD_FOLIO_BYTES / 4096)

struct range {
	uint64_t start;
	uint64_t end;
};

struct load_capture {
	int memory_fd;
	int pagemap_fd;
	uint64_t page_bytes; /* the host's */
	bool rest;           /* second round: pages outside whole folios */
	unsigned range;      /* where the next folio is looked for */
	uint64_t address;
	unsigned range_count;
	struct range ranges[RANGES_MAX];
};

/* One line of maps: private and readable, and not a stack or the kernel's. */
static bool range_parse(const char *line, struct range *ret_range)
{
	uint64_t start, end;
	char mode[5];
	int name_at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", &start, &end, mode, &name_at) < 3)
		return false;
	if (mode[0] != 'r' || mode[3] != 'p' || end - start > RANGE_MAX_BYTES)
		return false;
	if (name_at && (strncmp(line + name_at, "[stack", 6) == 0 || strncmp(line + name_at, "[v", 2) == 0))
		return false;
	*ret_range = (struct range){start, end};
	return true;
}

static int read_ranges(pid_t pid, struct load_capture *capture)
{
	CLEANUP(fclose) FILE *maps = NULL;
	CLEANUP(free) char *line = NULL;
	size_t line_bytes = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	while (capture->range_count < RANGES_MAX && getline(&line, &line_bytes, maps) > 0) {
		if (range_parse(line, &capture->ranges[capture->range_count]))
			capture->range_count++;
	}
	return 0;
}

static int open_of(pid_t pid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void rewind_to(struct load_capture *capture, bool rest)
{
	capture->rest = rest;
	capture->range = 0;
	capture->address = capture->range_count ? capture->ranges[0].start : 0;
}

int load_capture_create(pid_t pid, struct load_capture **ret_capture)
{
	struct load_capture *capture = calloc(1, sizeof(*capture));
	int error;

	if (!capture)
		return -ENOMEM;
	capture->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	capture->memory_fd = open_of(pid, "mem");
	capture->pagemap_fd = open_of(pid, "pagemap");
	error = capture->memory_fd < 0 ? capture->memory_fd : capture->pagemap_fd;
	if (error >= 0)
		error = read_ranges(pid, capture);
	if (error < 0) {
		load_capture_destroy(capture);
		return error;
	}
	rewind_to(capture, false);
	*ret_capture = capture;
	return 0;
}

void load_capture_destroy(struct load_capture *capture)
{
	if (!capture)
		return;
	if (capture->memory_fd >= 0)
		close(capture->memory_fd);
	if (capture->pagemap_fd >= 0)
		close(capture->pagemap_fd);
	free(capture);
}

/* Marks which of the pages at address are wanted. Returns how many are, or a negative errno. */
static int pages_present(const struct load_capture *capture, uint64_t address, size_t page_count, bool *ret_present)
{
	uint64_t entries[FOLIO_HOST_PAGES_MAX];
	ssize_t bytes = (ssize_t)(page_count * sizeof(entries[0]));
	off_t offset = (off_t)(address / capture->page_bytes * sizeof(entries[0]));
	int count = 0;

	if (pread(capture->pagemap_fd, entries, (size_t)bytes, offset) != bytes)
		return errno ? -errno : -EIO;
	for (size_t i = 0; i < page_count; i++) {
		ret_present[i] = (entries[i] & (PAGEMAP_PRESENT | PAGEMAP_FILE_OR_SHARED)) == PAGEMAP_PRESENT;
		count += ret_present[i];
	}
	return count;
}

static int copy_from(const struct load_capture *capture, uint64_t address, uint8_t *to, size_t bytes)
{
	ssize_t done = pread(capture->memory_fd, to, bytes, (off_t)address);

	if (done < 0)
		return -errno;
	return done == (ssize_t)bytes ? 0 : -EIO;
}

/*
 * The next stretch inside one range: up to the next 2 MiB boundary or the end
 * of the range. *ret_whole: it is an aligned 2 MiB. False: no range is left.
 */
static bool next_stretch(struct load_capture *capture, uint64_t *ret_address, uint64_t *ret_bytes)
{
	uint64_t end;

	while (capture->range < capture->range_count && capture->address >= capture->ranges[capture->range].end) {
		if (++capture->range < capture->range_count)
			capture->address = capture->ranges[capture->range].start;
	}
	if (capture->range >= capture->range_count)
		return false;
	end = round_up_u64(capture->address + 1, LOAD_FOLIO_BYTES);
	if (end > capture->ranges[capture->range].end)
		end = capture->ranges[capture->range].end;
	*ret_address = capture->address;
	*ret_bytes = end - capture->address;
	capture->address = end;
	return true;
}

static int next_whole(struct load_capture *capture, uint8_t *folio)
{
	bool present[FOLIO_HOST_PAGES_MAX];
	size_t pages = LOAD_FOLIO_BYTES / capture->page_bytes;
	uint64_t address, bytes;
	int count;

	while (next_stretch(capture, &address, &bytes)) {
		if (bytes != LOAD_FOLIO_BYTES)
			continue;
		count = pages_present(capture, address, pages, present);
		if (count < 0)
			return count;
		if ((size_t)count == pages && copy_from(capture, address, folio, LOAD_FOLIO_BYTES) == 0)
			return 1;
	}
	return 0;
}

/* Pages of a stretch that no whole folio took. Where the folio is full it steps back: the next call goes on there. */
static uint64_t take_pages(struct load_capture *capture, uint64_t address, const bool *present, size_t page_count,
	uint8_t *folio, uint64_t filled)
{
	for (size_t i = 0; i < page_count; i++) {
		if (filled == LOAD_FOLIO_BYTES) {
			capture->address = address + i * capture->page_bytes;
			break;
		}
		if (!present[i])
			continue;
		if (copy_from(capture, address + i * capture->page_bytes, folio + filled, capture->page_bytes) == 0)
			filled += capture->page_bytes;
	}
	return filled;
}

static int next_rest(struct load_capture *capture, uint8_t *folio)
{
	bool present[FOLIO_HOST_PAGES_MAX];
	uint64_t address, bytes, filled = 0;
	size_t pages;
	int count;

	while (filled < LOAD_FOLIO_BYTES && next_stretch(capture, &address, &bytes)) {
		pages = bytes / capture->page_bytes;
		count = pages_present(capture, address, pages, present);
		if (count < 0)
			return count;
		if (bytes == LOAD_FOLIO_BYTES && (size_t)count == pages)
			continue;
		filled = take_pages(capture, address, present, pages, folio, filled);
	}
	return filled == LOAD_FOLIO_BYTES;
}

int load_capture_next(struct load_capture *capture, uint8_t *folio)
{
	int got;

	if (!capture->rest) {
		got = next_whole(capture, folio);
		if (got != 0)
			return got;
		rewind_to(capture, true);
	}
	return next_rest(capture, folio);
}
