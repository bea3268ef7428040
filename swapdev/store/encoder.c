// SPDX-License-Identifier: GPL-2.0-or-later
/* Codec contexts per thread, replaceable while requests run. */
#include "store_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

struct encoder *encoder_acquire(struct encoder_slot *slot)
{
	struct encoder *encoder;

	/* Published, then checked again: the control thread either sees it in use or has already put another in its place. */
	do {
		encoder = atomic_load(&slot->current);
		atomic_store(&slot->in_use, encoder);
	} while (encoder != atomic_load(&slot->current));
	return encoder;
}

void encoder_release(struct encoder_slot *slot)
{
	atomic_store_explicit(&slot->in_use, NULL, memory_order_release);
}

static void encoder_destroy(struct encoder *encoder)
{
	if (!encoder)
		return;
	compressor_destroy(encoder->compressor);
	free(encoder);
}

static int encoder_create(struct encoder **ret, struct codec_choice choice, size_t frame_bytes)
{
	struct encoder *encoder = calloc(1, sizeof(*encoder));
	int result;

	if (!encoder)
		return -ENOMEM;
	encoder->frame_order = order_of_bytes(frame_bytes);
	result = compressor_create(&encoder->compressor, choice, frame_bytes);
	if (result < 0) {
		free(encoder);
		return result;
	}
	*ret = encoder;
	return 0;
}

static unsigned encoder_slots(const struct store *store)
{
	return store->image.super->io_threads + store->image.super->compress_threads;
}

static struct encoder_slot *encoder_slot_at(const struct store *store, unsigned index)
{
	unsigned io_threads = store->image.super->io_threads;

	return index < io_threads ? &store->io[index].encoder : &store->worker[index - io_threads].encoder;
}

/* Puts a new encoder in place and frees the old one as soon as its thread has let go. */
static void encoder_exchange(struct encoder_slot *slot, struct encoder *encoder)
{
	const struct timespec pause = {.tv_nsec = 200000};
	struct encoder *old = atomic_exchange(&slot->current, encoder);

	while (old && atomic_load(&slot->in_use) == old)
		nanosleep(&pause, NULL);
	encoder_destroy(old);
}

int encoders_set(struct store *store, unsigned codec, int level, uint32_t frame_bytes)
{
	struct codec_choice choice = {.id = (enum codec_id)codec, .level = level};
	unsigned count = encoder_slots(store), made = 0;
	struct encoder *fresh[2 * STORE_THREADS_MAX];
	int result = 0;

	for (; made < count && result == 0; made += result == 0) {
		size_t most = encoder_slot_at(store, made)->frame_max_bytes;

		result = encoder_create(&fresh[made], choice, frame_bytes < most ? frame_bytes : most);
	}
	for (unsigned i = 0; i < made; i++) {
		if (result == 0)
			encoder_exchange(encoder_slot_at(store, i), fresh[i]);
		else
			encoder_destroy(fresh[i]);
	}
	return result;
}

void encoders_destroy(struct store *store)
{
	for (unsigned i = 0; i < encoder_slots(store); i++)
		encoder_exchange(encoder_slot_at(store, i), NULL);
}

uint64_t encoders_bytes(const struct store *store)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < encoder_slots(store); i++) {
		struct encoder *encoder = atomic_load(&encoder_slot_at(store, i)->current);

		bytes += encoder ? compressor_bytes(encoder->compressor) : 0;
	}
	for (unsigned i = 0; i < store->image.super->io_threads; i++)
		bytes += decompressor_bytes(store->io[i].decompressor);
	for (unsigned i = 0; i < store->image.super->compress_threads; i++)
		bytes += decompressor_bytes(store->worker[i].decompressor);
	return bytes;
}
