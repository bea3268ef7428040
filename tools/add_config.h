/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What add is asked for: from arguments to checked numbers. No system call; the host's facts are an argument. */
#ifndef TOOLS_ADD_CONFIG_H
#define TOOLS_ADD_CONFIG_H

#include "cli.h"
#include "cli_value.h"

struct add_config {
	uint64_t size_bytes;
	uint64_t max_size_bytes;
	uint64_t limit_bytes; /* UINT64_MAX: none */
	uint64_t reserve_bytes;
	uint32_t unit_bytes;
	uint32_t frame_bytes; /* the unit: whole */
	struct codec_choice codec;
	unsigned slots;
	unsigned io_threads;
	unsigned compress_threads;
	const char *transport;
	const char *fault; /* NULL: none */
	bool discard;
	bool merge;
	bool no_standby;
	bool allow_unsafe;
	bool swapon;
	int priority;
};

extern const struct cli_option add_options[];

/* The codec's and transport's lists for --help. */
void add_more_help(FILE *out);

/* Returns 0, CLI_OPTION_HELP, or CLI_USAGE (reported). Text of ret points into argv. */
int add_config_parse(int argc, char **argv, const struct cli_host *host, struct add_config *ret);

#endif
