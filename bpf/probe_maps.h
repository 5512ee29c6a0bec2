/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What lies in the maps of probes.bpf.o alone; shared with user space (core/bpf/probes.c). */
#ifndef BPF_PROBE_MAPS_H
#define BPF_PROBE_MAPS_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#include "inuse_maps.h"

/* What became of hits: X(name, text). Texts are keys of --stats. */
#define PROBE_RESULTS(X)                                                                          \
	X(PROBE_HITS, "hits")                /* of selected processes, not nested */              \
	X(PROBE_FILTERED, "filtered")        /* others, which a filter excludes */                \
	X(PROBE_VALUE, "value")              /* the sum of their values */                        \
	X(PROBE_NESTED, "nested")            /* an allocator's functions, called by one another;  \
						or a timed function jumps to itself */            \
	X(PROBE_BEGUN, "begun")              /* timed calls, not nested */                        \
	X(PROBE_UNREAD, "argument not read") /* neither: its memory was not there */              \
	X(PROBE_TOO_DEEP, "too deep")        /* of these: the kernel does not see their return */ \
	X(PROBE_ENDED, "ended")              /* .. they have returned, filtered or not */         \
	X(PROBE_UNKNOWN_BEGIN, "begin not known") /* returns of other calls */                    \
	X(PROBE_CHOSEN, "chosen")                 /* a sample is due */                           \
	X(PROBE_BUSY, "during another")           /* of these: the walk of another */             \
	X(PROBE_NOT_WALKED, "not walked") /* likewise: the kernel refused to call the walk */     \
	X(PROBE_RING_FULL, "ring full")   /* likewise: the ring had no room for its record */

#define PROBE_NAME(name, text) name,

enum probe_result { PROBE_RESULTS(PROBE_NAME) PROBE_RESULT_COUNT };

enum filter_operator {
	FILTER_NONE,
	FILTER_EQUAL,
	FILTER_NOT_EQUAL,
	FILTER_LESS,
	FILTER_AT_MOST,
	FILTER_MORE,
	FILTER_AT_LEAST,
	FILTER_ANY_BIT, /* of those in the value is set */
};

#define FILTER_ARGUMENTS 6u /* of a function, that are in registers */
/* What is known when a timed call has returned, in place of an argument. */
#define FILTER_RETVAL 32u
#define FILTER_NS 33u

/* Arguments of a probe that are described by its note, at most. */
#define FILTER_DESCRIBED 12u

/* Tracepoints at a time, by their numbers in sampler_filters. */
#define TRACEPOINT_NUMBERS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#define MOST_TRACEPOINTS 8u

enum operand_kind {
	OPERAND_NONE,     /* it is where arguments of functions are */
	OPERAND_NUMBER,   /* a constant */
	OPERAND_REGISTER, /* base */
	OPERAND_MEMORY,   /* at base + (index << shift) + number */
};

#define NO_REGISTER 0xffffffffu
#define REGISTER_WORDS 21u /* of struct user_regs */

/* Where an argument is. */
struct probe_operand {
	__u32 kind;            /* enum operand_kind */
	__u32 bits, is_signed; /* of the argument's type */
	__u32 base, index;     /* words of struct user_regs, or NO_REGISTER */
	__u32 shift;           /* of the index; of a register: bits below the argument */
	__s64 number;
};

/* Map sampler_filters: a hit counts if this is so of an argument. */
struct probe_filter {
	__u32 argument;        /* from 0 on; or FILTER_RETVAL, FILTER_NS */
	__u32 operator;        /* enum filter_operator */
	__u32 bits, is_signed; /* of the argument's type */
	__u64 value;           /* that it is compared with, of 64 bits */
	struct probe_operand operand;
};

/* Map sampler_filters, by number: a place that is probed. */
struct probe_place {
	struct probe_filter filter;
	__u64 period; /* of its hits; 0: that of the settings */
	__u32 hook;   /* number of the hook whose place it is; 0: of none */
	__u32 pad;
};

/* Hooks: probes that a script declares, each with a profile of its own. Their numbers are from 1
 * on, the last is this. */
#define MOST_HOOKS 255u
#define HOOK_PLACES 4096u /* of all of them, in files; their numbers are from 1 on */

/* Map sampler_hooks, per CPU, by number: what became of a hook's hits. */
struct hook_cpu {
	__u64 counts[PROBE_RESULT_COUNT];
};

/* Map sampler_calls: a timed call that has not returned. */
struct call_key {
	__u64 at; /* the address of its return address */
	__u32 tid, probe;
};

struct call_begun {
	__u64 time;     /* CLOCK_MONOTONIC ns; 0: a filter excludes it */
	__u64 function; /* its address */
	__u64 jumps;    /* that the function has made to itself: each returns, too */
};

/* Those that are known at once. What was used least recently makes room. */
#define PROBE_CALLS 16384u

/* The functions of allocators, by where the size is. */
enum alloc_kind {
	ALLOC_MALLOC,       /* (size) */
	ALLOC_REALLOC,      /* (pointer, size) */
	ALLOC_ALIGNED,      /* (alignment, size) */
	ALLOC_POSIX,        /* (where, alignment, size) */
	ALLOC_CALLOC,       /* (n, size) */
	ALLOC_REALLOCARRAY, /* (pointer, n, size) */
	ALLOC_NEW,          /* (size) */
	ALLOC_THROWS,       /* (size), and an exception may pass */
	ALLOC_KINDS
};

/* A function that may end with a jump to another has a higher rank. malloc's is 0. */
#define ALLOC_RANKED(kind, rank) ((kind) | (rank) << 4)
#define ALLOC_KIND(ranked) ((ranked)&15)
#define ALLOC_RANK(ranked) ((ranked) >> 4)

/* Of a probe at such a function: its cookie. */
#define ALLOC_COOKIE(ranked, bytes) ((__u64)(bytes) << 8 | (ranked))

#define ALLOC_DEPTH 4u /* nested calls that are known; a power of 2 */

/* A hit of an allocator's function. */
struct alloc_call {
	__u64 sp, returns; /* where the return address is, and what it is */
	__u64 lo, bytes;   /* of the function's code */
	__u64 value;
	__u32 tid, ranked;
};

/* Map sampler_probe_cpus, per CPU: what became of hits, and the hit that is walked. */
struct probe_cpu {
	__u64 counts[PROBE_RESULT_COUNT];
	__u64 weight;   /* how much of the value of all hits this one represents */
	__u64 value;    /* its own */
	__u64 function; /* the address of what has just returned; 0: it is no return */
	__u64 busy;     /* hits that are between their choice and the end of their walk */
	struct alloc_call calls[ALLOC_DEPTH]; /* the newest that is not nested, and those in it */
	__u64 depth;
	/* The newest `new`, if it would be a sample and has called no malloc() yet; tid 0: none. */
	struct alloc_call awaited;
	__u64 answer; /* of the program, when the walk has ended */
	__u64 hook;   /* whose hit is walked; 0: of none */
};
#endif
