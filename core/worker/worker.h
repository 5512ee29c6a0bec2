/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side of the worker: a second process of `fusee`, without capabilities, under seccomp
 * and RLIMIT_DATA, which parses files of other processes. It is started at the first request,
 * stopped after `idle_ms` without a request, and started again when it dies. A request during
 * which it dies is repeated once in a new worker; after the second death its file is refused:
 * every later request for that file fails at once with -EFAULT.
 *
 * Threads: all calls from one thread. Callbacks run inside worker_dispatch(), in the order of the
 * requests, each exactly once (also in worker_stop(), with -ECANCELED). A callback may make
 * further requests.
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

struct worker;

/* Texts are copied. */
struct worker_options {
	const char *cache_dir;  /* of inspections, made if missing; NULL: no cache */
	const char *plugin_dir; /* of the unwinders that inspect; NULL: none */
	uint64_t memory_limit;  /* RLIMIT_DATA, bytes; 0: 1 GiB */
	uint32_t idle_ms;       /* 0: 2000 */
	uint32_t request_ms;    /* the worker is killed after this time; 0: 60000 */
};

/* Code whose steps go to a language unwinder: ELF virtual addresses [lo, hi). */
struct inspection_claim {
	uint64_t lo, hi;
	uint32_t arg, pad; /* arg: the unwinder's own number, at most INT32_MAX */
};

/* What one unwinder made of the file. */
struct inspection_slab {
	char unwinder[32];
	uint32_t version; /* the unwinder's slab_version */
	uint32_t nclaims;
	const uint32_t *words;                 /* its table */
	uint64_t n;                            /* words */
	const struct inspection_claim *claims; /* sorted, disjoint */
};

enum inspection_flags {
	INSPECTION_GO = 1, /* has a .gopclntab */
	INSPECTION_SYMTAB = 2,
	INSPECTION_DYNSYM = 4,
	INSPECTION_DEBUGDATA = 8,
	INSPECTION_DWARF = 16,
	INSPECTION_CACHED = 32, /* read from the cache on disk */
};

/*
 * What is known of one file content. The worker makes it as one block of memory; the agent maps it
 * read-only, checks it and keeps it on disk under `key`. Reference counted; everything that it
 * points at is valid as long as a reference is held.
 */
struct inspection {
	uint32_t refs;
	uint8_t key[32];        /* SHA-256 of size, build ID, headers and unwind sections */
	uint16_t machine, type; /* e_machine, e_type */
	uint32_t flags;         /* enum inspection_flags */
	uint64_t entry;         /* e_entry */
	uint8_t build_id[64];
	uint32_t build_id_len; /* bytes; 0: none */
	uint32_t nsegments, nslabs;
	const struct fusee_segment *segments; /* PT_LOAD, sorted by vaddr */
	const struct inspection_slab *slabs;  /* of the unwinders that made something */
	const char *debuglink; /* file name in .gnu_debuglink, without '/'; "": none */
	const char *notes;     /* what unwinders could not use, a sentence a line; "": nothing */
	bool incomplete;       /* memory was short for a slab; a later try may have it */
	uint32_t debuglink_crc;
	uint64_t bytes; /* of memory held */
};

/* One source frame of an address; see struct symbols_frame. Texts are valid until the callback
 * returns. */
struct worker_frame {
	const char *name, *system_name, *file;
	uint32_t line, column, start_line, flags; /* enum symbols_flags */
};

/* Each ELF virtual address in [lo, hi) has the frames [first, first + n). */
struct worker_span {
	uint64_t lo, hi;
	uint32_t first, n;
};

struct worker_symbols {
	uint32_t n;            /* addresses, in the order of the request */
	const uint32_t *first; /* n + 1: address i has the frames [first[i], first[i + 1]) */
	const struct worker_frame *frames; /* of one address: innermost first */
	/* Ranges around the addresses, which later requests are likely to need: sorted,
	 * disjoint. */
	uint32_t nspans;
	const struct worker_span *spans;
	uint32_t quality; /* INSPECTION_SYMTAB..: the sources, those of the debug file included */
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
/* An epoll descriptor: readable when worker_dispatch() has something to do. */
int worker_fd(const struct worker *);
/* Reads replies, runs callbacks, sends the next request, enforces time limits. Never blocks. */
int worker_dispatch(struct worker *);
/* Dispatches until no request is pending. 0 or -errno. */
int worker_wait(struct worker *);
/* Requests without an answer. */
uint32_t worker_pending(const struct worker *);
/* The worker's pid; 0: none runs. */
int worker_pid(const struct worker *);

/* Requests an inspection of a file. fd is borrowed until the callback; `name` is for messages.
 * 0 or -errno, and then without a callback. */
int worker_inspect(struct worker *, int fd, const char *name, worker_inspected *, void *arg);
/* Requests functions, files and lines of n ELF virtual addresses, which are copied. The
 * descriptors are those of struct symbols_files (-1: none), borrowed until the callback. The
 * inspection, which may be NULL, is used during the call only. 0 or -errno (-E2BIG: too many
 * addresses), and then without a callback. */
int worker_symbolize(struct worker *, const struct inspection *, int fd, int debug_fd, int alt_fd,
		     const char *name, bool inlines, const uint64_t *addresses, uint32_t n,
		     worker_symbolized *, void *arg);
/*
 * One step by libunwind, for a row that no table expresses. Blocks for a second at most
 * (request_ms if that is less). A worker process of its own executes it, so it never waits for an
 * inspection.
 *
 * regs: x86-64 registers by DWARF number; bit n of *valid: regs[n] is known. regs[16] is the ELF
 * virtual address of the row: the interrupted instruction, or a return address - 1. bias: runtime
 * address of ELF virtual address 0. stack: len bytes, a copy from the runtime address stack_lo on.
 *
 * 0: regs and *valid are the caller's, regs[16] its runtime pc. 1: the same, and the frame was a
 * signal frame, so the caller's pc is exact. -ENODATA: the return address is undefined, the stack
 * ends. -ENOENT: no row. -EBADMSG: the row is malformed or needs an unknown register. -EFAULT,
 * -ETIMEDOUT: and the file is refused. -ENOTSUP, -ENOMEM.
 */
int worker_step(struct worker *, const struct inspection *, int fd, uint64_t bias,
		uint64_t regs[17], uint64_t *valid, uint64_t stack_lo, const void *stack,
		uint32_t len);

void inspection_ref(struct inspection *);
void inspection_unref(struct inspection *); /* NULL is valid */
/* What the unwinder of that name made; NULL: nothing. */
const struct inspection_slab *inspection_slab(const struct inspection *, const char *unwinder);
/* Converts a file offset to an ELF virtual address by the executable segments, rounded to the
 * pages that a mapping has. false: no segment has the offset. */
bool inspection_vaddr(const struct inspection *, uint64_t offset, uint64_t *vaddr);

/* Calls each() for every refused file. */
void worker_refused(const struct worker *,
		    void (*each)(void *arg, const char *name, const char *text), void *arg);

/* The worker process: answers requests on the socket fd until the agent closes its end. For the
 * hidden command `fusee worker FD MEMORY_LIMIT [PLUGIN_DIR]`. 0 or -errno. */
int worker_run(int fd, const char *plugin_dir, uint64_t memory_limit);
#endif
