// SPDX-License-Identifier: GPL-2.0-or-later
/* Snapshots of devices. */
#include "view.h"

#include "cleanup.h"
#include "cli.h"
#include "cli_device.h"
#include "clock.h"
#include "codec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Every member is one 64-bit word, so snapshots and differences go word by word. */
_Static_assert(sizeof(struct stats_gauges) % sizeof(uint64_t) == 0, "gauges are words");
_Static_assert(sizeof(struct stats_takeovers) % sizeof(uint64_t) == 0, "take-overs are words");
_Static_assert(sizeof(struct stats_sum) % sizeof(uint64_t) == 0, "counters are words");
_Static_assert(CONTROL_UNSAFE_MIN_FREE == 1 << 6, "words of enum control_unsafe");
_Static_assert(sizeof(_Atomic uint64_t) == sizeof(uint64_t), "a gauge is a word");

static void copy_words(void *to, const void *from, size_t bytes)
{
	const uint64_t *source = from;
	uint64_t *target = to;

	for (size_t i = 0; i < bytes / sizeof(*target); i++)
		target[i] = __atomic_load_n(&source[i], __ATOMIC_RELAXED);
}

/* An outage is known at the first answer after it, so later than the take-over is counted. */
static void copy_takeovers(struct stats_takeovers *to, const struct stats_takeovers *from)
{
	copy_words(to, from, sizeof(*to));
	if (!to->count)
		to->last_recover_ns = to->last_open_ns = UINT64_MAX;
	if (!to->worst_outage_ns)
		to->last_outage_ns = to->worst_outage_ns = UINT64_MAX;
}

/* Words by number of the bit; the same as the names of doctor's checks where there is one. */
static const char *const unsafe_words[] = {
	"io-flusher", "oom-score", "memory-lock", "nice", "noswap", "cgroup", "min-free"};
#define UNSAFE_WORDS (sizeof(unsafe_words) / sizeof(unsafe_words[0]))

static void join_unsafe(uint32_t unsafe, char *buffer, size_t buffer_bytes)
{
	size_t length = 0;

	buffer[0] = '\0';
	for (; unsafe && length < buffer_bytes; unsafe &= unsafe - 1) {
		unsigned bit = (unsigned)__builtin_ctz(unsafe);

		length += (size_t)snprintf(buffer + length, buffer_bytes - length, "%s%s", length ? "," : "",
			bit < UNSAFE_WORDS ? unsafe_words[bit] : "unknown");
	}
}

static void fill_from_sum(struct view *view)
{
	const struct stats_io *io = &view->sum.io;

	for (unsigned kind = 0; kind < STATS_KINDS; kind++) {
		view->requests[kind] = view->bytes[kind] = view->errors[kind] = 0;
		for (unsigned order = 0; order < ORDER_COUNT; order++) {
			view->requests[kind] += io->op[kind][order].requests;
			view->bytes[kind] += io->op[kind][order].bytes;
			view->errors[kind] += io->op[kind][order].errors;
		}
	}
	view->read_amplification = figures_ratio(io->read_decoded_bytes, io->read_asked_bytes);
	view->frame_hit_share = figures_ratio(io->frame_hits, io->frame_hits + io->frame_misses);
	view->compress_cpu_ns = view->sum.worker.cpu_ns;
}

struct view *view_create(void)
{
	struct view *view = aligned_alloc(CACHE_LINE_BYTES, sizeof(*view));

	if (view)
		memset(view, 0, sizeof(*view));
	return view;
}

void view_destroy(struct view *view)
{
	free(view);
}

int view_fill(struct view *view, const struct control_info *info, const struct stats_page *page, size_t page_bytes,
	const struct swap_entry *swap)
{
	if (stats_page_check(page, page_bytes))
		return -EPROTO;
	stats_sum(page, &view->sum);
	copy_words(&view->gauges, &page->gauges, sizeof(view->gauges));
	copy_takeovers(&view->takeovers, &page->takeovers);
	view->is_up = true;
	strcpy(view->state, "up");
	view->info = *info;
	view->taken_ns = clock_ns();
	view->swap_priority = swap ? swap->priority : INT32_MIN;
	view->standby_pid = info->standby_pid ? info->standby_pid : INT32_MIN;
	codec_format((struct codec_choice){.id = info->codec, .level = info->level}, view->codec, sizeof(view->codec));
	join_unsafe(info->unsafe, view->unsafe, sizeof(view->unsafe));
	figures_compute(&view->gauges, info->resident_bytes, info->standby_bytes,
		swap ? swap->used_bytes : FIGURES_NONE, &view->figures);
	fill_from_sum(view);
	return 0;
}

void view_fill_dead(struct view *view, const char *name)
{
	pid_t keeper = control_keeper_pid(name);

	view->is_up = false;
	strcpy(view->state, keeper > 0 ? "silent" : "dead");
	snprintf(view->info.name, sizeof(view->info.name), "%s", name);
	view->info.keeper_pid = keeper > 0 ? keeper : INT32_MIN;
}

static int fill_from_image(struct view *view, const struct control_info *info, int image_fd)
{
	struct swap_entry entries[SWAPS_MAX];
	int count = swaps_read("/proc/swaps", entries, SWAPS_MAX), error;
	void *page = mmap(NULL, info->stats_bytes, PROT_READ, MAP_SHARED, image_fd, (off_t)info->stats_offset);

	if (page == MAP_FAILED)
		return -errno;
	error = view_fill(view, info, page, info->stats_bytes, swaps_find(entries, count, info->node));
	munmap(page, info->stats_bytes);
	return error;
}

int view_load(const char *name, struct view *view)
{
	CLEANUP(close_fd) int image_fd = -1;
	struct control_info info;
	int result = device_info(name, &info, &image_fd), error;

	if (result) {
		view_fill_dead(view, name);
		return result;
	}
	error = fill_from_image(view, &info, image_fd);
	if (error) {
		view_fill_dead(view, name);
		return cli_fail(CLI_FAILED, "device %s: its statistics cannot be read (%s); is it of another version?",
			name, strerror(-error));
	}
	return CLI_DONE;
}

/* The longest event of an interval is not kept: the middle of the last bucket that grew stands for it. */
static void limit_maximum(struct hist *hist, uint64_t lifetime_max_ns)
{
	hist->max_ns = 0;
	for (unsigned bucket = HIST_BUCKETS; bucket-- > 0;) {
		if (!hist->count[bucket])
			continue;
		hist->max_ns = hist_bucket_middle_ns(bucket);
		break;
	}
	if (hist->max_ns > lifetime_max_ns || hist->count[HIST_BUCKETS - 1])
		hist->max_ns = lifetime_max_ns;
}

void view_difference(struct view *ret, const struct view *later, const struct view *earlier)
{
	const uint64_t *old = (const uint64_t *)&earlier->sum;
	uint64_t *word = (uint64_t *)&ret->sum;

	*ret = *later;
	for (size_t i = 0; i < sizeof(ret->sum) / sizeof(*word); i++)
		word[i] -= old[i];
	for (unsigned kind = 0; kind < STATS_KINDS; kind++)
		for (unsigned order = 0; order < ORDER_COUNT; order++)
			limit_maximum(
				&ret->sum.io.op[kind][order].latency, later->sum.io.op[kind][order].latency.max_ns);
	limit_maximum(&ret->sum.worker.close_ns, later->sum.worker.close_ns.max_ns);
	fill_from_sum(ret);
}
