// SPDX-License-Identifier: GPL-2.0-or-later
/* Check: whether a server that dies is replaced on this machine, said before one does. */
#include "doctor.h"

#include "cleanup.h"
#include "ublk_control.h"

#include <string.h>
#include <sys/mount.h>

#define NOSWAP_VERSION 6004
#define RESEND_VERSION 6009

/* Another kernel than its number says has it, too: so it is tried where that can be. */
static bool has_noswap(const char *root)
{
	CLEANUP(close_fd) int fd = *root ? -1 : fsopen("tmpfs", FSOPEN_CLOEXEC);
	char release[128];

	if (fd >= 0)
		return fsconfig(fd, FSCONFIG_SET_FLAG, "noswap", NULL, 0) == 0;
	return doctor_version(root, release, sizeof(release)) >= NOSWAP_VERSION;
}

/* 0: no driver, or it does not answer. */
static uint64_t ask_ublk(const char *root)
{
	CLEANUP(ublk_control_close) struct ublk_control control = {.fd = -1};
	uint64_t features = 0;

	if (*root || !doctor_exists(root, UBLK_CONTROL_NODE) || ublk_control_open(&control) < 0)
		return 0;
	return ublk_control_features(&control, &features) < 0 ? 0 : features;
}

void doctor_tell_takeover(const char *root, bool noswap, uint64_t ublk_features, struct doctor_result *result)
{
	const uint64_t needed = UBLK_USER_RECOVERY | UBLK_USER_RECOVERY_REISSUE;
	bool by_ublk = (ublk_features & needed) == needed, by_fuse;
	char release[128];

	by_fuse = doctor_version(root, release, sizeof(release)) >= RESEND_VERSION;
	if (!noswap)
		doctor_warn(result, "use a kernel from 6.4 on",
			"a server that dies is not replaced: its device's I/O fails at once and what it held is lost, "
			"for without noswap (Linux %s) it could be swapped out to itself",
			release);
	else if (by_ublk)
		doctor_ok(result, "a server that dies is replaced, over ublk%s",
			by_fuse ? " and over FUSE" : "; over FUSE it is not, for that Linux 6.9 is needed");
	else if (by_fuse && ublk_features)
		doctor_warn(result, "use a later kernel, or --transport fuse",
			"a server that dies is replaced over FUSE, but not over ublk: its driver has no USER_RECOVERY");
	else if (by_fuse)
		doctor_ok(result, "a server that dies is replaced, over FUSE");
	else
		doctor_warn(result, "use a kernel from 6.9 on, or one with ublk",
			"a server that dies is not replaced: its device's I/O fails at once and what it held is lost, "
			"for FUSE of Linux %s does not ask again what it was asked",
			release);
}

void doctor_check_takeover(const char *root, struct doctor_result *result)
{
	doctor_tell_takeover(root, has_noswap(root), ask_ublk(root), result);
}
