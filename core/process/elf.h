/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF reader for foreign files, used in the worker. It reads by pread and never maps (a file
 * that shrinks while mapped ends the process by SIGBUS), checks every offset and size against the
 * file and fixed limits, and keeps what it read until elf_close(). libelf before 0.189 has no zstd
 * and checks less. One thread an object.
 */
#ifndef PROCESS_ELF_H
#define PROCESS_ELF_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

struct elf;

/* fd is borrowed until elf_close(). 0; -ENOEXEC: no regular file, or not ELF64 little-endian;
 * -EBADMSG: inconsistent headers; -ENOMEM; -EIO. */
int elf_open(struct elf **ret, int fd);
void elf_close(struct elf *);
int elf_fd(const struct elf *);
/* Everything that these functions return is valid until elf_close(). Each section is read once, so
 * later changes of the file are not seen. */
int elf_info(struct elf *, struct fusee_file_info *info);
/* A section, uncompressed (zlib, zstd, .zdebug_), of at most 1 GiB. Without section headers,
 * .eh_frame and .eh_frame_hdr are found by PT_GNU_EH_FRAME. -ENOENT; -EBADMSG; -ENOMEM; -EIO. */
int elf_section(struct elf *, const char *name, struct fusee_section *section);
/* Reads len bytes at an ELF virtual address, which the file must hold in one PT_LOAD. -ENOENT: it
 * does not; -EBADMSG; -EIO. */
int elf_read(struct elf *, uint64_t vaddr, void *buf, uint32_t len);
/* Whether the section exists and has bytes in the file. Reads nothing. */
bool elf_has_section(const struct elf *, const char *name);
/* The ELF header, the program headers and the section headers, as in the file. */
void elf_headers(const struct elf *, struct fusee_str headers[3]);
/* Bytes of the file when it was opened. */
uint64_t elf_size(const struct elf *);
/* The range of a defined symbol of .symtab, else of .dynsym. Linear search. -ENOENT. */
int elf_symbol(struct elf *, const char *name, struct fusee_range *at);
/* Whether .dynsym has an undefined symbol of these names, which end with NULL. -ENOENT: the file
 * has no dynamic symbols; -EBADMSG; -ENOMEM; -EIO. */
int elf_imports(struct elf *, const char *const *names, bool *imports);
/* The name and CRC in .gnu_debuglink. -ENOENT; -EBADMSG. */
int elf_debuglink(struct elf *, const char **name, uint32_t *crc);
#endif
