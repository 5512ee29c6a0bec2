/* SPDX-License-Identifier: Apache-2.0 */
/* Files that killed the worker or exceeded its time, by the key of their content, or by their inode
 * as long as it is unchanged. One thread. */
#ifndef WORKER_REFUSALS_H
#define WORKER_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* The oldest is dropped then: refusing its file again costs two deaths of the worker. */
#define REFUSALS_MAX 1024u

struct refusal {
	struct refusal *next;
	uint64_t dev, ino, size;
	struct timespec mtime, ctime;
	bool keyed; /* the key is known */
	uint8_t key[32];
	int err;
	char *name, *text; /* owned */
};

struct refusals {
	struct refusal *first; /* newest first */
	uint32_t n;
};

/* st: of the file. key NULL: not known. Texts are copied. Does nothing without memory. */
void refusals_add(struct refusals *, const struct stat *st, const uint8_t *key, int err,
		  const char *name, const char *text);
/* The refusal of that key (NULL: not known) or inode (NULL: not known). NULL: not refused. Valid
 * until the next add. */
const struct refusal *refusals_find(const struct refusals *, const struct stat *st,
				    const uint8_t *key);
void refusals_fini(struct refusals *);
#endif
