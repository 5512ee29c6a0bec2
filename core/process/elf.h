/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A careful ELF reader, for the worker: reads by pread, never by mmap (a file that shrinks while
 * mapped would kill us), checks every range, and holds what it read until elf_close(). By hand, not
 * by libelf: that one knows no zstd before 0.189 and trusts more numbers than we do.
 */
#ifndef PROCESS_ELF_H
#define PROCESS_ELF_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

struct elf;

/* fd is borrowed until elf_close(); a regular file, or -ENOEXEC. 0; -ENOEXEC: not ELF64
 * little-endian; -EBADMSG: it lies; -ENOMEM; -EIO. */
int elf_open(struct elf **ret, int fd);
void elf_close(struct elf *);
int elf_fd(const struct elf *);
/* The file is taken as it was then: a section is read once. Pointers in info and sections live
 * until elf_close(). Sections come uncompressed (zlib, zstd, .zdebug_). */
int elf_info(struct elf *, struct fusee_file_info *info);
/* Also .eh_frame and .eh_frame_hdr of a file whose section headers were taken away, by
 * PT_GNU_EH_FRAME. -ENOENT; -EBADMSG; -ENOMEM. At most 1 GiB, uncompressed. */
int elf_section(struct elf *, const char *name, struct fusee_section *section);
/* Through PT_LOAD, what the file holds of it: all of it or an error. -ENOENT: outside. */
int elf_read(struct elf *, uint64_t vaddr, void *buf, uint32_t len);
/* It is there and has bytes in the file; nothing is read. */
bool elf_has_section(const struct elf *, const char *name);
/* The ELF header, the program headers and the section headers, as they stand in the file. */
void elf_headers(const struct elf *, struct fusee_str headers[3]);
/* st_size. */
uint64_t elf_size(const struct elf *);
/* .symtab, then .dynsym; a defined symbol. Linear: for a handful of names. */
int elf_symbol(struct elf *, const char *name, struct fusee_range *at);
/* .gnu_debuglink: name (lives until close) and CRC; -ENOENT. */
int elf_debuglink(struct elf *, const char **name, uint32_t *crc);
/* .gnu_debugaltlink: name and build id (raw bytes). */
int elf_debugaltlink(struct elf *, const char **name, struct fusee_str *build_id);
#endif
