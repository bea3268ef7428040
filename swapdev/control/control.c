// SPDX-License-Identifier: GPL-2.0-or-later
/* Client side of the control socket, and the names of what residency could not get. */
#include "control.h"
#include "control_at.h"

#include "cleanup.h"
#include "parse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATH_BYTES 256

_Static_assert(sizeof(struct control_request) == 248, "the request is wire format");
_Static_assert(sizeof(struct control_info) == 224, "the information is wire format");
_Static_assert(sizeof(struct control_reply) == 272 + sizeof(struct control_info), "the reply is wire format");

/* Directory names are device numbers without leading zeros: nothing else may reach a path. */
static int name_number(const char *name)
{
	long number;

	if (name[0] == '0' && name[1] != '\0')
		return -EINVAL;
	if (parse_int(name, 0, CONTROL_DEVICES_MAX - 1, &number) < 0)
		return -EINVAL;
	return (int)number;
}

static int device_path(const char *directory, const char *name, const char *file, char *path, size_t path_bytes)
{
	int length;

	if (name_number(name) < 0)
		return -EINVAL;
	length = snprintf(path, path_bytes, "%s/%s%s", directory, name, file);
	if (length < 0 || (size_t)length >= path_bytes)
		return -ENAMETOOLONG;
	return 0;
}

static int set_timeouts(int fd, int timeout_ms)
{
	struct timeval timeout = {.tv_sec = timeout_ms / 1000, .tv_usec = (timeout_ms % 1000) * 1000};

	if (timeout_ms <= 0)
		timeout.tv_usec = 1000; /* zero would mean for ever */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0)
		return -errno;
	return 0;
}

/* A directory without a socket belongs to a daemon that is starting or has died: not "no such device". */
static int connect_error(const char *directory, const char *name, int error)
{
	char path[PATH_BYTES];
	struct stat status;

	if (error == EAGAIN)
		return -ETIMEDOUT;
	if (error != ENOENT || device_path(directory, name, "", path, sizeof(path)) < 0)
		return -error;
	return stat(path, &status) == 0 ? -ECONNREFUSED : -ENOENT;
}

/*
 * Where a socket has a timeout, a wait that was interrupted is not taken up
 * again by the kernel: not after a stop, nor after whatever else wakes a
 * process without being a signal to it. Nobody here wants to be told.
 */
static bool is_interrupted(ssize_t result)
{
	return result < 0 && errno == EINTR;
}

static int connect_to(int fd, const struct sockaddr_un *address)
{
	int result;

	do
		result = connect(fd, (const struct sockaddr *)address, sizeof(*address));
	while (is_interrupted(result));
	return result;
}

int control_connect_at(const char *directory, const char *name, int timeout_ms)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	CLEANUP(close_fd) int fd = -1;
	int error;

	error = device_path(directory, name, "/control", address.sun_path, sizeof(address.sun_path));
	if (error < 0)
		return error;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	error = set_timeouts(fd, timeout_ms);
	if (error < 0)
		return error;
	if (connect_to(fd, &address) < 0)
		return connect_error(directory, name, errno);
	return take_fd(&fd);
}

int control_connect(const char *name, int timeout_ms)
{
	return control_connect_at(CONTROL_DIR, name, timeout_ms);
}

int control_send(int fd, const struct control_request *request)
{
	ssize_t sent;

	do
		sent = send(fd, request, sizeof(*request), MSG_NOSIGNAL);
	while (is_interrupted(sent));
	if (sent < 0)
		return errno == EAGAIN ? -ETIMEDOUT : errno == EPIPE ? -ECONNRESET : -errno;
	return sent == (ssize_t)sizeof(*request) ? 0 : -EPROTO;
}

static int passed_fd(struct msghdr *message)
{
	struct cmsghdr *header;
	int fd = -1;

	for (header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header))
		if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
			header->cmsg_len >= CMSG_LEN(sizeof(int)))
			memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

int control_receive(int fd, struct control_reply *ret, int *ret_image_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct control_reply reply;
	struct iovec vector = {.iov_base = &reply, .iov_len = sizeof(reply)};
	struct msghdr message = {
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	CLEANUP(close_fd) int image_fd = -1;
	ssize_t got;

	do
		got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	while (is_interrupted(got));
	if (got < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	image_fd = passed_fd(&message);
	if (got == 0)
		return -ECONNRESET;
	if (got != (ssize_t)sizeof(reply) || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
		reply.version != CONTROL_VERSION)
		return -EPROTO;
	reply.message[sizeof(reply.message) - 1] = '\0';
	*ret = reply;
	if (ret_image_fd)
		*ret_image_fd = take_fd(&image_fd);
	return 0;
}

static int compare_names(const void *left, const void *right)
{
	return name_number(left) - name_number(right);
}

int control_list_at(const char *directory, char names[][16], int names_max)
{
	struct dirent *entry;
	int count = 0;
	DIR *listing;

	listing = opendir(directory);
	if (!listing)
		return 0;
	while (count < names_max && (entry = readdir(listing)) != NULL)
		if (name_number(entry->d_name) >= 0)
			snprintf(names[count++], sizeof(names[0]), "%.15s", entry->d_name);
	closedir(listing);
	qsort(names, (size_t)count, sizeof(names[0]), compare_names);
	return count;
}

int control_list(char names[][16], int names_max)
{
	return control_list_at(CONTROL_DIR, names, names_max);
}

/* What the file says is of use only when the lock's holder has no number here (another pid namespace). */
static pid_t pid_of_text(int fd)
{
	char text[16] = "";
	ssize_t got;
	long pid;

	got = read(fd, text, sizeof(text) - 1);
	if (got <= 0)
		return -ESRCH;
	text[strcspn(text, "\n")] = '\0';
	return parse_int(text, 1, INT32_MAX, &pid) < 0 ? -ESRCH : (pid_t)pid;
}

/* The keeper holds a record lock on its pid file for life: a number that another process has by now cannot mislead. */
pid_t control_keeper_pid_at(const char *directory, const char *name)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	CLEANUP(close_fd) int fd = -1;
	char path[PATH_BYTES];
	struct stat status;
	int error;

	error = device_path(directory, name, "", path, sizeof(path));
	if (error < 0)
		return error;
	if (stat(path, &status) < 0)
		return -errno;
	error = device_path(directory, name, "/pid", path, sizeof(path));
	if (error < 0)
		return error;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	if (fcntl(fd, F_GETLK, &lock) < 0)
		return -errno;
	if (lock.l_type == F_UNLCK)
		return -ESRCH;
	return lock.l_pid > 0 ? lock.l_pid : pid_of_text(fd);
}

pid_t control_keeper_pid(const char *name)
{
	return control_keeper_pid_at(CONTROL_DIR, name);
}

static const struct {
	unsigned bit;
	const char *name;
	const char *risk;
} unsafe_table[] = {
	{CONTROL_UNSAFE_IO_FLUSHER, "PR_SET_IO_FLUSHER refused (needs CAP_SYS_RESOURCE)",
		"an allocation of the daemon may wait for the device that the daemon serves: deadlock"},
	{CONTROL_UNSAFE_OOM_SCORE, "oom_score_adj -1000 refused (needs CAP_SYS_RESOURCE)",
		"the OOM killer may pick the daemon: everything swapped out is lost"},
	{CONTROL_UNSAFE_MLOCK, "memory cannot be locked (needs CAP_IPC_LOCK or an unlimited RLIMIT_MEMLOCK)",
		"the daemon may be swapped out to its own device: deadlock"},
	{CONTROL_UNSAFE_NICE, "nice -5 refused (needs CAP_SYS_NICE)", "busy programs may hold swap I/O up"},
	{CONTROL_UNSAFE_IMAGE_SWAPPABLE, "no tmpfs with noswap (kernel before 6.4)",
		"only the server's locks keep the image from being swapped out to itself"},
	{CONTROL_UNSAFE_CGROUP, "the daemon's control group has a limit",
		"the daemon may be throttled, or reclaimed and killed, for the memory it keeps for others"},
	{CONTROL_UNSAFE_MIN_FREE, "vm.min_free_kbytes is below 16384",
		"FUSE and loop may find no memory when all of the machine is short of it: deadlock"},
};

#define UNSAFE_COUNT (sizeof(unsafe_table) / sizeof(unsafe_table[0]))

const char *control_unsafe_name(unsigned bit)
{
	size_t i;

	for (i = 0; i < UNSAFE_COUNT; i++)
		if (unsafe_table[i].bit == bit)
			return unsafe_table[i].name;
	return "unknown";
}

const char *control_unsafe_risk(unsigned bit)
{
	size_t i;

	for (i = 0; i < UNSAFE_COUNT; i++)
		if (unsafe_table[i].bit == bit)
			return unsafe_table[i].risk;
	return "unknown";
}
