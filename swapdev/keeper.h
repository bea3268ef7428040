/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The keeper: the process that was started. It owns what outlives a server:
 * the image, the device's directory and socket, mount and loop device. It
 * forks the server, and takes everything down when that ends.
 */
#ifndef SWAPDEV_KEEPER_H
#define SWAPDEV_KEEPER_H

#include "daemon.h"

/* The whole life of the process; returns its exit code, enum daemon_exit. */
int keeper_main(const struct daemon_options *options);

#endif
