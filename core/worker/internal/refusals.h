/* SPDX-License-Identifier: Apache-2.0 */
/* Files that killed the worker or exceeded its time, by the key of their content, and by their
 * inode as long as it is unchanged. A worker computes the keys, and a malicious file may control
 * it, so a key refuses only files of the same owner. One thread. */
#ifndef WORKER_REFUSALS_H
#define WORKER_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "inspection/owner.h"

/* The oldest is dropped then: refusing its file again costs two deaths of the worker. */
#define REFUSALS_MAX 1024u

struct refusal {
	struct refusal *next;
	struct owner_file file; /* when it was refused */
	bool keyed;             /* the key is known */
	uint8_t key[32];
	int err;           /* 0: only the unwinders of `skip` are refused */
	uint64_t skip;     /* bit i: inspect() of unwinder i is not called */
	char *name, *text; /* owned; for messages */
};

struct refusals {
	struct refusal *first; /* newest first */
	uint32_t n;
};

/* Adds a copy. Does nothing without memory. */
void refusals_add(struct refusals *, const struct refusal *);
/* The refusal of that file, by its inode, or by its key (NULL: not known). NULL: it is not refused.
 * Valid until the next add. */
const struct refusal *refusals_find(const struct refusals *, const struct owner_file *,
				    const uint8_t *key);
/* The unwinders that are not to inspect a file of that key. */
uint64_t refusals_skip(const struct refusals *, const struct owner_file *, const uint8_t key[32]);
/* Appends the newest refusal as a line, unless it only refuses unwinders. */
void refusals_write(const struct refusals *, struct buf *);
/* Adds the refusals of a text of such lines; malformed lines are ignored. */
void refusals_read(struct refusals *, const char *text);
void refusals_fini(struct refusals *);
#endif
