/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Named steps of what the daemon does, at which a test may end it: recovery,
 * take-over, publication. Nothing listens unless a fault rule asks for it.
 */
#ifndef BASE_STEP_H
#define BASE_STEP_H

#include <stddef.h>

/* Set before threads exist; called on any of them. NULL: nobody listens. */
extern void (*step_listener)(const char *name);

static inline void step(const char *name)
{
	if (step_listener)
		step_listener(name);
}

#endif
