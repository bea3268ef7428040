// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The metrics file against a reader of its own: every line is read by the
 * rules of OpenMetrics and checked against the family it belongs to.
 */
#include "cli_capture.h"

#include "cleanup.h"
#include "cli.h"
#include "openmetrics.h"

#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#define FAMILIES_MAX 128
#define SAMPLES_MAX 4096

struct family {
	char name[96];
	char type[16];
	char unit[16];
	bool has_help;
	unsigned samples;
};

struct sample {
	char name[96];
	char labels[256];
	double value;
};

struct reader {
	struct family families[FAMILIES_MAX];
	unsigned families_count;
	struct sample samples[SAMPLES_MAX];
	unsigned samples_count;
	bool ended;
};

static struct family *current(struct reader *reader)
{
	assert_true(reader->families_count > 0);
	return &reader->families[reader->families_count - 1];
}

static void read_type(struct reader *reader, const char *name, const char *type)
{
	struct family *family;

	for (unsigned i = 0; i < reader->families_count; i++)
		assert_string_not_equal(reader->families[i].name, name); /* a family is one block */
	assert_true(strncmp(name, "folioswap_", 10) == 0);
	for (const char *at = name; *at; at++)
		assert_true(islower(*at) || isdigit(*at) || *at == '_');
	assert_true(reader->families_count < FAMILIES_MAX);
	family = &reader->families[reader->families_count++];
	snprintf(family->name, sizeof(family->name), "%s", name);
	snprintf(family->type, sizeof(family->type), "%s", type);
}

static void read_comment(struct reader *reader, const char *line)
{
	char keyword[16], name[96], rest[256];
	struct family *family;

	if (strcmp(line, "# EOF") == 0) {
		reader->ended = true;
		return;
	}
	assert_int_equal(sscanf(line, "# %15s %95s %255[^\n]", keyword, name, rest), 3);
	if (strcmp(keyword, "TYPE") == 0) {
		read_type(reader, name, rest);
		return;
	}
	family = current(reader);
	assert_string_equal(family->name, name);
	assert_int_equal(family->samples, 0);
	if (strcmp(keyword, "UNIT") == 0) {
		size_t length = strlen(name), unit = strlen(rest);

		assert_true(
			length > unit + 1 && strcmp(name + length - unit, rest) == 0 && name[length - unit - 1] == '_');
		snprintf(family->unit, sizeof(family->unit), "%.15s", rest);
	} else {
		assert_string_equal(keyword, "HELP");
		family->has_help = true;
	}
}

/* The ends that names of samples have, by type. */
static bool suffix_fits(const char *type, const char *suffix)
{
	if (strcmp(type, "gauge") == 0)
		return strcmp(suffix, "") == 0;
	if (strcmp(type, "counter") == 0)
		return strcmp(suffix, "_total") == 0;
	if (strcmp(type, "info") == 0)
		return strcmp(suffix, "_info") == 0;
	assert_string_equal(type, "histogram");
	return strcmp(suffix, "_bucket") == 0 || strcmp(suffix, "_count") == 0 || strcmp(suffix, "_sum") == 0;
}

/* name="value",name="value"; no name twice, nothing after a quote but a comma. */
static void check_labels(const char *labels)
{
	while (*labels) {
		size_t name = strspn(labels, "abcdefghijklmnopqrstuvwxyz_");

		assert_true(name > 0 && labels[name] == '=' && labels[name + 1] == '"');
		for (labels += name + 2; *labels != '"'; labels++) {
			assert_true(*labels != '\0');
			if (*labels == '\\')
				labels++;
		}
		labels++;
		assert_true(*labels == ',' || *labels == '\0');
		if (*labels == ',')
			assert_true(*++labels != '\0');
	}
}

static void read_sample(struct reader *reader, const char *line)
{
	struct family *family = current(reader);
	struct sample *sample = &reader->samples[reader->samples_count];
	const char *end = strrchr(line, '}');
	char *number_end;
	size_t length = strlen(family->name);

	assert_true(reader->samples_count < SAMPLES_MAX);
	assert_non_null(end);
	assert_int_equal(sscanf(line, "%95[a-z_]{%255[^}]}", sample->name, sample->labels), 2);
	assert_memory_equal(sample->name, family->name, length);
	assert_true(suffix_fits(family->type, sample->name + length));
	check_labels(sample->labels);
	assert_true(end[1] == ' ');
	sample->value = strtod(end + 2, &number_end);
	assert_true(number_end > end + 2 && *number_end == '\0');
	for (unsigned i = 0; i < reader->samples_count; i++)
		assert_false(strcmp(reader->samples[i].name, sample->name) == 0 &&
			     strcmp(reader->samples[i].labels, sample->labels) == 0);
	family->samples++;
	reader->samples_count++;
}

static void read_text(struct reader *reader, char *text)
{
	assert_true(text[strlen(text) - 1] == '\n');
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		assert_false(reader->ended);
		if (*line == '#')
			read_comment(reader, line);
		else
			read_sample(reader, line);
	}
	assert_true(reader->ended);
	for (unsigned i = 0; i < reader->families_count; i++) {
		assert_true(reader->families[i].has_help);
		if (strcmp(reader->families[i].type, "histogram") == 0)
			assert_string_equal(reader->families[i].unit, "seconds");
	}
}

static double value_of(const struct reader *reader, const char *name, const char *labels)
{
	for (unsigned i = 0; i < reader->samples_count; i++) {
		if (strcmp(reader->samples[i].name, name) == 0 && strcmp(reader->samples[i].labels, labels) == 0)
			return reader->samples[i].value;
	}
	fail_msg("no sample %s{%s}", name, labels);
	return 0;
}

static bool has_sample(const struct reader *reader, const char *name, const char *labels)
{
	for (unsigned i = 0; i < reader->samples_count; i++) {
		if (strcmp(reader->samples[i].name, name) == 0 && strcmp(reader->samples[i].labels, labels) == 0)
			return true;
	}
	return false;
}

static struct view *make_view(const char *name, struct stats_page *page, size_t bytes, bool swapped_on)
{
	const struct swap_entry swap = {
		.path = "/dev/loop3", .size_bytes = GIB, .used_bytes = 480 * MIB, .priority = 100};
	struct control_info info = fake_info(name);
	struct view *view = view_create();

	assert_int_equal(view_fill(view, &info, page, bytes, swapped_on ? &swap : NULL), 0);
	return view;
}

/* Latencies whose place among the buckets is known: 1023 ns is within 1.023 us, 1024 ns is not. */
static void add_requests(struct stats_page *page)
{
	static const uint64_t latencies[] = {0, 1023, 1024, 5000, 1000000, UINT64_C(20000000000)};

	for (unsigned i = 0; i < 6; i++)
		stats_request(stats_page_io(page, i & 1), STATS_READ, 32 * KIB, latencies[i], i == 5 ? -EIO : 0);
	stats_request(stats_page_io(page, 0), STATS_WRITE, 2 * MIB, 3000, 0);
	stats_count(&stats_page_io(page, 1)->room_waits, 9);
	hist_record(&stats_page_worker(page, 0)->close_ns, 2000000);
}

static struct reader *read_views(struct view *const *views, unsigned count)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	CLEANUP(free) char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	openmetrics_write(out, views, count);
	fclose(out);
	read_text(reader, text);
	return reader;
}

static void test_values(void **state)
{
	size_t bytes;
	CLEANUP(free) struct stats_page *page = fake_page(&bytes);
	CLEANUP(free) struct reader *reader = NULL;
	struct view *views[3];

	(void)state;
	add_requests(page);
	views[0] = make_view("0", page, bytes, true);
	views[1] = make_view("1", page, bytes, false);
	views[2] = view_create();
	view_fill_dead(views[2], "2");
	reader = read_views(views, 3);
	assert_true(value_of(reader, "folioswap_swapped_bytes", "device=\"0\"") == 480.0 * MIB);
	assert_false(has_sample(reader, "folioswap_swapped_bytes", "device=\"1\""));
	assert_true(value_of(reader, "folioswap_data_bytes", "device=\"1\"") == 512.0 * MIB);
	assert_true(value_of(reader, "folioswap_stored_bytes", "device=\"0\"") == 143138816);
	assert_false(has_sample(reader, "folioswap_data_bytes", "device=\"2\""));
	assert_true(value_of(reader, "folioswap_up", "device=\"0\"") == 1);
	assert_true(value_of(reader, "folioswap_up", "device=\"2\"") == 0);
	assert_true(value_of(reader, "folioswap_dead_share_ratio", "device=\"0\"") == 0.0625);
	assert_true(value_of(reader, "folioswap_cpu_seconds_total", "device=\"0\"") == 2.5);
	assert_true(value_of(reader, "folioswap_room_waits_total", "device=\"0\"") == 9);
	assert_true(value_of(reader, "folioswap_requests_total", "device=\"0\",kind=\"read\",order=\"3\"") == 6);
	assert_true(value_of(reader, "folioswap_request_bytes_total", "device=\"0\",kind=\"write\",order=\"9\"") ==
		    2.0 * MIB);
	assert_true(value_of(reader, "folioswap_request_errors_total", "device=\"0\",kind=\"read\",order=\"3\"") == 1);
	assert_true(value_of(reader, "folioswap_device_info",
			    "device=\"0\",node=\"/dev/"
			    "loop3\",codec=\"zstd:1\",transport=\"fuse\",unit=\"2097152\",frame=\"65536\"") == 1);
	for (unsigned i = 0; i < 3; i++)
		view_destroy(views[i]);
}

/* Counters are there from the start, times once there is one. */
static void test_takeovers(void **state)
{
	size_t bytes;
	CLEANUP(free) struct stats_page *page = fake_page(&bytes);
	struct reader *reader;
	struct view *view;

	(void)state;
	for (unsigned outages = 0; outages < 2; outages++) {
		page->takeovers.count = outages;
		page->takeovers.requeued = 7 * outages;
		page->takeovers.blamed = 2 * outages;
		page->takeovers.last_outage_ns = 12000000 * outages;
		page->takeovers.worst_outage_ns = 30000000 * outages;
		view = make_view("0", page, bytes, false);
		reader = read_views(&view, 1);
		assert_true(value_of(reader, "folioswap_recoveries_total", "device=\"0\"") == outages);
		assert_true(value_of(reader, "folioswap_requeued_requests_total", "device=\"0\"") == 7 * outages);
		assert_true(value_of(reader, "folioswap_blamed_requests_total", "device=\"0\"") == 2 * outages);
		assert_true(value_of(reader, "folioswap_standby_bytes", "device=\"0\"") == 4.0 * MIB);
		assert_true(value_of(reader, "folioswap_resident_bytes", "device=\"0\"") == 184.0 * MIB);
		assert_int_equal(has_sample(reader, "folioswap_last_outage_seconds", "device=\"0\""), outages);
		if (outages)
			assert_true(value_of(reader, "folioswap_worst_outage_seconds", "device=\"0\"") == 0.03);
		free(reader);
		view_destroy(view);
	}
}

/* Buckets of one histogram: cumulative, le rising, +Inf equal to _count. */
static void check_buckets(const struct reader *reader, const char *name, const char *labels)
{
	char bucket[96], count[96];
	double last_le = -1, last_value = 0;
	bool has_infinity = false;

	snprintf(bucket, sizeof(bucket), "%s_bucket", name);
	snprintf(count, sizeof(count), "%s_count", name);
	for (unsigned i = 0; i < reader->samples_count; i++) {
		const struct sample *sample = &reader->samples[i];
		size_t length = strlen(labels);
		double le;

		if (strcmp(sample->name, bucket) != 0 || strncmp(sample->labels, labels, length) != 0)
			continue;
		assert_false(has_infinity);
		assert_true(sample->value >= last_value);
		last_value = sample->value;
		assert_true(strncmp(sample->labels + length, ",le=\"", 5) == 0);
		has_infinity = strcmp(sample->labels + length + 5, "+Inf\"") == 0;
		if (has_infinity)
			continue;
		le = atof(sample->labels + length + 5);
		assert_true(le > last_le);
		last_le = le;
	}
	assert_true(has_infinity);
	assert_true(last_value == value_of(reader, count, labels));
}

static void test_histograms(void **state)
{
	static const char read_labels[] = "device=\"0\",kind=\"read\",order=\"3\"";
	static const struct {
		const char *le;
		double count;
	} expected[] = {{"0.000001023", 2}, {"0.000002047", 3}, {"0.000008191", 4}, {"0.000524287", 4},
		{"0.001048575", 5}, {"8.589934591", 5}, {"+Inf", 6}};
	size_t bytes;
	CLEANUP(free) struct stats_page *page = fake_page(&bytes);
	CLEANUP(free) struct reader *reader = NULL;
	struct view *view;

	(void)state;
	add_requests(page);
	view = make_view("0", page, bytes, true);
	reader = read_views(&view, 1);
	check_buckets(reader, "folioswap_request_latency_seconds", read_labels);
	check_buckets(reader, "folioswap_request_latency_seconds", "device=\"0\",kind=\"write\",order=\"9\"");
	check_buckets(reader, "folioswap_close_seconds", "device=\"0\"");
	for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		char labels[128];

		snprintf(labels, sizeof(labels), "%s,le=\"%s\"", read_labels, expected[i].le);
		assert_true(value_of(reader, "folioswap_request_latency_seconds_bucket", labels) == expected[i].count);
	}
	assert_true(value_of(reader, "folioswap_request_latency_seconds_sum", read_labels) == 20.001007047);
	view_destroy(view);
}

static void test_file(void **state)
{
	char directory[] = "/tmp/folioswap-metrics-XXXXXX", path[64], temporary[80], victim[64];
	size_t bytes;
	CLEANUP(free) struct stats_page *page = fake_page(&bytes);
	struct view *view = make_view("0", page, bytes, true);
	struct capture capture;
	CLEANUP(free) char *text = NULL;
	struct stat status;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/folioswap.prom", directory);
	snprintf(temporary, sizeof(temporary), "%s.tmp", path);
	snprintf(victim, sizeof(victim), "%s/victim", directory);
	/* A link at FILE.tmp is replaced, what it points to stays untouched. */
	assert_int_equal(symlink(victim, temporary), 0);
	assert_int_equal(openmetrics_write_file(path, &view, 1), CLI_DONE);
	assert_int_equal(stat(victim, &status), -1);
	assert_int_equal(lstat(temporary, &status), -1);
	assert_int_equal(stat(path, &status), 0);
	assert_true(status.st_size > 1000 && S_ISREG(status.st_mode));
	/* A directory in the way: nothing is left behind. */
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	cli_begin(&cmd_stat);
	capture = capture_begin(stderr);
	assert_int_equal(openmetrics_write_file(path, &view, 1), CLI_FAILED);
	assert_int_equal(openmetrics_write_file("/nonexistent/x/y.prom", &view, 1), CLI_FAILED);
	text = capture_end(&capture);
	assert_non_null(strstr(text, "cannot write"));
	assert_int_equal(lstat(temporary, &status), -1);
	rmdir(path);
	assert_int_equal(rmdir(directory), 0);
	view_destroy(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_takeovers),
		cmocka_unit_test(test_histograms),
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
