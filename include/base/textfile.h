/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small text files of /proc and /sys, read in one go into the caller's buffer. No allocation; any thread. */
#ifndef BASE_TEXTFILE_H
#define BASE_TEXTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The beginning of a file, ended by '\0'. Returns its length or -errno; text is then left alone. */
ssize_t textfile_read(const char *path, char *text, size_t text_bytes);

/* Its first line, without the line feed. Returns false when it cannot be read; text is then "". */
bool textfile_line(const char *path, char *text, size_t text_bytes);

#endif
