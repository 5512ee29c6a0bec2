/* SPDX-License-Identifier: Apache-2.0 */
/* The methods, places and stubs of processes, as the step emitted them, and what is known of each
 * process. */
#ifndef HOTSPOT_NAMES_H
#define HOTSPOT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/emitted.h>
#include <fusee/helpers.h>

#include "required.h"
#include "words.h"

struct hotspot_memory;

/* Owned by its process. A JVM has tens of thousands: each byte is kept once. */
struct hotspot_named {
	struct fusee_emitted_element head;
	const char *shown; /* a stub's name; NULL: its own */
	uint32_t flags;    /* enum fusee_frame_flags */
	uint16_t name_bytes, signature_bytes, file_bytes, line_bytes;
	char text[]; /* name, signature, file, and packed lines, see lines.h */
};

/* java.util.HashMap.put; of a stub its own */
static inline struct fusee_str hotspot_name(const struct hotspot_named *named)
{
	return named->shown ? fusee_text(named->shown)
			    : (struct fusee_str){named->text, named->name_bytes};
}

/* With the signature. */
static inline struct fusee_str hotspot_system_name(const struct hotspot_named *named)
{
	return (struct fusee_str){named->text,
				  (uint64_t)named->name_bytes + named->signature_bytes};
}

/* HashMap.java, or empty */
static inline struct fusee_str hotspot_file(const struct hotspot_named *named)
{
	return (struct fusee_str){named->text + hotspot_system_name(named).len, named->file_bytes};
}

static inline const unsigned char *hotspot_lines(const struct hotspot_named *named)
{
	return (const unsigned char *)hotspot_file(named).p + named->file_bytes;
}

/* A JVM in a process. */
struct hotspot_jvm {
	uint64_t bias;
	uint32_t table[HOTSPOT_TABLE_WORDS]; /* of its library: required.h */
	bool known;                          /* the library: bias and table are set */
	bool read;                           /* its lists were: the words are set */
	uint32_t tries;                      /* to read them, and when the next may be made */
	uint64_t next_ns;
	struct hotspot_memory *memory;      /* NULL: no try is unfinished */
	uint64_t heaps[HOTSPOT_MOST_HEAPS]; /* where those that are claimed begin */
	uint32_t nheaps;
	uint32_t words[HOTSPOT_WORDS];
};

struct hotspot_place {
	struct fusee_emitted_element head;
	uint32_t n;
	struct hotspot_scope scope[]; /* innermost first */
};

struct hotspot_named_thread {
	struct fusee_emitted_element head;
	char name[]; /* UTF-8 */
};

/* The process's own, made if it is new. NULL: no memory. */
struct hotspot_jvm *hotspot_names_jvm(void **processes, uint64_t process);

/* Adds an emission of a process: `bytes` can be anything. The bytes of memory that it takes
 * until it is forgotten or the process is removed; 0: none; -EBADMSG: it is no emission of the
 * step; -ENOSPC: the process has too many methods; -ENOMEM. Any thread, one at a time. */
int hotspot_names_add(void **processes, uint64_t process, uint32_t kind, uint64_t key,
		      const void *bytes, uint64_t n);

/* ops->forget(). */
uint64_t hotspot_names_forget(void *const *processes, uint64_t process, uint32_t what);

/* NULL: it was not emitted. What is found is used; valid until it is forgotten, or the process is
 * removed. */
const struct hotspot_named *hotspot_names_method(void *const *processes, uint64_t process,
						 uint64_t key);
const struct hotspot_named *hotspot_names_stub(void *const *processes, uint64_t process,
					       uint64_t key);
const struct hotspot_place *hotspot_names_place(void *const *processes, uint64_t process,
						uint64_t key);
const char *hotspot_names_thread(void *const *processes, uint64_t process, uint64_t key);

void hotspot_names_remove(void **processes, uint64_t process);
void hotspot_names_free(void **processes);

#endif
