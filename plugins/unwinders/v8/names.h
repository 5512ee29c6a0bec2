/* SPDX-License-Identifier: Apache-2.0 */
/* The functions and scripts of processes, as the step emitted them. */
#ifndef V8_NAMES_H
#define V8_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/emitted.h>

#include "modules.h"
#include "positions.h"
#include "words.h"

struct v8_parts {
	uint32_t bytes;                /* of the table */
	unsigned char *part[V8_PARTS]; /* owned; NULL: not known */
};

/* Owned by its process. Texts are terminated, and UTF-8. */
struct v8_named {
	struct fusee_emitted_element head;
	uint64_t script; /* its key; 0: none */
	uint32_t flags;  /* enum v8_function_flags */
	/* Compiled code, which has no name: what was inlined into it. The keys of so many
	 * functions, and where; owned. */
	uint32_t functions, places;
	uint64_t *inlined;
	struct v8_inlined *place;
	struct v8_parts tables[V8_TABLES];
	char name[]; /* "": it has none */
};

enum v8_source_state {
	V8_SOURCE_NEW,
	V8_SOURCE_READING,
	V8_SOURCE_READ,
	V8_SOURCE_FAILED,
};

/* The text of a script. */
struct v8_source {
	uint64_t script, text;       /* the objects in the process; text: as it was last read */
	uint64_t at;                 /* address of the characters; 0: not known */
	uint32_t expected;           /* characters, as the step has read it; 0: it could not */
	uint32_t length, done, wide; /* characters: of it, read; 1: of two bytes */
	uint32_t state, tries;       /* enum v8_source_state */
	uint32_t line_offset;
	uint64_t next_ns; /* when it may be read on */
	bool after_return;
	uint32_t *lines; /* position of each line's first character, owned */
	uint64_t nlines, cap;
	uint64_t last;   /* the characters before, a byte each; see loop_word() */
	uint32_t *loops; /* positions of words that begin loops, owned */
	uint64_t nloops, loops_cap;
};

struct v8_file {
	struct fusee_emitted_element head;
	struct v8_source source;
	char name[];
};

/* A process with V8. */
struct v8_process {
	bool known;     /* it maps V8 */
	uint64_t lines; /* of all its scripts */
	struct v8_modules modules;
	uint32_t words[V8_WORDS];
};

/* The process's own, made if it is new. NULL: no memory. */
struct v8_process *v8_names_process(void **processes, uint64_t process);

/* Adds an emission of a process: `bytes` can be anything. The bytes of memory that it takes
 * until it is forgotten or the process is removed; 0: none; -EBADMSG: it is no emission of the
 * step; -ENOSPC: the process has too many; -ENOMEM. Any thread, one at a time. */
int v8_names_add(void **processes, uint64_t process, uint32_t kind, uint64_t key, const void *bytes,
		 uint64_t n);

/* The place in its script of the bytecode at this offset of a function, or of compiled code;
 * between: of an instruction that need not be a call. */
struct v8_place v8_names_place(const struct v8_named *, uint32_t offset, bool between);
/* The place of the instruction at this offset of the code that Sparkplug has made of a function.
 * words: of the process. */
struct v8_place v8_names_baseline_place(const uint32_t *words, const struct v8_named *function,
					const struct v8_named *code, uint32_t offset);
/* Calls back for each script of a process, until each() returns false. */
void v8_names_each_script(void *const *processes, uint64_t process,
			  bool (*each)(void *arg, struct v8_file *), void *arg);

/* ops->forget(). Modules are kept. */
uint64_t v8_names_forget(void *const *processes, uint64_t process, uint32_t what);

/* NULL: it was not emitted. What is found is used; valid until it is forgotten, or the process is
 * removed. */
const struct v8_named *v8_names_function(void *const *processes, uint64_t process, uint64_t key);
struct v8_file *v8_names_script(void *const *processes, uint64_t process, uint64_t key);

void v8_names_remove(void **processes, uint64_t process);
void v8_names_free(void **processes);

#endif
