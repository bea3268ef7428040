/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sparse private tables: address space for the largest case, memory as far as
 * it was populated. They must be mapped while mlockall(MCL_FUTURE|MCL_ONFAULT)
 * is in force (store_open), so that locking does not fill them.
 */
#ifndef STORE_SPARSE_H
#define STORE_SPARSE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Zeroed; NULL when there is no address space. */
static inline void *sparse_map(size_t bytes)
{
	void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return start == MAP_FAILED ? NULL : start;
}

static inline void sparse_unmap(void *start, size_t bytes)
{
	if (start)
		munmap(start, bytes);
}

/* Makes [start, start + bytes) present. Returns 0 or -errno. */
static inline int sparse_populate(void *start, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)start & ~(page - 1);
	uintptr_t to = ((uintptr_t)start + bytes + page - 1) & ~(page - 1);

	return madvise((void *)from, to - from, MADV_POPULATE_WRITE) < 0 ? -errno : 0;
}

#endif
