/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and reads the perf map of a process: /tmp/perf-PID.map, with the pid of the process's pid
 * namespace, in its mount namespace. The folder and the file are kept open once they are found, so
 * that frames of a process that has ended can still be symbolized. For one thread.
 */
#ifndef PERFMAP_MAPFILE_H
#define PERFMAP_MAPFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "map.h"

#define MAPFILE_MARK 256u /* bytes at the start of the file, and before the offset */

/* The process to which the file must belong. */
struct mapfile_owner {
	uint32_t pid, uid, fs_uid; /* pid: in its innermost namespace */
	uint64_t start_ns;         /* CLOCK_REALTIME; an older file belongs to another process */
};

enum mapfile_refusal {
	MAPFILE_ACCEPTED,   /* not refused */
	MAPFILE_NOT_A_FILE, /* a link, FIFO, device, folder */
	MAPFILE_FOREIGN,    /* owned by neither root nor the process's user */
	MAPFILE_LINKED,     /* it has several links */
	MAPFILE_MOUNTED,    /* another file is mounted on the name */
	MAPFILE_REMOTE,     /* its folder is on a file system that can keep readers waiting */
	MAPFILE_OLD,        /* last written before its process began */
};

struct mapfile {
	struct mapfile_owner owner;
	int folder, fd; /* fd -1: no map yet */
	uint64_t dev, ino;
	enum mapfile_refusal refusal; /* of the file that is there now */
	uint64_t offset;              /* bytes read */
	struct timespec written;      /* mtime when it was read */
	char head[MAPFILE_MARK], tail[MAPFILE_MARK];
	uint32_t nhead, ntail;
	struct map *map, *before; /* before: of the file before it was rewritten */
	uint32_t first;           /* generation from which map is valid */
	uint32_t generation;
	uint64_t max_bytes;
	bool full;     /* the rest of the file has no room */
	bool reread;   /* mapfile_reread() was called */
	bool uncached; /* the kernel's cache lacks the name: the caller has it looked up, and .. */
	bool found;    /* .. sets this if the file exists */
	uint64_t next_ns; /* CLOCK_MONOTONIC of the next reading at the earliest */
	uint64_t most_ns; /* time of a reading, at most; 0: no limit */
	uint64_t faults[MAP_FAULTS];
	uint64_t rewrites;
};

/* folder: an O_PATH descriptor of the process's /tmp, which mapfile owns from now on, also on
 * failure. 0 or -ENOMEM. */
int mapfile_init(struct mapfile *, const struct mapfile_owner *, int folder, uint64_t max_bytes);
void mapfile_fini(struct mapfile *);
/*
 * Reads what was added. Where code was replaced, changed(arg) is called before the new entries are
 * valid, and returns the new generation. A large map is read again after ten times the time that
 * the last reading took. 0, or -errno: there is no map, or it is refused.
 */
int mapfile_read(struct mapfile *, uint32_t (*changed)(void *arg), void *arg);
/* Memory in use; and another limit of it, as max_bytes of mapfile_init(). */
uint64_t mapfile_bytes(const struct mapfile *);
void mapfile_limit(struct mapfile *, uint64_t max_bytes);
/* Makes the next reading begin with the first line: now there is room for lines that had none. */
void mapfile_reread(struct mapfile *);
bool mapfile_lookup(const struct mapfile *, uint64_t addr, uint32_t generation,
		    struct fusee_str *name);
#endif
