// SPDX-License-Identifier: GPL-2.0-or-later
/* folioswap list: one line per device. */
#include "cli.h"
#include "cli_device.h"
#include "fields.h"

#include <getopt.h>
#include <string.h>

static const struct cli_option options[] = {
	{"output", "COLUMN,...", 'o', "columns to show; +COLUMN,... adds to the default ones"},
	{"output-all", NULL, 'O', "all columns"},
	{"json", NULL, 'J', "JSON; exact numbers"},
	{"raw", NULL, 'r', "columns separated by one blank, not aligned"},
	{"noheadings", NULL, 'n', "no line of column names"},
	{"bytes", NULL, 'b', "exact numbers: bytes, nanoseconds, fractions"},
	{NULL, NULL, 0, NULL},
};

struct list {
	struct table_format format;
	unsigned columns[FIELDS_MAX];
	unsigned columns_count;
};

static int set_option(struct list *list, int id, const char *value)
{
	int count;

	switch (id) {
	case 'o':
		count = fields_select(value, list->columns);
		list->columns_count = count > 0 ? (unsigned)count : 0;
		return count > 0 ? CLI_DONE : CLI_USAGE;
	case 'O':
		list->columns_count = fields_all(list->columns);
		break;
	case 'J':
		list->format.json = true;
		break;
	case 'r':
		list->format.raw = true;
		break;
	case 'n':
		list->format.noheadings = true;
		break;
	case 'b':
		list->format.exact = true;
		break;
	}
	return CLI_DONE;
}

/* Returns 0, CLI_OPTION_HELP, or CLI_USAGE. */
static int parse(int argc, char **argv, struct list *list)
{
	const char *value;
	int id;

	list->columns_count = fields_default(list->columns);
	while ((id = cli_next_option(argc, argv, &value)) != CLI_OPTION_END) {
		if (id == CLI_OPTION_HELP)
			return CLI_OPTION_HELP;
		if (id == CLI_OPTION_ERROR || set_option(list, id, value))
			return CLI_USAGE;
	}
	if (list->format.json && list->format.raw)
		return cli_fail(CLI_USAGE, "--json and --raw are two formats; choose one");
	return CLI_DONE;
}

static int add_row(const struct list *list, struct table *table, const char *name, struct view *view)
{
	int result;

	memset(view, 0, sizeof(*view));
	result = view_load(name, view);
	if (result == CLI_NO_DEVICE)
		return CLI_DONE; /* it went away since its name was read */
	table_row(table);
	for (unsigned i = 0; i < list->columns_count; i++)
		fields_cell(table, i, &fields[list->columns[i]], view);
	return result;
}

/* operands: names or nodes; none: all devices. */
static int add_rows(const struct list *list, struct table *table, struct view *view, int operands, char **operand)
{
	char names[CONTROL_DEVICES_MAX][16];
	int count = operands ? operands : device_names(names), result = CLI_DONE;

	for (int i = 0; i < count; i++) {
		char name[16];
		int error = operands ? device_resolve(operand[i], name) : CLI_DONE;

		if (!error)
			error = add_row(list, table, operands ? name : names[i], view);
		result = cli_first_failure(result, error);
	}
	return result;
}

static int run(int argc, char **argv)
{
	struct list list = {0};
	struct table *table = NULL;
	struct view *view;
	int result = parse(argc, argv, &list);

	if (result)
		return result == CLI_OPTION_HELP ? CLI_DONE : result;
	view = view_create();
	if (!view || table_create(&table, "devices", &list.format)) {
		view_destroy(view);
		return cli_fail(CLI_FAILED, "out of memory");
	}
	for (unsigned i = 0; i < list.columns_count; i++)
		table_column(table, fields[list.columns[i]].column, fields[list.columns[i]].kind);
	result = add_rows(&list, table, view, argc - optind, argv + optind);
	if (table_print(table, stdout))
		result = cli_fail(CLI_FAILED, "out of memory");
	table_destroy(table);
	view_destroy(view);
	return result;
}

const struct cli_verb cmd_list = {
	.name = "list",
	.arguments = "[OPTION...] [NAME...]",
	.summary = "List devices, one line each",
	.options = options,
	.run = run,
	.more_help = fields_help,
};
