/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel's sampler is told of processes, and when. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "bpf/sampler.h"
#include "sampling/pipeline_state.h"

#define TIDY_NS 1000000000u /* where there is no room, ended processes are looked for so often */
#define RECORD_NS 50000000u /* a mapping's record comes so soon after its place was chosen */
#define LOOK_NS 1000000000u /* a process's mappings are read again at most so often */

static void tell(void *arg, struct process *proc)
{
	struct pipeline *p = arg;
	int r = 0;

	if (!proc->sampler.stale)
		return;
	proc->sampler.stale = false;
	if (proc->ended || proc->replaced)
		return;
	if (p->o.wants && !p->o.wants(p->o.arg, proc->pid))
		bpf_sampler_forget(p->bpf, proc);
	else if (proc->sampler.no_room && p->as_of < proc->sampler.no_room + TIDY_NS)
		return; /* one with too many mappings would be written anew at each of its ticks */
	else
		r = bpf_sampler_put(p->bpf, proc, p->claims);
	proc->sampler.no_room = 0;
	if (r == -ENOSPC) {
		p->no_room = true;
		proc->sampler.no_room = p->as_of;
	}
	if (r)
		log_debug("pid %d: stacks are walked in user space: %s", (int)proc->pid,
			  strerror(-r));
}

/* A file that it maps has become ready since. */
static void find_answered(void *arg, struct process *proc)
{
	struct pipeline *p = arg;

	for (uint32_t i = 0; i < proc->n; i++) {
		const struct process_mapping *m = &proc->mappings[i];

		if (m->file && m->file->state == FILE_READY && (!m->told || m->file->renewed))
			set_stale(p, proc);
	}
}

/* It was told without the program of its language, of which we know by now. */
static void find_waiting(void *arg, struct process *proc)
{
	if (proc->sampler.waits)
		set_stale(arg, proc);
}

static void on_changed(void *arg, struct process *proc, uint64_t when)
{
	struct pipeline *p = arg;

	if (p->as_of < when || proc->sampler.stale)
		return;
	if (when == proc->sampler.since) {
		bpf_sampler_confirm(p->bpf, proc, p->as_of);
		return;
	}
	/* Memory was taken where it had code. A record of new code there comes soon, if it is code;
	 * else /proc says what is left. */
	if (proc->sampler.covered < when) {
		if (p->as_of < when + RECORD_NS || p->as_of < proc->sampler.looked + LOOK_NS)
			return;
		proc->sampler.looked = p->as_of;
		pipeline_look_again(p, proc);
	}
	set_stale(p, proc);
}

static void forget_ended(void *arg, struct process *proc)
{
	struct pipeline *p = arg;

	if (proc->ended && proc->sampler.chunk)
		bpf_sampler_forget(p->bpf, proc);
}

/* Room may be held by those whose end no record told. */
static void make_room(struct pipeline *p)
{
	p->no_room = false;
	if (p->as_of < p->tidied + TIDY_NS)
		return;
	p->tidied = p->as_of;
	process_sweep(p->processes, 0, NULL, NULL);
	process_each(p->processes, forget_ended, p);
}

void pipeline_tell(struct pipeline *p, uint64_t as_of)
{
	files_retry(p->files, clock_now());
	if (!p->bpf)
		return;
	p->as_of = as_of;
	bpf_sampler_changed(p->bpf, on_changed, p);
	if (p->told_answers != p->files->answers) {
		p->told_answers = p->files->answers;
		process_each(p->processes, find_answered, p);
		files_told(p->files);
	}
	if (bpf_sampler_loaded(p->bpf))
		process_each(p->processes, find_waiting, p);
	if (p->stale)
		process_each(p->processes, tell, p);
	p->stale = false;
	if (p->no_room)
		make_room(p);
}

bool pipeline_has_news(const struct pipeline *p)
{
	return !p->bpf || p->stale || p->no_room || p->first || p->files->again_ns ||
	       p->told_answers != p->files->answers || bpf_sampler_has_news(p->bpf);
}

void pipeline_tell_all(struct pipeline *p)
{
	pipeline_tell(p, clock_now());
	if (!p->bpf || !bpf_sampler_wait(p->bpf))
		return;
	process_each(p->processes, find_waiting, p);
	pipeline_tell(p, clock_now());
}

void pipeline_decided(struct pipeline *p, pid_t pid)
{
	struct process *proc = process_find(p->processes, pid);

	if (proc)
		set_stale(p, proc);
}
