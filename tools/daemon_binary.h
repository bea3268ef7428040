/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the program is that add starts, and what one is that a user names. */
#ifndef TOOLS_DAEMON_BINARY_H
#define TOOLS_DAEMON_BINARY_H

#include <stddef.h>

#define DAEMON_NAME "folioswapd"
#define DAEMON_PATH_BYTES 4096

/* Its path: beside this program, else in a directory of PATH; just its name when it is nowhere. */
void daemon_binary_find(char ret_path[DAEMON_PATH_BYTES]);

/*
 * Asks a program for its version. Returns 0 with what it says, "folioswapd
 * 0.2.0", -ENOEXEC when it says something else, another -errno when it cannot
 * be run or does not end; problem is then one phrase.
 */
int daemon_binary_version(
	const char *path, char *ret_version, size_t version_bytes, char *problem, size_t problem_bytes);

#endif
