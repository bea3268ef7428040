// SPDX-License-Identifier: GPL-2.0-or-later
/* One line, one write, never a wait. */
#include "log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *program_name = "folioswap";
static bool with_prefix;

void log_init(const char *name)
{
	struct stat status;
	int flags;

	program_name = name;
	with_prefix = !isatty(STDERR_FILENO);
	if (fstat(STDERR_FILENO, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))) {
		flags = fcntl(STDERR_FILENO, F_GETFL);
		if (flags >= 0)
			fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
	}
}

bool log_has_prefix(void)
{
	return with_prefix;
}

void log_set_prefix(bool prefix)
{
	with_prefix = prefix;
}

void log_line(enum log_priority priority, const char *format, ...)
{
	char line[512];
	int length = 0, more;
	va_list arguments;

	if (with_prefix)
		length = snprintf(line, sizeof(line), "<%d>", (int)priority);
	length += snprintf(line + length, sizeof(line) - (size_t)length, "%s: ", program_name);
	va_start(arguments, format);
	more = vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, arguments);
	va_end(arguments);
	if (more < 0)
		return;
	length += more;
	if (length > (int)sizeof(line) - 2)
		length = (int)sizeof(line) - 2;
	line[length++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)length) < 0)
		return; /* nobody to tell */
}
