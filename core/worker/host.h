/* SPDX-License-Identifier: Apache-2.0 */
/* In the worker: the functions that an unwinder's inspect() may call, and the inspection of a file.
 */
#ifndef WORKER_HOST_H
#define WORKER_HOST_H

#include <stdbool.h>

#include "base/buf.h"
#include "plugin/plugin.h"
#include "process/elf.h"

extern const struct fusee_host worker_host; /* for plugin_set_open() */

/* A hash of everything that a cacheable inspection depends on: equal keys, equal inspections. The
 * sections that went into it stay in the elf, so that an inspection of the same elf sees the same
 * bytes even if the file changes. 0 or -errno. */
int host_key(struct elf *, const struct plugin_set *, uint8_t key[32]);
/* Runs inspect() of each unwinder and appends a block as in inspection.h to an empty buf.
 * *cacheable: the inspection depends on nothing but what the key covers, and memory was not short.
 * *incomplete: memory was short. 0 or -errno. */
int host_inspect(struct elf *, const struct plugin_set *, struct buf *block, bool *cacheable,
		 bool *incomplete);
#endif
