/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starting folioswapd and hearing from it.
 *
 * The daemon writes one line to a pipe: "ready /dev/loop3" or "failed <why>".
 * While that is awaited, SIGINT, SIGTERM and SIGHUP end the daemon, too.
 */
#ifndef TOOLS_ADD_DAEMON_H
#define TOOLS_ADD_DAEMON_H

#include "add_config.h"

/*
 * Starts a daemon under the lowest free name. Returns 0 or an exit code
 * (reported); then nothing is left. Blocks the signals above for the rest of
 * the process; add_interrupted() asks for them.
 */
int add_daemon_start(const struct add_config *config, char ret_name[16], char ret_node[64]);

/* True once a signal is pending. */
bool add_interrupted(void);

#endif
