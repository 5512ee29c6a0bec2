/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The records that the BPF sampler sends into the ring of its CPU. Each begins with a head that
 * says its kind and size. Shared by the BPF programs, which write them, and core/events, which
 * checks kind and size before it hands them over.
 */
#ifndef BPF_RECORDS_H
#define BPF_RECORDS_H

#include "frame.h"

#define RECORD_MAX_WORDS 4016u /* of frames in one record; a per-CPU value has at most 32 KiB */
/* Of a stack that has more, the inner frames are the first words. The outer frames are in a ring of
 * words behind them and a struct record_outer. */
#define RECORD_OUTER_WORDS 2048u /* a power of 2 */
#define RECORD_OUTER_AT (RECORD_MAX_WORDS - RECORD_OUTER_WORDS)
#define RECORD_INNER_WORDS (RECORD_OUTER_AT - 2)
#define RECORD_MAX_KERNEL 127u /* kernel frames: kernel.perf_event_max_stack */
#define RECORD_MAX_COPY 61440u /* bytes of a stack copy; a record of perf has less than 64 KiB */
#define RECORD_COPY_PAGES 17u  /* pages that a stack copy touches at most */
#define RECORD_PAGE 4096u

enum record_kind {
	RECORD_STACK = 1, /* struct record_stack: a stack that was unwound in the kernel */
	RECORD_COPY,      /* struct record_copy: registers and a stack copy for user space */
	RECORD_DEFERRED,  /* struct record_deferred: the event's own sample follows */
	RECORD_MISSED,    /* struct record_missed: a tick without a stack */
	RECORD_EMISSION,  /* struct record_emission: what a language unwinder emitted */
	RECORD_RETURNS,   /* struct record_returns: what uretprobes have replaced */
	/* struct record_stack: the callers from one in a language's code on */
	RECORD_CONTINUATION,
	RECORD_LABELS, /* struct record_labels: what a labeler says of the tick that follows */
};

enum record_flags {
	RECORD_CPU_EVENT = 1, /* a tick of the CPU's own event, which the programs count */
	RECORD_TOO_DEEP = 2,  /* the record has no room for the outer frames */
	/* the return address of the last frame is 0, as of the first frame of a coroutine */
	RECORD_RETURNS_TO_0 = 4,
	RECORD_NO_LANGUAGE = 8, /* a language's frames are missing: its unwinder has no program */
	RECORD_OUTER = 16,      /* the record has outer frames */
	/* the last two words of a continuation are the pc and sp of the caller to which it leads,
	 * which is not in it; without it it leads to the outermost frame */
	RECORD_PART = 32,
	/* chosen by a sampler's program: record_tick.words, and its period is in the sampler's unit
	 */
	RECORD_CHOSEN = 64,
	RECORD_HIT = 128, /* of a probe: record_tick.value, and its period is the hit's weight */
	RECORD_LABELED = 256, /* the last RECORD_LABELS of this CPU is of this tick */
	/* struct record_stack: of a kernel thread, which has kernel frames only */
	RECORD_KERNEL_ONLY = 512,
};

/* Of a hit whose memory is followed (inuse.h): its record_tick.period has its id and the period by
 * which it was chosen. All weights are less. */
#define RECORD_FOLLOWED(id, period) ((__u64)1 << 63 | (__u64)(id) << 32 | (period))

struct record_head {
	__u8 kind; /* enum record_kind */
	union {
		__u8 share;   /* of struct sampler_settings, when the tick was kept */
		__u8 sampler; /* RECORD_CHOSEN: its number */
		__u8 hook;    /* RECORD_HIT: the number of the hook; 0: of none */
	};
	__u16 flags; /* enum record_flags */
	__u32 size;  /* of the record in bytes, head included */
	__u32 pid, tid;
	__u64 process; /* struct process's id, whose mappings were used */
};

/* What all records of a tick begin with. */
struct record_tick {
	struct record_head head;
	union {
		__u64 period; /* ns of CPU time that the tick represents */
		/* Of a RECORD_CONTINUATION: its number among those of its tick, from 1 on; and the
		 * number of that behind whose end its begin was found, 0: none. It is of use if
		 * that is. */
		struct {
			__u32 number, after;
		} part;
	};
	union {
		/* ns of CPU time that the scheduler counted for the thread; may be ms old */
		__u64 runtime;
		__u32 words[2]; /* of a sampler's program, for its plugin */
		__u64 value;    /* of a hit */
	};
};

struct record_stack {
	struct record_tick tick;
	union {
		char comm[16];
		/* Of a RECORD_CONTINUATION: where its walk began, as a caller. It precedes a copy,
		 * and is of use if a walk over the copy comes to this pc and sp. */
		struct {
			__u64 pc, sp;
		} begin;
	};
	__u32 version; /* of the process's mappings that were used */
	__u32 nkernel; /* words of kernel frames */
	/* Kernel frames, then user frames, leaf first; only the words in use are sent. */
	__u64 words[RECORD_MAX_WORDS];
};

/*
 * At words[RECORD_INNER_WORDS] of a record with RECORD_OUTER. The words of the outer frames lie in
 * the ring from words[RECORD_OUTER_AT] on, the words of each in reverse order: so they are read
 * backwards from the last that was written, the outermost frame first. The frames between are
 * overwritten.
 */
struct record_outer {
	__u32 frames, words; /* that were written into the ring */
	__u32 inner;         /* words of the inner frames */
	__u32 pad;
};

struct record_copy {
	struct record_tick tick;
	struct walk_stop stop;
	__u32 nkernel;
	__u64 regs[17];     /* x86-64, by DWARF number */
	__u64 holes;        /* bit i: page i, counted from that of sp, is absent from `stack` */
	__u32 bytes, limit; /* bytes of `stack` in use; bytes that were requested */
	__u64 continued;    /* the time after which its continuations were sent; 0: none were */
	__u64 kernel[RECORD_MAX_KERNEL];           /* as bpf_get_stack() returns them */
	__u8 stack[RECORD_MAX_COPY + RECORD_PAGE]; /* present pages, one behind the other */
};

/* Precedes the event's own sample of the same tick, which tells neither of these. */
struct record_deferred {
	struct record_tick tick;
	struct walk_stop stop;
	__u32 pad;
};

struct record_missed {
	struct record_tick tick;
	char comm[16];
	__u32 why; /* enum tick_result: why the stack was not unwound in the kernel */
	__u32 pad;
};

/* Precedes a copy of the same tick, or the event's own sample, of a thread that met uretprobes. */
struct record_returns {
	struct record_tick tick;
	__u64 page; /* address of the process's uprobe page */
	__u32 n;    /* entries of `at` in use */
	__u32 pad;
	struct walk_return
		at[WALK_RETURNS]; /* of the newest call first; only those in use are sent */
};

/* Emissions precede the stack whose frames they are about. The bytes behind the struct hold, for
 * each emission, a struct emission_head and its bytes, padded to a multiple of 8. */
struct record_emission {
	struct record_head head;
	__u32 bytes; /* behind this struct */
	__u32 pad;
};

/* A label of texts. Its name and its value follow. */
struct record_text {
	__u8 key, value; /* bytes */
	__u8 truncated;  /* bits: 1: it is part of a longer name, 2: of a longer value */
	__u8 pad;
};

#define RECORD_TEXTS 8u        /* FUSEE_LABEL_TEXTS, and the next likewise */
#define RECORD_TEXT_KEY 64u    /* bytes */
#define RECORD_TEXT_VALUE 128u /* bytes */
#define RECORD_TEXT_MOST (sizeof(struct record_text) + RECORD_TEXT_KEY + RECORD_TEXT_VALUE)

/* Precedes whatever is sent of the same tick. */
struct record_labels {
	struct record_head head;
	__u64 trace_id[2], span_id; /* as of struct fusee_sample */
	__u32 bytes, n;             /* of `texts` in use; labels in it */
	/* struct record_text and its texts; only those in use are sent */
	__u8 texts[RECORD_TEXTS * RECORD_TEXT_MOST];
};

struct emission_head {
	__u64 key;
	__u32 kind;
	__u16 len;      /* bytes */
	__u16 unwinder; /* its number in the set of plugins */
};

/* What bpf/task_registers.bpf.c writes of a thread that is off its CPU. */
struct task_record {
	__u32 tid, is_32_bit;
	__u64 nvcsw, nivcsw; /* how often it was taken off its CPU: voluntarily, and not */
	__u64 tls;           /* base of fs */
	__u64 regs[17];      /* x86-64, by DWARF number */
	__s64 syscall;       /* its number; negative: it entered the kernel otherwise */
};

/* .. and of a thread's return addresses that uretprobes have replaced. */
struct task_returns {
	__u64 page; /* as of struct record_returns, as are the next */
	__u32 n, pad;
	struct walk_return at[WALK_RETURNS];
};

#define TASK_RETURNS_HEAD __builtin_offsetof(struct task_returns, at)
#define RECORD_STACK_HEAD __builtin_offsetof(struct record_stack, words)
#define RECORD_COPY_HEAD __builtin_offsetof(struct record_copy, stack)
#define RECORD_LABELS_HEAD __builtin_offsetof(struct record_labels, texts)
#define RECORD_RETURNS_HEAD __builtin_offsetof(struct record_returns, at)

/* The id of a hit whose memory is followed; 0: it is no such hit. */
static inline __u32 record_followed(const struct record_tick *t)
{
	return t->head.flags & RECORD_HIT && t->period >> 63 ? t->period >> 32 & 0x7fffffff : 0;
}

/* What the tick represents. */
static inline __u64 record_weight(const struct record_tick *t)
{
	__u64 period = t->period & 0xffffffff;

	if (!record_followed(t))
		return t->period;
	return t->value < period ? period : t->value;
}

/* The meanings of a byte of the head; 0: it has another. */
static inline __u8 bpf_record_share(const struct record_head *head)
{
	return head->flags & (RECORD_CHOSEN | RECORD_HIT) ? 0 : head->share;
}

static inline __u8 record_hook(const struct record_head *head)
{
	return head->flags & RECORD_HIT ? head->hook : 0;
}

static inline __u8 bpf_record_sampler(const struct record_head *head)
{
	return head->flags & RECORD_CHOSEN ? head->sampler : 0;
}

/* Words of frames in a record, kernel frames included. */
static inline __u32 record_words(const struct record_stack *r)
{
	return (__u32)((r->tick.head.size - RECORD_STACK_HEAD) / 8);
}

/* Both builds must agree on every byte. */
_Static_assert(sizeof(struct record_head) == 24, "record_head");
_Static_assert(__builtin_offsetof(struct record_head, process) == 16, "record_head");
_Static_assert(sizeof(struct record_tick) == 40, "record_tick");
_Static_assert(__builtin_offsetof(struct record_tick, period) == 24, "record_tick");
_Static_assert(__builtin_offsetof(struct record_stack, comm) == 40, "record_stack");
_Static_assert(__builtin_offsetof(struct record_stack, version) == 56, "record_stack");
_Static_assert(RECORD_STACK_HEAD == 64, "record_stack");
_Static_assert(sizeof(struct record_outer) == 8 * (RECORD_OUTER_AT - RECORD_INNER_WORDS),
	       "record_outer");
_Static_assert(sizeof(struct record_stack) == 64 + 8 * RECORD_MAX_WORDS, "record_stack");
_Static_assert(__builtin_offsetof(struct record_copy, regs) == 48, "record_copy");
_Static_assert(__builtin_offsetof(struct record_copy, holes) == 184, "record_copy");
_Static_assert(__builtin_offsetof(struct record_copy, continued) == 200, "record_copy");
_Static_assert(__builtin_offsetof(struct record_copy, kernel) == 208, "record_copy");
_Static_assert(RECORD_COPY_HEAD == 1224, "record_copy");
_Static_assert(sizeof(struct record_copy) == 1224 + RECORD_MAX_COPY + RECORD_PAGE, "record_copy");
_Static_assert(sizeof(struct record_deferred) == 48, "record_deferred");
_Static_assert(__builtin_offsetof(struct record_missed, why) == 56, "record_missed");
_Static_assert(sizeof(struct record_missed) == 64, "record_missed");
_Static_assert(RECORD_RETURNS_HEAD == 56, "record_returns");
_Static_assert(sizeof(struct record_returns) == 56 + 16 * WALK_RETURNS, "record_returns");
_Static_assert(__builtin_offsetof(struct record_emission, bytes) == 24, "record_emission");
_Static_assert(sizeof(struct emission_head) == 16, "emission_head");
_Static_assert(sizeof(struct record_emission) == 32, "record_emission");
_Static_assert(RECORD_LABELS_HEAD == 56, "record_labels");
_Static_assert(sizeof(struct record_labels) == 56 + 196 * 8, "record_labels");
#endif
