/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links BPF objects into one: the sampler's program with the steps of unwinders, some of which come
 * from plugins of others. libbpf's linker and libelf are not made for hostile input or for lack of
 * memory, so a child process (sandbox/loader.h) does it.
 */
#ifndef LINKER_LINKER_H
#define LINKER_LINKER_H

#include <stdint.h>

/* An ELF object in memory. */
struct linker_part {
	const char *name; /* for messages */
	const void *from, *to;
	/* A variable of it that has another value in what is linked; NULL: none. */
	const char *constant;
	uint32_t value;
	/* Of a labeler: its number, below 10, which the name of its step gets; else 0. */
	uint32_t labeler;
};

/* Links n parts in a child process and waits for it; the child has a time limit. *ret: a memfd with
 * the linked object, to be closed by the caller. 0; or -errno and, in *why, a malloc'ed sentence or
 * NULL. */
int linker_link(const struct linker_part *, uint32_t n, int *ret, char **why);
/* The same in this process, which should be such a child: writes the linked object into the file
 * `out`. 0 or -errno. */
int linker_join(const struct linker_part *, uint32_t n, int out);
#endif
