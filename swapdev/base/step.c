// SPDX-License-Identifier: GPL-2.0-or-later
/* Who listens to steps. */
#include "step.h"

void (*step_listener)(const char *name);
