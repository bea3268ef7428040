/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A made-up host: a temporary directory whose files stand for those of /proc and /sys. After cmocka.h. */
#ifndef TESTS_MADE_HOST_H
#define TESTS_MADE_HOST_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char host_root[64];

static inline int host_make(void **state)
{
	(void)state;
	strcpy(host_root, "/tmp/folioswap-host-XXXXXX");
	return mkdtemp(host_root) ? 0 : -1;
}

static inline int host_remove_entry(const char *path, const struct stat *status, int flag, struct FTW *ftw)
{
	(void)status;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static inline int host_remove(void **state)
{
	(void)state;
	return nftw(host_root, host_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Writes a file, "/proc/x", making the directories above it. */
static inline void host_put(const char *file, const char *text)
{
	char path[512];
	FILE *out;

	snprintf(path, sizeof(path), "%s%s", host_root, file);
	for (char *slash = strchr(path + strlen(host_root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	out = fopen(path, "w");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	fclose(out);
}

#endif
