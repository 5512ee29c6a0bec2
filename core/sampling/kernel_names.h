/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the kernel's code as time goes by. Its own text never changes and is read once; modules
 * and BPF programs come, go, and take each other's places: where an address is not the kernel's
 * own, it is looked whether some came since, and all is read anew if so. For one thread.
 */
#ifndef SAMPLING_KERNEL_NAMES_H
#define SAMPLING_KERNEL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_names;

/* For tests; NULL: the kernel's. */
struct kernel_names_from {
	const char *kallsyms, *modules;                   /* paths */
	int (*next_program)(uint32_t id, uint32_t *next); /* 0; -ENOENT: the last; -errno */
};

int kernel_names_new(struct kernel_names **ret, const struct kernel_names_from *);
void kernel_names_free(struct kernel_names *); /* NULL is fine */
/* A profile of what was sampled from `since` on (CLOCK_MONOTONIC ns) is about to be named. false:
 * names are hidden. */
bool kernel_names_begin(struct kernel_names *, uint64_t since);
/* The function that held addr then; NULL: not known, or there were several one after the other.
 * Texts live until the next call. */
const char *kernel_names_at(struct kernel_names *, uint64_t addr, const char **module);
#endif
