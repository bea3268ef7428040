// SPDX-License-Identifier: GPL-2.0-or-later
/* One open, one read, one close. */
#include "textfile.h"

#include "cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

ssize_t textfile_read(const char *path, char *text, size_t text_bytes)
{
	CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -errno;
	got = read(fd, text, text_bytes - 1);
	if (got < 0)
		return -errno;
	text[got] = '\0';
	return got;
}

bool textfile_line(const char *path, char *text, size_t text_bytes)
{
	if (textfile_read(path, text, text_bytes) <= 0) {
		text[0] = '\0';
		return false;
	}
	text[strcspn(text, "\n")] = '\0';
	return true;
}
