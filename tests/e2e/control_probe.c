// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Speaks with a daemon's control socket as no well-behaved program would, too.
 *
 *   control_probe NAME info               one line: key=value ...
 *   control_probe NAME set-limit BYTES    exit 1 and the message when refused
 *   control_probe NAME set-frame BYTES
 *   control_probe NAME set-size BYTES
 *   control_probe NAME stop
 *   control_probe NAME compact            asks for information meanwhile; counts progress
 *   control_probe NAME image              maps the image as the statistics' readers do
 *   control_probe NAME abuse              wrong sizes, versions, operations; silent and deaf clients
 *   control_probe NODE hold SECONDS       keeps a block device to itself
 */
#include "control.h"
#include "stats.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define TIMEOUT_MS 5000
#define COMPACT_NS UINT64_C(30000000000)

static const char *device_name;

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "control_probe: %s:%d: %s\n", __FILE__, __LINE__, #condition); \
			exit(1); \
		} \
	} while (0)

static int connect_or_die(void)
{
	int fd = control_connect(device_name, TIMEOUT_MS);

	if (fd < 0) {
		fprintf(stderr, "control_probe: connect: %s\n", strerror(-fd));
		exit(1);
	}
	return fd;
}

static int ask(int fd, struct control_request *request, struct control_reply *ret, int *ret_image_fd)
{
	int error;

	request->version = CONTROL_VERSION;
	error = control_send(fd, request);
	return error < 0 ? error : control_receive(fd, ret, ret_image_fd);
}

/* One request on a connection of its own; exit code 1 with the daemon's words when it refuses. */
static int ask_once(struct control_request *request, struct control_reply *ret)
{
	int fd = connect_or_die();

	CHECK(ask(fd, request, ret, NULL) == 0);
	close(fd);
	if (ret->error == 0)
		return 0;
	printf("%s: %s\n", strerror(-ret->error), ret->message);
	return 1;
}

static int print_info(void)
{
	struct control_request request = {.op = CONTROL_INFO};
	struct control_reply reply;

	if (ask_once(&request, &reply) != 0)
		return 1;
	printf("name=%s node=%s transport=%s keeper=%d server=%d size=%" PRIu64 " limit=%" PRIu64
	       " frame=%u unit=%u codec=%u level=%d slots=%u io=%u compress=%u discard=%u cpu_ns=%" PRIu64
	       " resident=%" PRIu64 "\n",
		reply.info.name, reply.info.node, reply.info.transport, reply.info.keeper_pid, reply.info.server_pid,
		reply.info.size_bytes, reply.info.limit_bytes, reply.info.frame_bytes, reply.info.unit_bytes,
		reply.info.codec, reply.info.level, reply.info.slots, reply.info.io_threads,
		reply.info.compress_threads, reply.info.discard, reply.info.daemon_cpu_ns, reply.info.resident_bytes);
	return 0;
}

static int check_image(void)
{
	struct control_request request = {.op = CONTROL_INFO};
	struct control_reply reply;
	const struct stats_page *page;
	int fd = connect_or_die(), image_fd = -1;
	char byte = 1;

	CHECK(ask(fd, &request, &reply, &image_fd) == 0);
	CHECK(reply.error == 0 && image_fd >= 0);
	CHECK(write(image_fd, &byte, 1) < 0);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, image_fd, 0) == MAP_FAILED);
	page = mmap(NULL, reply.info.stats_bytes, PROT_READ, MAP_SHARED, image_fd, (off_t)reply.info.stats_offset);
	CHECK(page != MAP_FAILED);
	CHECK(stats_page_check(page, reply.info.stats_bytes) == 0);
	CHECK(page->io_threads == reply.info.io_threads);
	close(image_fd);
	close(fd);
	return 0;
}

static int compact(void)
{
	struct control_request request = {.version = CONTROL_VERSION, .op = CONTROL_COMPACT, .timeout_ns = COMPACT_NS};
	struct control_request info = {.op = CONTROL_INFO}, set = {.op = CONTROL_SET, .set_mask = CONTROL_SET_LIMIT};
	int fd = connect_or_die(), reports = 0, refused = 0;
	struct control_reply reply, other;

	CHECK(control_send(fd, &request) == 0);
	do {
		/* The daemon answers others while it compacts, and lets nobody change settings meanwhile. */
		int second = connect_or_die();

		CHECK(ask(second, &info, &other, NULL) == 0 && other.error == 0);
		set.limit_bytes = other.info.limit_bytes;
		CHECK(ask(second, &set, &other, NULL) == 0);
		refused += other.error == -EBUSY;
		close(second);
		CHECK(control_receive(fd, &reply, NULL) == 0);
		reports++;
	} while (reply.more);
	printf("error=%d reports=%d refused=%d %s\n", reply.error, reports, refused, reply.message);
	close(fd);
	return reply.error ? 1 : 0;
}

static void send_bytes(size_t bytes, uint32_t version, uint32_t op)
{
	unsigned char packet[4096] = {0};
	struct control_request request = {.version = version, .op = op};
	struct control_reply reply;
	int fd = connect_or_die();

	memcpy(packet, &request, sizeof(request));
	CHECK(send(fd, packet, bytes, MSG_NOSIGNAL) == (ssize_t)bytes);
	CHECK(control_receive(fd, &reply, NULL) == 0);
	CHECK(reply.error < 0 && reply.message[0] != '\0');
	CHECK(control_receive(fd, &reply, NULL) == -ECONNRESET);
	close(fd);
}

static void is_alive(void)
{
	struct control_request request = {.op = CONTROL_INFO};
	struct control_reply reply;

	CHECK(ask_once(&request, &reply) == 0);
}

/* Asks without ever reading: the daemon must not wait for this one. */
static void be_deaf(void)
{
	struct control_request request = {.version = CONTROL_VERSION, .op = CONTROL_INFO};
	int fd = connect_or_die(), sent = 0;

	while (sent < 100000 && send(fd, &request, sizeof(request), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		sent++;
	is_alive();
	close(fd);
}

static int abuse(void)
{
	struct control_request unknown = {.op = CONTROL_SET, .set_mask = 1U << 31};
	struct control_reply reply;
	int silent[40];
	size_t i;

	send_bytes(1, CONTROL_VERSION, CONTROL_INFO);
	send_bytes(sizeof(struct control_request) - 1, CONTROL_VERSION, CONTROL_INFO);
	send_bytes(sizeof(struct control_request) + 1, CONTROL_VERSION, CONTROL_INFO);
	send_bytes(4096, CONTROL_VERSION, CONTROL_INFO);
	send_bytes(sizeof(struct control_request), CONTROL_VERSION + 1, CONTROL_STOP);
	send_bytes(sizeof(struct control_request), 0, CONTROL_STOP);
	send_bytes(sizeof(struct control_request), CONTROL_VERSION, 0);
	send_bytes(sizeof(struct control_request), CONTROL_VERSION, 99);
	CHECK(ask_once(&unknown, &reply) == 1 && reply.error == -EINVAL);
	for (i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
		silent[i] = connect_or_die();
	is_alive();
	be_deaf();
	for (i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
		close(silent[i]);
	is_alive();
	return 0;
}

static int hold(const char *node, const char *seconds)
{
	int fd = open(node, O_RDONLY | O_EXCL);

	CHECK(fd >= 0);
	puts("held");
	fflush(stdout);
	sleep((unsigned)atoi(seconds));
	return 0;
}

static int set(const char *what, const char *value)
{
	struct control_request request = {.op = CONTROL_SET};
	struct control_reply reply;

	if (strcmp(what, "set-limit") == 0) {
		request.set_mask = CONTROL_SET_LIMIT;
		request.limit_bytes = strtoull(value, NULL, 10);
	} else if (strcmp(what, "set-size") == 0) {
		request.set_mask = CONTROL_SET_SIZE;
		request.size_bytes = strtoull(value, NULL, 10);
	} else {
		request.set_mask = CONTROL_SET_FRAME;
		request.frame_bytes = (uint32_t)strtoul(value, NULL, 10);
	}
	return ask_once(&request, &reply);
}

int main(int argc, char **argv)
{
	struct control_request stop = {.op = CONTROL_STOP};
	struct control_reply reply;
	const char *what = argc > 2 ? argv[2] : "";

	device_name = argc > 1 ? argv[1] : "";
	if (strcmp(what, "info") == 0)
		return print_info();
	if (strcmp(what, "image") == 0)
		return check_image();
	if (strcmp(what, "stop") == 0)
		return ask_once(&stop, &reply);
	if (strcmp(what, "compact") == 0)
		return compact();
	if (strcmp(what, "abuse") == 0)
		return abuse();
	if (strcmp(what, "hold") == 0 && argc > 3)
		return hold(device_name, argv[3]);
	if (strncmp(what, "set-", 4) == 0 && argc > 3)
		return set(what, argv[3]);
	fputs("control_probe: see the source for how to call it\n", stderr);
	return 2;
}
