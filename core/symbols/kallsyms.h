/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the running kernel and its modules, from /proc/kallsyms. Runs in the agent: it is the
 * kernel's own word. */
#ifndef SYMBOLS_KALLSYMS_H
#define SYMBOLS_KALLSYMS_H

#include <stdbool.h>
#include <stdint.h>

struct kallsyms;

/* 0; -EPERM: addresses are hidden (kernel.kptr_restrict, CAP_SYSLOG); -errno. path NULL:
 * /proc/kallsyms. */
int kallsyms_load(struct kallsyms **ret, const char *path);
void kallsyms_free(struct kallsyms *);
/* Is addr in the kernel's own text, which is there from boot on and never changes? */
bool kallsyms_is_text(const struct kallsyms *, uint64_t addr);
/* Forgets that text's names: what is left are modules, BPF programs and the like. 0 or -ENOMEM:
 * then it is only good for kallsyms_free(). */
int kallsyms_drop_text(struct kallsyms *);
/* The function that holds addr, or NULL. *start: its first address. *module: "" for the kernel
 * itself, else the module's name. Texts live as long as the kallsyms. */
const char *kallsyms_lookup(const struct kallsyms *, uint64_t addr, uint64_t *start,
			    const char **module);
#endif
