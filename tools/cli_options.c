// SPDX-License-Identifier: GPL-2.0-or-later
/* Option tables over getopt_long, help texts from them, error and progress lines. */
#include "cli.h"

#include <ctype.h>
#include <getopt.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#define OPTIONS_MAX 40
#define HELP_COLUMN 28

static const struct cli_verb *current;
static bool progress_is_shown;

void cli_begin(const struct cli_verb *verb)
{
	current = verb;
	optind = 0; /* glibc: start over, with the option string read anew */
}

static bool option_is_optional(const struct cli_option *option)
{
	return option->argument && option->argument[0] == '[';
}

static bool option_has_letter(const struct cli_option *option)
{
	return option->id < 256 && isalnum(option->id);
}

static int argument_mode(const struct cli_option *option)
{
	if (!option->argument)
		return no_argument;
	return option_is_optional(option) ? optional_argument : required_argument;
}

/* "+:o:nJ" style text; ':' first makes getopt tell a missing argument apart. */
static void make_letters(const struct cli_option *options, char *letters)
{
	*letters++ = ':';
	*letters++ = 'h';
	for (; options->name; options++) {
		if (!option_has_letter(options))
			continue;
		*letters++ = (char)options->id;
		for (int mode = argument_mode(options); mode > 0; mode--)
			*letters++ = ':';
	}
	*letters = '\0';
}

static void make_long_options(const struct cli_option *options, struct option *ret)
{
	*ret++ = (struct option){"help", no_argument, NULL, 'h'};
	for (; options->name; options++)
		*ret++ = (struct option){options->name, argument_mode(options), NULL, options->id};
	*ret = (struct option){0};
}

static int report_bad_option(int result, char **argv)
{
	const char *word = argv[optind > 0 ? optind - 1 : 0];

	if (result == ':')
		return cli_fail(CLI_USAGE, "option '%s' needs a value; see folioswap %s --help", word, current->name);
	if (isdigit(optopt))
		return cli_fail(
			CLI_USAGE, "'-%c...' is negative or an unknown option; sizes and numbers have no sign", optopt);
	if (optopt && strncmp(word, "--", 2) != 0)
		return cli_fail(CLI_USAGE, "unknown option '-%c'; see folioswap %s --help", optopt, current->name);
	return cli_fail(CLI_USAGE, "option '%s' is unknown, not unique or takes no value; see folioswap %s --help",
		word, current->name);
}

int cli_next_option(int argc, char **argv, const char **ret_value)
{
	char letters[3 * OPTIONS_MAX];
	struct option long_options[OPTIONS_MAX];
	int result;

	make_letters(current->options, letters);
	make_long_options(current->options, long_options);
	opterr = 0;
	result = getopt_long(argc, argv, letters, long_options, NULL);
	*ret_value = optarg;
	if (result == '?' || result == ':') {
		report_bad_option(result, argv);
		return CLI_OPTION_ERROR;
	}
	if (result == 'h') {
		cli_print_verb_help(current, stdout);
		return CLI_OPTION_HELP;
	}
	return result < 0 ? CLI_OPTION_END : result;
}

static void print_option(const struct cli_option *option, FILE *out)
{
	char text[64];
	int length;

	length = snprintf(text, sizeof(text), option_has_letter(option) ? "  -%c, " : "      ", option->id);
	length += snprintf(text + length, sizeof(text) - (size_t)length, "--%s%s%s", option->name,
		option->argument && !option_is_optional(option) ? " " : "", option->argument ? option->argument : "");
	fprintf(out, "%-*s%s%s\n", HELP_COLUMN, text, length < HELP_COLUMN ? "" : "  ", option->help);
}

void cli_print_verb_help(const struct cli_verb *verb, FILE *out)
{
	const struct cli_option help = {"help", NULL, 'h', "this text"};

	fprintf(out, "Usage: folioswap %s %s\n\n%s\n\nOptions:\n", verb->name, verb->arguments, verb->summary);
	for (const struct cli_option *option = verb->options; option->name; option++)
		print_option(option, out);
	print_option(&help, out);
	if (verb->more_help)
		verb->more_help(out);
}

/* A line feed in an argument must not make two lines of one error. */
static void report(const char *kind, const char *format, va_list arguments)
{
	char line[1024];

	vsnprintf(line, sizeof(line), format, arguments);
	for (char *at = line; *at; at++) {
		if (iscntrl((unsigned char)*at))
			*at = '?';
	}
	fflush(stdout);
	cli_progress_end();
	if (current)
		fprintf(stderr, "folioswap: %s: %s%s\n", current->name, kind, line);
	else
		fprintf(stderr, "folioswap: %s%s\n", kind, line);
}

int cli_fail(enum cli_exit code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report("", format, arguments);
	va_end(arguments);
	return (int)code;
}

void cli_warn(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report("warning: ", format, arguments);
	va_end(arguments);
}

void cli_progress(const char *format, ...)
{
	va_list arguments;

	if (!isatty(STDERR_FILENO))
		return;
	fputs("\r\033[K", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fflush(stderr);
	progress_is_shown = true;
}

void cli_progress_end(void)
{
	if (progress_is_shown)
		fputs("\r\033[K", stderr);
	progress_is_shown = false;
}
