// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The store against a plain array: seeded random operations by one thread,
 * background work by store_step() between them, everything recounted after
 * each. FOLIOSWAP_OPS multiplies the number of operations (default 1).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "codec.h"
#include "stats.h"
#include "store.h"
#include "units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct model {
	struct store *store;
	struct store_io *io[2];
	struct store_config config;
	uint8_t *bytes;	 /* what the device must hold */
	uint8_t *buffer; /* one unit */
	uint64_t granules;
	uint64_t random;
	uint64_t operation; /* number, for the message of a failure */
	uint64_t refused;
};

static uint64_t next_random(struct model *model)
{
	model->random ^= model->random << 13;
	model->random ^= model->random >> 7;
	model->random ^= model->random << 17;
	return model->random;
}

static uint64_t below(struct model *model, uint64_t limit)
{
	return next_random(model) % limit;
}

/* One granule of a kind: zeros, one word, half random, all random, text. */
static void make_granule(struct model *model, uint8_t *granule, unsigned kind)
{
	uint64_t word = next_random(model);

	for (uint64_t at = 0; at < GRANULE_BYTES; at += sizeof(word)) {
		if (kind == 0)
			word = 0;
		else if (kind == 3 || (kind == 2 && at % 128 < 64))
			word = next_random(model);
		else if (kind == 4)
			word = 0x2065766f6c20492e + at % 96;
		memcpy(granule + at, &word, sizeof(word));
	}
}

static void make_data(struct model *model, uint32_t count)
{
	unsigned kind = (unsigned)below(model, 6);

	for (uint32_t i = 0; i < count; i++)
		make_granule(model, model->buffer + i * GRANULE_BYTES, kind == 5 ? (unsigned)below(model, 5) : kind);
	/* One word over the whole run. */
	if (kind == 1) {
		for (uint32_t i = 1; i < count; i++)
			memcpy(model->buffer + i * GRANULE_BYTES, model->buffer, GRANULE_BYTES);
	}
}

/* A range inside one unit: every size and offset comes up, single granules and whole units often. */
static void pick_range(struct model *model, uint64_t *ret_granule, uint32_t *ret_count)
{
	uint64_t unit = model->config.unit_bytes / GRANULE_BYTES;
	uint64_t start = below(model, (model->granules + unit - 1) / unit) * unit;
	uint64_t end = start + unit < model->granules ? start + unit : model->granules;
	unsigned shape = (unsigned)below(model, 4);

	if (shape == 0) {
		*ret_granule = start;
		*ret_count = (uint32_t)(end - start);
	} else {
		*ret_granule = start + below(model, end - start);
		*ret_count = 1;
		if (shape > 1)
			*ret_count += (uint32_t)below(model, end - *ret_granule);
	}
}

static void check_accounts(struct model *model)
{
	char problem[200] = "";

	if (store_check(model->store, problem, sizeof(problem)) != 0)
		fail_msg("operation %llu: %s", (unsigned long long)model->operation, problem);
}

static void check_range(struct model *model, uint64_t granule, uint32_t count)
{
	memset(model->buffer, 0xa5, count * GRANULE_BYTES);
	assert_int_equal(store_read(model->io[below(model, 2)], granule, count, model->buffer), 0);
	if (memcmp(model->buffer, model->bytes + granule * GRANULE_BYTES, count * GRANULE_BYTES) != 0)
		fail_msg("operation %llu: wrong bytes in granules %llu + %u", (unsigned long long)model->operation,
			(unsigned long long)granule, count);
}

static void check_everything(struct model *model)
{
	uint64_t unit = model->config.unit_bytes / GRANULE_BYTES;

	for (uint64_t granule = 0; granule < model->granules; granule += unit) {
		uint64_t left = model->granules - granule;

		check_range(model, granule, (uint32_t)(left < unit ? left : unit));
	}
}

static int fetch_buffer(void *model, void *to)
{
	memcpy(to, ((struct model *)model)->buffer, ((struct model *)model)->config.unit_bytes);
	return 0;
}

static int write_by_some_road(struct model *model, struct store_io *io, uint64_t granule, uint32_t count)
{
	if (count * GRANULE_BYTES == model->config.unit_bytes && below(model, 2))
		return store_write_unit(io, granule, fetch_buffer, model);
	return store_write(io, granule, count, model->buffer);
}

static void do_write(struct model *model)
{
	uint64_t granule;
	uint32_t count;
	int result;

	pick_range(model, &granule, &count);
	make_data(model, count);
	result = write_by_some_road(model, model->io[below(model, 2)], granule, count);
	if (result == 0)
		memcpy(model->bytes + granule * GRANULE_BYTES, model->buffer, count * GRANULE_BYTES);
	else
		assert_int_equal(result, -ENOSPC);
	model->refused += result != 0;
}

static void do_discard(struct model *model)
{
	uint64_t granule;
	uint32_t count;

	pick_range(model, &granule, &count);
	assert_int_equal(store_discard(model->io[0], granule, count), 0);
	memset(model->bytes + granule * GRANULE_BYTES, 0, count * GRANULE_BYTES);
}

static void do_read(struct model *model)
{
	uint64_t granule;
	uint32_t count;

	pick_range(model, &granule, &count);
	check_range(model, granule, count);
}

static void do_setting(struct model *model)
{
	static const struct codec_choice choices[] = {{CODEC_LZ4, 1}, {CODEC_ZSTD, 1}, {CODEC_COPY, 0}, {CODEC_LZ4HC, 3}};
	struct codec_choice choice = choices[below(model, 4)];
	uint32_t frame = (uint32_t)GRANULE_BYTES << below(model, order_of_bytes(model->config.unit_bytes) + 1);

	if (below(model, 2))
		assert_int_equal(store_set_codec(model->store, choice.id, choice.level), 0);
	else
		assert_int_equal(store_set_frame(model->store, frame), 0);
}

static void do_limit(struct model *model)
{
	uint64_t limit = model->config.limit_bytes;

	if (limit == UINT64_MAX)
		return;
	/* Half to whole: often below what is stored. */
	limit = limit / 2 + below(model, limit / 2 + 1);
	store_set_limit(model->store, limit);
}

/* Mostly by little, and not to multiples of a unit. Past its end is past its end, until it is not. */
static void do_grow(struct model *model)
{
	uint64_t most = model->config.max_size_bytes / GRANULE_BYTES,
		 more = below(model, (most - model->granules) / 8 + 1);

	assert_int_equal(store_read(model->io[0], model->granules, 1, model->buffer), -EINVAL);
	assert_int_equal(store_set_size(model->store, (model->granules - 1) * GRANULE_BYTES), -EINVAL);
	assert_int_equal(store_set_size(model->store, (model->granules + more) * GRANULE_BYTES), 0);
	model->granules += more;
}

/*
 * At a limit, writes over old data that compress worse than it did may leave
 * slots that cannot be closed for want of room: their bytes stay, in the slots.
 */
static void assert_done(const struct model *model, int result)
{
	if (model->config.limit_bytes == UINT64_MAX || result != -ETIMEDOUT)
		assert_int_equal(result, 0);
}

static uint64_t patience_ns(const struct model *model)
{
	return model->config.limit_bytes == UINT64_MAX ? 10000000000 : 20000000;
}

static void do_background(struct model *model)
{
	unsigned kind = (unsigned)below(model, 100);

	if (kind == 0)
		assert_done(model, store_compact(model->store, patience_ns(model), NULL, NULL));
	else if (kind < 4)
		assert_done(model, store_flush(model->store, patience_ns(model)));
	else
		store_step(model->store, kind < 50);
}

static void one_operation(struct model *model)
{
	unsigned kind = (unsigned)below(model, 1000);

	model->operation++;
	if (kind < 400)
		do_write(model);
	else if (kind < 500)
		do_discard(model);
	else if (kind < 700)
		do_read(model);
	else if (kind < 702)
		do_setting(model);
	else if (kind < 704)
		do_limit(model);
	else if (kind < 705)
		do_grow(model);
	else
		do_background(model);
}

static void model_open(struct model *model, int fd)
{
	assert_int_equal(store_open(&model->store, fd), 0);
	model->io[0] = store_io(model->store, 0);
	model->io[1] = store_io(model->store, 1);
}

/* The image is closed and opened again now and then: recovery must find what was there. */
static void reopen(struct model *model, int fd)
{
	struct stats_gauges before = store_stats(model->store)->gauges;
	struct stats_gauges *after;

	store_close(model->store);
	model_open(model, fd);
	after = &store_stats(model->store)->gauges;
	assert_int_equal(after->live_bytes, before.live_bytes);
	assert_int_equal(after->objects, before.objects);
	assert_int_equal(after->payload_bytes, before.payload_bytes);
	assert_int_equal(after->lost_granules, 0);
	check_accounts(model);
	check_everything(model);
}

static uint64_t scale(void)
{
	const char *text = getenv("FOLIOSWAP_OPS");

	return text ? strtoull(text, NULL, 10) : 1;
}

static void run_model(struct store_config config, uint64_t operations, unsigned reopen_every, uint64_t seed)
{
	struct model model = {.config = config, .granules = config.size_bytes / GRANULE_BYTES, .random = seed};
	int fd = memfd_create("image", 0);

	operations *= scale();
	assert_true(fd >= 0);
	assert_null(store_config_problem(&config));
	assert_int_equal(store_format(fd, &config), 0);
	model.bytes = calloc(1, config.max_size_bytes);
	model.buffer = aligned_alloc(4096, config.unit_bytes);
	assert_non_null(model.bytes);
	assert_non_null(model.buffer);
	model_open(&model, fd);
	while (model.operation < operations) {
		one_operation(&model);
		check_accounts(&model);
		if (model.operation % reopen_every == 0)
			reopen(&model, fd);
	}
	check_everything(&model);
	assert_done(&model, store_compact(model.store, patience_ns(&model), NULL, NULL));
	check_everything(&model);
	check_accounts(&model);
	store_close(model.store);
	free(model.bytes);
	free(model.buffer);
	close(fd);
	print_message("%llu operations, %llu writes refused\n", (unsigned long long)operations,
		(unsigned long long)model.refused);
}

static struct store_config base_config(uint32_t unit_bytes, uint32_t frame_bytes, uint64_t size_bytes)
{
	return (struct store_config){
		.size_bytes = size_bytes,
		.max_size_bytes = 2 * size_bytes,
		.limit_bytes = UINT64_MAX,
		.unit_bytes = unit_bytes,
		.frame_bytes = frame_bytes,
		.codec = CODEC_LZ4,
		.level = 1,
		.slots = 2,
		.io_threads = 2,
		.compress_threads = 1,
	};
}

static void unit_64k(void **state)
{
	(void)state;
	run_model(base_config(64 * KIB, 16 * KIB, 5 * 64 * KIB + 12 * KIB), 60000, 5000, 1);
}

static void unit_64k_many_units(void **state)
{
	struct store_config config = base_config(64 * KIB, 64 * KIB, 3 * MIB);

	(void)state;
	config.slots = 7;
	config.compress_threads = 3;
	run_model(config, 20000, 4000, 2);
}

static void unit_2m(void **state)
{
	(void)state;
	run_model(base_config(2 * MIB, 64 * KIB, 10 * MIB + 4 * KIB), 4000, 1000, 3);
}

static void unit_2m_whole(void **state)
{
	(void)state;
	run_model(base_config(2 * MIB, 2 * MIB, 8 * MIB), 2500, 600, 4);
}

static void unit_16m(void **state)
{
	(void)state;
	run_model(base_config(16 * MIB, 256 * KIB, 33 * MIB), 400, 100, 5);
}

static void under_limit(void **state)
{
	struct store_config config = base_config(64 * KIB, 16 * KIB, 24 * MIB);

	(void)state;
	config.limit_bytes = 14 * MIB;
	config.max_size_bytes = config.size_bytes;
	run_model(config, 20000, 4000, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unit_64k),
		cmocka_unit_test(unit_64k_many_units),
		cmocka_unit_test(unit_2m),
		cmocka_unit_test(unit_2m_whole),
		cmocka_unit_test(unit_16m),
		cmocka_unit_test(under_limit),
	};

	return cmocka_run_group_tests_name("store_model", tests, NULL, NULL);
}
