/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the BPF sampler: stacks that were unwound in the kernel, ticks without a stack, and
 * what language unwinders emitted. */
#include <linux/perf_event.h>
#include <string.h>

#include "../../bpf/records.h"
#include "sampling/pipeline_state.h"

#define MAX_FRAMES (WALK_MAX_FRAMES + 128u) /* of struct walk */

static struct sample sample_of(const struct record_tick *t, uint64_t time, uint32_t cpu)
{
	return (struct sample){.pid = (pid_t)t->head.pid,
			       .tid = (pid_t)t->head.tid,
			       .cpu = cpu,
			       .time = time,
			       .period = t->period,
			       .share = t->head.share,
			       .abi = 2};
}

static void add(struct pipeline *p, struct process *proc, const struct sample *s,
		const struct pipeline_route *route, const char record_comm[16])
{
	char comm[16] = "";

	memcpy(comm, record_comm, sizeof(comm) - 1);
	pipeline_add(p, proc, s, route, comm);
}

/* ---- frames ---- */

/* Was the stack unwound over the mappings of this process or of an ancestor? */
static bool is_of(const struct process *proc, uint64_t id)
{
	return proc->id == id || proc->ancestors[0] == id || proc->ancestors[1] == id;
}

/* The process over whose mappings a stack of proc was unwound. NULL: it was freed. */
static struct process *unwound_over(struct pipeline *p, struct process *proc, uint64_t id)
{
	return proc->id == id ? proc : process_by_id(p->processes, id);
}

/* Reads a frame in memory without a file. *claimed counts the frames that a language unwinder
 * claims to step. false: no such memory was mapped at that time. */
static bool read_anonymous(struct pipeline *p, struct process *proc, uint64_t time, uint64_t word,
			   struct walk_frame *f, uint32_t *claimed)
{
	uint64_t addr = word & FRAME_MAX_ADDRESS;
	struct process_mapping *m = process_mapping_at(proc, addr, time);
	const struct claim *claim;

	*f = (struct walk_frame){.kind = FRAME_ANONYMOUS,
				 .guessed = !!(word & FRAME_GUESSED),
				 .addr = addr,
				 .process = proc->id};
	if (!m || m->file)
		return false;
	claim = claims_at(p->claims, proc, m, addr, time, &f->generation);
	*claimed += claim && claim->flags & FUSEE_CLAIM_STEP;
	return true;
}

static struct walk_frame file_frame(uint64_t word)
{
	return (struct walk_frame){
		.kind = FRAME_FILE,
		.file = (uint32_t)((word & FRAME_MAX_ADDRESS) >> FRAME_FILE_SHIFT),
		.guessed = !!(word & FRAME_GUESSED),
		.addr = word & FRAME_MAX_OFFSET};
}

/* The words of the pushed frame that begins at word i. 0: it ends behind the record, or no such
 * unwinder pushed it. */
static uint32_t pushed_words(const struct pipeline *p, const struct record_stack *r, uint32_t i)
{
	uint32_t all = record_words(r), n;

	if (i >= all || r->words[i] >> FRAME_KIND_SHIFT != FRAME_PUSHED ||
	    r->words[i] & FRAME_AGAIN || (r->words[i] & FRAME_UNWINDER) >= p->walker.unwinders->n)
		return 0;
	n = r->words[i] & FRAME_FOUR_WORDS ? FRAME_MOST_WORDS : FRAME_PUSHED_WORDS;
	return all - i < n ? 0 : n;
}

static struct walk_frame pushed_frame(struct pipeline *p, struct process *proc,
				      const struct record_stack *r, uint32_t i)
{
	uint64_t first = r->words[i];
	uint32_t unwinder = (uint32_t)(first & FRAME_UNWINDER);
	bool four = first & FRAME_FOUR_WORDS;
	struct process *over = unwound_over(p, proc, r->tick.head.process);

	if (over)
		claims_expect_pushed(p->claims, over, unwinder);
	return (struct walk_frame){
		.kind = FRAME_PUSHED,
		.addr = r->words[i + 1],
		.extra = {r->words[i + 2], four ? r->words[i + 3] : 0, four ? r->words[i + 4] : 0},
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

/* Reads the frame at word i. Returns its words; 0: the record is wrong. */
static uint32_t read_user_frame(struct pipeline *p, struct process *proc, uint64_t time,
				const struct record_stack *r, uint32_t i, uint32_t *claimed)
{
	struct walk_frame *f = &p->walk.frames[p->walk.n++];
	uint64_t word = r->words[i];
	uint32_t n;

	switch ((enum frame_kind)(word >> FRAME_KIND_SHIFT)) {
	case FRAME_FILE:
		*f = file_frame(word);
		if (!files_is_of_time(p->files, f->file, time))
			break;
		p->walk.guessed += f->guessed;
		return 1;
	case FRAME_ANONYMOUS:
		if (!read_anonymous(p, proc, time, word, f, claimed))
			p->walk.reason = loss_text(LOSS_CODE_CHANGED);
		p->walk.guessed += f->guessed;
		return 1;
	case FRAME_PUSHED:
		if (word & FRAME_AGAIN)
			i = (uint32_t)(word & (FRAME_AGAIN - 1));
		n = pushed_words(p, r, i);
		if (!n)
			break;
		*f = pushed_frame(p, proc, r, i);
		return word & FRAME_AGAIN ? 1 : n;
	case FRAME_KERNEL:
		break;
	}
	p->walk.n--;
	p->walk.reason = loss_text(LOSS_CODE_CHANGED);
	return 0;
}

static void read_stack(struct pipeline *p, struct process *proc, uint64_t time,
		       const struct record_stack *r)
{
	uint32_t claimed = 0, n = 1, end = record_words(r);

	read_kernel_frames(r, &p->walk);
	for (uint32_t i = r->nkernel; i < end && n && p->walk.n < MAX_FRAMES; i += n)
		n = read_user_frame(p, proc, time, r, i, &claimed);
	/* The kernel knew of other claims. A child runs its parent's code, so its claims differ. */
	if (claimed != r->claimed && r->tick.head.process == proc->id) {
		kernel_view_mark_dirty(&p->views, proc);
		p->walk.reason = loss_text(LOSS_CODE_CHANGED);
	}
}

/* ---- records ---- */

static void on_stack(void *arg, uint64_t time, uint32_t cpu, const struct record_stack *r)
{
	struct pipeline *p = arg;
	uint64_t over = r->tick.head.process;
	struct sample s = sample_of(&r->tick, time, cpu);
	struct pipeline_route route;
	struct process *proc = pipeline_begin_sample(p, &s, &route);

	if (!proc)
		return;
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
	else if (p->unrecorded == s.tid)
		p->walk.reason = loss_text(LOSS_UNRECORDED);
	if (p->unrecorded == s.tid)
		p->unrecorded = 0;
	p->stats.walked++;
	add(p, proc, &s, &route, r->comm);
}

static void on_missed(void *arg, uint64_t time, uint32_t cpu, const struct record_missed *r)
{
	struct pipeline *p = arg;
	struct sample s = sample_of(&r->tick, time, cpu);
	struct pipeline_route route;
	struct process *proc = pipeline_begin_sample(p, &s, &route);

	if (!proc)
		return;
	pipeline_scan_if_due(p, proc);
	pipeline_clear_walk(p, LOSS_NOT_COPIED);
	add(p, proc, &s, &route, r->comm);
}

static void on_emission(void *arg, uint64_t time, const struct record_emission *r)
{
	struct pipeline *p = arg;
	const char *at = (const char *)(r + 1), *end = at + r->bytes;
	struct process *proc = process_find(p->processes, (pid_t)r->head.pid);

	proc = proc ? unwound_over(p, proc, r->head.process) : NULL;
	p->stats.lost_emissions += !proc;
	p->unrecorded = proc ? 0 : (pid_t)r->head.tid;
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
			p->unrecorded = (pid_t)r->head.tid;
		}
		at += (head.len + 7u) & ~7u;
	}
}

void pipeline_set_record_handlers(struct pipeline *p)
{
	p->handlers.stack = on_stack;
	p->handlers.missed = on_missed;
	p->handlers.emission = on_emission;
}
