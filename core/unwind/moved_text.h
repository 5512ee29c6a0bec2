/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code of a file that its process has copied to memory, for large pages, and moved to where it was.
 * Such memory is known by what is mapped beside it, or was in its place: it lies where an
 * executable segment of that file belongs, and its bytes are the file's. Other code there, as of a
 * JIT, stays code without a file. For one thread.
 */
#ifndef UNWIND_MOVED_TEXT_H
#define UNWIND_MOVED_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "process/process.h"
#include "files/files.h"

#define MOVED_TEXT_TRIES 8u   /* that fail, of one memory; then it is no file's code */
#define MOVED_TEXT_AWAITED 2u /* samples wait for so many, as the process may be copying */

/* The file whose code this memory of the process may have; file NULL: there is none. It may have to
 * be inspected first. */
struct process_text moved_text_of(struct files *, struct process *, const struct procfs_mapping *);

/* The mapping's file, while it is being inspected, or the file whose code its memory may have,
 * while that is soon to be known; NULL: there is nothing to wait for. */
struct file *moved_text_awaited(const struct process_mapping *);

/* A range of the memory with the code of `file`, from `offset` on. */
struct moved_text {
	struct file *file;
	uint64_t lo, hi, offset;
};

/* Compares the first part of the memory that lies where an executable segment belongs of the file
 * of its `text`, which is ready. 0; -ENOENT: there is no such part; -EILSEQ: its bytes are others;
 * -EAGAIN: not now; or as opener_call(). */
int moved_text_compare(const struct process *, const struct process_mapping *,
		       struct moved_text *ret);
#endif
