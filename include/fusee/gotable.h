/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/gotable.h - in inspect(): the function table of a Go program, .gopclntab, which stripped
 * programs have too, and where the runtime keeps the goroutine of a thread. Every byte is foreign.
 * Optional: a plugin links it statically (libfusee-gotable.a, `pkg-config --libs fusee-gotable`; in
 * fusee's own tree the plugin's file `uses` has the line "gotable"). x86-64.
 */
#ifndef FUSEE_GOTABLE_H
#define FUSEE_GOTABLE_H

#include <stddef.h>
#include <stdint.h>

#include <fusee/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FUSEE_GO_MAX_ADDRESS (1ull << 47)
#define FUSEE_GO_MAX_FUNCTIONS (1u << 24)

enum fusee_go_version { FUSEE_GO_1_2 = 1, FUSEE_GO_1_16, FUSEE_GO_1_18, FUSEE_GO_1_20 };

struct fusee_go_table {
	const uint8_t *bytes; /* the table; borrowed */
	size_t len;
	enum fusee_go_version version;
	uint64_t n;    /* functions */
	uint64_t text; /* added to the addresses of functions; 0: not in the table */
	size_t functab, names,
		pctab;       /* offsets; pctab and names of Go 1.2 are 0: the complete table */
	const uint8_t *code; /* the bytes at code_vaddr: how rbp is saved; borrowed, may be empty */
	size_t code_len;
	uint64_t code_vaddr;
};

/* A function of the table. */
struct fusee_go_func {
	uint64_t lo, hi; /* ELF virtual addresses */
	uint64_t pcsp;   /* offset in the table */
	const char *name;
	size_t name_len;
	int spwrite; /* writes sp in ways that pcsp does not know */
};

/* Reads the header. 0; -ENOENT: no table of a known version for x86-64; -EBADMSG: it contradicts
 * itself. */
int fusee_go_open(struct fusee_go_table *, const void *bytes, size_t len);
/* The addresses of the first function and of the end, relative to `text`. 0 or -EBADMSG. */
int fusee_go_span(const struct fusee_go_table *, uint64_t *lo, uint64_t *hi);
/* Reads function i. 0 or -EBADMSG. */
int fusee_go_function(const struct fusee_go_table *, uint64_t i, struct fusee_go_func *);
/* Code bytes at vaddr. n are there, or NULL. */
const uint8_t *fusee_go_code(const struct fusee_go_table *, uint64_t vaddr, size_t n);

/* Finds the table of a file, and where its text begins. 0; -ENOENT: the file is no Go binary;
 * -EBADMSG: its table contradicts itself, or the start of its text is not found. *go is valid until
 * inspect() returns. */
int fusee_go_find(struct fusee_go_table *go, const struct fusee_unwinder_host *, uint64_t file);

/* How a thread's goroutine is found: of g from the thread pointer, of m in g, of curg in m. */
struct fusee_go_places {
	int32_t g;
	uint32_t m, curg;
};

/* Reads them from the instructions of runtime.systemstack. 0; -ENOENT: it does not have them as
 * expected; -EBADMSG: they are out of range. */
int fusee_go_find_places(const struct fusee_go_table *, const struct fusee_go_func *systemstack,
			 struct fusee_go_places *);

#ifdef __cplusplus
}
#endif
#endif
