// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading the host for the checks. */
#include "doctor.h"

#include "cleanup.h"
#include "textfile.h"

#include <stdarg.h>
#include <string.h>

#define PATH_BYTES 1024

static void set_result(struct doctor_result *result, enum doctor_status status, const char *advice, const char *format,
	va_list arguments)
{
	result->status = status;
	vsnprintf(result->found, sizeof(result->found), format, arguments);
	snprintf(result->advice, sizeof(result->advice), "%s", advice);
}

void doctor_ok(struct doctor_result *result, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	set_result(result, DOCTOR_OK, "", format, arguments);
	va_end(arguments);
}

void doctor_warn(struct doctor_result *result, const char *advice, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	set_result(result, DOCTOR_WARN, advice, format, arguments);
	va_end(arguments);
}

void doctor_fail(struct doctor_result *result, const char *advice, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	set_result(result, DOCTOR_FAIL, advice, format, arguments);
	va_end(arguments);
}

const char *doctor_path(const char *root, const char *path, char *buffer, size_t buffer_bytes)
{
	snprintf(buffer, buffer_bytes, "%s%s", root, path);
	return buffer;
}

bool doctor_exists(const char *root, const char *path)
{
	char full[2 * PATH_BYTES];

	return access(doctor_path(root, path, full, sizeof(full)), F_OK) == 0;
}

bool doctor_read(const char *root, const char *path, char *text, size_t text_bytes)
{
	char full[2 * PATH_BYTES];

	return textfile_line(doctor_path(root, path, full, sizeof(full)), text, text_bytes);
}

bool doctor_read_number(const char *root, const char *path, long long *ret)
{
	char text[64];

	return doctor_read(root, path, text, sizeof(text)) && sscanf(text, "%lld", ret) == 1;
}

bool doctor_read_choice(const char *root, const char *path, char *word, size_t word_bytes)
{
	char text[256], *begin, *end;

	word[0] = '\0';
	if (!doctor_read(root, path, text, sizeof(text)))
		return false;
	begin = strchr(text, '[');
	end = begin ? strchr(begin, ']') : NULL;
	if (!end)
		return false;
	*end = '\0';
	snprintf(word, word_bytes, "%s", begin + 1);
	return true;
}

bool doctor_read_key(const char *root, const char *path, const char *key, long long *ret)
{
	char full[2 * PATH_BYTES], line[256];
	CLEANUP(fclose) FILE *file = fopen(doctor_path(root, path, full, sizeof(full)), "re");
	size_t length = strlen(key);

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, length) == 0 && strchr(": \t", line[length]) &&
			sscanf(line + length + strspn(line + length, ": \t"), "%lld", ret) == 1)
			return true;
	}
	return false;
}
