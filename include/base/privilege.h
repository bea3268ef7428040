/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Less than root: capabilities are given up thread by thread, and threads that are made later inherit what is left. */
#ifndef BASE_PRIVILEGE_H
#define BASE_PRIVILEGE_H

#include <stdint.h>

#define PRIVILEGE(capability) (UINT64_C(1) << (capability)) /* CAP_... of linux/capability.h */

/*
 * Of what the calling thread has, only these remain, permitted and effective; none are inheritable, and no execution
 * gives any back. Returns 0 or -errno.
 */
int privilege_keep(uint64_t capabilities);

#endif
