/* SPDX-License-Identifier: Apache-2.0 */
/* Unwinds stacks of stopped threads over the threads' memory instead of a copy. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "pipeline/state.h"

int pipeline_scan_anew(struct pipeline *p, pid_t pid)
{
	struct process *proc = process_find(p->processes, pid);
	int r;

	if (proc)
		followed_of(proc)->retry_ns = 0;
	r = pipeline_scan(p, pid);
	proc = process_find(p->processes, pid);
	if (!r && proc)
		pipeline_reread(p, proc);
	return r;
}

bool pipeline_lacks_files(const struct pipeline *p, pid_t pid)
{
	struct process *proc = process_find(p->processes, pid);

	return proc && followed_of(proc)->retry_ns;
}

bool pipeline_has_uprobes(const struct pipeline *p, pid_t pid)
{
	const struct process *proc = process_find(p->processes, pid);

	for (uint32_t i = 0; proc && i < proc->n; i++)
		if (proc->mappings[i].uprobes)
			return true;
	return false;
}

static void note_step(void *arg, const struct claim *c)
{
	(void)c;
	*(bool *)arg = true;
}

bool pipeline_has_language(const struct pipeline *p, pid_t pid)
{
	struct process *proc = process_find(p->processes, pid);
	bool steps = false;

	if (!proc)
		return false;
	claims_each_step(p->claims, proc->id, 0, UINT64_MAX, note_step, &steps);
	for (uint32_t i = 0; !steps && i < proc->n; i++)
		steps = proc->mappings[i].file && proc->mappings[i].file->claimed;
	return steps;
}

bool pipeline_offer(struct pipeline *p, pid_t pid)
{
	struct process *proc = process_find(p->processes, pid);

	if (proc)
		pipeline_settle_texts(p, proc);
	if (proc)
		claims_offer_all(p->claims, proc, clock_now());
	return pipeline_has_language(p, pid);
}

int pipeline_walk_stopped(struct pipeline *p, const struct sample *s, bool wait,
			  struct walk_steps **steps)
{
	struct process *proc = process_find(p->processes, s->pid);

	if (!proc)
		return -ESRCH;
	pipeline_settle_texts(p, proc);
	if (!p->walker.languages)
		p->walker.languages = walk_languages_new();
	walk_stack(&p->walker, proc, s, wait, steps, &p->walk);
	if (p->walk.waiting)
		return -EAGAIN;
	return p->walk.reason == loss_text(LOSS_CODE_NOT_MAPPED) ||
			       p->walk.reason == loss_text(LOSS_CALLER_NOT_CODE)
		       ? -ENOENT
		       : 0;
}

void pipeline_add_stopped(struct pipeline *p, const struct sample *s)
{
	const struct pipeline_route route = {.slots = 1};
	struct process *proc = process_find(p->processes, s->pid);

	if (proc)
		pipeline_add(p, proc, s, &route, process_comm(p->processes, proc, s->tid));
}

void pipeline_deliver_stopped(struct pipeline *p, const struct sample *s, bool changed)
{
	struct pipeline_route route;
	struct process *proc = pipeline_begin_sample(p, s, &route);

	if (!proc)
		return;
	if (changed)
		pipeline_clear_walk(p, LOSS_CODE_CHANGED);
	pipeline_deliver(p, proc, s, &route, process_comm(p->processes, proc, s->tid), proc);
}
