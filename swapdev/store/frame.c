// SPDX-License-Identifier: GPL-2.0-or-later
/* Between an object's plain granules and its payload of frames. */
#include "frame.h"
#include "frame_cache.h"
#include "stats.h"
#include "sum.h"

#include <errno.h>
#include <string.h>

/* What a frame's bytes belong to, in 64 bits. A frame stored raw is CODEC_COPY's whatever the object's codec is. */
static uint64_t frame_seed(const struct object *object, uint32_t index, unsigned codec)
{
	uint64_t where = (uint64_t)object->first << 32 | (uint64_t)object->count << 16 | index;

	return object->seq * UINT64_C(0x9e3779b97f4a7c15) + (where ^ (uint64_t)codec << 60 ^
								    (uint64_t)object->frame_order << 28);
}

int frame_encode_from(
	struct compressor *compressor, struct object *object, frame_fill *fill, void *arg, uint8_t *payload)
{
	uint32_t frames = frame_count(object->count, object->frame_order), frame_granules = 1U << object->frame_order;
	struct frame_entry *table = (struct frame_entry *)payload;
	uint8_t *start = payload + frames * sizeof(*table);
	uint32_t end = 0;

	object->codec = CODEC_COPY;
	for (uint32_t index = 0; index < frames; index++) {
		uint32_t first = index * frame_granules, left = object->count - first;
		uint32_t granules = left < frame_granules ? left : frame_granules;
		uint64_t bytes = granules * GRANULE_BYTES;
		const uint8_t *plain = fill(arg, first, granules);
		ssize_t stored = plain ? compressor_run(compressor, plain, bytes, start + end, bytes - 1) : 0;
		unsigned codec = stored > 0 ? compressor_choice(compressor).id : CODEC_COPY;

		if (!plain)
			return -EIO;
		if (stored > 0) {
			object->codec = (uint8_t)codec;
		} else {
			memcpy(start + end, plain, bytes);
			stored = (ssize_t)bytes;
		}
		table[index].sum = sum32(start + end, (size_t)stored, frame_seed(object, index, codec));
		end += (uint32_t)stored;
		table[index].end = end;
	}
	object->stored_bytes = (uint32_t)(frames * sizeof(*table)) + end;
	return 0;
}

static const uint8_t *fill_from_memory(void *arg, uint32_t first, uint32_t count)
{
	(void)count;
	return (const uint8_t *)arg + ((uint64_t)first << GRANULE_SHIFT);
}

void frame_encode(struct compressor *compressor, struct object *object, const uint8_t *plain, uint8_t *payload)
{
	/* Only read: fill_from_memory hands it back as const. */
	frame_encode_from(compressor, object, fill_from_memory, (void *)(uintptr_t)plain, payload);
}

int frame_find(const struct object *object, const uint8_t *payload, uint32_t index, struct frame *ret)
{
	const struct frame_entry *table = (const struct frame_entry *)payload;
	uint32_t frames = frame_count(object->count, object->frame_order);
	uint64_t table_bytes = frames * sizeof(*table);
	uint32_t begin, end;
	uint64_t from = (uint64_t)index << object->frame_order;
	uint64_t granules = object->count - from;

	if (table_bytes > object->stored_bytes)
		return -EBADMSG;
	begin = index ? table[index - 1].end : 0;
	end = table[index].end;
	if (begin >= end || end > object->stored_bytes - table_bytes)
		return -EBADMSG;
	if (granules > (UINT64_C(1) << object->frame_order))
		granules = UINT64_C(1) << object->frame_order;
	ret->stored = payload + table_bytes + begin;
	ret->stored_bytes = end - begin;
	ret->plain_bytes = (uint32_t)(granules << GRANULE_SHIFT);
	ret->sum = table[index].sum;
	ret->seed = frame_seed(object, index, ret->stored_bytes == ret->plain_bytes ? CODEC_COPY : object->codec);
	return 0;
}

bool frame_is_intact(const struct frame *frame)
{
	return sum32(frame->stored, frame->stored_bytes, frame->seed) == frame->sum;
}

int frame_decode(struct decompressor *decompressor, unsigned codec, const struct frame *frame, uint8_t *plain)
{
	if (!frame_is_intact(frame))
		return -EBADMSG;
	if (frame->stored_bytes == frame->plain_bytes) {
		memcpy(plain, frame->stored, frame->plain_bytes);
		return 0;
	}
	return decompressor_run(decompressor, codec, frame->stored, frame->stored_bytes, plain, frame->plain_bytes);
}

static void count_decoded(const struct frame_reader *reader, uint64_t bytes)
{
	if (reader->stats)
		stats_count(&reader->stats->read_decoded_bytes, bytes);
}

/* A part of one frame, by way of a cache. */
static int frame_read_part(const struct frame_reader *reader, uint32_t id, const struct object *object,
	const struct frame *frame, uint32_t index, uint64_t skip_bytes, uint64_t bytes, uint8_t *plain)
{
	struct frame_cache *cache = frame->plain_bytes <= reader->small->entry_bytes ? reader->small : reader->large;
	const struct frame_key key = {.id = id, .index = index, .seq = object->seq, .seed = frame->seed};
	bool decoded;
	struct frame_cache_entry *entry = frame_cache_get(cache, &key, &decoded);
	int result;

	if (reader->stats)
		stats_count(decoded ? &reader->stats->frame_hits : &reader->stats->frame_misses, 1);
	if (!decoded) {
		result = frame_decode(reader->decompressor, object->codec, frame, entry->data);
		if (result < 0) {
			frame_cache_drop(entry);
			return result;
		}
		count_decoded(reader, frame->plain_bytes);
	}
	memcpy(plain, entry->data + skip_bytes, bytes);
	frame_cache_release(entry);
	return 0;
}

static void fill_words(uint8_t *plain, uint64_t word, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += sizeof(word))
		memcpy(plain + at, &word, sizeof(word));
}

int frame_read(const struct frame_reader *reader, uint32_t id, const struct object *object, const uint8_t *payload,
	uint32_t first, uint32_t count, uint8_t *plain)
{
	uint32_t at = first, end = first + count;
	int result = 0;

	if (object->flags & RECORD_SAME) {
		fill_words(plain, object->place, count * GRANULE_BYTES);
		return 0;
	}
	while (at < end) {
		uint32_t index = at >> object->frame_order;
		uint32_t frame_end = (index + 1) << object->frame_order;
		uint32_t stop = frame_end < end ? frame_end : end;
		uint64_t bytes = (stop - at) * GRANULE_BYTES;
		uint64_t skip_bytes = (at - (index << object->frame_order)) * GRANULE_BYTES;
		struct frame frame;
		int error = frame_find(object, payload, index, &frame);

		if (error == 0 && bytes == frame.plain_bytes) {
			error = frame_decode(reader->decompressor, object->codec, &frame, plain);
			count_decoded(reader, bytes);
		} else if (error == 0) {
			error = frame_read_part(reader, id, object, &frame, index, skip_bytes, bytes, plain);
		}
		if (error < 0) {
			memset(plain, 0, bytes);
			if (reader->stats)
				stats_count(&reader->stats->bad_frames, 1);
			result = -EIO;
		}
		plain += bytes;
		at = stop;
	}
	return result;
}
