/* SPDX-License-Identifier: Apache-2.0 */
/* The code objects of processes, as the step emitted them. */
#ifndef PYTHON_CODES_H
#define PYTHON_CODES_H

#include <stdint.h>

#include <fusee/emitted.h>

/* A code object. Owned by its process. */
struct python_code {
	struct fusee_emitted_element head;
	uint32_t minor, first_line;
	char *name, *file;        /* UTF-8, terminated */
	unsigned char *lines;     /* its line table */
	uint32_t nlines, arrived; /* bytes: of all of it, and of those that have arrived in order */
};

struct python_process;

/* Adds an emission of a process: `bytes` can be anything. The bytes of memory that it takes
 * until it is forgotten or the process is removed; 0: none; -EBADMSG: it is no emission of the
 * step; -ENOSPC: the process has too many code objects; -ENOMEM. Any thread, one at a time. */
int python_codes_add(void **processes, uint64_t process, uint64_t key, const void *bytes,
		     uint64_t n);

/* ops->forget(). */
uint64_t python_codes_forget(void *const *processes, uint64_t process, uint32_t what);

/* NULL: the code object was not emitted. What is found is used; valid until it is forgotten, or the
 * process is removed. */
const struct python_code *python_codes_find(void *const *processes, uint64_t process, uint64_t key);

void python_codes_remove(void **processes, uint64_t process);
void python_codes_free(void **processes);

#endif
