/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a ublk device is made like, from what the driver can do: features,
 * queues, tags, buffers. Pure.
 *
 * A hardware queue per I/O thread: the kernel deals the CPUs to the queues, so
 * tasks that fault at the same time on different CPUs are served at the same
 * time. One queue whose tags are dealt to the threads (PER_IO_DAEMON) does
 * worse: a CPU that waits for its requests gets the same tag again and again,
 * and two of them may have the same thread for good while others are idle.
 *
 * With USER_COPY a thread has one buffer, a unit large, whatever the depth;
 * else every tag has one.
 *
 *                queues   depth of each   buffers locked, T threads
 *   USER_COPY    T        64              T x unit
 *   without      T        8               T x 8 x min(unit, 2 MiB)
 */
#ifndef TRANSPORT_UBLK_PLAN_H
#define TRANSPORT_UBLK_PLAN_H

#include "ublk_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct transport_config;

struct ublk_plan {
	uint64_t features; /* asked for, then had */
	uint32_t request_max_bytes;
	uint16_t queues;
	uint16_t depth;
	uint16_t threads;
};

/* depth: 0 chooses. */
struct ublk_plan ublk_plan_make(const struct transport_config *config, uint64_t features, unsigned depth);

/* What to ask for, and back: what the driver has made of it. Returns 0 or -EOPNOTSUPP: nothing that can be served. */
struct ublk_info ublk_plan_info(const struct ublk_plan *plan, uint64_t cookie);
int ublk_plan_accept(struct ublk_plan *plan, const struct ublk_info *info);

struct ublk_params ublk_plan_params(const struct ublk_plan *plan, const struct transport_config *config);

/* Buffers lie side by side: the bytes of the threads before this one, and where a tag's is in its thread's. */
size_t ublk_plan_buffers_before(const struct ublk_plan *plan, unsigned thread);
size_t ublk_plan_buffer_offset(const struct ublk_plan *plan, unsigned tag);

/* What a carried out request is answered with: bytes, as many as it says. */
int32_t ublk_plan_result(const struct ublk_request *desc);

/* Killed servers of such a device are replaced, and what they had not answered is asked again. */
bool ublk_plan_can_take_over(const struct ublk_plan *plan);

#endif
