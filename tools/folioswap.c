// SPDX-License-Identifier: GPL-2.0-or-later
/* folioswap: the command line tool. One verb, one table entry, one file. */
#include "cli.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct cli_verb *const verbs[] = {
	&cmd_add,
	&cmd_list,
	&cmd_stat,
	&cmd_set,
	&cmd_compact,
	&cmd_upgrade,
	&cmd_del,
	&cmd_doctor,
	NULL,
};

static const char exit_status_text[] =
	"\nExit status: 0 done, 1 failed, 2 usage, 3 refused as unsafe, 4 busy, 5 no such device.\n"
	"More: folioswap VERB --help, man 8 folioswap\n";

static void print_help(FILE *out)
{
	fputs("Usage: folioswap VERB [OPTION...] [ARGUMENT...]\n\n"
	      "Swap devices that keep compressed folios in memory.\n\nVerbs:\n",
		out);
	for (const struct cli_verb *const *verb = verbs; *verb; verb++)
		fprintf(out, "  %-10s%s\n", (*verb)->name, (*verb)->summary);
	fputs(exit_status_text, out);
}

static const struct cli_verb *find_verb(const char *name)
{
	for (const struct cli_verb *const *verb = verbs; *verb; verb++) {
		if (strcmp((*verb)->name, name) == 0)
			return *verb;
	}
	return NULL;
}

/* Output that could not be written (a full disk, a closed pipe) is a failure. */
static int finish(int result)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return result;
	return result ? result : cli_fail(CLI_FAILED, "cannot write the output: %m");
}

static int run_help(int argc, char **argv)
{
	const struct cli_verb *verb;

	if (argc < 3) {
		print_help(stdout);
		return CLI_DONE;
	}
	verb = find_verb(argv[2]);
	if (!verb)
		return cli_fail(CLI_USAGE, "no verb '%s'; see folioswap --help", argv[2]);
	cli_print_verb_help(verb, stdout);
	return CLI_DONE;
}

/* 0, 1 and 2 must be something, or a pipe to the daemon is taken for them. Writing to what was closed still fails. */
static void fill_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	const struct cli_verb *verb;

	fill_standard();
	if (argc < 2)
		return cli_fail(CLI_USAGE, "a verb is missing; see folioswap --help");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
		return finish(run_help(argc, argv));
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		puts("folioswap " FOLIOSWAP_VERSION);
		return finish(CLI_DONE);
	}
	verb = find_verb(argv[1]);
	if (!verb)
		return cli_fail(CLI_USAGE, "no verb '%s'; see folioswap --help", argv[1]);
	cli_begin(verb);
	return finish(verb->run(argc - 1, argv + 1));
}
