/* SPDX-License-Identifier: Apache-2.0 */
/* Which code of files is an interpreter's own. For one thread. */
#ifndef SYMBOLIZER_INTERPRETER_CODE_H
#define SYMBOLIZER_INTERPRETER_CODE_H

#include <stdint.h>

#include "unwind/claims.h"
#include "unwind/files.h"

/* The frame type of the language whose interpreter's own code the address is, by a claimed range
 * or, of other addresses, for the complete file. NULL: it is no such code. vaddr: as of ELF. */
const char *interpreter_code_at(const struct claims *, const struct file *, uint64_t vaddr);
#endif
