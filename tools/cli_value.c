// SPDX-License-Identifier: GPL-2.0-or-later
/* Sizes, percents, units, frames, codecs and counts out of text. */
#include "cli_value.h"

#include "cli.h"
#include "cleanup.h"
#include "parse.h"
#include "units.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PERCENT_MAX 1000 /* ten times RAM: more is a slip of the finger */

static uint64_t read_huge_page_bytes(void)
{
	CLEANUP(fclose) FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "re");
	unsigned long long bytes;

	if (!file || fscanf(file, "%llu", &bytes) != 1)
		return 0;
	return bytes;
}

void cli_host_read(struct cli_host *ret)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE), cpus = sysconf(_SC_NPROCESSORS_ONLN);

	ret->ram_bytes = (uint64_t)pages * (uint64_t)page_bytes;
	ret->huge_page_bytes = read_huge_page_bytes();
	ret->cpus = cpus > 0 ? (unsigned)cpus : 1;
}

uint32_t cli_default_unit(const struct cli_host *host)
{
	if (host->huge_page_bytes >= 16 * MIB)
		return 16 * MIB;
	if (host->huge_page_bytes && host->huge_page_bytes < 2 * MIB)
		return 64 * KIB;
	return 2 * MIB;
}

static int parse_percent(const char *text, uint64_t ram_bytes, uint64_t *ret_bytes)
{
	char digits[8];
	size_t length = strlen(text) - 1;
	long percent;
	int error;

	if (length >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, length);
	digits[length] = '\0';
	error = parse_int(digits, 1, PERCENT_MAX, &percent);
	if (error)
		return error;
	*ret_bytes = ram_bytes * (uint64_t)percent / 100 & ~(GRANULE_BYTES - 1);
	return 0;
}

int value_size(const char *what, const char *text, const struct cli_host *host, uint64_t *ret_bytes)
{
	size_t length = strlen(text);
	uint64_t bytes;
	int error;

	if (length && text[length - 1] == '%') {
		error = parse_percent(text, host->ram_bytes, &bytes);
		if (error)
			return cli_fail(CLI_USAGE, "%s '%s' is not a share of RAM; whole percents from 1%% to %d%% are",
				what, text, PERCENT_MAX);
		*ret_bytes = bytes;
		return 0;
	}
	error = parse_size(text, &bytes);
	if (error == -ERANGE)
		return cli_fail(CLI_USAGE, "%s '%s' does not fit into 63 bits", what, text);
	if (error)
		return cli_fail(CLI_USAGE, "%s '%s' is not a size; write 512M, 1.5G or 50%%, without sign or blank",
			what, text);
	*ret_bytes = bytes;
	return 0;
}

int value_limit(const char *what, const char *text, const struct cli_host *host, uint64_t *ret_bytes)
{
	uint64_t bytes = 0;

	if (strcmp(text, "none") == 0) {
		*ret_bytes = UINT64_MAX;
		return 0;
	}
	if (value_size(what, text, host, &bytes))
		return CLI_USAGE;
	if (!bytes)
		return cli_fail(CLI_USAGE, "%s 0 would store nothing; 'none' is how to set no limit", what);
	*ret_bytes = bytes;
	return 0;
}

int value_unit(const char *what, const char *text, uint32_t *ret_bytes)
{
	uint64_t bytes;

	if (parse_size(text, &bytes) || (bytes != 64 * KIB && bytes != 2 * MIB && bytes != 16 * MIB))
		return cli_fail(CLI_USAGE, "%s '%s' is not a unit; units are 64K, 2M and 16M", what, text);
	*ret_bytes = (uint32_t)bytes;
	return 0;
}

int value_frame(const char *what, const char *text, uint32_t unit_bytes, uint32_t *ret_bytes)
{
	char unit[16];
	uint64_t bytes;

	if (strcmp(text, "whole") == 0) {
		*ret_bytes = unit_bytes;
		return 0;
	}
	format_size(unit_bytes, unit, sizeof(unit));
	if (parse_size(text, &bytes) || bytes < GRANULE_BYTES || (bytes & (bytes - 1)))
		return cli_fail(CLI_USAGE,
			"%s '%s' is not a frame size; a power of two from 4K to the unit (%s), or 'whole', is", what,
			text, unit);
	if (bytes > unit_bytes)
		return cli_fail(CLI_USAGE, "%s '%s' is larger than the unit (%s); 'whole' is the largest frame", what,
			text, unit);
	*ret_bytes = (uint32_t)bytes;
	return 0;
}

int value_codec(const char *what, const char *text, struct codec_choice *ret)
{
	char list[256];

	if (codec_parse(text, ret))
		return cli_fail(CLI_USAGE, "%s '%s' is no codec with a level in its range; there are %s", what, text,
			codec_list(list, sizeof(list)));
	return 0;
}

int value_count(const char *what, const char *text, unsigned min, unsigned max, unsigned *ret)
{
	long value;

	if (parse_int(text, (long)min, (long)max, &value))
		return cli_fail(CLI_USAGE, "%s '%s' is not a whole number from %u to %u", what, text, min, max);
	*ret = (unsigned)value;
	return 0;
}
