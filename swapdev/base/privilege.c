// SPDX-License-Identifier: GPL-2.0-or-later
/* capset(2) and no_new_privs, of one thread. */
#include "privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int privilege_keep(uint64_t capabilities)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capget, &header, data) < 0)
		return -errno;
	for (int half = 0; half < 2; half++) {
		data[half].permitted &= (uint32_t)(capabilities >> (32 * half));
		data[half].effective = data[half].permitted;
		data[half].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}
