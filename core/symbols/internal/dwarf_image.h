/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DWARF sections of a file as a small ELF file in memory, which libdw reads. Each section is
 * read once and uncompressed in place (zstd too, which libdw 0.188 cannot), other sections are not
 * read, and libdw has no file name to open another file by.
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
