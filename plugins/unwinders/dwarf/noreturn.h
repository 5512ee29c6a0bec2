/* SPDX-License-Identifier: Apache-2.0 */
/* Functions whose names say that they do not return. */
#ifndef DWARF_NORETURN_H
#define DWARF_NORETURN_H

#include <fusee/plugin.h>

#include "code/code.h"

/* Whether the function with the name at `at` of a table of names never returns, by the standards of
 * C and POSIX or by the C++ ABI. Only names that these reserve, so no program has another function
 * of the name. */
int code_noreturn_named(const struct fusee_str *names, uint64_t at);
/* Adds the stubs of the PLT that lead to such functions of other files. 0 or -ENOMEM. */
int code_noreturn_stubs(const struct fusee_unwinder_host *, uint64_t file, struct code_entries *);
#endif
