/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work in a child process with a deadline, so that the tool itself never
 * hangs in a system call that waits for a dead or slow device.
 */
#ifndef TOOLS_CLI_PROCESS_H
#define TOOLS_CLI_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Runs work(arg) in a forked child. Returns what work returned (0 or negative
 * errno), -ETIMEDOUT when it had to be killed at the deadline, -EINPROGRESS
 * when it could not even be killed (it waits inside the kernel), -EINTR when
 * a signal killed it.
 */
int process_bounded(int (*work)(void *arg), void *arg, int timeout_ms);

/*
 * Runs a program (argv[0] looked up in PATH) with stdin and stdout on
 * /dev/null; the first line of its stderr goes to message. Returns its exit
 * code, or -errno as process_bounded() does.
 */
int process_run(char *const argv[], int timeout_ms, char *message, size_t message_bytes);

/* The same, hearing its stdout: for programs that are asked what they are. */
int process_ask(char *const argv[], int timeout_ms, char *line, size_t line_bytes);

/* Waits until the child ended. Returns its wait status, -ETIMEDOUT, or -errno. */
int process_wait(pid_t pid, int timeout_ms);

/* Asks with SIGTERM, then kills; bounded. Returns 0, or -EINPROGRESS when it is still there. */
int process_end(pid_t pid, int term_timeout_ms);

void process_sleep_ms(unsigned milliseconds);

#endif
