/* SPDX-License-Identifier: Apache-2.0 */
/* What each fuzzer begins with. */
#ifndef FUZZ_H
#define FUZZ_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FUZZ __attribute__((unused)) static

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

FUZZ void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "not true: %s\n", what);
	abort();
}

/* All of it can be read. */
FUZZ void touch(const void *p, uint64_t len)
{
	uint8_t sum = 0;

	for (uint64_t i = 0; i < len; i++)
		sum ^= ((const uint8_t *)p)[i];
	__asm__ volatile("" : : "r"(sum));
}

/* A file of these bytes. */
FUZZ int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET))
		abort();
	return fd;
}

/* A copy of an answer's body, with a NUL behind it as behind each; NULL: no memory. */
FUZZ char *body_of(const uint8_t *data, size_t size)
{
	char *body = malloc(size + 1);

	if (body) {
		memcpy(body, data, size);
		body[size] = '\0';
	}
	return body;
}
#endif
