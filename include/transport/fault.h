/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults on purpose: delays, errors and sudden death at chosen requests, for
 * tests of what happens around a server that misbehaves. Every transport asks
 * here before it gives a request to the device:
 *
 *   error = fault_apply(fault, request);
 *   if (error)
 *           answer the request with error, without the device;
 *   else
 *           device_submit(device, thread, request);
 *
 * A rule is a list of faults, each with conditions:
 *
 *   delay=50ms:every=100,error=EIO:at=5:op=write,kill:at=1000
 *
 *   delay=TIME   sleep first; TIME is a number with ns, us, ms or s, up to 60s
 *   error=NAME   answer with this error: EIO, ENOSPC, ENOMEM, EINVAL, EAGAIN,
 *                ENODEV, EOPNOTSUPP, ETIMEDOUT
 *   kill         the process sends SIGKILL to itself
 *   exit         the process leaves by _exit(1)
 *
 *   at=N         at the N-th request alone (the first is 1)
 *   every=N      at every N-th
 *   chance=N     at one in N, at random
 *   op=NAME      counts and hits only read, write, discard, zeroes or flush
 *   step=NAME    counts and hits not requests but a step of the daemon's work:
 *                recover, recovered, hello, resend (FUSE; of a take-over), start-recovery,
 *                end-recovery (ublk), the store's publication steps (slot-header,
 *                slot-copy, slot-words, payload, record, close-made, close-word, close-words,
 *                direct-words, discard, move-copy, move-place), populate
 *                (before arena is made ready), those of growing (grow-map,
 *                grow-size, grow-asked, grow-done), or any
 *
 * Without at, every and chance a fault hits every request it counts. Each fault counts
 * for itself, over all threads. Several faults may hit one request: they act
 * in the order of the rule, and the first error is the answer.
 */
#ifndef TRANSPORT_FAULT_H
#define TRANSPORT_FAULT_H

#include <stdbool.h>

struct fault;
struct request;

/*
 * Reads a rule. An empty one is no fault at all: *ret is NULL, which the other
 * functions take. Returns 0, -EINVAL (not such a rule: an unknown word, a
 * number that is none, 0 or too large, a condition given twice, at with every,
 * more than 8 faults) or -ENOMEM.
 */
int fault_create(struct fault **ret, const char *rule);
void fault_destroy(struct fault *fault); /* NULL is fine */

/* Any thread; does not allocate. Sleeps, dies, or returns 0 or the negative errno to answer with. */
int fault_apply(struct fault *fault, const struct request *request);

/* Does the rule name steps? */
bool fault_has_steps(const struct fault *fault);

/* Any thread. Acts where the rule names this step; an error has nobody to go to. */
void fault_step(struct fault *fault, const char *name);

#endif
