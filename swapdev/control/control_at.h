/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The client calls of control.h with the directory as an argument: what they are made of, and what unit tests call. */
#ifndef CONTROL_CONTROL_AT_H
#define CONTROL_CONTROL_AT_H

#include <stddef.h>
#include <sys/types.h>

int control_connect_at(const char *directory, const char *name, int timeout_ms);
int control_list_at(const char *directory, char names[][16], int names_max);
pid_t control_keeper_pid_at(const char *directory, const char *name);
int control_clean_at(const char *directory, const char *name, char *problem, size_t problem_bytes);

#endif
