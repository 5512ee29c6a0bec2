/* SPDX-License-Identifier: Apache-2.0 */
/* Linker names to source names, and texts to printable UTF-8. One thread an object. */
#ifndef DEMANGLE_DEMANGLE_H
#define DEMANGLE_DEMANGLE_H

#include <stddef.h>

struct demangler;

int demangler_new(struct demangler **);  /* 0 or -ENOMEM */
void demangler_free(struct demangler *); /* NULL is valid */
/*
 * The source name of a linker name: C++ and D without parameters but with template arguments, Rust
 * without hash, C without the suffix of a compiler's clone (.cold, .isra.0). A name that is not
 * mangled or too long is only cleaned. Valid at least until the call after the next; "" without
 * memory.
 */
const char *demangle(struct demangler *, const char *name);
/* s itself if it is printable UTF-8, else a copy with U+FFFD for each invalid byte and control
 * character, valid as long as demangle()'s. */
const char *demangle_clean(struct demangler *, const char *s);
#endif
