// SPDX-License-Identifier: GPL-2.0-or-later
/* Lays an image out, maps it, checks what a stranger could have written into it. */
#include "image.h"
#include "codec.h"
#include "frame.h"
#include "stats.h"
#include "sum.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * One worker: compression output (a whole unit stored raw, its frame table
 * with the smallest frames, room for the copy's tail) and, behind it, plain
 * bytes for rewriting.
 */
uint64_t scratch_worker_bytes(uint64_t unit_bytes)
{
	return round_up_u64(frame_payload_max_bytes(unit_bytes), GRANULE_BYTES);
}

/* One I/O thread: decoded frames, and the output of one small object. */
uint64_t scratch_io_bytes(uint64_t unit_bytes)
{
	uint64_t cache_bytes = unit_bytes > 4 * UNIT_MIN_BYTES ? unit_bytes : 4 * UNIT_MIN_BYTES;

	return cache_bytes + round_up_u64(frame_payload_max_bytes(UNIT_MIN_BYTES), GRANULE_BYTES);
}

static uint64_t physical_memory_bytes(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/*
 * Twice what can ever be populated, so that a contiguous run of absent chunks
 * is always found: no more than the plain data plus tables, nor than the
 * machine (or a larger limit) has.
 */
static uint64_t arena_address_bytes(const struct store_config *config)
{
	uint64_t most = config->max_size_bytes + config->max_size_bytes / 16 + 8 * config->unit_bytes + 64 * MIB;
	uint64_t memory = physical_memory_bytes();

	if (config->limit_bytes != UINT64_MAX && config->limit_bytes > memory)
		memory = config->limit_bytes;
	return 2 * (most < memory ? most : memory);
}

static uint64_t region_bytes(const struct store_config *config, enum image_region region)
{
	uint64_t granules = config->max_size_bytes >> GRANULE_SHIFT;
	uint64_t in_flight = (uint64_t)(config->slots + config->io_threads + config->compress_threads + 1) *
			     (config->unit_bytes >> GRANULE_SHIFT);

	switch (region) {
	case REGION_MAP:
		return granules * sizeof(map_word);
	case REGION_RECORDS:
		return (granules + in_flight + 1) * sizeof(struct record);
	case REGION_SLOTS:
		return config->slots * sizeof(struct slot_header);
	case REGION_STAGING:
		return (uint64_t)config->slots * config->unit_bytes;
	case REGION_SCRATCH:
		return config->compress_threads * scratch_worker_bytes(config->unit_bytes) + config->unit_bytes +
		       config->io_threads * scratch_io_bytes(config->unit_bytes);
	case REGION_STATS:
		return stats_page_bytes(config->io_threads, config->compress_threads);
	case REGION_REQUESTS:
		return config->io_threads * GRANULE_BYTES;
	case REGION_ARENA:
		return arena_address_bytes(config);
	case REGION_COUNT:
		break;
	}
	return 0;
}

static uint64_t superblock_sum(const struct superblock *super)
{
	return sum64(super, offsetof(struct superblock, sum));
}

int image_format(int fd, const struct store_config *config)
{
	struct superblock super = {
		.magic = IMAGE_MAGIC,
		.version = IMAGE_VERSION,
		.bytes = sizeof(super),
		.max_size_bytes = config->max_size_bytes,
		.reserve_bytes = config->reserve_bytes,
		.unit_bytes = config->unit_bytes,
		.slots = config->slots,
		.io_threads = config->io_threads,
		.compress_threads = config->compress_threads,
		.size_bytes = config->size_bytes,
		.limit_bytes = config->limit_bytes,
		.codec_level = codec_level_pack(config->codec, config->level),
		.frame_bytes = config->frame_bytes,
		.frame_largest_bytes = config->frame_bytes,
	};
	struct slot_header free_slot = {.unit = SLOT_UNIT_NONE};
	uint64_t offset = IMAGE_ALIGN;

	for (int region = 0; region < REGION_COUNT; region++) {
		super.region[region].offset = offset;
		super.region[region].bytes = region_bytes(config, (enum image_region)region);
		offset += round_up_u64(super.region[region].bytes, IMAGE_ALIGN);
	}
	super.sum = superblock_sum(&super);
	if (offset > INT64_MAX)
		return -EFBIG;
	if (ftruncate(fd, (off_t)offset) < 0)
		return -errno;
	for (unsigned slot = 0; slot < config->slots; slot++) {
		off_t at = (off_t)(super.region[REGION_SLOTS].offset + slot * sizeof(free_slot));

		if (pwrite(fd, &free_slot, sizeof(free_slot), at) != sizeof(free_slot))
			return -EIO;
	}
	if (pwrite(fd, &super, sizeof(super), 0) != sizeof(super))
		return -EIO;
	return 0;
}

/* The fixed part: sum, then every region where this program would have put it. */
static int superblock_check_fixed(const struct superblock *super, uint64_t file_bytes)
{
	struct store_config config = {
		.size_bytes = super->size_bytes,
		.max_size_bytes = super->max_size_bytes,
		.reserve_bytes = super->reserve_bytes,
		.limit_bytes = super->limit_bytes,
		.unit_bytes = super->unit_bytes,
		.frame_bytes = super->frame_bytes,
		.codec = codec_level_codec(super->codec_level),
		.level = codec_level_level(super->codec_level),
		.slots = super->slots,
		.io_threads = super->io_threads,
		.compress_threads = super->compress_threads,
	};
	uint64_t end = IMAGE_ALIGN;

	if (super->magic != IMAGE_MAGIC || super->version != IMAGE_VERSION || super->bytes != sizeof(*super) ||
		(super->features & ~IMAGE_FEATURES_KNOWN) || super->sum != superblock_sum(super))
		return -EPROTO;
	if (store_config_problem(&config))
		return -EPROTO;
	for (int region = 0; region < REGION_COUNT; region++) {
		const struct image_extent *extent = &super->region[region];

		/* The arena's length came from the machine it was made on; all others follow from the configuration. */
		if (extent->offset != end || extent->bytes > file_bytes - extent->offset ||
			(region != REGION_ARENA && extent->bytes != region_bytes(&config, (enum image_region)region)))
			return -EPROTO;
		end += round_up_u64(extent->bytes, IMAGE_ALIGN);
		if (end > file_bytes)
			return -EPROTO;
	}
	return 0;
}

static int superblock_check(const struct superblock *super, uint64_t file_bytes)
{
	uint32_t largest = super->frame_largest_bytes;
	int result = superblock_check_fixed(super, file_bytes);

	if (result < 0)
		return result;
	if (largest < super->frame_bytes || largest > super->unit_bytes || (largest & (largest - 1)))
		return -EPROTO;
	return 0;
}

static void *region_start(const struct image *image, enum image_region region)
{
	return image->base + image->super->region[region].offset;
}

static void image_set_regions(struct image *image)
{
	image->map = region_start(image, REGION_MAP);
	image->records = region_start(image, REGION_RECORDS);
	image->slots = region_start(image, REGION_SLOTS);
	image->staging = region_start(image, REGION_STAGING);
	image->scratch = region_start(image, REGION_SCRATCH);
	image->arena = region_start(image, REGION_ARENA);
	image->records_max = image->super->region[REGION_RECORDS].bytes / sizeof(struct record);
	if (image->records_max > MAP_LOST)
		image->records_max = MAP_LOST;
	image->arena_bytes = image->super->region[REGION_ARENA].bytes & ~(IMAGE_ALIGN - 1);
}

/* Checks through a private copy: the file may be anybody's until it has passed. */
static int image_check_file(int fd, uint64_t *ret_bytes)
{
	struct superblock super;
	struct stat status;
	int result;

	if (fstat(fd, &status) < 0)
		return -errno;
	if (pread(fd, &super, sizeof(super), 0) != sizeof(super))
		return -EPROTO;
	result = superblock_check(&super, (uint64_t)status.st_size);
	if (result == 0)
		*ret_bytes = (uint64_t)status.st_size;
	return result;
}

int image_map(struct image *image, int fd)
{
	uint64_t bytes;
	int result = image_check_file(fd, &bytes);

	if (result < 0)
		return result;
	/* MAP_NORESERVE: the sparse regions are far larger than what will be populated. */
	image->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (image->base == MAP_FAILED)
		return -errno;
	image->bytes = bytes;
	image->fd = fd;
	image->super = (struct superblock *)image->base;
	image_set_regions(image);
	/* Swapped contents do not belong into anybody's core dump. */
	madvise(image->base, bytes, MADV_DONTDUMP);
	return 0;
}

void image_unmap(struct image *image)
{
	if (image->base)
		munmap(image->base, image->bytes);
	image->base = NULL;
}

int image_populate(const struct image *image, const void *start, uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t from = (uint64_t)((const uint8_t *)start - image->base) & ~(page - 1);
	uint64_t to = round_up_u64((uint64_t)((const uint8_t *)start - image->base) + bytes, page);

	return madvise(image->base + from, to - from, MADV_POPULATE_WRITE) < 0 ? -errno : 0;
}

int image_punch(const struct image *image, const void *start, uint64_t bytes)
{
	off_t offset = (const uint8_t *)start - image->base;

	return fallocate(image->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, (off_t)bytes) < 0 ? -errno : 0;
}
