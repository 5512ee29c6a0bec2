/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modules of WebAssembly of a process, and which of their functions is at an address.
 *
 * Calls go through the module's jump table, which has a jump to the code of each function. The code
 * of a function begins at a multiple of 64 bytes with instructions that are known. So the beginning
 * before an address leads to the function. What was replaced by code that is better, but still
 * runs, is known from an earlier look at the table, or by the call that has called it.
 */
#ifndef V8_MODULES_H
#define V8_MODULES_H

#include <fusee/emitted.h>
#include <fusee/plugin.h>

#include "bytes.h"
#include "words.h"

struct v8_modules {
	struct fusee_emitted kept;
	void *modules, *places; /* trees, by key */
};

/* Reads the process. */
struct v8_memory {
	const struct fusee_unwinder_host *host;
	uint64_t process;
	uint32_t marker; /* V8_WASM_MARKER of it */
	bool is_busy;    /* a read failed, which may succeed later: nothing more is read */
};

/* Add emissions of the kinds V8_MODULE and V8_WASM: `bytes` can be anything. As v8_names_add(). */
int v8_modules_add(struct v8_modules *, struct v8_memory *, uint64_t key, const void *bytes,
		   uint64_t n);
int v8_modules_add_place(struct v8_modules *, struct v8_memory *, uint64_t key, const void *bytes,
			 uint64_t n);

/* Have these n bytes, from a page's beginning on, the beginning of a function or of a wrapper, or
 * the first slots of a jump table? */
bool v8_modules_is_code(const unsigned char *bytes, uint32_t n, uint32_t marker);

/* Tries again what could not be read. */
void v8_modules_refresh(struct v8_modules *, struct v8_memory *);

/* Is this the key of a module's script? */
bool v8_modules_has(const struct v8_modules *, uint64_t script);

#define V8_FUNCTION_NAME 512u

/* The name of the function at the place with this key, in Latin letters or UTF-8: its own, that of
 * an export, or wasm-function[N]. Sets *script to the key of the module's script, 0: unknown.
 * false: it is not known which function it is. */
bool v8_modules_name(const struct v8_modules *, uint64_t key, char name[V8_FUNCTION_NAME],
		     uint64_t *script);

/* As v8_modules_name(), of the code at this address, whose frame is not made, or removed: a slot
 * of a jump table, or no farther in a function that is known than this was seen. */
bool v8_modules_name_at(const struct v8_modules *, uint64_t at, char name[V8_FUNCTION_NAME],
			uint64_t *script);

void v8_modules_free(struct v8_modules *);

#endif
