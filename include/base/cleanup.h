/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scope guards: `CLEANUP(close_fd) int fd = -1;` closes when the scope is left, whichever way. */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(name) __attribute__((cleanup(cleanup_##name)))

static inline void cleanup_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

static inline void cleanup_fclose(FILE **file)
{
	if (*file)
		fclose(*file);
}

/* Hands the descriptor on: the guard no longer closes it. */
static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#endif
