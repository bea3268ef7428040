/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Contents made from a seed: the same bytes on every machine for the same
 * seed and folio number, so that figures of two machines can be compared.
 *
 * `synthetic` imitates process heaps: objects of a few dozen types, pointers
 * with shared high bytes, small integers, names that come back, numbers that
 * do not. Its ratio grows with the size of the unit that is compressed as
 * that of heaps does (zstd level 3: about 4.2 at 4 KiB, 5.0 at 64 KiB, 5.2 at
 * 2 MiB; lz4: about 2.8, 3.1, 3.2), which plain "N percent compressible"
 * buffers cannot show.
 *
 * All functions: any thread, no allocation that outlives the call.
 */
#ifndef LOAD_GENERATE_H
#define LOAD_GENERATE_H

#include <stdint.h>

#include "units.h"

#define LOAD_FOLIO_BYTES (2 * MIB)

/* Each fills LOAD_FOLIO_BYTES at folio. Returns 0 or -ENOMEM. */
int load_generate_synthetic(uint64_t seed, uint64_t folio_number, uint8_t *folio);
int load_generate_text(uint64_t seed, uint64_t folio_number, uint8_t *folio);
int load_generate_random(uint64_t seed, uint64_t folio_number, uint8_t *folio);

#endif
