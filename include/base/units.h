/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sizes of the field: granule, order, unit.
 *
 * A granule is 4 KiB, the logical block of the device on every host. Orders
 * count powers of two of granules, as the kernel's folio orders do on a host
 * with 4 KiB pages: order 0 = 4 KiB, 9 = 2 MiB, 12 = 16 MiB.
 * A unit is the aligned stretch of the device that the store keeps together
 * (64 KiB, 2 MiB or 16 MiB).
 */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <stdint.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

#define GRANULE_SHIFT 12
#define GRANULE_BYTES (UINT64_C(1) << GRANULE_SHIFT)

#define ORDER_MAX 12
#define ORDER_COUNT (ORDER_MAX + 1)

#define UNIT_MIN_BYTES (64 * KIB)
#define UNIT_MAX_BYTES (16 * MIB)

#define CACHE_LINE_BYTES 64

/* floor(log2(bytes / 4 KiB)), at most ORDER_MAX; bytes >= 4096. */
static inline unsigned order_of_bytes(uint64_t bytes)
{
	unsigned order = 63U - (unsigned)__builtin_clzll(bytes) - GRANULE_SHIFT;

	return order > ORDER_MAX ? ORDER_MAX : order;
}

static inline uint64_t round_up_u64(uint64_t value, uint64_t power_of_two)
{
	return (value + power_of_two - 1) & ~(power_of_two - 1);
}

#endif
