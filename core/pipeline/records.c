/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the BPF sampler: stacks that were unwound in the kernel, ticks without a stack, and
 * emissions of language unwinders. */
#include <linux/perf_event.h>
#include <string.h>

#include "../../bpf/records.h"
#include "pipeline/state.h"

static struct sample sample_of(struct pipeline *p, const struct record_tick *t, uint64_t time,
			       uint32_t cpu)
{
	return (struct sample){.ids = preceding_take_ids(&p->preceding),
			       .pid = (pid_t)t->head.pid,
			       .tid = (pid_t)t->head.tid,
			       .cpu = cpu,
			       .time = time,
			       .period = record_weight(t),
			       .hit.followed = record_followed(t),
			       .hit.hook = record_hook(&t->head),
			       .share = bpf_record_share(&t->head),
			       .chosen.is = t->head.flags & RECORD_CHOSEN,
			       .chosen.sampler = bpf_record_sampler(&t->head),
			       .chosen.words = {t->words[0], t->words[1]},
			       .hit.value = t->head.flags & RECORD_HIT ? t->value : 0,
			       .abi = 2};
}

static void add(struct pipeline *p, struct process *proc, const struct sample *s,
		const struct pipeline_route *route, const char record_comm[16],
		struct process *over)
{
	char comm[16] = "";

	memcpy(comm, record_comm, sizeof(comm) - 1);
	if (over)
		pipeline_deliver(p, proc, s, route, comm, over);
	else
		pipeline_add(p, proc, s, route, comm);
}

/* ---- frames ---- */

/* Whether the stack was unwound over the mappings of this process or of an ancestor. */
static bool is_of(const struct process *proc, uint64_t id)
{
	return proc->id == id || proc->ancestors[0] == id || proc->ancestors[1] == id;
}

/* The process over whose mappings a stack of proc was unwound. NULL: it was freed. */
static struct process *unwound_over(struct pipeline *p, struct process *proc, uint64_t id)
{
	return proc->id == id ? proc : process_by_id(p->processes, id);
}

/* Reads a frame in memory without a file. false: no such memory was mapped at that time, or the
 * kernel had other claims. */
static bool read_anonymous(struct pipeline *p, struct process *proc, uint64_t time, uint64_t word,
			   uint64_t over, struct walk_frame *f)
{
	uint64_t addr = word & FRAME_ANONYMOUS_MAX;
	struct process_mapping *m = process_mapping_at(proc, addr, time);
	const struct claim *claim;

	*f = (struct walk_frame){.kind = FRAME_ANONYMOUS,
				 .guessed = !!(word & FRAME_GUESSED),
				 .addr = addr,
				 .process = proc->id,
				 .extra[1] = !!(word & FRAME_EXACT)};
	if (m && m->moved) { /* it was compared since */
		*f = (struct walk_frame){.kind = FRAME_FILE,
					 .guessed = f->guessed,
					 .file = m->file->id,
					 .addr = addr - m->lo + m->offset};
		return true;
	}
	if (!m || m->file)
		return false;
	claim = claims_at(p->claims, proc, m, addr, time, &f->generation);
	/* A child that runs its parent's code may have other claims. */
	if ((claim && claim->flags & FUSEE_CLAIM_STEP) == !!(word & FRAME_CLAIMED) ||
	    over != proc->id)
		return true;
	kernel_view_mark_dirty(&p->views, proc);
	return false;
}

static bool is_file_frame(uint64_t word)
{
	return word >> FRAME_KIND_SHIFT == FRAME_FILE;
}

/* Reads a frame of a file, as most are. false: the number was not that file's then. */
static inline bool read_file_frame(struct pipeline *p, uint64_t time, uint64_t word)
{
	struct walk *to = &p->walk;
	struct walk_frame *f = &to->frames[to->n];
	uint32_t file = (uint32_t)((word & FRAME_MAX_ADDRESS) >> FRAME_FILE_SHIFT);

	if (!files_is_of_time(p->files, file, time))
		return false;
	/* in place: the copy of a struct would take longer than the rest */
	memset(f, 0, sizeof(*f));
	f->kind = FRAME_FILE;
	f->file = file;
	f->guessed = !!(word & FRAME_GUESSED);
	f->addr = word & FRAME_MAX_OFFSET;
	to->n++;
	to->guessed += f->guessed;
	return true;
}

/* Words of frames, each frame with its first word first. */
struct words {
	const __u64 *at;
	uint32_t n;
};

/* The words of the pushed frame that begins at word i. 0: it exceeds the words, or there is no such
 * unwinder. */
static uint32_t pushed_words(const struct pipeline *p, struct words w, uint32_t i)
{
	uint32_t n;

	if (i >= w.n || w.at[i] >> FRAME_KIND_SHIFT != FRAME_PUSHED || w.at[i] & FRAME_AGAIN ||
	    (w.at[i] & FRAME_UNWINDER) >= p->walker.unwinders->n)
		return 0;
	n = w.at[i] & FRAME_FOUR_WORDS ? FRAME_MOST_WORDS : FRAME_PUSHED_WORDS;
	return w.n - i < n ? 0 : n;
}

static struct walk_frame pushed_frame(struct pipeline *p, struct process *proc,
				      const struct record_stack *r, uint64_t time,
				      const __u64 *words)
{
	uint64_t first = words[0];
	uint32_t unwinder = (uint32_t)(first & FRAME_UNWINDER);
	bool four = first & FRAME_FOUR_WORDS;
	struct process *over = unwound_over(p, proc, r->tick.head.process);

	if (over)
		claims_expect_pushed(p->claims, over, unwinder, time);
	return (struct walk_frame){.kind = FRAME_PUSHED,
				   .addr = words[1],
				   .extra = {words[2], four ? words[3] : 0, four ? words[4] : 0},
				   .process = r->tick.head.process,
				   .generation = unwinder,
				   .flags = (uint32_t)(first >> FRAME_FLAGS_SHIFT & 0xff)};
}

/* Kernel frames that come from a callchain begin with a marker of perf. */
static void read_kernel_frames(const struct record_stack *r, struct walk *out)
{
	uint32_t first = r->nkernel && r->words[0] >= (uint64_t)PERF_CONTEXT_MAX;

	for (uint32_t i = first; i < r->nkernel; i++)
		out->frames[out->n++] = (struct walk_frame){
			.kind = FRAME_KERNEL, .addr = i > first ? r->words[i] - 1 : r->words[i]};
}

/* A record whose frames are read. */
struct reading {
	struct process *process;
	const struct record_stack *record;
	uint64_t time;
	struct words inner; /* kernel frames included */
};

/* Reads the frame of another kind that begins at word i. Returns its words; 0: there is no complete
 * frame. */
static uint32_t read_other_frame(struct pipeline *p, const struct reading *r, struct words w,
				 uint32_t i)
{
	struct walk_frame *f = &p->walk.frames[p->walk.n];
	uint64_t word = w.at[i];
	bool again = word & FRAME_AGAIN;
	uint32_t n = 1;

	switch ((enum frame_kind)(word >> FRAME_KIND_SHIFT)) {
	case FRAME_ANONYMOUS:
		if (!read_anonymous(p, r->process, r->time, word, r->record->tick.head.process, f))
			p->walk.reason = loss_text(LOSS_CODE_CHANGED);
		break;
	case FRAME_PUSHED:
		i = again ? (uint32_t)(word & (FRAME_AGAIN - 1)) : i;
		n = pushed_words(p, again ? r->inner : w, i);
		if (!n)
			return 0;
		*f = pushed_frame(p, r->process, r->record, r->time, (again ? r->inner : w).at + i);
		n = again ? 1 : n;
		break;
	default:
		return 0;
	}
	p->walk.n++;
	p->walk.guessed += f->guessed;
	return n;
}

/* Reads frames from word i on. Returns the index of the first word at which no complete frame
 * begins. */
static uint32_t read_user_frames(struct pipeline *p, const struct reading *r, struct words w,
				 uint32_t i)
{
	uint32_t n = 1;

	for (; n && i < w.n && p->walk.n < WALK_MAX_FRAMES; i += n)
		n = is_file_frame(w.at[i]) ? read_file_frame(p, r->time, w.at[i])
					   : read_other_frame(p, r, w, i);
	return i;
}

/* Copies the words of outer frames out of the ring, the last first, where each frame begins with
 * its first word. Returns how many. */
static uint32_t turn_ring(const struct record_stack *r, uint32_t written,
			  __u64 to[RECORD_OUTER_WORDS])
{
	uint32_t n = written < RECORD_OUTER_WORDS ? written : RECORD_OUTER_WORDS;

	for (uint32_t i = 0; i < n; i++)
		to[i] = r->words[RECORD_OUTER_AT + (written - 1 - i) % RECORD_OUTER_WORDS];
	return n;
}

/* Whether the words from i on are the remainder of a partly overwritten frame. */
static bool is_remnant(struct words w, uint32_t i)
{
	return i < w.n && w.n - i < FRAME_MOST_WORDS && w.at[i] >> FRAME_KIND_SHIFT == FRAME_PUSHED;
}

/* Reads the outer frames. false: the record is wrong. */
static bool read_outer_frames(struct pipeline *p, const struct reading *r,
			      const struct record_outer *o)
{
	__u64 turned[RECORD_OUTER_WORDS];
	struct words w = {turned, turn_ring(r->record, o->words, turned)};
	uint32_t first = p->walk.n, end = read_user_frames(p, r, w, 0), n = p->walk.n - first;
	bool overwritten = o->words > RECORD_OUTER_WORDS;

	if ((end < w.n && !(overwritten && is_remnant(w, end))) || n > o->frames ||
	    (n < o->frames && !overwritten))
		return false;
	if (n < o->frames)
		p->walk.frames[p->walk.n++] = walk_omitted(o->frames - n);
	walk_reverse(p->walk.frames + first, p->walk.n - first);
	return true;
}

/* Finds the outer frames of a record. false: the record is wrong. */
static bool read_outer(const struct record_stack *r, struct record_outer *o)
{
	uint32_t n = record_words(r), in_ring = n - RECORD_OUTER_AT;

	if (n < RECORD_OUTER_AT)
		return false;
	memcpy(o, &r->words[RECORD_INNER_WORDS], sizeof(*o));
	return o->inner <= RECORD_INNER_WORDS && o->inner >= r->nkernel &&
	       in_ring == (o->words < RECORD_OUTER_WORDS ? o->words : RECORD_OUTER_WORDS);
}

static bool read_frames(struct pipeline *p, struct reading *r)
{
	bool deep = r->record->tick.head.flags & RECORD_OUTER;
	uint32_t end = r->record->tick.head.flags & RECORD_PART ? 2 : 0;
	struct record_outer o;

	if (deep && !read_outer(r->record, &o))
		return false;
	r->inner = (struct words){r->record->words, deep ? o.inner : record_words(r->record) - end};
	if (r->record->nkernel > r->inner.n)
		return false;
	read_kernel_frames(r->record, &p->walk);
	return read_user_frames(p, r, r->inner, r->record->nkernel) == r->inner.n &&
	       (!deep || read_outer_frames(p, r, &o));
}

static void read_stack(struct pipeline *p, struct process *proc, uint64_t time,
		       const struct record_stack *record)
{
	struct reading r = {.process = proc, .record = record, .time = time};

	if (!read_frames(p, &r))
		p->walk.reason = loss_text(LOSS_CODE_CHANGED);
}

/* ---- records ---- */

/* The stack of a kernel thread has no user frames, and is complete without. */
static void take_kernel_only(struct pipeline *p, struct process *proc, struct sample *s,
			     const struct pipeline_route *route, const struct record_stack *r)
{
	s->abi = 0;
	pipeline_clear_walk(p, LOSS_NONE);
	if (r->nkernel <= record_words(r))
		read_kernel_frames(r, &p->walk);
	if (!p->walk.n)
		p->walk.reason = loss_text(LOSS_NO_REGISTERS);
	p->stats.walked++;
	add(p, proc, s, route, r->comm, NULL);
}

static void on_stack(void *arg, uint64_t time, uint32_t cpu, const struct record_stack *r)
{
	struct pipeline *p = arg;
	uint64_t over = r->tick.head.process;
	struct sample s = sample_of(p, &r->tick, time, cpu);
	struct pipeline_route route;
	struct process *proc = pipeline_begin_sample(p, &s, &route);

	if (!proc)
		return;
	if (r->tick.head.flags & RECORD_KERNEL_ONLY) {
		take_kernel_only(p, proc, &s, &route, r);
		return;
	}
	proc->started = true;
	pipeline_scan_if_due(p, proc);
	pipeline_clear_walk(p, LOSS_NONE);
	if (followed_of(proc)->paused)
		p->walk.reason = loss_text(LOSS_TOO_MANY_MAPPINGS);
	else if (is_of(proc, over))
		read_stack(p, proc, time, r);
	else
		p->walk.reason = loss_text(LOSS_PROCESS_CHANGED);
	if (!p->walk.reason && kernel_view_is_outdated(proc, time, over, r->version, &p->walk))
		p->walk.reason = loss_text(LOSS_CODE_CHANGED);
	if (p->walk.reason)
		p->walk.n = p->walk.guessed = 0;
	else if (r->tick.head.flags & RECORD_TOO_DEEP)
		p->walk.reason = loss_text(LOSS_TOO_DEEP);
	else if (r->tick.head.flags & RECORD_RETURNS_TO_0)
		p->walk.reason = loss_text(LOSS_CALLER_NOT_CODE);
	else if (r->tick.head.flags & RECORD_NO_LANGUAGE)
		p->walk.reason = loss_text(LOSS_NO_LANGUAGE);
	else if (p->preceding.unrecorded == s.tid)
		p->walk.reason = loss_text(LOSS_UNRECORDED);
	if (p->preceding.unrecorded == s.tid)
		p->preceding.unrecorded = 0;
	p->stats.walked++;
	add(p, proc, &s, &route, r->comm, unwound_over(p, proc, over));
}

static struct sample_continuation continuation_of(const struct record_stack *r)
{
	const __u64 *end = &r->words[record_words(r) - 2];
	bool part = r->tick.head.flags & RECORD_PART;

	return (struct sample_continuation){.pc = r->begin.pc,
					    .sp = r->begin.sp,
					    .end_pc = part ? end[0] : 0,
					    .end_sp = part ? end[1] : 0,
					    .number = r->tick.part.number,
					    .after = r->tick.part.after};
}

/* The copy whose continuation it is follows. What is not right is not kept: then the sample has the
 * reason that it has without. */
static void on_continuation(void *arg, uint64_t time, const struct record_stack *r)
{
	const struct sample_continuation about = continuation_of(r);
	struct pipeline *p = arg;
	uint64_t over = r->tick.head.process;
	pid_t tid = (pid_t)r->tick.head.tid;
	struct process *proc = process_find(p->processes, (pid_t)r->tick.head.pid);

	if (!proc || proc->id != over || p->preceding.unrecorded == tid || !about.number ||
	    about.after >= about.number || (r->tick.head.flags & RECORD_PART && !about.end_sp))
		return;
	pipeline_clear_walk(p, LOSS_NONE);
	read_stack(p, proc, time, r);
	if (!p->walk.reason && !kernel_view_is_outdated(proc, time, over, r->version, &p->walk))
		preceding_add(&p->preceding, tid, time, over, &about, &p->walk);
}

static void on_missed(void *arg, uint64_t time, uint32_t cpu, const struct record_missed *r)
{
	struct pipeline *p = arg;
	struct sample s = sample_of(p, &r->tick, time, cpu);
	struct pipeline_route route;
	struct process *proc = pipeline_begin_sample(p, &s, &route);

	if (!proc)
		return;
	p->stats.new_code++;
	pipeline_scan_if_due(p, proc);
	/* kernel threads have a stack, so a thread without registers runs 32-bit code */
	pipeline_clear_walk(p, r->why == TICK_NO_REGISTERS ? LOSS_32_BIT : LOSS_NOT_COPIED);
	add(p, proc, &s, &route, r->comm, NULL);
}

static void on_labels(void *arg, const struct record_labels *r)
{
	struct pipeline *p = arg;

	preceding_set_ids(&p->preceding, r);
}

static void on_emission(void *arg, uint64_t time, const struct record_emission *r)
{
	struct pipeline *p = arg;
	const char *at = (const char *)(r + 1), *end = at + r->bytes;
	struct process *proc = process_find(p->processes, (pid_t)r->head.pid);

	proc = proc ? unwound_over(p, proc, r->head.process) : NULL;
	p->stats.lost_emissions += !proc;
	p->preceding.unrecorded = proc ? 0 : (pid_t)r->head.tid;
	while (proc && end - at >= (ptrdiff_t)sizeof(struct emission_head)) {
		struct fusee_emission e = {.size = sizeof(e), .time_ns = time};
		struct emission_head head;

		memcpy(&head, at, sizeof(head));
		at += sizeof(head);
		if (head.len > end - at)
			return;
		e.key = head.key;
		e.kind = head.kind;
		e.bytes = (struct fusee_str){at, head.len};
		if (claims_record(p->claims, proc, head.unwinder, &e) < 0) {
			p->stats.lost_emissions++;
			p->preceding.unrecorded = (pid_t)r->head.tid;
		}
		at += (head.len + 7u) & ~7u;
	}
}

void pipeline_set_record_handlers(struct pipeline *p)
{
	p->handlers.stack = on_stack;
	p->handlers.continuation = on_continuation;
	p->handlers.missed = on_missed;
	p->handlers.emission = on_emission;
	p->handlers.labels = on_labels;
}
