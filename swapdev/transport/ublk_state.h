/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What keeper and servers of a ublk device share. */
#ifndef TRANSPORT_UBLK_STATE_H
#define TRANSPORT_UBLK_STATE_H

#include "transport.h"
#include "ublk_plan.h"

#define UBLK_GIVEN 4096

struct transport {
	struct transport_config config;
	struct ublk_plan plan;
	uint64_t cookie; /* 0: nothing was made */
	uint32_t id;
	bool is_added;
	int buffers_fd;     /* memory: the one that serves uses it, the one that stands by has it mapped already */
	int failer_fd;      /* the keeper's: process that fails requests; -1: none */
	_Atomic int server; /* the one that has /dev/ublkcN open; for the kernel to compare */
	/*
	 * By queue and tag: given to a server and not answered. A request keeps its tag when it comes again, so a
	 * successor knows it. For figures alone: devices with more tags share.
	 */
	_Atomic uint8_t given[UBLK_GIVEN];
};

/* The server's half. */
struct device;
int ublk_serve_start(struct transport_server **ret, struct transport *transport, struct device *device, char *problem,
	size_t problem_bytes);
int ublk_serve_open(struct transport_server *server, bool take_over, char *problem, size_t problem_bytes);
int ublk_serve(struct transport_server *server);
void ublk_serve_stop(struct transport_server *server);

#endif
