// SPDX-License-Identifier: GPL-2.0-or-later
/* The list of features. */
#include "ublk_features.h"

#include "ublk_abi.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const struct ublk_feature ublk_features[] = {
	{"USER_RECOVERY", UBLK_USER_RECOVERY, "a device ends with its server", true},
	{"USER_RECOVERY_REISSUE", UBLK_USER_RECOVERY_REISSUE, "a dead server is not replaced", true},
	{"CMD_IOCTL_ENCODE", UBLK_CMD_IOCTL_ENCODE, "the first operation codes are used", false},
	{"USER_COPY", UBLK_USER_COPY, "requests of at most 2 MiB, 16 MiB of buffers per I/O thread", true},
	{"SAFE_STOP_DEV", UBLK_SAFE_STOP_DEV, "openers are looked for in /proc", false},
	{"NO_AUTO_PART_SCAN", UBLK_NO_AUTO_PART_SCAN, "new devices are read for partitions", false},
	{"UPDATE_SIZE", UBLK_UPDATE_SIZE, "a device cannot grow", false},
	{"QUIESCE", UBLK_QUIESCE, "an upgrade asks requests again", false},
	{NULL, 0, NULL, false},
};

const char *ublk_features_text(uint64_t features, char *text, size_t text_bytes)
{
	size_t used = 0;

	*text = '\0';
	for (const struct ublk_feature *feature = ublk_features; feature->name && used < text_bytes; feature++) {
		if (features & feature->bit)
			used += (size_t)snprintf(
				text + used, text_bytes - used, "%s%s", used ? ", " : "", feature->name);
	}
	return text;
}

static uint64_t find(const char *name, size_t length)
{
	for (const struct ublk_feature *feature = ublk_features; feature->name; feature++) {
		if (strlen(feature->name) == length && strncmp(feature->name, name, length) == 0)
			return feature->bit;
	}
	return 0;
}

int ublk_features_parse(const char *text, uint64_t *ret)
{
	uint64_t features = 0, bit;

	while (*text) {
		size_t length = strcspn(text, ",");

		bit = find(text, length);
		if (!bit || (text[length] == ',' && !text[length + 1]))
			return -EINVAL;
		features |= bit;
		text += length + (text[length] == ',');
	}
	*ret = features;
	return 0;
}
