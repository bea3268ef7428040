// SPDX-License-Identifier: GPL-2.0-or-later
/* Fault rules: parsing, counting, acting. */
#include "fault.h"

#include "cleanup.h"
#include "clock.h"
#include "device.h"
#include "parse.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FAULTS_MAX 8
#define DELAY_MAX_NS (60 * UINT64_C(1000000000))
#define ANY_OP (-1)

enum fault_action {
	FAULT_DELAY,
	FAULT_ERROR,
	FAULT_KILL,
	FAULT_EXIT,
};

/* One fault of a rule. Only `seen` changes after parsing, and the fault's random number; any thread. */
struct fault_item {
	enum fault_action action;
	int error; /* negative errno */
	uint64_t delay_ns;
	uint64_t at;    /* 0: not given */
	uint64_t every; /* 0: not given */
	uint64_t chance; /* one in so many; 0: not given */
	int op;         /* enum request_op or ANY_OP */
	char step[24];  /* "": it looks at requests */
	_Atomic uint64_t seen;
};

struct fault {
	_Atomic uint64_t random;
	unsigned count;
	struct fault_item items[FAULTS_MAX];
};

struct named_value {
	const char *name;
	int value;
};

static const struct named_value errors[] = {
	{"EIO", -EIO},
	{"ENOSPC", -ENOSPC},
	{"ENOMEM", -ENOMEM},
	{"EINVAL", -EINVAL},
	{"EAGAIN", -EAGAIN},
	{"ENODEV", -ENODEV},
	{"EOPNOTSUPP", -EOPNOTSUPP},
	{"ETIMEDOUT", -ETIMEDOUT},
	{NULL, 0},
};

static const struct named_value ops[] = {
	{"read", REQUEST_READ},
	{"write", REQUEST_WRITE},
	{"discard", REQUEST_DISCARD},
	{"zeroes", REQUEST_WRITE_ZEROES},
	{"flush", REQUEST_FLUSH},
	{NULL, 0},
};

static int find_named(const struct named_value *names, const char *name, int *ret)
{
	for (; names->name; names++) {
		if (strcmp(names->name, name) == 0) {
			*ret = names->value;
			return 0;
		}
	}
	return -EINVAL;
}

/* text is ours to write in: the unit is cut off before the number is read. */
static int parse_time(char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *suffix;
		uint64_t ns;
	} time_units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	size_t digits = strspn(text, "0123456789");
	long number;

	for (unsigned i = 0; i < sizeof(time_units) / sizeof(time_units[0]); i++) {
		if (strcmp(text + digits, time_units[i].suffix) != 0)
			continue;
		text[digits] = '\0';
		if (parse_int(text, 1, (long)(DELAY_MAX_NS / time_units[i].ns), &number) < 0)
			return -EINVAL;
		*ret_ns = (uint64_t)number * time_units[i].ns;
		return 0;
	}
	return -EINVAL;
}

/* One of at=N, every=N and chance=N; a second one is refused. */
static int parse_turn(struct fault_item *item, const char *text, uint64_t *ret_turn)
{
	long number;

	if (item->at || item->every || item->chance || parse_int(text, 1, LONG_MAX, &number) < 0)
		return -EINVAL;
	*ret_turn = (uint64_t)number;
	return 0;
}

static int parse_condition(struct fault_item *item, const char *name, const char *value)
{
	if (!value)
		return -EINVAL;
	if (strcmp(name, "at") == 0)
		return parse_turn(item, value, &item->at);
	if (strcmp(name, "every") == 0)
		return parse_turn(item, value, &item->every);
	if (strcmp(name, "chance") == 0)
		return parse_turn(item, value, &item->chance);
	if (strcmp(name, "op") == 0 && item->op == ANY_OP && !item->step[0])
		return find_named(ops, value, &item->op);
	if (strcmp(name, "step") == 0 && item->op == ANY_OP && !item->step[0] && value[0] &&
		strlen(value) < sizeof(item->step)) {
		memcpy(item->step, value, strlen(value) + 1);
		return 0;
	}
	return -EINVAL;
}

static int parse_action(struct fault_item *item, const char *name, char *value)
{
	if (strcmp(name, "delay") == 0 && value) {
		item->action = FAULT_DELAY;
		return parse_time(value, &item->delay_ns);
	}
	if (strcmp(name, "error") == 0 && value) {
		item->action = FAULT_ERROR;
		return find_named(errors, value, &item->error);
	}
	if (value)
		return -EINVAL;
	item->action = FAULT_EXIT;
	if (strcmp(name, "kill") == 0)
		item->action = FAULT_KILL;
	else if (strcmp(name, "exit") != 0)
		return -EINVAL;
	return 0;
}

/* "name=value" becomes name and value; "name" alone has the value NULL. */
static char *cut_value(char *word)
{
	char *equals = strchr(word, '=');

	if (!equals)
		return NULL;
	*equals = '\0';
	return equals + 1;
}

static int parse_item(struct fault_item *item, char *text)
{
	char *word = strsep(&text, ":");
	char *value = cut_value(word);
	int error;

	item->op = ANY_OP;
	error = parse_action(item, word, value);
	while (!error && (word = strsep(&text, ":"))) {
		value = cut_value(word);
		error = parse_condition(item, word, value);
	}
	return error;
}

static int parse_rule(struct fault *fault, char *rule)
{
	char *item;
	int error = 0;

	while (!error && (item = strsep(&rule, ","))) {
		if (fault->count == FAULTS_MAX)
			return -EINVAL;
		error = parse_item(&fault->items[fault->count++], item);
	}
	return error;
}

int fault_create(struct fault **ret, const char *rule)
{
	CLEANUP(free) char *text = strdup(rule);
	struct fault *fault;
	int error;

	if (!*rule) {
		*ret = NULL;
		return 0;
	}
	fault = calloc(1, sizeof(*fault));
	if (fault)
		fault->random = clock_ns() ^ (uint64_t)getpid() << 40;
	if (!fault || !text) {
		fault_destroy(fault);
		return -ENOMEM;
	}
	error = parse_rule(fault, text);
	if (error) {
		fault_destroy(fault);
		return error;
	}
	*ret = fault;
	return 0;
}

void fault_destroy(struct fault *fault)
{
	free(fault);
}

/* splitmix64 over a counter: threads may draw at the same time. */
static uint64_t draw(struct fault *fault)
{
	uint64_t x = atomic_fetch_add_explicit(&fault->random, UINT64_C(0x9e3779b97f4a7c15), memory_order_relaxed);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Counts what the fault looks at; true when it is this one's turn. */
static bool is_turn(struct fault *fault, struct fault_item *item)
{
	uint64_t turn = atomic_fetch_add_explicit(&item->seen, 1, memory_order_relaxed) + 1;

	if (item->at)
		return turn == item->at;
	if (item->chance)
		return draw(fault) % item->chance == 0;
	return !item->every || turn % item->every == 0;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec left = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

static int act(const struct fault_item *item)
{
	switch (item->action) {
	case FAULT_DELAY:
		sleep_ns(item->delay_ns);
		return 0;
	case FAULT_ERROR:
		return item->error;
	case FAULT_KILL:
		kill(getpid(), SIGKILL);
		break;
	case FAULT_EXIT:
		break;
	}
	_exit(1);
}

int fault_apply(struct fault *fault, const struct request *request)
{
	int answer = 0;

	if (!fault)
		return 0;
	for (unsigned i = 0; i < fault->count; i++) {
		struct fault_item *item = &fault->items[i];
		int error;

		if (item->step[0] || (item->op != ANY_OP && item->op != (int)request->op) || !is_turn(fault, item))
			continue;
		error = act(item);
		if (!answer)
			answer = error;
	}
	return answer;
}

bool fault_has_steps(const struct fault *fault)
{
	for (unsigned i = 0; fault && i < fault->count; i++)
		if (fault->items[i].step[0])
			return true;
	return false;
}

void fault_step(struct fault *fault, const char *name)
{
	for (unsigned i = 0; i < fault->count; i++) {
		struct fault_item *item = &fault->items[i];

		if ((strcmp(item->step, "any") == 0 || strcmp(item->step, name) == 0) && is_turn(fault, item))
			act(item);
	}
}
