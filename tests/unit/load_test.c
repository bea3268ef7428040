// SPDX-License-Identifier: GPL-2.0-or-later
/* swapload's contents, verifier, memory capture, cgroup search and command line. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <lz4.h>
#include <zstd.h>

#include "load_capture.h"
#include "load_cgroup.h"
#include "load_content.h"
#include "load_heap.h"
#include "load_options.h"
#include "load_workload.h"

#define POOL_FOLIOS 4
#define SHAPE_FOLIOS 12

static uint64_t fnv_of(const uint8_t *bytes, size_t count)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < count; i++)
		sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
	return sum;
}

/* The sums were taken once; another compiler or machine must come to the same bytes. */
static void test_generators_are_the_same_everywhere(void **state)
{
	static const struct {
		int (*generate)(uint64_t seed, uint64_t number, uint8_t *folio);
		uint64_t sum;
	} cases[] = {
		{load_generate_synthetic, UINT64_C(0x34760b1b93a68eaf)},
		{load_generate_text, UINT64_C(0x6fc8a474deae25d5)},
		{load_generate_random, UINT64_C(0x470584757c93abeb)},
	};
	uint8_t *folio = malloc(LOAD_FOLIO_BYTES);

	(void)state;
	assert_non_null(folio);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(cases[i].generate(1, 0, folio), 0);
		assert_int_equal(fnv_of(folio, LOAD_FOLIO_BYTES), cases[i].sum);
		assert_int_equal(cases[i].generate(1, 1, folio), 0);
		assert_int_not_equal(fnv_of(folio, LOAD_FOLIO_BYTES), cases[i].sum);
		assert_int_equal(cases[i].generate(2, 0, folio), 0);
		assert_int_not_equal(fnv_of(folio, LOAD_FOLIO_BYTES), cases[i].sum);
	}
	free(folio);
}

static size_t zstd_bytes(const uint8_t *from, size_t bytes, uint8_t *to)
{
	return ZSTD_compress(to, ZSTD_compressBound(LOAD_FOLIO_BYTES), from, bytes, 3);
}

static size_t lz4_bytes(const uint8_t *from, size_t bytes, uint8_t *to)
{
	return (size_t)LZ4_compress_default(
		(const char *)from, (char *)to, (int)bytes, (int)ZSTD_compressBound(LOAD_FOLIO_BYTES));
}

static double ratio_of(
	size_t (*compress)(const uint8_t *, size_t, uint8_t *), const uint8_t *bytes, size_t count, size_t unit_bytes)
{
	uint8_t *to = malloc(ZSTD_compressBound(LOAD_FOLIO_BYTES));
	size_t sum = 0, one;

	assert_non_null(to);
	for (size_t at = 0; at < count; at += unit_bytes) {
		one = compress(bytes + at, unit_bytes, to);
		sum += one < unit_bytes ? one : unit_bytes;
	}
	free(to);
	return (double)count / (double)sum;
}

static void content_make(const char *name, size_t folios, struct load_content *ret_content)
{
	const struct load_content_kind *kind = load_content_kind_find(name);

	assert_non_null(kind);
	assert_int_equal(load_content_init(kind, 1, folios * LOAD_FOLIO_BYTES, ret_content), 0);
	assert_int_equal(ret_content->pool_folios, folios);
}

/* As the workloads write it, stamps included. */
static uint8_t *written(const struct load_content *content, size_t folios)
{
	uint8_t *bytes = malloc(folios * LOAD_FOLIO_BYTES);

	assert_non_null(bytes);
	for (uint64_t page = 0; page < folios * LOAD_FOLIO_PAGES; page++)
		load_content_write(
			content, (struct load_page_id){.page = page, .version = 1}, bytes + page * LOAD_PAGE_BYTES);
	return bytes;
}

static void assert_near(double value, double wanted, double share)
{
	if (value < wanted * (1 - share) || value > wanted * (1 + share))
		fail_msg("%.2f is not within %.0f %% of %.2f", value, share * 100, wanted);
}

/* Seven process heaps were measured; 10 % leaves room for other versions of the libraries. */
static void test_synthetic_compresses_as_heaps_do(void **state)
{
	struct load_content content;
	size_t bytes = SHAPE_FOLIOS * LOAD_FOLIO_BYTES;
	double zstd_4k, zstd_64k, zstd_2m;
	uint8_t *memory;

	(void)state;
	content_make("synthetic", SHAPE_FOLIOS, &content);
	memory = written(&content, SHAPE_FOLIOS);
	zstd_4k = ratio_of(zstd_bytes, memory, bytes, 4096);
	zstd_64k = ratio_of(zstd_bytes, memory, bytes, 65536);
	zstd_2m = ratio_of(zstd_bytes, memory, bytes, LOAD_FOLIO_BYTES);
	assert_near(zstd_4k, 4.24, 0.1);
	assert_near(zstd_64k, 4.98, 0.1);
	assert_near(zstd_2m, 5.23, 0.1);
	assert_true(zstd_64k > zstd_4k * 1.1);
	assert_true(zstd_2m > zstd_64k * 1.02);
	assert_near(ratio_of(lz4_bytes, memory, bytes, 4096), 2.77, 0.1);
	assert_near(ratio_of(lz4_bytes, memory, bytes, 65536), 3.07, 0.1);
	assert_near(ratio_of(lz4_bytes, memory, bytes, LOAD_FOLIO_BYTES), 3.19, 0.1);
	free(memory);
	load_content_deinit(&content);
}

static void test_other_contents_compress_as_named(void **state)
{
	struct load_content content;
	uint8_t *memory;

	(void)state;
	content_make("random", 1, &content);
	memory = written(&content, 1);
	assert_true(ratio_of(zstd_bytes, memory, LOAD_FOLIO_BYTES, LOAD_FOLIO_BYTES) <= 1.001);
	free(memory);
	load_content_deinit(&content);

	content_make("text", 1, &content);
	memory = written(&content, 1);
	assert_true(ratio_of(zstd_bytes, memory, LOAD_FOLIO_BYTES, LOAD_FOLIO_BYTES) > 2);
	free(memory);
	load_content_deinit(&content);

	content_make("zero", 1, &content);
	memory = written(&content, 1);
	for (size_t i = 0; i < LOAD_FOLIO_BYTES; i++)
		assert_int_equal(memory[i], 0);
	free(memory);
	load_content_deinit(&content);
}

/* One wrong bit at each byte of a page in turn: found, and described as it is. */
static void flip_every_byte(const struct load_content *content, struct load_page_id id)
{
	uint8_t page[LOAD_PAGE_BYTES] = {0}, right;
	struct load_mismatch mismatch;

	if (id.version != LOAD_VERSION_NONE)
		load_content_write(content, id, page);
	assert_true(load_content_is_right(content, id, page));
	for (uint32_t i = 0; i < LOAD_PAGE_BYTES; i++) {
		right = page[i];
		page[i] ^= (uint8_t)(1U << (i % 8));
		assert_false(load_content_is_right(content, id, page));
		load_content_compare(content, id, page, &mismatch);
		assert_int_equal(mismatch.offset, i);
		assert_int_equal(mismatch.bytes, 1);
		assert_int_equal(mismatch.address, (uintptr_t)(page + i));
		assert_int_equal(mismatch.expected[0], right);
		assert_int_equal(mismatch.found[0], page[i]);
		page[i] = right;
	}
	assert_true(load_content_is_right(content, id, page));
}

static void test_every_flipped_byte_is_found(void **state)
{
	struct load_content content;

	(void)state;
	for (const struct load_content_kind *kind = load_content_kinds; kind->name; kind++) {
		if (kind->is_private)
			continue;
		content_make(kind->name, POOL_FOLIOS, &content);
		flip_every_byte(&content, (struct load_page_id){.page = 700, .region = 3, .version = 9});
		flip_every_byte(&content, (struct load_page_id){.page = 0, .region = 0, .version = LOAD_VERSION_NONE});
		load_content_deinit(&content);
	}
}

/* Right bytes in the wrong place, or from an earlier pass, are wrong; also where the pool holds a single folio. */
static void test_misplaced_and_stale_pages_are_found(void **state)
{
	static const struct load_page_id base = {.page = 1000, .region = 1, .version = 5};
	static const struct load_page_id others[] = {
		{.page = 1001, .region = 1, .version = 5},
		{.page = 1000 + LOAD_FOLIO_PAGES, .region = 1, .version = 5},
		{.page = 1000, .region = 2, .version = 5},
		{.page = 1000, .region = 1, .version = 4},
		{.page = 1000, .region = 1, .version = 5 + POOL_FOLIOS},
		{.page = 1000, .region = 1, .version = LOAD_VERSION_NONE},
	};
	struct load_content content;
	uint8_t page[LOAD_PAGE_BYTES];
	struct load_mismatch mismatch;
	struct load_page_id found;

	(void)state;
	for (size_t folios = 1; folios <= POOL_FOLIOS; folios += POOL_FOLIOS - 1) {
		content_make("synthetic", folios, &content);
		load_content_write(&content, base, page);
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
			assert_false(load_content_is_right(&content, others[i], page));
			load_content_compare(&content, others[i], page, &mismatch);
			found = load_stamp_parts(mismatch.found_stamp);
			assert_true(found.page == base.page && found.region == base.region &&
				    found.version == base.version);
		}
		load_content_deinit(&content);
	}
}

/* A folio's pages are neighbours in the pool, and the next version shares no page with this one. */
static void test_folios_stay_whole(void **state)
{
	struct load_content content;
	uint8_t page[LOAD_PAGE_BYTES];
	size_t folio_of_first = SIZE_MAX, folio;
	bool same;

	(void)state;
	content_make("synthetic", POOL_FOLIOS, &content);
	for (uint64_t i = 0; i < LOAD_FOLIO_PAGES; i++) {
		load_content_write(&content, (struct load_page_id){.page = i, .version = 1}, page);
		for (folio = 0; folio < POOL_FOLIOS; folio++) {
			same = memcmp(page + 8, content.pool + folio * LOAD_FOLIO_BYTES + i * LOAD_PAGE_BYTES + 8,
				       LOAD_PAGE_BYTES - 8) == 0;
			if (same)
				break;
		}
		assert_true(folio < POOL_FOLIOS);
		if (folio_of_first == SIZE_MAX)
			folio_of_first = folio;
		assert_int_equal(folio, folio_of_first);
		load_content_write(&content, (struct load_page_id){.page = i, .version = 2}, page);
		assert_int_not_equal(memcmp(page + 8, content.pool + folio * LOAD_FOLIO_BYTES + i * LOAD_PAGE_BYTES + 8,
					     LOAD_PAGE_BYTES - 8),
			0);
	}
	load_content_deinit(&content);
}

#define MARK UINT64_C(0x6d61726b00000000)
#define WHOLE_FOLIOS 3
#define HOLED_PAGES 512

static void mark(uint8_t *page, unsigned number)
{
	for (size_t i = 0; i < LOAD_PAGE_BYTES / 8; i++)
		((uint64_t *)page)[i] = MARK + number;
}

/* The child: three whole folios, then one with every fourth page missing, each page marked; waits to be stopped. */
static void hold_marked_memory(int ready_fd)
{
	size_t bytes = (WHOLE_FOLIOS + 2) * LOAD_FOLIO_BYTES;
	uint8_t *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (start == MAP_FAILED || madvise(start, bytes, MADV_NOHUGEPAGE) < 0)
		_exit(1);
	start = (uint8_t *)(uintptr_t)round_up_u64((uintptr_t)start, LOAD_FOLIO_BYTES);
	for (unsigned i = 0; i < WHOLE_FOLIOS * HOLED_PAGES; i++)
		mark(start + i * LOAD_PAGE_BYTES, i);
	for (unsigned i = WHOLE_FOLIOS * HOLED_PAGES; i < (WHOLE_FOLIOS + 1) * HOLED_PAGES; i++) {
		if (i % 4)
			mark(start + i * LOAD_PAGE_BYTES, i);
	}
	if (write(ready_fd, "", 1) == 1)
		pause();
	_exit(0);
}

static unsigned number_of(const uint8_t *page)
{
	uint64_t word = *(const uint64_t *)page;

	return word >= MARK && word < MARK + (WHOLE_FOLIOS + 1) * HOLED_PAGES ? (unsigned)(word - MARK) : UINT32_MAX;
}

/* All pages of the whole folios, then those of the one with holes, each once, in address order. */
static void check_captured(struct load_capture *capture)
{
	uint8_t *folio = malloc(LOAD_FOLIO_BYTES);
	unsigned next = 0, number;
	int got;

	assert_non_null(folio);
	while ((got = load_capture_next(capture, folio)) == 1) {
		for (size_t i = 0; i < LOAD_FOLIO_PAGES; i++) {
			number = number_of(folio + i * LOAD_PAGE_BYTES);
			if (number == UINT32_MAX)
				continue; /* other memory of the child */
			while (next >= WHOLE_FOLIOS * HOLED_PAGES && next % 4 == 0)
				next++;
			assert_int_equal(number, next);
			next++;
		}
	}
	assert_int_equal(got, 0);
	assert_true(next >= WHOLE_FOLIOS * HOLED_PAGES);
	free(folio);
}

static void test_capture_takes_whole_folios_first(void **state)
{
	struct load_capture *capture;
	int ready[2], error, status;
	char byte;
	pid_t pid;

	(void)state;
	if (sysconf(_SC_PAGESIZE) != (long)LOAD_PAGE_BYTES)
		skip();
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		hold_marked_memory(ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	error = load_capture_create(pid, &capture);
	if (error == 0) {
		check_captured(capture);
		load_capture_destroy(capture);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (error == -EACCES || error == -EPERM) {
		print_message("skipped: processes may not be traced here\n");
		skip();
	}
	assert_int_equal(error, 0);
}

/* Standard error is expected text here, not news. */
static int mute(void)
{
	int kept = dup(STDERR_FILENO), null_fd = open("/dev/null", O_WRONLY);

	dup2(null_fd, STDERR_FILENO);
	close(null_fd);
	return kept;
}

static void unmute(int kept)
{
	dup2(kept, STDERR_FILENO);
	close(kept);
}

static void test_heap_is_of_real_processes(void **state)
{
	uint8_t *pool = calloc(POOL_FOLIOS, LOAD_FOLIO_BYTES), *folio;
	int kept = mute();
	double ratio;
	long filled;

	(void)state;
	assert_non_null(pool);
	filled = load_heap_fill(pool, POOL_FOLIOS);
	unmute(kept);
	if (filled < 0) {
		free(pool);
		print_message("skipped: no process memory to be had here: %s\n", strerror((int)-filled));
		skip();
	}
	assert_in_range(filled, 1, POOL_FOLIOS);
	assert_true(strlen(load_heap_sources()) > 0);
	for (folio = pool; folio < pool + (size_t)filled * LOAD_FOLIO_BYTES; folio += LOAD_FOLIO_BYTES) {
		ratio = ratio_of(zstd_bytes, folio, LOAD_FOLIO_BYTES, LOAD_FOLIO_BYTES);
		assert_true(ratio > 1.2 && ratio < 100);
	}
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none of them is left */
	assert_int_equal(errno, ECHILD);
	free(pool);
}

static void test_heap_without_interpreters_says_so(void **state)
{
	char *path = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
	uint8_t *pool = malloc(LOAD_FOLIO_BYTES);
	int kept = mute();

	(void)state;
	setenv("PATH", "/nonexistent", 1);
	assert_int_equal(load_heap_fill(pool, 1), -ENOENT);
	setenv("PATH", path, 1);
	unmute(kept);
	free(path);
	free(pool);
}

static void test_cgroup_is_found(void **state)
{
	static const char hybrid[] =
		"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
		"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
		"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
	static const char unified[] =
		"30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
	static const char contained[] =
		"90 80 0:32 /docker/abc /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory\n";
	static const char other[] = "90 80 0:32 / /sys/fs/cgroup/x rw - cgroup cgroup rw,cpu,memoryless\n";
	static const struct {
		const char *self, *mounts, *path;
		unsigned version;
	} cases[] = {
		{"9:name=systemd:/\n4:cpu,memory:/user/1\n0::/\n", hybrid, "/sys/fs/cgroup/memory/user/1", 1},
		{"4:memory:/\n0::/\n", hybrid, "/sys/fs/cgroup/memory", 1},
		{"0::/user.slice/session-3.scope\n", unified, "/sys/fs/cgroup/user.slice/session-3.scope", 2},
		{"0::/\n", unified, "/sys/fs/cgroup", 2},
		{"7:cpu:/elsewhere\n0::/mine\n", unified, "/sys/fs/cgroup/mine", 2},
		{"4:memory:/docker/abc\n", contained, "/sys/fs/cgroup/memory", 1},
		{"4:memory:/docker/abc/sub\n", contained, "/sys/fs/cgroup/memory/sub", 1},
		{"4:memory:/docker/abcd\n", contained, "/sys/fs/cgroup/memory", 1},
		{"4:memory:/\n", other, NULL, 0},
		{"4:memoryless:/\n", other, NULL, 0},
		{"", unified, NULL, 0},
	};
	struct load_cgroup_place *place = malloc(sizeof(*place));
	int error;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		error = load_cgroup_find(cases[i].self, cases[i].mounts, place);
		assert_int_equal(error, cases[i].version ? 0 : -ENOENT);
		if (error)
			continue;
		assert_string_equal(place->path, cases[i].path);
		assert_int_equal(place->version, cases[i].version);
	}
	free(place);
}

#define ARGUMENTS_MAX 16

static int parse_line(const char *line, struct load_options *options)
{
	char text[256], *arguments[ARGUMENTS_MAX + 1] = {(char *)"swapload"}, *rest = text, *word;
	int count = 1, kept = mute(), code;

	snprintf(text, sizeof(text), "%s", line);
	while ((word = strsep(&rest, " ")) && count < ARGUMENTS_MAX)
		arguments[count++] = word;
	code = load_options_parse(count, arguments, options);
	unmute(kept);
	return code;
}

static void test_command_line(void **state)
{
	static const char *const wrong[] = {
		"",
		"no-such",
		"seq-write extra",
		"seq-write --size",
		"seq-write --size 1M",
		"seq-write --size 10x",
		"seq-write --size -10M",
		"seq-write --size 99999999T",
		"seq-write --limit 4K",
		"seq-write --workers 0",
		"seq-write --workers 65",
		"seq-write --workers 2.5",
		"seq-write --passes 0x10",
		"seq-write --content heaps",
		"seq-write --cgroup a/b",
		"seq-write --cgroup ..",
		"seq-write --duration -1",
		"seq-write --seed -1",
		"seq-write --bogus",
		"seq-write --size 4M --workers 3",
	};
	struct load_options options;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(parse_line(wrong[i], &options), LOAD_EXIT_USAGE);

	assert_int_equal(
		parse_line("--size 1.5G random --limit 64M --workers 3 --no-thp --seed 7 --ops 100 --json", &options),
		-1);
	assert_string_equal(options.workload->name, "random");
	assert_int_equal(options.size_bytes, 3 * GIB / 2);
	assert_int_equal(options.limit_bytes, 64 * MIB);
	assert_int_equal(options.workers, 3);
	assert_int_equal(options.thp, LOAD_THP_OFF);
	assert_int_equal(options.seed, 7);
	assert_int_equal(options.operations, 100);
	assert_true(options.json);

	assert_int_equal(parse_line("pageout --pool 3M --content zero --thp --cgroup x-1", &options), -1);
	assert_int_equal(options.pool_bytes, 4 * MIB);
	assert_int_equal(options.passes, options.workload->passes_default);
	assert_string_equal(options.content->name, "zero");
	assert_string_equal(options.cgroup_name, "x-1");
	assert_int_equal(options.thp, LOAD_THP_ON);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_generators_are_the_same_everywhere),
		cmocka_unit_test(test_synthetic_compresses_as_heaps_do),
		cmocka_unit_test(test_other_contents_compress_as_named),
		cmocka_unit_test(test_every_flipped_byte_is_found),
		cmocka_unit_test(test_misplaced_and_stale_pages_are_found),
		cmocka_unit_test(test_folios_stay_whole),
		cmocka_unit_test(test_capture_takes_whole_folios_first),
		cmocka_unit_test(test_heap_is_of_real_processes),
		cmocka_unit_test(test_heap_without_interpreters_says_so),
		cmocka_unit_test(test_cgroup_is_found),
		cmocka_unit_test(test_command_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
