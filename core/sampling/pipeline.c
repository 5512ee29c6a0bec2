/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/pipeline.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../bpf/records.h"
#include "base/clock.h"
#include "base/log.h"
#include "bpf/sampler.h"
#include "sampling/pipeline_state.h"

#define SCAN_NS 1000000000ull /* after losses /proc is read again, at most so often */
#define SCAN_MOST_NS (16 * SCAN_NS)

static void forget_in_kernel(struct pipeline *p, struct process *proc)
{
	if (p->bpf)
		bpf_sampler_forget(p->bpf, proc);
}

/* ---- samples ---- */

/* Why a language unwinder stopped the walk in the kernel, so that its frames are missing from the
 * one in user space; NULL: none did. */
static const char *stop_reason(const struct pipeline *p, struct walk_stop stop)
{
	const struct plugin_set *set = p->walker.unwinders;

	if (!stop.unwinder || stop.unwinder > set->n)
		return NULL;
	switch (stop.reason) {
	case WALK_FAULT_ROOM:
	case WALK_FAULT_ENDLESS:
		return loss_text(LOSS_ENDLESS);
	case WALK_FAULT_BACKWARDS:
		return loss_text(LOSS_BACKWARDS);
	default:
		return walk_reason(set->instances[stop.unwinder - 1]->descriptor->ops, stop.reason);
	}
}

/* Adds the walked sample. Each sample is complete or has one reason. */
static void add(struct pipeline *p, struct process *proc, const struct sample *s,
		const struct pipeline_route *route, const char *comm)
{
	const char *text = p->walk.reason ? p->walk.reason : stop_reason(p, s->stop);
	uint32_t reason = text ? loss_account_reason(&p->account, text) : LOSS_NONE;
	uint64_t weight = route->weight_ns ? route->weight_ns : s->period;

	for (uint64_t left = route->slots; left; left &= left - 1) {
		struct collector *c = p->slots[__builtin_ctzll(left)];

		if (c && collector_add(c, proc, route->set, p->o.threads ? (uint32_t)s->tid : 0,
				       comm, &p->walk, reason, weight))
			reason = LOSS_NO_MEMORY;
	}
	p->stats.weight_ns += weight;
	loss_account_add(&p->account, reason, 1);
	p->stats.guessed += !reason && p->walk.guessed;
	p->stats.passed += !reason && p->walk.passed;
	p->stats.kernel_only += !reason && !s->abi;
}

/* A sample for which there is no memory. */
static void add_nothing(struct pipeline *p, uint64_t period)
{
	p->stats.weight_ns += period;
	loss_account_add(&p->account, LOSS_NO_MEMORY, 1);
}

/* Of all that may wait one process has an eighth at most, and half comes in a second at most: one
 * that maps new files all the time must not take the others' room. */
static bool may_keep(struct pipeline *p, const struct process *proc, uint64_t time, uint64_t bytes)
{
	if (time - p->kept_since > 1000000000u) {
		p->kept_since = time;
		p->kept = 0;
	}
	return p->waiting_bytes + bytes <= p->o.waiting_bytes &&
	       proc->waiting + bytes <= p->o.waiting_bytes / 8 &&
	       p->kept + bytes <= p->o.waiting_bytes / 2;
}

/* Keeps a copy of a sample until its table is there. false: no room. */
static bool keep(struct pipeline *p, struct process *proc, const struct sample *s,
		 const struct pipeline_route *route)
{
	uint64_t bytes = sizeof(struct waiting) + s->nkernel * 8ull + s->stack_len;
	struct waiting *w;

	if (!may_keep(p, proc, s->time, bytes))
		return false;
	/* Somebody's stack: not for a core dump of ours. */
	w = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w == MAP_FAILED)
		return false;
	madvise(w, bytes, MADV_DONTDUMP);
	*w = (struct waiting){.process = proc, .route = *route, .sample = *s, .bytes = bytes};
	snprintf(w->comm, sizeof(w->comm), "%s", process_comm(p->processes, proc, s->tid));
	w->sample.kernel = (uint64_t *)(w + 1);
	w->sample.stack = (char *)(w + 1) + s->nkernel * 8ull;
	if (s->nkernel)
		memcpy(w + 1, s->kernel, s->nkernel * 8ull);
	if (s->stack_len)
		memcpy((char *)(w + 1) + s->nkernel * 8ull, s->stack, s->stack_len);
	*p->last = w;
	p->last = &w->next;
	p->waiting_bytes += bytes;
	p->kept += bytes;
	proc->waiting += bytes;
	return true;
}

/* Code without a file that a walk in user space met, and that the kernel may step too. */
static void note_plain(struct pipeline *p, struct process *proc)
{
	for (uint32_t i = 0; i < p->walk.n; i++) {
		const struct walk_frame *f = &p->walk.frames[i];
		struct process_mapping *m = f->kind == FRAME_ANONYMOUS
						    ? process_mapping(proc, f->addr)
						    : NULL;

		if (!m || m->file || m->plain || !claims_were_asked(p->claims, proc->id))
			continue;
		m->plain = true;
		set_stale(p, proc);
	}
}

/* After a loss /proc is read again, at a process's next sample. Not at each loss of a bad moment,
 * and ever more rarely while there is no memory for it. */
static void scan_if_due(struct pipeline *p, struct process *proc)
{
	if (p->missed && p->time > p->scan_time + p->scan_pause) {
		p->missed = false;
		p->scan_pause = p->time < p->scan_time + 2 * p->scan_pause + SCAN_NS
					? p->scan_pause * 2
					: SCAN_NS;
		if (p->scan_pause > SCAN_MOST_NS)
			p->scan_pause = SCAN_MOST_NS;
		p->scan_time = p->time;
		p->scan++;
	}
	if (proc->scanned < p->scan)
		pipeline_scan(p, proc->pid);
}

/* The main thread's end looks like the process's. A thread that runs says otherwise, but not one of
 * which the end was told: it is still on its way out. */
static void take_back(struct process *proc, pid_t tid)
{
	if (tid == proc->gone)
		return;
	proc->ended = 0;
	proc->headless = true;
}

/* ---- stacks that the kernel walked ---- */

#define MAX_FRAMES (WALK_MAX_FRAMES + 128u) /* of struct walk */

struct wanted {
	uint64_t id;
	struct process *found;
};

static void find_life(void *arg, struct process *proc)
{
	struct wanted *w = arg;

	if (proc->id == w->id)
		w->found = proc;
}

/* Was it walked over the mappings of this life, or of one that it was forked from? */
static bool is_life(const struct process *proc, uint64_t id)
{
	return proc->id == id || proc->parents[0] == id || proc->parents[1] == id;
}

/* Code that was covered by the record's time may have been taken for what was there before, if the
 * record's version of the mappings is older. */
static bool is_outdated(const struct process *proc, uint64_t time, const struct record_stack *r)
{
	if (!proc->sampler.covered || proc->sampler.covered > time)
		return false;
	return r->tick.head.process != proc->id || r->version <= proc->sampler.covered_version;
}

/* The process over whose mappings the stack was unwound: this process, or the process that it was
 * forked from. NULL: it is forgotten. */
static struct process *life_of(struct pipeline *p, struct process *proc, uint64_t id)
{
	struct wanted w = {.id = id, .found = proc->id == id ? proc : NULL};

	if (!w.found)
		process_each(p->processes, find_life, &w);
	return w.found;
}

/* Reads a frame in memory without a file. *claimed counts frames that a language unwinder claims to
 * step. false: no such memory was mapped at that time. */
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

static struct walk_frame pushed_frame(struct pipeline *p, struct process *proc,
				      const struct record_stack *r, uint32_t i)
{
	uint32_t unwinder = (uint32_t)(r->words[i] & FRAME_MAX_ADDRESS);
	struct process *life = life_of(p, proc, r->tick.head.process);

	if (life)
		claims_expect(p->claims, life, unwinder);
	return (struct walk_frame){.kind = FRAME_PUSHED,
				   .addr = r->words[i + 1],
				   .extra = r->words[i + 2],
				   .process = r->tick.head.process,
				   .generation = unwinder};
}

static struct walk_frame file_frame(uint64_t word)
{
	return (struct walk_frame){
		.kind = FRAME_FILE,
		.file = (uint32_t)((word & FRAME_MAX_ADDRESS) >> FRAME_FILE_SHIFT),
		.guessed = !!(word & FRAME_GUESSED),
		.addr = word & FRAME_MAX_OFFSET};
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

	switch ((enum frame_kind)(word >> FRAME_KIND_SHIFT)) {
	case FRAME_FILE:
		*f = file_frame(word);
		p->walk.guessed += f->guessed;
		return 1;
	case FRAME_ANONYMOUS:
		if (!read_anonymous(p, proc, time, word, f, claimed))
			p->walk.reason = loss_text(LOSS_CODE_CHANGED);
		p->walk.guessed += f->guessed;
		return 1;
	case FRAME_PUSHED:
		if (record_words(r) - i < FRAME_PUSHED_WORDS)
			break;
		*f = pushed_frame(p, proc, r, i);
		return FRAME_PUSHED_WORDS;
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
	/* The kernel knew of other claims than we do now; but a child runs its parent's code. */
	if (claimed != r->claimed && r->tick.head.process == proc->id) {
		set_stale(p, proc);
		p->walk.reason = loss_text(LOSS_CODE_CHANGED);
	}
}

#define EMISSION_HEAD 16u /* key, kind, bytes */

static void on_emission(void *arg, uint64_t time, const struct record_emission *r)
{
	struct pipeline *p = arg;
	const char *at = (const char *)(r + 1), *end = at + r->bytes;
	struct process *proc = process_find(p->processes, (pid_t)r->head.pid);

	proc = proc ? life_of(p, proc, r->head.process) : NULL;
	p->stats.lost_names += !proc;
	while (proc && end - at >= EMISSION_HEAD) {
		struct fusee_emission e = {.size = sizeof(e), .time_ns = time};
		uint32_t len;

		memcpy(&e.key, at, 8);
		memcpy(&e.kind, at + 8, 4);
		memcpy(&len, at + 12, 4);
		at += EMISSION_HEAD;
		if (len > end - at)
			return;
		e.bytes = (struct fusee_str){at, len};
		if (claims_record(p->claims, proc, r->unwinder, &e) < 0)
			p->stats.lost_names++;
		at += (len + 7) & ~7ull;
	}
}

static struct sample sample_of(const struct record_tick *t, uint64_t time, uint32_t cpu)
{
	return (struct sample){.pid = (pid_t)t->head.pid,
			       .tid = (pid_t)t->head.tid,
			       .cpu = cpu,
			       .time = time,
			       .period = t->period,
			       .abi = 2};
}

/* The process of a sample that is routed; NULL: the sample is accounted for. */
static struct process *begin_sample(struct pipeline *p, const struct sample *s,
				    struct pipeline_route *route)
{
	struct process *proc;

	*route = (struct pipeline_route){.slots = 1};
	if (p->o.route && !p->o.route(p->o.arg, s, route)) {
		p->stats.unwanted++;
		return NULL;
	}
	p->time = s->time;
	proc = process_get(p->processes, s->pid);
	if (!proc) {
		add_nothing(p, s->period);
		return NULL;
	}
	if (proc->ended)
		take_back(proc, s->tid);
	if (!proc->sampler.chunk && !proc->ended)
		set_stale(p, proc); /* the kernel does not know it, or has forgotten it */
	return proc;
}

static void on_sample(void *arg, const struct sample *s)
{
	struct pipeline *p = arg;
	struct pipeline_route route;
	struct process *proc = begin_sample(p, s, &route);

	if (!proc)
		return;
	scan_if_due(p, proc);
	walk_stack(&p->walker, proc, s, true, &p->walk);
	if (p->walk.waiting) {
		if (keep(p, proc, s, &route))
			return;
		walk_stack(&p->walker, proc, s, false, &p->walk);
	}
	if (p->bpf)
		note_plain(p, proc);
	add(p, proc, s, &route, process_comm(p->processes, proc, s->tid));
}

static void clear_walk(struct walk *w)
{
	w->n = w->guessed = 0;
	w->passed = false;
	w->reason = NULL;
	w->waiting = NULL;
}

static void on_stack(void *arg, uint64_t time, uint32_t cpu, const struct record_stack *r)
{
	struct pipeline *p = arg;
	struct sample s = sample_of(&r->tick, time, cpu);
	struct pipeline_route route;
	struct process *proc = begin_sample(p, &s, &route);
	char comm[16] = "";

	if (!proc)
		return;
	proc->started = true;
	scan_if_due(p, proc);
	clear_walk(&p->walk);
	if (is_life(proc, r->tick.head.process))
		read_stack(p, proc, time, r);
	else
		p->walk.reason = loss_text(LOSS_PROCESS_CHANGED);
	if (!p->walk.reason && is_outdated(proc, time, r))
		p->walk.reason = loss_text(LOSS_CODE_CHANGED);
	if (p->walk.reason)
		p->walk.n = p->walk.guessed = 0;
	memcpy(comm, r->comm, sizeof(comm) - 1);
	p->stats.walked++;
	add(p, proc, &s, &route, comm);
}

static void on_missed(void *arg, uint64_t time, uint32_t cpu, const struct record_missed *r)
{
	struct pipeline *p = arg;
	struct sample s = sample_of(&r->tick, time, cpu);
	struct pipeline_route route;
	struct process *proc = begin_sample(p, &s, &route);
	char comm[16] = "";

	if (!proc)
		return;
	scan_if_due(p, proc);
	clear_walk(&p->walk);
	p->walk.reason = loss_text(LOSS_NOT_COPIED);
	memcpy(comm, r->comm, sizeof(comm) - 1);
	add(p, proc, &s, &route, comm);
}

/* Walks what waits; what still has to wait stays, in order. */
static void walk_waiting(struct pipeline *p, bool wait)
{
	struct waiting *w = p->first, *next;

	p->first = NULL;
	p->last = &p->first;
	for (; w; w = next) {
		next = w->next;
		walk_stack(&p->walker, w->process, &w->sample, wait, &p->walk);
		if (p->walk.waiting) {
			w->next = NULL;
			*p->last = w;
			p->last = &w->next;
			continue;
		}
		add(p, w->process, &w->sample, &w->route, w->comm);
		p->waiting_bytes -= w->bytes;
		w->process->waiting -= w->bytes;
		munmap(w, w->bytes);
	}
}

void pipeline_retry(struct pipeline *p)
{
	if (p->answers == p->files->answers)
		return;
	p->answers = p->files->answers;
	walk_waiting(p, true);
}

void pipeline_finish(struct pipeline *p)
{
	worker_wait(p->worker);
	walk_waiting(p, false);
}

/* ---- processes ---- */

/* Does the new mapping put other code where there was some? */
static bool covers_other(const struct process *proc, const struct process_mapping *to)
{
	for (uint32_t i = 0; i < proc->n; i++) {
		const struct process_mapping *m = &proc->mappings[i];

		if (m->lo < to->hi && m->hi > to->lo && (m->file || to->file) &&
		    (m->file != to->file || m->lo - m->offset != to->lo - to->offset))
			return true;
	}
	return false;
}

/* Is it there already? Of memory without a file a part is enough. */
static bool has_same(struct process *proc, const struct process_mapping *to)
{
	const struct process_mapping *m = process_mapping(proc, to->lo);

	if (!m || m->file != to->file || m->lo > to->lo || m->hi < to->hi)
		return false;
	return !to->file || (m->lo == to->lo && m->hi == to->hi && m->offset == to->offset);
}

static void map(struct pipeline *p, struct process *proc, uint64_t since,
		const struct procfs_mapping *m)
{
	struct process_mapping to = {
		.lo = m->lo,
		.hi = m->hi,
		.offset = m->offset,
		.since = since,
		.file = files_of(p->files, proc->pid, m),
	};

	if (p->files->shortage) {
		p->files->shortage = false;
		p->missed = true;
		return;
	}
	/* The kernel maps a new program's executable before its loader. */
	if (!*proc->name && to.file && *m->name == '/') {
		snprintf(proc->name, sizeof(proc->name), "%s", files_base_name(to.file));
		to.file->executable = true;
	}
	if (has_same(proc, &to))
		return;
	if (p->bpf && covers_other(proc, &to)) {
		proc->sampler.covered = since ? since : 1;
		proc->sampler.covered_version = proc->sampler.version;
	}
	set_stale(p, proc);
	if (process_map(proc, &to))
		p->missed = true;
}

static void on_mapped(void *arg, pid_t pid, uint64_t time, const struct procfs_mapping *m)
{
	struct pipeline *p = arg;
	struct process *proc = NULL;

	if (!p->o.wants || p->o.wants(p->o.arg, pid))
		proc = process_get(p->processes, pid);
	if (proc)
		map(p, proc, time, m);
}

/* Of the others, which events of a whole CPU tell of too, nothing is kept. */
static bool is_followed(struct pipeline *p, pid_t pid)
{
	return !p->o.wants || p->o.wants(p->o.arg, pid) || process_find(p->processes, pid);
}

static void on_comm(void *arg, pid_t pid, pid_t tid, uint64_t time, const char *comm, bool exec)
{
	struct pipeline *p = arg;
	struct process *proc;

	if (!is_followed(p, pid))
		return;
	if (exec) {
		proc = process_find(p->processes, pid);
		if (proc)
			forget_in_kernel(p, proc);
		proc = process_exec(p->processes, pid, time, comm);
		if (proc)
			proc->scanned = p->scan;
		return;
	}
	proc = process_get(p->processes, pid);
	if (proc && pid == tid)
		snprintf(proc->comm, sizeof(proc->comm), "%s", comm);
	process_thread_comm(p->processes, tid, comm);
}

static void on_forked(void *arg, pid_t pid, pid_t parent, pid_t tid, uint64_t time)
{
	struct pipeline *p = arg;

	(void)time;
	if (pid == tid && pid != parent) {
		struct process *child = process_find(p->processes, pid);

		if (child) /* an older process of this number */
			forget_in_kernel(p, child);
		process_thread_exit(p->processes, tid); /* likewise */
		if (child || is_followed(p, parent) || is_followed(p, pid))
			process_fork(p->processes, parent, pid); /* as the kernel takes it */
	}
}

static void on_exited(void *arg, pid_t pid, pid_t tid, uint64_t time)
{
	struct pipeline *p = arg;
	struct process *proc = process_find(p->processes, pid);

	process_thread_exit(p->processes, tid);
	if (!proc)
		return;
	proc->gone = tid;
	if (pid == tid || proc->headless) { /* where others live a sample takes it back */
		proc->ended = time;
		forget_in_kernel(p, proc);
	}
}

static void on_lost(void *arg, uint64_t records)
{
	struct pipeline *p = arg;

	p->stats.lost_records += records;
	p->missed = true; /* news of mappings may have been among them */
	p->scan_pause = SCAN_NS;
}

struct scan {
	struct pipeline *p;
	struct process *proc;
	char exe[4096];
};

/* The executable first: it gives the process its name. */
static int scan_executable(void *arg, const struct procfs_mapping *m)
{
	struct scan *s = arg;

	if (!strcmp(m->name, s->exe))
		map(s->p, s->proc, 0, m);
	return 0;
}

static int scan_mapping(void *arg, const struct procfs_mapping *m)
{
	struct scan *s = arg;

	map(s->p, s->proc, 0, m);
	return 0;
}

static int scan_thread(void *arg, pid_t tid)
{
	struct scan *s = arg;
	char comm[16];

	if (!procfs_comm(s->proc->pid, tid, comm))
		process_thread_comm(s->p->processes, tid, comm);
	return 0;
}

int pipeline_scan(struct pipeline *p, pid_t pid)
{
	struct scan s = {.p = p, .proc = process_get(p->processes, pid)};
	char path[64];
	int r;

	if (!s.proc) {
		p->missed = true;
		return -ENOMEM;
	}
	s.proc->scanned = p->scan;
	s.proc->started = true;
	procfs_comm(pid, pid, s.proc->comm);
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (readlink(path, s.exe, sizeof(s.exe) - 1) > 0)
		procfs_each_mapping(pid, scan_executable, &s);
	procfs_each_thread(pid, scan_thread, &s);
	r = procfs_each_mapping(pid, scan_mapping, &s);
	p->missed |= r == -ENOMEM;
	return r;
}

static int see_mapping(void *arg, const struct procfs_mapping *m)
{
	struct scan *s = arg;
	struct process_mapping *now;

	map(s->p, s->proc, 0, m);
	now = process_mapping(s->proc, m->lo);
	if (now)
		now->seen = true;
	return 0;
}

void pipeline_look_again(struct pipeline *p, struct process *proc)
{
	struct scan s = {.p = p, .proc = proc};

	for (uint32_t i = 0; i < proc->n; i++)
		proc->mappings[i].seen = false;
	if (!procfs_each_mapping(proc->pid, see_mapping, &s))
		process_drop_unseen(proc, p->as_of);
}

void pipeline_threads(struct pipeline *p, bool threads)
{
	p->o.threads = threads;
}

/* ---- collectors ---- */

struct collector *pipeline_collect(struct pipeline *p, uint32_t slot, struct collector *c)
{
	struct collector *old = p->slots[slot];

	for (struct waiting *w = c ? NULL : p->first; w; w = w->next)
		w->route.slots &= ~(1ull << slot);
	p->slots[slot] = c;
	return old;
}

struct collector *pipeline_collector(const struct pipeline *p, uint32_t slot)
{
	return p->slots[slot];
}

struct files *pipeline_files(struct pipeline *p)
{
	return p->files;
}

/* ---- sweeping ---- */

#define ENDED_NS 60000000000u /* an ended process stays so long: late samples and exec'ed pids */

/* used: by id of file. Processes are marked among the claims. */
static void mark_frames(const struct pipeline *p, const struct collector *c, bool *used)
{
	for (uint32_t i = 1; c && i < c->frames.n; i++) {
		const struct walk_frame *f = c->frames.entries[i].key;

		used[f->file] = true;
		if (f->kind == FRAME_ANONYMOUS || f->kind == FRAME_PUSHED)
			claims_mark(p->claims, f->process);
	}
}

static void mark_mappings(void *arg, struct process *proc)
{
	bool *used = arg;

	for (uint32_t i = 0; i < proc->n; i++)
		if (proc->mappings[i].file)
			used[proc->mappings[i].file->id] = true;
	for (uint32_t i = 0; i < proc->npast && i < PROCESS_PAST; i++)
		if (proc->past[i].file)
			used[proc->past[i].file->id] = true;
}

/* Samples of it wait, or frames of code that it made are still to be named. */
static bool is_needed(void *arg, struct process *proc)
{
	struct pipeline *p = arg;

	if (claims_is_marked(p->claims, proc->id))
		return true;
	for (const struct waiting *w = p->first; w; w = w->next)
		if (w->process == proc)
			return true;
	claims_forget(p->claims, proc->id);
	forget_in_kernel(p, proc);
	return false;
}

void pipeline_sweep(struct pipeline *p, const struct pipeline_sweep *o)
{
	bool *used = calloc(p->files->n, sizeof(*used));
	uint64_t before = clock_now();

	before = before > ENDED_NS ? before - ENDED_NS : 0;
	if (!used)
		return;
	claims_unmark(p->claims);
	for (uint32_t i = 0; i < PIPELINE_SLOTS; i++)
		mark_frames(p, p->slots[i], used);
	for (uint32_t i = 0; i < o->n; i++)
		mark_frames(p, o->keep[i], used);
	process_sweep(p->processes, before, is_needed, p);
	process_each(p->processes, mark_mappings, used);
	for (uint32_t i = 1; i < p->files->n; i++) {
		const struct file *f = p->files->all[i];

		if (used[i] || !f || f->asked)
			continue;
		o->forget(o->arg, i);
		files_drop(p->files, i);
	}
	free(used);
}

/* ---- life ---- */

int pipeline_new(struct pipeline **ret, const struct pipeline_options *o, struct worker *worker,
		 const struct plugin_set *unwinders)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	int r = -ENOMEM;

	if (!p)
		return r;
	p->o = *o;
	if (!p->o.waiting_bytes)
		p->o.waiting_bytes = 128u << 20;
	p->worker = worker;
	p->walker = (struct walker){.unwinders = unwinders, .worker = worker};
	p->last = &p->first;
	loss_account_init(&p->account);
	p->scan = 1;
	p->scan_pause = SCAN_NS;
	p->bpf = o->bpf;
	p->handlers = (struct perf_stream_handlers){
		.arg = p,
		.sample = on_sample,
		.stack = on_stack,
		.missed = on_missed,
		.emission = on_emission,
		.mapped = on_mapped,
		.comm = on_comm,
		.forked = on_forked,
		.exited = on_exited,
		.lost = on_lost,
	};
	r = p->o.route ? 0 : collector_new(&p->slots[0]);
	if (!r)
		r = process_table_new(&p->processes);
	if (!r)
		r = files_new(&p->files, worker, unwinders);
	if (!r)
		r = claims_new(&p->claims, unwinders);
	p->walker.claims = p->claims;
	if (r)
		goto fail;
	*ret = p;
	return 0;
fail:
	pipeline_free(p);
	return r;
}

void pipeline_free(struct pipeline *p)
{
	struct waiting *next;

	if (!p)
		return;
	for (struct waiting *w = p->first; w; w = next) {
		next = w->next;
		munmap(w, w->bytes);
	}
	for (uint32_t i = 0; i < PIPELINE_SLOTS; i++)
		collector_free(p->slots[i]);
	claims_free(p->claims);
	process_table_free(p->processes);
	files_free(p->files);
	free(p);
}

const struct perf_stream_handlers *pipeline_handlers(struct pipeline *p)
{
	return &p->handlers;
}

static void count_life(void *arg, struct process *proc)
{
	(void)proc;
	++*(uint64_t *)arg;
}

void pipeline_stats(struct pipeline *p, struct pipeline_stats *s)
{
	*s = p->stats;
	s->account = &p->account;
	s->helped = p->walker.helped;
	s->waiting_bytes = p->waiting_bytes;
	s->lives = 0;
	process_each(p->processes, count_life, &s->lives);
	for (const struct waiting *w = p->first; w; w = w->next)
		s->waiting++;
	s->files = s->refused = 0;
	for (uint32_t i = 1; i < p->files->n; i++) {
		s->files += !!p->files->all[i];
		s->refused += p->files->all[i] && p->files->all[i]->state == FILE_REFUSED;
	}
}
