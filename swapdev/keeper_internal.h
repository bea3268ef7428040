/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The keeper's state, shared by its two files: keeper_start.c makes what it keeps, keeper.c runs it. */
#ifndef SWAPDEV_KEEPER_INTERNAL_H
#define SWAPDEV_KEEPER_INTERNAL_H

#include "daemon.h"
#include "resident.h"
#include "rundir.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct transport;

enum keeper_state { STARTING, ATTACHING, RUNNING, STOPPING, KILLED, LEAVING, GONE };

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
	int image_fd;
	int link_fd;   /* to the server; -1: closed */
	int helper_fd; /* results of the helper that attaches; -1: none */
	int signal_fd;
	int ready_fd; /* -1: not wanted, or said already */
	pid_t server; /* 0: none */
	pid_t helper;
	enum keeper_state state;
	uint64_t deadline_ns;
	uint64_t started_ns;
	bool told_busy;
	bool told_stuck;
	char node[64];
	int exit_code;
};

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

/* Forks the server. Returns false when failed (told). */
bool keeper_start_server(struct keeper *keeper);

/* Forks the helper that attaches; it answers through helper_fd. Returns false when failed (told). */
bool keeper_start_helper(struct keeper *keeper);

#endif
