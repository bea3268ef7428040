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

#define REWRITE_BUFFERS 2

static uint64_t direct_payload_bytes(void)
{
	return round_up_u64(frame_payload_max_bytes(SCRATCH_DIRECT_BYTES), GRANULE_BYTES);
}

/* A whole unit stored raw, with the table of the smallest frames. */
static uint64_t payload_bytes(uint64_t unit_bytes)
{
	return round_up_u64(frame_payload_max_bytes(unit_bytes), GRANULE_BYTES);
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
		return config->io_threads * direct_payload_bytes() +
		       config->compress_threads * payload_bytes(config->unit_bytes) +
		       (REWRITE_BUFFERS + scratch_small_entries(config->io_threads)) * SCRATCH_FRAME_BYTES;
	case REGION_LARGE:
		return (REWRITE_BUFFERS + scratch_large_entries(config->io_threads)) * (uint64_t)config->unit_bytes;
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

/* The small regions before staging follow one another; the others have huge pages of their own. */
static uint64_t region_align(int region)
{
	return region < REGION_STAGING ? GRANULE_BYTES : IMAGE_ALIGN;
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
	uint64_t offset = GRANULE_BYTES;

	for (int region = 0; region < REGION_COUNT; region++) {
		offset = round_up_u64(offset, region_align(region));
		super.region[region].offset = offset;
		super.region[region].bytes = region_bytes(config, (enum image_region)region);
		offset += super.region[region].bytes;
	}
	offset = round_up_u64(offset, IMAGE_ALIGN);
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

void image_config(const struct superblock *super, struct store_config *ret)
{
	*ret = (struct store_config){
		.size_bytes = super->size_bytes,
		.max_size_bytes = super->max_size_bytes,
		.limit_bytes = super->limit_bytes,
		.reserve_bytes = super->reserve_bytes,
		.unit_bytes = super->unit_bytes,
		.frame_bytes = super->frame_bytes,
		.codec = codec_level_codec(super->codec_level),
		.level = codec_level_level(super->codec_level),
		.slots = super->slots,
		.io_threads = super->io_threads,
		.compress_threads = super->compress_threads,
	};
}

/* The fixed part: sum, then every region where this program would have put it. */
static int superblock_check_fixed(const struct superblock *super, uint64_t file_bytes)
{
	struct store_config config;
	uint64_t end = GRANULE_BYTES;

	if (super->magic != IMAGE_MAGIC || super->version != IMAGE_VERSION || super->bytes != sizeof(*super) ||
		(super->features & ~IMAGE_FEATURES_KNOWN) || super->sum != superblock_sum(super))
		return -EPROTO;
	image_config(super, &config);
	if (store_config_problem(&config))
		return -EPROTO;
	for (int region = 0; region < REGION_COUNT; region++) {
		const struct image_extent *extent = &super->region[region];

		end = round_up_u64(end, region_align(region));
		/* The arena's length came from the machine it was made on; all others follow from the configuration. */
		if (extent->offset != end || end > file_bytes || extent->bytes > file_bytes - end ||
			(region != REGION_ARENA && extent->bytes != region_bytes(&config, (enum image_region)region)))
			return -EPROTO;
		end += extent->bytes;
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
	image->large = region_start(image, REGION_LARGE);
	image->arena = region_start(image, REGION_ARENA);
	image->records_max = image->super->region[REGION_RECORDS].bytes / sizeof(struct record);
	if (image->records_max > MAP_LOST)
		image->records_max = MAP_LOST;
	image->arena_bytes = image->super->region[REGION_ARENA].bytes & ~(IMAGE_ALIGN - 1);
}

/* Checks through a private copy: the file may be anybody's until it has passed. */
static int image_check_file(int fd, struct stat *status)
{
	struct superblock super;

	if (fstat(fd, status) < 0)
		return -errno;
	if (pread(fd, &super, sizeof(super), 0) != sizeof(super))
		return -EPROTO;
	return superblock_check(&super, (uint64_t)status->st_size);
}

int image_map(struct image *image, int fd)
{
	struct stat status;
	int result = image_check_file(fd, &status);
	uint64_t bytes;

	if (result < 0)
		return result;
	bytes = (uint64_t)status.st_size;
	/* MAP_NORESERVE: the sparse regions are far larger than what will be populated. */
	image->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (image->base == MAP_FAILED)
		return -errno;
	image->bytes = bytes;
	/* tmpfs says its huge page size here when it uses them. */
	image->page_bytes = (uint64_t)status.st_blksize == IMAGE_ALIGN ? IMAGE_ALIGN : GRANULE_BYTES;
	image->fd = fd;
	image->super = (struct superblock *)image->base;
	image_set_regions(image);
	/* Swapped contents do not belong into anybody's core dump. */
	madvise(image->base, bytes, MADV_DONTDUMP);
	return 0;
}

int image_check(const struct image *image)
{
	return superblock_check(image->super, image->bytes);
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

bool image_has(const struct image *image, const void *start, uint64_t bytes)
{
	off_t from = (const uint8_t *)start - image->base;

	return lseek(image->fd, from, SEEK_DATA) == from && lseek(image->fd, from, SEEK_HOLE) >= from + (off_t)bytes;
}

uint64_t image_next(const struct image *image, const void *start, uint64_t bytes)
{
	off_t from = (const uint8_t *)start - image->base, found = lseek(image->fd, from, SEEK_DATA);

	return found < from || (uint64_t)(found - from) > bytes ? bytes : (uint64_t)(found - from);
}

int image_visit_fixed(
	const struct image *image, int (*visit)(const struct image *image, const void *start, uint64_t bytes))
{
	const struct superblock *super = image->super;
	int result = visit(image, super, GRANULE_BYTES);

	if (result == 0)
		result = visit(image, image->map, (super->size_bytes >> GRANULE_SHIFT) * sizeof(map_word));
	for (int region = REGION_SLOTS; region <= REGION_STAGING && result == 0; region++)
		result = visit(image, image->base + super->region[region].offset, super->region[region].bytes);
	if (result == 0 && super->frame_largest_bytes > SCRATCH_FRAME_BYTES)
		result = visit(image, image->large, super->region[REGION_LARGE].bytes);
	return result;
}

uint8_t *scratch_direct_payload(const struct image *image, unsigned io)
{
	return image->scratch + io * direct_payload_bytes();
}

uint8_t *scratch_payload(const struct image *image, unsigned worker)
{
	return scratch_direct_payload(image, image->super->io_threads) +
	       worker * payload_bytes(image->super->unit_bytes);
}

uint8_t *scratch_rewrite(const struct image *image, unsigned index, uint64_t frame_bytes)
{
	const struct superblock *super = image->super;

	if (frame_bytes <= SCRATCH_FRAME_BYTES)
		return scratch_payload(image, super->compress_threads) + index * SCRATCH_FRAME_BYTES;
	return image->large + index * (uint64_t)super->unit_bytes;
}

uint8_t *scratch_small_cache(const struct image *image)
{
	return scratch_rewrite(image, REWRITE_BUFFERS, SCRATCH_FRAME_BYTES);
}

uint8_t *scratch_large_cache(const struct image *image)
{
	return image->large + REWRITE_BUFFERS * (uint64_t)image->super->unit_bytes;
}
