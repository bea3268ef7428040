// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of fields, and choosing from it. */
#include "fields.h"

#include "cli.h"

#include <string.h>
#include <strings.h>

#define AT(member) offsetof(struct view, member), sizeof(((struct view *)0)->member)
#define INFO(member) AT(info.member)
#define GAUGE(member) AT(gauges.member)
#define FIGURE(member) AT(figures.member)
#define SUM(member) AT(sum.member)
#define TAKEOVER(member) AT(takeovers.member)

const struct field fields[] = {
	{"NAME", NULL, VALUE_TEXT, FIELD_CONFIG | FIELD_LIST | FIELD_DEAD, INFO(name), "number of the device"},
	{"NODE", NULL, VALUE_TEXT, FIELD_CONFIG | FIELD_LIST, INFO(node), "block device"},
	{"STATE", NULL, VALUE_TEXT, FIELD_CONFIG | FIELD_DEAD, AT(state),
		"up; silent: no answer, but its keeper lives; dead"},
	{"SIZE", "size", VALUE_BYTES, FIELD_CONFIG | FIELD_LIST, INFO(size_bytes), "of the block device"},
	{"MAX-SIZE", NULL, VALUE_BYTES, FIELD_CONFIG, INFO(max_size_bytes), "address space kept for growing"},
	{"CODEC", NULL, VALUE_TEXT, FIELD_CONFIG | FIELD_LIST, AT(codec), "codec and level of new objects"},
	{"UNIT", NULL, VALUE_BYTES, FIELD_CONFIG | FIELD_LIST, INFO(unit_bytes), "what is kept together"},
	{"FRAME", NULL, VALUE_BYTES, FIELD_CONFIG | FIELD_LIST, INFO(frame_bytes),
		"what is decoded at a time, of new objects"},
	{"TRANSPORT", NULL, VALUE_TEXT, FIELD_CONFIG | FIELD_LIST, INFO(transport), "how requests reach the daemon"},

	{"SWAPPED", "swapped", VALUE_BYTES, FIELD_LIST, FIGURE(swapped_bytes), "in use, says /proc/swaps"},
	{"EFFECTIVE", "effective_ratio", VALUE_RATIO, FIELD_LIST, FIGURE(effective_ratio),
		"effective ratio: swapped / stored"},
	{"DEAD", "dead_share_ratio", VALUE_SHARE, 0, FIGURE(dead_share), "dead share: (data - swapped) / data"},
	{"DATA", "data", VALUE_BYTES, FIELD_LIST, FIGURE(data_bytes), "held for the kernel, uncompressed"},
	{"PAYLOAD", "payload", VALUE_BYTES, 0, FIGURE(payload_bytes), "compressed frames and their tables"},
	{"STORED", "stored", VALUE_BYTES, FIELD_LIST, FIGURE(stored_bytes), "payload, allocator and index"},
	{"RESIDENT", "resident", VALUE_BYTES, 0, FIGURE(resident_bytes), "memory of the daemon, all told"},
	{"PAYLOAD-RATIO", NULL, VALUE_RATIO, 0, FIGURE(payload_ratio), "data / payload"},
	{"RATIO", NULL, VALUE_RATIO, FIELD_LIST, FIGURE(stored_ratio), "data / stored"},
	{"RESIDENT-RATIO", NULL, VALUE_RATIO, 0, FIGURE(resident_ratio), "data / resident"},
	{"PRIO", NULL, VALUE_INTEGER, FIELD_LIST, AT(swap_priority), "swap priority"},

	{"SAME", "same_filled", VALUE_BYTES, 0, GAUGE(same_bytes), "data that repeats one word: no payload"},
	{"RAW", "raw", VALUE_BYTES, 0, GAUGE(raw_bytes), "data that did not shrink"},
	{"STAGED", "staged", VALUE_BYTES, 0, GAUGE(slot_bytes), "data in staging slots, not yet compressed"},
	{"OBJECTS", "objects", VALUE_COUNT, 0, GAUGE(objects), "compressed objects"},
	{"OBJECT-BYTES", "object", VALUE_BYTES, 0, GAUGE(object_bytes), "plain size of all objects, dead parts too"},
	{"LOST", "lost_granules", VALUE_COUNT, 0, GAUGE(lost_granules), "granules found damaged by a recovery"},

	{"LIMIT", "limit", VALUE_BYTES, 0, INFO(limit_bytes), "of the memory for data and records; empty: none"},
	{"HEADROOM", "headroom", VALUE_BYTES, 0, GAUGE(headroom_bytes), "of that, kept for closing and compacting"},
	{"READY", "arena_ready", VALUE_BYTES, 0, GAUGE(arena_ready_bytes), "arena with memory behind it"},
	{"EMPTY", "arena_empty", VALUE_BYTES, 0, GAUGE(arena_empty_bytes), "of that, in whole empty chunks"},
	{"RESERVE", NULL, VALUE_BYTES, 0, INFO(reserve_bytes), "empty room that is kept ready"},
	{"EXTENTS", "extents", VALUE_BYTES, 0, GAUGE(extent_bytes), "payload, rounded up by the arena"},
	{"EXTENTS-PEAK", "extents_peak", VALUE_BYTES, 0, GAUGE(extent_peak_bytes), "the most that there ever were"},

	{"INDEX", "index", VALUE_BYTES, 0, FIGURE(index_bytes), "map words and records of what is live"},
	{"MAP", "map", VALUE_BYTES, 0, GAUGE(map_bytes), "resident: granule map"},
	{"RECORDS", "records", VALUE_BYTES, 0, GAUGE(records_ready_bytes), "resident: object records and tables"},
	{"FIXED", "fixed", VALUE_BYTES, 0, GAUGE(fixed_bytes), "resident: slots, codec contexts, buffers"},
	{"STANDBY-MEM", "standby", VALUE_BYTES, 0, INFO(standby_bytes), "resident: the server that stands by"},
	{"OTHER", "other", VALUE_BYTES, 0, FIGURE(other_bytes), "resident: programs, libraries, stacks"},

	{"READS", NULL, VALUE_COUNT, 0, AT(requests[STATS_READ]), "read requests"},
	{"READ-BYTES", NULL, VALUE_BYTES, 0, AT(bytes[STATS_READ]), "bytes read"},
	{"WRITES", NULL, VALUE_COUNT, 0, AT(requests[STATS_WRITE]), "write requests"},
	{"WRITE-BYTES", NULL, VALUE_BYTES, 0, AT(bytes[STATS_WRITE]), "bytes written"},
	{"DISCARDS", NULL, VALUE_COUNT, 0, AT(requests[STATS_DISCARD]), "discard requests"},
	{"DISCARD-BYTES", NULL, VALUE_BYTES, 0, AT(bytes[STATS_DISCARD]), "bytes discarded"},
	{"READ-AMP", NULL, VALUE_RATIO, 0, AT(read_amplification), "read amplification: decoded / asked"},
	{"FRAME-HITS", NULL, VALUE_SHARE, 0, AT(frame_hit_share), "partial reads served by a decoded frame"},

	{"DIRECT", "direct_objects", VALUE_COUNT, FIELD_COUNTER, SUM(io.direct_objects),
		"small writes that became objects at once"},
	{"SLOT-WAITS", "slot_waits", VALUE_COUNT, FIELD_COUNTER, SUM(io.slot_waits), "writes that waited for a slot"},
	{"ROOM-WAITS", "room_waits", VALUE_COUNT, FIELD_COUNTER, SUM(io.room_waits), "writes that waited for room"},
	{"REFUSED", "refused_writes", VALUE_COUNT, FIELD_COUNTER, SUM(io.refused), "writes refused for want of memory"},
	{"BAD-FRAMES", "bad_frames", VALUE_COUNT, FIELD_COUNTER, SUM(io.bad_frames), "reads of damaged data"},
	{"READ-ERRORS", NULL, VALUE_COUNT, 0, AT(errors[STATS_READ]), "reads that failed"},
	{"WRITE-ERRORS", NULL, VALUE_COUNT, 0, AT(errors[STATS_WRITE]), "writes that failed"},
	{"DISCARD-ERRORS", NULL, VALUE_COUNT, 0, AT(errors[STATS_DISCARD]), "discards that failed"},

	{"REWRITTEN", "rewritten", VALUE_BYTES, FIELD_COUNTER, SUM(worker.rewritten_bytes),
		"rewritten to drop dead data"},
	{"MOVED", "moved", VALUE_BYTES, FIELD_COUNTER, SUM(worker.moved_bytes), "moved by compaction"},
	{"PUNCHED", "punched", VALUE_BYTES, FIELD_COUNTER, SUM(worker.punched_bytes), "given back to the system"},
	{"DROPPED", "closed_dropped", VALUE_BYTES, FIELD_COUNTER, SUM(worker.closed_dropped_bytes),
		"changed while it was compressed"},
	{"COMPRESS-CPU", "compress_cpu", VALUE_NS, FIELD_COUNTER, SUM(worker.cpu_ns),
		"CPU time of compression threads"},
	{"CPU", "cpu", VALUE_NS, FIELD_COUNTER, INFO(daemon_cpu_ns), "CPU time of the daemon"},
	{"RECOVERY", "recovery", VALUE_NS, 0, GAUGE(recovery_ns), "time of the last start"},

	{"RECOVERIES", "recoveries", VALUE_COUNT, FIELD_COUNTER | FIELD_EVENT, TAKEOVER(count),
		"servers that took over from one that died or was replaced"},
	{"REQUEUED", "requeued_requests", VALUE_COUNT, FIELD_COUNTER | FIELD_EVENT, TAKEOVER(requeued),
		"requests that were asked again for that"},
	{"BLAMED", "blamed_requests", VALUE_COUNT, FIELD_COUNTER | FIELD_EVENT, TAKEOVER(blamed),
		"of those, failed: in execution at two crashes in a row"},
	{"LAST-OUTAGE", "last_outage", VALUE_NS, 0, TAKEOVER(last_outage_ns),
		"from the end of a server to the first answer of the next"},
	{"WORST-OUTAGE", "worst_outage", VALUE_NS, 0, TAKEOVER(worst_outage_ns), "the longest of them"},
	{"LAST-RECOVER", "last_recover", VALUE_NS, 0, TAKEOVER(last_recover_ns),
		"of the last take-over: building the store's tables"},
	{"LAST-OPEN", "last_open", VALUE_NS, 0, TAKEOVER(last_open_ns),
		"of the last take-over: from then until requests came"},

	{"SLOTS", NULL, VALUE_COUNT, FIELD_CONFIG, INFO(slots), "staging slots"},
	{"THREADS", NULL, VALUE_COUNT, FIELD_CONFIG, INFO(io_threads), "I/O threads"},
	{"COMPRESS-THREADS", NULL, VALUE_COUNT, FIELD_CONFIG, INFO(compress_threads), "compression threads"},
	{"DISCARD", NULL, VALUE_BOOL, FIELD_CONFIG, INFO(discard), "takes discard requests"},
	{"KEEPER", NULL, VALUE_INTEGER, FIELD_CONFIG | FIELD_DEAD, INFO(keeper_pid), "process that holds the device"},
	{"SERVER", NULL, VALUE_INTEGER, FIELD_CONFIG, INFO(server_pid), "process that serves requests"},
	{"STANDBY", NULL, VALUE_INTEGER, FIELD_CONFIG, AT(standby_pid), "process that would take over from it"},
	{"UNSAFE", NULL, VALUE_TEXT, FIELD_CONFIG, AT(unsafe), "what the daemon could not get; doctor says more"},
};
const unsigned fields_count = sizeof(fields) / sizeof(fields[0]);

_Static_assert(sizeof(fields) / sizeof(fields[0]) <= FIELDS_MAX, "a selection must fit");

static int find_column(const char *name, size_t length)
{
	for (unsigned i = 0; i < fields_count; i++) {
		if (strlen(fields[i].column) == length && strncasecmp(fields[i].column, name, length) == 0)
			return (int)i;
	}
	return -1;
}

unsigned fields_default(unsigned ret[FIELDS_MAX])
{
	unsigned count = 0;

	for (unsigned i = 0; i < fields_count; i++) {
		if (fields[i].flags & FIELD_LIST)
			ret[count++] = i;
	}
	return count;
}

unsigned fields_all(unsigned ret[FIELDS_MAX])
{
	for (unsigned i = 0; i < fields_count; i++)
		ret[i] = i;
	return fields_count;
}

static int refuse_column(const char *name, size_t length)
{
	cli_fail(CLI_USAGE, "--output: no column '%.*s'; 'folioswap list --help' names them all", (int)length, name);
	return -1;
}

int fields_select(const char *text, unsigned ret[FIELDS_MAX])
{
	unsigned count = 0;

	if (*text == '+') {
		count = fields_default(ret);
		text++;
	}
	for (;;) {
		size_t length = strcspn(text, ",");
		int index = find_column(text, length);

		if (index < 0)
			return refuse_column(text, length);
		if (count == FIELDS_MAX) {
			cli_fail(CLI_USAGE, "--output: more than %d columns", FIELDS_MAX);
			return -1;
		}
		ret[count++] = (unsigned)index;
		if (!text[length])
			return (int)count;
		text += length + 1;
	}
}

void fields_help(FILE *out)
{
	fputs("\nColumns (* shown by default):\n", out);
	for (unsigned i = 0; i < fields_count; i++)
		fprintf(out, "  %c %-18s%s\n", fields[i].flags & FIELD_LIST ? '*' : ' ', fields[i].column,
			fields[i].help);
}

void fields_cell(struct table *table, unsigned column, const struct field *field, const struct view *view)
{
	if (!view->is_up && !(field->flags & FIELD_DEAD))
		return;
	table_cell(table, column, (const char *)view + field->offset, field->bytes);
}
