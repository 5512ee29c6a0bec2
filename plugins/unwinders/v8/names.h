/* SPDX-License-Identifier: Apache-2.0 */
/* The functions and scripts of processes, as the step emitted them. */
#ifndef V8_NAMES_H
#define V8_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "words.h"

/* Owned by its process. Texts are terminated, and UTF-8. */
struct v8_named {
	uint64_t key;
	uint64_t script; /* its key; 0: none */
	uint32_t flags;  /* enum v8_function_flags */
	char name[];     /* "": it has none */
};

struct v8_file {
	uint64_t key;
	uint64_t source; /* address of the text in the process */
	uint32_t line_offset;
	uint32_t nlines, tries; /* nlines 0: its lines are not known */
	uint32_t *lines;        /* position of each line's first character, owned */
	char name[];
};

/* A process with V8. */
struct v8_process {
	bool known;        /* it maps V8 */
	uint64_t builtins; /* where in memory the builtins were first; 0: nowhere yet */
	uint32_t words[V8_WORDS];
};

/* The process's own, made if it is new. NULL: no memory. */
struct v8_process *v8_names_process(void **processes, uint64_t process);

/* Adds an emission of a process: `bytes` can be anything. The bytes of memory that it takes
 * until the process is removed; 0: none; -EBADMSG: it is no emission of the step; -ENOSPC: the
 * process has too many; -ENOMEM. Any thread, one at a time. */
int v8_names_add(void **processes, uint64_t process, uint32_t kind, uint64_t key, const void *bytes,
		 uint64_t n);

/* NULL: it was not emitted. Valid until the process is removed. */
const struct v8_named *v8_names_function(void *const *processes, uint64_t process, uint64_t key);
struct v8_file *v8_names_script(void *const *processes, uint64_t process, uint64_t key);

void v8_names_remove(void **processes, uint64_t process);
void v8_names_free(void **processes);

#endif
