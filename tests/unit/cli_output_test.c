// SPDX-License-Identifier: GPL-2.0-or-later
/* The command line tool's output: figures, views, tables. */
#include "cli_capture.h"

#include "cleanup.h"
#include "cli.h"
#include "fields.h"
#include "figures.h"
#include "stat_orders.h"
#include "stat_print.h"
#include "stat_watch.h"
#include "view.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static void test_figures(void **state)
{
	struct stats_gauges gauges = {
		.live_bytes = 512 * MIB,
		.objects = 1000,
		.payload_bytes = 100 * MIB,
		.arena_ready_bytes = 150 * MIB,
		.arena_empty_bytes = 30 * MIB,
		.records_ready_bytes = 2 * MIB,
		.map_bytes = MIB,
		.fixed_bytes = 20 * MIB,
	};
	struct figures figures;

	(void)state;
	/* 131072 granules x 4 + 1000 x 32 */
	assert_int_equal(figures_index_bytes(512 * MIB, 1000), 556288);
	assert_int_equal(figures_stored_bytes(&gauges), 120 * MIB + 556288);
	figures_compute(&gauges, 180 * MIB, 5 * MIB, 480 * MIB, &figures);
	assert_int_equal(figures.data_bytes, 512 * MIB);
	assert_int_equal(figures.index_bytes, 556288);
	assert_int_equal(figures.other_bytes, 7 * MIB);
	NEAR(figures.effective_ratio, 503316480.0 / 126385408.0);
	NEAR(figures.dead_share, 0.0625);
	NEAR(figures.payload_ratio, 5.12);
	NEAR(figures.stored_ratio, 536870912.0 / 126385408.0);
	assert_int_equal(figures.resident_bytes, 185 * MIB);
	NEAR(figures.resident_ratio, 512.0 / 185);
}

static void test_figures_at_the_edges(void **state)
{
	struct stats_gauges gauges = {0};
	struct figures figures;

	(void)state;
	figures_compute(&gauges, 0, 0, FIGURES_NONE, &figures);
	assert_int_equal(figures.stored_bytes, 0);
	assert_int_equal(figures.other_bytes, 0);
	assert_true(isnan(figures.effective_ratio));
	assert_true(isnan(figures.dead_share));
	assert_true(isnan(figures.stored_ratio));
	/* Gauges are read one by one: one that is late must not give sizes of 2^64. */
	gauges.arena_empty_bytes = MIB;
	gauges.live_bytes = 4096;
	gauges.fixed_bytes = MIB;
	figures_compute(&gauges, 4096, 0, 8192, &figures);
	assert_int_equal(figures.stored_bytes, 4);
	assert_int_equal(figures.other_bytes, 0);
	/* More swapped than held: zero pages never came. */
	NEAR(figures.dead_share, 0);
}

static void test_values(void **state)
{
	const uint64_t bytes = 1536 * MIB, none = UINT64_MAX, ns = 12345;
	const uint32_t narrow = 65536, yes = 1;
	const int32_t priority = -2, no_priority = INT32_MIN;
	const double ratio = 2.5, share = 0.031, nan = NAN;
	char text[32];

	(void)state;
#define SHOWS(kind, value, exact, expected) \
	do { \
		assert_true(value_format(kind, &(value), sizeof(value), exact, text, sizeof(text))); \
		assert_string_equal(text, expected); \
	} while (0)
#define IS_NONE(kind, value) assert_false(value_format(kind, &(value), sizeof(value), false, text, sizeof(text)))
	SHOWS(VALUE_BYTES, bytes, false, "1.5G");
	SHOWS(VALUE_BYTES, bytes, true, "1610612736");
	SHOWS(VALUE_BYTES, narrow, false, "64.0K");
	SHOWS(VALUE_COUNT, narrow, false, "65536");
	SHOWS(VALUE_NS, ns, false, "12.3us");
	SHOWS(VALUE_NS, ns, true, "12345");
	SHOWS(VALUE_INTEGER, priority, false, "-2");
	SHOWS(VALUE_BOOL, yes, false, "yes");
	SHOWS(VALUE_BOOL, yes, true, "1");
	SHOWS(VALUE_RATIO, ratio, false, "2.50");
	SHOWS(VALUE_SHARE, share, false, "3.1%");
	SHOWS(VALUE_SHARE, share, true, "0.0310");
	IS_NONE(VALUE_BYTES, none);
	IS_NONE(VALUE_INTEGER, no_priority);
	IS_NONE(VALUE_RATIO, nan);
	NEAR(value_number(VALUE_NS, &ns, sizeof(ns)), 12345e-9);
	assert_true(isnan(value_number(VALUE_COUNT, &none, sizeof(none))));
	NEAR(value_number(VALUE_INTEGER, &priority, sizeof(priority)), -2);
}

static void test_durations(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {{0, "0ns"}, {999, "999ns"}, {1000, "1.0us"}, {99949, "99.9us"}, {99960, "100us"},
		{999499, "999us"}, {999600, "1.0ms"}, {1500000000, "1.5s"}, {UINT64_C(1234567890123), "1235s"}};
	char text[32];

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		value_format(VALUE_NS, &cases[i].ns, sizeof(cases[i].ns), false, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

/* A device with requests of known latency. swapped: 480 MiB. */
static struct view *make_view(const char *name, const struct stats_page *page, size_t page_bytes)
{
	const struct swap_entry swap = {
		.path = "/dev/loop3", .size_bytes = GIB, .used_bytes = 480 * MIB, .priority = 100};
	struct control_info info = fake_info(name);
	struct view *view = view_create();

	assert_non_null(view);
	assert_int_equal(view_fill(view, &info, page, page_bytes, &swap), 0);
	return view;
}

static void add_requests(struct stats_page *page)
{
	struct stats_io *io = stats_page_io(page, 0);
	struct stats_worker *worker = stats_page_worker(page, 1);

	for (unsigned i = 0; i < 3; i++)
		stats_request(io, STATS_READ, 32 * KIB, 10000, 0);
	stats_request(stats_page_io(page, 1), STATS_READ, 32 * KIB, 1000000, -EIO);
	stats_request(io, STATS_WRITE, 2 * MIB, 500000, 0);
	stats_request(io, STATS_DISCARD, 2 * MIB, 1000, 0);
	stats_count(&io->stage_ns[STATS_READ][STATS_CODEC], 515000);
	stats_count(&io->read_asked_bytes, 128 * KIB);
	stats_count(&io->read_decoded_bytes, 256 * KIB);
	stats_count(&io->slot_waits, 7);
	stats_count(&io->raw_bytes, 3 * MIB);
	stats_count(&io->refused, 2);
	stats_count(&worker->closed_objects[9], 1);
	stats_count(&worker->closed_bytes[9], 2 * MIB);
	stats_count(&worker->closed_stored_bytes[9], MIB);
	stats_count(&worker->moved_bytes, 8 * KIB);
	stats_count(&worker->raw_bytes, 4 * KIB);
	hist_record(&worker->close_ns, 2000000);
}

static void test_view(void **state)
{
	size_t bytes;
	CLEANUP(free) struct stats_page *page = fake_page(&bytes);
	struct control_info info = fake_info("0");
	struct view *view;

	(void)state;
	add_requests(page);
	view = make_view("0", page, bytes);
	assert_true(view->is_up);
	assert_string_equal(view->codec, "zstd:1");
	assert_int_equal(view->swap_priority, 100);
	assert_int_equal(view->requests[STATS_READ], 4);
	assert_int_equal(view->bytes[STATS_READ], 128 * KIB);
	assert_int_equal(view->errors[STATS_READ], 1);
	assert_int_equal(view->requests[STATS_WRITE], 1);
	assert_int_equal(view->bytes[STATS_DISCARD], 2 * MIB);
	assert_int_equal(view->sum.io.slot_waits, 7);
	NEAR(view->read_amplification, 2);
	assert_int_equal(view->figures.swapped_bytes, 480 * MIB);
	assert_string_equal(view->unsafe, "");
	info.unsafe = CONTROL_UNSAFE_IO_FLUSHER | CONTROL_UNSAFE_MIN_FREE | 1U << 31;
	assert_int_equal(view_fill(view, &info, page, bytes, NULL), 0);
	assert_string_equal(view->unsafe, "io-flusher,min-free,unknown");
	assert_int_equal(view->swap_priority, INT32_MIN);
	page->magic++;
	assert_int_equal(view_fill(view, &info, page, bytes, NULL), -EPROTO);
	view_destroy(view);
}

/* What has not happened has no value; an outage is known a moment later than the take-over. */
static void test_takeovers(void **state)
{
	size_t bytes;
	CLEANUP(free) struct stats_page *page = fake_page(&bytes);
	struct view *view = make_view("0", page, bytes);
	struct control_info info = fake_info("0");

	(void)state;
	assert_int_equal(view->takeovers.count, 0);
	assert_true(view->takeovers.last_outage_ns == UINT64_MAX && view->takeovers.worst_outage_ns == UINT64_MAX);
	assert_true(view->takeovers.last_recover_ns == UINT64_MAX && view->takeovers.last_open_ns == UINT64_MAX);
	assert_int_equal(view->standby_pid, 4002);
	page->takeovers.count = 1;
	page->takeovers.last_recover_ns = 1000000;
	page->takeovers.last_open_ns = 0;
	info.standby_pid = 0;
	info.standby_bytes = 0;
	assert_int_equal(view_fill(view, &info, page, bytes, NULL), 0);
	assert_int_equal(view->takeovers.last_recover_ns, 1000000);
	assert_int_equal(view->takeovers.last_open_ns, 0);
	assert_true(view->takeovers.last_outage_ns == UINT64_MAX);
	assert_int_equal(view->standby_pid, INT32_MIN);
	assert_int_equal(view->figures.resident_bytes, 180 * MIB);
	page->takeovers.last_outage_ns = 2000000;
	page->takeovers.worst_outage_ns = 3000000;
	assert_int_equal(view_fill(view, &info, page, bytes, NULL), 0);
	assert_int_equal(view->takeovers.last_outage_ns, 2000000);
	assert_int_equal(view->takeovers.worst_outage_ns, 3000000);
	view_destroy(view);
}

static void test_difference(void **state)
{
	size_t bytes;
	CLEANUP(free) struct stats_page *page = fake_page(&bytes);
	struct view *earlier, *later, *between = view_create();
	const struct stats_op *op;

	(void)state;
	add_requests(page);
	earlier = make_view("0", page, bytes);
	for (unsigned i = 0; i < 100; i++)
		stats_request(stats_page_io(page, 0), STATS_READ, 32 * KIB, 20000, 0);
	later = make_view("0", page, bytes);
	view_difference(between, later, earlier);
	op = &between->sum.io.op[STATS_READ][3];
	assert_int_equal(op->requests, 100);
	assert_int_equal(op->errors, 0);
	assert_int_equal(hist_count(&op->latency), 100);
	/* The interval's longest is about 20 us, though 1 ms was seen before. */
	assert_in_range(op->latency.max_ns, 19600, 20400);
	assert_in_range(hist_quantile_ns(&op->latency, 500), 19600, 20400);
	assert_int_equal(between->requests[STATS_READ], 100);
	assert_int_equal(between->requests[STATS_WRITE], 0);
	assert_int_equal(between->sum.io.op[STATS_WRITE][9].latency.max_ns, 0);
	assert_int_equal(between->sum.io.slot_waits, 0);
	assert_int_equal(later->requests[STATS_READ], 104);
	view_destroy(earlier);
	view_destroy(later);
	view_destroy(between);
}

/* The default list of two devices, one of them dead. */
static char *print_list(const struct table_format *format, const char *columns)
{
	size_t bytes;
	CLEANUP(free) struct stats_page *page = fake_page(&bytes);
	struct capture capture = capture_begin(stdout);
	struct view *views[2] = {make_view("0", page, bytes), view_create()};
	unsigned chosen[FIELDS_MAX];
	int count = fields_select(columns, chosen);
	struct table *table;

	assert_true(count > 0);
	view_fill_dead(views[1], "12");
	assert_int_equal(table_create(&table, "devices", format), 0);
	for (int i = 0; i < count; i++)
		table_column(table, fields[chosen[i]].column, fields[chosen[i]].kind);
	for (unsigned row = 0; row < 2; row++) {
		table_row(table);
		for (int i = 0; i < count; i++)
			fields_cell(table, (unsigned)i, &fields[chosen[i]], views[row]);
		view_destroy(views[row]);
	}
	assert_int_equal(table_print(table, stdout), 0);
	table_destroy(table);
	return capture_end(&capture);
}

static void test_list_text(void **state)
{
	const struct table_format format = {0};
	CLEANUP(free)
	char *text = print_list(&format, "NAME,STATE,SIZE,CODEC,FRAME,SWAPPED,EFFECTIVE,DEAD,DISCARD,PRIO");

	(void)state;
	assert_string_equal(text, "NAME STATE SIZE CODEC  FRAME SWAPPED EFFECTIVE DEAD DISCARD PRIO\n"
				  "0    up    1.0G zstd:1 64.0K    480M      3.52 6.2%     yes  100\n"
				  "12   dead                                                   \n");
}

static void test_list_raw(void **state)
{
	const struct table_format format = {.raw = true, .exact = true, .noheadings = true};
	CLEANUP(free) char *text = print_list(&format, "NAME,STORED,RATIO,DISCARD,CPU");

	(void)state;
	/* 128 MiB + 131072 x 4 + 256 x 32 */
	assert_string_equal(text, "0 143138816 3.7507 1 2500000000\n12    \n");
}

static void test_list_json(void **state)
{
	const struct table_format format = {.json = true};
	CLEANUP(free) char *text = print_list(&format, "NAME,MAX-SIZE,DEAD,DISCARD,PRIO");

	(void)state;
	assert_string_equal(text,
		"{\n   \"devices\": [\n      {\n"
		"         \"name\": \"0\",\n         \"max_size\": 4294967296,\n         \"dead\": 0.0625,\n"
		"         \"discard\": true,\n         \"prio\": 100\n      },{\n"
		"         \"name\": \"12\",\n         \"max_size\": null,\n         \"dead\": null,\n"
		"         \"discard\": null,\n         \"prio\": null\n      }\n   ]\n}\n");
}

static char *print_page(struct stats_page *page, size_t bytes, enum stat_mode mode, const struct table_format *format)
{
	static struct stat_request request;
	struct capture capture;
	struct view *view = make_view("0", page, bytes);

	request = (struct stat_request){.mode = mode, .format = *format, .count = 1};
	capture = capture_begin(stdout);
	assert_int_equal(stat_print(&request, &view), CLI_DONE);
	view_destroy(view);
	return capture_end(&capture);
}

static char *print_stat(enum stat_mode mode, const struct table_format *format)
{
	size_t bytes;
	CLEANUP(free) struct stats_page *page = fake_page(&bytes);

	add_requests(page);
	return print_page(page, bytes, mode, format);
}

static void test_zram_lines(void **state)
{
	const struct table_format format = {0};
	CLEANUP(free) char *mm = print_stat(MODE_MM_STAT, &format);
	CLEANUP(free) char *io = print_stat(MODE_IO_STAT, &format);

	(void)state;
	assert_string_equal(
		mm, "536870912 125829120 143138816 2147483648 147333120     1024        2      512      769\n");
	assert_string_equal(io, "       1        0        0      512\n");
}

static void test_summary(void **state)
{
	const struct table_format format = {.raw = true, .noheadings = true};
	CLEANUP(free) char *text = print_stat(MODE_SUMMARY, &format);
	const char *swapped =
		strstr(text, "SWAPPED 480M\nEFFECTIVE 3.52\nDEAD 6.2%\nDATA 512M\nPAYLOAD 120M\nSTORED 137M\n");

	(void)state;
	assert_true(strncmp(text, "NAME 0\n", 7) == 0);
	assert_ptr_equal(swapped, text + 7);
	assert_non_null(strstr(text, "\nSLOT-WAITS 7\n"));
	assert_non_null(strstr(text, "\nREFUSED 2\n"));
	assert_non_null(strstr(text, "\nREAD-ERRORS 1\n"));
	assert_true(strstr(text, "\nSIZE 1.0G\n") > swapped);
	assert_non_null(strstr(text, "\nRESERVE 16.0M\n"));
	assert_non_null(strstr(text, "\nSTANDBY-MEM 4.0M\nOTHER 13.0M\n"));
	assert_non_null(strstr(text, "\nSTANDBY 4002\n"));
	/* Nobody had to take over. */
	assert_null(strstr(text, "RECOVERIES"));
	assert_null(strstr(text, "REQUEUED"));
	assert_null(strstr(text, "BLAMED"));
	assert_null(strstr(text, "OUTAGE"));
}

static void test_summary_of_takeovers(void **state)
{
	const struct table_format format = {.raw = true, .noheadings = true};
	size_t bytes;
	CLEANUP(free) struct stats_page *page = fake_page(&bytes);
	CLEANUP(free) char *text = NULL;

	(void)state;
	page->takeovers.count = 3;
	page->takeovers.requeued = 12;
	page->takeovers.last_recover_ns = 4000000;
	page->takeovers.last_open_ns = 500000;
	page->takeovers.last_outage_ns = 12000000;
	page->takeovers.worst_outage_ns = 30000000;
	text = print_page(page, bytes, MODE_SUMMARY, &format);
	assert_non_null(strstr(text, "\nRECOVERIES 3\nREQUEUED 12\nLAST-OUTAGE 12.0ms\nWORST-OUTAGE 30.0ms\n"
				     "LAST-RECOVER 4.0ms\nLAST-OPEN 500us\n"));
}

static void test_orders(void **state)
{
	const struct table_format format = {.raw = true, .exact = true, .noheadings = true};
	CLEANUP(free) char *text = print_stat(MODE_ORDERS, &format);
	char line[256];
	uint64_t p50 = hist_bucket_middle_ns(hist_bucket(10000));

	(void)state;
	/* Order 3: three of 10 us and one of 1 ms. */
	snprintf(line, sizeof(line), "0 read 3 32768 4 131072 1 %llu 1000000 1000000 1000000 1000000",
		(unsigned long long)p50);
	if (!strstr(text, line))
		fail_msg("no '%s' in '%s'", line, text);
	/* 515000 of 1030000 ns in the codec; decoded twice what was asked. */
	snprintf(line, sizeof(line),
		"0 read all  4 131072 1 %llu 1000000 1000000 1000000 1000000 0.0000 0.5000 0.0000 0.0000 0.5000   "
		"2.0000\n",
		(unsigned long long)p50);
	if (!strstr(text, line))
		fail_msg("no '%s' in '%s'", line, text);
	assert_non_null(strstr(text, "0 write 9 2097152 1 2097152 0 "));
	assert_non_null(strstr(text, "0 close 9 2097152 1 2097152            1048576 2.0000"));
	assert_non_null(
		strstr(text, "0 close all  1 2097152  2000000 2000000 2000000 2000000 2000000      1048576 2.0000"));
	assert_null(strstr(text, "read 4 "));
}

static void test_watch(void **state)
{
	size_t bytes;
	CLEANUP(free) struct stats_page *page = fake_page(&bytes);
	struct view *earlier = make_view("0", page, bytes), *later, *between = view_create();
	struct capture capture;
	CLEANUP(free) char *text = NULL;
	double read_mb;
	char swapped[16], data[16], stored[16], p50[16], p99[16];

	(void)state;
	add_requests(page);
	later = make_view("0", page, bytes);
	later->taken_ns = earlier->taken_ns + 500000000;
	later->info.daemon_cpu_ns += 250000000;
	view_difference(between, later, earlier);
	capture = capture_begin(stdout);
	watch_line(stdout, between, earlier);
	text = capture_end(&capture);
	assert_int_equal(sscanf(text, " 0 %15s %15s %15s %*s %*s | %lfMB %15s %15s |", swapped, data, stored, &read_mb,
				 p50, p99),
		6);
	assert_string_equal(swapped, "480M");
	assert_string_equal(data, "512M");
	assert_string_equal(p99, "1.0ms");
	NEAR(read_mb, 0.3); /* 131072 bytes in half a second, to one decimal */
	assert_non_null(strstr(text, " 50%\n"));
	view_destroy(earlier);
	view_destroy(later);
	view_destroy(between);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_figures_at_the_edges),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_view),
		cmocka_unit_test(test_takeovers),
		cmocka_unit_test(test_difference),
		cmocka_unit_test(test_list_text),
		cmocka_unit_test(test_list_raw),
		cmocka_unit_test(test_list_json),
		cmocka_unit_test(test_zram_lines),
		cmocka_unit_test(test_summary),
		cmocka_unit_test(test_summary_of_takeovers),
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_watch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
