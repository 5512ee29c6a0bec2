/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Calls the step of the language unwinder that a program is linked with, and sends what it emitted.
 */
#ifndef BPF_LANGUAGE_H
#define BPF_LANGUAGE_H

#include <fusee/unwinder.bpf.h>

#include "chunks.h"
#include "kernel.h"
#include "sample.h"
#include "stack.h"

/* The weak default claims no frame; the language unwinder of this program overrides it. */
__attribute__((weak, noinline)) int fusee_language_step(__u32 slot)
{
	__asm__ volatile("" : "+r"(slot));
	return FUSEE_PASS;
}

#define MAX_IDLE 64u /* calls of a step in a row that push nothing */

/* ---- emissions ---- */

#define EMITS 64u        /* of one sample, at most */
#define EMIT_ROOM 16384u /* bytes of all emissions of one sample, at most */
#define EMIT_HEAD 64u    /* bytes for the record's head before them */

_Static_assert(sizeof(struct record_emission) <= EMIT_HEAD, "the head has room");

struct sent_key {
	__u64 process, key; /* core/programs/sent_keys.c reads the first word */
	__u32 kind, slot;
};

/* The keys that were sent or are sent with this sample. The core sizes the map; what finds no room
 * is sent again. */
struct {
	__uint(type, 9 /* LRU_HASH */);
	__uint(max_entries, 4096);
	__type(key, struct sent_key);
	__type(value, __u32);
} sampler_sent SEC(".maps");

/*
 * By a part of the key: keys that sampler_sent held when this CPU last looked, since a look-up
 * there takes longer than the rest of what a frame costs the core; and what steps remember. Of
 * those `kind` is the pid, because a forked process keeps the number of its parent for a time.
 */
#define NEAR_KEYS 256u
#define NEAR_REMEMBERED (1u << 31) /* in `slot` */

struct near_key {
	struct sent_key key;
	__u64 value;     /* that is remembered */
	__u32 withdrawn; /* sampler_withdrawn at that time */
	__u32 pad;
};

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, NEAR_KEYS);
	__type(key, __u32);
	__type(value, struct near_key);
} sampler_near_keys SEC(".maps");

/* A number that is raised when keys are taken out of sampler_sent: they were not sent, or
 * core/programs/sent_keys.c has them sent anew. */
struct {
	__uint(type, 2 /* ARRAY */);
	__uint(map_flags, 1024 /* MMAPABLE */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} sampler_withdrawn SEC(".maps");

FUSEE_FN __u32 *withdrawn(void)
{
	__u32 zero = 0;

	return fusee_bpf_map_lookup_elem(&sampler_withdrawn, &zero);
}

/* The emissions of this sample. */
struct emissions {
	__u32 n, at; /* at: bytes used */
	struct sent_key key[EMITS];
	__u8 head[EMIT_HEAD];
	__u8 byte[EMIT_ROOM + sizeof(struct emission_head) + FUSEE_EMIT_BYTES];
};

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct emissions);
} sampler_emissions SEC(".maps");

FUSEE_FN struct emissions *emissions(void)
{
	__u32 zero = 0;

	return fusee_bpf_map_lookup_elem(&sampler_emissions, &zero);
}

/* Its place for this key. */
FUSEE_FN struct near_key *near_place(__u64 key)
{
	__u32 i = key * 0x9e3779b97f4a7c15ull >> 56; /* of NEAR_KEYS */

	return fusee_bpf_map_lookup_elem(&sampler_near_keys, &i);
}

FUSEE_FN int is_near(const struct near_key *n, const struct sent_key *k, __u32 now)
{
	return n->key.key == k->key && n->key.process == k->process && n->key.kind == k->kind &&
	       n->key.slot == k->slot && n->withdrawn == now;
}

/* For the steps: fusee_emitted(). */
__attribute__((noinline)) int fusee_core_emitted(__u32 kind, __u64 key)
{
	struct sent_key k = {.key = key, .kind = kind};
	struct near_key *near = near_place(key);
	__u32 now, *times = withdrawn();
	struct scratch *s = scratch();

	if (!s || !times || !near)
		return 0;
	k.process = s->record.tick.head.process;
	k.slot = s->slot;
	now = READ_ONCE(*times);
	if (is_near(near, &k, now))
		return 1;
	if (!fusee_bpf_map_lookup_elem(&sampler_sent, &k))
		return 0;
	near->key = k;
	near->withdrawn = now;
	return 1;
}

/* For the steps: fusee_recall(). */
__attribute__((noinline)) __u64 fusee_core_recall(__u64 key)
{
	struct near_key *near = near_place(key);
	__u32 *times = withdrawn();
	struct scratch *s = scratch();
	struct sent_key k = {.key = key};

	if (!s || !times || !near)
		return 0;
	k.process = s->record.tick.head.process;
	k.kind = s->record.tick.head.pid;
	k.slot = s->slot | NEAR_REMEMBERED;
	return is_near(near, &k, READ_ONCE(*times)) ? near->value : 0;
}

/* For the steps: fusee_remember(). */
__attribute__((noinline)) int fusee_core_remember(__u64 key, __u64 value)
{
	struct near_key *near = near_place(key);
	__u32 *times = withdrawn();
	struct scratch *s = scratch();

	if (!s || !times || !near)
		return -1;
	near->key.key = key;
	near->key.process = s->record.tick.head.process;
	near->key.kind = s->record.tick.head.pid;
	near->key.slot = s->slot | NEAR_REMEMBERED;
	near->value = value;
	near->withdrawn = READ_ONCE(*times);
	return 0;
}

/* For the steps: fusee_emit(). */
__attribute__((noinline)) int fusee_core_emit(__u32 kind, __u64 key, __u32 len)
{
	const __u32 most = EMIT_ROOM - sizeof(struct emission_head) - FUSEE_EMIT_BYTES;
	void *buffer = fusee_buffer(0);
	struct emissions *e = emissions();
	struct scratch *s = scratch();
	struct sent_key k = {.key = key, .kind = kind};
	struct emission_head *head;
	__u32 at, present = 1;

	if (!e || !s || !buffer || e->n >= EMITS || len > FUSEE_EMIT_BYTES)
		return -1;
	k.process = s->record.tick.head.process;
	k.slot = s->slot;
	at = e->at;
	if (at > most || bpf_map_update_elem(&sampler_sent, &k, &present, 0))
		return -1;
	__asm__ volatile("" : "+r"(at), "+r"(len));
	at &= EMIT_ROOM - 1; /* true already; Linux 5.10 forgets bounds of spilled values */
	len &= 2 * FUSEE_EMIT_BYTES - 1;
	if (len > FUSEE_EMIT_BYTES)
		return -1;
	head = (void *)&e->byte[at];
	head->key = key;
	head->kind = kind;
	head->len = len;
	head->unwinder = s->slot;
	if (bpf_probe_read_kernel(&e->byte[at + sizeof(*head)], len, buffer))
		return -1;
	e->key[e->n & (EMITS - 1)] = k;
	e->n++;
	e->at = at + sizeof(*head) + ((len + 7) & ~7u);
	return 0;
}

/* ---- steps ---- */

/* A place of the stack from which continue.h searches, and what the languages' steps know there. */
struct search_place {
	__u64 at;
	__u32 i, after;    /* of struct search, as is `at` */
	__u32 slot, begun; /* of struct scratch */
	__u64 words[8];    /* u->scratch */
};

/* What is as it was before a continuation. */
struct kept {
	__u64 period;   /* of the tick, as is the next */
	__u32 flags;    /* enum record_flags */
	__u32 others;   /* 1: the search goes on from `other` when it ends */
	__u32 tries;    /* walks from callers */
	__u32 complete; /* such walks that reached the outermost frame */
	__u32 result;   /* of the tick's first walk, enum tick_result */
	__u32 pad;
	struct search_place now, other;
};

/* What each language's step keeps in u->scratch. */
struct language_scratch {
	__u64 words[SAMPLER_LANGUAGES][8];
	struct kept kept;
};

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct language_scratch);
} sampler_language_scratch SEC(".maps");

FUSEE_FN struct kept *kept(void)
{
	__u32 zero = 0;
	struct language_scratch *l = fusee_bpf_map_lookup_elem(&sampler_language_scratch, &zero);

	return l ? &l->kept : 0;
}

/* From now on steps have the notes of this process and language. What says that a key was emitted
 * is forgotten where keys were taken back since. */
FUSEE_FN void language_notes(struct fusee_unwind *u, const struct scratch *s)
{
	__u32 *times = withdrawn();
	__u64 of = (__u64)u->pid << 32 | s->slot;

	of = fusee_mix(fusee_mix(of, u->process), times ? READ_ONCE(*times) : 0);
	fusee_walk(u)->notes_of = times && of ? of : 0;
}

/* From now on the walk calls the step of this language, with what that has kept. */
FUSEE_FN int language_switch(struct fusee_unwind *u, struct scratch *s, __u32 to)
{
	__u32 zero = 0, from = s->slot;
	struct language_scratch *l = fusee_bpf_map_lookup_elem(&sampler_language_scratch, &zero);

	if (!l || from >= SAMPLER_LANGUAGES || to >= SAMPLER_LANGUAGES)
		return -1;
	for (__u32 i = 0; i < 8; i++) {
		l->words[from][i] = u->scratch[i];
		u->scratch[i] = s->begun & 1u << to ? l->words[to][i] : 0;
	}
	s->begun |= 1u << to;
	s->slot = to;
	language_notes(u, s);
	return 0;
}

/* Prepares a walk. */
FUSEE_FN void language_begin(struct fusee_unwind *u, struct scratch *s)
{
	struct emissions *e = emissions();

	for (__u32 i = 0; i < 8; i++)
		u->scratch[i] = 0;
	u->process = s->record.tick.head.process;
	u->pid = s->record.tick.head.pid;
	u->tid = s->record.tick.head.tid;
	s->begun = 1u << (s->slot & 31);
	u->time_ns = bpf_ktime_get_ns();
	u->value = s->record.tick.period;
	u->npushed = 0;
	u->stored = 0;
	language_notes(u, s);
	if (e)
		e->n = e->at = 0;
}

/* Ends the walk for a reason of the step, or for an enum walk_fault. */
FUSEE_FN int language_stop(struct fusee_unwind *u, struct scratch *s, __u32 reason)
{
	s->stop.unwinder = s->slot + 1;
	s->stop.reason = reason;
	u->error = 0;
	return STEP_STOPPED;
}

/* Prepares a call of the step at a pc that its unwinder claims. */
FUSEE_FN void language_prepare(struct fusee_unwind *u, struct scratch *s,
			       const struct chunk_mapping *m)
{
	u->error = 0;
	u->caller_regs = 0;
	u->claim_lo = m->lo;
	u->claim_arg = m->arg;
	set_table(u, &m->language);
	u->words_at = m->words.at;
	u->words = m->words.words;
	s->claimed.sp = u->sp;
}

/* u has what the step knows of its caller. */
FUSEE_FN void language_called_by(struct fusee_unwind *u, struct scratch *s)
{
	s->idle = s->has_cfa = 0;
	s->next.guessed = u->flags & FUSEE_GUESSED;
	u->valid_regs = u->caller_regs;
	u->flags &= ~(__u32)(FUSEE_PC_EXACT | FUSEE_FIRST | FUSEE_GUESSED);
}

/* What the step answered. STEP_NATIVE: the native unwinders are next. */
FUSEE_FN int language_turn(struct fusee_unwind *u, struct scratch *s, const struct chunk_mapping *m,
			   __u64 at, int next)
{
	int r;

	switch (next) {
	case FUSEE_NEXT:
	case FUSEE_NEXT_OMIT:
		if (u->sp <= s->claimed.sp)
			return language_stop(u, s, WALK_FAULT_BACKWARDS);
		s->claimed.pushed |= next == FUSEE_NEXT_OMIT;
		r = append_unpushed(s, m, at);
		if (r)
			return r;
		language_called_by(u, s);
		return STEP_AGAIN;
	case FUSEE_STOP:
		if (u->error)
			return language_stop(u, s, u->error);
		r = append_unpushed(s, m, at);
		return r ? r : STEP_COMPLETE;
	case FUSEE_NATIVE_TOO:
		s->claimed.pushed = 0;
		return STEP_NATIVE;
	default:
		return STEP_NATIVE;
	}
}

/* Forgets that the sample's emissions were sent: they, or the stack that they are about, were not,
 * so the next sample emits them again. */
__attribute__((noinline)) int sampler_unsent(__u32 unused)
{
	struct emissions *e = emissions();
	__u32 *times = withdrawn();

	__asm__ volatile("" : "+r"(unused));
	if (!e || !times || !e->n)
		return 0;
	for (__u32 i = 0; i < EMITS; i++) {
		if (i >= e->n)
			break;
		bpf_map_delete_elem(&sampler_sent, &e->key[i]);
	}
	/* After it: no CPU believes what it found in sampler_sent before. */
	__sync_fetch_and_add(times, 1);
	e->n = 0;
	return 0;
}

/* Sends the sample's emissions; the stack is to follow. 0; -1: no room in the ring. */
FUSEE_FN int send_emissions(struct sampler_context *c, const struct record_head *tick)
{
	struct emissions *e = emissions();
	struct record_emission *r;
	__u32 len;

	if (!e || !e->n)
		return 0;
	len = e->at;
	if (len > EMIT_ROOM)
		return -1;
	r = (void *)&e->head[EMIT_HEAD - sizeof(*r)]; /* directly before the bytes */
	r->head = *tick;
	r->head.kind = RECORD_EMISSION;
	r->head.size = sizeof(*r) + len;
	r->bytes = len;
	r->pad = 0;
	if (bpf_perf_event_output(c, &sampler_output, BPF_F_CURRENT_CPU, r, sizeof(*r) + len))
		return -1;
	e->n = 0; /* the next tick may end before its walk begins: these are not unsent then */
	return 0;
}
#endif
