// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading /proc/swaps, line by line through one buffer. */
#include "swaps.h"

#include "cleanup.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DELETED_MARK " (deleted)"
#define LINE_BYTES 1024 /* a longer one names no device */

struct reader {
	int fd;
	size_t used;
	size_t taken;
	int error;
	char text[LINE_BYTES];
};

static bool is_octal(const char *text)
{
	for (int i = 0; i < 3; i++) {
		if (text[i] < '0' || text[i] > '7')
			return false;
	}
	return true;
}

/* "\040" is a blank: the kernel writes white space and backslashes of paths that way. */
static void decode_path(char *path)
{
	char *to = path;

	for (const char *from = path; *from;) {
		if (*from == '\\' && is_octal(from + 1)) {
			*to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

int swaps_parse_line(const char *line, struct swap_entry *ret)
{
	unsigned long long size_kib, used_kib;
	struct swap_entry entry = {0};
	size_t length, mark = strlen(DELETED_MARK);

	if (sscanf(line, "%255s %*s %llu %llu %d", entry.path, &size_kib, &used_kib, &entry.priority) != 4)
		return -EINVAL;
	decode_path(entry.path);
	length = strlen(entry.path);
	if (length > mark && strcmp(entry.path + length - mark, DELETED_MARK) == 0) {
		entry.path[length - mark] = '\0';
		entry.deleted = true;
	}
	entry.size_bytes = size_kib * KIB;
	entry.used_bytes = used_kib * KIB;
	*ret = entry;
	return 0;
}

/* The next line, in the reader's buffer; NULL at the end or after an error. */
static char *next_line(struct reader *reader)
{
	char *line, *end;
	ssize_t got;

	for (;;) {
		line = reader->text + reader->taken;
		end = memchr(line, '\n', reader->used - reader->taken);
		if (end) {
			*end = '\0';
			reader->taken = (size_t)(end - reader->text) + 1;
			return line;
		}
		reader->used -= reader->taken;
		memmove(reader->text, line, reader->used);
		reader->taken = 0;
		if (reader->used == sizeof(reader->text))
			reader->used = 0;
		got = read(reader->fd, reader->text + reader->used, sizeof(reader->text) - reader->used);
		if (got <= 0) {
			reader->error = got < 0 ? -errno : 0;
			return NULL;
		}
		reader->used += (size_t)got;
	}
}

static bool next_entry(struct reader *reader, struct swap_entry *ret)
{
	const char *line;

	while ((line = next_line(reader)) != NULL) {
		if (swaps_parse_line(line, ret) == 0)
			return true;
	}
	return false;
}

int swaps_read(const char *path, struct swap_entry *entries, int max)
{
	CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct reader reader = {.fd = fd};
	int count = 0;

	if (fd < 0)
		return -errno;
	while (count < max && next_entry(&reader, &entries[count]))
		count++;
	return reader.error < 0 ? reader.error : count;
}

bool swaps_entry_is_node(const struct swap_entry *entry, const char *node)
{
	struct stat left, right;

	if (strcmp(entry->path, node) == 0)
		return true;
	return !entry->deleted && stat(entry->path, &left) == 0 && stat(node, &right) == 0 && S_ISBLK(left.st_mode) &&
	       S_ISBLK(right.st_mode) && left.st_rdev == right.st_rdev;
}

const struct swap_entry *swaps_find(const struct swap_entry *entries, int count, const char *node)
{
	for (int i = 0; i < count; i++) {
		if (swaps_entry_is_node(&entries[i], node))
			return &entries[i];
	}
	return NULL;
}

bool swaps_file_has_node(const char *swaps_path, const char *node)
{
	CLEANUP(close_fd) int fd = open(swaps_path, O_RDONLY | O_CLOEXEC);
	struct reader reader = {.fd = fd};
	struct swap_entry entry;

	if (fd < 0)
		return errno != ENOENT;
	while (next_entry(&reader, &entry)) {
		if (swaps_entry_is_node(&entry, node))
			return true;
	}
	return reader.error < 0;
}

bool swaps_has_node(const char *node)
{
	return swaps_file_has_node("/proc/swaps", node);
}
