// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading /proc/swaps. */
#include "swaps.h"

#include "cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DELETED "\\040(deleted)"

/* Turns the kernel's \ooo back into characters, in place. */
static void unescape(char *text)
{
	char *to = text;
	int digit, value;

	while (*text) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3') {
			value = 0;
			for (digit = 1; digit <= 3 && text[digit] >= '0' && text[digit] <= '7'; digit++)
				value = value * 8 + (text[digit] - '0');
			*to++ = (char)value;
			text += digit;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}

static bool is_same_device(const char *path, const char *node)
{
	struct stat left, right;

	if (strcmp(path, node) == 0)
		return true;
	return stat(path, &left) == 0 && stat(node, &right) == 0 && S_ISBLK(left.st_mode) && S_ISBLK(right.st_mode) &&
	       left.st_rdev == right.st_rdev;
}

/* line: "/dev/loop3    partition  1048572  0  -2", the first word escaped. */
static bool line_is_node(char *line, const char *node)
{
	char *deleted;

	line[strcspn(line, " \t\n")] = '\0';
	deleted = strstr(line, DELETED);
	if (deleted)
		*deleted = '\0';
	unescape(line);
	return line[0] == '/' && is_same_device(line, node);
}

bool swaps_file_has_node(const char *swaps_path, const char *node)
{
	CLEANUP(close_fd) int fd = open(swaps_path, O_RDONLY | O_CLOEXEC);
	char text[8192], *line, *end;
	size_t used = 0;
	ssize_t got = 1;

	if (fd < 0)
		return errno != ENOENT; /* no such file: a kernel without swap */
	while (got > 0 && used < sizeof(text) - 1) {
		got = read(fd, text + used, sizeof(text) - 1 - used);
		if (got > 0)
			used += (size_t)got;
	}
	if (got < 0)
		return true;
	text[used] = '\0';
	for (line = text; *line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		else
			end = line + strlen(line);
		if (line_is_node(line, node))
			return true;
	}
	return false;
}

bool swaps_has_node(const char *node)
{
	return swaps_file_has_node("/proc/swaps", node);
}
