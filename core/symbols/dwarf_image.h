/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DWARF sections of a file as a small ELF file in memory, which libdw reads. So sections are
 * read once and uncompressed in place (zstd too, that libdw 0.188 can't), sections that nobody asks
 * for cost nothing, and libdw never opens a file by a name that it found in another.
 */
#ifndef SYMBOLS_DWARF_IMAGE_H
#define SYMBOLS_DWARF_IMAGE_H

#include <elfutils/libdw.h>
#include <stddef.h>

struct source;

struct dwarf_image {
	char *p; /* owned */
	size_t len;
	Elf *elf;
};

/* 0; -ENOENT: no DWARF; -ENOMEM; -EIO; -EBADMSG: a section can't be uncompressed; -ENOTSUP; -EFBIG
 */
int dwarf_image_make(struct dwarf_image *, const struct source *);
void dwarf_image_fini(struct dwarf_image *);
#endif
