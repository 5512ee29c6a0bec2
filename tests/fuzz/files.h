/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the tested code opens by name are the text, with -Wl,--wrap=open and --wrap=fopen. */
#ifndef FUZZ_FILES_H
#define FUZZ_FILES_H

#include "fuzz.h"

int __wrap_open(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen(const char *path, const char *mode);
int __wrap_stat(const char *path, struct stat *st);
int __real_stat(const char *path, struct stat *st);

static const uint8_t *text;
static size_t length;
static bool active; /* libFuzzer opens files too */

static bool is_ours(const char *path);

int __wrap_open(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	if (is_ours(path))
		return file_of(text, length);
	va_start(ap, flags);
	mode = va_arg(ap, int);
	va_end(ap);
	return __real_open(path, flags, mode);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	return is_ours(path) ? fdopen(file_of(text, length), "r") : __real_fopen(path, mode);
}
#endif
