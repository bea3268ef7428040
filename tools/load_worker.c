// SPDX-License-Identifier: GPL-2.0-or-later
/* The worker process and the phases that go through its region in order. */
#include "load_worker.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "load_run.h"

#define COUNT_STRETCH_BYTES (64 * MIB)

static void fail(struct load_worker *worker, const char *step)
{
	worker->error = errno ? -errno : -EIO;
	worker->error_step = step;
}

static void pin(const struct load_worker *worker)
{
	cpu_set_t set;

	if (worker->cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((unsigned)worker->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Reserves more than needed to find an aligned start, then maps just there: huge pages of tmpfs follow the offset. */
static uint8_t *map_aligned(uint64_t bytes, uint64_t align_bytes, bool shared)
{
	uint8_t *reserved =
		mmap(NULL, bytes + align_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *start;

	if (reserved == MAP_FAILED)
		return NULL;
	start = (uint8_t *)(uintptr_t)round_up_u64((uintptr_t)reserved, align_bytes);
	start = mmap(start, bytes, PROT_READ | PROT_WRITE,
		(shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	return start == MAP_FAILED ? NULL : start;
}

static void map_region(struct load_worker *worker)
{
	const struct load_options *options = worker->run->options;
	int advice = options->thp == LOAD_THP_ON ? MADV_HUGEPAGE : MADV_NOHUGEPAGE;

	worker->region = map_aligned(worker->region_bytes, load_huge_page_bytes(), options->workload->shares_memory);
	if (!worker->region) {
		fail(worker, "mmap of the region");
		return;
	}
	/* A kernel built without huge pages refuses both; off is what it does then. */
	if (options->thp != LOAD_THP_SYSTEM && madvise(worker->region, worker->region_bytes, advice) < 0 &&
		options->thp == LOAD_THP_ON)
		fail(worker, "madvise(MADV_HUGEPAGE)");
}

static void add_usage(struct load_effort *effort, const struct rusage *usage, int sign)
{
	effort->major_faults += (uint64_t)(sign * usage->ru_majflt);
	effort->minor_faults += (uint64_t)(sign * usage->ru_minflt);
	effort->user_us += (uint64_t)(sign * (usage->ru_utime.tv_sec * 1000000 + usage->ru_utime.tv_usec));
	effort->system_us += (uint64_t)(sign * (usage->ru_stime.tv_sec * 1000000 + usage->ru_stime.tv_usec));
}

static void do_phase(struct load_worker *worker, const struct load_command *command)
{
	struct rusage before, after;

	memset(&worker->effort, 0, sizeof(worker->effort));
	getrusage(RUSAGE_SELF, &before);
	worker->effort.start_ns = clock_ns();
	command->phase(worker, command->version);
	worker->effort.end_ns = clock_ns();
	getrusage(RUSAGE_SELF, &after);
	add_usage(&worker->effort, &before, -1);
	add_usage(&worker->effort, &after, 1);
}

void load_worker_main(struct load_worker *worker, int command_fd, int reply_fd)
{
	const struct load_cgroup *cgroup = &worker->run->cgroup;
	struct load_command command;
	uint8_t reply = (uint8_t)worker->index;

	pin(worker);
	if (cgroup->version) {
		worker->error = load_cgroup_join(cgroup);
		worker->error_step = "joining the cgroup";
	}
	if (!worker->error)
		map_region(worker);
	if (write(reply_fd, &reply, 1) != 1)
		_exit(1);
	while (read(command_fd, &command, sizeof(command)) == sizeof(command)) {
		do_phase(worker, &command);
		if (write(reply_fd, &reply, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

void load_worker_verify(struct load_worker *worker, uint64_t page, uint32_t version)
{
	struct load_page_id id = load_worker_page_id(worker, page, version);
	const uint8_t *bytes = worker->region + page * LOAD_PAGE_BYTES;
	struct load_mismatch mismatch;

	worker->verified_bytes += LOAD_PAGE_BYTES;
	if (load_content_is_right(&worker->run->content, id, bytes))
		return;
	load_content_compare(&worker->run->content, id, bytes, &mismatch);
	if (!worker->mismatched_bytes)
		worker->first_mismatch = mismatch;
	/* A page that is right at the second look was wrong all the same. */
	worker->mismatched_bytes += mismatch.bytes ? mismatch.bytes : 1;
}

void load_phase_write(struct load_worker *worker, uint32_t version)
{
	for (uint64_t page = 0; page < worker->region_bytes / LOAD_PAGE_BYTES; page++)
		load_content_write(&worker->run->content, load_worker_page_id(worker, page, version),
			worker->region + page * LOAD_PAGE_BYTES);
	worker->effort.bytes = worker->region_bytes;
}

/* What came back page by page is no huge page: given back, it can be made whole again. */
void load_phase_refill(struct load_worker *worker, uint32_t version)
{
	bool shared = worker->run->options->workload->shares_memory;

	if (version > 1 && madvise(worker->region, worker->region_bytes, shared ? MADV_REMOVE : MADV_DONTNEED) < 0) {
		fail(worker, shared ? "madvise(MADV_REMOVE)" : "madvise(MADV_DONTNEED)");
		return;
	}
	load_phase_write(worker, version);
}

void load_phase_rewrite(struct load_worker *worker, uint32_t version)
{
	for (uint64_t page = 0; page < worker->region_bytes / LOAD_PAGE_BYTES; page++) {
		load_worker_verify(worker, page, version - 1);
		load_content_write(&worker->run->content, load_worker_page_id(worker, page, version),
			worker->region + page * LOAD_PAGE_BYTES);
	}
	worker->effort.bytes = worker->region_bytes;
}

void load_phase_verify(struct load_worker *worker, uint32_t version)
{
	for (uint64_t page = 0; page < worker->region_bytes / LOAD_PAGE_BYTES; page++)
		load_worker_verify(worker, page, version);
	worker->effort.bytes = worker->region_bytes;
}

void load_phase_unmap(struct load_worker *worker, uint32_t version)
{
	(void)version;
	worker->effort.bytes = worker->region_bytes;
	if (munmap(worker->region, worker->region_bytes) < 0)
		fail(worker, "munmap");
	else
		worker->region = NULL;
}

void load_phase_count_out(struct load_worker *worker, uint32_t version)
{
	static unsigned char resident[COUNT_STRETCH_BYTES / 4096];
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE), stretch_bytes;

	(void)version;
	for (uint64_t at = 0; at < worker->region_bytes; at += stretch_bytes) {
		stretch_bytes = worker->region_bytes - at;
		if (stretch_bytes > COUNT_STRETCH_BYTES)
			stretch_bytes = COUNT_STRETCH_BYTES;
		if (mincore(worker->region + at, stretch_bytes, resident) < 0) {
			fail(worker, "mincore");
			return;
		}
		for (uint64_t i = 0; i < stretch_bytes / page_bytes; i++)
			worker->effort.bytes += resident[i] & 1 ? 0 : page_bytes;
	}
}
