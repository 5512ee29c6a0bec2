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
#include "unwind/internal/walk_returns.h"
#include "unwind/moved_text.h"
#include "unwind/walk_language.h"
#include "opener/opener.h"

/* The x86-64 user registers of a sample, without rbp, rsp and rip, which are fields of u. */
#define LEAF_REGS (0xffffu & ~(1u << FUSEE_X86_RBP | 1u << FUSEE_X86_RSP))

#define STACK_FAR (1ull << 30) /* bytes above sp: no stack is larger */
#define PAGE 4096u

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

#define BIT(n) (1ull << (n))
#define SPECIAL_REGS (BIT(FUSEE_X86_RBP) | BIT(FUSEE_X86_RSP) | BIT(FUSEE_X86_RIP))

/* Bytes of the stack copy below the first absent page. */
static uint32_t up_to_hole(const struct fusee_native *n)
{
	uint64_t len = n->stack_hi - n->stack_lo, in = n->stack_lo % PAGE, page;

	if (!n->holes)
		return (uint32_t)len;
	page = (uint64_t)__builtin_ctzll(n->holes) * PAGE;
	return (uint32_t)(page <= in ? 0 : page - in < len ? page - in : len);
}

/* ---- steps of the worker ---- */

#define STEP_FAILS -1
#define STEP_WAITS -2

void walk_steps_release(struct walk_steps *s)
{
	if (!s || --s->refs)
		return;
	free(s->at);
	free(s);
}

/* Appends a step. Without memory nothing: the walk will request it again. */
static void add_step(struct walk_steps *s, const struct walk_step *step)
{
	if (s->n == s->cap) {
		uint32_t cap = s->cap ? s->cap * 2 : 4;
		struct walk_step *at = realloc(s->at, cap * sizeof(*at));

		if (!at)
			return;
		s->at = at;
		s->cap = cap;
	}
	s->at[s->n++] = *step;
}

/* A step that was requested: where it began, until the answer. */
struct requested {
	struct walk_steps *steps;
	struct file *file;
	struct walk_step step;
};

static void on_stepped(void *arg, int err, const uint64_t regs[17], uint64_t valid)
{
	struct requested *r = arg;

	r->step.err = err;
	r->step.valid = valid;
	memcpy(r->step.regs, regs, sizeof(r->step.regs));
	r->steps->pending = false;
	files_release(r->file);
	if (err != -ECANCELED) {
		r->steps->walker->answers++;
		r->steps->walker->helped += err >= 0;
		add_step(r->steps, &r->step);
	}
	walk_steps_release(r->steps);
	free(r);
}

#define WINDOW 16384u /* bytes of a stopped thread's stack */

/* Copies the part of a stopped thread's stack that a step may need. */
static void read_window(const struct walk_context *c, uint64_t sp, struct worker_step *step,
			unsigned char *window)
{
	uint32_t n = 0;

	while (n < WINDOW) {
		uint32_t len = PAGE - (uint32_t)((sp + n) % PAGE);

		if (len > WINDOW - n)
			len = WINDOW - n;
		if (c->memory->read(c->memory->arg, window + n, len, sp + n))
			break;
		n += len;
	}
	step->stack_lo = sp;
	step->stack = window;
	step->len = n;
}

static int send_step(struct worker *w, struct worker_step *step, const struct worker_requester *by,
		     struct requested *r)
{
	int err;

	step->fd = files_hold(r->file);
	err = step->fd < 0 ? step->fd : worker_step(w, step, by, on_stepped, r);
	if (err && step->fd >= 0)
		files_release(r->file);
	return err;
}

/* Requests the walk's next step. 0: it is under way; -errno. */
static int request_step(struct walker *w, const struct fusee_native *n,
			const struct process_mapping *m)
{
	const struct fusee_unwind *u = &n->u;
	unsigned char window[WINDOW];
	const struct worker_requester by = {
		.uid = m->file->uid, .pid = w->pid, .copy_of = m->file->source.copy_of};
	struct walk_steps *steps = *w->steps;
	struct requested *r = calloc(1, sizeof(*r));
	struct worker_step step = {
		.inspection = m->file->inspection,
		.bias = m->bias,
		.valid = u->valid_regs | SPECIAL_REGS,
		.stack_lo = n->stack_lo,
		.stack = n->stack,
		.len = up_to_hole(n),
	};
	int err;

	if (!r)
		return -ENOMEM;
	if (((struct walk_context *)n->arg)->memory)
		read_window(n->arg, u->sp, &step, window);
	if (u->flags & FUSEE_FP_LOST)
		step.valid &= ~BIT(FUSEE_X86_RBP);
	memcpy(step.regs, u->regs, sizeof(step.regs) - 8);
	step.regs[FUSEE_X86_RBP] = u->fp;
	step.regs[FUSEE_X86_RSP] = u->sp;
	step.regs[FUSEE_X86_RIP] = u->flags & FUSEE_PC_EXACT ? u->offset : u->offset - 1;
	*r = (struct requested){
		.steps = steps, .file = m->file, .step = {.pc = u->pc, .sp = u->sp}};
	err = send_step(w->worker, &step, &by, r);
	if (err) {
		free(r);
		return err;
	}
	steps->refs++;
	steps->pending = true;
	return 0;
}

/* Makes the walk's steps. false: it has none and may have none, or no memory. */
static bool make_steps(struct walker *w)
{
	struct walk_steps *s = *w->steps;

	if (s || !w->waits)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return false;
	*s = (struct walk_steps){.refs = 1, .walker = w};
	*w->steps = s;
	return true;
}

/* The answer to the walk's next step. NULL: there is none; *r: why. */
static const struct walk_step *next_step(struct walker *w, const struct fusee_native *n,
					 const struct process_mapping *m, int *r)
{
	struct walk_steps *s;
	const struct walk_step *step;

	*r = STEP_FAILS;
	if (!m->based || !m->file->source.readable || !make_steps(w))
		return NULL;
	s = *w->steps;
	if (w->step < s->n) {
		step = &s->at[w->step++];
		/* Other tables since: another way through the stack. */
		return step->pc == n->u.pc && step->sp == n->u.sp ? step : NULL;
	}
	if (w->waits && (s->pending || (s->n < WALK_MAX_STEPS && !request_step(w, n, m))))
		*r = STEP_WAITS;
	return NULL;
}

/* Lets the worker, which has a full CFI interpreter, take a step. enum fusee_next; STEP_FAILS,
 * STEP_WAITS. */
static int step_by_worker(struct walker *w, struct fusee_native *n, const struct process_mapping *m)
{
	struct fusee_unwind *u = &n->u;
	const struct walk_step *step;
	int r;

	step = next_step(w, n, m, &r);
	if (!step)
		return r;
	if (step->err == -ENODATA)
		return FUSEE_STOP;
	if (step->err < 0)
		return STEP_FAILS;
	u->pc = step->regs[FUSEE_X86_RIP];
	u->sp = step->regs[FUSEE_X86_RSP];
	u->fp = step->regs[FUSEE_X86_RBP];
	memcpy(u->regs, step->regs, sizeof(step->regs) - 8);
	u->valid_regs = step->valid & ~SPECIAL_REGS;
	u->flags &= ~(uint32_t)(FUSEE_PC_EXACT | FUSEE_FP_LOST);
	u->flags |= (step->err ? FUSEE_PC_EXACT | FUSEE_SIGNAL : 0) |
		    (step->valid & BIT(FUSEE_X86_RBP) ? 0 : FUSEE_FP_LOST);
	return FUSEE_NEXT;
}

/* Does the worker step first? Only in a walk that stopped before because a register was not known.
 */
static bool worker_steps_first(const struct walker *w, const struct process_mapping *m)
{
	return *w->steps && (*w->steps)->careful && m->file && m->file->state == FILE_READY;
}

/* ---- steps ---- */

/* One step by this unwinder. enum fusee_next; FUSEE_PASS: the pc is not its own; STEP_WAITS. */
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
	if (r != FUSEE_STOP || !u->error)
		return r;
	helped = u->flags & FUSEE_INEXPRESSIBLE ? step_by_worker(w, n, m) : STEP_FAILS;
	if (helped != STEP_FAILS) {
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

/* One step by the first unwinder that does not pass. enum fusee_next, STEP_WAITS; *reason: why the
 * stack is truncated. */
static int step(struct walker *w, struct fusee_native *n, struct process_mapping *m,
		const struct claim *claim, const char **reason)
{
	int r;

	if (worker_steps_first(w, m)) {
		int helped = step_by_worker(w, n, m);

		if (helped != STEP_FAILS)
			return helped;
	}
	r = step_by_claim(w, claim, n, m, reason);
	if (r != FUSEE_PASS)
		return r;
	for (uint32_t i = 0; i < w->unwinders->n && i < FILES_MAX_UNWINDERS; i++) {
		const struct fusee_unwinder_ops *ops = w->unwinders->instances[i]->descriptor->ops;

		if (!ops->native_step || !(ops->flags & FUSEE_UNWINDER_NATIVE))
			continue;
		r = step_by(w, i, n, m, reason);
		if (r != FUSEE_PASS)
			return r;
	}
	*reason = m->file && m->file->state == FILE_PENDING   ? loss_text(LOSS_NO_TABLE_YET)
		  : m->file && m->file->state == FILE_REFUSED ? loss_text(LOSS_FILE_NOT_READABLE)
							      : loss_text(LOSS_NO_TABLE);
	return FUSEE_STOP;
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
 * STEP_WAITS. */
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
		r = step(w, n, m, c->languages ? NULL : code.claim, &out->reason);
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
		if (r == STEP_WAITS)
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
	       w->helped < 1000 + 4 * w->walks && make_steps(w) && !(*w->steps)->careful;
}

static void walk_sample(struct walker *w, struct process *p, const struct sample *s, bool wait,
			struct walk *out, struct fusee_native *n)
{
	struct walk_context c = {.process = p,
				 .opener = worker_opener(w->worker),
				 .memory = s->memory,
				 .returns = s->returns,
				 .continuations = &s->continuations,
				 .languages = s->memory ? w->languages : NULL};

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
}

void walk_stack(struct walker *w, struct process *p, const struct sample *s, bool wait,
		struct walk_steps **steps, struct walk *out)
{
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
	walk_sample(w, p, s, wait, out, &n);
	if (needs_care(w, &n, out)) {
		(*steps)->careful = true;
		(*steps)->n = 0;
		walk_sample(w, p, s, wait, out, &n);
	}
}
