/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool of one sink: profiles on disk, the oldest first, in segments of a folder of its own.
 * Bounded by bytes and by age: the oldest are dropped, and counted. A process finds the profiles
 * that a killed process has written. docs/internals/spool.md describes the files.
 *
 * Threads: one thread writes (open, limit, append, sync, close), one reads (first, done, keep);
 * both may take the counts. Every call can wait for the disk, so the control thread makes none.
 */
#ifndef SPOOL_SPOOL_H
#define SPOOL_SPOOL_H

#include <stdint.h>

#include "spool/internal/segment.h"

struct spool;

struct spool_limits {
	uint64_t bytes;  /* of all files; at least 64 KiB */
	uint64_t age_ns; /* since a profile was written */
};

struct spool_dropped {
	uint64_t profiles, samples;
};

/* The waiting profiles, and those dropped since the last call. */
struct spool_counts {
	uint64_t turn;            /* greater than in the call before */
	uint64_t profiles, bytes; /* that wait */
	uint64_t oldest_ns;       /* CLOCK_REALTIME: when the oldest of them was written; 0: none */
	struct spool_dropped full, old; /* because of the limits of bytes, of age */
	/* Records that were damaged; samples: only of records whose number of samples is known. */
	struct spool_dropped damaged;
};

/* A waiting profile for the reader. */
struct spool_item {
	struct spool_profile *profile; /* owned by the caller */
	uint64_t samples;              /* without those that spool_keep() counted */
	uint32_t attempt;              /* how often spool_keep() was called for it */
};

/* Opens DIR/NAME and indexes its waiting profiles. 0, or -errno with a malloc'ed sentence in *text
 * (NULL: no memory); -EWOULDBLOCK: another process has it. */
int spool_open(struct spool **ret, const char *dir, const char *name, const struct spool_limits *,
	       char **text);
/* Changes the limits; the oldest profiles that no longer fit are dropped. */
void spool_limit(struct spool *, const struct spool_limits *);
/* Appends a profile. 0; -EMSGSIZE: it is larger than the limit; -ENOSPC, -EIO .. of the disk:
 * nothing of it remains. */
int spool_append(struct spool *, const struct fusee_profile *, uint64_t samples);
/* Syncs writes and removals to the disk. 0 or -errno. */
int spool_sync(struct spool *);
/* The oldest profile; damaged profiles and too old profiles before it are dropped. Each is followed
 * by spool_done() or spool_keep(). 0; -ENOENT: there is none; -ENOMEM, -EMFILE ..: try again. */
int spool_first(struct spool *, struct spool_item *);
/* Removes the profile of spool_first(). */
void spool_done(struct spool *);
/* Keeps the profile of spool_first() for another attempt, or counts it as dropped if others took
 * its bytes. samples: those that are lost with it; the others are counted already. On the disk the
 * record keeps the number of all its samples, for the next process. */
void spool_keep(struct spool *, uint64_t samples);
void spool_take_counts(struct spool *, struct spool_counts *);
/* Unlocks the folder. Waiting profiles stay in it. NULL is fine. */
void spool_close(struct spool *);
#endif
