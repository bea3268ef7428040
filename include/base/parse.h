/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text into numbers, strictly: the whole string must be the number, and a
 * value that does not fit is refused, never cut. Any thread; no allocation.
 */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include <stddef.h>
#include <stdint.h>

/*
 * "4096", "64K", "2M", "4G", "1.5G", "512MiB": binary multiples (K, M, G, T,
 * each with optional iB), no sign, no white space. *ret_bytes: 0 .. 2^63-1.
 * Returns 0, -EINVAL (not such a text) or -ERANGE (does not fit).
 */
int parse_size(const char *text, uint64_t *ret_bytes);

/* Decimal integer with optional '-', within [min, max]. Returns 0, -EINVAL or -ERANGE. */
int parse_int(const char *text, long min, long max, long *ret);

/* Writes "1.5G" style text (at most 3 digits and one decimal) into buffer; returns buffer. */
const char *format_size(uint64_t bytes, char *buffer, size_t buffer_bytes);

#endif
