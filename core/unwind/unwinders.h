/* SPDX-License-Identifier: Apache-2.0 */
/* What a step of an unwinder needs and means. For one thread. */
#ifndef UNWIND_UNWINDERS_H
#define UNWIND_UNWINDERS_H

#include "process/process.h"
#include "files/files.h"

/* The text of an unwinder's reason. Static. */
const char *unwinder_reason(const struct fusee_unwinder_ops *, uint32_t error);
/* The unwinder's table of the mapping's file; of code without a table, for a language unwinder,
 * that of the first file of the process that has one. NULL: none. */
const struct inspection_slab *unwinder_table(const struct process *, uint32_t unwinder,
					     const struct fusee_unwinder_ops *,
					     const struct process_mapping *);
#endif
