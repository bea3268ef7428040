/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Log lines of a process that swap depends on. A file, a pipe or a socket may
 * keep its writer waiting: for its reader, or, on a tmpfs, for a page that is
 * swapped out to this very device. So a small process of its own does the
 * waiting; the keeper writes to it over a pipe that never blocks, and a line
 * that finds the pipe full is lost.
 */
#ifndef SWAPDEV_LOGGER_H
#define SWAPDEV_LOGGER_H

/* From now on standard error, of this process and of those it starts, goes through the logger to where it went. */
int logger_start(void);

/* Waits, a second at most, until what was written has gone out. Also without a logger. */
void logger_end(void);

#endif
