// SPDX-License-Identifier: GPL-2.0-or-later
/* Starts the processes, waits until they have grown, stops them, takes their pages in turn, ends them. */
#include "load_heap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "load_capture.h"
#include "load_generate.h"
#include "load_heap_kinds.h"
#include "load_stop.h"
#include "textfile.h"

#define KINDS_MAX 8
#define GROW_TIMEOUT_S 20
#define QUIET_NS UINT64_C(1500000000) /* grown no more for so long: it has what it wanted */
#define STARTED_BYTES (8 * MIB)       /* less is an interpreter without data, or what is to become one */
#define POLL_MS 20

struct heap_process {
	const struct load_heap_kind *kind;
	char program[PATH_MAX];
	pid_t pid; /* 0: not running */
	bool stopped;
	uint64_t heap_bytes;
	uint64_t changed_ns;
	uint64_t changed_cpu_ns; /* its CPU time then */
	struct load_capture *capture;
	size_t folios_taken;
	const char *problem; /* why nothing can be taken, as far as it is known */
};

struct heap_set {
	unsigned count;
	struct heap_process processes[KINDS_MAX];
};

static char sources[128];

const char *load_heap_sources(void)
{
	return sources;
}

static bool is_in_path(const char *name, char *ret_program, size_t program_bytes)
{
	const char *at = getenv("PATH");
	size_t length;

	for (at = at ? at : "/usr/bin:/bin"; *at; at += length + (at[length] == ':')) {
		length = strcspn(at, ":");
		if (length == 0 || length + strlen(name) + 2 > program_bytes)
			continue;
		snprintf(ret_program, program_bytes, "%.*s/%s", (int)length, at, name);
		if (access(ret_program, X_OK) == 0)
			return true;
	}
	return false;
}

/* Asks the compiler driver where its helper is; false: it has none. */
static bool find_helper(const struct load_heap_kind *kind, char *program, size_t program_bytes)
{
	char command[128];
	FILE *answer;
	bool found;

	snprintf(command, sizeof(command), "%s -print-prog-name=%s 2>/dev/null", kind->program, kind->helper);
	answer = popen(command, "re");
	if (!answer)
		return false;
	found = fgets(program, (int)program_bytes, answer) != NULL;
	pclose(answer);
	if (found)
		program[strcspn(program, "\n")] = '\0';
	return found && program[0] == '/' && access(program, X_OK) == 0;
}

static void find_programs(struct heap_set *set)
{
	const struct load_heap_kind *kind;
	struct heap_process *process;

	for (kind = load_heap_kinds; kind->name && set->count < KINDS_MAX; kind++) {
		process = &set->processes[set->count];
		if (!is_in_path(kind->program, process->program, sizeof(process->program)))
			continue;
		if (kind->helper && !find_helper(kind, process->program, sizeof(process->program)))
			continue;
		process->kind = kind;
		set->count++;
	}
}

static bool has_interpreter(const struct heap_set *set)
{
	for (unsigned i = 0; i < set->count; i++) {
		if (!set->processes[i].kind->helper)
			return true;
	}
	return false;
}

static void exec_program(const struct heap_process *process, int input_fd, uint64_t heap_bytes)
{
	char path[PATH_MAX + 8], text_bytes[32];
	char *environment[] = {path, "LC_ALL=C.UTF-8", NULL};
	const char *arguments[10];
	unsigned count = 0;
	int null_fd = open("/dev/null", O_RDWR);

	snprintf(path, sizeof(path), "PATH=%s", getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
	snprintf(text_bytes, sizeof(text_bytes), "%llu", (unsigned long long)heap_bytes);
	arguments[count++] = process->program;
	for (unsigned i = 0; process->kind->options[i]; i++)
		arguments[count++] = process->kind->options[i];
	if (process->kind->script) {
		arguments[count++] = process->kind->script;
		arguments[count++] = text_bytes;
	}
	arguments[count] = NULL;
	if (dup2(input_fd >= 0 ? input_fd : null_fd, 0) < 0 || dup2(null_fd, 1) < 0 || dup2(null_fd, 2) < 0)
		_exit(127);
	execve(process->program, (char **)arguments, environment);
	_exit(127);
}

/* A program that does not start is left out; the others make up for it. */
static void start_process(struct heap_process *process, uint64_t heap_bytes)
{
	CLEANUP(close_fd) int input_fd = -1;
	pid_t parent = getpid(), pid;

	process->problem = "it could not be started";
	if (process->kind->open_input) {
		input_fd = process->kind->open_input(heap_bytes);
		if (input_fd < 0)
			return;
	}
	pid = fork();
	if (pid == 0) {
		load_stop_child(parent);
		exec_program(process, input_fd, heap_bytes);
	}
	process->pid = pid > 0 ? pid : 0;
	process->changed_ns = clock_ns();
}

static uint64_t heap_bytes_of(pid_t pid)
{
	char path[64], text[128];
	unsigned long long resident, shared;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	if (textfile_read(path, text, sizeof(text)) < 0 || sscanf(text, "%*u %llu %llu", &resident, &shared) != 2 ||
		resident < shared)
		return 0;
	return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* CPU time so far, and whether it sleeps: neither runs, nor waits for a CPU or for a disk. */
static uint64_t cpu_ns_of(pid_t pid, bool *ret_sleeps)
{
	char path[64], text[1024], *after_name;
	unsigned long long user_ticks, system_ticks;
	char process_state;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (textfile_read(path, text, sizeof(text)) < 0 || !(after_name = strrchr(text, ')')) ||
		sscanf(after_name, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &process_state,
			&user_ticks, &system_ticks) != 3)
		return 0;
	*ret_sleeps = process_state == 'S';
	return (user_ticks + system_ticks) * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
}

static void stop_process(struct heap_process *process, const char *problem)
{
	int status;

	process->problem = problem;
	kill(process->pid, SIGSTOP);
	if (waitpid(process->pid, &status, WUNTRACED) != process->pid || !WIFSTOPPED(status)) {
		process->pid = 0; /* it ended first */
		process->problem = "it ended by itself";
	} else {
		process->stopped = true;
	}
}

/*
 * Grown no more, although it had the time. On a busy machine a process may
 * wait for a CPU or a disk longer than that: it counts as quiet when it sleeps
 * or has used as much CPU time. Before it has anything it is still starting.
 */
static bool is_quiet(struct heap_process *process, uint64_t now_ns)
{
	uint64_t heap_bytes = heap_bytes_of(process->pid), cpu_ns;
	bool sleeps = false;

	cpu_ns = cpu_ns_of(process->pid, &sleeps);
	if (heap_bytes != process->heap_bytes) {
		process->heap_bytes = heap_bytes;
		process->changed_ns = now_ns;
		process->changed_cpu_ns = cpu_ns;
	}
	return heap_bytes >= STARTED_BYTES && now_ns - process->changed_ns >= QUIET_NS &&
	       (sleeps || cpu_ns >= process->changed_cpu_ns + QUIET_NS);
}

/* True: the process is stopped, or gone. */
static bool watch_process(struct heap_process *process, uint64_t wanted_bytes, uint64_t now_ns)
{
	if (!process->pid || process->stopped)
		return true;
	if (waitpid(process->pid, NULL, WNOHANG) == process->pid) {
		process->pid = 0;
		process->problem = "it ended by itself";
		return true;
	}
	if (!is_quiet(process, now_ns) && process->heap_bytes < wanted_bytes)
		return false;
	stop_process(process, "it has no folio of data");
	return true;
}

static int grow_all(struct heap_set *set, uint64_t wanted_bytes)
{
	uint64_t now_ns, end_ns = clock_ns() + GROW_TIMEOUT_S * UINT64_C(1000000000);
	unsigned waiting;

	do {
		if (!load_stop_sleep_ms(POLL_MS))
			return -EINTR;
		now_ns = clock_ns();
		waiting = 0;
		for (unsigned i = 0; i < set->count; i++)
			waiting += !watch_process(&set->processes[i], wanted_bytes, now_ns);
	} while (waiting && now_ns < end_ns);
	for (unsigned i = 0; i < set->count; i++) {
		if (set->processes[i].pid && !set->processes[i].stopped)
			stop_process(&set->processes[i], "it had not grown enough in time");
	}
	return 0;
}

static void end_all(struct heap_set *set)
{
	struct heap_process *process;

	for (unsigned i = 0; i < set->count; i++) {
		process = &set->processes[i];
		load_capture_destroy(process->capture);
		if (!process->pid)
			continue;
		kill(-process->pid, SIGKILL); /* a wrapper's own children, too */
		kill(process->pid, SIGKILL);
		waitpid(process->pid, NULL, 0);
	}
}

/* In turn, one folio of each process, until the pool is full or nobody has more. */
static size_t take_folios(struct heap_set *set, uint8_t *pool, size_t folio_count)
{
	struct heap_process *process;
	size_t filled = 0;
	unsigned idle = 0;

	for (unsigned i = 0; filled < folio_count && idle < set->count; i = (i + 1) % set->count) {
		process = &set->processes[i];
		if (process->capture && load_capture_next(process->capture, pool + filled * LOAD_FOLIO_BYTES) == 1) {
			process->folios_taken++;
			filled++;
			idle = 0;
		} else {
			idle++;
		}
	}
	return filled;
}

static void note_sources(const struct heap_set *set)
{
	size_t used = 0;

	sources[0] = '\0';
	for (unsigned i = 0; i < set->count && used < sizeof(sources); i++) {
		if (set->processes[i].folios_taken)
			used += (size_t)snprintf(sources + used, sizeof(sources) - used, "%s%s", used ? " " : "",
				set->processes[i].kind->name);
	}
}

/* What has its turn within the first round and gave nothing. */
static void report_left_out(const struct heap_set *set, size_t folio_count)
{
	for (unsigned i = 0; i < set->count && i < folio_count; i++) {
		if (!set->processes[i].folios_taken)
			fprintf(stderr, "swapload: warning: content heap is without %s: %s\n",
				set->processes[i].kind->name, set->processes[i].problem);
	}
}

static long fill_from(struct heap_set *set, uint8_t *pool, size_t folio_count)
{
	uint64_t share_bytes = (folio_count + set->count - 1) / set->count * LOAD_FOLIO_BYTES;
	uint64_t wanted_bytes = share_bytes + share_bytes / 4 + 8 * MIB;
	int error, capture_error = 0;
	size_t filled;

	for (unsigned i = 0; i < set->count; i++)
		start_process(&set->processes[i], wanted_bytes);
	error = grow_all(set, wanted_bytes);
	if (error < 0)
		return error;
	for (unsigned i = 0; i < set->count; i++) {
		error = set->processes[i].pid ? load_capture_create(set->processes[i].pid, &set->processes[i].capture)
					      : 0;
		if (error < 0) {
			capture_error = error;
			set->processes[i].problem = "its memory may not be read";
		}
	}
	filled = take_folios(set, pool, folio_count);
	note_sources(set);
	if (filled)
		report_left_out(set, folio_count);
	return filled ? (long)filled : capture_error ? capture_error : -EAGAIN;
}

long load_heap_fill(uint8_t *pool, size_t folio_count)
{
	CLEANUP(free) struct heap_set *set = calloc(1, sizeof(*set));
	long filled;

	if (!set)
		return -ENOMEM;
	find_programs(set);
	if (!has_interpreter(set)) {
		fprintf(stderr, "swapload: content heap needs python3 or perl, and neither is in PATH; "
				"use --content synthetic\n");
		return -ENOENT;
	}
	filled = fill_from(set, pool, folio_count);
	end_all(set);
	if (filled < 0 && filled != -EINTR)
		fprintf(stderr, "swapload: cannot take the memory of other processes: %s; use --content synthetic\n",
			strerror((int)-filled));
	return filled;
}
