/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Log lines on stderr with systemd's "<N>" priority prefix when stderr is not
 * a terminal. Formats on the caller's stack and does one write(2) to a
 * descriptor that is put in non-blocking mode where it is a pipe or socket: a
 * reader that stalls costs lines, never time. Never call it on an I/O thread.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

enum log_priority {
	LOG_PRIORITY_ERROR = 3,
	LOG_PRIORITY_WARNING = 4,
	LOG_PRIORITY_INFO = 6,
};

/* name: program name in front of each line, kept by pointer. Call once, before threads. */
void log_init(const char *name);

/* A program that logs through another one's pipe to a terminal is told. Before threads. */
bool log_has_prefix(void);
void log_set_prefix(bool prefix);

void log_line(enum log_priority priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_PRIORITY_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_PRIORITY_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_PRIORITY_INFO, __VA_ARGS__)

#endif
