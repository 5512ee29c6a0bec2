/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ELF64 little-endian file, from a descriptor or from memory. Headers are read by libelf;
 * contents are read into the caller's memory and uncompressed there (zlib, zstd, .zdebug_), so that
 * nothing is held twice. The file is never mapped: a file that shrinks while mapped ends the
 * process by SIGBUS.
 */
#ifndef SYMBOLS_SOURCE_H
#define SYMBOLS_SOURCE_H

#include <stddef.h>
#include <stdint.h>

struct source;

/* fd is borrowed until source_close(). 0; -ENOEXEC: not such a file; -EBADMSG: inconsistent
 * headers; -ENOMEM. */
int source_open(struct source **ret, int fd);
void source_close(struct source *); /* NULL is valid */
/* Copies the raw build ID. Returns its bytes; 0: none. */
size_t source_build_id(const struct source *, uint8_t id[64]);
#endif
