/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which compiler made a program. One thread an object.
 *
 * Sources: Go's .go.buildinfo (debug/buildinfo of Go 1.18 and newer), as Go's linker copies the
 * .comment of C files; .comment, the texts that compilers and linkers leave behind; without both
 * DW_AT_producer of DWARF's first units. Each is read only up to a limit.
 */
#ifndef SYMBOLS_COMPILER_H
#define SYMBOLS_COMPILER_H

#include "base/buf.h"

struct source;

#define COMPILER_MAX 255u /* bytes of a text */

/*
 * Writes to an empty buf the compiler's name and version, printable and truncated to COMPILER_MAX
 * bytes, such as "Debian clang version 14.0.6"; a producer without its options. Of several texts of
 * .comment it is the last that is not GCC's, whose texts the C library's start files have in every
 * program, and not a linker's. 0; -ENOENT: the file does not say it, or by larger sections than are
 * read; -ENOMEM; the error of a section that cannot be read.
 */
int compiler_of(const struct source *, struct buf *text);
#endif
