/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a process's memory in large blocks, and keeps them: where others use the machine a read may
 * have to wait, and only so much is waited for in a second. What could not be read then is read by
 * the next try. */
#ifndef HOTSPOT_MEMORY_H
#define HOTSPOT_MEMORY_H

#include <stdbool.h>

#include <fusee/helpers.h>

struct hotspot_memory;

/* A reader that reads so many blocks at most. NULL: no memory. */
struct hotspot_memory *hotspot_memory_new(const struct fusee_unwinder_host *, uint64_t process,
					  uint32_t most);
void hotspot_memory_free(struct hotspot_memory *); /* NULL is valid */
/* Copies len bytes. false: they cannot be read; the bytes are 0 then. */
bool hotspot_memory_read(struct hotspot_memory *, uint64_t at, void *to, uint32_t len);
/* Copies a text; "" if it is longer or cannot be read. */
void hotspot_memory_text(struct hotspot_memory *, uint64_t at, char *to, uint32_t cap);
/* The error of the first read since the last call that failed; 0: none did. After an error that may
 * pass nothing more is read. */
int hotspot_memory_error(struct hotspot_memory *);
bool hotspot_memory_may_pass(int err);

#endif
