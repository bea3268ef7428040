/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Devices as users name them ("0" or "/dev/loop3"), and their orderly end,
 * with whatever is left of their daemon. Failures are reported here.
 */
#ifndef TOOLS_CLI_DEVICE_H
#define TOOLS_CLI_DEVICE_H

#include "control.h"

#define DEVICE_REPLY_TIMEOUT_MS 5000

/* The name of a running device from a name or a node. Returns 0 or CLI_NO_DEVICE. */
int device_resolve(const char *text, char ret_name[16]);

/* Names of all devices; returns how many. */
int device_names(char names[][16]);

/*
 * Connects, and waits a moment where a daemon is just starting or ending.
 * Returns a descriptor or -errno; not reported.
 */
int device_connect(const char *name, int timeout_ms);

/*
 * One request, one reply. ret_image_fd may be NULL. Returns 0 or -errno of the
 * exchange; ret->error is the daemon's; not reported.
 */
int device_ask(const char *name, const struct control_request *request, int timeout_ms, struct control_reply *ret,
	int *ret_image_fd);

/* CONTROL_INFO. *ret_image_fd (may be NULL): the image, the caller's. Returns 0, CLI_NO_DEVICE or CLI_FAILED. */
int device_info(const char *name, struct control_info *ret, int *ret_image_fd);

/* One request, one reply; a refusal of the daemon is reported. Returns an exit code. */
int device_request(const char *name, const struct control_request *request, int timeout_ms, struct control_reply *ret);

/* Says why the daemon of a device could not be asked: -errno of the exchange. Returns an exit code. */
int device_report_silence(const char *name, int error);

/* The exit code for a reply's error. */
int device_exit_code(int error);

/*
 * cli_stop.c: ends a device that is not swapped on and waits until nothing is
 * left of it. Goes on to the keeper when the server is dead, and takes mount,
 * loop device and directory down itself when the keeper is dead, too.
 * busy_timeout_ms: how long to try again while it is open. Returns an exit code.
 */
int device_stop(const char *name, int busy_timeout_ms);

/* Takes down what a dead keeper left; does nothing while the keeper lives. Returns an exit code (reported). */
int device_clean(const char *name);

/* True when no directory of that name is left. */
bool device_is_gone(const char *name);

#endif
