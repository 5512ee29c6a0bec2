/* SPDX-License-Identifier: Apache-2.0 */
/* Names of D (dlang.org/spec/abi.html), in bounded time and stack. */
#ifndef DEMANGLE_DLANG_H
#define DEMANGLE_DLANG_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the source name of a linker name, without parameters but with template arguments, piece by
 * piece. false: it is no name of D, or one with more than is read. `take` may leave by longjmp().
 */
bool demangle_d(const char *name, void (*take)(const char *piece, size_t len, void *arg),
		void *arg);
#endif
