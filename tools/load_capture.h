/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies the present private anonymous pages of another, stopped process,
 * one whole folio (2 MiB) at a time: first the aligned 2 MiB ranges that are
 * present as a whole, then what is left, page after page in address order.
 * Stacks are left out.
 *
 * Needs the right to trace the process (its parent has it). One thread.
 */
#ifndef LOAD_CAPTURE_H
#define LOAD_CAPTURE_H

#include <stdint.h>
#include <sys/types.h>

struct load_capture;

/* Returns 0 or a negative errno (-EACCES: may not be traced). */
int load_capture_create(pid_t pid, struct load_capture **ret_capture);
void load_capture_destroy(struct load_capture *capture);

/* Fills one folio. Returns 1, 0 (less than a folio is left) or a negative errno. */
int load_capture_next(struct load_capture *capture, uint8_t *folio);

#endif
