// SPDX-License-Identifier: GPL-2.0-or-later
/* The command line tool's input: options and values, children with deadlines. */
#include "cli_capture.h"

#include "add_config.h"
#include "cleanup.h"
#include "cli.h"
#include "cli_process.h"
#include "cli_swap.h"
#include "clock.h"
#include "daemon_binary.h"
#include "fields.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <signal.h>
#include <sys/stat.h>

#include <cmocka.h>

#define ARGUMENTS_MAX 16

static const struct cli_host host = {.ram_bytes = 16 * GIB, .huge_page_bytes = 2 * MIB, .cpus = 8};

/* Parses "add" and the arguments up to NULL. */
static int parse_add(const struct cli_host *on, const char *const *words, struct add_config *ret)
{
	char *argv[ARGUMENTS_MAX + 2] = {"add"};
	int argc = 1;

	for (; *words; words++)
		argv[argc++] = (char *)*words;
	cli_begin(&cmd_add);
	return add_config_parse(argc, argv, on, ret);
}

static void test_add_defaults(void **state)
{
	struct add_config config;

	(void)state;
	assert_int_equal(parse_add(&host, (const char *const[]){"4G", NULL}, &config), 0);
	assert_int_equal(config.size_bytes, 4 * GIB);
	assert_int_equal(config.max_size_bytes, 16 * GIB);
	assert_int_equal(config.limit_bytes, 8 * GIB);
	assert_int_equal(config.reserve_bytes, 16 * MIB);
	assert_int_equal(config.unit_bytes, 2 * MIB);
	assert_int_equal(config.frame_bytes, 64 * KIB);
	assert_int_equal(config.codec.id, CODEC_ZSTD);
	assert_int_equal(config.codec.level, 1);
	assert_int_equal(config.slots, 4);
	assert_int_equal(config.io_threads, 2);
	assert_int_equal(config.compress_threads, 2);
	assert_string_equal(config.transport, "auto");
	assert_null(config.fault);
	assert_true(config.discard);
	assert_false(config.swapon);
	assert_false(config.allow_unsafe);
	assert_false(config.no_standby);
}

static void test_add_all_options(void **state)
{
	struct add_config config;

	(void)state;
	/* The frame is checked against the unit, whichever comes first. */
	assert_int_equal(parse_add(&host,
				 (const char *const[]){"--frame", "16M", "1G", "--unit", "16M", "--codec=lz4:8",
					 "--swapon=7", "--mem-limit=none", "--max-size=32G", NULL},
				 &config),
		0);
	assert_int_equal(config.frame_bytes, 16 * MIB);
	assert_int_equal(config.unit_bytes, 16 * MIB);
	assert_int_equal(config.codec.id, CODEC_LZ4);
	assert_int_equal(config.codec.level, 8);
	assert_true(config.swapon);
	assert_int_equal(config.priority, 7);
	assert_true(config.limit_bytes == UINT64_MAX);
	assert_int_equal(config.max_size_bytes, 32 * GIB);
	assert_int_equal(parse_add(&host,
				 (const char *const[]){"-s", "50%", "--compress-threads", "5", "--slots", "6",
					 "--reserve", "0", "--threads=3", "--no-discard", "--allow-unsafe", "--fault",
					 "kill", "--swapon", "-t", "fuse", "--no-standby", NULL},
				 &config),
		0);
	assert_int_equal(config.size_bytes, 8 * GIB);
	assert_int_equal(config.compress_threads, 5);
	assert_int_equal(config.slots, 6);
	assert_int_equal(config.io_threads, 3);
	assert_int_equal(config.reserve_bytes, 0);
	assert_false(config.discard);
	assert_true(config.allow_unsafe);
	assert_true(config.swapon);
	assert_int_equal(config.priority, SWAP_PRIORITY_KERNEL);
	assert_string_equal(config.fault, "kill");
	assert_string_equal(config.transport, "fuse");
	assert_true(config.no_standby);
}

static void test_add_host_defaults(void **state)
{
	static const struct {
		uint64_t huge_page_bytes;
		uint64_t unit_bytes;
	} cases[] = {
		{0, 2 * MIB},
		{64 * KIB, 64 * KIB},
		{MIB, 64 * KIB},
		{2 * MIB, 2 * MIB},
		{16 * MIB, 16 * MIB},
		{512 * MIB, 16 * MIB},
	};
	struct add_config config;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cli_host other = {.ram_bytes = 16 * GIB, .huge_page_bytes = cases[i].huge_page_bytes, .cpus = 1};

		assert_int_equal(parse_add(&other, (const char *const[]){"1G", NULL}, &config), 0);
		assert_int_equal(config.unit_bytes, cases[i].unit_bytes);
		assert_int_equal(config.compress_threads, 1);
		assert_true(config.frame_bytes <= config.unit_bytes);
	}
}

/* What must be refused, and a word that the line must have in it. */
static const struct {
	const char *words[6];
	const char *reason;
} bad_adds[] = {
	{{NULL}, "size is missing"},
	{{""}, "not a size"},
	{{"0"}, "less than one unit"},
	{{"1"}, "less than one unit"},
	{{"4095"}, "less than one unit"},
	{{"2M1"}, "not a size"},
	{{"2097153"}, "multiple of 4K"},
	{{"-4G"}, "no sign"},
	{{"--", "-4G"}, "not a size"},
	{{"+4G"}, "not a size"},
	{{"4G "}, "not a size"},
	{{" 4G"}, "not a size"},
	{{"4 G"}, "not a size"},
	{{"4G\n"}, "not a size"},
	{{"4GB"}, "not a size"},
	{{"0x100000000"}, "not a size"},
	{{"1e9"}, "not a size"},
	{{"4,5G"}, "not a size"},
	{{"four"}, "not a size"},
	{{"9223372036854775808"}, "63 bits"},
	{{"99999999999999999999999999"}, "63 bits"},
	{{"8E"}, "63 bits"},
	{{"4E"}, "below 8T"},
	{{"8T"}, "below 8T"},
	{{"1G", "--max-size=8T"}, "below 8T"},
	{{"0%"}, "share of RAM"},
	{{"-1%"}, "no sign"},
	{{"1001%"}, "share of RAM"},
	{{"50.5%"}, "share of RAM"},
	{{"%"}, "share of RAM"},
	{{"1G", "2G"}, "twice"},
	{{"1G", "--size=1G"}, "twice"},
	{{"1G", "--unit=3M"}, "64K, 2M and 16M"},
	{{"1G", "--unit=4K"}, "64K, 2M and 16M"},
	{{"1G", "--unit="}, "64K, 2M and 16M"},
	{{"1G", "--frame=4M"}, "larger than the unit"},
	{{"1G", "--unit=64K", "--frame=128K"}, "larger than the unit"},
	{{"1G", "--frame=3K"}, "power of two"},
	{{"1G", "--frame=2K"}, "power of two"},
	{{"1G", "--frame=96K"}, "power of two"},
	{{"1G", "--frame=Whole"}, "power of two"},
	{{"1G", "--codec=lzo"}, "zstd"},
	{{"1G", "--codec="}, "zstd"},
	{{"1G", "--codec=zstd:"}, "zstd"},
	{{"1G", "--codec=zstd:99"}, "zstd"},
	{{"1G", "--codec=zstd:1x"}, "zstd"},
	{{"1G", "--codec=lz4:0"}, "zstd"},
	{{"1G", "--codec=copy:1"}, "zstd"},
	{{"1G", "--transport=nbd"}, "there are auto, "},
	{{"1G", "--transport=auto,fuse"}, "there are auto, "},
	{{"1G", "--transport="}, "there are auto, "},
	{{"1G", "-tFUSE"}, "there are auto, "},
	{{"1G", "--mem-limit=0"}, "none"},
	{{"1G", "--mem-limit=12M"}, "headroom"},
	{{"1G", "--mem-limit=lots"}, "not a size"},
	{{"1G", "--slots=0"}, "from 1 to 64"},
	{{"1G", "--slots=65"}, "from 1 to 64"},
	{{"1G", "--slots=4.0"}, "from 1 to 64"},
	{{"1G", "--threads=0"}, "from 1 to 32"},
	{{"1G", "--threads=33"}, "from 1 to 32"},
	{{"1G", "--compress-threads=-1"}, "from 1 to 32"},
	{{"1G", "--reserve=much"}, "not a size"},
	{{"1G", "--max-size=512M"}, "not less than the size"},
	{{"1G", "--max-size=1073741825"}, "multiple of 4K"},
	{{"1G", "--swapon=32768"}, "from 0 to 32767"},
	{{"1G", "--swapon=-1"}, "from 0 to 32767"},
	{{"1G", "--swapon="}, "from 0 to 32767"},
	{{"1G", "--discard=yes"}, "takes no value"},
	{{"1G", "--no-standby=1"}, "takes no value"},
	{{"1G", "--frog"}, "unknown"},
	{{"1G", "-Z"}, "unknown"},
	{{"1G", "--frame"}, "needs a value"},
	{{"1G", "--s=1"}, "not unique"},
};

static void assert_one_line(const char *text, const char *prefix, const char *reason)
{
	assert_true(strncmp(text, prefix, strlen(prefix)) == 0);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	if (!strstr(text, reason))
		fail_msg("'%s' does not say '%s'", text, reason);
}

static void test_add_refuses(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(bad_adds) / sizeof(bad_adds[0]); i++) {
		struct add_config config, untouched;
		struct capture capture = capture_begin(stderr);
		CLEANUP(free) char *text = NULL;
		int result;

		memset(&config, 0x5a, sizeof(config));
		untouched = config;
		result = parse_add(&host, bad_adds[i].words, &config);
		text = capture_end(&capture);
		assert_int_equal(result, CLI_USAGE);
		assert_one_line(text, "folioswap: add: ", bad_adds[i].reason);
		assert_memory_equal(&config, &untouched, sizeof(config));
	}
}

static void test_small_ram(void **state)
{
	const struct cli_host small = {.ram_bytes = 16 * MIB, .huge_page_bytes = 2 * MIB, .cpus = 2};
	struct capture capture = capture_begin(stderr);
	CLEANUP(free) char *text = NULL;
	struct add_config config;
	int result = parse_add(&small, (const char *const[]){"32M", NULL}, &config);

	(void)state;
	text = capture_end(&capture);
	assert_int_equal(result, CLI_USAGE);
	assert_one_line(text, "folioswap: add: ", "headroom");
	assert_int_equal(parse_add(&small, (const char *const[]){"32M", "--unit=64K", NULL}, &config), 0);
}

static void test_large_size(void **state)
{
	struct add_config config;

	(void)state;
	assert_int_equal(parse_add(&host, (const char *const[]){"3T", NULL}, &config), 0);
	assert_int_equal(config.size_bytes, 3072 * GIB);
	assert_true(config.max_size_bytes < 8192 * GIB && config.max_size_bytes >= config.size_bytes);
}

static void test_help(void **state)
{
	struct capture capture = capture_begin(stdout);
	CLEANUP(free) char *text = NULL;
	struct add_config config;
	int result = parse_add(&host, (const char *const[]){"--help", NULL}, &config);

	(void)state;
	text = capture_end(&capture);
	assert_int_equal(result, CLI_OPTION_HELP);
	for (const struct cli_option *option = add_options; option->name; option++)
		assert_non_null(strstr(text, option->name));
	assert_non_null(strstr(text, "zstd"));
}

static void test_fields_select(void **state)
{
	unsigned defaults[FIELDS_MAX], chosen[FIELDS_MAX];
	unsigned count = fields_default(defaults);
	struct capture capture;
	CLEANUP(free) char *text = NULL;

	(void)state;
	cli_begin(&cmd_list);
	assert_int_equal(fields_select("NAME,stored,Size", chosen), 3);
	assert_string_equal(fields[chosen[0]].column, "NAME");
	assert_string_equal(fields[chosen[1]].column, "STORED");
	assert_string_equal(fields[chosen[2]].column, "SIZE");
	assert_int_equal(fields_select("+PAYLOAD", chosen), count + 1);
	assert_memory_equal(chosen, defaults, count * sizeof(*chosen));
	assert_string_equal(fields[chosen[count]].column, "PAYLOAD");
	assert_int_equal(fields_all(chosen), fields_count);
	capture = capture_begin(stderr);
	assert_int_equal(fields_select("NAME,FROG", chosen), -1);
	assert_int_equal(fields_select("", chosen), -1);
	assert_int_equal(fields_select("NAME,", chosen), -1);
	text = capture_end(&capture);
	assert_non_null(strstr(text, "'FROG'"));
}

static void test_fields_are_unique(void **state)
{
	(void)state;
	for (unsigned i = 0; i < fields_count; i++)
		for (unsigned j = 0; j < i; j++) {
			assert_string_not_equal(fields[i].column, fields[j].column);
			if (fields[i].metric && fields[j].metric)
				assert_string_not_equal(fields[i].metric, fields[j].metric);
		}
}

static int work_returns(void *arg)
{
	return *(int *)arg;
}

static int work_sleeps(void *arg)
{
	signal(SIGTERM, SIG_IGN);
	process_sleep_ms(60000);
	return arg ? 0 : -EIO;
}

static int work_dies(void *arg)
{
	(void)arg;
	return kill(getpid(), SIGKILL);
}

static void test_bounded(void **state)
{
	int zero = 0, error = -EBUSY;
	uint64_t start = clock_ns();

	(void)state;
	assert_int_equal(process_bounded(work_returns, &zero, 5000), 0);
	assert_int_equal(process_bounded(work_returns, &error, 5000), -EBUSY);
	assert_int_equal(process_bounded(work_dies, NULL, 5000), -EINTR);
	assert_true(clock_ns() - start < UINT64_C(4000000000));
	start = clock_ns();
	assert_int_equal(process_bounded(work_sleeps, NULL, 200), -ETIMEDOUT);
	assert_true(clock_ns() - start >= UINT64_C(200000000));
	assert_true(clock_ns() - start < UINT64_C(4000000000));
}

static void test_run_program(void **state)
{
	char *talks[] = {"sh", "-c", "echo out; echo first >&2; echo second >&2; exit 3", NULL};
	char *missing[] = {"/nonexistent/program", NULL};
	char *slow[] = {"sleep", "60", NULL};
	char message[128];

	(void)state;
	assert_int_equal(process_run(talks, 5000, message, sizeof(message)), 3);
	assert_string_equal(message, "first");
	assert_int_equal(process_run(missing, 5000, message, sizeof(message)), 127);
	assert_non_null(strstr(message, "cannot run /nonexistent/program"));
	assert_int_equal(process_run(slow, 200, message, sizeof(message)), -ETIMEDOUT);
	assert_string_equal(message, "");
}

static void test_ask_program(void **state)
{
	char *talks[] = {"sh", "-c", "echo aside >&2; echo first; echo second", NULL};
	char line[128];

	(void)state;
	assert_int_equal(process_ask(talks, 5000, line, sizeof(line)), 0);
	assert_string_equal(line, "first");
}

static char directory[64];

static int make_directory(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/folioswap-cli-XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	(void)state;
	return rmdir(directory);
}

/* A program "x" in the directory; text "" makes none. */
static int version_of(const char *text, mode_t mode, char *problem, size_t problem_bytes)
{
	char path[80], version[64] = "";
	FILE *file;
	int error;

	snprintf(path, sizeof(path), "%s/x", directory);
	if (*text) {
		file = fopen(path, "w");
		assert_non_null(file);
		fputs(text, file);
		fclose(file);
		assert_int_equal(chmod(path, mode), 0);
	}
	error = daemon_binary_version(path, version, sizeof(version), problem, problem_bytes);
	unlink(path);
	if (!error)
		snprintf(problem, problem_bytes, "%s", version);
	return error;
}

static void test_daemon_binary(void **state)
{
	char said[128], script[128], evil[80];

	(void)state;
	assert_int_equal(
		version_of("#!/bin/sh\n[ \"$*\" = --version ] && echo folioswapd 9.8 test\n", 0700, said, sizeof(said)),
		0);
	assert_string_equal(said, "folioswapd 9.8 test");
	assert_int_equal(version_of("", 0, said, sizeof(said)), -ENOENT);
	assert_int_equal(version_of("#!/bin/sh\necho folioswapd 9.8\n", 0600, said, sizeof(said)), -EACCES);
	assert_non_null(strstr(said, "not executable"));
	assert_int_equal(version_of("#!/bin/sh\necho folioswapdd 9.8\n", 0700, said, sizeof(said)), -ENOEXEC);
	assert_int_equal(version_of("#!/bin/sh\necho folioswapd 9.8; exit 2\n", 0700, said, sizeof(said)), -ENOEXEC);
	assert_int_equal(version_of("#!/bin/sh\ntrue\n", 0700, said, sizeof(said)), -ENOEXEC);
	assert_non_null(strstr(said, "no folioswapd"));
	/* What the kernel does not execute is not given to a shell. */
	snprintf(evil, sizeof(evil), "%s/evil", directory);
	snprintf(script, sizeof(script), "touch %s\n", evil);
	assert_int_equal(version_of(script, 0700, said, sizeof(said)), -ENOEXEC);
	assert_int_equal(access(evil, F_OK), -1);
	assert_int_equal(daemon_binary_version(directory, said, sizeof(said), script, sizeof(script)), -EACCES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add_defaults),
		cmocka_unit_test(test_add_all_options),
		cmocka_unit_test(test_add_host_defaults),
		cmocka_unit_test(test_add_refuses),
		cmocka_unit_test(test_small_ram),
		cmocka_unit_test(test_large_size),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_fields_select),
		cmocka_unit_test(test_fields_are_unique),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_run_program),
		cmocka_unit_test(test_ask_program),
		cmocka_unit_test_setup_teardown(test_daemon_binary, make_directory, remove_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
