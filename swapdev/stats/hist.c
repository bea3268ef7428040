// SPDX-License-Identifier: GPL-2.0-or-later
/* The log-linear latency histogram: bucket arithmetic, recording, quantiles. */
#include "hist.h"

#define SUB_COUNT (1U << HIST_SUB_BITS)
#define SUB_MASK (SUB_COUNT - 1)

_Static_assert(HIST_MIN_SHIFT > HIST_SUB_BITS, "the first buckets are wider than 1 ns");
_Static_assert(sizeof(struct hist) == (HIST_BUCKETS + 2) * sizeof(uint64_t), "readers of the page rely on no padding");

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

unsigned hist_bucket(uint64_t value_ns)
{
	unsigned exponent, group;

	if (value_ns >> HIST_MIN_SHIFT == 0)
		return (unsigned)(value_ns >> (HIST_MIN_SHIFT - HIST_SUB_BITS));
	if (value_ns >> HIST_MAX_SHIFT)
		return HIST_BUCKETS - 1;
	exponent = 63U - (unsigned)__builtin_clzll(value_ns);
	group = exponent - HIST_MIN_SHIFT + 1;
	return group << HIST_SUB_BITS | ((unsigned)(value_ns >> (exponent - HIST_SUB_BITS)) & SUB_MASK);
}

uint64_t hist_bucket_middle_ns(unsigned bucket)
{
	unsigned group = bucket >> HIST_SUB_BITS;
	uint64_t steps = bucket & SUB_MASK;
	unsigned width_shift = HIST_MIN_SHIFT - HIST_SUB_BITS;

	if (group) {
		width_shift += group - 1;
		steps += SUB_COUNT; /* the leading bit, which the group stands for */
	}
	return (steps << width_shift) + (UINT64_C(1) << (width_shift - 1));
}

void hist_record(struct hist *hist, uint64_t value_ns)
{
	uint64_t *count = &hist->count[hist_bucket(value_ns)];

	if (value_ns > hist->max_ns)
		store(&hist->max_ns, value_ns);
	store(&hist->total_ns, hist->total_ns + value_ns);
	store(count, *count + 1);
}

void hist_add(struct hist *into, const struct hist *from)
{
	uint64_t max_ns = load(&from->max_ns);

	if (max_ns > into->max_ns)
		into->max_ns = max_ns;
	into->total_ns += load(&from->total_ns);
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		into->count[i] += load(&from->count[i]);
}

uint64_t hist_count(const struct hist *hist)
{
	uint64_t events = 0;

	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		events += load(&hist->count[i]);
	return events;
}

/* How many events must lie at or below the answer: the share rounded up, at least one, without overflow. */
static uint64_t quantile_rank(uint64_t events, unsigned permille)
{
	uint64_t rank = events / 1000 * permille + (events % 1000 * permille + 999) / 1000;

	return rank ? rank : 1;
}

uint64_t hist_quantile_ns(const struct hist *hist, unsigned permille)
{
	uint64_t events = hist_count(hist);
	uint64_t max_ns = load(&hist->max_ns);
	uint64_t rank, seen = 0, middle_ns;
	unsigned bucket = 0;

	if (!events)
		return 0;
	rank = quantile_rank(events, permille < 1000 ? permille : 1000);
	if (rank == events)
		return max_ns; /* the largest event is the one that is known exactly */

	/* The counts only grow while we look, so the rank is reached even if the writer goes on. */
	while (bucket < HIST_BUCKETS - 1 && (seen += load(&hist->count[bucket])) < rank)
		bucket++;
	middle_ns = hist_bucket_middle_ns(bucket);
	return middle_ns < max_ns ? middle_ns : max_ns;
}
