/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the verbs of folioswap share: exit codes, the verb and option tables,
 * and the one way to report an error.
 *
 * A verb's run function gets its own arguments (argv[0] is the verb), reads
 * options with cli_next_option() and returns an exit code. Errors are printed
 * where they happen, once, as one line "folioswap: <verb>: ...".
 */
#ifndef TOOLS_CLI_H
#define TOOLS_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum cli_exit {
	CLI_DONE = 0,
	CLI_FAILED = 1,    /* the system refused */
	CLI_USAGE = 2,     /* what was asked makes no sense */
	CLI_UNSAFE = 3,    /* refused as unsafe: what --allow-unsafe would accept */
	CLI_BUSY = 4,      /* swapped on, open, or not finished in time */
	CLI_NO_DEVICE = 5, /* no such device */
};

/* Values returned by cli_next_option(): the option's own id, a letter or one of these. */
enum {
	CLI_OPTION_END = -1,
	CLI_OPTION_ERROR = -2, /* reported; return CLI_USAGE */
	CLI_OPTION_HELP = -3,  /* help was printed; return CLI_DONE */
};

struct cli_option {
	const char *name;     /* long name without dashes; NULL ends a table */
	const char *argument; /* "SIZE"; "[=SECONDS]" for an optional one; NULL: none */
	int id;               /* a letter is the short name, too; others from 256 on */
	const char *help;
};

struct cli_verb {
	const char *name;
	const char *arguments; /* "[OPTION...] NAME" */
	const char *summary;
	const struct cli_option *options;
	int (*run)(int argc, char **argv);
	void (*more_help)(FILE *out); /* columns and the like; may be NULL */
};

extern const struct cli_verb cmd_add, cmd_list, cmd_stat, cmd_set, cmd_compact, cmd_upgrade, cmd_del, cmd_doctor;

/* The verb whose errors are reported from now on; also forgets the state of an earlier option scan. */
void cli_begin(const struct cli_verb *verb);

/* Next option of the current verb. *ret_value: its argument or NULL. Afterwards optind is the first operand. */
int cli_next_option(int argc, char **argv, const char **ret_value);

void cli_print_verb_help(const struct cli_verb *verb, FILE *out);

/* One line on stderr, control characters made visible; returns code. */
int cli_fail(enum cli_exit code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same, for what does not end the verb. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line on the terminal of stderr that the next one overwrites; nothing where that is no terminal. */
void cli_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Wipes the last one, before anything else is printed; error lines do it by themselves. */
void cli_progress_end(void);

/* The worse of two exit codes: the first that is not CLI_DONE. */
static inline int cli_first_failure(int before, int now)
{
	return before ? before : now;
}

#endif
