/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a jitdump file while it grows. For one thread. */
#ifndef JITDUMP_DUMPFILE_H
#define JITDUMP_DUMPFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "dump.h"

struct dumpfile {
	int fd;       /* owned; -1: none yet */
	uint32_t pid; /* of the process, in its innermost namespace */
	uint8_t header[DUMP_HEADER];
	uint64_t offset;            /* of the next record; 0: the header was not read yet */
	struct dump *dump, *before; /* before: of the file before it was rewritten */
	uint32_t first;             /* generation from which dump is valid */
	uint32_t generation;
	uint64_t max_bytes;
	enum dump_refusal refusal;
	bool damaged;     /* a record contradicts the form: what follows is not read */
	bool full;        /* what follows has no room */
	uint64_t next_ns; /* CLOCK_MONOTONIC of the next reading at the earliest */
	uint64_t most_ns; /* time of a reading, at most; 0: no limit */
	uint64_t faults[DUMP_FAULTS], rewrites;
};

int dumpfile_init(struct dumpfile *, uint32_t pid, uint64_t max_bytes); /* 0 or -ENOMEM */
void dumpfile_fini(struct dumpfile *);
/*
 * Reads what was added. Where code was replaced, changed(arg) is called before the new names are
 * valid, and returns the new generation. A large file is read again after ten times the time that
 * the last reading took. 0 or -errno.
 */
int dumpfile_read(struct dumpfile *, uint32_t (*changed)(void *arg), void *arg);
uint64_t dumpfile_bytes(const struct dumpfile *); /* memory in use */
void dumpfile_limit(struct dumpfile *, uint64_t max_bytes);
bool dumpfile_lookup(const struct dumpfile *, uint64_t addr, uint32_t generation,
		     struct dump_found *);
#endif
