/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line of folioswapd. */
#ifndef SWAPDEV_OPTIONS_H
#define SWAPDEV_OPTIONS_H

#include "daemon.h"

#include <stddef.h>

enum options_outcome {
	OPTIONS_RUN,
	OPTIONS_SHOWN,  /* --help or --version: printed, nothing to do */
	OPTIONS_WRONG,  /* one line in problem */
	OPTIONS_CANNOT, /* right, but not on this machine: one line in problem */
};

/*
 * Reads and checks everything. ret->ready_fd is found also when something else
 * is wrong. RAM for the default limit is asked of the system; nothing is changed.
 */
enum options_outcome options_read(
	int argc, char **argv, struct daemon_options *ret, char *problem, size_t problem_bytes);

#endif
