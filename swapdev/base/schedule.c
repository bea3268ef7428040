// SPDX-License-Identifier: GPL-2.0-or-later
/* Slices and nice values; both are of the thread alone, as Linux has it. */
#include "schedule.h"

#include <errno.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * A thread that asks for a shorter slice than the running one's, and has not had its share, preempts it when it wakes
 * (sched(7), EEVDF); else it may wait for the end of that slice, some milliseconds.
 */
#define SOON_SLICE_NS UINT64_C(200000)

void schedule_soon(void)
{
	struct sched_attr attributes;

	if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) < 0 ||
		attributes.sched_policy != SCHED_NORMAL)
		return;
	attributes.sched_runtime = SOON_SLICE_NS;
	syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void schedule_nicer(int by)
{
	int now;

	errno = 0;
	now = getpriority(PRIO_PROCESS, 0);
	if (errno == 0)
		setpriority(PRIO_PROCESS, 0, now + by);
}
