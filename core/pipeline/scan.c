/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads from /proc the mappings and thread names of processes that run already, or whose records
 * were lost. With a reader, other threads read them, and the answers are taken later, in slices.
 * Meanwhile samples of a process without known mappings wait, and records are newer than the
 * answer.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "pipeline/budget.h"
#include "pipeline/state.h"

#define MOST_PAUSE_NS (16 * PIPELINE_PAUSE_NS)
#define MOST_UNMAPPED_NS 3200000000u /* between readings because of samples */
#define SLICE_NS 2000000u            /* of pipeline_take_mappings() */
#define SLICE_CHECK 16u              /* names or mappings between readings of the clock */

struct scan {
	struct pipeline *p;
	struct process *proc;
	uint64_t since; /* when the names of threads were read */
	char exe[4096];
};

/* Notes that a reading that was requested or begun at `time` has ended. A process without mappings
 * has ended, or is about to run another program. */
static void note_reading(struct process *proc, uint64_t time, int err, bool any)
{
	struct followed *f = followed_of(proc);

	f->unread = err || !any;
	if (!f->unread)
		f->read_ns = time;
}

/* ---- at once ---- */

/* The executable is read first, because it gives the process its name. */
static int scan_executable(void *arg, const struct procfs_mapping *m)
{
	struct scan *s = arg;

	if (!strcmp(m->name, s->exe))
		pipeline_map(s->p, s->proc, 0, m);
	return followed_of(s->proc)->paused != 0;
}

static int scan_mapping(void *arg, const struct procfs_mapping *m)
{
	struct scan *s = arg;

	pipeline_map(s->p, s->proc, 0, m);
	return followed_of(s->proc)->paused != 0;
}

static int scan_thread(void *arg, pid_t tid)
{
	struct scan *s = arg;
	char comm[16];

	if (!procfs_comm(s->proc->pid, tid, comm))
		process_thread_comm(s->p->processes, s->proc->pid, tid, comm, s->since);
	return 0;
}

static int scan_now(struct pipeline *p, struct process *proc)
{
	struct scan s = {.p = p, .proc = proc, .since = clock_now()};
	int r;

	procfs_comm(proc->pid, proc->pid, proc->comm);
	if (procfs_exe(proc->pid, s.exe, sizeof(s.exe)) > 0)
		procfs_each_mapping(proc->pid, scan_executable, &s);
	procfs_each_thread(proc->pid, scan_thread, &s);
	r = procfs_each_mapping(proc->pid, scan_mapping, &s);
	p->rescan.due |= r == -ENOMEM;
	note_reading(proc, s.since, r, proc->n);
	return r;
}

/* What is known of this place is there. */
static void set_seen(struct process *proc, const struct procfs_mapping *m)
{
	for (uint32_t i = process_first_above(proc, m->lo);
	     i < proc->n && proc->mappings[i].lo < m->hi; i++)
		proc->mappings[i].seen = true;
}

static int see_mapping(void *arg, const struct procfs_mapping *m)
{
	struct scan *s = arg;

	pipeline_map(s->p, s->proc, 0, m);
	if (followed_of(s->proc)->paused)
		return 1;
	set_seen(s->proc, m);
	return 0;
}

static void clear_seen(struct process *proc)
{
	for (uint32_t i = 0; i < proc->n; i++)
		proc->mappings[i].seen = false;
}

static void reread_now(struct pipeline *p, struct process *proc)
{
	struct scan s = {.p = p, .proc = proc};

	clear_seen(proc);
	if (!procfs_each_mapping(proc->pid, see_mapping, &s))
		process_drop_unseen(proc, p->views.as_of, UINT64_MAX);
}

/* ---- by the reader ---- */

static int request(struct pipeline *p, struct process *proc)
{
	struct followed *f = followed_of(proc);
	int r;

	if (f->reading) {
		f->again = true;
		return 0;
	}
	r = maps_reader_request(p->reader, proc->pid, proc->id);
	f->reading = !r;
	f->awaited = !r && !proc->n;
	if (r) {
		f->unread = true;
		pipeline_retry_later(proc);
	}
	return r;
}

/* Whether a record about this range is newer than the reading, so that the known mapping is
 * kept. */
static bool keep_newer(const struct maps_answer *a, struct process *proc,
		       const struct procfs_mapping *m)
{
	bool newer = false;

	for (uint32_t i = process_first_above(proc, m->lo);
	     i < proc->n && proc->mappings[i].lo < m->hi; i++)
		newer |= proc->mappings[i].since > a->requested_ns;
	if (newer)
		set_seen(proc, m);
	return newer;
}

static void take_mapping(struct pipeline *p, struct process *proc, const struct maps_answer *a,
			 const struct procfs_mapping *m)
{
	if (m->beside)
		return;
	if (keep_newer(a, proc, m)) {
		pipeline_retry_later(proc);
		return;
	}
	pipeline_map(p, proc, 0, m);
	if (!followed_of(proc)->paused)
		set_seen(proc, m);
}

/* Takes names of threads until the time `until`. true: all. */
static bool take_thread_names(struct pipeline *p, struct process *proc, const struct maps_answer *a,
			      uint64_t until)
{
	while (p->taking.named < a->nthreads) {
		const struct maps_thread *th = &a->threads[p->taking.named++];

		process_thread_comm(p->processes, proc->pid, th->tid, th->comm, a->requested_ns);
		if (p->taking.named % SLICE_CHECK == 0 && clock_now() > until)
			return false;
	}
	return true;
}

static void take_name(struct pipeline *p, struct process *proc, const struct maps_answer *a)
{
	const char *name;

	if (*a->comm)
		process_thread_comm(p->processes, proc->pid, proc->pid, a->comm, a->requested_ns);
	name = process_comm(p->processes, proc, proc->pid);
	if (name != proc->comm)
		snprintf(proc->comm, sizeof(proc->comm), "%s", name);
}

/* The executable is taken first, because it gives the process its name. Its path may be too long to
 * be read. */
static void begin_answer(struct pipeline *p, struct process *proc, const struct maps_answer *a)
{
	clear_seen(proc);
	followed_of(proc)->mapped = false;
	take_name(p, proc, a);
	for (uint32_t i = 0; i < a->n && *a->exe && !*proc->name; i++)
		if (!strcmp(a->mappings[i].name, a->exe))
			take_mapping(p, proc, a, &a->mappings[i]);
}

static void end_answer(struct pipeline *p, struct process *proc, const struct maps_answer *a)
{
	struct followed *f = followed_of(proc);
	bool again = f->again;

	note_reading(proc, a->requested_ns, a->err, a->n);
	/* Otherwise mappings that were taken may have been replaced: the view requests another
	 * reading. */
	if (f->rereads && !f->mapped && !f->unread && !f->paused)
		process_drop_unseen(proc, p->views.as_of, a->requested_ns);
	if (f->rereads && !f->mapped && a->err != -ETIMEDOUT)
		kernel_view_was_read(proc, a->requested_ns);
	if (a->err == -ETIMEDOUT)
		pipeline_retry_later(proc);
	p->rescan.due |= a->err == -ENOMEM;
	f->reading = f->again = f->awaited = f->rereads = false;
	p->scanned = true;
	if (a->err == -E2BIG)
		budget_pause(p, proc, clock_now());
	kernel_view_mark_dirty(&p->views, proc);
	if (again && !f->paused)
		request(p, proc);
}

/* Takes names and mappings until the time `until`. true: all. */
static bool take_answer(struct pipeline *p, uint64_t until)
{
	struct taking *t = &p->taking;
	const struct maps_answer *a = t->answer;
	struct process *proc = process_by_id(p->processes, a->id);

	if (!proc)
		return true;
	if (proc->replaced) { /* the names and mappings may be another program's */
		followed_of(proc)->reading = followed_of(proc)->awaited = false;
		note_reading(proc, 0, -ESRCH, false);
		p->scanned = true;
		return true;
	}
	if (!take_thread_names(p, proc, a, until))
		return false;
	if (!t->taken)
		begin_answer(p, proc, a);
	while (t->taken < a->n && a->err != -E2BIG && !followed_of(proc)->paused) {
		take_mapping(p, proc, a, &a->mappings[t->taken++]);
		if (t->taken % SLICE_CHECK == 0 && clock_now() > until)
			return false;
	}
	end_answer(p, proc, a);
	return true;
}

void pipeline_take_mappings(struct pipeline *p)
{
	uint64_t until = clock_now() + SLICE_NS, began = budget_begin();

	while (p->reader && clock_now() < until) {
		if (!p->taking.answer)
			p->taking = (struct taking){.answer = maps_reader_take(p->reader)};
		if (!p->taking.answer || !take_answer(p, until))
			break;
		p->reading.ns += p->taking.answer->cpu_ns;
		maps_answer_free(p->taking.answer);
		p->taking.answer = NULL;
	}
	p->reading.ns += budget_begin() - began;
}

uint32_t pipeline_reading(struct pipeline *p)
{
	uint32_t n = p->reader ? maps_reader_pending(p->reader) : 0;

	if (p->reader && !p->taking.answer)
		p->taking = (struct taking){.answer = maps_reader_take(p->reader)};
	return n + (p->taking.answer != NULL);
}

int pipeline_mappings_fd(const struct pipeline *p)
{
	return p->reader ? maps_reader_fd(p->reader) : -1;
}

/* ---- when ---- */

int pipeline_scan(struct pipeline *p, pid_t pid)
{
	struct process *proc = process_get(p->processes, pid);

	if (!proc) {
		p->rescan.due = true;
		return -ENOMEM;
	}
	followed_of(proc)->scan = p->rescan.number;
	proc->started = true;
	return p->reader ? request(p, proc) : scan_now(p, proc);
}

void pipeline_scan_again(struct pipeline *p)
{
	p->rescan.number++;
}

bool pipeline_read_unmapped(struct pipeline *p, struct process *proc, uint64_t time)
{
	struct followed *f = followed_of(proc);
	uint64_t now = clock_now(), began;
	int r;

	if (f->reading)
		return true;
	if (f->read_ns >= time || proc->ended || proc->replaced || now < f->unmapped.until_ns ||
	    !budget_may_read(p, now))
		return false;
	pipeline_begin_pause(&f->unmapped, MOST_UNMAPPED_NS);
	began = budget_begin();
	r = pipeline_scan(p, proc->pid);
	budget_add_reading(p, began);
	return !r;
}

bool pipeline_is_unread(const struct pipeline *p, const struct followed *f, uint64_t time)
{
	return f->read_ns < time &&
	       (f->reading || f->unread || p->rescan.due || f->scan < p->rescan.number);
}

bool pipeline_reread(struct pipeline *p, struct process *proc)
{
	if (!p->reader) {
		reread_now(p, proc);
		return true;
	}
	if (!followed_of(proc)->reading)
		followed_of(proc)->rereads = !request(p, proc);
	return false;
}

/* Makes all processes be scanned again. Losses come in bursts, so not each loss does; and without
 * memory for it, scans become ever more rare. */
static void raise_number(struct rescan *r, uint64_t now)
{
	if (!r->due || now <= r->time + r->pause_ns)
		return;
	r->due = false;
	r->pause_ns = now < r->time + 2 * r->pause_ns + PIPELINE_PAUSE_NS ? r->pause_ns * 2
									  : PIPELINE_PAUSE_NS;
	if (r->pause_ns > MOST_PAUSE_NS)
		r->pause_ns = MOST_PAUSE_NS;
	r->time = now;
	r->number++;
}

void pipeline_scan_if_due(struct pipeline *p, struct process *proc)
{
	struct followed *f = followed_of(proc);

	pipeline_settle_texts(p, proc);
	raise_number(&p->rescan, p->time);
	if (budget_end_pause(p, proc, clock_now())) {
		uint64_t began = budget_begin();

		pipeline_scan(p, proc->pid);
		budget_add_reading(p, began);
	}
	if (f->paused)
		return;
	if (f->retry_ns && clock_now() >= f->retry_ns) {
		f->retry_ns = 0;
		f->scan = 0;
	}
	if (f->scan < p->rescan.number)
		pipeline_scan(p, proc->pid);
}
