/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control socket: how the CLI speaks with a running daemon.
 *
 * Each device has a directory CONTROL_DIR/<name> (root, 0700; <name> is the
 * device's number as text) with
 *   control     SOCK_SEQPACKET socket, one struct control_request in, struct
 *               control_reply out (several for compact: progress, then done)
 *   pid         the keeper's process id, one line
 *   mnt/        the FUSE transport's mount point
 * The directory is made by the keeper before anything else and removed last;
 * what a killed keeper leaves of it: remains.h.
 *
 * Fixed-size binary messages of the same machine; version first, so that an
 * old CLI and a new daemon refuse each other with a clear line.
 */
#ifndef CONTROL_CONTROL_H
#define CONTROL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CONTROL_DIR "/run/folioswap"
#define CONTROL_VERSION 3
#define CONTROL_DEVICES_MAX 256

enum control_op {
	CONTROL_INFO = 1,    /* reply carries info, and a read-only descriptor of the image by SCM_RIGHTS */
	CONTROL_SET = 2,     /* set_mask says which */
	CONTROL_COMPACT = 3, /* replies with progress until done */
	/*
	 * Ordered stop; refused with -EBUSY, and who it is in the message, while the device is swapped on, mounted,
	 * held by another driver, or open by a process that the server sees in /proc. One that opens it afterwards
	 * gets I/O errors.
	 */
	CONTROL_STOP = 4,
	/*
	 * path: a folioswapd whose server is to replace this one. Answered only when that fails; else the connection
	 * ends with this server, and CONTROL_INFO of the next one has another server_pid.
	 */
	CONTROL_UPGRADE = 5,
};

enum control_set {
	CONTROL_SET_CODEC = 1 << 0,
	CONTROL_SET_FRAME = 1 << 1,
	CONTROL_SET_LIMIT = 1 << 2,
	CONTROL_SET_SIZE = 1 << 3, /* only grows, up to max_size_bytes; answered when the block device is as large */
	CONTROL_SET_ALL = CONTROL_SET_CODEC | CONTROL_SET_FRAME | CONTROL_SET_LIMIT | CONTROL_SET_SIZE,
};

/* What residency could not get (bits of info.unsafe); names and risks: resident.h of the daemon, control_unsafe_name(). */
enum control_unsafe {
	CONTROL_UNSAFE_IO_FLUSHER = 1 << 0,
	CONTROL_UNSAFE_OOM_SCORE = 1 << 1,
	CONTROL_UNSAFE_MLOCK = 1 << 2,
	CONTROL_UNSAFE_NICE = 1 << 3,
	CONTROL_UNSAFE_IMAGE_SWAPPABLE = 1 << 4, /* no noswap tmpfs: the image is a locked memfd */
	CONTROL_UNSAFE_CGROUP = 1 << 5,		 /* a limit on the daemon's cgroup or an ancestor */
	CONTROL_UNSAFE_MIN_FREE = 1 << 6,	 /* vm.min_free_kbytes too small for FUSE + loop */
};

#define CONTROL_MIN_FREE_KIB 16384 /* what vm.min_free_kbytes should at least be there */

struct control_request {
	uint32_t version;
	uint32_t op;
	uint32_t set_mask;
	uint32_t codec;
	int32_t level;
	uint32_t frame_bytes;
	uint64_t limit_bytes;
	uint64_t size_bytes;
	uint64_t timeout_ns;
	char path[200]; /* of CONTROL_UPGRADE: absolute, ended by a zero */
};

struct control_info {
	char name[16];
	char node[64]; /* "/dev/loop3" */
	char transport[16];
	int32_t keeper_pid;
	int32_t server_pid;
	uint64_t size_bytes;
	uint64_t max_size_bytes;
	uint64_t limit_bytes;
	uint64_t reserve_bytes;
	uint32_t unit_bytes;
	uint32_t frame_bytes;
	uint32_t codec;
	int32_t level;
	uint32_t slots;
	uint32_t io_threads;
	uint32_t compress_threads;
	uint32_t discard;
	uint32_t unsafe; /* enum control_unsafe */
	int32_t standby_pid; /* the server that would take over; 0: none */
	uint64_t standby_bytes; /* its own memory, beside the image */
	uint64_t stats_offset; /* of the statistics page in the image */
	uint64_t stats_bytes;
	uint64_t started_ns; /* CLOCK_REALTIME */
	uint64_t daemon_cpu_ns; /* keeper and server, user + system */
	uint64_t resident_bytes; /* RSS of keeper and server without the image's mappings counted twice */
};

struct control_reply {
	uint32_t version;
	int32_t error;		/* 0 or negative errno; message says more */
	uint32_t more;		/* 1: progress, another reply follows */
	uint32_t reserved;
	uint64_t done_bytes;
	uint64_t total_bytes;
	char message[240];
	struct control_info info;
};

/* ---- client side, used by the CLI; blocking, each call bounded by timeout_ms ---- */

/* Connects to device `name`. Returns a descriptor or -errno (-ENOENT: no such device; -ECONNREFUSED: its server is dead). */
int control_connect(const char *name, int timeout_ms);

/* Sends one request. Returns 0 or -errno. */
int control_send(int fd, const struct control_request *request);

/*
 * Receives one reply; *ret_image_fd gets the descriptor that came with it, or
 * -1 (may be NULL: then it is closed). Returns 0, -EPROTO (size or version),
 * -ETIMEDOUT, -ECONNRESET (the server went away).
 */
int control_receive(int fd, struct control_reply *ret, int *ret_image_fd);

/* Names of existing device directories, sorted by number; returns how many were put into names. */
int control_list(char names[][16], int names_max);

/* The keeper's pid of a device directory, or -errno; -ESRCH when that process is gone. */
pid_t control_keeper_pid(const char *name);

/* One phrase for one bit of enum control_unsafe: what is missing; risk: what may happen. */
const char *control_unsafe_name(unsigned bit);
const char *control_unsafe_risk(unsigned bit);

#endif
