/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which compiler made a program. One thread an object.
 *
 * Sources, in this order: Go's .go.buildinfo (debug/buildinfo of Go 1.18 and newer), because Go's
 * linker copies the .comment of C files; .comment, with texts of compilers and linkers;
 * DW_AT_producer of DWARF's first units. Each is read only up to a limit.
 */
#ifndef SYMBOLS_COMPILER_H
#define SYMBOLS_COMPILER_H

#include "base/buf.h"

struct source;

#define COMPILER_MAX 255u /* bytes of a text */

/*
 * Writes to an empty buf the compiler's name and version, printable and truncated to COMPILER_MAX
 * bytes, such as "Debian clang version 14.0.6"; a producer without its options. Of the texts of
 * .comment, linkers' are ignored, and GCC's is used only if there is no other: every program has
 * GCC's text, from the C library's start files. Of the others the last is used. 0; -ENOENT: no
 * source has it, or sources are larger than the limits; -ENOMEM; the error of a section that cannot
 * be read.
 */
int compiler_of(const struct source *, struct buf *text);
#endif
