/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the code of files that belongs to an interpreter. For one thread. */
#ifndef SYMBOLIZER_INTERPRETER_CODE_H
#define SYMBOLIZER_INTERPRETER_CODE_H

#include <stdint.h>

#include "unwind/claims.h"
#include "files/files.h"

/* The frame type of the language to whose interpreter the code at vaddr belongs: of the unwinder
 * that claims a range with vaddr, else of an unwinder that claims the file as an interpreter. NULL:
 * none. vaddr: an ELF virtual address. */
const char *interpreter_code_at(const struct claims *, const struct file *, uint64_t vaddr);
#endif
