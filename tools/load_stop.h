/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SIGINT, SIGTERM and SIGHUP become a question asked at safe places, so that
 * whatever was created is removed in the ordinary way.
 */
#ifndef LOAD_STOP_H
#define LOAD_STOP_H

#include <stdbool.h>
#include <sys/types.h>

/* Once, before anything is created: blocks the signals. Returns a descriptor to poll (readable: signal or death of a
 * child), or a negative errno. */
int load_stop_init(void);

/* The signal that asked to stop; 0: none did. Stays so. Does not block. */
int load_stop_signal(void);

/* In a child, right after fork: default signals, own process group, dies with its parent. */
void load_stop_child(pid_t parent);

/* Sleeps, at most that long; false: stop was asked. */
bool load_stop_sleep_ms(unsigned ms);

#endif
