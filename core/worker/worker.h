/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side of the worker: `fusee` itself in a second process, without capabilities, under
 * seccomp and RLIMIT_DATA, that looks at foreign files for us. Started at the first request, gone
 * after `idle_ms` without one, restarted when it dies. A request that kills it is tried once more,
 * in a fresh worker; a file that kills it twice is refused: every later request for it fails at
 * once with -EFAULT, and worker_refused() names it.
 *
 * Threads: all calls are for one thread. Callbacks run inside worker_dispatch(), in the order of
 * the requests, each exactly once (also at worker_stop(), with -ECANCELED).
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

struct worker;

struct worker_options {
	const char *cache_dir;  /* where inspections are kept; NULL: nowhere. Made if missing */
	const char *plugin_dir; /* of the unwinders that inspect */
	uint64_t memory_limit;  /* RLIMIT_DATA, bytes; 0: 1 GiB */
	uint32_t idle_ms;       /* 0: 2000 */
	uint32_t request_ms;    /* a request that takes longer is killed: 0: 60000 */
};

/*
 * What is known of one file content: made in the worker, one block of memory, mapped read-only,
 * checked before it is handed out, kept on disk by `key`. Reference counted.
 */
struct inspection_claim { /* code that its step is asked about, by vaddr: [lo, hi) */
	uint64_t lo, hi;
	uint32_t arg, pad;
};

struct inspection_slab { /* of one unwinder */
	char unwinder[32];
	uint32_t version, nclaims; /* version: slab_version */
	const uint32_t *words;
	uint64_t n;
	const struct inspection_claim *claims; /* sorted, disjoint */
};

struct inspection {
	uint32_t refs;
	uint8_t key[32];        /* content: build id, size, hash of headers and unwind sections */
	uint16_t machine, type; /* e_machine, e_type */
	uint32_t flags;         /* enum inspection_flags */
	uint64_t entry;
	uint8_t build_id[64];
	uint32_t build_id_len;
	uint32_t nsegments, nslabs;
	const struct fusee_segment *segments; /* PT_LOAD, sorted by vaddr */
	const struct inspection_slab *slabs;  /* one for each unwinder that had something */
	const char *debuglink;                /* .gnu_debuglink, "" none */
	const char *notes; /* what the unwinders refused, one sentence a line, "" nothing */
	bool incomplete;   /* the worker lacked memory for a slab, and may have it later */
	uint32_t debuglink_crc;
	uint64_t bytes; /* memory held */
};

enum inspection_flags {
	INSPECTION_GO = 1, /* has a .gopclntab */
	INSPECTION_SYMTAB = 2,
	INSPECTION_DYNSYM = 4,
	INSPECTION_DEBUGDATA = 8,
	INSPECTION_DWARF = 16,
	INSPECTION_CACHED = 32, /* came from disk */
};

/* One source frame of one address; see struct symbols_frame. Texts live until the callback returns.
 */
struct worker_frame {
	const char *name, *system_name, *file;
	uint32_t line, column, start_line, flags; /* enum symbols_flags */
};

/* Beside the addresses that were asked: each in [lo, hi), ELF virtual addresses, has these frames.
 */
struct worker_span {
	uint64_t lo, hi;
	uint32_t first, n; /* frames[first .. first + n) */
};

struct worker_symbols {
	uint32_t n;            /* addresses, in the order asked */
	const uint32_t *first; /* n + 1: frames of address i are frames[first[i] .. first[i+1]) */
	const struct worker_frame *frames; /* innermost first */
	uint32_t nspans;
	const struct worker_span *spans; /* of the functions around the addresses: sorted, apart */
	uint32_t quality; /* INSPECTION_SYMTAB.. : where names came from, debug file included */
	/* The dwz file that the debug file names and that was not handed in; NULL: none. Foreign
	 * text: whoever opens it must bound where that leads. */
	const char *alt_name;
	const uint8_t *alt_build_id;
	uint32_t alt_build_id_len;
};

/* err 0, or -errno: -ENOEXEC not an ELF file for this machine, -EBADMSG it lies, -EFAULT it killed
 * the worker twice, -ETIMEDOUT, -ENOMEM, -ECANCELED. text: one sentence about the error, or "";
 * where names could be had after all, what of their sources could not be used, a sentence a line.
 */
typedef void worker_inspected(void *arg, int err, const char *text, struct inspection *);
typedef void worker_symbolized(void *arg, int err, const char *text, const struct worker_symbols *);

int worker_new(struct worker **ret, const struct worker_options *); /* nothing is started yet */
void worker_stop(struct worker *);                                  /* and free; NULL is fine */
int worker_fd(const struct worker
		      *); /* an epoll fd: readable when worker_dispatch() has something to do */
int worker_dispatch(struct worker *); /* never blocks; runs callbacks, timeouts, restarts */
int worker_wait(struct worker *);     /* dispatch until no request is under way */
uint32_t worker_pending(const struct worker *);
int worker_pid(const struct worker *); /* 0: none is running */

/* The fd is borrowed until the callback. `name` is for messages. The callback takes over a
 * reference. */
int worker_inspect(struct worker *, int fd, const char *name, worker_inspected *, void *arg);
/* Names of n ELF virtual addresses; files as in struct symbols_files (-1 none), borrowed until the
 * callback. */
int worker_symbolize(struct worker *, const struct inspection *, int fd, int debug_fd, int alt_fd,
		     const char *name, bool inlines, const uint64_t *addresses, uint32_t n,
		     worker_symbolized *, void *arg);
/*
 * One step by libunwind for a row that no table expresses; blocks (a second at most, request_ms if
 * that is less), in a process of its own, so that it never waits for an inspection. regs: x86-64
 * values by DWARF number; bit n of *valid: regs[n] is known. regs[16] is the ELF virtual address to
 * look the row up at: the interrupted instruction, or a return address - 1. bias: runtime address
 * of vaddr 0. stack: a copy of [stack_lo, + len). 0: regs are the caller's, regs[16] its runtime
 * pc, *valid says which are known. 1: likewise, and this was a signal frame: the caller's pc is
 * exact. -ENODATA: the return address is undefined, the stack ends here; -ENOENT: no row; -EBADMSG:
 * the row lies, or needs what is not known; -EFAULT, -ETIMEDOUT, -ENOTSUP, -ENOMEM.
 */
int worker_step(struct worker *, const struct inspection *, int fd, uint64_t bias,
		uint64_t regs[17], uint64_t *valid, uint64_t stack_lo, const void *stack,
		uint32_t len);

void inspection_ref(struct inspection *);
void inspection_unref(struct inspection *); /* NULL is fine */
/* The slab of one unwinder, or NULL. */
const struct inspection_slab *inspection_slab(const struct inspection *, const char *unwinder);
/* File offset to ELF virtual address by the executable segments, whole pages as they are mapped;
 * false: in none. */
bool inspection_vaddr(const struct inspection *, uint64_t offset, uint64_t *vaddr);

/* Files refused so far: calls each(name, text) for each. */
void worker_refused(const struct worker *,
		    void (*each)(void *arg, const char *name, const char *text), void *arg);

/* The worker process itself: serves fd until it is closed. From the hidden command `fusee worker
 * FD`. */
int worker_serve(int fd, const char *plugin_dir, uint64_t memory_limit);
#endif
