/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The block device of a ublk device: its node's owner and mode, its queue's settings. */
#ifndef TRANSPORT_UBLK_DISK_H
#define TRANSPORT_UBLK_DISK_H

#include <stddef.h>
#include <stdint.h>

/*
 * Waits for the node, makes it 0600 root, and sets the queue up for requests
 * of up to request_max_bytes, unsorted and unthrottled. Returns 0, or -errno with one line in problem.
 */
int ublk_disk_set_up(uint32_t id, uint32_t request_max_bytes, char *problem, size_t problem_bytes);

#endif
