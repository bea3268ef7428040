/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The keeper's state, shared by its files: keeper_start.c makes what it keeps, keeper_servers.c starts, replaces and
 * ends servers, keeper.c decides.
 */
#ifndef SWAPDEV_KEEPER_INTERNAL_H
#define SWAPDEV_KEEPER_INTERNAL_H

#include "daemon.h"
#include "resident.h"
#include "rundir.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct transport;

enum keeper_state { STARTING, ATTACHING, PAIRING, RUNNING, TAKING, STOPPING, KILLED, LEAVING, GONE };

/* A process that serves or stands by. */
struct child {
	pid_t pid;   /* 0: none */
	int link_fd; /* -1: closed */
	bool ready;  /* all is prepared */
};

/* Deaths that are remembered: so many in DEATHS_WINDOW_NS are too many. */
#define DEATHS_MAX 30
#define DEATHS_WINDOW_NS (10 * UINT64_C(1000000000))
/* Servers in a row that did not get as far as serving. */
#define FRUITLESS_MAX 5

/* What the helper that attaches tells. */
struct attach_result {
	int error;
	char node[64];
	char problem[184];
};

struct keeper {
	const struct daemon_options *options;
	struct resident_report report;
	struct rundir rundir;
	struct transport *transport;
	int state_fd; /* of transport, to be mapped by servers; -1: none */
	int image_fd;
	int binary_fd; /* what servers execute */
	int helper_fd; /* results of the helper that attaches; -1: none */
	int signal_fd;
	int ready_fd; /* -1: not wanted, or said already */
	struct child server;
	struct child standby;
	int upgrade_fd; /* the binary that the standby executes, if it is another one; -1 */
	pid_t helper;
	enum keeper_state state;
	uint64_t deadline_ns;
	uint64_t started_ns;
	int64_t started_s; /* CLOCK_REALTIME */
	uint64_t standby_ns;  /* when to start a standby; NO_DEADLINE: not */
	uint64_t standby_until_ns; /* when the one that prepares must be ready; NO_DEADLINE: it is, or there is none */
	uint64_t alive_ns;    /* the server was heard */
	uint64_t reaped_ns;   /* its predecessor was */
	uint64_t death_ns[DEATHS_MAX]; /* a ring */
	unsigned deaths;      /* in all */
	unsigned fruitless;
	bool can_take_over;
	bool crashed;	      /* the predecessor of the one that takes over */
	bool blame;	      /* the server that dies now was killed because it hung */
	bool relieved;	      /* the server ends for an upgrade */
	bool ended;	      /* its transport did, or nothing more can be done: no successor */
	bool stop_wanted;     /* while there was no server to tell */
	bool told_busy;
	bool told_stuck;
	char node[64];
	int exit_code;
};

#define SECOND_NS UINT64_C(1000000000)
#define START_WAIT_NS (40 * SECOND_NS)
#define ATTACH_WAIT_NS (15 * SECOND_NS)
#define STOP_WAIT_NS (10 * SECOND_NS)
#define KILL_WAIT_NS (5 * SECOND_NS)
#define RETRY_NS SECOND_NS
#define NO_DEADLINE UINT64_MAX

/* Tells the ready descriptor why it failed, if that is the first reason, and keeps the exit code. */
void keeper_fail(struct keeper *keeper, int exit_code, const char *why);

/* The same, and logs it. */
void keeper_log_and_fail(struct keeper *keeper, int exit_code, const char *why);

/* One line to the ready descriptor, which is closed; nothing when there is none. */
void keeper_tell_ready(struct keeper *keeper, const char *line);

/* All that leaves no trace: residency, image, signals. Returns false when failed (told). */
bool keeper_prepare(struct keeper *keeper);

/* Directory, then transport. False: failed (told); with keeper->transport set there is something to detach. */
bool keeper_make_directory(struct keeper *keeper);
bool keeper_prepare_transport(struct keeper *keeper);

/* Forks a server that executes binary_fd. Returns 0 or -errno. */
int keeper_start_child(struct keeper *keeper, struct child *child, int binary_fd);

/* Forks the helper that attaches; it answers through helper_fd. Returns false when failed (told). */
bool keeper_start_helper(struct keeper *keeper);

/* ---- keeper_servers.c ---- */

void child_close(struct child *child);
/* Ends a server whose end changes nothing. */
void child_retire(struct child *child);

/* It is the server's turn. */
void keeper_go(struct keeper *keeper, bool crashed);

/* Asked now and then: starts a standby when it is time, gives up one that does not get ready. */
void keeper_tend_standby(struct keeper *keeper);
void keeper_standby_ready(struct keeper *keeper);
/* why: what it said, or how it ended. */
void keeper_standby_failed(struct keeper *keeper, const char *why);
/* What it has prepared for has changed. */
void keeper_renew_standby(struct keeper *keeper);
void keeper_upgrade(struct keeper *keeper, const char *path);

/* The server has died: is there to be another one? Tells why not. */
bool keeper_may_replace(struct keeper *keeper);
/* The standby, or else a new process, becomes the server. Returns false when there is none (told). */
bool keeper_replace(struct keeper *keeper, bool crashed);

/* Enters a state, for so long at most. */
void keeper_enter(struct keeper *keeper, enum keeper_state state, uint64_t wait_ns);

#endif
