// SPDX-License-Identifier: GPL-2.0-or-later
/* Check: the ublk driver, what it can do, and what follows from what it cannot. */
#include "doctor.h"

#include "cleanup.h"
#include "ublk_control.h"
#include "ublk_features.h"

#include <errno.h>
#include <string.h>

#define FIRST_VERSION 6001
#define SEES_DEATH_AT_ONCE 6007

static bool has_module(const char *root, const char *file)
{
	char release[128], path[512], line[512], full[1024];
	FILE *list;
	bool found = false;

	if (!doctor_read(root, "/proc/sys/kernel/osrelease", release, sizeof(release)))
		return false;
	snprintf(path, sizeof(path), "/lib/modules/%.100s/modules.dep", release);
	list = fopen(doctor_path(root, path, full, sizeof(full)), "re");
	while (list && !found && fgets(line, sizeof(line), list))
		found = strstr(line, file) != NULL;
	if (list)
		fclose(list);
	return found;
}

static void tell_missing_driver(const char *root, struct doctor_result *result)
{
	char release[128];

	if (has_module(root, "/ublk_drv.ko"))
		doctor_warn(result, "modprobe ublk_drv, and in /etc/modules-load.d for the next start",
			"this kernel has it as a module, not loaded: devices run over FUSE and loop");
	else if (doctor_version(root, release, sizeof(release)) < FIRST_VERSION)
		doctor_warn(result, "use a kernel from 6.1 on",
			"Linux %s is older than what is needed: devices run over FUSE and loop", release);
	else
		doctor_warn(result, "use a kernel with CONFIG_BLK_DEV_UBLK",
			"this kernel has none: devices run over FUSE and loop");
}

/* "; without UPDATE_SIZE (a device cannot grow), ...". Returns whether one is missed. */
static bool list_missing(uint64_t features, char *text, size_t text_bytes)
{
	bool is_missed = false;
	size_t used = 0;

	for (const struct ublk_feature *feature = ublk_features; feature->name && used < text_bytes; feature++) {
		if (features & feature->bit)
			continue;
		used += (size_t)snprintf(text + used, text_bytes - used, "%s%s (%s)", used ? ", " : "; without ",
			feature->name, feature->without);
		is_missed |= feature->is_missed;
	}
	return is_missed;
}

void doctor_tell_ublk(const char *root, uint64_t features, struct doctor_result *result)
{
	char has[200], missing[500] = "", release[128];
	const char *late = "";

	if (doctor_version(root, release, sizeof(release)) < SEES_DEATH_AT_ONCE)
		late = "; a dead server is seen after up to 5 s only";
	ublk_features_text(features, has, sizeof(has));
	if (list_missing(features, missing, sizeof(missing)) || *late)
		doctor_warn(result, "use a kernel from 6.7 on, or better the latest", "the driver answers, has %s%s%s",
			*has ? has : "nothing of use", late, missing);
	else
		doctor_ok(result, "the driver answers, has %s%s", has, missing);
}

static void tell_closed_driver(const char *root, int error, struct doctor_result *result)
{
	long long disabled = 0;

	doctor_read_number(root, "/proc/sys/kernel/io_uring_disabled", &disabled);
	if (disabled)
		doctor_fail(result, "sysctl kernel.io_uring_disabled=0",
			"the driver is there, but kernel.io_uring_disabled is %lld: devices run over FUSE and loop",
			disabled);
	else
		doctor_fail(result, "run as root, where io_uring is allowed", UBLK_CONTROL_NODE " does not answer: %s",
			strerror(-error));
}

void doctor_check_ublk(const char *root, struct doctor_result *result)
{
	CLEANUP(ublk_control_close) struct ublk_control control = {.fd = -1};
	uint64_t features = 0;
	int error = -EOPNOTSUPP; /* a made-up host has no driver to ask */

	if (!doctor_exists(root, UBLK_CONTROL_NODE)) {
		tell_missing_driver(root, result);
		return;
	}
	if (!*root)
		error = ublk_control_open(&control);
	if (error == 0)
		error = ublk_control_features(&control, &features);
	if (error < 0)
		tell_closed_driver(root, error, result);
	else
		doctor_tell_ublk(root, features, result);
}
