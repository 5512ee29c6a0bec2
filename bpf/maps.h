/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What lies in the BPF maps that the sampler's programs and user space (core/bpf) share. Times are
 * CLOCK_MONOTONIC nanoseconds.
 */
#ifndef BPF_MAPS_H
#define BPF_MAPS_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define CHUNK_MAPPINGS 24u         /* of a map chunk */
#define MAX_CHUNKS 44u             /* of a process: 1056 mappings */
#define SAMPLER_STEPS 8192u        /* of a walk; a deeper stack is walked if there is time for it */
#define SAMPLER_DEEP_STEPS 131072u /* of the deeper part */
#define SAMPLER_DEEP_SHARE 4u      /* that part may take one of so many ns of a CPU's time */
#define NO_PROGRAM 0xffffu         /* the unwinder that claims the range has no program */
#define SAMPLER_TABLES 2u          /* native unwinders that may have tables */
#define SAMPLER_LABELERS 4u        /* labelers with a step */
#define SAMPLER_LANGUAGES 32u      /* unwinders; those of languages have programs by their number */

/* A table. at: its place in the slabs (fusee_slabs), in words of 4 bytes; of a native unwinder's
 * table by page the place of its pages' entries: fusee/unwinder_kernel.h. */
struct slab_range {
	__u32 at, words;
	__u32 id;      /* of this content, never used for another; 0: numbers have run out */
	__u32 labeler; /* whose step reads it, of SAMPLER_LABELERS; of other ranges 0 */
};

/* An executable mapping, or a part of it, whose code can be stepped in the kernel: [lo, hi). */
struct chunk_mapping {
	__u64 lo, hi;
	__u64 bias;  /* pc - bias: ELF virtual address */
	__u64 shift; /* pc - shift: file offset */
	struct slab_range table[SAMPLER_TABLES];
	struct slab_range language; /* table of the language unwinder that claims the range */
	struct slab_range words;    /* that it has set for the process */
	__u32 file;                 /* struct file's number; 0: memory without a file */
	__u16 unwinder;  /* 1 + the language unwinder that claims it; 0: none; or NO_PROGRAM */
	__u16 registers; /* 1: the claim has FUSEE_CLAIM_REGISTERS */
	__u64 arg;       /* of the claim */
	__u64 made;      /* memory without a file: number of its table; 0: none */
	/* When memory was last given out in this range, so that other code may be here; 0: never.
	 * Nothing is unwound over the mapping while that is later than the list's as_of. */
	__u64 changed;
};

#define CLAIMED_RANGES 2u

/* Code of files that language unwinders claim, and some code between. */
struct claimed_range {
	__u64 lo, bytes;
};

#define UNMARKED_RANGES 8u

/* Where memory was given out while a list had this version, in which no mapping could be marked.
 * The last range also covers those for which there was no place. */
struct unmarked_ranges {
	__u32 version;
	__u32 n;
	struct unmarked_range {
		__u64 lo, hi;
	} at[UNMARKED_RANGES];
};

/*
 * Map sampler_chunks: the mappings of a process in order of address, as a list of chunks. Chunk 0
 * belongs to no process; its `changed` is the newest of all.
 *
 * User space rewrites a list in place. The `version` of the first chunk is odd meanwhile and
 * another even number afterwards, so that a walk that read parts of both is discarded.
 */
struct map_chunk {
	__u32 version; /* of the list; in the first chunk, as are program, follow, process, times */
	__u32 n;
	__u32 next;    /* chunk with the next higher mappings; 0: none */
	__u16 program; /* 1 + a language unwinder, whose program begins walks; 0: sampler_tick */
	__u16 follow;  /* 1: walks follow callee-saved registers */
	__u64 process; /* struct process's id; 0: none */
	__u64 as_of;   /* user space knows what was mapped until then */
	__u64 changed; /* when memory was last given out in one of the mappings */
	__u64 blurred; /* .. while none could be marked: it counts for all of them */
	struct slab_range label; /* words that a labeler has set for the process; 0 words: none */
	struct unmarked_ranges unmarked;              /* .. and where that was */
	struct claimed_range claimed[CLAIMED_RANGES]; /* that have programs */
	struct chunk_mapping mappings[CHUNK_MAPPINGS];
};

/* Map sampler_pids, by pid. fork copies the parent's entry, exec and exit delete it. */
struct pid_entry {
	__u64 process;   /* of the chunk: another id means that the chunk was given away */
	__u32 chunk;     /* the first of the list */
	__u32 inherited; /* 1: the list is the parent's */
};

/* Map sampler_rates, by pid. fork copies the parent's entry; exec deletes it if the period is
 * PERIOD_NONE, and makes PERIOD_ON_EXEC PERIOD_ANY. */
struct process_rate {
	__u64 period; /* ns: only ticks of events with this period are samples; or PERIOD_* */
	__u64 weight; /* ns that a sample represents, where only a part of the ticks is kept */
	__u64 since;  /* CLOCK_MONOTONIC ns: when the process was selected; 0: before it waited */
	__u32 keep;   /* share of the ticks that is kept, chosen at random, of 2^32; 0: all */
	__u32 pad;
};

#define PERIOD_ANY 0ull
#define PERIOD_NONE (~0ull)
#define PERIOD_ON_EXEC (~0ull - 1)

/* Map sampler_threads: threads that have events of their own, which tick at each of their periods.
 * Of such a thread only those ticks are samples, of all others only ticks of the CPUs' own events.
 * Its exec or exit removes a thread. */
#define MAX_OWN_THREADS 64u

#define REQUIRED_PAGES 32u

/* Map sampler_settings: its only element, which user space writes in place. */
struct sampler_settings {
	__u64 cpu_period;     /* ns: of the CPUs' own events; 0: there are none */
	__u64 default_period; /* of processes without a process_rate; ns or PERIOD_* */
	__u64 quiet_until;    /* user space is not woken before that time */
	__u32 stretch;        /* raised when the CPUs' own events begin anew */
	__u32 copy_bytes;     /* of a stack copy; 0: the events copy the stacks */
	__u32 round;          /* raised each time that user space has read the rings */
	__u32 copy_limit;     /* KiB of stack copies that a CPU may send in a round */
	/* Written by the programs: stacks that were not unwound because the kernel did not know
	 * enough of their process; and children of selected processes for which sampler_rates had
	 * no room. CPUs race, so the numbers are approximate. */
	__u32 unknown_ticks;
	__u32 unfollowed;
	__u32 own_threads; /* 1: sampler_threads has entries */
	__u32 groups;      /* 1: sampler_groups has entries */
	__u32 joined;      /* raised when a program adds a process to sampler_rates */
	__u32 own;         /* pid of the recorder: it and its children join no group */
	/* Of 256 ticks that are samples by the rate of their process, those that are kept, chosen
	 * at random; 0: all. Each then represents so much more. */
	__u32 share;
	__u32 timed;        /* 1: the programs measure the time that they take */
	__u32 more_periods; /* 1: sampler_cpu_periods has entries */
	/* Written by the programs: pages of tables at which walks ended because they were not
	 * loaded: the places of their entries. The newest is required_pages[(nrequired - 1) %
	 * REQUIRED_PAGES]. Approximate too. */
	__u32 nrequired;
	__u32 required_pages[REQUIRED_PAGES];
	__u64 wait_began;   /* of waits.bpf.o: when its period was set; before that, none counts */
	__u32 unheld;       /* written by the programs, 1: a map had no room for a thread */
	__u32 probe_period; /* of probes.bpf.o, in units of a hit's value; 0: no hit is a sample */
};

/* What became of a wait: X(name, text). Texts are keys of --stats. */
#define WAIT_RESULTS(X)                                                                           \
	X(WAIT_ENDED, "seen") /* all events of selected threads, samples or not */                \
	X(WAIT_ENDED_NS, "seen_value")                                                            \
	X(WAIT_CHOSEN, "chosen") /* by their length: a sample is due */                           \
	X(WAIT_LATE, "late")     /* of these: the thread went on before its stack was read */     \
	X(WAIT_NO_ROOM, "no room for a wake") /* likewise: there were too many at once */         \
	X(WAIT_UNREAD, "unread_value")        /* what the samples of these two would represent */ \
	X(WAIT_UNFOLLOWED, "unfollowed")      /* threads that wait, for which a map had no room */

#define MAX_SAMPLERS 8u        /* of plugins, at once */
#define WAIT_SLOTS 4096u       /* of threads, by the low bits of their ids */
#define WAIT_THREADS 16384u    /* whose waits are followed without a slot or storage */
#define WAIT_RING_BYTES 16384u /* 2,048 samples of a CPU between two readings */
#define WAIT_NAME(name, text) name,

enum wait_result { WAIT_RESULTS(WAIT_NAME) WAIT_RESULT_COUNT };

/* Map sampler_wait_cpus, per CPU, by the number of the sampler: what became of waits, and the wait
 * whose stack is read when the interrupt comes. */
struct wait_cpu {
	__u64 counts[WAIT_RESULT_COUNT];
	__u64 weight;   /* in the sampler's unit */
	__u64 random;   /* the next random number comes of it; 0: it has none yet */
	__u32 words[2]; /* of the sampler's program */
	__u32 tid;      /* 0: none, or its interrupt came */
	__u32 now;      /* of sampler 0: the sampler whose sample is taken */
};

/* Map sampler_cpu_periods: by the period in ns of the CPUs' events, but those of cpu_period: the
 * index of their sampler_cpu_ticks, which is not 0. */
#define MAX_CPU_EVENTS 32u

/* Map sampler_groups: ids of control groups (v2). Whichever process without a process_rate ticks in
 * them, or in a group below, has all its ticks taken from then on. */
#define MAX_GROUPS 64u
#define GROUP_LEVELS 32 /* of the hierarchy are looked at */

/*
 * Map sampler_cpu_ticks, per CPU: the ticks of one of the CPU's own events; index 0: of the event
 * whose period is cpu_period. They have a fixed distance, in idle time too, so their times say
 * which of them did not come. Idle time is no loss: some CPUs do not run the program in it. A long
 * gap, for example because the CPU was offline, begins a new stretch.
 */
struct cpu_ticks {
	__u64 first, last; /* times in this stretch; 0: none yet */
	__u64 period;      /* ns */
	__u64 stretch;     /* of struct sampler_settings */
	__u64 idle_mark;   /* changes when the CPU becomes idle */
	__u64 is_idle;     /* the CPU was idle at `last` */
	/* Ticks that did not come, without those of idle time: all; and those before a tick that
	 * was a sample, which are its process's. A tick that came too early counts as -1. */
	__s64 missed, missed_of_selected;
	__s64 newest; /* before the newest tick, of the thread that it interrupted */
	__u64 spent;  /* index 0: ns that the programs took for ticks, while `timed` was set */
};

/* A gap longer than GAP_NS + 2 periods, which the running thread's scheduler runtime does not
 * cover, begins a new stretch. The scheduler's count may be RUNTIME_AGE_NS old. */
#define GAP_NS 20000000ull
#define RUNTIME_AGE_NS 10000000ull

/* What became of a tick: X(name, text). Texts are labels of metrics and keys of --stats. */
#define TICK_RESULTS(X)                                                                         \
	X(TICK_UNWOUND, "unwound")                                                              \
	X(TICK_UNKNOWN_PROCESS, "unknown process")                                              \
	X(TICK_UNKNOWN_CODE, "unknown code") /* no published mapping holds the address */       \
	X(TICK_NO_REGISTERS, "no registers")                                                    \
	X(TICK_STOPPED, "stopped") /* a step stopped for a reason, or needs the worker */       \
	X(TICK_TABLE_ABSENT, "table page not loaded")                                           \
	X(TICK_CHANGED, "changed") /* mappings were rewritten meanwhile, or are out of date */  \
	X(TICK_NOT_SELECTED, "not selected")                                                    \
	X(TICK_RING_FULL, "ring full") /* counted in addition to the result before */           \
	X(TICK_CONTINUED, "continued") /* likewise: a continuation was sent */                  \
	X(TICK_IDLE, "idle")           /* no thread ran; only the CPUs' own events tick then */ \
	/* counted in addition: labels of a labeler were sent; or why not */                    \
	X(TICK_LABELED, "labeled")                                                              \
	X(TICK_LABEL_UNREADABLE, "label unreadable")                                            \
	X(TICK_LABEL_INCOMPLETE, "label incomplete") /* the thread was writing it */            \
	X(TICK_LABEL_LOST, "label lost")             /* the ring was full */                    \
	/* it was sent, but there were more, or longer texts */                                 \
	X(TICK_LABEL_TRUNCATED, "label truncated")

#define TICK_NAME(name, text) name,

/* Index of map sampler_counts: one u64 for each, per CPU. */
enum tick_result { TICK_RESULTS(TICK_NAME) TICK_RESULT_COUNT };

_Static_assert(sizeof(struct slab_range) == 16, "slab_range");
_Static_assert(sizeof(struct chunk_mapping) == 128, "chunk_mapping");
_Static_assert(__builtin_offsetof(struct map_chunk, mappings) == 232, "map_chunk");
_Static_assert(sizeof(struct pid_entry) == 16, "pid_entry");
_Static_assert(sizeof(struct process_rate) == 32, "process_rate");
_Static_assert(sizeof(struct sampler_settings) == 224, "sampler_settings");
_Static_assert(sizeof(struct cpu_ticks) == 80, "cpu_ticks");
#endif
