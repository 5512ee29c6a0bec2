/* SPDX-License-Identifier: Apache-2.0 */
/* The table of names of one file on disk: which it is, and addresses that it symbolizes. For one
 * thread. */
#ifndef SYMBOLIZER_FILE_TABLE_H
#define SYMBOLIZER_FILE_TABLE_H

#include "symbolizer/internal/file_symbols.h"
#include "worker/worker.h"

/* Finds the table of the files of a request to the worker: sets table_key and has_table. */
void file_table_find(struct file_symbols *, struct worker *, const struct worker_symbolization *,
		     const struct worker_requester *by);
/* Symbolizes those of n offsets, with their addresses, that the table knows, and moves the others
 * to the front. Returns how many those are: n without a table, which is removed if it is damaged.
 */
uint32_t file_table_look_up(struct file_symbols *, struct worker *, uint64_t *offsets,
			    uint64_t *addresses, uint32_t n);
#endif
