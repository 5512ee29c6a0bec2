/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytecode an instruction is of, in code of Sparkplug. */
#ifndef V8_BASELINE_H
#define V8_BASELINE_H

#include <stdint.h>

#include "positions.h"

/* The offset in `bytecode` of the bytecode that the instruction at this offset of the code was made
 * of. offsets: the code's table, with the bytes of code that each bytecode has become. words: of
 * the process, with the sizes of bytecodes. -1: it is not known, as where the two tables do not fit
 * each other. */
int64_t v8_baseline_bytecode(const uint32_t *words, const struct v8_table *bytecode,
			     const struct v8_table *offsets, uint32_t offset);

#endif
