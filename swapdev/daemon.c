// SPDX-License-Identifier: GPL-2.0-or-later
/* The messages between keeper and server, and where both log to. */
#include "daemon.h"

#include "cleanup.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(struct link_message) == 256, "one small packet");

int link_send_message(int fd, const struct link_message *message)
{
	return send(fd, message, sizeof(*message), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int link_send(int fd, enum link_kind kind, int exit_code, const char *text)
{
	struct link_message message = {.kind = kind, .exit_code = exit_code};

	if (text)
		snprintf(message.text, sizeof(message.text), "%s", text);
	return link_send_message(fd, &message);
}

int link_receive(int fd, struct link_message *ret)
{
	struct link_message message;
	ssize_t got;

	got = recv(fd, &message, sizeof(message), MSG_DONTWAIT);
	if (got < 0)
		return -errno;
	if (got == 0)
		return -ECONNRESET;
	if (got != (ssize_t)sizeof(message))
		return -EPROTO;
	message.text[sizeof(message.text) - 1] = '\0';
	*ret = message;
	return 0;
}

void daemon_leave_caller(const struct daemon_options *options)
{
	CLEANUP(close_fd) int log_fd = -1;
	struct stat status;

	if (options->foreground || fstat(STDERR_FILENO, &status) < 0)
		return;
	if (!S_ISFIFO(status.st_mode) && !isatty(STDERR_FILENO))
		return; /* a file or the journal's socket: chosen for the daemon */
	log_fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (log_fd < 0)
		log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (log_fd >= 0)
		dup2(log_fd, STDERR_FILENO);
	log_init("folioswapd");
}
