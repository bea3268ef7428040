// SPDX-License-Identifier: GPL-2.0-or-later
/* The store's life: configuration, opening by recovery, threads, settings. */
#include "store_internal.h"

#include "privilege.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool is_power_of_two(uint64_t value)
{
	return value && !(value & (value - 1));
}

/*
 * What closing, rewriting and moving may need beyond what is stored: every
 * slot and every compression thread a unit that does not compress, and what is
 * left to moving.
 */
static uint64_t headroom_bytes(uint32_t unit_bytes, unsigned slots, unsigned compress_threads, uint64_t limit_bytes)
{
	return (uint64_t)(slots + compress_threads) * unit_bytes + room_moving_bytes(unit_bytes, limit_bytes);
}

/* The least a limit can be: the headroom, one group of records, and something to store. */
static uint64_t limit_least_bytes(const struct store_config *config)
{
	return headroom_bytes(config->unit_bytes, config->slots, config->compress_threads, 0) + IDS_GROUP_BYTES +
	       config->unit_bytes + POOL_CHUNK_BYTES;
}

static const char *codec_problem(unsigned codec, int level)
{
	const struct codec_ops *ops = codec_ops(codec);

	if (!ops)
		return "unknown codec";
	if (level < ops->level_min || level > ops->level_max)
		return "codec level out of range";
	return NULL;
}

static bool frame_is_possible(uint32_t frame_bytes, uint32_t unit_bytes)
{
	return is_power_of_two(frame_bytes) && frame_bytes >= GRANULE_BYTES && frame_bytes <= unit_bytes;
}

const char *store_config_problem(const struct store_config *config)
{
	if (config->unit_bytes != 64 * KIB && config->unit_bytes != 2 * MIB && config->unit_bytes != 16 * MIB)
		return "unit must be 64K, 2M or 16M";
	if (!frame_is_possible(config->frame_bytes, config->unit_bytes))
		return "frame must be a power of two from 4K to the unit";
	if (config->size_bytes % GRANULE_BYTES || config->size_bytes < config->unit_bytes)
		return "size must be a multiple of 4K and at least one unit";
	if (config->max_size_bytes < config->size_bytes || config->max_size_bytes % GRANULE_BYTES)
		return "the largest size must be a multiple of 4K and not below the size";
	if (config->max_size_bytes >> GRANULE_SHIFT >= MAP_LOST)
		return "size must be below 8T";
	if (config->slots < 1 || config->slots > STORE_SLOTS_MAX)
		return "slots must be 1 to 64";
	if (config->io_threads < 1 || config->io_threads > STORE_THREADS_MAX || config->compress_threads < 1 ||
		config->compress_threads > STORE_THREADS_MAX)
		return "threads must be 1 to 32";
	if (config->limit_bytes < limit_least_bytes(config))
		return "the memory limit is too small for the slots and compression threads at this unit";
	if (config->reserve_bytes > config->limit_bytes / 2)
		return "the reserve must be at most half of the memory limit";
	return codec_problem(config->codec, config->level);
}

int store_format(int image_fd, const struct store_config *config)
{
	return store_config_problem(config) ? -EINVAL : image_format(image_fd, config);
}

/* ---- opening ---- */

static int open_workers(struct store *store)
{
	const struct superblock *super = store->image.super;

	for (unsigned i = 0; i < super->compress_threads; i++) {
		struct worker *worker = &store->worker[i];
		int result = decompressor_create(&worker->decompressor, super->unit_bytes);

		if (result < 0)
			return result;
		worker->store = store;
		worker->index = i;
		worker->encoder.frame_max_bytes = super->unit_bytes;
		worker->payload = scratch_payload(&store->image, i);
		/* Runs of a slot are at most every other granule, and one more. */
		worker->run = calloc(store->unit_granules / 2 + 1, sizeof(*worker->run));
		if (!worker->run)
			return -ENOMEM;
	}
	return 0;
}

static int open_io(struct store *store)
{
	const struct superblock *super = store->image.super;

	for (unsigned i = 0; i < super->io_threads; i++) {
		struct store_io *io = &store->io[i];
		int result = decompressor_create(&io->decompressor, super->unit_bytes);

		if (result < 0)
			return result;
		io->store = store;
		io->index = i;
		io->encoder.frame_max_bytes = DIRECT_FRAME_BYTES;
		io->payload = scratch_direct_payload(&store->image, i);
	}
	return 0;
}

/* Frames beyond SCRATCH_FRAME_BYTES are decoded in the large region. */
static int populate_large(struct store *store, uint32_t frame_bytes)
{
	const struct image_extent *region = &store->image.super->region[REGION_LARGE];

	return frame_bytes <= SCRATCH_FRAME_BYTES ? 0 : image_populate(&store->image, store->image.large, region->bytes);
}

/* What a request may touch must be present before the first one: a fault there would be an allocation. */
static int populate_fixed(struct store *store)
{
	int result = map_trim(store);

	return result == 0 ? image_visit_fixed(&store->image, image_populate) : result;
}

static uint64_t fixed_bytes(const struct store *store)
{
	const struct superblock *super = store->image.super;
	const struct image_extent *staging = &super->region[REGION_STAGING];
	uint64_t bytes = round_up_u64(staging->offset + staging->bytes, store->image.page_bytes) + encoders_bytes(store);

	return super->frame_largest_bytes <= SCRATCH_FRAME_BYTES ? bytes : bytes + super->region[REGION_LARGE].bytes;
}

static void set_fixed_gauges(struct store *store)
{
	const struct superblock *super = store->image.super;
	struct stats_gauges *gauges = store->gauges;

	map_set_gauge(store);
	gauges->fixed_bytes = fixed_bytes(store);
	gauges->limit_bytes = atomic_load(&super->limit_bytes);
	gauges->headroom_bytes = store->headroom_bytes;
}

/* A new page, or one whose header was damaged: counting starts anew, the device does not depend on it. */
static void open_stats(struct store *store)
{
	const struct superblock *super = store->image.super;
	const struct image_extent *region = &super->region[REGION_STATS];
	struct stats_page *page = (struct stats_page *)(store->image.base + region->offset);

	if (stats_page_check(page, region->bytes) < 0 || page->io_threads != super->io_threads ||
		page->workers != super->compress_threads) {
		memset(page, 0, region->bytes);
		stats_page_init(page, super->io_threads, super->compress_threads);
	}
	store->stats = page;
	store->gauges = &page->gauges;
	memset(store->gauges, 0, sizeof(*store->gauges));
	for (unsigned i = 0; i < super->compress_threads; i++)
		store->worker[i].stats = stats_page_worker(page, i);
	for (unsigned i = 0; i < super->io_threads; i++)
		store->io[i].stats = stats_page_io(page, i);
}

static int open_caches(struct store *store)
{
	const struct superblock *super = store->image.super;
	int result = frame_cache_init(&store->small_cache, scratch_small_entries(super->io_threads),
		scratch_small_cache(&store->image), SCRATCH_FRAME_BYTES);

	return result < 0 ? result
			  : frame_cache_init(&store->large_cache, scratch_large_entries(super->io_threads),
				    scratch_large_cache(&store->image), super->unit_bytes);
}

/* Contexts for what the image says now. */
static int open_encoders(struct store *store)
{
	const struct superblock *super = store->image.super;
	int result = 0;

	if (store->encoders_codec_level != super->codec_level || store->encoders_frame_bytes != super->frame_bytes)
		result = encoders_set(store, codec_level_codec(super->codec_level),
			codec_level_level(super->codec_level), super->frame_bytes);
	store->encoders_codec_level = super->codec_level;
	store->encoders_frame_bytes = super->frame_bytes;
	return result;
}

static int open_tables(struct store *store)
{
	const struct superblock *super = store->image.super;
	int result;

	store->io = calloc(super->io_threads, sizeof(*store->io));
	store->worker = calloc(super->compress_threads, sizeof(*store->worker));
	if (!store->io || !store->worker)
		return -ENOMEM;
	result = pool_init(&store->pool, store->image.arena_bytes);
	if (result == 0)
		result = ids_init(&store->ids, &store->image);
	if (result == 0)
		result = open_workers(store);
	if (result == 0)
		result = open_io(store);
	if (result == 0)
		result = open_caches(store);
	if (result == 0)
		result = janitor_init(store);
	return result < 0 ? result : open_encoders(store);
}

static void open_locks(struct store *store)
{
	pthread_rwlockattr_t attributes;

	/* Readers that keep coming must not keep a write waiting. */
	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	for (unsigned i = 0; i < UNIT_LOCKS; i++)
		pthread_rwlock_init(&store->unit_lock[i].lock, &attributes);
	pthread_rwlockattr_destroy(&attributes);
	pthread_mutex_init(&store->growth.lock, NULL);
	cond_init(&store->growth.wanted);
	cond_init(&store->growth.grown);
	store->growth.chunk = UINT32_MAX;
	cond_init(&store->turn);
	staging_init(store);
}

static void set_headroom(struct store *store)
{
	const struct superblock *super = store->image.super;

	atomic_store(&store->headroom_bytes,
		headroom_bytes(super->unit_bytes, super->slots, super->compress_threads, super->limit_bytes));
}

int store_prepare(struct store **ret, int image_fd)
{
	struct store *store = aligned_alloc(CACHE_LINE_BYTES, round_up_u64(sizeof(*store), CACHE_LINE_BYTES));
	int result;

	if (!store)
		return -ENOMEM;
	memset(store, 0, sizeof(*store));
	result = image_map(&store->image, image_fd);
	if (result < 0) {
		free(store);
		return result;
	}
	store->unit_order = order_of_bytes(store->image.super->unit_bytes);
	store->unit_granules = 1U << store->unit_order;
	open_locks(store);
	result = open_tables(store);
	if (result == 0)
		result = ahead_begin(store);
	if (result < 0) {
		store_close(store);
		return result;
	}
	*ret = store;
	return 0;
}

static void turn_begin(struct store *store)
{
	pthread_mutex_lock(&store->growth.lock);
	atomic_store(&store->recovered, true);
	pthread_cond_broadcast(&store->turn);
	pthread_mutex_unlock(&store->growth.lock);
}

bool store_await_turn(struct store *store)
{
	pthread_mutex_lock(&store->growth.lock);
	while (!atomic_load(&store->recovered) && !atomic_load(&store->stopping))
		pthread_cond_wait(&store->turn, &store->growth.lock);
	pthread_mutex_unlock(&store->growth.lock);
	privilege_keep(0);
	return !atomic_load(&store->stopping);
}

int store_recover(struct store *store)
{
	uint64_t begin_ns = clock_ns();
	int result;

	ahead_end(store);
	result = image_check(&store->image);
	if (result == 0)
		result = populate_fixed(store);
	if (result == 0) {
		set_headroom(store);
		open_stats(store);
		result = open_encoders(store);
	}
	if (result == 0) {
		set_fixed_gauges(store);
		result = recover(store);
	}
	if (result < 0)
		return result;
	room_update_gauges(store);
	while (room_grow_step(store, ROOM_OLD))
		;
	store->gauges->recovery_ns = clock_ns() - begin_ns;
	turn_begin(store);
	return 0;
}

int store_open(struct store **ret, int image_fd)
{
	struct store *store;
	int result = store_prepare(&store, image_fd);

	if (result < 0)
		return result;
	result = store_recover(store);
	if (result < 0) {
		store_close(store);
		return result;
	}
	*ret = store;
	return 0;
}

int store_start(struct store *store)
{
	int result = growth_start(store);

	store->started = true;
	if (result == 0)
		result = workers_start(store);
	return result;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	atomic_store(&store->stopping, true);
	pthread_mutex_lock(&store->growth.lock);
	pthread_cond_broadcast(&store->turn);
	pthread_mutex_unlock(&store->growth.lock);
	workers_stop(store);
	growth_stop(store);
	if (store->io && store->worker) {
		encoders_destroy(store);
		for (unsigned i = 0; i < store->image.super->io_threads; i++)
			decompressor_destroy(store->io[i].decompressor);
		for (unsigned i = 0; i < store->image.super->compress_threads; i++) {
			decompressor_destroy(store->worker[i].decompressor);
			free(store->worker[i].run);
		}
	}
	frame_cache_deinit(&store->small_cache);
	frame_cache_deinit(&store->large_cache);
	janitor_deinit(store);
	ahead_destroy(store);
	ids_deinit(&store->ids);
	pool_deinit(&store->pool);
	free(store->io);
	free(store->worker);
	image_unmap(&store->image);
	free(store);
}

/* ---- questions ---- */

void store_get_config(struct store *store, struct store_config *ret)
{
	image_config(store->image.super, ret);
}

struct stats_page *store_stats(struct store *store)
{
	return store->stats;
}

uint64_t store_stats_offset(const struct store *store)
{
	return store->image.super->region[REGION_STATS].offset;
}

size_t store_stats_bytes(const struct store *store)
{
	return store->image.super->region[REGION_STATS].bytes;
}

struct store_io *store_io(struct store *store, unsigned index)
{
	return &store->io[index];
}

uint64_t store_io_done_ns(const struct store_io *io)
{
	return io->slice_ns;
}

struct stats_io *store_io_stats(struct store_io *io)
{
	return io->stats;
}

_Static_assert(STORE_REQUEST_BYTES == GRANULE_BYTES, "the region has a granule for each thread");

void *store_request(struct store *store, unsigned index)
{
	return store->image.base + store->image.super->region[REGION_REQUESTS].offset + (uint64_t)index * STORE_REQUEST_BYTES;
}

uint64_t store_progress(struct store *store)
{
	return gauge_get(&store->staging.freed);
}

uint64_t store_dead_bytes(struct store *store)
{
	return gauge_get(&store->dead_bytes);
}

uint64_t store_metadata_bytes(struct store *store)
{
	struct stats_gauges *gauges = store->gauges;
	uint64_t frame_bytes = store->image.super->frame_bytes;
	uint64_t tables = gauge_get(&gauges->object_bytes) / frame_bytes * sizeof(struct frame_entry);

	return gauge_get(&gauges->map_bytes) + gauge_get(&gauges->records_ready_bytes) + tables +
	       pool_table_bytes(&store->pool);
}

/* ---- settings ---- */

int store_set_codec(struct store *store, unsigned codec, int level)
{
	struct superblock *super = store->image.super;
	int result = codec_problem(codec, level) ? -EINVAL : encoders_set(store, codec, level, super->frame_bytes);

	if (result < 0)
		return result;
	atomic_store(&super->codec_level, codec_level_pack(codec, level));
	store->encoders_codec_level = super->codec_level;
	atomic_store(&store->gauges->fixed_bytes, fixed_bytes(store));
	return 0;
}

/* Larger frames need the large region, populated here, before any object with such frames exists. */
static int allow_frame(struct store *store, uint32_t frame_bytes)
{
	struct superblock *super = store->image.super;
	int result;

	if (frame_bytes <= super->frame_largest_bytes)
		return 0;
	result = populate_large(store, frame_bytes);
	if (result < 0)
		return result;
	atomic_store(&super->frame_largest_bytes, frame_bytes);
	return 0;
}

int store_set_frame(struct store *store, uint32_t frame_bytes)
{
	struct superblock *super = store->image.super;
	int result = -EINVAL;

	if (!frame_is_possible(frame_bytes, super->unit_bytes))
		return result;
	result = allow_frame(store, frame_bytes);
	if (result == 0)
		result = encoders_set(store, codec_level_codec(super->codec_level),
			codec_level_level(super->codec_level), frame_bytes);
	if (result < 0)
		return result;
	atomic_store(&super->frame_bytes, frame_bytes);
	store->encoders_frame_bytes = frame_bytes;
	atomic_store(&store->gauges->fixed_bytes, fixed_bytes(store));
	return 0;
}

int store_set_limit(struct store *store, uint64_t limit_bytes)
{
	struct store_config config;

	store_get_config(store, &config);
	config.limit_bytes = limit_bytes;
	if (store_config_problem(&config))
		return -EINVAL;
	/* The floor first: killed between the two, the limit is still the old one. */
	room_set_floor(store, limit_bytes);
	atomic_store(&store->image.super->limit_bytes, limit_bytes);
	atomic_store(&store->gauges->limit_bytes, limit_bytes);
	set_headroom(store);
	atomic_store(&store->gauges->headroom_bytes, store->headroom_bytes);
	room_update_gauges(store);
	staging_wake(store);
	return 0;
}

/* ---- flush and compact ---- */

static bool staging_is_empty(struct store *store)
{
	bool empty;

	pthread_mutex_lock(&store->staging.lock);
	empty = store->staging.free == store->image.super->slots;
	pthread_mutex_unlock(&store->staging.lock);
	return empty;
}

static void pause_ms(long milliseconds)
{
	const struct timespec pause = {.tv_nsec = milliseconds * 1000000};

	nanosleep(&pause, NULL);
}

int store_flush(struct store *store, uint64_t timeout_ns)
{
	uint64_t deadline_ns = clock_ns() + timeout_ns;
	bool empty = staging_is_empty(store);

	while (!empty && clock_ns() < deadline_ns) {
		if (store->started) {
			atomic_store(&store->staging.flush, true);
			staging_wake(store);
			pause_ms(1);
		} else {
			store_step(store, true);
		}
		empty = staging_is_empty(store);
	}
	atomic_store(&store->staging.flush, false);
	return empty ? 0 : -ETIMEDOUT;
}

int store_compact(struct store *store, uint64_t timeout_ns,
	void (*progress)(void *arg, uint64_t done_bytes, uint64_t total_bytes), void *arg)
{
	struct worker *worker = &store->worker[0];
	uint64_t deadline_ns = clock_ns() + timeout_ns, total = 0, left;
	int result = store_flush(store, timeout_ns);

	atomic_store(&store->janitor.rewrite_useless_dead, JANITOR_ANY);
	atomic_store(&store->janitor.move_useless_used, JANITOR_ANY);
	atomic_store(&store->janitor.slid, false);
	atomic_store(&store->compact, true);
	while (result == 0) {
		left = janitor_left_bytes(store);
		total = left > total ? left : total;
		if (progress)
			progress(arg, total - left, total);
		if (!store->started)
			worker->slice_ns = clock_ns();
		if (store->started ? !janitor_has_later_work(store) : !janitor_step(store, worker))
			break;
		if (clock_ns() >= deadline_ns)
			result = -ETIMEDOUT;
		if (store->started) {
			staging_wake(store);
			pause_ms(5);
		}
	}
	atomic_store(&store->compact, false);
	room_update_gauges(store);
	return result;
}

bool store_step(struct store *store, bool flush)
{
	struct worker *worker = &store->worker[0];
	bool before = atomic_exchange(&store->staging.flush, flush), done;

	worker->slice_ns = clock_ns();
	/* A close that found no room is no progress: only the janitor can help it. */
	done = (close_step(store, worker) && !atomic_load(&store->starved)) || janitor_step(store, worker) ||
	       room_grow_step(store, ROOM_OLD);
	atomic_store(&store->staging.flush, before);
	room_update_gauges(store);
	return done;
}
