// SPDX-License-Identifier: GPL-2.0-or-later
/* folioswap doctor: is this machine fit for swapping to folioswap? One line per check. */
#include "cli.h"
#include "cli_table.h"
#include "doctor.h"

#include <getopt.h>
#include <string.h>

static const struct cli_option options[] = {
	{"json", NULL, 'J', "JSON"},
	{NULL, NULL, 0, NULL},
};

static const struct doctor_check *const lists[] = {doctor_kernel_checks, doctor_memory_checks, doctor_device_checks};
static const char *const status_names[] = {[DOCTOR_OK] = "OK", [DOCTOR_WARN] = "WARN", [DOCTOR_FAIL] = "FAIL"};

static void add_row(struct table *table, const char *name, const struct doctor_result *result)
{
	const char *const cells[] = {status_names[result->status], name, result->found, result->advice};

	table_row(table);
	for (unsigned i = 0; i < 4; i++)
		table_cell(table, i, cells[i], strlen(cells[i]));
}

static void print_line(const char *name, const struct doctor_result *result)
{
	printf("%-4s %s: %s%s%s\n", status_names[result->status], name, result->found, result->advice[0] ? " -> " : "",
		result->advice);
}

/* table: NULL prints lines. Returns how many checks failed. */
static unsigned run_checks(struct table *table)
{
	unsigned failed = 0;

	for (unsigned list = 0; list < sizeof(lists) / sizeof(lists[0]); list++)
		for (const struct doctor_check *check = lists[list]; check->name; check++) {
			struct doctor_result result = {0};

			check->run("", &result);
			failed += result.status == DOCTOR_FAIL;
			if (table)
				add_row(table, check->name, &result);
			else
				print_line(check->name, &result);
		}
	return failed;
}

static int run_json(unsigned *failed)
{
	static const char *const columns[] = {"STATUS", "CHECK", "FOUND", "ADVICE"};
	const struct table_format format = {.json = true};
	struct table *table;
	int error;

	if (table_create(&table, "checks", &format))
		return cli_fail(CLI_FAILED, "out of memory");
	for (unsigned i = 0; i < 4; i++)
		table_column(table, columns[i], VALUE_TEXT);
	*failed = run_checks(table);
	error = table_print(table, stdout);
	table_destroy(table);
	return error ? cli_fail(CLI_FAILED, "out of memory") : CLI_DONE;
}

static int run(int argc, char **argv)
{
	bool json = false;
	unsigned failed = 0;
	const char *value;
	int id;

	while ((id = cli_next_option(argc, argv, &value)) != CLI_OPTION_END) {
		if (id == CLI_OPTION_HELP)
			return CLI_DONE;
		if (id == CLI_OPTION_ERROR)
			return CLI_USAGE;
		json = true;
	}
	if (optind < argc)
		return cli_fail(CLI_USAGE, "'%s': doctor takes no operands", argv[optind]);
	if (!json)
		failed = run_checks(NULL);
	else if (run_json(&failed))
		return CLI_FAILED;
	return failed ? CLI_FAILED : CLI_DONE;
}

const struct cli_verb cmd_doctor = {
	.name = "doctor",
	.arguments = "[OPTION...]",
	.summary = "Check whether this machine is fit for it",
	.options = options,
	.run = run,
};
