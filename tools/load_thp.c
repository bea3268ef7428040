// SPDX-License-Identifier: GPL-2.0-or-later
/* One setting for all sizes, and beside it one for each size, which may point back to the first: "inherit". */
#include "load_thp.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "textfile.h"

#define FOLDER "/sys/kernel/mm/transparent_hugepage"
#define WORD_BYTES 16

/* The chosen word of "always [madvise] never"; "" where there is no such file. */
static void read_choice(const char *folder, bool shared, char word[WORD_BYTES])
{
	char path[PATH_MAX + 32], text[128], *start;

	word[0] = '\0';
	snprintf(path, sizeof(path), "%s/%s", folder, shared ? "shmem_enabled" : "enabled");
	if (!textfile_line(path, text, sizeof(text)) || !(start = strchr(text, '[')))
		return;
	snprintf(word, WORD_BYTES, "%.*s", (int)strcspn(start + 1, "]"), start + 1);
}

static bool allows(const char *word, bool asked)
{
	if (strcmp(word, "madvise") == 0 || strcmp(word, "advise") == 0)
		return asked;
	return strcmp(word, "always") == 0 || strcmp(word, "within_size") == 0 || strcmp(word, "force") == 0;
}

bool load_thp_is_available(const char *root, bool shared, bool asked)
{
	char folder[PATH_MAX / 2], size_folder[PATH_MAX], all[WORD_BYTES], own[WORD_BYTES];
	const struct dirent *entry;
	unsigned sizes = 0;
	bool available = false;
	DIR *directory;

	snprintf(folder, sizeof(folder), "%s" FOLDER, root);
	read_choice(folder, shared, all);
	directory = opendir(folder);
	while (directory && (entry = readdir(directory)) != NULL) {
		snprintf(size_folder, sizeof(size_folder), "%s/%s", folder, entry->d_name);
		if (strncmp(entry->d_name, "hugepages-", 10) == 0)
			read_choice(size_folder, shared, own);
		else
			own[0] = '\0';
		sizes += own[0] != '\0';
		available |= allows(strcmp(own, "inherit") == 0 ? all : own, asked);
	}
	if (directory)
		closedir(directory);
	/* These two overrule all sizes; older kernels have no sizes. */
	if (strcmp(all, "deny") == 0 || strcmp(all, "force") == 0 || !sizes)
		return allows(all, asked);
	return available;
}
