/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The backends of the transport table, each defined at the end of its own file. */
#ifndef TRANSPORT_OPS_H
#define TRANSPORT_OPS_H

#include "transport.h"
#include "transport_list.h"

#define TRANSPORT_OPS_DECLARE_(name) extern const struct transport_ops name##_transport_ops;
TRANSPORT_LIST(TRANSPORT_OPS_DECLARE_)
#undef TRANSPORT_OPS_DECLARE_

#endif
