/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What each I/O thread has in execution, noted in the image, so that a
 * successor knows which requests its predecessor did not survive.
 *
 *   note:     begin ----> executing ----> end            (the thread)
 *                            |
 *   suspect:       the process crashes: note -> suspect, one crash more  (successor, before its first request)
 *                            |
 *             the request comes again: its crashes go into its note      (any thread)
 *
 * A request with two crashes in a row is not tried a third time: it may be what
 * kills servers. Requests are known by operation and range; the number that a
 * transport gives them may differ when they come again.
 *
 * Each note and suspect is written by one thread; suspects are taken by
 * compare-and-swap of their crashes. What stands there is compared and nothing
 * else, so a damaged image does no harm.
 */
#ifndef DEVICE_INFLIGHT_H
#define DEVICE_INFLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#define INFLIGHT_CRASHES_MAX 2
/* What was in flight comes again at once; a suspect that did not is forgotten after this. */
#define INFLIGHT_SUSPECT_NS (60 * UINT64_C(1000000000))

struct inflight_range {
	uint64_t offset_bytes;
	uint64_t length_bytes;
	uint32_t op;
};

struct inflight {
	struct inflight_range running;
	uint32_t running_crashes;
	_Atomic uint64_t running_since_ns; /* 0: nothing is in execution */
	_Atomic uint64_t answered;
	struct inflight_range suspect;
	_Atomic uint32_t suspect_crashes; /* 0: none */
	uint64_t suspect_since_ns;
};

/* Owner thread. crashes: what inflight_find() has given. */
void inflight_begin(struct inflight *inflight, const struct inflight_range *range, uint32_t crashes, uint64_t now_ns);
void inflight_end(struct inflight *inflight);

/*
 * Before the first request of a successor. crashed: the predecessor died of itself or hung; else (killed from outside,
 * replaced) nobody is to blame. Returns whether there is a suspect.
 */
bool inflight_take_over(struct inflight *inflight, bool crashed, uint64_t now_ns);

/* Crashes of this request if it is the suspect, which is taken; 0: it is not. Any thread. */
uint32_t inflight_find(struct inflight *inflight, const struct inflight_range *range, uint64_t now_ns);

#endif
