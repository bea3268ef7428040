/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests: what a call writes to stdout or stderr, as text; and a made-up device. */
#ifndef TESTS_CLI_CAPTURE_H
#define TESTS_CLI_CAPTURE_H

#include "control.h"
#include "stats.h"
#include "units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct capture {
	FILE *stream;
	int memory_fd;
	int saved_fd;
};

static inline struct capture capture_begin(FILE *stream)
{
	struct capture capture = {.stream = stream, .memory_fd = memfd_create("capture", MFD_CLOEXEC)};

	fflush(stream);
	capture.saved_fd = dup(fileno(stream));
	if (capture.memory_fd < 0 || capture.saved_fd < 0 || dup2(capture.memory_fd, fileno(stream)) < 0)
		abort();
	return capture;
}

/* The text is the caller's to free. */
static inline char *capture_end(struct capture *capture)
{
	off_t length;
	char *text;

	fflush(capture->stream);
	dup2(capture->saved_fd, fileno(capture->stream));
	close(capture->saved_fd);
	length = lseek(capture->memory_fd, 0, SEEK_END);
	text = calloc(1, (size_t)length + 1);
	if (!text || pread(capture->memory_fd, text, (size_t)length, 0) != length)
		abort();
	close(capture->memory_fd);
	return text;
}

/* A device of 1 GiB with 512 MiB of data in 256 objects, 128 MiB of extents. */
static inline struct control_info fake_info(const char *name)
{
	struct control_info info = {
		.node = "/dev/loop3",
		.transport = "fuse",
		.keeper_pid = 4000,
		.server_pid = 4001,
		.standby_pid = 4002,
		.standby_bytes = 4 * MIB,
		.size_bytes = GIB,
		.max_size_bytes = 4 * GIB,
		.limit_bytes = 2 * GIB,
		.reserve_bytes = 16 * MIB,
		.unit_bytes = 2 * MIB,
		.frame_bytes = 64 * KIB,
		.codec = 3,
		.level = 1,
		.slots = 4,
		.io_threads = 2,
		.compress_threads = 2,
		.discard = 1,
		.daemon_cpu_ns = 2500000000,
		.resident_bytes = 180 * MIB,
	};

	snprintf(info.name, sizeof(info.name), "%s", name);
	return info;
}

static inline struct stats_page *fake_page(size_t *ret_bytes)
{
	size_t bytes = stats_page_bytes(2, 2);
	struct stats_page *page = aligned_alloc(CACHE_LINE_BYTES, bytes);

	if (!page)
		abort();
	memset(page, 0, bytes);
	stats_page_init(page, 2, 2);
	page->gauges.live_bytes = 512 * MIB;
	page->gauges.slot_bytes = 8 * MIB;
	page->gauges.same_bytes = 4 * MIB;
	page->gauges.raw_bytes = 2 * MIB;
	page->gauges.objects = 256;
	page->gauges.object_bytes = 520 * MIB;
	page->gauges.payload_bytes = 120 * MIB;
	page->gauges.extent_bytes = 121 * MIB;
	page->gauges.extent_peak_bytes = 140 * MIB;
	page->gauges.arena_ready_bytes = 144 * MIB;
	page->gauges.arena_empty_bytes = 16 * MIB;
	page->gauges.records_ready_bytes = 2 * MIB;
	page->gauges.limit_bytes = 2 * GIB;
	page->gauges.headroom_bytes = 12 * MIB;
	page->gauges.map_bytes = MIB;
	page->gauges.fixed_bytes = 20 * MIB;
	*ret_bytes = bytes;
	return page;
}

#endif
