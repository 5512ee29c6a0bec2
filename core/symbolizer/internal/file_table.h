/* SPDX-License-Identifier: Apache-2.0 */
/* Symbolizes by the table of names of a file, which is on disk. For one thread. */
#ifndef SYMBOLIZER_FILE_TABLE_H
#define SYMBOLIZER_FILE_TABLE_H

#include "symbolizer/internal/file_symbols.h"
#include "worker/worker.h"

/* Finds the table of the files of a request to the worker: sets table_key and has_table. */
void file_table_find(struct file_symbols *, struct worker *, const struct worker_symbolization *,
		     const struct worker_requester *by);
/* Symbolizes the offsets, with their addresses, that the table has, and moves the others to the
 * front. Returns how many others there are: n if there is no table. A damaged table is removed. */
uint32_t file_table_look_up(struct file_symbols *, struct worker *, uint64_t *offsets,
			    uint64_t *addresses, uint32_t n);
#endif
