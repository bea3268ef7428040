/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory of real processes: starts interpreters and a compiler on files of
 * the system, stops them when they have grown, copies their anonymous pages
 * and ends them. What is copied stays in the caller's memory: it is not
 * written to a file nor printed. The processes get an environment of PATH and
 * locale alone, so that nothing of the caller's is in their memory.
 */
#ifndef LOAD_HEAP_H
#define LOAD_HEAP_H

#include <stddef.h>
#include <stdint.h>

/*
 * Fills pool with folio_count folios of 2 MiB, kind after kind in turn. Waits
 * up to 20 s for programs that start slowly, and says on stderr which gave
 * nothing after all. Returns how many were filled: fewer where the processes
 * did not grow enough; or a negative errno, after saying on stderr what is
 * missing: -ENOENT no program for it, -EINTR stop was asked.
 * Not thread-safe: one call at a time.
 */
long load_heap_fill(uint8_t *pool, size_t folio_count);

/* Names of the programs whose memory the last fill took, "python3 perl cc1"; "" before. */
const char *load_heap_sources(void);

#endif
