/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The backends of the transport table, each defined at the end of its own file. */
#ifndef TRANSPORT_OPS_H
#define TRANSPORT_OPS_H

#include "transport.h"

extern const struct transport_ops fuse_transport_ops;

#endif
