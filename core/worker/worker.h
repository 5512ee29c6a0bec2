/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side of the workers: processes of `fusee` without capabilities, under seccomp and
 * RLIMIT_DATA, which parse files of other processes. A worker reads the files of one owner only.
 * It is started at the first request, stopped after `idle_ms` without a request, and started again
 * when it dies. A request during which it dies is repeated once in a new worker; after the second
 * death its file is refused: every later request for that file fails at once with -EFAULT. Where
 * inspect() of an unwinder kills it or does not end, only that unwinder's tables are missing.
 *
 * Users take turns, and processes of a user: a request may be answered before older requests.
 *
 * Threads: all calls from one thread. Callbacks run inside worker_dispatch(), each exactly once
 * (also in worker_stop(), with -ECANCELED). A callback may make further requests.
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <fusee/plugin.h>

#include "inspection/inspection.h"
#include "plugin/plugin.h"
#include "symbols/symbols.h"

struct worker;
struct names_table;
struct used_pages;

/* Texts are copied. */
struct worker_options {
	const char *cache_dir;  /* of inspections, made if missing; NULL: no cache */
	const char *plugin_dir; /* of the unwinders that inspect; NULL: none */
	/* RLIMIT_DATA of the worker of clean files, bytes; others have half of it, and those that
	 * take steps a quarter. 0: 1 GiB, each. */
	uint64_t memory_limit;
	uint32_t idle_ms;    /* 0: 2000 */
	uint32_t request_ms; /* the worker is killed after this time; 0: 60000 */
	/* The unwinders that the agent loaded, for the keys of the cache; borrowed; NULL: none */
	const struct plugin_set *unwinders;
	bool opener; /* starts an opener process: opener.h */
};

/* The user and the process for which a file is read: users take turns, and processes of a user. */
struct worker_requester {
	uint32_t uid;
	pid_t pid;
	uint64_t copy_of; /* the descriptor is of a copy: the device of the file; 0: of no copy */
	/* Called with the request's arg before the work begins. false: the request fails with
	 * -ECANCELED. NULL: it is always needed. */
	bool (*needed)(void *arg);
	/* Of an inspection: what takes long may be omitted (INSPECTION_BRIEF); or, what was
	 * omitted is required now, whatever is on disk. */
	bool brief, rest;
};

/* Each ELF virtual address in [lo, hi) has the frames [first, first + n). */
struct worker_span {
	uint64_t lo, hi;
	uint32_t first, n;
};

struct worker_symbols {
	uint32_t n;            /* addresses, in the order of the request */
	const uint32_t *first; /* n + 1: address i has the frames [first[i], first[i + 1]) */
	const struct symbols_frame *frames; /* of one address: innermost first */
	/* Ranges around the addresses, which later requests are likely to need: sorted,
	 * disjoint. */
	uint32_t nspans;
	const struct worker_span *spans;
	uint32_t quality; /* flags of INSPECTION_SOURCES: of the file and of its debug file */
	/* The dwz file that the debug file names and that was not passed; NULL: none is missing.
	 * Text of a foreign file: the caller must bound where a path made of it can lead. */
	const char *alt_name;
	const uint8_t *alt_build_id;
	uint32_t alt_build_id_len; /* bytes */
};

/*
 * err: 0; -ENOEXEC not an ELF file of this machine; -EBADMSG an inconsistent file; -EFAULT the
 * worker died twice of it; -ETIMEDOUT; -ENOMEM; -ECANCELED; another -errno. text: one sentence
 * about the error, "" if there is none; of a symbolization that succeeded, which of its sources
 * could not be used, a sentence a line. The callback owns one reference of the inspection; the
 * symbols are valid until it returns. NULL on an error.
 */
typedef void worker_inspected(void *arg, int err, const char *text, struct inspection *);
typedef void worker_symbolized(void *arg, int err, const char *text, const struct worker_symbols *);

/* 0 or -errno. Starts no process yet. */
int worker_new(struct worker **ret, const struct worker_options *);
/* Cancels all requests, ends the worker and frees. NULL is valid. */
void worker_stop(struct worker *);
/* NULL: it has none. */
struct opener *worker_opener(const struct worker *);
/* Sets the debuginfod servers, for fetcher_set_servers(), and makes the fetcher at the first call
 * with servers. servers "": none any more. 0 or -errno. */
int worker_set_servers(struct worker *, const char *servers, uint32_t file_ms,
		       void (*arrived)(void *arg, const uint8_t *build_id, uint32_t len),
		       void *arg);
/* NULL: worker_set_servers() was never called with servers. */
struct fetcher *worker_fetcher(const struct worker *);
/* The thread for calls that can wait for a disk. NULL without a worker. */
struct background *worker_background(const struct worker *);
/* An epoll descriptor: readable when worker_dispatch() has something to do. */
int worker_fd(const struct worker *);
/* Reads replies, runs callbacks, sends the next request, enforces time limits. Never blocks. */
void worker_dispatch(struct worker *);
/* Dispatches until no request is pending, or until deadline_ns (CLOCK_MONOTONIC; 0: none). 0;
 * -ETIMEDOUT; -errno. */
int worker_wait_until(struct worker *, uint64_t deadline_ns);
/* Requests without an answer, not counting requests for tables of names. */
uint32_t worker_pending(const struct worker *);
/* CPU time in ns of the workers and openers that run. */
uint64_t worker_cpu_ns(const struct worker *);

/* Requests an inspection of a file. fd is borrowed until the callback; `name` is for messages.
 * by NULL: the agent itself. 0 or -errno, and then without a callback; -EBUSY: its user has too
 * many requests. */
int worker_inspect(struct worker *, int fd, const char *name, const struct worker_requester *by,
		   worker_inspected *, void *arg);

/* So many samples wait for the inspection that was requested with this arg. Of a process's files
 * that with the most samples is inspected next; if it has many more than a file that a worker has
 * begun with, the inspection of the latter begins anew later. */
void worker_hurry(struct worker *, const struct worker_requester *by, uint32_t samples,
		  const void *arg);

/* Which pages the last two runs have used of the table of n pages that this unwinder has made of
 * the file. NULL: nothing is known. The caller frees it. */
struct used_pages *worker_used_pages(struct worker *, const struct inspection *,
				     const char *unwinder, uint32_t n);
/* Keeps what this run has used, a bit for each page. Without a worker (NULL) or a cache, and of
 * files whose inspections are not on disk, neither does anything. */
void worker_keep_used_pages(struct worker *, const struct inspection *, const char *unwinder,
			    uint32_t n, const uint8_t *bits);

/* Addresses of a file. All is copied but the descriptors, which are those of struct symbols_files
 * (-1: none) and borrowed until the callback. A debug or dwz file is used only if it is clean or of
 * the file's own owner. */
struct worker_symbolization {
	const struct inspection *inspection; /* NULL: not known */
	int fd, debug_fd, alt_fd;
	bool debug_fetched, alt_fetched; /* of the fetcher: used whatever its owner is */
	const char *name;                /* for messages */
	bool inlines;
	const uint64_t *addresses; /* ELF virtual addresses */
	uint32_t n;
};
/* Requests functions, files and lines. 0 or -errno (-E2BIG: too many addresses; -EBUSY), and then
 * without a callback. */
int worker_symbolize(struct worker *, const struct worker_symbolization *,
		     const struct worker_requester *by, worker_symbolized *, void *arg);

/* The key of the file's table of names. 0; -ENOTSUP: there is no cache, or tables of such files are
 * not kept; -errno. The addresses are not used. */
int worker_names_key(const struct worker *, const struct worker_symbolization *,
		     const struct worker_requester *by, uint8_t key[32]);
/* The table on disk, by that key. 0, -ENOENT or -errno. The caller closes it. */
int worker_names_open(struct worker *, const uint8_t key[32], struct names_table **);
/* Removes a table in which names_find() found damage, or that could not be read. */
void worker_names_remove(struct worker *, const uint8_t key[32], int err);
/* err: 0: it is being written to disk; or -errno. */
typedef void worker_named(void *arg, int err);
/* Requests that the table is made. 0 or -errno, and then without a callback. -EAGAIN: it is not
 * due: the file is large and this is its first request, or the table was made within the last hour,
 * or it cannot be made. */
int worker_names_make(struct worker *, const struct worker_symbolization *,
		      const struct worker_requester *by, worker_named *, void *arg);

/* One step by libunwind, for a row that no table expresses. All is copied but fd. */
struct worker_step {
	const struct inspection *inspection;
	int fd;        /* borrowed until the callback */
	uint64_t bias; /* runtime address of ELF virtual address 0 */
	/* x86-64 registers by DWARF number; bit n of valid: regs[n] is known. regs[16] is the ELF
	 * virtual address of the row: the interrupted instruction, or a return address - 1. */
	uint64_t regs[17], valid;
	uint64_t stack_lo; /* runtime address of the copy */
	const void *stack;
	uint32_t len; /* bytes of the copy */
};
/*
 * err 0: regs and valid are of the caller's frame, regs[16] its runtime pc. 1: the same, and the
 * frame was a signal frame, so the caller's pc is exact. -ENODATA: the return address is undefined:
 * the stack ends. -ENOENT: no row. -EBADMSG: the row is malformed or needs an unknown register.
 * -EFAULT (the worker died twice), -ETIMEDOUT (after a second): the file is refused from now on.
 * -EBUSY: its user has had its share of the minute. -ENOTSUP, -ENOMEM, -EIO, -ECANCELED. regs are
 * valid until the callback returns.
 */
typedef void worker_stepped(void *arg, int err, const uint64_t regs[17], uint64_t valid);
/* Requests a step. It never waits for an inspection. 0 or -errno, and then without a callback:
 * -EFAULT, -ETIMEDOUT: the file is refused; -EBUSY: its user has too many steps. */
int worker_step(struct worker *, const struct worker_step *, const struct worker_requester *by,
		worker_stepped *, void *arg);

/* Calls each() for every refused file; partly: only an unwinder is not called for it. */
typedef void worker_refusal(void *arg, const char *name, const char *text, bool partly);
void worker_refused(const struct worker *, worker_refusal *each, void *arg);

/* The worker process: answers requests on the socket fd until the agent closes its end. For the
 * hidden command `fusee worker FD MEMORY_LIMIT [PLUGIN_DIR [UNWINDER OPTIONS]...]`, whose arguments
 * behind the limit end with NULL; OPTIONS: as option_text() writes them. 0 or -errno. */
int worker_run(int fd, uint64_t memory_limit, char *const *arguments);
#endif
