/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/codemap.h - names of code that a run time has made, by address and time, for unwinders
 * that read what the run time writes of them. Optional: a plugin links it statically
 * (libfusee-codemap.a, `pkg-config --libs fusee-codemap`; in fusee's own tree the plugin's file
 * `uses` has the line "codemap").
 *
 * Code that is added later replaces what it overlaps of earlier code. A target chose all of it, so
 * the memory is bounded. A map is used by one thread at a time.
 */
#ifndef FUSEE_CODEMAP_H
#define FUSEE_CODEMAP_H

#include <stdbool.h>

#include <fusee/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FUSEE_CODEMAP_LARGEST (1u << 30) /* bytes of code of one entry */
#define FUSEE_CODEMAP_NAME 65535u        /* bytes of a name, at most */
#define FUSEE_CODEMAP_PENDING 65536u     /* commit when as many entries wait */

struct fusee_codemap;

/* max_bytes: of memory. NULL: no memory. */
struct fusee_codemap *fusee_codemap_new(uint64_t max_bytes);
void fusee_codemap_free(struct fusee_codemap *); /* NULL is fine */
/* Sets another limit. Memory in use beyond it is not freed; no code is added then. */
void fusee_codemap_limit(struct fusee_codemap *, uint64_t max_bytes);
uint64_t fusee_codemap_bytes(const struct fusee_codemap *); /* memory in use */

/* Adds code of `size` bytes at lo. name: any bytes. 0; -EINVAL: it is empty, too large, or wraps;
 * -ENOSPC: it does not fit into the memory. */
int fusee_codemap_add(struct fusee_codemap *, uint64_t lo, uint64_t size, struct fusee_str name);
/* The number of entries that are not committed. */
uint32_t fusee_codemap_pending(const struct fusee_codemap *);
/* Whether a commit would give an address another name. */
bool fusee_codemap_replaces(struct fusee_codemap *);
/* Makes the new entries valid from this generation of the process's code on. Earlier generations
 * still find what they replace. Returns the number of entries that are lost for want of memory. */
uint32_t fusee_codemap_commit(struct fusee_codemap *, uint32_t generation);

/* Finds the name of an address in a generation; without one, the name of a later generation. *name
 * is not terminated, and valid until the next call that is not a lookup. */
bool fusee_codemap_lookup(const struct fusee_codemap *, uint64_t addr, uint32_t generation,
			  struct fusee_str *name);
/* Calls each(arg, name) for the first `most` entries in [lo, hi), until it returns false. Whether
 * there are entries. each: NULL is fine. */
bool fusee_codemap_covers(const struct fusee_codemap *, uint64_t lo, uint64_t hi, uint32_t most,
			  bool (*each)(void *arg, struct fusee_str name), void *arg);
uint32_t fusee_codemap_entries(const struct fusee_codemap *); /* that are committed */

enum fusee_code_kind {
	FUSEE_CODE_PLAIN,
	FUSEE_CODE_PYTHON, /* CPython's trampolines: <fusee/trampoline.bpf.h> */
	FUSEE_CODE_ERLANG, /* Erlang's functions: <fusee/erlang.bpf.h> */
};

/* Whose code has such a name. */
enum fusee_code_kind fusee_codemap_kind(struct fusee_str name);
/* Splits a name, as CPython, V8, the JVM and Erlang write them, into function, file and line; the
 * complete text is the system name. All point into `name`. */
void fusee_codemap_split(struct fusee_str name, struct fusee_source_frame *);

#ifdef __cplusplus
}
#endif
#endif
