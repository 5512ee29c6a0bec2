/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fusee/unwinder.bpf.h>

#include "loss/loss.h"
#include "unwind/unwinders.h"
#include "unwind/internal/walk_called.h"
#include "unwind/internal/walk_continue.h"
#include "unwind/internal/walk_guess.h"
#include "unwind/internal/walk_learn.h"
#include "unwind/internal/walk_returns.h"
#include "unwind/internal/walk_worker.h"
#include "unwind/moved_text.h"
#include "unwind/walk_language.h"
#include "opener/opener.h"

/* The x86-64 user registers of a sample, without rbp, rsp and rip, which are fields of u. */
#define LEAF_REGS (0xffffu & ~(1u << FUSEE_X86_RBP | 1u << FUSEE_X86_RSP))

#define STACK_FAR (1ull << 30) /* bytes above sp: no stack is larger */
/* Reads code, for a step that decodes instructions: from the mapped file, or for memory without a
 * file from the process, if it still runs. Other memory is in the stack copy or nowhere. */
static int read_code(struct fusee_native *n, void *dst, __u32 len, __u64 addr)
{
	struct walk_context *c = n->arg;
	const struct process_mapping *m = process_mapping_at(c->process, addr, n->u.time_ns);
	struct opener_query q = {.kind = OPENER_MEMORY, .address = addr, .buf = dst, .len = len};
	struct opener_answer a;

	if (c->memory)
		return c->memory->read(c->memory->arg, dst, len, addr);
	c->beyond = !m && addr + len > n->stack_hi && addr - n->stack_lo < STACK_FAR;
	if (!m || len > m->hi - addr)
		return -1;
	if (m->file && m->file->fd >= 0 && !m->file->source.remote)
		return pread(m->file->fd, dst, len, (off_t)(addr - m->lo + m->offset)) ==
				       (ssize_t)len
			       ? 0
			       : -1;
	q.pid = (pid_t)n->u.pid;
	return opener_call(c->opener, &q, &a) ? -1 : 0;
}

static void begin(struct fusee_native *n, const struct sample *s, struct walk_context *c)
{
	*n = (struct fusee_native){
		.u = {.origin = FUSEE_CPU,
		      .pid = (uint32_t)s->pid,
		      .tid = (uint32_t)s->tid,
		      .machine = 62,
		      .flags = FUSEE_PC_EXACT | FUSEE_FIRST,
		      .process = c->process->id,
		      .time_ns = s->time,
		      .value = s->period,
		      .pc = s->regs[FUSEE_X86_RIP],
		      .sp = s->regs[FUSEE_X86_RSP],
		      .fp = s->regs[FUSEE_X86_RBP],
		      .first_sp = s->regs[FUSEE_X86_RSP],
		      .tls = s->tls,
		      .valid_regs = LEAF_REGS},
		.stack = s->stack,
		.stack_lo = s->regs[FUSEE_X86_RSP],
		.stack_hi = s->regs[FUSEE_X86_RSP] + s->stack_len,
		.holes = s->holes,
		.read = read_code,
		.arg = c,
	};
	memcpy(n->u.regs, s->regs, 16 * sizeof(s->regs[0]));
}

/* Finds the mapping of this frame's code and sets what a step reads of it. NULL: none. */
static struct process_mapping *locate(struct fusee_unwind *u, struct process *p)
{
	uint64_t at = u->flags & FUSEE_PC_EXACT ? u->pc : u->pc - 1;
	struct process_mapping *m = process_mapping_at(p, at, u->time_ns);

	if (!m)
		return NULL;
	u->map_lo = m->lo;
	u->map_hi = m->hi;
	u->file = m->file ? m->file->id : 0;
	if (files_base(m)) {
		u->bias = m->bias;
		u->offset = u->pc - m->bias;
	} else {
		u->bias = m->lo - m->offset;
		u->offset = u->pc - u->bias;
	}
	return m;
}

/* Unwinders may claim memory without a file, or whose file is no program. */
static bool is_claimable(const struct process_mapping *m)
{
	return !m->file || m->file->state == FILE_REFUSED;
}

/* What is known of code without a file. */
struct code_at {
	const struct claim *claim; /* NULL: none */
	uint32_t generation;
};

static struct code_at claim_at(struct walker *w, struct process *p, const struct fusee_unwind *u,
			       const struct process_mapping *m)
{
	struct code_at at = {0};

	if (w->claims && is_claimable(m))
		at.claim = claims_at(w->claims, p, m, u->flags & FUSEE_PC_EXACT ? u->pc : u->pc - 1,
				     u->time_ns, &at.generation);
	return at;
}

static struct walk_frame frame_of(const struct fusee_unwind *u, const struct process_mapping *m,
				  const struct code_at *code, bool guessed)
{
	uint64_t at = u->flags & FUSEE_PC_EXACT ? u->pc : u->pc - 1;
	struct walk_frame f = {.kind = FRAME_FILE, .addr = at, .guessed = guessed};

	if (m->file && !code->claim) {
		f.file = m->file->id;
		f.addr = at - m->lo + m->offset;
	} else {
		f.kind = FRAME_ANONYMOUS;
		f.extra[1] = !!(u->flags & FUSEE_PC_EXACT);
		f.process = u->process;
		f.generation = code->generation;
	}
	return f;
}

/* ---- steps ---- */

/* A step in code that a brief inspection has omitted: it waits for the rest of the inspection. If
 * there is none, the table has no row. */
static int in_omitted(const struct walker *w, struct fusee_unwind *u, struct process_mapping *m)
{
	u->error = 0;
	u->flags &= ~(uint32_t)FUSEE_INEXPRESSIBLE;
	return w->waits && files_inspect_rest(m->file) ? WALK_STEP_WAITS : FUSEE_PASS;
}

/* One step by this unwinder. enum fusee_next; FUSEE_PASS: the pc is not its own; WALK_STEP_WAITS.
 */
static int step_by(struct walker *w, uint32_t i, struct fusee_native *n, struct process_mapping *m,
		   const char **reason)
{
	const struct fusee_unwinder_ops *ops = w->unwinders->instances[i]->descriptor->ops;
	const struct process *p = ((struct walk_context *)n->arg)->process;
	uint64_t made = 0; /* of memory without a file: the table's number */
	const struct inspection_slab *slab = !m->file && ops->flags & FUSEE_UNWINDER_NATIVE
						     ? made_code_table(w->made, p->id, m, i, &made)
						     : unwinder_table(p, i, ops, m);
	struct fusee_unwind *u = &n->u;
	int r, helped;

	u->error = 0;
	u->slab_words = slab ? slab->n : 0;
	n->slab = u->slab_words ? slab->words : NULL;
	n->ntouched = 0;
	r = ops->native_step(u);
	if (w->touched && n->ntouched)
		w->touched(w->arg, i, m->file ? m->file->id : 0, made, n->touched, n->ntouched);
	if (r != FUSEE_STOP || !u->error || ((struct walk_context *)n->arg)->proving)
		return r;
	if (u->flags & FUSEE_INEXPRESSIBLE && files_is_brief(m->file))
		return in_omitted(w, u, m);
	helped = u->flags & FUSEE_INEXPRESSIBLE ? walk_step_by_worker(w, n, m) : WALK_STEP_FAILS;
	if (helped != WALK_STEP_FAILS) {
		u->error = 0;
		return helped;
	}
	if (u->flags & FUSEE_INEXPRESSIBLE && walk_guess(n, ops) == FUSEE_NEXT)
		return FUSEE_NEXT;
	*reason = unwinder_reason(ops, u->error);
	if (((struct walk_context *)n->arg)->beyond)
		*reason = w->copy_full ? loss_text(LOSS_COPY_FULL) : loss_text(LOSS_COPY_SHORT);
	return r;
}

/* One step by the unwinder that claimed this memory, if it steps there; else FUSEE_PASS. */
static int step_by_claim(struct walker *w, const struct claim *c, struct fusee_native *n,
			 struct process_mapping *m, const char **reason)
{
	const struct fusee_unwinder_ops *ops;
	uint64_t words = 0;
	int r;

	if (!c || !(c->flags & FUSEE_CLAIM_STEP) || c->unwinder >= FILES_MAX_UNWINDERS)
		return FUSEE_PASS;
	ops = w->unwinders->instances[c->unwinder]->descriptor->ops;
	if (!ops->native_step)
		return FUSEE_PASS;
	if (c->flags & FUSEE_CLAIM_REGISTERS)
		walk_find_cfa(w, n, m);
	n->u.caller_regs = 0;
	n->u.claim_lo = c->lo;
	n->u.claim_arg = c->arg;
	n->words = claims_words(w->claims, n->u.process, c->unwinder, &words);
	n->u.words = n->words ? words : 0;
	r = step_by(w, c->unwinder, n, m, reason);
	if (r == FUSEE_NEXT || r == FUSEE_NEXT_OMIT)
		n->u.valid_regs = n->u.caller_regs;
	return r;
}

/* One step by the first native unwinder that does not pass. */
static int step_by_natives(struct walker *w, struct fusee_native *n, struct process_mapping *m,
			   const char **reason)
{
	for (uint32_t i = 0; i < w->unwinders->n && i < FILES_MAX_UNWINDERS; i++) {
		const struct fusee_unwinder_ops *ops = w->unwinders->instances[i]->descriptor->ops;
		int r;

		if (!ops->native_step || !(ops->flags & FUSEE_UNWINDER_NATIVE))
			continue;
		r = step_by(w, i, n, m, reason);
		if (r != FUSEE_PASS)
			return r;
	}
	return FUSEE_PASS;
}

/* One step by the first unwinder that does not pass. enum fusee_next, WALK_STEP_WAITS; *reason:
 * why the stack is truncated. */
static int step(struct walker *w, struct fusee_native *n, struct process_mapping *m,
		const struct claim *claim, const char **reason)
{
	int r;

	if (walk_worker_steps_first(w, m)) {
		int helped = walk_step_by_worker(w, n, m);

		if (helped != WALK_STEP_FAILS)
			return helped;
	}
	r = step_by_claim(w, claim, n, m, reason);
	if (r == FUSEE_PASS)
		r = step_by_natives(w, n, m, reason);
	if (r != FUSEE_PASS)
		return r;
	*reason = m->file && m->file->state == FILE_PENDING   ? loss_text(LOSS_NO_TABLE_YET)
		  : m->file && m->file->state == FILE_REFUSED ? loss_text(LOSS_FILE_NOT_READABLE)
							      : loss_text(LOSS_NO_TABLE);
	return FUSEE_STOP;
}

/* Is this memory without a file that no unwinder claims to step? */
static bool is_unclaimed(const struct process_mapping *m, const struct claim *claim)
{
	return is_claimable(m) && !(claim && claim->flags & FUSEE_CLAIM_STEP);
}

/* As step(). What nothing proves of code made at run time is by the walk's guesses. */
static int step_or_guess(struct walker *w, struct fusee_native *n, struct process_mapping *m,
			 const struct claim *claim, const char **reason)
{
	struct walk_context *c = n->arg;
	struct fusee_unwind before;
	int r;

	if (!is_unclaimed(m, claim))
		return step(w, n, m, claim, reason);
	if (walk_apply_guess(n, c->guesses))
		return FUSEE_NEXT;
	before = n->u;
	r = step(w, n, m, claim, reason);
	if (!c->unproved.pc && !(before.flags & FUSEE_SP_UNSURE) &&
	    (*reason || n->u.flags & FUSEE_GUESSED))
		c->unproved = before;
	return r;
}

/* Was the code at this place read, and has no row? If it was not, it will be. */
static bool lacks_row(struct walker *w, struct process *p, const struct fusee_unwind *u,
		      const struct process_mapping *m)
{
	bool exact = u->flags & FUSEE_PC_EXACT;
	uint64_t at = exact ? u->pc : u->pc - 1;

	if (!w->made || m->file)
		return false;
	if (made_code_lacks_row(w->made, p->id, at, exact))
		return true;
	made_code_note(w->made, p, m, at, exact, u->time_ns);
	return false;
}

/* A step of walk_learn(). */
static enum learn_step prove(void *arg, struct fusee_native *n)
{
	struct walker *w = arg;
	struct process *p = ((struct walk_context *)n->arg)->process;
	struct process_mapping *m = locate(&n->u, p);
	const struct fusee_unwind before = n->u;
	const char *reason = NULL;
	bool made;
	int r;

	if (!m || walk_in_uprobe_page(n, m))
		return LEARN_FAILS;
	made = is_claimable(m);
	if (made && !is_unclaimed(m, claim_at(w, p, &n->u, m).claim))
		return LEARN_FAILS;
	r = step_by_natives(w, n, m, &reason);
	if (r == FUSEE_STOP && !n->u.error)
		return LEARN_END;
	if (r == FUSEE_NEXT && !(n->u.flags & FUSEE_GUESSED))
		return LEARN_NEXT;
	return made && lacks_row(w, p, &before, m) ? LEARN_UNKNOWN : LEARN_FAILS;
}

static bool may_lead(void *arg, struct fusee_native *n, uint64_t pc, bool *searched)
{
	struct process *p = ((struct walk_context *)n->arg)->process;
	struct process_mapping *m = process_mapping_at(p, n->u.pc - 1, n->u.time_ns);
	struct process_mapping *of = pc ? process_mapping_at(p, pc, n->u.time_ns) : m;

	*searched = false;
	if (!m || !of || !m->file || m->file != of->file || !m->based || m->file->fd < 0 ||
	    m->file->source.remote)
		return true;
	return call_may_lead(&((struct walker *)arg)->calls,
			     &(struct call_file){m->file->fd, m->file->id, m->bias, read_code, n},
			     n->u.pc, pc, searched);
}

void walker_forget_file(struct walker *w)
{
	free(w->calls);
	w->calls = NULL;
}

/* The walk was truncated. Finds the guesses that would lead to the outermost frame. */
static void learn(struct walker *w, struct fusee_native *n, uint64_t time,
		  struct walk_guesses *guesses)
{
	struct walk_context *c = n->arg;
	const struct learn_ops ops = {prove, may_lead, w};
	struct fusee_unwind end = n->u;

	if (!c->unproved.pc || c->memory || c->guesses)
		return;
	n->u = c->unproved;
	c->proving = true;
	if (prove(w, n) == LEARN_UNKNOWN) {
		n->u = c->unproved;
		walk_learn(&w->seen, n, time, &ops, guesses);
	}
	n->u = end;
}

/* If a system call was interrupted, pc is behind the syscall instruction, which may be the last of
 * its function: libc's return from a signal handler is. Then the instruction before pc is looked
 * up, as in callers. */
static bool behind_syscall(struct fusee_native *n)
{
	unsigned char code[2];

	return !read_code(n, code, 2, n->u.pc - 2) && code[0] == 0x0f && code[1] == 0x05;
}

/* Adds the frame, and those of languages in it, and goes to its caller. enum fusee_next,
 * WALK_STEP_WAITS. */
static int pass_frame(struct walker *w, struct process *p, struct fusee_native *n,
		      struct process_mapping *m, bool guessed, struct walk *out)
{
	struct walk_context *c = n->arg;
	struct fusee_unwind *u = &n->u;
	struct code_at code = claim_at(w, p, u, m);
	struct walk_frame frame = frame_of(u, m, &code, guessed);
	enum language_turn turn = walk_language_turn(w, n, m, code.claim, out);
	int r;

	if (!c->languages || !c->languages->pushed) {
		if (!walk_put(out, &frame))
			turn = LANGUAGE_FULL;
		out->guessed += guessed;
	}
	if (c->languages)
		c->languages->pushed = false;
	switch (turn) {
	case LANGUAGE_NATIVE:
		r = step_or_guess(w, n, m, c->languages ? NULL : code.claim, &out->reason);
		if (r != FUSEE_NEXT_OMIT)
			return r;
		walk_omit_machine(out);
		return FUSEE_NEXT;
	case LANGUAGE_NEXT:
		u->valid_regs = u->caller_regs;
		u->flags &= ~(uint32_t)FUSEE_PC_EXACT;
		return FUSEE_NEXT;
	case LANGUAGE_FULL:
		out->reason = loss_text(LOSS_TOO_DEEP);
		walk_drop_outer(out);
		break;
	case LANGUAGE_END:
		break;
	}
	return FUSEE_STOP;
}

static void walk_user(struct walker *w, struct process *p, struct fusee_native *n, bool wait,
		      struct walk *out)
{
	struct fusee_unwind *u = &n->u;
	bool guessed = false;

	for (;;) {
		struct process_mapping *m = locate(u, p);
		int r;

		if (walk_in_uprobe_page(n, m)) {
			if (walk_original_return(n))
				continue;
			out->reason = loss_text(LOSS_RETURN_REPLACED);
			return;
		}
		if (!m && walk_called(n))
			continue;
		if (!m) { /* in exec: registers of the old program, no user stack */
			if (p->started || !out->n)
				out->reason = loss_text(out->n ? LOSS_CALLER_NOT_CODE
							       : LOSS_CODE_NOT_MAPPED);
			return;
		}
		out->waiting = wait ? moved_text_awaited(m) : NULL;
		if (out->waiting || walk_continue(n, guessed, out))
			return;
		p->started = true;
		r = pass_frame(w, p, n, m, guessed, out);
		walk_skip(n, r == FUSEE_STOP, out);
		if (r == WALK_STEP_WAITS)
			out->waiting = m->file;
		if (r != FUSEE_NEXT)
			return;
		((struct walk_context *)n->arg)->stepped++;
		guessed = u->flags & FUSEE_GUESSED;
		u->flags &= ~(uint32_t)(FUSEE_GUESSED | FUSEE_SIGNAL | FUSEE_FIRST |
					FUSEE_INEXPRESSIBLE);
	}
}

/* Some rows need a register that tables do not follow (rbx, in libc's lazy binding). Then the
 * worker follows all registers from the leaf on, as long as such walks are rare. */
static bool needs_care(struct walker *w, const struct fusee_native *n, const struct walk *out)
{
	return !out->waiting && out->reason && n->u.flags & FUSEE_INEXPRESSIBLE &&
	       w->helped < 1000 + 4 * w->walks && walk_make_steps(w) && !(*w->steps)->careful;
}

/* guesses: from which it was learned; those that are found if it is truncated. */
static void walk_sample(struct walker *w, struct process *p, const struct sample *s, bool wait,
			struct walk *out, struct fusee_native *n, struct walk_guesses *guesses)
{
	struct walk_context c = {.process = p,
				 .opener = worker_opener(w->worker),
				 .memory = s->memory,
				 .returns = s->returns,
				 .continuations = &s->continuations,
				 .languages = s->memory ? w->languages : NULL,
				 .guesses = guesses->n ? guesses : NULL};

	walk_clear(out, s->memory ? WALK_MOST_FRAMES : WALK_COPY_FRAMES);
	out->n = s->nkernel < 128 ? s->nkernel : 128;
	w->step = 0;
	begin(n, s, &c);
	if (c.languages || claims_follow(w->claims, p->id))
		n->u.flags |= FUSEE_FOLLOW;
	if (c.languages)
		walk_languages_begin(c.languages, w, p, out);
	if ((s->nkernel || s->in_syscall) && behind_syscall(n))
		n->u.flags &= ~(uint32_t)FUSEE_PC_EXACT;
	walk_user(w, p, n, wait, out);
	walk_close(out);
	if (c.languages && !out->reason)
		out->reason = c.languages->reason;
	if (out->reason && !out->waiting)
		learn(w, n, s->time, guesses);
}

void walk_stack(struct walker *w, struct process *p, const struct sample *s, bool wait,
		struct walk_steps **steps, struct walk *out)
{
	struct walk_guesses guesses = {0};
	struct fusee_native n;

	walk_clear(out, 128);
	out->waiting = NULL;
	w->walks++;
	w->copy_full = s->stack_full;
	for (uint32_t i = 0; i < s->nkernel && i < 128; i++)
		out->frames[out->n++] = (struct walk_frame){
			.kind = FRAME_KERNEL, .addr = i ? s->kernel[i] - 1 : s->kernel[i]};
	if (!s->abi) { /* a kernel thread: its kernel frames are all there is */
		if (!out->n)
			out->reason = loss_text(LOSS_NO_REGISTERS);
		return;
	}
	if (s->abi != 2) {
		out->reason = loss_text(LOSS_32_BIT);
		return;
	}
	w->pid = s->pid;
	w->steps = steps;
	w->waits = wait;
	walk_sample(w, p, s, wait, out, &n, &guesses);
	if (needs_care(w, &n, out)) {
		(*steps)->careful = true;
		(*steps)->n = 0;
		walk_sample(w, p, s, wait, out, &n, &guesses);
	}
	if (guesses.n)
		walk_sample(w, p, s, wait, out, &n, &guesses);
}
