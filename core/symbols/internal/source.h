/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of a file, by name. */
#ifndef SYMBOLS_INTERNAL_SOURCE_H
#define SYMBOLS_INTERNAL_SOURCE_H

#include <stdbool.h>

#include "symbols/source.h"

struct source_section {
	char name[48];           /* .zdebug_x is called .debug_x */
	uint64_t vaddr, flags;   /* sh_addr, sh_flags */
	uint64_t size;           /* uncompressed */
	uint64_t offset, stored; /* in the file: position and bytes */
	uint32_t type;
	uint32_t packing; /* enum source_packing */
};

enum source_packing { SOURCE_PLAIN, SOURCE_ZLIB, SOURCE_ZSTD, SOURCE_UNKNOWN };

/* As source_open(). The image is borrowed until source_close(). */
int source_open_memory(struct source **ret, const void *image, size_t len);
uint16_t source_machine(const struct source *);
/* Whether vaddr is in an executable PT_LOAD. */
bool source_is_code(const struct source *, uint64_t vaddr);
/* Section i; NULL: there are not that many. */
const struct source_section *source_section(const struct source *, size_t i);
/* The first section of that name with contents; NULL: none. */
const struct source_section *source_find(const struct source *, const char *name);
/* Reads a section, uncompressed, to buf, which has section->size bytes. 0; -EIO: the file is too
 * short; -EBADMSG; -ENOTSUP: unknown compression; -ENOENT: no contents; -ENOMEM. */
int source_read(const struct source *, const struct source_section *, void *buf);
/* The same to new memory, which the caller frees, with a NUL byte after *len bytes. Also -ENOENT:
 * no such section; -EFBIG: larger than max bytes. */
int source_load(const struct source *, const char *name, uint64_t max, char **ret, size_t *len);
/* Reads len bytes at vaddr, which one uncompressed section must hold. 0, -ENOENT or -EIO. */
int source_read_at(const struct source *, uint64_t vaddr, void *buf, size_t len);
/* CRC-32 of the complete file, as in .gnu_debuglink. 0 or -errno. */
int source_crc(const struct source *, uint32_t *crc);
#endif
