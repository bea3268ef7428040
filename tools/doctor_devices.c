// SPDX-License-Identifier: GPL-2.0-or-later
/* Checks: the devices that run now, and the swap beside them. Silent where there are none. */
#include "doctor.h"

#include "cleanup.h"
#include "cli_device.h"
#include "parse.h"
#include "swaps.h"
#include "units.h"

#include <string.h>

struct device {
	bool is_up;
	struct control_info info;
};

static struct device devices[CONTROL_DEVICES_MAX];

/* All devices, once for all checks: one that does not answer costs its timeout. Returns how many; those are not up. */
static int ask_all(void)
{
	const struct control_request request = {.version = CONTROL_VERSION, .op = CONTROL_INFO};
	char names[CONTROL_DEVICES_MAX][16];
	static int count = -1;

	if (count >= 0)
		return count;
	count = device_names(names);
	for (int i = 0; i < count; i++) {
		struct control_reply reply;
		bool is_up = device_ask(names[i], &request, DEVICE_REPLY_TIMEOUT_MS, &reply, NULL) == 0 && !reply.error;

		devices[i] = (struct device){.is_up = is_up};
		if (is_up)
			devices[i].info = reply.info;
		memcpy(devices[i].info.name, names[i], sizeof(names[i]));
	}
	return count;
}

static void check_devices(const char *root, struct doctor_result *result)
{
	int count = ask_all();

	(void)root;
	for (int i = 0; i < count; i++) {
		if (!devices[i].is_up) {
			doctor_fail(result, "'folioswap del' of it cleans up", "device %s: its daemon does not answer",
				devices[i].info.name);
			return;
		}
	}
	doctor_ok(result, "%d running, all answer", count);
}

static void check_residency(const char *root, struct doctor_result *result)
{
	int count = ask_all();

	(void)root;
	for (int i = 0; i < count; i++) {
		unsigned bit = devices[i].info.unsafe & -devices[i].info.unsafe; /* the lowest */

		if (bit) {
			doctor_warn(result, "see the checks above, then add the device anew",
				"device %s runs although: %s; %s%s", devices[i].info.name, control_unsafe_name(bit),
				control_unsafe_risk(bit),
				devices[i].info.unsafe != bit ? "; and more ('folioswap list -o NAME,UNSAFE')" : "");
			return;
		}
	}
	doctor_ok(result, "no device runs unsafely");
}

/* Whether it was wanted or not: it matters at the next crash. */
static void check_standby(const char *root, struct doctor_result *result)
{
	int count = ask_all();

	(void)root;
	for (int i = 0; i < count; i++) {
		if (devices[i].is_up && !devices[i].info.standby_pid) {
			doctor_warn(result, "see 'takeover' above, then add it anew without --no-standby",
				"device %s has no standby server: if its server dies, its I/O fails",
				devices[i].info.name);
			return;
		}
	}
	doctor_ok(result, "each device has a standby server");
}

static void check_transport(const char *root, struct doctor_result *result)
{
	int count = ask_all();

	(void)root;
	for (int i = 0; i < count; i++) {
		if (strcmp(devices[i].info.transport, "fuse") == 0) {
			doctor_warn(result,
				"well for swap of memory cgroups; for the whole machine keep vm.min_free_kbytes at "
				"16384 or more and queue/nomerges at 2 (no --merge), which makes it unlikely; or "
				"use --transport ublk",
				"device %s runs over FUSE and loop, which allocate for each request: not free of "
				"deadlock when all of the machine is short of memory",
				devices[i].info.name);
			return;
		}
	}
	doctor_ok(result, "no device runs over FUSE");
}

static bool is_ours(int count, const char *path)
{
	for (int i = 0; i < count; i++) {
		if (devices[i].is_up && strcmp(devices[i].info.node, path) == 0)
			return true;
	}
	return false;
}

/* Cold pages fill what is used first and stay: with two kinds of swap the fast one holds the cold pages. */
static void check_other_swap(const char *root, struct doctor_result *result)
{
	struct swap_entry entries[SWAPS_MAX];
	const struct swap_entry *ours = NULL, *other = NULL;
	char path[256];
	int count = ask_all();
	int swaps = swaps_read(doctor_path(root, "/proc/swaps", path, sizeof(path)), entries, SWAPS_MAX);

	for (int i = 0; i < swaps; i++) {
		const struct swap_entry **kind = is_ours(count, entries[i].path) ? &ours : &other;

		if (!*kind || entries[i].priority > (*kind)->priority)
			*kind = &entries[i];
	}
	if (!ours || !other)
		doctor_ok(result, "%s", ours ? "no other swap" : other ? "other swap only" : "nothing is swapped on");
	else if (other->priority >= ours->priority)
		doctor_warn(result, "give folioswap the higher priority (add --swapon=100), or switch the other off",
			"%s (priority %d) is filled before %s (%d)", other->path, other->priority, ours->path,
			ours->priority);
	else
		doctor_warn(result, "size folioswap so that the other is not needed, or switch it off",
			"%s (%d) is filled before %s (%d): once full, cold pages keep the fast swap and new ones go to "
			"the slow",
			ours->path, ours->priority, other->path, other->priority);
}

static void check_memory(const char *root, struct doctor_result *result)
{
	int count = ask_all();
	uint64_t wanted = 0;
	long long available_kib = 0;
	char limit[16], available[16];

	for (int i = 0; i < count; i++) {
		uint64_t most = devices[i].info.limit_bytes < devices[i].info.size_bytes ? devices[i].info.limit_bytes
											 : devices[i].info.size_bytes;

		wanted += most > devices[i].info.resident_bytes ? most - devices[i].info.resident_bytes : 0;
	}
	doctor_read_key(root, "/proc/meminfo", "MemAvailable", &available_kib);
	format_size(wanted, limit, sizeof(limit));
	format_size((uint64_t)available_kib * KIB, available, sizeof(available));
	if (wanted > (uint64_t)available_kib * KIB)
		doctor_warn(result, "lower the limit with 'folioswap set NAME --mem-limit SIZE'",
			"devices may still take %s and %s are available", limit, available);
	else
		doctor_ok(result, "%s available, devices may still take %s", available, limit);
}

const struct doctor_check doctor_device_checks[] = {
	{"devices", check_devices},
	{"residency", check_residency},
	{"standby", check_standby},
	{"transport", check_transport},
	{"other-swap", check_other_swap},
	{"memory", check_memory},
	{NULL, NULL},
};
