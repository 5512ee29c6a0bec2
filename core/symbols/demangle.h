/* SPDX-License-Identifier: Apache-2.0 */
/* Names as people write them: C++ and Rust without parameters and hashes, and texts as valid UTF-8.
 */
#ifndef SYMBOLS_DEMANGLE_H
#define SYMBOLS_DEMANGLE_H

#include <stddef.h>

struct demangler;

int demangler_new(struct demangler **);  /* 0 or -ENOMEM */
void demangler_free(struct demangler *); /* NULL is fine */
/*
 * The name that people know of a linker's name: C++ without parameters but with template arguments,
 * Rust without hash, C without the suffix of a compiler's clone (.cold, .isra.0 ..). What is not
 * mangled, or too long, comes back as it is. The text lives until the second next call or longer.
 */
const char *demangle(struct demangler *, const char *name);
/* s itself if it is printable UTF-8, else a copy with U+FFFD for each bad byte and control
 * character. Lives as demangle()'s. */
const char *demangle_clean(struct demangler *, const char *s);
#endif
