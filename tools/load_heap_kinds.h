/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The programs whose heaps are taken, and what makes each of them grow. */
#ifndef LOAD_HEAP_KINDS_H
#define LOAD_HEAP_KINDS_H

#include <stdint.h>

struct load_heap_kind {
	const char *name;
	const char *program; /* looked for in PATH */
	/* The program that does it where it is another one, which the first knows of ("gcc" knows cc1); NULL. */
	const char *helper;
	const char *options[5]; /* before the script, ended by NULL */
	const char *script;     /* gets one argument: how many bytes of text to turn into objects; NULL: none */
	/* Makes standard input: a descriptor or a negative errno. NULL: /dev/null. */
	int (*open_input)(uint64_t heap_bytes);
};

/* Ends with a kind whose name is NULL. */
extern const struct load_heap_kind load_heap_kinds[];

#endif
