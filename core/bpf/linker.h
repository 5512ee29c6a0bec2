/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins BPF objects into one: the program with the unwinders' steps, of which some are strangers'.
 * libbpf's linker and libelf below it are not made for what lacks memory or was made to harm, so it
 * is done by a child process (sampling/bpf_child.h): what befalls that costs an error, and its
 * memory goes with it.
 */
#ifndef BPF_LINKER_H
#define BPF_LINKER_H

#include <stdint.h>

/* An ELF object in memory. */
struct linker_part {
	const char *name; /* for messages */
	const void *from, *to;
};

/* *ret: a memfd with the joined object, which is the caller's to close. 0, or -errno: then *why is
 * one malloc'ed sentence, or NULL where there is no memory for it. Waits for the child, which has a
 * time limit. */
int linker_link(const struct linker_part *, uint32_t n, int *ret, char **why);
/* For who is such a child: writes the joined object into the file `out`. 0 or -errno. */
int linker_join(const struct linker_part *, uint32_t n, int out);
#endif
