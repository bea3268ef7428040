// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The parent: what is shared, the workers' start and end, and the phases.
 *
 *   parent                      worker
 *   command (pipe of each) -->  phase
 *   reply (one pipe)       <--  its index, when the phase is done
 *
 * A worker that dies is seen by SIGCHLD, which makes signal_fd readable.
 */
#include "load_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "load_stop.h"

#define SAMPLE_MS 100
#define SETTLE_TIMEOUT_NS UINT64_C(30000000000)

static int map_shared(struct load_run *run)
{
	const struct load_options *options = run->options;
	uint64_t region_bytes =
		round_up_u64((options->size_bytes + options->workers - 1) / options->workers, load_huge_page_bytes());
	uint64_t pages = region_bytes / LOAD_PAGE_BYTES, first_bytes = options->workers * sizeof(struct load_worker);
	uint32_t *versions;
	void *shared;

	run->shared_bytes = first_bytes + options->workers * pages * sizeof(uint32_t);
	shared =
		mmap(NULL, run->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (shared == MAP_FAILED) {
		fprintf(stderr, "swapload: cannot map shared memory: %s\n", strerror(errno));
		return -ENOMEM;
	}
	run->workers = shared;
	if (mlock(shared, run->shared_bytes) < 0 || !run->content.locked)
		fprintf(stderr,
			"swapload: warning: the memory to compare with could not be locked and may be swapped too; "
			"raise `ulimit -l`\n");
	versions = (uint32_t *)((uint8_t *)shared + first_bytes);
	for (unsigned i = 0; i < options->workers; i++) {
		run->workers[i].run = run;
		run->workers[i].index = i;
		run->workers[i].command_fd = -1;
		run->workers[i].region_bytes = region_bytes;
		run->workers[i].versions = versions + i * pages;
		run->workers[i].rng = load_rng_seeded(options->seed, UINT64_C(0x10000) + i);
	}
	return 0;
}

/* The index-th of the processors this process may use, over and over. */
static int cpu_of(unsigned index)
{
	cpu_set_t set;
	unsigned count;

	if (sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) == 0)
		return -1;
	count = index % (unsigned)CPU_COUNT(&set);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set) && count-- == 0)
			return (int)cpu;
	}
	return -1;
}

static int start_worker(struct load_run *run, struct load_worker *worker)
{
	pid_t parent = getpid(), pid;
	int fds[2];

	worker->cpu = cpu_of(worker->index);
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		load_stop_child(parent);
		close(fds[1]);
		load_worker_main(worker, fds[0], run->reply_fds[1]);
	}
	close(fds[0]);
	if (pid < 0) {
		close(fds[1]);
		return -EAGAIN;
	}
	worker->command_fd = fds[1];
	worker->pid = pid;
	run->started++;
	return 0;
}

static void report_death(const struct load_run *run, struct load_worker *worker, int status)
{
	uint64_t kills = load_cgroup_oom_kills(&run->cgroup);
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	const char *why = "";

	if (number == SIGBUS)
		why = ": a page could not be read back from the swap device (I/O error), or memory failed";
	else if (number == SIGKILL && kills)
		why = ": the cgroup was out of memory; is swap full? see /proc/swaps";
	else if (number == SIGKILL)
		why = ": somebody killed it, or the kernel for want of memory; see the kernel log";
	if (number)
		fprintf(stderr, "swapload: worker %u (pid %d) was killed by signal %d (%s)%s\n", worker->index,
			(int)worker->pid, number, strsignal(number), why);
	else
		fprintf(stderr, "swapload: worker %u (pid %d) ended early with code %d\n", worker->index,
			(int)worker->pid, WEXITSTATUS(status));
	worker->pid = 0;
}

static bool has_death(struct load_run *run)
{
	bool dead = false;
	int status;

	for (unsigned i = 0; i < run->started; i++) {
		if (!run->workers[i].pid || waitpid(run->workers[i].pid, &status, WNOHANG) != run->workers[i].pid)
			continue;
		report_death(run, &run->workers[i], status);
		dead = true;
	}
	return dead;
}

uint64_t load_run_swap_bytes(const struct load_run *run)
{
	struct load_counters now;
	uint64_t bytes = 0, used_before = run->before.swap_total_bytes - run->before.swap_free_bytes;

	if (run->cgroup.version)
		return load_cgroup_swap_bytes(&run->cgroup);
	if (run->options->workload->shares_memory) {
		load_counters_read(&now);
		bytes = now.swap_total_bytes - now.swap_free_bytes;
		return bytes > used_before ? bytes - used_before : 0;
	}
	for (unsigned i = 0; i < run->started; i++)
		bytes += run->workers[i].pid ? load_process_swap_bytes(run->workers[i].pid) : 0;
	return bytes;
}

static void sample_swap(struct load_run *run)
{
	uint64_t bytes = load_run_swap_bytes(run);

	if (bytes > run->swap_peak_bytes)
		run->swap_peak_bytes = bytes;
}

/* Until every worker has replied. Returns 0, -ECHILD or -EINTR. */
static int await_replies(struct load_run *run)
{
	struct pollfd wait[2] = {{.fd = run->signal_fd, .events = POLLIN}, {.fd = run->reply_fds[0], .events = POLLIN}};
	uint8_t replies[LOAD_WORKERS_MAX];
	unsigned waiting = run->started;
	ssize_t got;

	while (waiting) {
		if (poll(wait, 2, SAMPLE_MS) < 0 && errno != EINTR)
			return -errno;
		if (load_stop_signal())
			return -EINTR;
		if (has_death(run))
			return -ECHILD;
		if (wait[1].revents & POLLIN) {
			got = read(run->reply_fds[0], replies, sizeof(replies));
			waiting -= got > 0 ? (unsigned)got : 0;
		} else {
			sample_swap(run);
		}
	}
	sample_swap(run);
	return 0;
}

static int report_errors(const struct load_run *run)
{
	int error = 0;

	for (unsigned i = 0; i < run->started; i++) {
		if (!run->workers[i].error)
			continue;
		error = run->workers[i].error;
		fprintf(stderr, "swapload: worker %u: %s failed: %s\n", i, run->workers[i].error_step,
			strerror(-error));
	}
	return error;
}

static int start_workers(struct load_run *run)
{
	int error = 0;

	if (pipe2(run->reply_fds, O_CLOEXEC) < 0)
		return -errno;
	for (unsigned i = 0; error == 0 && i < run->options->workers; i++)
		error = start_worker(run, &run->workers[i]);
	if (error < 0) {
		fprintf(stderr, "swapload: cannot start a worker: %s\n", strerror(-error));
		return error;
	}
	error = await_replies(run);
	return error < 0 ? error : report_errors(run);
}

/* Better now than by the kernel's out-of-memory killer in the middle. */
static int check_swap(const struct load_run *run)
{
	const struct load_options *options = run->options;
	uint64_t needed_bytes =
		options->size_bytes > options->limit_bytes ? options->size_bytes - options->limit_bytes : 0;

	if (!options->limit_bytes || run->before.swap_free_bytes >= needed_bytes)
		return 0;
	fprintf(stderr,
		"swapload: %llu MiB within a limit of %llu MiB need %llu MiB of free swap, there are %llu MiB; "
		"switch a swap device on, or give a smaller --size\n",
		(unsigned long long)(options->size_bytes / MIB), (unsigned long long)(options->limit_bytes / MIB),
		(unsigned long long)(needed_bytes / MIB), (unsigned long long)(run->before.swap_free_bytes / MIB));
	return -ENOSPC;
}

static int make_cgroup(struct load_run *run)
{
	const struct load_options *options = run->options;
	int error;

	if (!options->limit_bytes && !options->workload->wants_cgroup)
		return 0;
	error = load_cgroup_create(options->cgroup_name, options->limit_bytes, &run->cgroup);
	if (error < 0 && !options->limit_bytes && error != -EBUSY) {
		fprintf(stderr, "swapload: going on in the caller's cgroup\n");
		return 0;
	}
	return error;
}

int load_run_init(const struct load_options *options, int signal_fd, struct load_run *run)
{
	int error;

	memset(run, 0, sizeof(*run));
	run->options = options;
	run->signal_fd = signal_fd;
	run->reply_fds[0] = run->reply_fds[1] = -1;
	run->cgroup.directory_fd = -1;
	run->free_s = -1;
	load_counters_read(&run->before);
	error = check_swap(run);
	if (error < 0)
		return error;
	/* The longest workload has four phases a pass, and one more. */
	run->passes = calloc(4 * (size_t)options->passes + 4, sizeof(run->passes[0]));
	if (!run->passes)
		return -ENOMEM;
	error = load_content_init(options->content, options->seed, options->pool_bytes, &run->content);
	if (error == 0)
		error = map_shared(run);
	if (error == 0)
		error = make_cgroup(run);
	if (error == 0)
		error = start_workers(run);
	load_counters_read(&run->before);
	return error;
}

int load_run_deinit(struct load_run *run)
{
	int status, error = 0;

	for (unsigned i = 0; i < run->started; i++) {
		if (!run->workers[i].pid)
			continue;
		kill(run->workers[i].pid, SIGKILL);
		if (waitpid(run->workers[i].pid, &status, 0) == run->workers[i].pid && WIFSIGNALED(status) &&
			WTERMSIG(status) != SIGKILL) {
			report_death(run, &run->workers[i], status);
			error = -ECHILD;
		}
	}
	load_cgroup_remove(&run->cgroup);
	load_content_deinit(&run->content);
	if (run->workers)
		munmap(run->workers, run->shared_bytes);
	free(run->passes);
	return error;
}

struct load_pass *load_run_last_pass(struct load_run *run)
{
	return &run->passes[run->pass_count - 1];
}

static void add_pass(struct load_run *run, const struct load_pass *made)
{
	struct load_pass pass = *made;
	const struct load_effort *effort;

	pass.effort.start_ns = UINT64_MAX;
	for (unsigned i = 0; i < run->started; i++) {
		effort = &run->workers[i].effort;
		if (effort->start_ns < pass.effort.start_ns)
			pass.effort.start_ns = effort->start_ns;
		if (effort->end_ns > pass.effort.end_ns)
			pass.effort.end_ns = effort->end_ns;
		pass.effort.bytes += effort->bytes;
		pass.effort.major_faults += effort->major_faults;
		pass.effort.minor_faults += effort->minor_faults;
		pass.effort.user_us += effort->user_us;
		pass.effort.system_us += effort->system_us;
	}
	pass.seconds = (double)(pass.effort.end_ns - pass.effort.start_ns) / 1e9;
	run->passes[run->pass_count++] = pass;
}

int load_run_phase(struct load_run *run, const char *name, unsigned number, enum load_direction direction,
	load_phase_function *phase, uint32_t version)
{
	struct load_command command = {.phase = phase, .version = version};
	struct load_pass pass = {.phase = name, .number = number, .direction = direction};
	int error;

	for (unsigned i = 0; i < run->started; i++) {
		/* A worker that died just now is found by await_replies. */
		if (write(run->workers[i].command_fd, &command, sizeof(command)) < 0 && errno != EPIPE)
			return -errno;
	}
	error = await_replies(run);
	if (error < 0)
		return error;
	add_pass(run, &pass);
	error = report_errors(run);
	for (unsigned i = 0; error == 0 && i < run->started; i++) {
		if (run->workers[i].mismatched_bytes)
			error = -EBADMSG;
	}
	return error;
}

static uint64_t writeback_bytes(const struct load_run *run)
{
	struct load_counters now;

	if (run->cgroup.version)
		return load_cgroup_stat(&run->cgroup, run->cgroup.version == 2 ? "file_writeback" : "writeback");
	load_counters_read(&now);
	return now.writeback_pages > run->before.writeback_pages
		       ? (now.writeback_pages - run->before.writeback_pages) * LOAD_PAGE_BYTES
		       : 0;
}

double load_run_settle(struct load_run *run)
{
	uint64_t start_ns = clock_ns(), end_ns;

	while (writeback_bytes(run) && clock_ns() - start_ns < SETTLE_TIMEOUT_NS && load_stop_sleep_ms(1))
		continue;
	end_ns = clock_ns();
	load_cgroup_reclaim(&run->cgroup);
	sample_swap(run);
	return (double)(end_ns - start_ns) / 1e9;
}
