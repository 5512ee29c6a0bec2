/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/internal/kernel_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"

/*
 * The states of a process in the kernel's view. In PUBLISHED the kernel unwinds its stacks; in
 * CHANGED only stacks that do not pass through a range in which the process got new memory. All
 * other stacks are copied to user space.
 *
 *          +--------+   publish    +-----------+   change   +---------+
 *   -----> | ABSENT |------------->| PUBLISHED |----------->| CHANGED |
 *          +--------+              +-----------+            +---------+
 *            |    ^                  ^    ^    |  confirm        |
 *    no room |    | withdraw         |    |    +<----------------+
 *            v    | (from any state) |    |
 *          +---------+    publish    |    | publish (any state)
 *          | NO_ROOM |---------------+    |
 *          +---------+               -----+
 *
 *   publish   In any state, if the view is dirty: bpf_publish() writes the mappings to map chunks.
 *             In NO_ROOM not before RETRY_NS after the last attempt.
 *   no room   bpf_publish() failed with -ENOSPC, in any state.
 *   change    The kernel gave out memory where it knows code, and noted it in these mappings. It
 *             does not unwind over them from then on; the next kernel_views_update() sees it.
 *   confirm   bpf_publish_confirm(): all records up to the change have been read, and a mapping was
 *             replaced and the view published since, or /proc was read and nothing differed.
 *   withdraw  bpf_publish_withdraw(): exec, exit, the pid is used again, the process is freed or
 *             not selected, publishing failed for another reason than room, or another process,
 *             which is sampled, has no room and no view was without samples longer.
 *
 * What is published is as old as the records that were read. So a stack can be unwound over code
 * that was replaced since: the record about it is read before the stack's own, which is then
 * discarded (kernel_view_is_outdated()). Code that was not published when it was replaced discards
 * none.
 *
 * A view becomes dirty when a sample arrives in ABSENT or NO_ROOM, and in any state when a mapping
 * is added, a file's table is made or renewed, code without a file is first stepped, a language
 * unwinder's program is loaded, claims differ, or the selection of the process may have changed.
 * The next kernel_views_update() publishes all dirty views.
 *
 * Invariants; check() and set_state() assert them at each transition:
 *
 *   1. In ABSENT and NO_ROOM nothing is published: no map chunk belongs to the view.
 *   2. In PUBLISHED and CHANGED the kernel's copy belongs to this process, is complete (its version
 *      is even) and has the version of the view.
 *   3. If a view is dirty, kernel_views.dirty is set, so the next update finds it.
 *   4. In NO_ROOM, and only there, no_room says when publishing failed.
 *   5. A view was covered in a version that is not newer than the version of any later record: what
 *      is published after that has a higher version (versions rise over all processes).
 */

#define RETRY_NS 1000000000u   /* between searches for room */
#define IDLE_NS 2000000000u    /* without a sample, after which a view may give room to others */
#define RECORD_NS 50000000u    /* from the placement of a mapping to the reading of its record */
#define COVERED_NS 1000000000u /* the longest time from a sample to the reading of its stack */
#define POLL_NS 10000000       /* of programs that are being loaded */
#define REREAD_NS 1000000000u  /* between readings of a process's mappings */

static bool is_published(const struct kernel_view *v)
{
	return v->state >= VIEW_PUBLISHED;
}

static void check(const struct kernel_views *vs, const struct kernel_view *v)
{
	fusee_assert(is_published(v) == (v->published.chunk != 0));
	fusee_assert(!is_published(v) || bpf_publish_holds(vs->bpf, &v->published));
	fusee_assert(!v->dirty || vs->dirty);
	fusee_assert((v->state == VIEW_NO_ROOM) == (v->no_room != 0));
	fusee_assert(!is_published(v) || v->covered_version <= v->published.version);
}

static void set_state(struct kernel_views *vs, struct kernel_view *v, enum kernel_view_state state)
{
	v->state = state;
	if (state != VIEW_NO_ROOM)
		v->no_room = 0;
	check(vs, v);
}

/* ---- events ---- */

void kernel_view_mark_dirty(struct kernel_views *vs, struct process *proc)
{
	if (vs->bpf)
		kernel_view_of(proc)->dirty = vs->dirty = true;
}

void kernel_view_sampled(struct kernel_views *vs, struct process *proc)
{
	struct kernel_view *v = kernel_view_of(proc);

	v->sampled = vs->as_of ? vs->as_of : 1;
	if (!is_published(v) && !proc->ended)
		kernel_view_mark_dirty(vs, proc);
}

/* Notes a file whose code was covered; 0: several files. */
static void add_covered(struct kernel_view *v, uint32_t file)
{
	for (uint32_t i = 0; i < v->ncovered && i < KERNEL_VIEW_COVERED; i++)
		if (v->covered_files[i] == file)
			return;
	if (!file)
		v->ncovered = KERNEL_VIEW_COVERED;
	else if (v->ncovered < KERNEL_VIEW_COVERED)
		v->covered_files[v->ncovered] = file;
	if (v->ncovered <= KERNEL_VIEW_COVERED)
		v->ncovered++;
}

/* Can a stack be unwound over code that this new mapping replaces? Not if the view has had this
 * version since before then (no walk over an older version lasts so long), and has no code
 * there: V8 maps memory for code, and maps its builtins into it at once. */
static bool replaces_published(const struct kernel_views *vs, const struct kernel_view *v,
			       const struct process_mapping *to)
{
	return !is_published(v) || to->since <= v->written ||
	       bpf_publish_has(vs->bpf, &v->published, to->lo, to->hi);
}

void kernel_view_covered(struct kernel_views *vs, struct process *proc,
			 const struct process_mapping *to, uint32_t file)
{
	struct kernel_view *v = kernel_view_of(proc);

	if (!vs->bpf)
		return;
	if (!replaces_published(vs, v, to)) {
		if (!v->covered) /* a walk over its parent's may not be over */
			v->covered = to->since;
		return;
	}
	/* Until then stacks of earlier versions may still be read. */
	if (!v->covered ||
	    (to->since > v->covered + COVERED_NS && v->covered_version != v->published.version))
		v->ncovered = 0;
	add_covered(v, file);
	v->covered = to->since ? to->since : 1;
	v->covered_version = v->published.version;
}

static bool has_covered_code(const struct kernel_view *v, const struct walk *w)
{
	if (v->ncovered > KERNEL_VIEW_COVERED)
		return true;
	for (uint32_t i = 0; i < w->n; i++) {
		if (w->frames[i].kind == FRAME_OMITTED) /* omitted frames may be in any file */
			return v->ncovered;
		for (uint32_t k = 0; k < v->ncovered; k++)
			if (w->frames[i].file == v->covered_files[k])
				return true;
	}
	return false;
}

bool kernel_view_is_outdated(struct process *proc, uint64_t time, uint64_t process,
			     uint32_t version, const struct walk *w)
{
	const struct kernel_view *v = kernel_view_of(proc);

	if (!v->covered || v->covered > time)
		return false;
	if (process != proc->id) /* unwound over its parent's mappings */
		return true;
	return version <= v->covered_version && has_covered_code(v, w);
}

/* Makes room for another entry. false: no memory. */
static bool reserve_anonymous(struct kernel_view *v)
{
	uint32_t cap = v->anonymous_cap ? v->anonymous_cap * 2 : 8;
	struct anonymous_code *grown;

	if (v->nanonymous < v->anonymous_cap)
		return true;
	grown = realloc(v->anonymous, cap * sizeof(*grown));
	if (!grown)
		return false;
	v->anonymous = grown;
	v->anonymous_cap = cap;
	return true;
}

/* Removes entries whose memory the process does not map any more. */
static void drop_unmapped(struct kernel_view *v, struct process *proc)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < v->nanonymous; i++) {
		const struct process_mapping *m = process_mapping(proc, v->anonymous[i].lo);

		if (m && !m->file && m->lo == v->anonymous[i].lo &&
		    m->since == v->anonymous[i].since)
			v->anonymous[kept++] = v->anonymous[i];
	}
	v->nanonymous = kept;
}

void kernel_view_stepped(struct kernel_views *vs, struct process *proc,
			 const struct process_mapping *m)
{
	struct kernel_view *v = kernel_view_of(proc);

	if (!vs->bpf)
		return;
	for (uint32_t i = 0; i < v->nanonymous; i++)
		if (v->anonymous[i].lo == m->lo && v->anonymous[i].since == m->since)
			return;
	if (v->nanonymous == v->anonymous_cap)
		drop_unmapped(v, proc);
	if (!reserve_anonymous(v))
		return;
	v->anonymous[v->nanonymous++] = (struct anonymous_code){m->lo, m->since};
	kernel_view_mark_dirty(vs, proc);
}

void kernel_view_was_read(struct process *proc, uint64_t time)
{
	kernel_view_of(proc)->read = time;
}

void kernel_view_withdraw(struct kernel_views *vs, struct process *proc)
{
	struct kernel_view *v = kernel_view_of(proc);

	if (!vs->bpf)
		return;
	bpf_publish_withdraw(vs->bpf, &v->published);
	set_state(vs, v, VIEW_ABSENT);
}

void kernel_view_forked(const struct process *parent, struct process *child)
{
	const struct kernel_view *from = kernel_view_of((struct process *)parent);
	struct kernel_view *to = kernel_view_of(child);

	if (!from->nanonymous)
		return;
	to->anonymous = malloc(from->nanonymous * sizeof(*to->anonymous));
	if (!to->anonymous)
		return; /* user space steps it once more */
	memcpy(to->anonymous, from->anonymous, from->nanonymous * sizeof(*to->anonymous));
	to->nanonymous = to->anonymous_cap = from->nanonymous;
}

void kernel_view_freed(struct kernel_views *vs, struct process *proc)
{
	kernel_view_withdraw(vs, proc);
	free(kernel_view_of(proc)->anonymous);
}

/* ---- updates ---- */

static uint32_t count_ready(const struct process *proc)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < proc->n; i++)
		n += proc->mappings[i].file && proc->mappings[i].file->state == FILE_READY;
	return n;
}

static bool has_renewed(const struct process *proc)
{
	for (uint32_t i = 0; i < proc->n; i++)
		if (proc->mappings[i].file && proc->mappings[i].file->renewed)
			return true;
	return false;
}

/* Reports to unwinders that a library of theirs is mapped, so that they can claim its ranges. */
static void report_libraries(struct kernel_views *vs, struct process *proc)
{
	uint32_t unwinders = vs->claims && vs->files->unwinders ? vs->files->unwinders->n : 0;

	for (uint32_t i = 0; i < proc->n; i++)
		for (uint32_t u = 0; u < unwinders && u < FILES_MAX_UNWINDERS; u++) {
			struct process_mapping *m = &proc->mappings[i];
			const struct inspection_slab *slab = m->file ? m->file->slabs[u] : NULL;

			if (slab && m->file->state == FILE_READY && files_base(m))
				claims_library(vs->claims, proc, m, u);
		}
}

static void publish(struct kernel_views *vs, struct process *proc)
{
	struct kernel_view *v = kernel_view_of(proc);
	const struct publication what = {.process = proc,
					 .claims = vs->claims,
					 .made = vs->made,
					 .anonymous = v->anonymous,
					 .nanonymous = v->nanonymous};
	int r;

	report_libraries(vs, proc);
	v->dirty = false; /* the new claims are published now */
	r = bpf_publish(vs->bpf, &v->published, &what);
	v->written = clock_now();

	if (r == -ENOSPC) {
		vs->no_room = true;
		v->no_room = vs->as_of ? vs->as_of : 1;
	}
	v->ready = count_ready(proc);
	set_state(vs, v, !r ? VIEW_PUBLISHED : r == -ENOSPC ? VIEW_NO_ROOM : VIEW_ABSENT);
	if (r)
		log_debug("pid %d: its stacks are unwound in user space: %s", (int)proc->pid,
			  strerror(-r));
}

static void update(void *arg, struct process *proc)
{
	struct kernel_views *vs = arg;
	struct kernel_view *v = kernel_view_of(proc);

	if (!v->dirty)
		return;
	v->dirty = false;
	if (proc->ended || proc->replaced)
		return;
	if (vs->selected && !vs->selected(vs->arg, proc->pid))
		kernel_view_withdraw(vs, proc);
	else if (v->state != VIEW_NO_ROOM || vs->as_of >= v->no_room + RETRY_NS)
		publish(vs, proc); /* not at each sample of a process with too many mappings */
}

/* After an answer of the worker: whether a file that the process maps became ready, or was
 * renewed. */
static void find_ready(void *arg, struct process *proc)
{
	const struct kernel_view *v = kernel_view_of(proc);

	if (is_published(v) &&
	    (v->published.lacks_table || v->ready != count_ready(proc) || has_renewed(proc)))
		kernel_view_mark_dirty(arg, proc);
}

static void find_awaiting(void *arg, struct process *proc)
{
	if (kernel_view_of(proc)->published.awaits_program)
		kernel_view_mark_dirty(arg, proc);
}

/* The process got memory at time `when` where it had code. */
static void on_unconfirmed(void *arg, struct published *p, uint64_t when)
{
	struct kernel_views *vs = arg;
	struct process *proc = p->process;
	struct kernel_view *v = kernel_view_of(proc);

	if (v->state != VIEW_CHANGED)
		set_state(vs, v, VIEW_CHANGED);
	if (vs->as_of < when || v->dirty)
		return;
	/* If new code is mapped there, its record is read soon. Otherwise /proc says what is
	 * mapped. */
	if (v->covered < when && v->read < when + RECORD_NS) {
		if (vs->as_of < when + RECORD_NS || vs->as_of < v->reread + REREAD_NS)
			return;
		v->reread = vs->as_of;
		if (!vs->reread(vs->arg, proc))
			return;
		v->dirty = false;
		publish(vs, proc);
	}
	if (!is_published(v))
		return;
	bpf_publish_confirm(vs->bpf, p, when);
	set_state(vs, v, VIEW_PUBLISHED);
}

static void withdraw_ended(void *arg, struct process *proc)
{
	if (proc->ended)
		kernel_view_withdraw(arg, proc);
}

/* Views without a sample in the last time. */
struct idle_views {
	const struct kernel_views *vs;
	struct process *longest; /* NULL: there is none */
	uint32_t chunks;         /* of all */
};

static void find_idle(void *arg, struct process *proc)
{
	const struct kernel_view *v = kernel_view_of(proc);
	struct idle_views *idle = arg;

	if (!is_published(v) || v->sampled + IDLE_NS > idle->vs->as_of)
		return;
	idle->chunks += bpf_publish_chunks(idle->vs->bpf, &v->published);
	if (!idle->longest || v->sampled < kernel_view_of(idle->longest)->sampled)
		idle->longest = proc;
}

/* Withdraws idle views until so many chunks are free. false: there are not so many, and nothing is
 * withdrawn. */
static bool free_chunks(struct kernel_views *vs, uint32_t chunks)
{
	while (bpf_publish_free_chunks(vs->bpf) < chunks) {
		struct idle_views idle = {.vs = vs};

		process_each(vs->processes, find_idle, &idle);
		if (bpf_publish_free_chunks(vs->bpf) + idle.chunks < chunks)
			return false;
		kernel_view_withdraw(vs, idle.longest);
	}
	return true;
}

/* A mapping may need several entries. */
static void publish_sampled(void *arg, struct process *proc)
{
	const struct kernel_view *v = kernel_view_of(proc);
	uint32_t chunks = proc->n / CHUNK_MAPPINGS + 1;
	struct kernel_views *vs = arg;

	if (proc->ended || proc->replaced || v->sampled + IDLE_NS <= vs->as_of)
		return;
	for (int i = 0; i < 3 && v->state == VIEW_NO_ROOM && free_chunks(vs, chunks << i); i++)
		publish(vs, proc);
}

/* Searches for processes that need their chunks less than those that have none: ended processes,
 * whose exit records were lost, and those that are not sampled. */
static void make_room(struct kernel_views *vs)
{
	vs->no_room = false;
	if (vs->as_of < vs->tidied + RETRY_NS)
		return;
	vs->tidied = vs->as_of;
	process_sweep(vs->processes, 0, NULL, NULL);
	process_each(vs->processes, withdraw_ended, vs);
	process_each(vs->processes, publish_sampled, vs);
}

void kernel_views_update(struct kernel_views *vs, uint64_t as_of)
{
	if (!vs->bpf)
		return;
	vs->as_of = as_of;
	bpf_publish_each_unconfirmed(vs->bpf, on_unconfirmed, vs);
	if (vs->answers != vs->files->answers) {
		vs->answers = vs->files->answers;
		process_each(vs->processes, find_ready, vs);
		files_clear_renewed(vs->files);
	}
	if (bpf_publish_poll_programs(vs->bpf))
		process_each(vs->processes, find_awaiting, vs);
	if (vs->dirty)
		process_each(vs->processes, update, vs);
	vs->dirty = false;
	if (vs->no_room)
		make_room(vs);
}

void kernel_views_update_all(struct kernel_views *vs)
{
	kernel_views_update(vs, clock_now());
	if (!vs->bpf || !bpf_publish_wait_programs(vs->bpf))
		return;
	process_each(vs->processes, find_awaiting, vs);
	kernel_views_update(vs, clock_now());
}

static void find_any_awaiting(void *arg, struct process *proc)
{
	*(bool *)arg |= kernel_view_of(proc)->published.awaits_program;
}

static bool are_awaiting(const struct kernel_views *vs)
{
	bool any = false;

	process_each(vs->processes, find_any_awaiting, &any);
	return any;
}

bool kernel_views_update_until(struct kernel_views *vs, uint64_t until)
{
	const struct timespec pause = {0, POLL_NS};

	kernel_views_update(vs, clock_now());
	while (vs->bpf && are_awaiting(vs)) {
		if (clock_now() >= until)
			return false;
		nanosleep(&pause, NULL);
		kernel_views_update(vs, clock_now());
	}
	return true;
}

bool kernel_views_are_unpublished(const struct kernel_views *vs)
{
	return vs->bpf && (vs->dirty || vs->answers != vs->files->answers);
}

bool kernel_views_are_pending(const struct kernel_views *vs)
{
	return !vs->bpf || vs->no_room || kernel_views_are_unpublished(vs) ||
	       bpf_publish_is_pending(vs->bpf);
}
