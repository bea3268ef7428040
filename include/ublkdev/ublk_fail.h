/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A server that fails: takes a device over whose server is dead and answers
 * every request with EIO.
 *
 * Stopping such a device instead would take its node away under whoever uses
 * it: swap on it could never be switched off again. With a server that fails,
 * swapoff, umount and close all come to an end, and the device can then be
 * stopped.
 */
#ifndef UBLKDEV_UBLK_FAIL_H
#define UBLKDEV_UBLK_FAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define UBLK_FAIL_NAME "folioswapd-eio" /* of the process */

/*
 * Serves in the calling process: waits as long as it takes until the kernel
 * has seen the end of the former server, then fails requests until the device
 * is stopped. Returns 0 then, or -errno (-ENODEV: no such device).
 */
int ublk_fail_serve(uint32_t id, uint64_t cookie);

/*
 * The same in a new process, which keeps nothing of the caller's open. It dies
 * with the caller if with_parent, else it is on its own. Returns its id, or
 * -errno. Reaping it is the caller's.
 */
pid_t ublk_fail_start(uint32_t id, uint64_t cookie, bool with_parent);

#endif
