// SPDX-License-Identifier: GPL-2.0-or-later
/* Strict text to numbers, and sizes to text. */
#include "parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char suffixes[] = "KMGTPE";

/* "", "K", "KiB": the power of 1024; -1: not a suffix. */
static int suffix_power(const char *text)
{
	const char *found;

	if (!*text)
		return 0;
	found = strchr(suffixes, toupper((unsigned char)*text));
	if (!found || (text[1] && strcmp(text + 1, "iB") != 0))
		return -1;
	return (int)(found - suffixes) + 1;
}

int parse_size(const char *text, uint64_t *ret_bytes)
{
	unsigned __int128 value = 0, fraction = 0, scale = 1;
	const char *at = text;
	int power;

	if (!isdigit((unsigned char)*at))
		return -EINVAL;
	for (; isdigit((unsigned char)*at); at++) {
		value = value * 10 + (unsigned)(*at - '0');
		if (value > INT64_MAX)
			return -ERANGE;
	}
	if (*at == '.') {
		at++;
		if (!isdigit((unsigned char)*at))
			return -EINVAL;
		for (; isdigit((unsigned char)*at); at++) {
			if (scale > 1000000)
				return -EINVAL; /* more digits than any size needs */
			fraction = fraction * 10 + (unsigned)(*at - '0');
			scale *= 10;
		}
	}
	power = suffix_power(at);
	if (power < 0 || (scale > 1 && power == 0))
		return -EINVAL;
	value = (value << (10 * power)) + (fraction << (10 * power)) / scale;
	if (value > INT64_MAX)
		return -ERANGE;
	*ret_bytes = (uint64_t)value;
	return 0;
}

int parse_int(const char *text, long min, long max, long *ret)
{
	char *end;
	long value;

	if (!isdigit((unsigned char)text[text[0] == '-']))
		return -EINVAL;
	errno = 0;
	value = strtol(text, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno || value < min || value > max)
		return -ERANGE;
	*ret = value;
	return 0;
}

const char *format_size(uint64_t bytes, char *buffer, size_t buffer_bytes)
{
	double value = (double)bytes;
	unsigned power = 0;

	while (value >= 1023.95 && power < sizeof(suffixes) - 1) {
		value /= 1024;
		power++;
	}
	if (!power)
		snprintf(buffer, buffer_bytes, "%lluB", (unsigned long long)bytes);
	else
		snprintf(buffer, buffer_bytes, value < 99.95 ? "%.1f%c" : "%.0f%c", value, suffixes[power - 1]);
	return buffer;
}
