/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of the whole machine: other programs that swap at the same time show in them. */
#ifndef LOAD_COUNTERS_H
#define LOAD_COUNTERS_H

#include <stdint.h>
#include <sys/types.h>

struct load_counters {
	uint64_t thp_fault_alloc;
	uint64_t thp_swpout;
	uint64_t thp_swpout_fallback;
	uint64_t pswpin; /* pages */
	uint64_t pswpout;
	uint64_t writeback_pages; /* now under way */
	uint64_t swap_total_bytes;
	uint64_t swap_free_bytes;
};

/* Counters that this kernel does not have are 0. */
void load_counters_read(struct load_counters *ret_counters);

/* Private memory of a process in swap; 0 where it is gone. */
uint64_t load_process_swap_bytes(pid_t pid);

/* What a huge page is here, at least LOAD_FOLIO_BYTES: regions start and end at its multiples. */
uint64_t load_huge_page_bytes(void);

#endif
