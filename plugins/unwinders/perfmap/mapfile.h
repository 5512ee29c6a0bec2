/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a process's perf map is, and what of it was read: /tmp/perf-PID.map by the pid of its own
 * pid namespace and in its own mount namespace. The folder and the file are kept open from first
 * sight, so that a process that has ended can still be looked up. For one thread.
 */
#ifndef PERFMAP_MAPFILE_H
#define PERFMAP_MAPFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "map.h"

#define MAPFILE_MARK 256u /* bytes at the head and before the place that was read to */

/* Whose file it may be. */
struct mapfile_owner {
	uint32_t pid, uid, fs_uid; /* pid: in its own namespace */
	uint64_t start_ns;         /* CLOCK_REALTIME; an older file is another process's */
};

enum mapfile_refusal {
	MAPFILE_TAKEN,      /* none */
	MAPFILE_NOT_A_FILE, /* a link, FIFO, device, folder */
	MAPFILE_FOREIGN,    /* neither root's nor its process's */
	MAPFILE_LINKED,     /* it has other names */
	MAPFILE_OLD,        /* last written before its process began */
};

struct mapfile {
	struct mapfile_owner owner;
	int folder, fd; /* fd -1: no map yet */
	uint64_t dev, ino;
	enum mapfile_refusal refusal; /* of what stands there now */
	uint64_t offset;              /* read up to here */
	struct timespec written;      /* mtime when it was read */
	char head[MAPFILE_MARK], tail[MAPFILE_MARK];
	uint32_t nhead, ntail;
	struct map *map, *before; /* before: of the file that was rewritten */
	uint32_t first;           /* generation in which map began */
	uint32_t generation;
	uint64_t max_bytes;
	uint64_t next_ns; /* CLOCK_MONOTONIC: not to be read before */
	uint64_t faults[MAP_FAULTS];
	uint64_t rewrites;
};

/* folder: an O_PATH descriptor of its /tmp, which is its own from now on, also on failure. 0
 * or -ENOMEM. */
int mapfile_init(struct mapfile *, const struct mapfile_owner *, int folder, uint64_t max_bytes);
void mapfile_fini(struct mapfile *);
/*
 * Reads what is new. changed(arg) is called where code was replaced, before that counts, and
 * returns the new generation. A large map is not read again before ten times the time that it took
 * has passed. 0, or -errno: there is none, or it is not to be read.
 */
int mapfile_read(struct mapfile *, uint32_t (*changed)(void *arg), void *arg);
bool mapfile_lookup(const struct mapfile *, uint64_t addr, uint32_t generation, const char **name,
		    uint32_t *len);
#endif
