/* SPDX-License-Identifier: Apache-2.0 */
/* Finds facts in the machine code of an interpreter. */
#ifndef PYTHON_FIND_H
#define PYTHON_FIND_H

#include <fusee/code.h>

/* What was found in the interpreter's function, in bytes from its beginning and from sp; 0: not
 * found. */
#define PYTHON_RETURNS 4
struct python_places {
	uint32_t place, prologue, epilogue, epilogue_end;
	uint32_t unlinked[PYTHON_RETURNS]; /* return addresses of calls that only the end follows */
};

/* Finds where the function keeps the frame that it runs. words[]: the table so far. */
void python_find_places(struct fusee_code code, const uint32_t *words, struct python_places *found);

/* From 3.13 on: where a function keeps its entry frame, which ends the frames that it runs, by the
 * instructions before byte `end`; as PYTHON_PLACE. words[]: the table so far. 0: not found. */
uint32_t python_find_entry_before(struct fusee_code code, uint32_t end, const uint32_t *words);

/* Finds in a function the u32 that it loads, raises by 1 and stores, as _PyCode_New() does with
 * the counter of code objects. in_struct: the u32 is a member of a struct, and the result its
 * offset; else it is the u32's vaddr. 0: there is none, or several. */
uint64_t python_find_counter(struct fusee_code code, int in_struct);

#endif
