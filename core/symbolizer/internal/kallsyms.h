/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the running kernel and its modules, from /proc/kallsyms. Runs in the agent, as it is
 * the kernel that writes that file. */
#ifndef SYMBOLIZER_KALLSYMS_H
#define SYMBOLIZER_KALLSYMS_H

#include <stdbool.h>
#include <stdint.h>

struct kallsyms;

/* path NULL: /proc/kallsyms. 0; -EPERM: addresses are hidden (kernel.kptr_restrict, CAP_SYSLOG);
 * -errno. */
int kallsyms_load(struct kallsyms **ret, const char *path);
void kallsyms_free(struct kallsyms *); /* NULL is valid */
/* Whether addr is in the kernel's own text, [_stext, _etext), which never changes. */
bool kallsyms_is_text(const struct kallsyms *, uint64_t addr);
/* Removes the symbols of that text; those of modules and BPF programs remain. 0; -ENOMEM: the
 * object may only be freed. */
int kallsyms_drop_text(struct kallsyms *);
/* The name of the function at addr, valid until the next call with this object; NULL: none. *start:
 * its first address. *module: "" for the kernel itself, else the module's name, valid until free.
 */
const char *kallsyms_lookup(struct kallsyms *, uint64_t addr, uint64_t *start, const char **module);
/* Whether addr is between two functions of a module, where nothing else can be while the module is
 * loaded. Behind a module's last function may be a BPF program. */
bool kallsyms_is_inside_module(const struct kallsyms *, uint64_t addr);
#endif
