// SPDX-License-Identifier: GPL-2.0-or-later
/* What the kernel swaps to, and changing it. */
#include "cli_swap.h"

#include "cli.h"
#include "cli_process.h"
#include "cleanup.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/swap.h>

#define MKSWAP_TIMEOUT_MS 30000
#define SWAPON_TIMEOUT_MS 60000
#define MKSWAP_TRIES 10
#define MKSWAP_PAUSE_MS 200
#define DELETED_MARK " (deleted)"

static bool is_octal(const char *text)
{
	for (int i = 0; i < 3; i++) {
		if (text[i] < '0' || text[i] > '7')
			return false;
	}
	return true;
}

/* "\040" is a blank: the kernel writes white space and backslashes of paths that way. */
static void decode_path(char *path)
{
	char *to = path;

	for (const char *from = path; *from;) {
		if (*from == '\\' && is_octal(from + 1)) {
			*to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

int swap_parse_line(const char *line, struct swap_entry *ret)
{
	unsigned long long size_kib, used_kib;
	struct swap_entry entry = {0};
	size_t length, mark = strlen(DELETED_MARK);

	if (sscanf(line, "%255s %*s %llu %llu %d", entry.path, &size_kib, &used_kib, &entry.priority) != 4)
		return -EINVAL;
	decode_path(entry.path);
	length = strlen(entry.path);
	if (length > mark && strcmp(entry.path + length - mark, DELETED_MARK) == 0) {
		entry.path[length - mark] = '\0';
		entry.deleted = true;
	}
	entry.size_bytes = size_kib * KIB;
	entry.used_bytes = used_kib * KIB;
	*ret = entry;
	return 0;
}

int swap_read(const char *path, struct swap_entry *entries, int max)
{
	CLEANUP(fclose) FILE *file = fopen(path, "re");
	CLEANUP(free) char *line = NULL;
	size_t line_bytes = 0;
	int count = 0;

	if (!file)
		return -errno;
	while (count < max && getline(&line, &line_bytes, file) >= 0) {
		if (swap_parse_line(line, &entries[count]) == 0)
			count++;
	}
	return count;
}

static bool is_same_device(const char *path, dev_t device)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISBLK(status.st_mode) && status.st_rdev == device;
}

const struct swap_entry *swap_find(const struct swap_entry *entries, int count, const char *node)
{
	struct stat status;
	bool is_block = stat(node, &status) == 0 && S_ISBLK(status.st_mode);

	for (int i = 0; i < count; i++) {
		if (strcmp(entries[i].path, node) == 0)
			return &entries[i];
		if (is_block && !entries[i].deleted && is_same_device(entries[i].path, status.st_rdev))
			return &entries[i];
	}
	return NULL;
}

/* A new node is held open for a moment by whoever watches for devices: try again. */
static int make_swap(const char *node)
{
	char *argv[] = {"mkswap", (char *)node, NULL};
	char message[256];
	int result = 0;

	for (int i = 0; i < MKSWAP_TRIES; i++) {
		result = process_run(argv, MKSWAP_TIMEOUT_MS, message, sizeof(message));
		if (result <= 0 || result >= 126)
			break;
		process_sleep_ms(MKSWAP_PAUSE_MS);
	}
	if (result < 0)
		return cli_fail(CLI_FAILED, "mkswap %s: %s", node, strerror(-result));
	if (result > 0)
		return cli_fail(CLI_FAILED, "mkswap %s ended with code %d: %s", node, result, message);
	return CLI_DONE;
}

struct swapon_call {
	const char *node;
	int flags;
};

static int call_swapon(void *arg)
{
	const struct swapon_call *call = arg;

	return swapon(call->node, call->flags) < 0 ? -errno : 0;
}

int swap_on(const char *node, int priority, bool discard)
{
	struct swapon_call call = {.node = node, .flags = discard ? SWAP_FLAG_DISCARD : 0};
	int result = make_swap(node);

	if (result)
		return result;
	if (priority != SWAP_PRIORITY_KERNEL)
		call.flags |= SWAP_FLAG_PREFER | (priority << SWAP_FLAG_PRIO_SHIFT & SWAP_FLAG_PRIO_MASK);
	result = process_bounded(call_swapon, &call, SWAPON_TIMEOUT_MS);
	if (result)
		return cli_fail(CLI_FAILED, "swapon %s: %s", node, strerror(-result));
	return CLI_DONE;
}

static void write_text(const char *path, const char *text)
{
	CLEANUP(close_fd) int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		return; /* not allowed: the caller goes on with less protection */
}

/* Bringing pages back needs memory; being shot half way would leave the device on. */
static int call_swapoff(void *arg)
{
	write_text("/proc/self/oom_score_adj", "0");
	write_text("/proc/self/oom_score_adj", "-1000");
	return swapoff(arg) < 0 ? -errno : 0;
}

int swap_off(const char *node, int timeout_ms)
{
	return process_bounded(call_swapoff, (void *)node, timeout_ms);
}
