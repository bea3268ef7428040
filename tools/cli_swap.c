// SPDX-License-Identifier: GPL-2.0-or-later
/* Changing what the kernel swaps to. */
#include "cli_swap.h"

#include "cli.h"
#include "cli_process.h"
#include "cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/swap.h>

#define MKSWAP_TIMEOUT_MS 30000
#define SWAPON_TIMEOUT_MS 60000
#define MKSWAP_TRIES 10
#define MKSWAP_PAUSE_MS 200

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
