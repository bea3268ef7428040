// SPDX-License-Identifier: GPL-2.0-or-later
/* The ublk transport, the keeper's half: the device is made, started and taken down. Never opens /dev/ublkcN. */
#include "ublk_disk.h"
#include "ublk_state.h"
#include "transport_ops.h"

#include "log.h"
#include "parse.h"
#include "ublk_control.h"
#include "ublk_down.h"
#include "ublk_fail.h"
#include "ublk_features.h"
#include "ublk_node.h"

#include "cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/random.h>
#include <unistd.h>

#define START_MS 12000 /* less than the keeper waits for its helper */
#define SHORT_DOWN_MS 200
#define FIRST_DOWN_MS 2000
#define QUIESCE_MS 300

/* One keeper per process. It has its ring before memory can be short. */
static struct ublk_control keeper_control = {.fd = -1};

static int fail(char *problem, size_t problem_bytes, int error, const char *what)
{
	snprintf(problem, problem_bytes, "cannot %s: %s", what, strerror(-error));
	return error;
}

/* ---- what there is ---- */

static int explain_open(int error, char *problem, size_t problem_bytes)
{
	const char *what = "set up a ring for " UBLK_CONTROL_NODE " (sysctl kernel.io_uring_disabled=0)";

	if (access(UBLK_CONTROL_NODE, F_OK) < 0)
		what = "open " UBLK_CONTROL_NODE " (modprobe ublk_drv; Linux 6.1 or later with CONFIG_BLK_DEV_UBLK)";
	else if (error == -EACCES)
		what = "open " UBLK_CONTROL_NODE " (run as root)";
	return fail(problem, problem_bytes, error, what);
}

static int ublk_probe(char *problem, size_t problem_bytes)
{
	CLEANUP(ublk_control_close) struct ublk_control control = {.fd = -1};
	int error = ublk_control_open(&control);

	return error < 0 ? explain_open(error, problem, problem_bytes) : 0;
}

/* Tests run what older drivers lack on newer ones: FOLIOSWAP_UBLK_WITHOUT=USER_COPY,SAFE_STOP_DEV */
static uint64_t without_features(void)
{
	const char *text = getenv("FOLIOSWAP_UBLK_WITHOUT");
	uint64_t features = 0;

	if (text && ublk_features_parse(text, &features) < 0)
		log_warning("FOLIOSWAP_UBLK_WITHOUT: '%s' is no list of features", text);
	return features;
}

/* And another depth. */
static unsigned wanted_depth(void)
{
	const char *text = getenv("FOLIOSWAP_UBLK_DEPTH");
	long depth = 0;

	if (text && parse_int(text, 1, UBLK_DEPTH_MAX, &depth) < 0)
		log_warning("FOLIOSWAP_UBLK_DEPTH: '%s' is no depth from 1 to %u", text, UBLK_DEPTH_MAX);
	return (unsigned)depth;
}

/* ---- making ---- */

/* For whoever cleans up after us: with the number alone one could hit somebody else's device. */
static int note_cookie(const struct transport *transport)
{
	CLEANUP(close_fd) int fd = -1;
	char path[sizeof(transport->config.directory) + 8], text[24];
	int length;

	snprintf(path, sizeof(path), "%s/ublk", transport->config.directory);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	length = snprintf(text, sizeof(text), "%" PRIx64 "\n", transport->cookie);
	return write(fd, text, (size_t)length) == length ? 0 : -EIO;
}

static void forget_cookie(const struct transport *transport)
{
	char path[sizeof(transport->config.directory) + 8];

	snprintf(path, sizeof(path), "%s/ublk", transport->config.directory);
	unlink(path);
}

/* Unlike any other, not secret: so early in a boot it does not wait for entropy. */
static int make_cookie(struct transport *transport)
{
	while (transport->cookie == 0) {
		if (getrandom(&transport->cookie, sizeof(transport->cookie), GRND_INSECURE) !=
			(ssize_t)sizeof(transport->cookie))
			return -EIO;
	}
	return note_cookie(transport);
}

static int make_buffers(struct transport *transport)
{
	size_t bytes = ublk_plan_buffers_before(&transport->plan, transport->plan.threads);

	transport->buffers_fd = memfd_create("folioswap-buffers", MFD_CLOEXEC);
	return transport->buffers_fd < 0 || fallocate(transport->buffers_fd, 0, 0, (off_t)bytes) < 0 ? -errno : 0;
}

static int add_device(struct transport *transport)
{
	struct ublk_info info = ublk_plan_info(&transport->plan, transport->cookie);
	struct ublk_params params;
	int error;

	error = ublk_control_add(&keeper_control, &info);
	if (error < 0)
		return error;
	transport->id = info.id;
	transport->is_added = true;
	error = ublk_plan_accept(&transport->plan, &info);
	if (error < 0)
		return error;
	params = ublk_plan_params(&transport->plan, &transport->config);
	return ublk_control_set_params(&keeper_control, transport->id, &params);
}

static int ublk_prepare(
	struct transport *transport, const struct transport_config *config, char *problem, size_t problem_bytes)
{
	uint64_t features;
	int error;

	transport->config = *config;
	transport->failer_fd = transport->buffers_fd = -1;
	error = ublk_control_open(&keeper_control);
	if (error < 0)
		return explain_open(error, problem, problem_bytes);
	error = ublk_control_features(&keeper_control, &features);
	if (error < 0)
		return fail(problem, problem_bytes, error, "ask the ublk driver for its features");
	transport->plan = ublk_plan_make(config, features & ~without_features(), wanted_depth());
	error = make_cookie(transport);
	if (error < 0)
		return fail(problem, problem_bytes, error, "note the device's cookie");
	error = add_device(transport);
	if (error < 0)
		return fail(problem, problem_bytes, error, "make a ublk device");
	error = make_buffers(transport);
	return error < 0 ? fail(problem, problem_bytes, error, "make buffers") : 0;
}

/* Not /dev/ublkcN: were it open anywhere, the kernel would not see that a server is dead. */
static int ublk_server_fd(const struct transport *transport)
{
	return transport->buffers_fd;
}

/* In a process of its own: starting reads the partition table on old drivers, which the server answers. */
static int ublk_attach(struct transport *transport, char *node, size_t node_bytes, char *problem, size_t problem_bytes)
{
	CLEANUP(ublk_control_close) struct ublk_control control = {.fd = -1};
	char name[UBLK_NODE_BYTES];
	int error;

	error = ublk_control_open(&control);
	if (error == 0)
		error = ublk_control_do(&control, UBLK_START_DEV, transport->id, (uint64_t)transport->server, START_MS);
	if (error < 0)
		return fail(problem, problem_bytes, error, "start the ublk device");
	ublk_block_node(transport->id, name);
	snprintf(node, node_bytes, "%s", name);
	return ublk_disk_set_up(transport->id, transport->plan.request_max_bytes, problem, problem_bytes);
}

static bool ublk_can_take_over(struct transport *transport, char *problem, size_t problem_bytes)
{
	if (ublk_plan_can_take_over(&transport->plan))
		return true;
	snprintf(problem, problem_bytes, "the ublk driver has no USER_RECOVERY with REISSUE");
	return false;
}

/* ---- growing ---- */

static bool ublk_can_grow(const struct transport *transport, char *problem, size_t problem_bytes)
{
	if (transport->plan.features & UBLK_UPDATE_SIZE)
		return true;
	snprintf(problem, problem_bytes, "its ublk driver has no UPDATE_SIZE (Linux 6.16 has it)");
	return false;
}

/* Needs no server, and asks nothing of one. */
static int ublk_set_size(struct transport *transport, uint64_t size_bytes, char *problem, size_t problem_bytes)
{
	int error;

	if (size_bytes == transport->config.size_bytes)
		return 0;
	error = ublk_control_do(
		&keeper_control, UBLK_SET_SIZE, transport->id, size_bytes >> UBLK_SECTOR_SHIFT, UBLK_COMMAND_MS);
	if (error < 0)
		return fail(problem, problem_bytes, error, "tell the ublk driver the new size");
	transport->config.size_bytes = size_bytes;
	return 0;
}

/* ---- an upgrade ---- */

static void ublk_relieve(struct transport *transport)
{
	int error = -EOPNOTSUPP;

	if (transport->plan.features & UBLK_QUIESCE)
		error = ublk_control_do(&keeper_control, UBLK_QUIESCE_DEV, transport->id, QUIESCE_MS, 2 * QUIESCE_MS);
	if (error < 0 && error != -EOPNOTSUPP)
		log_warning("the ublk driver does not quiesce device %u: %s", transport->id, strerror(-error));
}

/* ---- taking down ---- */

static bool failer_lives(const struct transport *transport)
{
	struct pollfd ended = {.fd = transport->failer_fd, .events = POLLIN};

	return transport->failer_fd >= 0 && poll(&ended, 1, 0) == 0;
}

static void ublk_fail_io(struct transport *transport)
{
	pid_t pid;

	if (!transport->is_added || failer_lives(transport))
		return;
	if (transport->failer_fd >= 0)
		close(transport->failer_fd);
	pid = ublk_fail_start(transport->id, transport->cookie, true);
	transport->failer_fd = pid > 0 ? pidfd_open(pid, 0) : -1;
	if (transport->failer_fd < 0)
		log_warning("cannot start a process that fails the I/O of ublk device %u: %s", transport->id,
			strerror(pid < 0 ? -(int)pid : errno));
}

static void end_failer(struct transport *transport)
{
	if (transport->failer_fd < 0)
		return;
	pidfd_send_signal(transport->failer_fd, SIGKILL, NULL, 0);
	close(transport->failer_fd);
	transport->failer_fd = -1;
}

/*
 * Who only looks (udev) lets go at once. Where somebody uses it, what they wait for has to end before they can let go:
 * then another server fails it.
 */
static int take_down(struct transport *transport)
{
	bool is_first = !failer_lives(transport);
	int error;

	error = ublk_take_down(&keeper_control, transport->id, transport->cookie, SHORT_DOWN_MS);
	if (error == 0)
		return 0;
	ublk_fail_io(transport);
	return is_first ? ublk_take_down(&keeper_control, transport->id, transport->cookie, FIRST_DOWN_MS) : error;
}

static int ublk_detach(struct transport *transport)
{
	if (transport->is_added && take_down(transport) < 0)
		return -EBUSY;
	transport->is_added = false;
	end_failer(transport);
	if (transport->buffers_fd >= 0)
		close(transport->buffers_fd);
	transport->buffers_fd = -1;
	if (transport->cookie != 0)
		forget_cookie(transport);
	transport->cookie = 0;
	ublk_control_close(&keeper_control);
	return 0;
}

const struct transport_ops ublk_transport_ops = {
	.name = "ublk",
	.summary = "userspace block device: Linux 6.1 and later",
	.state_bytes = sizeof(struct transport),
	.probe = ublk_probe,
	.prepare = ublk_prepare,
	.server_fd = ublk_server_fd,
	.attach = ublk_attach,
	.can_take_over = ublk_can_take_over,
	.can_grow = ublk_can_grow,
	.set_size = ublk_set_size,
	.relieve = ublk_relieve,
	.fail_io = ublk_fail_io,
	.detach = ublk_detach,
	.serve_start = ublk_serve_start,
	.serve_open = ublk_serve_open,
	.serve = ublk_serve,
	.serve_stop = ublk_serve_stop,
};
