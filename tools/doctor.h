/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks of the host. Each looks at one thing and gives one line: what was
 * found and, unless all is well, what to do. Files are read below a root
 * directory, so that tests give a made-up host.
 */
#ifndef TOOLS_DOCTOR_H
#define TOOLS_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum doctor_status {
	DOCTOR_OK,
	DOCTOR_WARN, /* works, but slower, larger or less safe than it could */
	DOCTOR_FAIL, /* does not work, or is not safe to swap to */
};

struct doctor_result {
	enum doctor_status status;
	char found[640];
	char advice[300];
};

struct doctor_check {
	const char *name; /* NULL ends a list */
	void (*run)(const char *root, struct doctor_result *result);
};

extern const struct doctor_check doctor_kernel_checks[];
extern const struct doctor_check doctor_memory_checks[];
extern const struct doctor_check doctor_device_checks[];

/* In doctor_ublk.c: of the kernel's list; and what it says of a driver with these features (ublk_abi.h). */
void doctor_check_ublk(const char *root, struct doctor_result *result);
void doctor_tell_ublk(const char *root, uint64_t features, struct doctor_result *result);

/* In doctor_takeover.c: the same. ublk_features: 0 without a driver. */
void doctor_check_takeover(const char *root, struct doctor_result *result);
void doctor_tell_takeover(const char *root, bool noswap, uint64_t ublk_features, struct doctor_result *result);

/* ---- for the checks ---- */

/* The kernel's release, and its version as a number: 6012 is 6.12. */
unsigned doctor_version(const char *root, char *release, size_t release_bytes);

void doctor_ok(struct doctor_result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));
void doctor_warn(struct doctor_result *result, const char *advice, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void doctor_fail(struct doctor_result *result, const char *advice, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* root + path into buffer. */
const char *doctor_path(const char *root, const char *path, char *buffer, size_t buffer_bytes);
bool doctor_exists(const char *root, const char *path);

/* The first line of a file, without its line feed. Returns false when it cannot be read; text is then "". */
bool doctor_read(const char *root, const char *path, char *text, size_t text_bytes);

/* The first number of a file. */
bool doctor_read_number(const char *root, const char *path, long long *ret);

/* "always [madvise] never": the word in brackets. */
bool doctor_read_choice(const char *root, const char *path, char *word, size_t word_bytes);

/* "MemAvailable:  123 kB" and "thp_swpout 12" style files: the number after the key. */
bool doctor_read_key(const char *root, const char *path, const char *key, long long *ret);

#endif
