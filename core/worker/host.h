/* SPDX-License-Identifier: Apache-2.0 */
/* In the worker: what an unwinder's inspect() may ask of a file, and the inspection that comes of
 * it. */
#ifndef WORKER_HOST_H
#define WORKER_HOST_H

#include <stdbool.h>

#include "base/buf.h"
#include "plugin/plugin.h"
#include "process/elf.h"

extern const struct fusee_host worker_host; /* for plugin_set_open() */

/* What an inspection may depend on, in 32 bytes: equal keys, equal inspections. 0 or -errno. What
 * went into it is kept by elf, so that an inspection of the same elf sees the same bytes, whatever
 * happens to the file. */
int host_key(struct elf *, const struct plugin_set *, uint8_t key[32]);
/* All unwinders look at the file: a block as in inspection.h, appended to an empty buf. *cacheable:
 * it depends on nothing but what the key covers, and no memory was short. 0 or -errno. */
int host_inspect(struct elf *, const struct plugin_set *, struct buf *block, bool *cacheable,
		 bool *incomplete);
#endif
