/* SPDX-License-Identifier: Apache-2.0 */
/* The file by which code that was made at run time is handed to the worker: an ELF file with one
 * section, .fusee.made, whose form is that of plugins/unwinders/dwarf/code/madefile.h. */
#ifndef UNWIND_MADE_IMAGE_H
#define UNWIND_MADE_IMAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct opener;

#define MADE_MAX_STARTS 4096u
#define MADE_MAX_PIECES 64u
#define MADE_PIECE_BYTES 16384u

/* Memory of a process, and where stacks passed through it. */
struct made_view {
	pid_t pid;
	uint64_t lo, hi;  /* the mapping */
	uint64_t bias;    /* subtracted from each address in the file */
	uint64_t *starts; /* address << 1 | it is a return address; sorted here */
	uint32_t n;
};

/* Reads the code around the starts, MADE_MAX_PIECES pieces at most, and appends the section to
 * `out`. 0; -ESRCH, -EFAULT: there is none; -ENOMEM; as opener_call(). */
int made_image_read(struct opener *, struct made_view *, struct buf *out);
/* A file with the section: fd or -errno. */
int made_image_file(const struct buf *section);
#endif
