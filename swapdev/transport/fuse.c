// SPDX-License-Identifier: GPL-2.0-or-later
/* The FUSE transport, the keeper's half: mount, loop device, and taking both down. */
#include "fuse_session.h"
#include "loopdev.h"
#include "transport_ops.h"

#include "cleanup.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 160

/* What the helper has done so far is known to the keeper even when the helper is killed. */
struct transport {
	struct transport_config config;
	char mount_path[PATH_BYTES];
	int fuse_fd;
	/*
	 * The helper sends the loop device's descriptor into this socket pair, where it stays, in flight, until detach
	 * takes it out. So the keeper keeps the device open, and its death, which closes the pair, lets it go.
	 */
	int parked[2];
	bool mounted;
	unsigned connection; /* its number under /sys/fs/fuse/connections; 0: not known */
	struct loopdev loop;
	struct fuse_hello hello;
};

static int fail(char *problem, size_t problem_bytes, const char *what)
{
	int error = errno;

	snprintf(problem, problem_bytes, "%s: %s", what, strerror(error));
	return -error;
}

static int fuse_probe(char *problem, size_t problem_bytes)
{
	static const char *const nodes[] = {"/dev/fuse", "/dev/loop-control"};
	char what[64];
	size_t i;
	int fd;

	for (i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		fd = open(nodes[i], O_RDWR | O_CLOEXEC);
		if (fd < 0) {
			snprintf(
				what, sizeof(what), "cannot open %s (modprobe %s)", nodes[i], i == 0 ? "fuse" : "loop");
			return fail(problem, problem_bytes, what);
		}
		close(fd);
	}
	return 0;
}

/* The connection's number is the minor number of the mount. Asked so that the kernel does not ask the server for it. */
static unsigned connection_number(const struct transport *transport)
{
	struct statx status;

	if (statx(AT_FDCWD, transport->mount_path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &status) < 0)
		return 0;
	return status.stx_dev_minor;
}

static int mount_fuse(struct transport *transport, char *problem, size_t problem_bytes)
{
	char options[128];

	if (mkdir(transport->mount_path, 0700) < 0 && errno != EEXIST)
		return fail(problem, problem_bytes, "cannot make the mount point");
	transport->fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (transport->fuse_fd < 0)
		return fail(problem, problem_bytes, "cannot open /dev/fuse (modprobe fuse)");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,max_read=%u", transport->fuse_fd,
		fuse_server_request_max_bytes());
	if (mount("folioswap", transport->mount_path, "fuse.folioswap", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) < 0)
		return fail(problem, problem_bytes, "cannot mount FUSE");
	transport->mounted = true;
	transport->connection = connection_number(transport);
	return 0;
}

/*
 * Ends the connection: what waits for an answer gets an error, now and for ever. Closing all descriptors of it does
 * that, too, but a server that hangs inside the kernel cannot close its own. The number is looked at again: once
 * somebody else has unmounted us it may belong to another connection.
 */
static void fuse_fail_io(struct transport *transport)
{
	CLEANUP(close_fd) int abort_fd = -1;
	char path[64];

	if (transport->connection > 0 && connection_number(transport) == transport->connection) {
		snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/abort", transport->connection);
		abort_fd = open(path, O_WRONLY | O_CLOEXEC);
	}
	if (abort_fd >= 0 && write(abort_fd, "1", 1) < 0)
		log_warning("cannot end the FUSE connection %u: %s", transport->connection, strerror(errno));
	if (transport->fuse_fd >= 0)
		close(transport->fuse_fd);
	transport->fuse_fd = -1;
}

static int fuse_prepare(
	struct transport *transport, const struct transport_config *config, char *problem, size_t problem_bytes)
{
	char path[PATH_BYTES + sizeof(FUSE_SERVER_FILE)];

	transport->config = *config;
	transport->fuse_fd = transport->parked[0] = transport->parked[1] = -1;
	snprintf(transport->mount_path, sizeof(transport->mount_path), "%s/mnt", config->directory);
	snprintf(path, sizeof(path), "%s/%s", transport->mount_path, FUSE_SERVER_FILE);
	loopdev_init(&transport->loop, path, config->discard, config->merge, fuse_server_request_max_bytes());
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, transport->parked) < 0)
		return fail(problem, problem_bytes, "cannot make a socket pair");
	return mount_fuse(transport, problem, problem_bytes);
}

static int fuse_server_fd(const struct transport *transport)
{
	return transport->fuse_fd;
}

static bool fuse_can_take_over(struct transport *transport, char *problem, size_t problem_bytes)
{
	if (fuse_hello_has_resend(&transport->hello))
		return true;
	snprintf(problem, problem_bytes, "this kernel's FUSE does not send requests again (Linux 6.9 does)");
	return false;
}

static int park(const struct transport *transport, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	char byte = 0;
	struct iovec vector = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(transport->parked[0], &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -errno;
}

/* Returns the parked descriptor, or -1 when there is none. */
static int unpark(const struct transport *transport)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec vector = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *header;
	int fd = -1;

	if (recvmsg(transport->parked[1], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

static int fuse_attach(struct transport *transport, char *node, size_t node_bytes, char *problem, size_t problem_bytes)
{
	CLEANUP(close_fd) int backing_fd = -1;
	CLEANUP(close_fd) int loop_fd = -1;
	int error;

	/* Were this copy open, the keeper could not end a connection on which we hang. */
	close(transport->fuse_fd);
	backing_fd = open(transport->loop.backing, O_RDWR | O_CLOEXEC);
	if (backing_fd < 0)
		return fail(problem, problem_bytes, "cannot open the mounted file");
	error = loopdev_attach(&transport->loop, backing_fd, &loop_fd, problem, problem_bytes);
	if (error < 0)
		return error;
	error = park(transport, loop_fd);
	if (error < 0) {
		snprintf(problem, problem_bytes, "cannot keep the loop device: %s", strerror(-error));
		return error;
	}
	loopdev_node(&transport->loop, node, node_bytes);
	return 0;
}

static bool fuse_can_grow(const struct transport *transport, char *problem, size_t problem_bytes)
{
	(void)transport;
	snprintf(problem, problem_bytes, "over FUSE the loop device keeps its size; a device over ublk can grow");
	return false;
}

/* The connection first: from then on nothing can hang on a server that is not there. */
static int fuse_detach(struct transport *transport)
{
	int error;

	fuse_fail_io(transport);
	error = loopdev_detach(&transport->loop, unpark(transport));
	if (error < 0)
		return error;
	if (transport->mounted && umount2(transport->mount_path, MNT_DETACH) < 0 && errno != EINVAL && errno != ENOENT)
		return -EBUSY;
	transport->mounted = false;
	rmdir(transport->mount_path);
	return 0;
}

static int fuse_serve_start(struct transport_server **ret, struct transport *transport, struct device *device,
	char *problem, size_t problem_bytes)
{
	return fuse_server_create(
		ret, device, transport->fuse_fd, &transport->hello, &transport->config, problem, problem_bytes);
}

const struct transport_ops fuse_transport_ops = {
	.name = "fuse",
	.summary = "FUSE file under a loop device: any kernel from 5.8 on",
	.state_bytes = sizeof(struct transport),
	.probe = fuse_probe,
	.prepare = fuse_prepare,
	.server_fd = fuse_server_fd,
	.attach = fuse_attach,
	.can_take_over = fuse_can_take_over,
	.can_grow = fuse_can_grow,
	.fail_io = fuse_fail_io,
	.detach = fuse_detach,
	.serve_start = fuse_serve_start,
	.serve_open = fuse_server_open,
	.serve = fuse_server_run,
	.serve_stop = fuse_server_stop,
};
