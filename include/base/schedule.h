/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the calling thread gets its share of the CPUs. Where the kernel refuses, nothing changes but speed. */
#ifndef BASE_SCHEDULE_H
#define BASE_SCHEDULE_H

/* Never before others, but soon: for short work that somebody waits for. Linux 6.12 and later; no effect before. */
void schedule_soon(void);

/* Nicer by so much (1 .. 19) than now. Needs no privilege, and cannot be taken back without one. */
void schedule_nicer(int by);

#endif
