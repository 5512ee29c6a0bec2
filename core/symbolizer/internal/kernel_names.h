/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function names of kernel addresses over time. The kernel's own text never changes and is read
 * once. Modules and BPF programs are loaded and unloaded and reuse addresses: before an address
 * outside the kernel's text is looked up, the symbols are read anew if that has happened since the
 * last read; if only BPF programs have changed, for an address that may be of one. For one thread.
 */
#ifndef SYMBOLIZER_KERNEL_NAMES_H
#define SYMBOLIZER_KERNEL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_names;

/* Sources in place of the kernel's, for tests; NULL: the kernel's. */
struct kernel_names_from {
	const char *kallsyms, *modules; /* paths */
	/* As bpf(BPF_PROG_GET_NEXT_ID): 0; -ENOENT after the last; or -errno. */
	int (*next_program)(uint32_t id, uint32_t *next);
};

/* 0 or -ENOMEM. Nothing is read yet. */
int kernel_names_new(struct kernel_names **ret, const struct kernel_names_from *);
void kernel_names_free(struct kernel_names *); /* NULL is fine */
/* Begins the lookups for a profile whose samples were taken from `since` (CLOCK_MONOTONIC ns) on.
 * false: the kernel hides its symbols. */
bool kernel_names_begin(struct kernel_names *, uint64_t since);
/* The function at the address in that time, and its module ("": the kernel); NULL: unknown, or
 * several functions one after another. The texts are valid until the next call. */
const char *kernel_names_at(struct kernel_names *, uint64_t addr, const char **module);
#endif
