// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of transports, best first, and the search in it. */
#include "transport.h"

#include "transport_list.h"
#include "transport_ops.h"

#include <string.h>

#define TABLE_ENTRY(name) &name##_transport_ops,

const struct transport_ops *const transport_table[] = {
	TRANSPORT_LIST(TABLE_ENTRY) NULL,
};

static const struct transport_ops *find_usable(void)
{
	char problem[256];

	for (unsigned i = 0; transport_table[i]; i++)
		if (transport_table[i]->probe(problem, sizeof(problem)) == 0)
			return transport_table[i];
	return NULL;
}

const struct transport_ops *transport_find(const char *name)
{
	if (strcmp(name, TRANSPORT_AUTO) == 0)
		return find_usable();
	for (unsigned i = 0; transport_table[i]; i++)
		if (strcmp(transport_table[i]->name, name) == 0)
			return transport_table[i];
	return NULL;
}
