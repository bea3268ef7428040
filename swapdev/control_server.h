/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server's side of the control socket. One thread, the server's main one:
 * it waits for control_server_fd to be readable and then calls
 * control_server_work, which never blocks on a client. Clients are root, a
 * bounded number at a time; each has one request under way.
 */
#ifndef SWAPDEV_CONTROL_SERVER_H
#define SWAPDEV_CONTROL_SERVER_H

#include "control.h"

struct control_server;
struct store;

struct control_server_config {
	int listen_fd; /* the keeper's; stays the caller's */
	int image_fd;
	int buffers_fd; /* the transport's, for their size, or -1 */
	struct store *store;
	/* Asks to stop. Returns 0, or -errno with a line in message. */
	int (*stop)(void *arg, char *message, size_t message_bytes);
	/* Asks for a server of another binary; the answer comes by control_server_not_upgraded(), or this process ends. */
	int (*upgrade)(void *arg, const char *path, char *message, size_t message_bytes);
	/*
	 * Makes the device this large, a size that it can have. Returns 0, the answer then comes by
	 * control_server_size_set(); or -errno with a line in message.
	 */
	int (*grow)(void *arg, uint64_t size_bytes, char *message, size_t message_bytes);
	/* Codec or frame are others now. */
	void (*changed)(void *arg);
	void *arg;
	/* What never changes of the information; the node is set later. */
	struct control_info info;
};

/* Returns 0 or -errno. */
int control_server_create(struct control_server **ret, const struct control_server_config *config);

/* NULL is fine. While a compaction runs it cannot be destroyed: ask control_server_is_compacting. */
void control_server_destroy(struct control_server *server);

void control_server_set_node(struct control_server *server, const char *node);
/* 0: there is none. */
void control_server_set_standby(struct control_server *server, int pid);
/* Whoever asked for an upgrade is told why it failed. */
void control_server_not_upgraded(struct control_server *server, const char *why);
/* Whoever asked for another size is told. "": it is the block device's now. */
void control_server_size_set(struct control_server *server, uint64_t size_bytes, const char *why_not);
bool control_server_is_compacting(struct control_server *server);

int control_server_fd(const struct control_server *server);
void control_server_work(struct control_server *server);

#endif
