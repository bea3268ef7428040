/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands about ublk devices, through a small ring of the caller's own.
 *
 *   CLEANUP(ublk_control_close) struct ublk_control control;
 *
 *   error = ublk_control_open(&control);
 *   if (!error)
 *           error = ublk_control_features(&control, &features);
 *
 * Every command is bounded. One that is not done in time is left to the kernel,
 * which goes on with it: -ETIMEDOUT; and until it is done every other one waits
 * for it first, and gives -ETIMEDOUT as well. One thread at a time; the memory
 * of a control stays where it is while it is open. Nothing is allocated after
 * ublk_control_open, save by the kernel.
 */
#ifndef UBLKDEV_UBLK_CONTROL_H
#define UBLKDEV_UBLK_CONTROL_H

#include "ublk_abi.h"

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define UBLK_CONTROL_NODE "/dev/ublk-control"
#define UBLK_COMMAND_MS 2000

struct ublk_control {
	int fd; /* -1: not open */
	struct io_uring ring;
	bool plain_codes; /* Linux before 6.4 */
	bool is_late;     /* a command that was given up has not ended yet */
	/* The kernel may read and write it later than we look. */
	union {
		struct ublk_info info;
		struct ublk_params params;
		uint64_t features;
	} buffer;
};

/* Asks the driver which codes it takes. Returns 0, or -errno and nothing to close, though that may be tried. */
int ublk_control_open(struct ublk_control *control);
void ublk_control_close(struct ublk_control *control);

/* What the driver can do. Returns 0 or -errno. */
int ublk_control_features(struct ublk_control *control, uint64_t *ret);

/* info: what is wanted, then what it has become. */
int ublk_control_add(struct ublk_control *control, struct ublk_info *info);
int ublk_control_set_params(struct ublk_control *control, uint32_t id, const struct ublk_params *params);
int ublk_control_info(struct ublk_control *control, uint32_t id, struct ublk_info *ret); /* -ENODEV: no such */

/* Any other command, by its code. Returns 0 or -errno: the kernel's, -ETIMEDOUT. */
int ublk_control_do(struct ublk_control *control, uint32_t code, uint32_t id, uint64_t value, unsigned timeout_ms);

/* The code that the driver takes for one of ublk_abi.h. */
static inline uint32_t ublk_code(bool plain_codes, uint32_t code)
{
	return plain_codes ? _IOC_NR(code) : code;
}

static inline void cleanup_ublk_control_close(struct ublk_control *control)
{
	ublk_control_close(control);
}

#endif
