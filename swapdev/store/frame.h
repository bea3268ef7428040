/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames: the payload of an object.
 *
 *   +--------------------------------+---------+---------+-----+
 *   | table: n x { end, sum }        | frame 0 | frame 1 | ... |
 *   +--------------------------------+---------+---------+-----+
 *
 * `end` is where the frame ends, counted from the end of the table; `sum` the
 * low 32 bits of XXH3 over its stored bytes, seeded with what they belong to
 * (object sequence number, granules, frame, codec): bytes that a damaged
 * record or word leads to do not pass. Frame i holds granules
 * i << frame_order .. of the object; the last may be shorter. A frame as long
 * as its plain bytes is stored raw. Every frame decodes alone.
 *
 * Nothing here allocates or blocks, and only reading by way of a cache locks.
 * Callers hold the unit lock shared.
 */
#ifndef STORE_FRAME_H
#define STORE_FRAME_H

#include "codec.h"
#include "image.h"

struct frame_cache;
struct stats_io;

struct frame_entry {
	uint32_t end;
	uint32_t sum;
};
_Static_assert(sizeof(struct frame_entry) == 8, "frame table budget");

static inline uint32_t frame_count(uint32_t granules, unsigned frame_order)
{
	return (granules + (1U << frame_order) - 1) >> frame_order;
}

/* Payload of `bytes` plain bytes in the worst case: smallest frames, all raw. */
static inline uint64_t frame_payload_max_bytes(uint64_t bytes)
{
	return bytes + (bytes >> GRANULE_SHIFT) * sizeof(struct frame_entry);
}

/*
 * Compresses the granules of an object (first, count, frame_order, seq are
 * given) at plain into payload, which has room for frame_payload_max_bytes.
 * Sets its stored_bytes and codec: the compressor's, or CODEC_COPY where no
 * frame shrank.
 */
void frame_encode(struct compressor *compressor, struct object *object, const uint8_t *plain, uint8_t *payload);

/*
 * The same where the plain bytes are made frame by frame: fill returns those of
 * `count` granules from `first` on (object-relative), valid until it is called
 * again, or NULL: then encoding ends with -EIO.
 */
typedef const uint8_t *frame_fill(void *arg, uint32_t first, uint32_t count);
int frame_encode_from(
	struct compressor *compressor, struct object *object, frame_fill *fill, void *arg, uint8_t *payload);

/* Has it a payload of which no frame shrank? */
static inline bool object_is_raw(const struct object *object)
{
	return object->codec == CODEC_COPY && !(object->flags & RECORD_SAME) && object->stored_bytes;
}

/* An object's payload, checked as far as needed to find frame `index`. */
struct frame {
	const uint8_t *stored;
	uint32_t stored_bytes;
	uint32_t plain_bytes;
	uint32_t sum;
	uint64_t seed;
};

/* Finds a frame; -EBADMSG when the table does not make sense. */
int frame_find(const struct object *object, const uint8_t *payload, uint32_t index, struct frame *ret);

bool frame_is_intact(const struct frame *frame);

/* Checks the sum, then decodes the whole frame to plain (frame->plain_bytes). Returns 0 or -EBADMSG. */
int frame_decode(struct decompressor *decompressor, unsigned codec, const struct frame *frame, uint8_t *plain);

/*
 * Copies granules first .. first + count of an object (object-relative) to
 * plain: whole frames are decoded in place, parts by way of a cache, which may
 * wait for another thread that decodes the same frame.
 * same-filled objects need no payload. Damaged frames: their part of plain is
 * zeroed, the rest delivered, and -EIO returned.
 */
struct frame_reader {
	struct decompressor *decompressor; /* the thread's own */
	struct frame_cache *small;	   /* NULL: only whole frames may be asked for */
	struct frame_cache *large;	   /* of frames that do not fit into an entry of the small one */
	struct stats_io *stats;		   /* NULL: nobody counts */
};
int frame_read(const struct frame_reader *reader, uint32_t id, const struct object *object, const uint8_t *payload,
	uint32_t first, uint32_t count, uint8_t *plain);

#endif
