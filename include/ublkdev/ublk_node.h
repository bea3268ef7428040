/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The nodes of a ublk device, /dev/ublkcN and /dev/ublkbN: waited for, made where nobody else makes them. */
#ifndef UBLKDEV_UBLK_NODE_H
#define UBLKDEV_UBLK_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UBLK_NODE_BYTES 32

/* "/dev/ublkbN" */
void ublk_block_node(uint32_t id, char *node);

/*
 * Opens /dev/ublkcN for its one server; waits while it is not there yet or
 * somebody else has it. Returns a descriptor, or -errno: -EBUSY or -ENOENT at the end of the time.
 */
int ublk_open_server(uint32_t id, unsigned timeout_ms);

/* Waits for the node of a started device. Returns 0 or -errno. */
int ublk_wait_block_node(uint32_t id, unsigned timeout_ms);

/* The numbers of the ublk devices that there are; returns how many of max. */
int ublk_list(uint32_t *ids, int max);

#endif
