/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of processes and lines of their instructions, as the step emitted them. */
#ifndef RUBY_FUNCTIONS_H
#define RUBY_FUNCTIONS_H

#include <stdint.h>

#include <fusee/emitted.h>

/* Owned by its process. Texts are terminated. */
struct ruby_named {
	struct fusee_emitted_element head;
	uint32_t first_line, is_c;
	const char *label, *path;
};

/* Where the library of a process is: its bias and its code. hi 0: not known. */
struct ruby_library {
	uint64_t bias, lo, hi;
};

/* The process's own, which the caller may change. NULL: no memory. */
struct ruby_library *ruby_functions_library(void **processes, uint64_t process);

/* Adds an emission of a process: `bytes` can be anything. The bytes of memory that it takes
 * until it is forgotten or the process is removed; 0: none; -EBADMSG: it is no emission of the
 * step; -ENOSPC: the process has too many functions; -ENOMEM. Any thread, one at a time. */
int ruby_functions_add(void **processes, uint64_t process, uint32_t kind, uint64_t key,
		       const void *bytes, uint64_t n);

/* ops->forget(). */
uint64_t ruby_functions_forget(void *const *processes, uint64_t process, uint32_t what);

/* NULL: the function was not emitted. What is found is used; valid until it is forgotten, or the
 * process is removed. *line is that of that with this pc, 0: not known. */
const struct ruby_named *ruby_functions_find(void *const *processes, uint64_t process, uint64_t key,
					     uint64_t pc, uint32_t *line);

void ruby_functions_remove(void **processes, uint64_t process);
void ruby_functions_free(void **processes);

#endif
