/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The shared statistics page: what the device did, order by order, and what it
 * holds. It is one region of the image, so it outlives a server; the CLI maps
 * it read-only. Reading costs the I/O path nothing.
 *
 *   struct stats_page          header, gauges
 *   struct stats_io[io]        one per I/O thread, written by it alone
 *   struct stats_worker[w]     one per compression thread, written by it alone
 *
 * Counters are 64-bit, stored and loaded with relaxed atomics; readers sum the
 * shards. Gauges have several writers and are changed by atomic adds. Counters
 * only grow, across servers too; gauges are set anew by recovery.
 */
#ifndef STATS_STATS_H
#define STATS_STATS_H

#include "hist.h"
#include "units.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATS_MAGIC UINT64_C(0x7461747370776f66) /* "fowpstat" */
#define STATS_VERSION 4
#define STATS_THREADS_MAX 64

enum stats_kind {
	STATS_READ,
	STATS_WRITE,
	STATS_DISCARD,
	STATS_KINDS,
};

/* Where the time of a request went. What is left over is the caller's and the clock's. */
enum stats_stage {
	STATS_COPY,  /* moving plain bytes */
	STATS_CODEC, /* compressing, decoding, check sums */
	STATS_POOL,  /* room in the arena, ids, map words */
	STATS_WAIT,  /* locks, a free slot, ready room */
	STATS_STAGES,
};

/* One kind at one order. */
struct stats_op {
	uint64_t requests;
	uint64_t bytes;
	uint64_t errors;
	struct hist latency; /* answered requests, errors included */
};

/* Written by one I/O thread. */
struct stats_io {
	struct stats_op op[STATS_KINDS][ORDER_COUNT];
	uint64_t stage_ns[STATS_KINDS][STATS_STAGES];
	uint64_t read_asked_bytes;   /* of what was read from objects */
	uint64_t read_decoded_bytes; /* what had to be decoded for it: amplification = decoded / asked */
	uint64_t frame_hits;	     /* partial reads served by an already decoded frame */
	uint64_t frame_misses;
	uint64_t direct_objects; /* small writes that became objects at once */
	uint64_t slot_waits;
	uint64_t room_waits;
	uint64_t refused;    /* writes answered ENOSPC */
	uint64_t bad_frames; /* reads answered EIO for a damaged frame or record */
	uint64_t raw_bytes;  /* plain size of direct objects stored raw */
} __attribute__((aligned(CACHE_LINE_BYTES)));

/* Written by one compression thread. */
struct stats_worker {
	uint64_t closed_objects[ORDER_COUNT]; /* by order of the run that became one object */
	uint64_t closed_bytes[ORDER_COUNT];
	uint64_t closed_stored_bytes[ORDER_COUNT];
	uint64_t closed_dropped_bytes; /* compressed, and changed or gone meanwhile */
	uint64_t rewritten_objects;
	uint64_t rewritten_bytes;
	uint64_t moved_objects;
	uint64_t moved_bytes;
	uint64_t punched_bytes;
	uint64_t raw_bytes; /* plain size of what became raw objects: closed, or rewritten from compressed ones */
	uint64_t stage_ns[STATS_STAGES];
	uint64_t cpu_ns; /* of the thread */
	struct hist close_ns; /* one slot, compressing to published */
} __attribute__((aligned(CACHE_LINE_BYTES)));

/* What the store holds now. All bytes. */
struct stats_gauges {
	_Atomic uint64_t live_bytes;	/* granules that are not holes: in objects and in slots */
	_Atomic uint64_t slot_bytes;	/* of those, in staging slots */
	_Atomic uint64_t same_bytes;	/* of those, in same-filled objects */
	_Atomic uint64_t raw_bytes;	/* plain size of objects stored raw */
	_Atomic uint64_t object_bytes;	/* plain size of all objects, dead granules included */
	_Atomic uint64_t objects;	/* count */
	_Atomic uint64_t payload_bytes; /* stored length of all objects: frames and their tables */
	_Atomic uint64_t extent_bytes;	/* the same, rounded to the arena's 64 bytes */
	_Atomic uint64_t extent_peak_bytes;
	_Atomic uint64_t arena_ready_bytes; /* populated arena */
	_Atomic uint64_t arena_empty_bytes; /* of that, in whole free chunks: the reserve */
	_Atomic uint64_t records_ready_bytes; /* populated object records and the private tables beside them */
	_Atomic uint64_t limit_bytes;	      /* for arena_ready + records_ready; UINT64_MAX: none */
	_Atomic uint64_t headroom_bytes;
	_Atomic uint64_t map_bytes;	/* granule map, populated */
	_Atomic uint64_t fixed_bytes;	/* slots, scratch, contexts, buffers, statistics: what the store locks besides */
	_Atomic uint64_t lost_granules; /* found damaged by a recovery and not overwritten since */
	_Atomic uint64_t recovery_ns;	/* of the last start */
};

/* Servers that took over from one that died or was replaced. Written by the one that serves. */
struct stats_takeovers {
	_Atomic uint64_t count;
	_Atomic uint64_t requeued;	  /* requests that came a second time */
	_Atomic uint64_t blamed;	  /* of those, answered EIO: in execution at two crashes in a row */
	_Atomic uint64_t last_recover_ns; /* rebuilding the store's tables */
	_Atomic uint64_t last_open_ns;	  /* from then until the kernel sent requests again */
	_Atomic uint64_t last_outage_ns;  /* from reaping the predecessor to the first answer */
	_Atomic uint64_t worst_outage_ns;
	_Atomic uint64_t reaped_ns;	  /* CLOCK_MONOTONIC; 0 once a first answer was given */
};

struct stats_page {
	uint64_t magic;
	uint32_t version;
	uint32_t io_threads;
	uint32_t workers;
	uint32_t io_shard_bytes;     /* sizeof(struct stats_io) of the writer */
	uint32_t worker_shard_bytes; /* sizeof(struct stats_worker) of the writer */
	uint32_t io_offset;	     /* from the page's start */
	uint32_t worker_offset;
	uint32_t reserved;
	uint64_t started_ns; /* CLOCK_MONOTONIC of the first server's start */
	struct stats_takeovers takeovers __attribute__((aligned(CACHE_LINE_BYTES)));
	struct stats_gauges gauges __attribute__((aligned(CACHE_LINE_BYTES)));
};

/* Bytes of a page with so many shards (each 1 .. STATS_THREADS_MAX). */
size_t stats_page_bytes(unsigned io_threads, unsigned workers);

/* Writes the header over zeroed memory. */
void stats_page_init(struct stats_page *page, unsigned io_threads, unsigned workers);

/* Checks magic, version, shard sizes and that all shards lie within bytes. Returns 0 or -EPROTO. For readers of a page from outside. */
int stats_page_check(const struct stats_page *page, size_t bytes);

struct stats_io *stats_page_io(struct stats_page *page, unsigned index);
struct stats_worker *stats_page_worker(struct stats_page *page, unsigned index);

/* Owner thread only: counter += n, so that a reader never sees half a value. */
static inline void stats_count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static inline uint64_t stats_load(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* One answered request. Owner thread only; wait-free. bytes >= 4096; error: 0 or negative errno. */
void stats_request(struct stats_io *io, enum stats_kind kind, uint64_t bytes, uint64_t latency_ns, int error);

/* The sums over all shards, for readers; ret is the caller's (about 300 KiB: not on a small stack). */
struct stats_sum {
	struct stats_io io;
	struct stats_worker worker;
};
void stats_sum(const struct stats_page *page, struct stats_sum *ret);

#endif
