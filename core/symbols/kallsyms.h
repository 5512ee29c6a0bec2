/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the running kernel and its modules, from /proc/kallsyms. Runs in the agent: it is the
 * kernel's own word. */
#ifndef SYMBOLS_KALLSYMS_H
#define SYMBOLS_KALLSYMS_H

#include <stdint.h>

struct kallsyms;

/* 0; -EPERM: addresses are hidden (kernel.kptr_restrict, CAP_SYSLOG); -errno. path NULL:
 * /proc/kallsyms. */
int kallsyms_load(struct kallsyms **ret, const char *path);
void kallsyms_free(struct kallsyms *);
/* The function that holds addr, or NULL. *start: its first address. *module: "" for the kernel
 * itself, else the module's name. Texts live as long as the kallsyms. */
const char *kallsyms_lookup(const struct kallsyms *, uint64_t addr, uint64_t *start,
			    const char **module);
#endif
