/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Taking a ublk device down without a ghost: the block device is stopped only
 * when nobody has it open, and the device deleted only after that.
 *
 * A device is known by its cookie, a random number that its keeper gave it:
 * numbers are used again.
 */
#ifndef UBLKDEV_UBLK_DOWN_H
#define UBLKDEV_UBLK_DOWN_H

#include "ublk_control.h"

/* The device with this cookie. Returns 0, -ENODEV when there is none, or -errno. */
int ublk_find(struct ublk_control *control, uint64_t cookie, struct ublk_info *ret);

/*
 * Stops and deletes it; its server is dead or fails requests. Waits up to
 * wait_ms for openers to go and for the kernel to end what it began. Returns 0
 * when it is gone, also when it was before; -EBUSY while somebody has it open
 * or the kernel is not done: try again.
 */
int ublk_take_down(struct ublk_control *control, uint32_t id, uint64_t cookie, unsigned wait_ms);

#endif
