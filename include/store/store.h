/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The store: granules in, compressed objects kept, granules out.
 *
 * Everything that a request depends on lives in the image (a file of a noswap
 * tmpfs, see image.h in the store's folder); a store is opened on it by
 * recovery, every time. Opening, starting and stopping are for one thread. A
 * struct store_io belongs to one I/O thread; its calls neither allocate nor
 * log, and wait only where said.
 *
 * Errors of the I/O calls:
 *   -EINVAL  the range is empty, leaves the device or crosses a unit
 *   -ENOSPC  the write would exceed the memory limit; nothing of it was stored
 *   -EIO     a frame or record of the range is damaged; other ranges stay readable. Or a write's bytes did not come
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stats_page;
struct stats_io;

#define STORE_SLOTS_MAX 64
#define STORE_THREADS_MAX 32

/* What an image is made for. Fixed for its life, except where `set` is named. */
struct store_config {
	uint64_t size_bytes;	 /* of the device: a multiple of 4 KiB, at least one unit; set: only grows */
	uint64_t max_size_bytes; /* address space kept for growing; at least size_bytes */
	uint64_t limit_bytes;	 /* memory for arena and records; UINT64_MAX: none; set */
	uint64_t reserve_bytes;	 /* ready room kept ahead, 0: none (tests) */
	uint32_t unit_bytes;	 /* 64 KiB, 2 MiB or 16 MiB */
	uint32_t frame_bytes;	 /* 4 KiB .. unit_bytes, a power of two; unit_bytes = whole; set */
	unsigned codec;		 /* enum codec_id; set */
	int level;		 /* set */
	unsigned slots;		 /* staging slots, 1 .. STORE_SLOTS_MAX */
	unsigned io_threads;	 /* 1 .. STORE_THREADS_MAX */
	unsigned compress_threads;
};

/*
 * Why a configuration is not possible, as one phrase for the user ("unit must
 * be 64K, 2M or 16M"), or NULL when it is. Any thread.
 */
const char *store_config_problem(const struct store_config *config);

struct store;
struct store_io;

/* Lays an empty image out on an empty file (ftruncate and the superblock). Returns 0 or -errno. */
int store_format(int image_fd, const struct store_config *config);

/*
 * Maps the image, checks it and recovers: private tables are rebuilt from map
 * and records, unreferenced slots and records swept, damaged granules marked.
 * No thread is started. image_fd stays the caller's.
 * Returns 0; -EPROTO (not an image, or a layout version or feature this
 * program does not know: nothing was touched); -EINVAL; -ENOMEM; -errno.
 */
int store_open(struct store **ret, int image_fd);

/*
 * The same in two steps, for a process that stands by while another one serves
 * the image: prepare maps it, checks its header and makes tables and contexts;
 * of the image only a mark of its own is written, and only store_get_config(),
 * store_io() and store_start() are allowed: from then on a thread maps what the
 * other process has ready. recover, when nobody else uses the image any more,
 * does the rest; on failure only store_close() is left.
 */
int store_prepare(struct store **ret, int image_fd);
int store_recover(struct store *store);

/*
 * Starts growth and compression threads. Without it the store works by
 * store_step() alone. Before store_recover() they wait for it. Returns 0 or -errno.
 */
int store_start(struct store *store);

/* Stops the threads (slots stay as they are: they are in the image) and unmaps. NULL is fine. */
void store_close(struct store *store);

/* The configuration as it is now. Any thread. */
void store_get_config(struct store *store, struct store_config *ret);
struct stats_page *store_stats(struct store *store);
/* Where the statistics region lies in the image file: for a reader that maps it. */
uint64_t store_stats_offset(const struct store *store);
size_t store_stats_bytes(const struct store *store);

/* The handle of I/O thread `index` (0 .. io_threads - 1). Lives as long as the store. */
struct store_io *store_io(struct store *store, unsigned index);
struct stats_io *store_io_stats(struct store_io *io);
/* clock_ns() when this thread's last write, read or discard was done: the clock may be a system call, and is read less. */
uint64_t store_io_done_ns(const struct store_io *io);

/* 4 KiB of the image for what I/O thread `index` notes of its request in execution: they outlive the process. */
#define STORE_REQUEST_BYTES 4096
void *store_request(struct store *store, unsigned index);
/* Grows whenever background work has made room for a write: whether anything moves. Any thread. */
uint64_t store_progress(struct store *store);

/*
 * data: count * 4 KiB, page aligned is best, must not change during the call.
 * The bytes are in the image when it returns 0. May wait (bounded, counted)
 * for a free slot, or for ready room.
 */
int store_write(struct store_io *io, uint64_t granule, uint32_t count, const void *data);

/*
 * The same for a whole unit whose bytes are not here yet: fetch brings them to `to`, a slot that nobody else sees until
 * they are complete, so that they are copied once. It is called with no lock held, again if the write had to wait for
 * room; a negative answer makes the write's -EIO.
 */
typedef int store_fetch(void *arg, void *to);
int store_write_unit(struct store_io *io, uint64_t granule, store_fetch *fetch, void *fetch_arg);

/* Holes read as zeros. On -EIO the good granules are in data, damaged ones are zero. */
int store_read(struct store_io *io, uint64_t granule, uint32_t count, void *data);

/* Discard and write-zeroes: the range reads as zeros afterwards. Always possible. */
int store_discard(struct store_io *io, uint64_t granule, uint32_t count);

/* Stored bytes whose granules no word names any more. Any thread. */
uint64_t store_dead_bytes(struct store *store);
/* Everything kept beside payload: map, records and frame tables in use, the tables of ids and arena. Any thread. */
uint64_t store_metadata_bytes(struct store *store);

/* ---- control thread ---- */

/* New objects use this codec and level. Allocates the new contexts, waits until no thread uses the old. Returns 0, -EINVAL, -ENOMEM. */
int store_set_codec(struct store *store, unsigned codec, int level);
int store_set_frame(struct store *store, uint32_t frame_bytes);
/* A limit below what is stored: new writes are refused until enough is freed. -EINVAL: below one headroom. */
int store_set_limit(struct store *store, uint64_t limit_bytes);

/*
 * The device grows; the new part reads as zeros. Beside I/O, which is taken up to the new end from its return on. Waits
 * for the memory of the new part's map words, some seconds at most. Returns 0, also where it has that size already;
 * -EINVAL: it would shrink, be larger than max_size_bytes or not a multiple of 4 KiB; -ENOMEM, -ETIMEDOUT, -errno: it
 * is as large as before.
 */
int store_set_size(struct store *store, uint64_t size_bytes);

/* Closes every open slot and waits until all are free (bounded by timeout_ns). Returns 0 or -ETIMEDOUT. */
int store_flush(struct store *store, uint64_t timeout_ns);

/* Flush, then rewrite objects with dead granules and move objects together until nothing is won. progress may be NULL; done and total are bytes. */
int store_compact(struct store *store, uint64_t timeout_ns, void (*progress)(void *arg, uint64_t done_bytes, uint64_t total_bytes), void *arg);

/*
 * One piece of background work by the calling thread, for tests and replay
 * without threads: close a slot (quiet ones only, unless flush), rewrite, move,
 * grow, punch. Returns true when something was done.
 */
bool store_step(struct store *store, bool flush);

/*
 * Recounts everything from map and records and compares with live counts, free
 * lists, arena and gauges. No request and no open slot may be under way; the
 * janitor is kept waiting. Returns 0, or -EUCLEAN with what differs first in
 * problem. For tests.
 */
int store_check(struct store *store, char *problem, size_t problem_bytes);

/* From now on the steps of publication are told to base/step.h, by name. For tests of sudden death. */
void store_report_steps(void);

#endif
