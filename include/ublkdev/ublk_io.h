/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A server's side of /dev/ublkcN: asking for requests and answering them. */
#ifndef UBLKDEV_UBLK_IO_H
#define UBLKDEV_UBLK_IO_H

#include "ublk_control.h"

#include <errno.h>
#include <string.h>

/* user_data of a request's command and completion. */
static inline uint64_t ublk_io_key(unsigned queue, unsigned tag)
{
	return (uint64_t)queue << 16 | tag;
}

static inline unsigned ublk_io_queue(uint64_t key)
{
	return (unsigned)(key >> 16);
}

static inline unsigned ublk_io_tag(uint64_t key)
{
	return (unsigned)(key & UINT16_MAX);
}

/* code: UBLK_FETCH or UBLK_COMMIT_AND_FETCH, by ublk_code(). */
static inline void ublk_io_fill(struct io_uring_sqe *sqe, int fd, uint32_t code, const struct ublk_io_words *words)
{
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = code;
	sqe->user_data = ublk_io_key(words->queue, words->tag);
	memcpy(sqe->cmd, words, sizeof(*words));
}

/* The ring's next free entry, if necessary after handing over those that are filled. NULL: the ring is broken. */
static inline struct io_uring_sqe *ublk_io_next(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe && io_uring_submit(ring) >= 0)
		sqe = io_uring_get_sqe(ring);
	return sqe;
}

#endif
