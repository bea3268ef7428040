// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads the text of a trace. */
#include "trace.h"

#include "cleanup.h"
#include "parse.h"
#include "units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS " \t\r\n"

static int op_of_letter(const char *word, enum request_op *ret)
{
	static const struct {
		const char *letter;
		enum request_op op;
	} letters[] = {
		{"R", REQUEST_READ},
		{"W", REQUEST_WRITE},
		{"D", REQUEST_DISCARD},
		{"Z", REQUEST_WRITE_ZEROES},
		{"F", REQUEST_FLUSH},
	};

	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
		if (strcmp(word, letters[i].letter) == 0) {
			*ret = letters[i].op;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_granules(const char *word, uint64_t *ret_bytes)
{
	uint64_t bytes;

	if (!word || parse_size(word, &bytes) < 0 || bytes % GRANULE_BYTES != 0)
		return -EINVAL;
	*ret_bytes = bytes;
	return 0;
}

/* Returns 1 when the line is a step, 0 when it has nothing to say, or -EINVAL. Writes into line. */
static int parse_line(char *line, struct trace_step *ret)
{
	struct trace_step step = {0};
	char *rest = NULL;
	const char *word = strtok_r(line, SEPARATORS, &rest);

	if (!word || *word == '#')
		return 0;
	if (op_of_letter(word, &step.op) < 0)
		return -EINVAL;
	if (step.op != REQUEST_FLUSH) {
		if (parse_granules(strtok_r(NULL, SEPARATORS, &rest), &step.offset_bytes) < 0 ||
			parse_granules(strtok_r(NULL, SEPARATORS, &rest), &step.length_bytes) < 0 || !step.length_bytes)
			return -EINVAL;
	}
	if (strtok_r(NULL, SEPARATORS, &rest))
		return -EINVAL;
	*ret = step;
	return 1;
}

static int append(struct trace *trace, const struct trace_step *step)
{
	/* Room doubles whenever the count reaches a power of two. */
	if ((trace->count & (trace->count - 1)) == 0) {
		size_t room = trace->count ? trace->count * 2 : 1;
		struct trace_step *steps = reallocarray(trace->steps, room, sizeof(*steps));

		if (!steps)
			return -ENOMEM;
		trace->steps = steps;
	}
	trace->steps[trace->count++] = *step;
	return 0;
}

static int read_lines(struct trace *trace, FILE *file, char *problem, size_t problem_bytes)
{
	CLEANUP(free) char *line = NULL;
	struct trace_step step;
	size_t line_bytes = 0;
	unsigned long number = 0;
	int result = 0;

	while (result >= 0 && getline(&line, &line_bytes, file) >= 0) {
		number++;
		result = parse_line(line, &step);
		if (result > 0)
			result = append(trace, &step);
		else if (result < 0)
			snprintf(problem, problem_bytes,
				"trace line %lu is none of \"R|W|D|Z offset length\" in multiples of 4096, or \"F\"",
				number);
	}
	if (result < 0)
		return result;
	return ferror(file) ? -EIO : 0;
}

int trace_create(struct trace **ret, FILE *file, char *problem, size_t problem_bytes)
{
	struct trace *trace = calloc(1, sizeof(*trace));
	int error;

	if (!trace)
		return -ENOMEM;
	error = read_lines(trace, file, problem, problem_bytes);
	if (error) {
		trace_destroy(trace);
		return error;
	}
	*ret = trace;
	return 0;
}

void trace_destroy(struct trace *trace)
{
	if (!trace)
		return;
	free(trace->steps);
	free(trace);
}
