/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/pipeline.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "pipeline/state.h"

#define DEFAULT_WAITING (128u << 20)
#define ENDED_NS 10000000000u  /* an ended process is kept this long for late samples */
#define UNUSED_NS 60000000000u /* an unused file is kept this long, as it may be mapped again */
#define MAX_UNUSED 8192u       /* such files */

/* ---- open and close ---- */

static void on_process_forked(void *arg, const struct process *parent, struct process *child)
{
	const struct followed *from = followed_of((struct process *)parent);

	(void)arg;
	followed_of(child)->scan = from->reading || from->unread ? 0 : from->scan;
	followed_of(child)->texts = from->texts;
	kernel_view_forked(parent, child);
}

static void on_process_freed(void *arg, struct process *proc)
{
	struct pipeline *p = arg;

	claims_forget(p->claims, proc->id);
	made_code_forget(p->made, proc->id);
	kernel_view_freed(&p->views, proc);
}

static bool reread(void *arg, struct process *proc)
{
	return pipeline_reread(arg, proc);
}

static void on_claims(void *arg, struct process *proc)
{
	struct pipeline *p = arg;

	kernel_view_mark_dirty(&p->views, proc);
}

static bool is_selected(void *arg, pid_t pid)
{
	struct pipeline *p = arg;
	struct process *proc = process_find(p->processes, pid);

	if (proc && (followed_of(proc)->paused || followed_of(proc)->awaited))
		return false;
	return !p->o.selected || p->o.selected(p->o.arg, pid);
}

static int open_parts(struct pipeline *p, const struct plugin_set *unwinders)
{
	const struct process_owner owner = {.bytes = sizeof(struct followed),
					    .forked = on_process_forked,
					    .freed = on_process_freed,
					    .arg = p};
	int r = p->o.route ? 0 : collector_new(&p->slots[0]);

	if (!r)
		r = claims_new(&p->claims, unwinders);
	if (!r)
		r = made_code_new(&p->made, p->worker, unwinders, on_claims, p);
	if (!r)
		r = files_new(&p->files, p->worker, unwinders);
	if (!r)
		r = process_table_new(&p->processes, &owner);
	if (!r && p->o.background)
		r = maps_reader_new(&p->reader, PROCESS_MAX_MAPPINGS);
	return r;
}

/* The kernel can then walk such a stack itself. */
static void on_touched(void *arg, uint32_t unwinder, uint32_t file, uint64_t made,
		       const uint32_t *pages, uint32_t n)
{
	const struct pipeline *p = arg;
	const struct touched_table t = {.file = file, .unwinder = unwinder, .made = made};

	bpf_publish_touched(p->o.bpf, &t, pages, n);
}

int pipeline_new(struct pipeline **ret, const struct pipeline_options *o, struct worker *worker,
		 const struct plugin_set *unwinders)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	uint64_t waiting = o->waiting_bytes ? o->waiting_bytes : DEFAULT_WAITING;
	int r;

	if (!p)
		return -ENOMEM;
	p->o = *o;
	p->worker = worker;
	waiting_init(&p->waiting, waiting, o->background ? waiting / 8 : waiting / 4 * 3);
	loss_account_init(&p->account);
	p->handlers.arg = p;
	pipeline_set_sample_handlers(p);
	pipeline_set_record_handlers(p);
	pipeline_set_process_handlers(p);
	r = open_parts(p, unwinders);
	if (r) {
		pipeline_free(p);
		return r;
	}
	p->walker = (struct walker){.unwinders = unwinders,
				    .worker = worker,
				    .claims = p->claims,
				    .made = p->made,
				    .touched = o->bpf ? on_touched : NULL,
				    .arg = p};
	p->views = (struct kernel_views){.bpf = o->bpf,
					 .processes = p->processes,
					 .claims = p->claims,
					 .made = p->made,
					 .files = p->files,
					 .selected = is_selected,
					 .reread = reread,
					 .arg = p};
	claims_set_listener(p->claims, on_claims, p);
	claims_set_opener(p->claims, worker_opener(worker));
	*ret = p;
	return 0;
}

void pipeline_free(struct pipeline *p)
{
	if (!p)
		return;
	maps_reader_free(p->reader);
	maps_answer_free(p->taking.answer);
	waiting_fini(&p->waiting);
	preceding_fini(&p->preceding);
	for (uint32_t i = 0; i < PIPELINE_SLOTS; i++)
		collector_free(p->slots[i]);
	process_table_free(p->processes);
	walk_languages_free(p->walker.languages);
	seen_frames_free(p->walker.seen);
	same_frames_free(p->walker.same);
	walker_forget_file(&p->walker);
	claims_free(p->claims);
	made_code_free(p->made);
	files_free(p->files);
	free(p);
}

const struct perf_stream_handlers *pipeline_handlers(struct pipeline *p)
{
	return &p->handlers;
}

void pipeline_set_threads(struct pipeline *p, bool threads)
{
	p->o.kept.threads = threads;
}

void pipeline_follow_in(struct pipeline *p, uint32_t slot)
{
	p->o.follower = slot + 1;
}

struct files *pipeline_files(struct pipeline *p)
{
	return p->files;
}

/* ---- the kernel's view of processes ---- */

void pipeline_update(struct pipeline *p, uint64_t as_of)
{
	files_retry(p->files, clock_now());
	if (p->reader)
		maps_reader_abandon_stuck(p->reader, clock_now());
	made_code_update(p->made, false);
	pipeline_settle_all_texts(p);
	kernel_views_update(&p->views, as_of);
}

void pipeline_update_all(struct pipeline *p)
{
	files_retry(p->files, clock_now());
	pipeline_settle_all_texts(p);
	kernel_views_update_all(&p->views);
}

bool pipeline_update_until(struct pipeline *p, uint64_t until)
{
	files_retry(p->files, clock_now());
	pipeline_settle_all_texts(p);
	return kernel_views_update_until(&p->views, until);
}

const struct file *pipeline_program(const struct pipeline *p, pid_t pid)
{
	const struct process *proc = process_find(p->processes, pid);

	for (uint32_t i = 0; proc && i < proc->n; i++)
		if (proc->mappings[i].file && proc->mappings[i].file->executable)
			return proc->mappings[i].file;
	return NULL;
}

bool pipeline_may_start(struct pipeline *p, pid_t pid)
{
	const struct file *f = pipeline_program(p, pid);

	return !f || f->state != FILE_READY || f->inspection->flags & INSPECTION_STARTS;
}

bool pipeline_has_unpublished(const struct pipeline *p)
{
	return kernel_views_are_unpublished(&p->views);
}

uint64_t pipeline_new_code(const struct pipeline *p)
{
	return p->stats.new_code;
}

bool pipeline_is_behind(const struct pipeline *p)
{
	return p->behind;
}

bool pipeline_is_pending(const struct pipeline *p)
{
	return p->waiting.first || p->files->retry_ns || kernel_views_are_pending(&p->views);
}

void pipeline_selection_changed(struct pipeline *p, pid_t pid)
{
	struct process *proc = process_find(p->processes, pid);

	if (proc)
		kernel_view_mark_dirty(&p->views, proc);
}

/* ---- collectors ---- */

struct collector *pipeline_set_collector(struct pipeline *p, uint32_t slot, struct collector *c)
{
	struct collector *old = p->slots[slot];

	if (!c)
		waiting_drop_slot(&p->waiting, slot);
	p->slots[slot] = c;
	return old;
}

struct collector *pipeline_collector(const struct pipeline *p, uint32_t slot)
{
	return p->slots[slot];
}

/* ---- sweeping ---- */

/* Marks the files of a collector's frames in used[], and the processes of its frames in the
 * claims. */
static void mark_frames(const struct pipeline *p, const struct collector *c, bool *used)
{
	for (uint32_t i = 1; c && i < c->frames.n; i++) {
		const struct walk_frame f = frame_set_at(&c->frames, i);

		used[f.file] = true;
		if (f.process)
			claims_mark(p->claims, f.process);
	}
}

static void mark_mappings(void *arg, struct process *proc)
{
	bool *used = arg;

	for (uint32_t i = 0; i < proc->n; i++) {
		if (proc->mappings[i].file)
			used[proc->mappings[i].file->id] = true;
		if (proc->mappings[i].text.file)
			used[proc->mappings[i].text.file->id] = true;
	}
	for (uint32_t i = 0; i < proc->npast && i < PROCESS_PAST; i++)
		if (proc->past[i].file)
			used[proc->past[i].file->id] = true;
}

/* Whether samples of the process wait, or frames in its memory are still to be symbolized. */
static bool is_needed(void *arg, struct process *proc)
{
	struct pipeline *p = arg;

	return claims_is_marked(p->claims, proc->id) || followed_of(proc)->waiting_bytes;
}

/* Drops files that were unused for a while, or all unused files if there are very many. */
static void drop_files(struct pipeline *p, const struct pipeline_sweep *o, const bool *used,
		       uint64_t now)
{
	uint32_t unused = 0;

	for (uint32_t i = 1; i < p->files->n; i++) {
		struct file *f = p->files->all[i];

		if (!f)
			continue;
		f->unmapped = !used[i];
		if (used[i])
			f->used_ns = now;
		unused += !used[i];
	}
	for (uint32_t i = 1; i < p->files->n; i++) {
		const struct file *f = p->files->all[i];

		if (!f || used[i] || f->uses)
			continue;
		if (unused <= MAX_UNUSED && now - f->used_ns < UNUSED_NS)
			continue;
		o->forget(o->arg, i);
		walker_forget_file(&p->walker);
		bpf_publish_forget_file(p->o.bpf, i);
		files_drop(p->files, i);
	}
	files_trim(p->files);
}

void pipeline_sweep(struct pipeline *p, const struct pipeline_sweep *o)
{
	bool *used = calloc(p->files->n, sizeof(*used));
	uint64_t now = clock_now();

	if (!used)
		return;
	claims_unmark(p->claims);
	for (uint32_t i = 0; i < PIPELINE_SLOTS; i++)
		mark_frames(p, p->slots[i], used);
	for (uint32_t i = 0; i < o->n; i++)
		mark_frames(p, o->keep[i], used);
	process_sweep(p->processes, now > ENDED_NS ? now - ENDED_NS : 0, is_needed, p);
	process_each(p->processes, mark_mappings, used);
	bpf_publish_mark_files(p->o.bpf, used, p->files->n);
	drop_files(p, o, used, now);
	free(used);
}

/* ---- names of removed code ---- */

static bool use_waiting(void *arg, struct waiting *w)
{
	const struct sample_continuations *c = &w->sample.continuations;

	for (uint32_t i = 0; i < w->walk.n; i++)
		forgetting_use(arg, &w->walk.frames[i]);
	for (uint32_t k = 0; k < c->n; k++)
		for (uint32_t i = 0; i < c->at[k].n; i++)
			forgetting_use(arg, &c->at[k].frames[i]);
	return false;
}

static void use_frames(struct claims *claims, const struct collector *c)
{
	for (uint32_t i = 1; c && i < c->frames.n; i++) {
		const struct walk_frame f = frame_set_at(&c->frames, i);

		forgetting_use(claims, &f);
	}
}

void pipeline_forget_names(struct pipeline *p, const struct collector *const *keep, uint32_t n)
{
	uint64_t as_of = p->views.as_of;

	if (!p->o.bpf || !forgetting_is_time(p->claims, clock_now()))
		return;
	if (forgetting_may_end(p->claims, as_of)) {
		for (uint32_t i = 0; i < PIPELINE_SLOTS; i++)
			use_frames(p->claims, p->slots[i]);
		for (uint32_t i = 0; i < n; i++)
			use_frames(p->claims, keep[i]);
		waiting_each(&p->waiting, use_waiting, p->claims);
		same_frames_each(p->walker.same, forgetting_use, p->claims);
		forgetting_end(p->claims, as_of);
	}
	if (!forgetting_begin(p->claims))
		return;
	walk_languages_forget(p->walker.languages);
	forgetting_passed(p->claims, bpf_publish_forget_sent(p->o.bpf, forgetting_of, p->claims)
					     ? 0
					     : clock_now());
}

/* ---- statistics ---- */

void pipeline_set_code_limit(struct pipeline *p, uint64_t bytes)
{
	claims_set_limit(p->claims, bytes);
}

void pipeline_stats(struct pipeline *p, struct pipeline_stats *s)
{
	*s = p->stats;
	s->account = &p->account;
	s->helped = p->walker.helped;
	s->waiting = waiting_count(&p->waiting);
	s->waiting_bytes = p->waiting.bytes;
	s->code_bytes = claims_bytes(p->claims);
	made_code_counts(p->made, &s->made);
	s->processes = process_count(p->processes);
	s->mappings = process_mappings(p->processes);
	s->unreadable = p->files->unreadable;
	for (uint32_t i = 1; i < p->files->n; i++) {
		s->files += !!p->files->all[i];
		s->refused += p->files->all[i] && p->files->all[i]->state == FILE_REFUSED;
	}
}
