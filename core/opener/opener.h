/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opener: a process that resolves and opens names which targets chose, and reads targets'
 * memory. It may read any file and any process, and do nothing else. Such a call can wait for as
 * long as a file system does, or for ever. The caller waits for OPENER_PATIENCE_MS at most, or for
 * OPENER_QUEUED_MS while the opener itself gets no CPU.
 *
 * If the opener does not answer in time, another opener process takes the next queries. The first
 * is killed after OPENER_DEADLINE_MS; if it answers before, the answer is kept for the next query
 * for the same mapping or memory. The target is suspect for OPENER_SUSPECT_MS: queries for it fail
 * at once. Once a user has two suspect targets (root four), queries for all of its processes fail.
 *
 * An answer has one of these, so that the agent never waits when it closes it, and only with
 * `remote` when it reads it: a descriptor on a file system of this machine's disks or memory; a
 * descriptor on a file system of a file server, with `remote` set; a copy in memory.
 *
 * An agent without rights has no opener: with NULL the caller makes the calls itself. For one
 * thread.
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
#define OPENER_COMPARED_MS 2000 /* how long a late answer to a comparison is kept */
#define OPENER_MAX_BYTES 65536u /* of memory or text, in one answer */
#define OPENER_COMPARED (1ull << 20)
#define OPENER_MOST_COPIED (64ull << 20) /* bytes of one copy */
#define OPENER_ALL_COPIED (128ull << 20) /* bytes of all copies */

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

/* Members that the kind does not mention are 0. */
struct opener_query {
	enum opener_kind kind;
	pid_t pid;
	struct procfs_mapping mapping;
	const char *path, *link; /* NULL: "" */
	const uint8_t *build_id;
	uint32_t build_id_len;
	uint32_t len; /* of buf; at most OPENER_MAX_BYTES */
	uint64_t address;
	void *buf; /* for memory or text */
	uint64_t offset, bytes;
	uint64_t since; /* late answers to comparisons before it are not used; CLOCK_MONOTONIC ns */
	int fd;         /* borrowed */
};

/* Of the file, as fstat() reports it. */
struct opener_stat {
	uint64_t dev, ino, size, mtime, mtime_ns;
	uint64_t copied; /* bytes of the copy that the descriptor is of; 0: it is of the file */
	uint32_t remote; /* the file is on a file server: reading it can wait */
};

/*
 * err: 0 or -errno. -ETIMEDOUT: no answer in time, or the target or its user is suspect; -EAGAIN:
 * no opener is free, or the user's queries have waited for too long in this second; see
 * opener_is_temporary(). -EREMOTE: the folder is on a file system that can keep its users waiting.
 * -EFBIG: the file is on such a file system, and too large to be copied; -ENOBUFS: now, because of
 * other copies. -EFAULT: not all of the memory is mapped. Other errors are those of the calls.
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
/* Whether the error says nothing about the file, so that the query is to be repeated later. */
bool opener_is_temporary(int err);
/* An epoll descriptor: readable when opener_dispatch() has something to do. */
int opener_fd(const struct opener *);
void opener_dispatch(struct opener *); /* never waits */

struct opener_counts {
	uint64_t queries;
	uint64_t timed_out; /* without an answer in time */
	uint64_t refused;   /* not made, because the process or its user is suspect */
	uint64_t postponed; /* not made, because queries have waited for too long in that second */
	uint64_t copied;    /* bytes of copies */
	uint64_t cpu_ns;    /* CPU time of the processes that run */
	uint32_t processes; /* that run */
	uint32_t stuck;     /* of them, those that have not answered in time */
};
void opener_counts(const struct opener *, struct opener_counts *);
void opener_metrics(const struct opener *); /* sets the metrics of the counts */

/* The opener process: answers on the socket until the agent closes its end. For the hidden command
 * `fusee opener FD`. 0 or -errno. */
int opener_run(int sock);
#endif
