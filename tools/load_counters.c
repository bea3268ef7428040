// SPDX-License-Identifier: GPL-2.0-or-later
/* Counters out of /proc and /sys. */
#include "load_counters.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "load_generate.h"

struct field {
	const char *key;
	size_t offset;
};

#define FIELD(key, member) \
	{ \
		key, offsetof(struct load_counters, member) \
	}

static const struct field vmstat_fields[] = {
	FIELD("thp_fault_alloc", thp_fault_alloc),
	FIELD("thp_swpout", thp_swpout),
	FIELD("thp_swpout_fallback", thp_swpout_fallback),
	FIELD("pswpin", pswpin),
	FIELD("pswpout", pswpout),
	FIELD("nr_writeback", writeback_pages),
	{NULL, 0},
};

static const struct field meminfo_fields[] = {
	FIELD("SwapTotal:", swap_total_bytes),
	FIELD("SwapFree:", swap_free_bytes),
	{NULL, 0},
};

static void read_fields(const char *path, const struct field *fields, uint64_t scale, void *into)
{
	CLEANUP(fclose) FILE *file = fopen(path, "re");
	char line[256], key[128];
	uint64_t value;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%127s %" SCNu64, key, &value) != 2)
			continue;
		for (const struct field *field = fields; field->key; field++) {
			if (strcmp(key, field->key) != 0)
				continue;
			value *= scale;
			memcpy((char *)into + field->offset, &value, sizeof(value));
		}
	}
}

void load_counters_read(struct load_counters *ret_counters)
{
	memset(ret_counters, 0, sizeof(*ret_counters));
	read_fields("/proc/vmstat", vmstat_fields, 1, ret_counters);
	read_fields("/proc/meminfo", meminfo_fields, KIB, ret_counters);
}

uint64_t load_process_swap_bytes(pid_t pid)
{
	static const struct field fields[] = {{"VmSwap:", 0}, {NULL, 0}};
	uint64_t bytes = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	read_fields(path, fields, KIB, &bytes);
	return bytes;
}

uint64_t load_huge_page_bytes(void)
{
	CLEANUP(fclose) FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "re");
	uint64_t bytes;

	if (!file || fscanf(file, "%" SCNu64, &bytes) != 1 || bytes < LOAD_FOLIO_BYTES || (bytes & (bytes - 1)))
		return LOAD_FOLIO_BYTES;
	return bytes;
}
