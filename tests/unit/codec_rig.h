/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What it takes to send a block through a codec and back between guard pages. Include cmocka.h first. */
#ifndef TESTS_CODEC_RIG_H
#define TESTS_CODEC_RIG_H

#include "codec.h"
#include "codec_content.h"

#define BOUND_BYTES(src_bytes) ((src_bytes) + (src_bytes) / 128 + 1024)

/* One size of block with everything it takes to send it there and back. */
struct rig {
	struct guarded src;
	struct guarded stored;
	struct guarded out;
	struct decompressor *decompressor;
};

static inline struct rig rig_create(size_t src_max_bytes)
{
	struct rig rig = {
		.src = guarded_create(src_max_bytes),
		.stored = guarded_create(BOUND_BYTES(src_max_bytes)),
		.out = guarded_create(src_max_bytes),
	};

	assert_int_equal(decompressor_create(&rig.decompressor, src_max_bytes), 0);
	return rig;
}

static inline void rig_destroy(struct rig *rig)
{
	decompressor_destroy(rig->decompressor);
	guarded_destroy(&rig->src);
	guarded_destroy(&rig->stored);
	guarded_destroy(&rig->out);
}

static inline struct compressor *create(enum codec_id id, int level, size_t src_max_bytes)
{
	struct compressor *compressor = NULL;

	assert_int_equal(
		compressor_create(&compressor, (struct codec_choice){.id = id, .level = level}, src_max_bytes), 0);
	return compressor;
}

/* Stored and decoded, both flush against the guard pages. Returns the stored size; the stream stays in rig->stored. */
static inline size_t round_trip(struct rig *rig, struct compressor *compressor, const uint8_t *src, size_t src_bytes)
{
	size_t bound_bytes = BOUND_BYTES(src_bytes);
	uint8_t *roomy = guarded_head(&rig->stored);
	ssize_t stored_bytes = compressor_run(compressor, src, src_bytes, roomy, bound_bytes);
	uint8_t *exact, *out = guarded_tail(&rig->out, src_bytes);
	unsigned id = compressor_choice(compressor).id;

	assert_true(stored_bytes > 0 && (size_t)stored_bytes <= bound_bytes);
	exact = guarded_tail(&rig->stored, (size_t)stored_bytes);
	memmove(exact, roomy, (size_t)stored_bytes);
	memset(out, 0x5a, src_bytes);
	assert_int_equal(decompressor_run(rig->decompressor, id, exact, (size_t)stored_bytes, out, src_bytes), 0);
	assert_memory_equal(out, src, src_bytes);
	return (size_t)stored_bytes;
}

static inline size_t round_trip_content(
	struct rig *rig, struct compressor *compressor, enum content content, size_t src_bytes)
{
	uint8_t *src = guarded_tail(&rig->src, src_bytes);

	content_fill(content, src_bytes, src, src_bytes);
	return round_trip(rig, compressor, src, src_bytes);
}

#endif
