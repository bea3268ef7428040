/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The transports of this version, best first: the one place that names them.
 * The table of transport.h is made of it, and so are the lists in the texts of
 * programs that do not link the transports themselves.
 */
#ifndef TRANSPORT_LIST_H
#define TRANSPORT_LIST_H

#include <stdbool.h>
#include <string.h>

/* ENTRY(name): its operations are name##_transport_ops. */
#define TRANSPORT_LIST(ENTRY) ENTRY(ublk) ENTRY(fuse)

#define TRANSPORT_AUTO "auto" /* the first that works on the machine */
#define TRANSPORT_LIST_WORD_(name) ", " #name
#define TRANSPORT_LIST_ITEM_(name) #name,
#define TRANSPORT_NAMES TRANSPORT_AUTO TRANSPORT_LIST(TRANSPORT_LIST_WORD_) /* "auto, ublk, fuse" */

/* Is it one of TRANSPORT_NAMES? */
static inline bool transport_name_is_known(const char *name)
{
	static const char *const names[] = {TRANSPORT_LIST(TRANSPORT_LIST_ITEM_) TRANSPORT_AUTO};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

#endif
