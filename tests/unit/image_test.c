// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The image: what is laid out is found again; what is not an image, is cut
 * short, or is of another version is refused before a byte of it is touched.
 */
#include "store_fixture.h"
#include "sum.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static struct superblock read_super(int fd)
{
	struct superblock super;

	assert_int_equal(pread(fd, &super, sizeof(super), 0), sizeof(super));
	return super;
}

static void write_super(int fd, const struct superblock *super)
{
	assert_int_equal(pwrite(fd, super, sizeof(*super), 0), sizeof(*super));
}

/* As a writer of another version would leave it: the sum is right. */
static void write_super_summed(int fd, struct superblock *super)
{
	super->sum = sum64(super, offsetof(struct superblock, sum));
	write_super(fd, super);
}

/* A device of one unit and a bit with known content, closed again. */
static int populated_image(struct store_config *config)
{
	uint8_t *data = malloc(config->unit_bytes);
	struct store *store;
	int fd;

	assert_non_null(data);
	fd = fixture_format(config);
	store = fixture_open(fd);
	stamp_fill_range(data, 0, config->unit_bytes / GRANULE_BYTES, stamp_make(1, STAMP_HALF));
	assert_int_equal(store_write(store_io(store, 0), 0, config->unit_bytes / GRANULE_BYTES, data), 0);
	assert_int_equal(store_flush(store, FIXTURE_WAIT_NS), 0);
	store_close(store);
	free(data);
	return fd;
}

static uint64_t image_hash(int fd)
{
	static uint8_t buffer[256 * KIB];
	uint64_t sum = fixture_file_bytes(fd);
	off_t at = 0, hole = 0;

	/* Holes are skipped: the address space is far larger than what is there. */
	for (;;) {
		ssize_t got;

		at = at < hole ? at : lseek(fd, at, SEEK_DATA);
		if (at < 0)
			return sum;
		hole = lseek(fd, at, SEEK_HOLE);
		got = pread(fd, buffer, hole - at < (off_t)sizeof(buffer) ? (size_t)(hole - at) : sizeof(buffer), at);
		assert_true(got > 0);
		sum = (sum ^ sum64(buffer, (size_t)got) ^ (uint64_t)at) * UINT64_C(0x9e3779b97f4a7c15);
		at += got;
	}
}

/* Refused with this answer, the image as it was, and no memory taken. */
static void expect_refused(int fd, int answer, const char *what)
{
	struct store *store = (struct store *)&answer;
	uint64_t hash = image_hash(fd), memory = fixture_file_memory(fd);
	int result = store_open(&store, fd);

	if (result != answer)
		fail_msg("%s: answer %d, expected %d", what, result, answer);
	assert_ptr_equal(store, &answer);
	if (image_hash(fd) != hash || fixture_file_memory(fd) != memory)
		fail_msg("%s: the image was touched", what);
}

static void layout(void **state)
{
	static const uint64_t units[] = {64 * KIB, 2 * MIB, 16 * MIB};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct store_config config = fixture_config(units[i], units[i], 3 * units[i] + 5 * GRANULE_BYTES), got;
		struct superblock super;
		struct store *store;
		uint64_t end = sizeof(struct superblock);
		int fd;

		config.max_size_bytes = 4 * config.size_bytes;
		config.reserve_bytes = 4 * MIB;
		config.limit_bytes = fixture_limit(config, 64 * MIB);
		config.codec = CODEC_ZSTD;
		config.level = -3;
		config.slots = 3;
		config.io_threads = 5;
		config.compress_threads = 2;
		fd = fixture_format(&config);
		/* Next to nothing is used before the store is opened. */
		assert_true(fixture_file_memory(fd) <= 64 * KIB);
		super = read_super(fd);
		for (unsigned region = 0; region < REGION_COUNT; region++) {
			/* Small regions share huge pages; from the slots' bytes on each has its own. */
			assert_int_equal(
				super.region[region].offset % (region < REGION_STAGING ? GRANULE_BYTES : IMAGE_ALIGN),
				0);
			assert_true(super.region[region].offset >= end);
			assert_true(super.region[region].bytes > 0);
			end = super.region[region].offset + super.region[region].bytes;
		}
		assert_true(end <= fixture_file_bytes(fd));
		assert_int_equal(super.region[REGION_MAP].bytes, config.max_size_bytes / GRANULE_BYTES * 4);
		assert_int_equal(super.region[REGION_STAGING].bytes, config.slots * units[i]);

		store = fixture_open(fd);
		store_get_config(store, &got);
		assert_int_equal(got.size_bytes, config.size_bytes);
		assert_int_equal(got.max_size_bytes, config.max_size_bytes);
		assert_int_equal(got.limit_bytes, config.limit_bytes);
		assert_int_equal(got.reserve_bytes, config.reserve_bytes);
		assert_int_equal(got.unit_bytes, config.unit_bytes);
		assert_int_equal(got.frame_bytes, config.frame_bytes);
		assert_int_equal(got.codec, config.codec);
		assert_int_equal(got.level, config.level);
		assert_int_equal(got.slots, config.slots);
		assert_int_equal(got.io_threads, config.io_threads);
		assert_int_equal(got.compress_threads, config.compress_threads);
		assert_int_equal(store_stats_offset(store), super.region[REGION_STATS].offset);
		assert_true(store_stats_bytes(store) <= super.region[REGION_STATS].bytes);
		fixture_check(store, "new image");
		store_close(store);
		close(fd);
	}
}

/* Everything that a request touches without asking is there after open. */
static void populated_at_open(void **state)
{
	struct store_config config = fixture_config(2 * MIB, 64 * KIB, 64 * MIB);
	int fd = fixture_format(&config);
	struct store *store = fixture_open(fd);
	const struct superblock *super = store->image.super;
	static const enum image_region regions[] = {
		REGION_MAP, REGION_SLOTS, REGION_STAGING, REGION_STATS, REGION_REQUESTS};

	(void)state;
	for (unsigned i = 0; i < sizeof(regions) / sizeof(regions[0]); i++) {
		const struct image_extent *extent = &super->region[regions[i]];
		off_t hole = lseek(fd, (off_t)extent->offset, SEEK_HOLE);

		assert_true((uint64_t)hole >= extent->offset + extent->bytes);
	}
	store_close(store);
	close(fd);
}

static void every_byte_of_the_superblock(void **state)
{
	struct store_config config = fixture_config(64 * KIB, 16 * KIB, 64 * KIB + 3 * GRANULE_BYTES);
	struct superblock good;
	int fd, opened = 0;

	(void)state;
	config.max_size_bytes = 128 * KIB;
	fd = populated_image(&config);
	good = read_super(fd);
	for (size_t at = 0; at < sizeof(good); at++) {
		for (unsigned change = 0; change < 4; change++) {
			static const uint8_t masks[] = {0x01, 0x80, 0xff, 0x10};
			struct superblock bad = good;
			struct store_config got;
			struct store *store;
			char what[64];
			int result;

			((uint8_t *)&bad)[at] ^= masks[change];
			write_super(fd, &bad);
			snprintf(what, sizeof(what), "byte %zu ^ 0x%02x", at, masks[change]);
			if (at < offsetof(struct superblock, size_bytes)) {
				expect_refused(fd, -EPROTO, what);
				continue;
			}
			/* Changed while running, so not under the sum: refused, or a configuration that is possible. */
			result = store_open(&store, fd);
			if (result != 0) {
				if (result != -EPROTO)
					fail_msg("%s: answer %d", what, result);
				continue;
			}
			store_get_config(store, &got);
			assert_null(store_config_problem(&got));
			assert_true(store->image.super->frame_largest_bytes >= got.frame_bytes);
			fixture_check(store, what);
			store_close(store);
			opened++;
			/* A smaller device may have given up what lay beyond its end: fresh for the next. */
			close(fd);
			fd = populated_image(&config);
		}
	}
	assert_true(opened > 0);
	write_super(fd, &good);
	store_close(fixture_open(fd));
	close(fd);
}

static void version_and_features(void **state)
{
	struct store_config config = fixture_config(64 * KIB, 16 * KIB, 128 * KIB);
	int fd = populated_image(&config);
	const struct superblock good = read_super(fd);
	struct superblock bad;

	(void)state;
	for (uint32_t version = 0; version < 5; version++) {
		bad = good;
		bad.version = version;
		write_super_summed(fd, &bad);
		if (version != IMAGE_VERSION)
			expect_refused(fd, -EPROTO, "version");
	}
	for (unsigned bit = 0; bit < 64; bit++) {
		bad = good;
		bad.features = UINT64_C(1) << bit;
		write_super_summed(fd, &bad);
		if (bad.features & ~IMAGE_FEATURES_KNOWN)
			expect_refused(fd, -EPROTO, "feature");
	}
	bad = good;
	bad.magic++;
	write_super_summed(fd, &bad);
	expect_refused(fd, -EPROTO, "magic");
	bad = good;
	bad.bytes += 8;
	write_super_summed(fd, &bad);
	expect_refused(fd, -EPROTO, "superblock length");
	write_super(fd, &good);
	store_close(fixture_open(fd));
	close(fd);
}

/* A sum over nonsense does not make it sense. */
static void regions_must_lie_where_they_belong(void **state)
{
	struct store_config config = fixture_config(64 * KIB, 16 * KIB, 128 * KIB);
	int fd = populated_image(&config);
	const struct superblock good = read_super(fd);

	(void)state;
	for (unsigned region = 0; region < REGION_COUNT; region++) {
		const uint64_t offsets[] = {0, 1, UINT64_MAX, UINT64_MAX - IMAGE_ALIGN + 1,
			good.region[region].offset + IMAGE_ALIGN, good.region[region].offset - IMAGE_ALIGN};
		const uint64_t lengths[] = {
			0, UINT64_MAX, UINT64_MAX - good.region[region].offset + 1, fixture_file_bytes(fd), INT64_MAX};
		struct superblock bad;

		for (unsigned i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
			bad = good;
			bad.region[region].offset = offsets[i];
			write_super_summed(fd, &bad);
			expect_refused(fd, -EPROTO, "offset");
		}
		for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			struct store *store;
			int result;

			bad = good;
			bad.region[region].bytes = lengths[i];
			write_super_summed(fd, &bad);
			/* An arena of no bytes is known only when its pool is made. */
			result = store_open(&store, fd);
			if (result != -EPROTO && !(region == REGION_ARENA && result == -EINVAL))
				fail_msg("length %u of region %u: answer %d", i, region, result);
		}
	}
	close(fd);
}

static void truncated_files(void **state)
{
	struct store_config config = fixture_config(64 * KIB, 16 * KIB, 128 * KIB);
	int fd = populated_image(&config);
	const struct superblock super = read_super(fd);
	uint64_t whole = fixture_file_bytes(fd);

	(void)state;
	for (int region = REGION_COUNT - 1; region >= 0; region--) {
		assert_int_equal(
			ftruncate(fd, (off_t)(super.region[region].offset + super.region[region].bytes - 1)), 0);
		expect_refused(fd, -EPROTO, "end of a region");
		assert_int_equal(ftruncate(fd, (off_t)super.region[region].offset), 0);
		expect_refused(fd, -EPROTO, "begin of a region");
	}
	for (uint64_t bytes = sizeof(super) + 8; bytes > 0; bytes -= bytes > 64 ? 8 : 1) {
		assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
		expect_refused(fd, -EPROTO, "superblock");
	}
	assert_int_equal(ftruncate(fd, 0), 0);
	expect_refused(fd, -EPROTO, "nothing");
	/* Long enough, but nothing in it. */
	assert_int_equal(ftruncate(fd, (off_t)whole), 0);
	expect_refused(fd, -EPROTO, "zeros");
	close(fd);
}

static void other_files(void **state)
{
	struct store *store;
	uint8_t random[8192];
	uint64_t seed = random_seed(3);
	int fd = memfd_create("image", MFD_CLOEXEC), ends[2];

	(void)state;
	for (size_t i = 0; i < sizeof(random); i++)
		random[i] = (uint8_t)random_next(&seed);
	assert_int_equal(pwrite(fd, random, sizeof(random), 0), sizeof(random));
	expect_refused(fd, -EPROTO, "random bytes");
	close(fd);
	assert_true(store_open(&store, -1) < 0);
	assert_int_equal(pipe(ends), 0);
	assert_true(store_open(&store, ends[0]) < 0);
	close(ends[0]);
	close(ends[1]);
}

static void impossible_configurations(void **state)
{
	const struct store_config good = fixture_config(64 * KIB, 16 * KIB, MIB);
	struct store_config config;
	struct store *store;
	int fd = memfd_create("image", MFD_CLOEXEC);

	(void)state;
#define EXPECT_IMPOSSIBLE(field, value) \
	do { \
		config = good; \
		config.field = (value); \
		assert_non_null(store_config_problem(&config)); \
		assert_int_equal(store_format(fd, &config), -EINVAL); \
		assert_int_equal(fixture_file_bytes(fd), 0); \
	} while (0)
	assert_null(store_config_problem(&good));
	EXPECT_IMPOSSIBLE(unit_bytes, 0);
	EXPECT_IMPOSSIBLE(unit_bytes, 4096);
	EXPECT_IMPOSSIBLE(unit_bytes, 128 * KIB);
	EXPECT_IMPOSSIBLE(unit_bytes, 32 * MIB);
	EXPECT_IMPOSSIBLE(frame_bytes, 0);
	EXPECT_IMPOSSIBLE(frame_bytes, 2048);
	EXPECT_IMPOSSIBLE(frame_bytes, 12 * KIB);
	EXPECT_IMPOSSIBLE(frame_bytes, 128 * KIB);
	EXPECT_IMPOSSIBLE(size_bytes, 0);
	EXPECT_IMPOSSIBLE(size_bytes, 60 * KIB);
	EXPECT_IMPOSSIBLE(size_bytes, MIB - 512);
	EXPECT_IMPOSSIBLE(size_bytes, MIB + GRANULE_BYTES);
	EXPECT_IMPOSSIBLE(max_size_bytes, MIB + 512);
	EXPECT_IMPOSSIBLE(max_size_bytes, UINT64_MAX & ~(GRANULE_BYTES - 1));
	EXPECT_IMPOSSIBLE(limit_bytes, 0);
	EXPECT_IMPOSSIBLE(limit_bytes, MIB);
	EXPECT_IMPOSSIBLE(reserve_bytes, UINT64_MAX);
	EXPECT_IMPOSSIBLE(codec, CODEC_COUNT);
	EXPECT_IMPOSSIBLE(level, 0);
	EXPECT_IMPOSSIBLE(level, 1000000);
	EXPECT_IMPOSSIBLE(slots, 0);
	EXPECT_IMPOSSIBLE(slots, STORE_SLOTS_MAX + 1);
	EXPECT_IMPOSSIBLE(io_threads, 0);
	EXPECT_IMPOSSIBLE(io_threads, STORE_THREADS_MAX + 1);
	EXPECT_IMPOSSIBLE(compress_threads, 0);
	EXPECT_IMPOSSIBLE(compress_threads, STORE_THREADS_MAX + 1);
#undef EXPECT_IMPOSSIBLE
	assert_int_equal(store_open(&store, fd), -EPROTO);
	close(fd);
}

/* The statistics are not worth the device: whatever their header says, it opens, and nothing outside is written. */
static void damaged_statistics(void **state)
{
	struct store_config config = fixture_config(64 * KIB, 16 * KIB, 128 * KIB);
	int fd = populated_image(&config);
	const struct superblock super = read_super(fd);
	uint64_t random = random_seed(11);
	uint8_t data[GRANULE_BYTES];

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		struct stats_page page;
		struct store *store;
		off_t at = (off_t)super.region[REGION_STATS].offset;

		assert_int_equal(pread(fd, &page, sizeof(page), at), sizeof(page));
		for (unsigned i = 0; i < 1 + round % 3; i++) {
			uint32_t *word = (uint32_t *)&page + random_below(&random, 12);

			*word = round % 4 ? (uint32_t)random_next(&random) : (uint32_t)random_below(&random, 4);
		}
		assert_int_equal(pwrite(fd, &page, sizeof(page), at), sizeof(page));
		store = fixture_open(fd);
		assert_int_equal(store_stats(store)->io_threads, config.io_threads);
		assert_int_equal(store_stats(store)->workers, config.compress_threads);
		assert_int_equal(stats_page_check(store_stats(store), super.region[REGION_STATS].bytes), 0);
		assert_int_equal(store_read(store_io(store, 1), 5, 1, data), 0);
		assert_true(stamp_is(data, 5, stamp_make(1, STAMP_HALF)));
		fixture_check(store, "after damaged statistics");
		store_close(store);
	}
	close(fd);
}

/* ---- settings that are killed on their way ---- */

static void *super_page;
static size_t super_page_bytes;

/* A store to the superblock: let it happen, under the eyes of the parent. */
static void on_store(int signal)
{
	(void)signal;
	mprotect(super_page, super_page_bytes, PROT_READ | PROT_WRITE);
	raise(SIGSTOP);
}

static void on_stored(int signal)
{
	(void)signal;
	mprotect(super_page, super_page_bytes, PROT_READ);
}

static void change_settings(int fd)
{
	struct store *store;

	if (store_open(&store, fd) != 0)
		_exit(1);
	super_page = store->image.base;
	super_page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	signal(SIGSEGV, on_store);
	signal(SIGUSR2, on_stored);
	raise(SIGUSR2);
	/* Levels that the other codec does not have. */
	if (store_set_codec(store, CODEC_LZ4, 60000) != 0 || store_set_codec(store, CODEC_ZSTD, -7) != 0 ||
		store_set_codec(store, CODEC_LZ4HC, 12) != 0 || store_set_frame(store, 64 * KIB) != 0 ||
		store_set_frame(store, 4 * KIB) != 0 || store_set_limit(store, UINT64_C(1) << 40) != 0 ||
		store_set_limit(store, UINT64_MAX) != 0)
		_exit(1);
	_exit(0);
}

/* Lets the child run to its next store and past it. Returns its status; what the superblock is then goes to *ret. */
static int next_store(pid_t child, const struct superblock *now, struct superblock *ret)
{
	struct superblock before = *now;
	int status, steps = 0;

	assert_int_equal(ptrace(PTRACE_CONT, child, NULL, SIGUSR2), 0);
	for (;;) {
		assert_int_equal(waitpid(child, &status, 0), child);
		if (!WIFSTOPPED(status))
			return status;
		/* Only once: it is the handler that stops, and leaves, and then the store is made. */
		if (WSTOPSIG(status) == SIGSEGV)
			assert_int_equal(ptrace(PTRACE_CONT, child, NULL, SIGSEGV), 0);
		else if (WSTOPSIG(status) != SIGSTOP && WSTOPSIG(status) != SIGTRAP)
			assert_int_equal(ptrace(PTRACE_CONT, child, NULL, WSTOPSIG(status)), 0);
		else if (memcmp(&before, now, sizeof(before)) != 0 || ++steps > 20000)
			break;
		else
			assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
	}
	*ret = *now;
	return status;
}

/*
 * A child changes the settings; every state of the superblock that it goes
 * through, store by store, is one that a kill could have left, and must open.
 */
static void settings_are_whole_after_every_store(void **state)
{
	struct store_config config = fixture_config(64 * KIB, 16 * KIB, 128 * KIB);
	int fd = populated_image(&config), status;
	const struct superblock *now = mmap(NULL, sizeof(*now), PROT_READ, MAP_SHARED, fd, 0);
	struct superblock seen[64];
	unsigned count = 0;
	pid_t child;

	(void)state;
	if (FIXTURE_IS_TSAN)
		skip();
	assert_true(now != MAP_FAILED);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		change_settings(fd);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	while (WIFSTOPPED(status) && count < 64)
		status = next_store(child, now, &seen[count++]);
	count--;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_true(count >= 8 && count < 63);
	for (unsigned i = 0; i < count; i++) {
		struct store *store;

		write_super(fd, &seen[i]);
		if (store_open(&store, fd) != 0)
			fail_msg("state %u of %u: codec_level 0x%llx frame %u largest %u limit %llu does not open", i,
				count, (unsigned long long)seen[i].codec_level, seen[i].frame_bytes,
				seen[i].frame_largest_bytes, (unsigned long long)seen[i].limit_bytes);
		fixture_check(store, "settings");
		store_close(store);
	}
	munmap((void *)now, sizeof(*now));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout),
		cmocka_unit_test(populated_at_open),
		cmocka_unit_test(every_byte_of_the_superblock),
		cmocka_unit_test(version_and_features),
		cmocka_unit_test(regions_must_lie_where_they_belong),
		cmocka_unit_test(truncated_files),
		cmocka_unit_test(other_files),
		cmocka_unit_test(impossible_configurations),
		cmocka_unit_test(damaged_statistics),
		cmocka_unit_test(settings_are_whole_after_every_store),
	};

	return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
