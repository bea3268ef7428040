/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traces: requests as text, one a line, to be replayed.
 *
 *   # comment; blank lines are skipped
 *   W 0 2M            write
 *   R 4096 64K        read
 *   D 2M 2M           discard
 *   Z 8192 4096       write zeroes
 *   F                 flush
 *
 * Offset and length are bytes, multiples of 4 KiB, with the suffixes that
 * parse_size() knows. A trace carries no contents: the replay makes them.
 */
#ifndef TRANSPORT_TRACE_H
#define TRANSPORT_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "device.h"

struct trace_step {
	enum request_op op;
	uint64_t offset_bytes;
	uint64_t length_bytes; /* 0 for flush only */
};

struct trace {
	size_t count;
	struct trace_step *steps;
};

/*
 * Reads file to its end. Returns 0, -ENOMEM, -EIO (reading failed) or -EINVAL
 * with one line about the first bad line in problem.
 */
int trace_create(struct trace **ret, FILE *file, char *problem, size_t problem_bytes);
void trace_destroy(struct trace *trace); /* NULL is fine */

#endif
