// SPDX-License-Identifier: GPL-2.0-or-later
/* Steps of publication, for tests: by number to a function, or by name to base/step.h. */
#include "store_internal.h"

#include "step.h"

void (*store_hook)(enum store_hook hook);

static void report_step(enum store_hook hook)
{
	static const char *const names[HOOK_COUNT] = {
		[HOOK_SLOT_HEADER] = "slot-header",
		[HOOK_SLOT_COPY] = "slot-copy",
		[HOOK_SLOT_WORDS] = "slot-words",
		[HOOK_PAYLOAD] = "payload",
		[HOOK_RECORD] = "record",
		[HOOK_CLOSE_MADE] = "close-made",
		[HOOK_CLOSE_WORD] = "close-word",
		[HOOK_CLOSE_WORDS] = "close-words",
		[HOOK_DIRECT_WORDS] = "direct-words",
		[HOOK_DISCARD] = "discard",
		[HOOK_MOVE_COPY] = "move-copy",
		[HOOK_MOVE_PLACE] = "move-place",
		[HOOK_POPULATE] = "populate",
		[HOOK_GROW_MAP] = "grow-map",
		[HOOK_GROW_SIZE] = "grow-size",
	};

	step(names[hook]);
}

void store_report_steps(void)
{
	store_hook = report_step;
}
