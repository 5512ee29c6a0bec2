/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opener: a process that resolves and opens names which targets chose, and reads targets'
 * memory. It may read any file and any process, and do nothing else. Such a call can wait for as
 * long as a file system does, or for ever; the caller waits OPENER_PATIENCE_MS at most, or
 * OPENER_QUEUED_MS while the process itself gets no CPU. A process that waits longer is replaced,
 * and killed after OPENER_DEADLINE_MS; if it answers until then, the answer is kept for the next
 * query for the same mapping or memory. Further queries for that process fail at once for
 * OPENER_SUSPECT_MS, and those of its user once two of them have waited.
 *
 * What it hands over keeps neither who reads it waiting nor who closes it: a descriptor on a file
 * system that needs a disk or memory of this machine; on one of a file server, with `remote` set:
 * reading it can wait; or a copy in memory.
 *
 * An agent without rights needs none: with NULL as opener the calls are made by the caller itself.
 * For one thread.
 */
#ifndef OPENER_OPENER_H
#define OPENER_OPENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/procfs.h"

#define OPENER_PATIENCE_MS 50
#define OPENER_QUEUED_MS 500
#define OPENER_DEADLINE_MS 5000
#define OPENER_SUSPECT_MS 60000
#define OPENER_COMPARED_MS 2000 /* a late answer to a comparison is kept so long */
#define OPENER_MAX_BYTES 65536u /* of one reading */
#define OPENER_COMPARED (1ull << 20)
#define OPENER_MOST_COPIED (64ull << 20) /* bytes of one file */
#define OPENER_ALL_COPIED (128ull << 20)

struct opener;

enum opener_kind {
	OPENER_MAPPING, /* the file behind `mapping` of the process: safe_open_mapping() */
	OPENER_FILE,    /* `path` below the process's root: a regular file; no link is followed */
	OPENER_FOLDER,  /* the same: a folder, as O_PATH */
	OPENER_DEBUG, /* a debug file of `path`, by build ID or by `link`, its .gnu_debuglink; below
			 the process's root, then below the own */
	OPENER_ALT,   /* the dwz file `path` of a file with debug information, with this build ID */
	OPENER_MEMORY, /* the process's memory at `address` */
	OPENER_TEXT,   /* /proc/PID/`path`, from `address` on */
	/* The process context that an SDK of OpenTelemetry published; -ENOENT: none; -EBUSY: it is
	 * being written; -E2BIG */
	OPENER_CONTEXT,
	/* Has the process's memory at `address` the `bytes` of the file `fd` from `offset` on?
	 * OPENER_COMPARED of them are compared, spread over all. -EILSEQ: no, or they are all of
	 * one value; -EFAULT: not all of the memory is there. */
	OPENER_COMPARE,
};

/* What the kind does not name is 0. */
struct opener_query {
	enum opener_kind kind;
	pid_t pid;
	struct procfs_mapping mapping;
	const char *path, *link; /* NULL: "" */
	const uint8_t *build_id;
	uint32_t build_id_len;
	uint32_t len; /* of buf; at most OPENER_MAX_BYTES */
	uint64_t address;
	void *buf; /* for what is read */
	uint64_t offset, bytes;
	uint64_t since; /* comparisons before it are not repeated; CLOCK_MONOTONIC */
	int fd;         /* borrowed */
};

/* Of the file, as fstat() reports it. */
struct opener_stat {
	uint64_t dev, ino, size, mtime, mtime_ns;
	uint64_t copied; /* the descriptor is of a copy of so many bytes; 0: it is the file's */
	uint32_t remote; /* reading it can wait */
};

/*
 * err: 0 or -errno. -ETIMEDOUT: no answer in time, or the process or its user is suspect; -EAGAIN:
 * there is no opener now; see opener_is_temporary(). -EREMOTE: a folder on a file system
 * that can keep waiting who uses it. -EFBIG: such a file, and too large to be copied;
 * -ENOBUFS: for now, as there are other copies. -EFAULT: not
 * all of the memory is there; and those of the calls.
 */
struct opener_answer {
	int err;
	int fd; /* the caller's; -1: none */
	uint32_t len;
	struct opener_stat st;
};

/* 0 or -errno. Starts the process. */
int opener_new(struct opener **ret);
/* Ends the processes, waiting a moment. NULL is fine. */
void opener_free(struct opener *);
/* Makes a query and waits for its answer; returns its err. */
int opener_call(struct opener *, const struct opener_query *, struct opener_answer *);
/* Sets `st` of an answer with a descriptor of the file itself. 0 or -errno. */
int opener_describe(struct opener_answer *);
/* The copy of so many bytes was closed. */
void opener_release_copy(struct opener *, uint64_t bytes);
/* Does the error say nothing about the file, so that it is to be tried again later? */
bool opener_is_temporary(int err);
/* An epoll descriptor: readable when opener_dispatch() has something to do. */
int opener_fd(const struct opener *);
void opener_dispatch(struct opener *); /* never waits */

struct opener_counts {
	uint64_t queries;
	uint64_t timed_out; /* without an answer in time */
	uint64_t refused;   /* not made, because the process or its user is suspect */
	uint64_t postponed; /* not made, because others have waited for too long in that second */
	uint64_t copied;    /* bytes of copies */
	uint64_t cpu_ns;    /* CPU time of the processes that run */
	uint32_t processes; /* that run */
	uint32_t stuck;     /* of them, those that wait for longer than OPENER_PATIENCE_MS */
};
void opener_counts(const struct opener *, struct opener_counts *);

/* The opener process: answers on the socket until the agent closes its end. For the hidden command
 * `fusee opener FD`. 0 or -errno. */
int opener_run(int sock);
#endif
