/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/internal/walk_worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

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

bool walk_make_steps(struct walker *w)
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

	*r = WALK_STEP_FAILS;
	if (!m->based || !m->file->source.readable || !walk_make_steps(w))
		return NULL;
	s = *w->steps;
	if (w->step < s->n) {
		step = &s->at[w->step++];
		/* Other tables since: another way through the stack. */
		return step->pc == n->u.pc && step->sp == n->u.sp ? step : NULL;
	}
	if (w->waits && (s->pending || (s->n < WALK_MAX_STEPS && !request_step(w, n, m))))
		*r = WALK_STEP_WAITS;
	return NULL;
}

int walk_step_by_worker(struct walker *w, struct fusee_native *n, const struct process_mapping *m)
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
		return WALK_STEP_FAILS;
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

bool walk_worker_steps_first(const struct walker *w, const struct process_mapping *m)
{
	return *w->steps && (*w->steps)->careful && m->file && m->file->state == FILE_READY;
}
