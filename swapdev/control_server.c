// SPDX-License-Identifier: GPL-2.0-or-later
/* Answers requests on the control socket. */
#include "control_server.h"

#include "cleanup.h"
#include "clock.h"
#include "compaction.h"
#include "imagefile.h"
#include "log.h"
#include "store.h"
#include "units.h"
#include "usage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS_MAX 8
#define PROGRESS_EVERY_NS UINT64_C(200000000)

/* What a client has asked for that is not answered yet. */
enum wait {
	WAIT_NONE,
	WAIT_COMPACTION, /* its end */
	WAIT_UPGRADE,	 /* this server's end, or a no */
	WAIT_SIZE,	 /* what the keeper says */
};

struct client {
	int fd; /* -1: free */
	uint64_t heard_ns;
	enum wait wait;
	uint64_t size_bytes; /* of WAIT_SIZE */
};

struct control_server {
	struct control_server_config config;
	struct compaction *compaction;
	uint64_t progress_ns; /* of the last report */
	int epoll_fd;
	struct client client[CLIENTS_MAX];
};

/* epoll data: the index of a client, or one of these. */
enum { EVENT_LISTEN = CLIENTS_MAX, EVENT_COMPACTION };

static void say(struct control_reply *reply, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void say(struct control_reply *reply, int error, const char *format, ...)
{
	va_list arguments;

	reply->error = error;
	va_start(arguments, format);
	vsnprintf(reply->message, sizeof(reply->message), format, arguments);
	va_end(arguments);
}

static void drop(struct client *client)
{
	close(client->fd);
	*client = (struct client){.fd = -1};
}

/* Never waits: a client that does not read is dropped. image_fd: -1, or a descriptor to send along. */
static void answer(struct client *client, struct control_reply *reply, int image_fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	struct iovec vector = {.iov_base = reply, .iov_len = sizeof(*reply)};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};

	reply->version = CONTROL_VERSION;
	if (image_fd >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &image_fd, sizeof(image_fd));
	}
	if (sendmsg(client->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof(*reply))
		drop(client);
}

/* ---- requests ---- */

static void do_info(struct control_server *server, struct client *client)
{
	struct control_reply reply = {.info = server->config.info};
	CLEANUP(close_fd) int image_fd = -1;
	struct control_info *info = &reply.info;
	struct store_config config;

	store_get_config(server->config.store, &config);
	info->size_bytes = config.size_bytes;
	info->limit_bytes = config.limit_bytes;
	info->frame_bytes = config.frame_bytes;
	info->codec = config.codec;
	info->level = config.level;
	info->daemon_cpu_ns = usage_cpu_ns(getpid()) + usage_cpu_ns(info->keeper_pid) + usage_ended_children_ns(info->keeper_pid);
	info->resident_bytes =
		usage_resident_bytes(info->keeper_pid, server->config.image_fd, server->config.buffers_fd);
	info->standby_bytes = info->standby_pid ? usage_own_bytes(info->standby_pid) : 0;
	image_fd = imagefile_reopen_readonly(server->config.image_fd);
	if (image_fd < 0)
		say(&reply, image_fd, "cannot open the image for reading: %s", strerror(-image_fd));
	answer(client, &reply, image_fd);
}

static int set_codec(struct control_server *server, const struct control_request *request, struct control_reply *reply)
{
	int error = store_set_codec(server->config.store, request->codec, request->level);

	if (error < 0)
		say(reply, error, "cannot change the codec: %s", strerror(-error));
	return error;
}

static int set_frame(struct control_server *server, const struct control_request *request, struct control_reply *reply)
{
	int error = store_set_frame(server->config.store, request->frame_bytes);

	if (error < 0)
		say(reply, error, "cannot change the frame size: %s", strerror(-error));
	return error;
}

static int set_limit(struct control_server *server, const struct control_request *request, struct control_reply *reply)
{
	int error = store_set_limit(server->config.store, request->limit_bytes);

	if (error < 0)
		say(reply, error, "cannot change the memory limit: %s",
			error == -EINVAL ? "it is below what slots and compression threads need" : strerror(-error));
	return error;
}

/* Whether the size is one that the device can have; says why not. */
static int check_size(struct control_server *server, uint64_t size_bytes, struct control_reply *reply)
{
	struct store_config config;

	store_get_config(server->config.store, &config);
	if (size_bytes < config.size_bytes)
		say(reply, -EINVAL, "it is %" PRIu64 " bytes large, and a device only grows", config.size_bytes);
	else if (size_bytes > config.max_size_bytes)
		say(reply, -EINVAL, "it cannot be larger than the --max-size it was added with, %" PRIu64 " bytes",
			config.max_size_bytes);
	else if (size_bytes % GRANULE_BYTES)
		say(reply, -EINVAL, "the size is not a multiple of 4K");
	return reply->error;
}

/* The answer comes by control_server_size_set(), if there is not one already. */
static void set_size(struct control_server *server, const struct control_request *request, struct client *client,
	struct control_reply *reply)
{
	if (check_size(server, request->size_bytes, reply) < 0)
		return;
	reply->error =
		server->config.grow(server->config.arg, request->size_bytes, reply->message, sizeof(reply->message));
	if (reply->error < 0)
		return;
	client->wait = WAIT_SIZE;
	client->size_bytes = request->size_bytes;
}

/* One after the other; the first that fails ends it, and what was done before it stays. */
static void do_set(struct control_server *server, const struct control_request *request, struct client *client)
{
	struct control_reply reply = {0};
	int error = 0;

	if (control_server_is_compacting(server))
		say(&reply, -EBUSY, "a compaction is running: try again when it has ended");
	else if (request->set_mask & ~(unsigned)CONTROL_SET_ALL)
		say(&reply, -EINVAL, "this daemon does not know such a setting");
	else {
		if (request->set_mask & CONTROL_SET_CODEC)
			error = set_codec(server, request, &reply);
		if (error == 0 && (request->set_mask & CONTROL_SET_FRAME))
			error = set_frame(server, request, &reply);
		if (error == 0 && (request->set_mask & CONTROL_SET_LIMIT))
			error = set_limit(server, request, &reply);
		if (request->set_mask & (CONTROL_SET_CODEC | CONTROL_SET_FRAME))
			server->config.changed(server->config.arg);
		if (error == 0 && (request->set_mask & CONTROL_SET_SIZE))
			set_size(server, request, client, &reply);
	}
	if (client->wait == WAIT_NONE)
		answer(client, &reply, -1);
}

static void do_compact(struct control_server *server, const struct control_request *request, struct client *client)
{
	struct control_reply reply = {0};

	if (compaction_start(server->compaction, request->timeout_ns) < 0) {
		say(&reply, -EBUSY, "a compaction is running already");
		answer(client, &reply, -1);
		return;
	}
	client->wait = WAIT_COMPACTION;
	server->progress_ns = clock_ns();
}

static void do_stop(struct control_server *server, struct client *client)
{
	struct control_reply reply = {0};

	reply.error = server->config.stop(server->config.arg, reply.message, sizeof(reply.message));
	answer(client, &reply, -1);
}

static void do_upgrade(struct control_server *server, const struct control_request *request, struct client *client)
{
	struct control_reply reply = {0};

	if (memchr(request->path, '\0', sizeof(request->path)) == NULL || request->path[0] != '/') {
		say(&reply, -EINVAL, "the new binary is to be named by its whole path");
		answer(client, &reply, -1);
		return;
	}
	reply.error = server->config.upgrade(server->config.arg, request->path, reply.message, sizeof(reply.message));
	if (reply.error < 0)
		answer(client, &reply, -1);
	else
		client->wait = WAIT_UPGRADE;
}

static void refuse(struct client *client, int error, const char *why)
{
	struct control_reply reply = {0};

	say(&reply, error, "%s", why);
	answer(client, &reply, -1);
	if (client->fd >= 0)
		drop(client);
}

static void serve_client(struct control_server *server, struct client *client)
{
	struct control_request request;
	ssize_t got;

	got = recv(client->fd, &request, sizeof(request), MSG_DONTWAIT | MSG_TRUNC);
	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0) {
		drop(client);
		return;
	}
	client->heard_ns = clock_ns();
	if (got != (ssize_t)sizeof(request) || request.version != CONTROL_VERSION)
		refuse(client, -EPROTO, "program and daemon are of different versions: restart the device");
	else if (client->wait != WAIT_NONE)
		refuse(client, -EPROTO, "one request at a time");
	else if (request.op == CONTROL_INFO)
		do_info(server, client);
	else if (request.op == CONTROL_SET)
		do_set(server, &request, client);
	else if (request.op == CONTROL_COMPACT)
		do_compact(server, &request, client);
	else if (request.op == CONTROL_STOP)
		do_stop(server, client);
	else if (request.op == CONTROL_UPGRADE)
		do_upgrade(server, &request, client);
	else
		refuse(client, -EINVAL, "this daemon does not know such a request");
}

/* ---- compaction's reports ---- */

static void report_compaction(struct control_server *server)
{
	struct control_reply reply = {0};
	struct compaction_state state;
	struct client *client;
	size_t i;

	compaction_take_event(server->compaction, &state);
	if (state.running && clock_ns() - server->progress_ns < PROGRESS_EVERY_NS)
		return;
	server->progress_ns = clock_ns();
	reply.more = state.running;
	reply.done_bytes = state.done_bytes;
	reply.total_bytes = state.total_bytes;
	if (!state.running && state.result < 0)
		say(&reply, state.result, "compaction: %s", strerror(-state.result));
	for (i = 0; i < CLIENTS_MAX; i++) {
		client = &server->client[i];
		if (client->fd < 0 || client->wait != WAIT_COMPACTION)
			continue;
		if (!state.running)
			client->wait = WAIT_NONE;
		answer(client, &reply, -1);
	}
}

/* ---- connections ---- */

static int watch(struct control_server *server, int fd, unsigned data)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = data};

	return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static bool is_root(int fd)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == 0;
}

/* A free place, or that of the client that has been silent for longest. */
static struct client *find_place(struct control_server *server)
{
	struct client *oldest = NULL, *client;
	size_t i;

	for (i = 0; i < CLIENTS_MAX; i++) {
		client = &server->client[i];
		if (client->fd < 0)
			return client;
		if (client->wait == WAIT_NONE && (!oldest || client->heard_ns < oldest->heard_ns))
			oldest = client;
	}
	if (oldest)
		drop(oldest);
	return oldest;
}

static void accept_client(struct control_server *server)
{
	int fd = accept4(server->config.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *client;

	if (fd < 0)
		return;
	if (!is_root(fd)) {
		log_warning("control: refused a connection of a user who is not root");
		close(fd);
		return;
	}
	client = find_place(server);
	if (!client || watch(server, fd, (unsigned)(client - server->client)) < 0) {
		close(fd);
		return;
	}
	*client = (struct client){.fd = fd, .heard_ns = clock_ns()};
}

void control_server_work(struct control_server *server)
{
	struct epoll_event events[CLIENTS_MAX];
	int count, i;

	count = epoll_wait(server->epoll_fd, events, CLIENTS_MAX, 0);
	for (i = 0; i < count; i++) {
		if (events[i].data.u32 == EVENT_LISTEN)
			accept_client(server);
		else if (events[i].data.u32 == EVENT_COMPACTION)
			report_compaction(server);
		else if (server->client[events[i].data.u32].fd >= 0)
			serve_client(server, &server->client[events[i].data.u32]);
	}
}

/* ---- life ---- */

int control_server_create(struct control_server **ret, const struct control_server_config *config)
{
	struct control_server *server = calloc(1, sizeof(*server));
	size_t i;
	int error;

	if (!server)
		return -ENOMEM;
	server->config = *config;
	for (i = 0; i < CLIENTS_MAX; i++)
		server->client[i].fd = -1;
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	error = server->epoll_fd < 0 ? -errno : compaction_create(&server->compaction, config->store);
	if (error == 0)
		error = watch(server, config->listen_fd, EVENT_LISTEN);
	if (error == 0)
		error = watch(server, compaction_event_fd(server->compaction), EVENT_COMPACTION);
	if (error < 0) {
		control_server_destroy(server);
		return error;
	}
	*ret = server;
	return 0;
}

void control_server_destroy(struct control_server *server)
{
	size_t i;

	if (!server)
		return;
	compaction_destroy(server->compaction);
	for (i = 0; i < CLIENTS_MAX; i++)
		if (server->client[i].fd >= 0)
			close(server->client[i].fd);
	if (server->epoll_fd >= 0)
		close(server->epoll_fd);
	free(server);
}

void control_server_set_node(struct control_server *server, const char *node)
{
	snprintf(server->config.info.node, sizeof(server->config.info.node), "%s", node);
}

void control_server_set_standby(struct control_server *server, int pid)
{
	server->config.info.standby_pid = pid;
}

/* size_bytes: of those who wait for a size, the ones who wait for this. */
static void answer_all(struct control_server *server, enum wait wait, uint64_t size_bytes, struct control_reply *reply)
{
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct client *client = &server->client[i];

		if (client->fd < 0 || client->wait != wait || client->size_bytes != size_bytes)
			continue;
		client->wait = WAIT_NONE;
		client->size_bytes = 0;
		answer(client, reply, -1);
	}
}

void control_server_not_upgraded(struct control_server *server, const char *why)
{
	struct control_reply reply = {0};

	say(&reply, -ECANCELED, "%s", why);
	answer_all(server, WAIT_UPGRADE, 0, &reply);
}

void control_server_size_set(struct control_server *server, uint64_t size_bytes, const char *why_not)
{
	struct control_reply reply = {0};

	if (why_not[0])
		say(&reply, -EAGAIN, "%s; the same again makes up for it", why_not);
	answer_all(server, WAIT_SIZE, size_bytes, &reply);
}

bool control_server_is_compacting(struct control_server *server)
{
	struct compaction_state state;

	compaction_get(server->compaction, &state);
	return state.running;
}

int control_server_fd(const struct control_server *server)
{
	return server->epoll_fd;
}
