// SPDX-License-Identifier: GPL-2.0-or-later
/* Notes of requests in execution, and what a successor makes of them. */
#include "inflight.h"

#include <stdatomic.h>

void inflight_begin(struct inflight *inflight, const struct inflight_range *range, uint32_t crashes, uint64_t now_ns)
{
	inflight->running = *range;
	inflight->running_crashes = crashes;
	atomic_store_explicit(&inflight->running_since_ns, now_ns ? now_ns : 1, memory_order_release);
}

void inflight_end(struct inflight *inflight)
{
	uint64_t answered = atomic_load_explicit(&inflight->answered, memory_order_relaxed);

	atomic_store_explicit(&inflight->answered, answered + 1, memory_order_relaxed);
	atomic_store_explicit(&inflight->running_since_ns, 0, memory_order_release);
}

bool inflight_take_over(struct inflight *inflight, bool crashed, uint64_t now_ns)
{
	if (atomic_load(&inflight->running_since_ns) && crashed) {
		inflight->suspect = inflight->running;
		inflight->suspect_since_ns = now_ns;
		atomic_store(&inflight->suspect_crashes, inflight->running_crashes + 1);
	}
	atomic_store(&inflight->running_since_ns, 0);
	return atomic_load(&inflight->suspect_crashes) > 0;
}

uint32_t inflight_find(struct inflight *inflight, const struct inflight_range *range, uint64_t now_ns)
{
	uint32_t crashes = atomic_load(&inflight->suspect_crashes);

	if (!crashes || inflight->suspect.op != range->op || inflight->suspect.offset_bytes != range->offset_bytes ||
		inflight->suspect.length_bytes != range->length_bytes)
		return 0;
	if (!atomic_compare_exchange_strong(&inflight->suspect_crashes, &crashes, 0))
		return 0;
	return now_ns - inflight->suspect_since_ns < INFLIGHT_SUSPECT_NS ? crashes : 0;
}
