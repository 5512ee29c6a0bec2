/* SPDX-License-Identifier: Apache-2.0 */
/* In the worker: the functions that an unwinder's inspect() may call, and the inspection of a file.
 */
#ifndef INSPECTION_HOST_H
#define INSPECTION_HOST_H

#include <stdbool.h>

#include "base/buf.h"
#include "plugin/plugin.h"
#include "process/elf.h"

extern const struct fusee_host worker_host; /* for plugin_set_open() */

/* Hashes the size, the build ID, the headers, the bytes at the entry point, the unwind sections and
 * other sections that unwinders usually read, and the unwinders' versions and options. The elf
 * keeps these sections in memory, so that a later inspection sees the same bytes even if the file
 * changes. 0 or -errno. */
int host_key(struct elf *, const struct plugin_set *, uint8_t key[32]);

struct host_inspection {
	uint64_t skip; /* bit i: inspect() of unwinder i is not called */
	/* Called before inspect() of each unwinder. */
	void (*begins)(void *arg, uint32_t i, const char *unwinder);
	void *arg;
	bool brief; /* what takes long may be omitted: the inspection has INSPECTION_BRIEF then */
	bool *late; /* set if an unwinder had no time for a part of the file */
};
/* Runs inspect() of the unwinders and appends the block of the inspection to an empty buf.
 * *incomplete: memory was short for a part of it. 0 or -errno. */
int host_inspect(struct elf *, const struct plugin_set *, const struct host_inspection *,
		 struct buf *block, bool *incomplete);
#endif
