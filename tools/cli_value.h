/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values that users write, with error lines that say what was asked, what is
 * wrong and what is right. All return 0 or CLI_USAGE (reported); ret is
 * untouched on failure. `what` names the option: "--size".
 */
#ifndef TOOLS_CLI_VALUE_H
#define TOOLS_CLI_VALUE_H

#include "codec.h"

#include <stdint.h>

/* What defaults and percents are taken from. */
struct cli_host {
	uint64_t ram_bytes;
	uint64_t huge_page_bytes; /* 0: the kernel has none */
	unsigned cpus;
};

void cli_host_read(struct cli_host *ret);

/* The unit for this host: its huge page size, or the nearest unit there is. */
uint32_t cli_default_unit(const struct cli_host *host);

/* "4G" or "50%" of RAM; a percentage is rounded down to 4 KiB. */
int value_size(const char *what, const char *text, const struct cli_host *host, uint64_t *ret_bytes);

/* The same or "none": UINT64_MAX. */
int value_limit(const char *what, const char *text, const struct cli_host *host, uint64_t *ret_bytes);

/* "64K", "2M", "16M". */
int value_unit(const char *what, const char *text, uint32_t *ret_bytes);

/* A power of two of 4K .. unit, or "whole". */
int value_frame(const char *what, const char *text, uint32_t unit_bytes, uint32_t *ret_bytes);

int value_codec(const char *what, const char *text, struct codec_choice *ret);
int value_count(const char *what, const char *text, unsigned min, unsigned max, unsigned *ret);

#endif
