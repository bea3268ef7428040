// SPDX-License-Identifier: GPL-2.0-or-later
/* folioswap add: a new device, and swap on it if asked. */
#include "add_config.h"
#include "add_daemon.h"
#include "cleanup.h"
#include "cli.h"
#include "cli_device.h"
#include "cli_swap.h"
#include "swaps.h"
#include "transport_list.h"
#include "ublk_control.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define UNDO_SWAPOFF_TIMEOUT_MS 10000
#define UNDO_BUSY_TIMEOUT_MS 5000
#define FAULT_RULE_MAX 120

/* A swap file that is gone cannot be switched off by name: no state to build on. */
static int refuse_ghosts(void)
{
	struct swap_entry entries[SWAPS_MAX];
	int count = swaps_read("/proc/swaps", entries, SWAPS_MAX);

	for (int i = 0; i < count; i++) {
		if (entries[i].deleted)
			return cli_fail(CLI_UNSAFE,
				"/proc/swaps lists '%s (deleted)': swap whose device is gone; restart the machine "
				"(--allow-unsafe goes on)",
				entries[i].path);
	}
	return CLI_DONE;
}

/* Where auto takes FUSE although there is a ublk driver, the daemon looks itself. */
static bool may_run_on_fuse(const struct add_config *config)
{
	return strcmp(config->transport, "fuse") == 0 ||
	       (strcmp(config->transport, TRANSPORT_AUTO) == 0 && access(UBLK_CONTROL_NODE, F_OK) < 0);
}

static int refuse_low_min_free(void)
{
	CLEANUP(fclose) FILE *file = fopen("/proc/sys/vm/min_free_kbytes", "re");
	long kib;

	if (!file || fscanf(file, "%ld", &kib) != 1)
		return CLI_DONE;
	if (kib >= CONTROL_MIN_FREE_KIB)
		return CLI_DONE;
	return cli_fail(CLI_UNSAFE,
		"swap over FUSE and loop needs vm.min_free_kbytes >= %d and it is %ld: they would hang when memory "
		"is short; sysctl vm.min_free_kbytes=%d (--allow-unsafe goes on)",
		CONTROL_MIN_FREE_KIB, kib, CONTROL_MIN_FREE_KIB);
}

static int refuse_unsafe_swap(const struct add_config *config)
{
	int result;

	if (!config->swapon || config->allow_unsafe)
		return CLI_DONE;
	result = refuse_ghosts();
	return result || !may_run_on_fuse(config) ? result : refuse_low_min_free();
}

static int refuse_before_start(const struct add_config *config)
{
	if (geteuid() != 0)
		return cli_fail(CLI_FAILED, "only root can make swap devices");
	if (config->fault && strlen(config->fault) > FAULT_RULE_MAX)
		return cli_fail(CLI_USAGE, "--fault: a rule has at most %d characters", FAULT_RULE_MAX);
	return refuse_unsafe_swap(config);
}

static void warn_unsafe(uint32_t unsafe)
{
	for (; unsafe; unsafe &= unsafe - 1) {
		unsigned bit = unsafe & -unsafe;

		cli_warn("%s: %s", control_unsafe_name(bit), control_unsafe_risk(bit));
	}
}

static void warn_alone(const char *name)
{
	cli_warn(
		"device %s: if its server dies, it is not replaced here and all I/O fails; 'folioswap doctor' says why",
		name);
}

static int finish(const struct add_config *config, const char *name, const char *node)
{
	struct control_info info;
	int result;

	if (device_is_gone(name))
		return cli_fail(CLI_FAILED, "another command has taken the new device %s (%s) down", name, node);
	result = device_info(name, &info, NULL);
	if (result)
		return result;
	warn_unsafe(info.unsafe);
	if (!info.standby_pid && !config->no_standby)
		warn_alone(name);
	return config->swapon ? swap_on(node, config->priority, config->discard) : CLI_DONE;
}

/* Also when swapon was given up too early and came through after all. */
static void undo(const char *name, const char *node)
{
	swap_off(node, UNDO_SWAPOFF_TIMEOUT_MS);
	device_stop(name, UNDO_BUSY_TIMEOUT_MS);
}

static int run(int argc, char **argv)
{
	struct add_config config;
	struct cli_host host;
	char name[16], node[64];
	int result;

	cli_host_read(&host);
	result = add_config_parse(argc, argv, &host, &config);
	if (result)
		return result == CLI_OPTION_HELP ? CLI_DONE : result;
	result = refuse_before_start(&config);
	if (!result)
		result = add_daemon_start(&config, name, node);
	if (result)
		return result;
	result = finish(&config, name, node);
	if (!result && add_interrupted() && !config.swapon)
		result = cli_fail(CLI_FAILED, "interrupted; the new device was taken down again");
	/* Nobody would know of a device whose name was not heard. */
	if (!result && (puts(node) < 0 || fflush(stdout) != 0))
		result = cli_fail(
			CLI_FAILED, "cannot print the device's node: %s; it was taken down again", strerror(errno));
	if (result)
		undo(name, node);
	return result;
}

const struct cli_verb cmd_add = {
	.name = "add",
	.arguments = "[OPTION...] SIZE",
	.summary = "Make a device, and with --swapon use it",
	.options = add_options,
	.run = run,
	.more_help = add_more_help,
};
