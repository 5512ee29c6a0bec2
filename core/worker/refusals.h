/* SPDX-License-Identifier: Apache-2.0 */
/* Files that killed the worker, or kept it too long: known by their content's key, and before that
 * by their inode. */
#ifndef WORKER_REFUSALS_H
#define WORKER_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define REFUSALS_MAX                                                                 \
	1024u /* then the oldest is forgotten: it costs two deaths to learn it again \
	       */

struct refusal {
	struct refusal *next;
	uint64_t dev, ino, size;
	struct timespec mtime, ctime;
	bool keyed;
	uint8_t key[32];
	int err;
	char *name, *text;
};

struct refusals {
	struct refusal *first; /* newest */
	uint32_t n;
};

/* st: of the file; key NULL: not known. Does nothing when out of memory. */
void refusals_add(struct refusals *, const struct stat *st, const uint8_t *key, int err,
		  const char *name, const char *text);
/* By key (NULL: not known) or by inode (NULL likewise); NULL: not refused. */
const struct refusal *refusals_find(const struct refusals *, const struct stat *st,
				    const uint8_t *key);
void refusals_fini(struct refusals *);
#endif
