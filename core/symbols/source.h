/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections of one ELF64 little-endian file, by name, from a descriptor or from memory. Headers
 * are read by libelf; contents are read straight into the caller's memory and uncompressed there
 * (zlib, zstd, .zdebug_), so that nothing is held twice. Never mapped: a file that shrinks would
 * kill us.
 */
#ifndef SYMBOLS_SOURCE_H
#define SYMBOLS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source;

struct source_section {
	char name[48];           /* .zdebug_x is called .debug_x */
	uint64_t vaddr, flags;   /* sh_addr, sh_flags */
	uint64_t size;           /* uncompressed */
	uint64_t offset, stored; /* where the file has it, and how many bytes there */
	uint32_t type;
	uint32_t packing; /* enum source_packing */
};

enum source_packing { SOURCE_PLAIN, SOURCE_ZLIB, SOURCE_ZSTD, SOURCE_UNKNOWN };

/* fd and memory are borrowed until source_close(). 0; -ENOEXEC: not such a file; -EBADMSG: it lies;
 * -ENOMEM */
int source_open(struct source **ret, int fd);
int source_open_memory(struct source **ret, const void *image, size_t len);
void source_close(struct source *); /* NULL is fine */

uint16_t source_machine(const struct source *);
/* Is vaddr within an executable PT_LOAD? */
bool source_is_code(const struct source *, uint64_t vaddr);
/* Section i, or NULL past the last one. */
const struct source_section *source_section(const struct source *, size_t i);
/* The first section of that name that has contents, or NULL. */
const struct source_section *source_find(const struct source *, const char *name);
/* All of a section, uncompressed, into size bytes at buf. 0; -EIO: cut short; -EBADMSG; -ENOTSUP;
 * -ENOMEM. */
int source_read(const struct source *, const struct source_section *, void *buf);
/* The same into new memory, a NUL byte after it; *len without it. -ENOENT, or -EFBIG beyond max. */
int source_load(const struct source *, const char *name, uint64_t max, char **ret, size_t *len);
/* len bytes at vaddr from a section with contents (not a compressed one). 0 or -ENOENT, -EIO. */
int source_read_at(const struct source *, uint64_t vaddr, void *buf, size_t len);

/* The build id's raw bytes, at most 64; returns how many, 0 none. */
size_t source_build_id(const struct source *, uint8_t id[64]);
/* CRC-32 of the whole file, as .gnu_debuglink has it. */
int source_crc(const struct source *, uint32_t *crc);
#endif
