// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/pipeline/collector.c core/pipeline/followed.c core/pipeline/frame_set.c core/pipeline/preceding.c core/process/process.c core/unwind/claims.c core/unwind/claims_host.c
// sources: core/unwind/claim_list.c core/unwind/code_budget.c core/unwind/walk_frames.c core/base/user_budget.c core/events/bpf_record.c core/loss/loss.c
// sources: core/base/arena.c core/base/dict.c core/base/hashmap.c core/base/clock.c core/base/metrics.c core/base/buf.c
// sources: core/base/json.c core/base/text.c core/base/utf8.c
// libs: -lm
// clang-format on
// Records of stacks, ticks and emissions as no BPF program writes them, between maps, forks, execs
// and exits: the walk keeps its bounds, each sample is counted once, and frames that were pushed
// can be symbolized.
#include "fuzz.h"
#include <assert.h>

#include "pipeline/records.c"

#include "base/clock.h"
#include "events/internal/bpf_record.h"
#include "process/procfs.h"
#include "opener/opener.h"

#define FILES 8u
#define PIDS 7u

static uint64_t begun, added; /* samples */

/* ---- what the records need of other files ---- */

/* No process of these numbers is read. */
pid_t procfs_living_thread(pid_t pid)
{
	return pid;
}

struct process *pipeline_begin_sample(struct pipeline *p, const struct sample *s,
				      struct pipeline_route *route)
{
	struct process *proc = process_get(p->processes, s->pid);

	*route = (struct pipeline_route){.slots = 1};
	if (proc)
		process_ran(proc, s->tid);
	begun += !!proc;
	return proc;
}

void pipeline_clear_walk(struct pipeline *p, enum loss_reason reason)
{
	p->walk.n = p->walk.guessed = 0;
	p->walk.reason = reason ? loss_text(reason) : NULL;
}

void pipeline_add(struct pipeline *p, struct process *proc, const struct sample *s,
		  const struct pipeline_route *route, const char *comm)
{
	uint32_t reason = p->walk.reason ? loss_account_reason(&p->account, p->walk.reason)
					 : LOSS_NONE;

	assert(p->walk.n <= WALK_MAX_FRAMES + 1 && p->walk.guessed <= p->walk.n &&
	       strlen(comm) < 16);
	(void)route;
	for (uint32_t i = 0; i < p->walk.n; i++)
		assert(p->walk.frames[i].kind != FRAME_FILE || p->walk.frames[i].file < FILES);
	if (!collector_add(p->slots[0], proc, 1, (uint32_t)s->tid, comm, &p->walk, reason, 1, NULL))
		added++;
}

void pipeline_deliver(struct pipeline *p, struct process *proc, const struct sample *s,
		      const struct pipeline_route *route, const char *comm, struct process *over)
{
	assert(over);
	pipeline_add(p, proc, s, route, comm);
}

void pipeline_scan_if_due(struct pipeline *p, struct process *proc)
{
	(void)p;
	(void)proc;
}

bool files_is_of_time(const struct files *fs, uint32_t id, uint64_t time)
{
	(void)fs;
	return id < FILES && time > id;
}

bool files_base(struct process_mapping *m)
{
	return m->based;
}

const char *files_base_name(const struct file *f)
{
	(void)f;
	return "file";
}

bool files_is_same(const struct file *f, int fd)
{
	(void)f;
	return fd >= 0;
}

int files_hold(struct file *f)
{
	(void)f;
	return -EAGAIN;
}

void files_release(struct file *f)
{
	(void)f;
}

void kernel_view_mark_dirty(struct kernel_views *vs, struct process *proc)
{
	(void)vs;
	kernel_view_of(proc)->dirty = true;
}

bool kernel_view_is_outdated(struct process *proc, uint64_t time, uint64_t process,
			     uint32_t version, const struct walk *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->frames[i].kind == FRAME_FILE && w->frames[i].file == version)
			return process == proc->id && time & 1;
	return false;
}

int procfs_identity(pid_t pid, uint64_t *identity)
{
	*identity = (uint64_t)pid;
	return pid & 1 ? 0 : -ESRCH;
}

int procfs_parse_start(const char *stat, uint64_t *ticks)
{
	*ticks = (uint64_t)*stat;
	return *stat & 1 ? 0 : -EBADMSG;
}

int procfs_status(pid_t pid, struct procfs_status *s)
{
	*s = (struct procfs_status){.uid = (uid_t)pid % 3, .ns_pid = pid};
	return 0;
}

int procfs_user(pid_t pid, uid_t *uid)
{
	*uid = (uid_t)pid % 3;
	return 0;
}

int opener_call(struct opener *o, const struct opener_query *q, struct opener_answer *a)
{
	(void)o;
	(void)q;
	*a = (struct opener_answer){.fd = -1, .err = -EAGAIN};
	return a->err;
}

void plugin_host_log(struct fusee_instance *in, int level, const char *text)
{
	(void)in;
	(void)level;
	(void)text;
}

int plugin_host_fail(struct fusee_instance *in, int err, const char *text)
{
	plugin_host_log(in, 0, text);
	return err;
}

void plugin_host_count(struct fusee_instance *in, const char *metric,
		       const struct fusee_label *labels, uint32_t n, uint64_t add)
{
	(void)labels;
	(void)add;
	plugin_host_log(in, (int)n, metric);
}

int plugin_host_read_secret(struct fusee_instance *in, const char *path, char *buf, uint32_t cap)
{
	(void)buf;
	(void)cap;
	plugin_host_log(in, 0, path);
	return -ENOENT;
}

int plugin_misused(struct fusee_instance *in, enum plugin_misuse what)
{
	(void)in;
	(void)what;
	return -EINVAL;
}

/* ---- two unwinders that claim and keep what they are handed ---- */

static struct fusee_instance instances[2], *list[2] = {&instances[0], &instances[1]};

static int on_mapped(void *ctx, uint64_t process, const struct fusee_mapping_view *m)
{
	const struct fusee_claim c = {.size = sizeof(c),
				      .flags = m->lo & 0x1000 ? FUSEE_CLAIM_STEP : FUSEE_CLAIM_NAME,
				      .range = {m->lo, m->lo + (m->hi - m->lo) / 2 + 1}};

	return claims_host.unwinder->process_claim(ctx, process, &c);
}

static int on_record(void *ctx, uint64_t process, const struct fusee_emission *e)
{
	static uint64_t sum;

	(void)ctx;
	(void)process;
	for (uint64_t i = 0; i < e->bytes.len; i++)
		sum += (unsigned char)e->bytes.p[i];
	return e->kind & 1 ? -EBADMSG : (int)e->bytes.len;
}

static int on_symbolize(void *ctx, const struct fusee_raw_frame *raw, struct fusee_frame_out *out)
{
	(void)ctx;
	(void)out;
	return raw->v[0] & 1;
}

static const struct fusee_unwinder_ops ops = {.size = sizeof(ops),
					      .frame_type = "x",
					      .mapped = on_mapped,
					      .record = on_record,
					      .symbolize = on_symbolize};
static const struct fusee_plugin descriptor = {.name = "x", .ops = &ops};

static int no_frame(struct fusee_frame_out *out, const struct fusee_source_frame *f)
{
	(void)out;
	(void)f;
	return 0;
}

static void symbolize(struct pipeline *p)
{
	struct fusee_frame_out out = {no_frame};
	const char *type;

	for (uint32_t i = 0; i < p->walk.n; i++) {
		const struct walk_frame *f = &p->walk.frames[i];
		const struct fusee_raw_frame raw = {
			.size = sizeof(raw),
			.v = {f->addr, f->extra[0], f->extra[1], f->extra[2]},
			.flags = f->flags};

		if (f->kind == FRAME_PUSHED)
			claims_symbolize_pushed(p->claims, f->process, f->generation, &raw, &out,
						&type);
		else if (f->kind == FRAME_ANONYMOUS)
			claims_symbolize(p->claims, f->process, f->addr, f->generation, &out,
					 &type);
	}
}

/* ---- the input: a number of events, each an opcode, a length and bytes ---- */

static void on_freed(void *arg, struct process *proc)
{
	claims_forget(((struct pipeline *)arg)->claims, proc->id);
}

/* No input is as large as a record with outer frames: repeats its words as outer frames. */
static void make_outer(struct record_stack *r)
{
	uint32_t n = record_words(r), in_ring;
	struct record_outer o;

	if (!(r->tick.head.flags & RECORD_OUTER) || !n || n > RECORD_INNER_WORDS)
		return;
	o = (struct record_outer){.frames = (uint32_t)(r->words[0] >> 32),
				  .words = r->words[0] & (4 * RECORD_OUTER_WORDS - 1),
				  .inner = n};
	in_ring = o.words < RECORD_OUTER_WORDS ? o.words : RECORD_OUTER_WORDS;
	for (uint32_t i = 0; i < in_ring; i++)
		r->words[RECORD_OUTER_AT + i] = r->words[n - 1 - i % n];
	memcpy(&r->words[RECORD_INNER_WORDS], &o, sizeof(o));
	r->tick.head.size = (uint32_t)(RECORD_STACK_HEAD + 8 * (RECORD_OUTER_AT + in_ring));
}

/* The copy that follows takes what is of its thread and time. */
static void take_continuations(struct pipeline *p, uint64_t time, const struct record_copy *r)
{
	struct sample_continuation taken[SAMPLE_CONTINUATIONS];
	const struct sample s = {
		.tid = (pid_t)r->tick.head.tid, .time = time, .continuations.since = r->continued};
	uint32_t n;

	preceding_take(&p->preceding, &s, r->tick.head.process, taken, &n);
	assert(n <= SAMPLE_CONTINUATIONS);
	for (uint32_t i = 0; i < n; i++) {
		assert(taken[i].n && taken[i].n <= WALK_MAX_FRAMES + 1);
		memcpy(p->walk.frames, taken[i].frames, taken[i].n * sizeof(*taken[i].frames));
		p->walk.n = taken[i].n;
		symbolize(p);
		free((void *)taken[i].frames);
	}
}

static void dispatch(struct pipeline *p, uint64_t time, const uint8_t *bytes, uint32_t len)
{
	static union record r;
	uint64_t sum = begun - added;

	if (!bpf_record_read(&r, bytes, len))
		return;
	r.head.pid %= PIDS;
	r.head.process %= 32;
	if (r.head.kind == RECORD_STACK || r.head.kind == RECORD_CONTINUATION)
		make_outer(&r.stack);
	/* as core/events/perf_stream_read.c checks them */
	if (r.head.kind == RECORD_STACK && r.stack.nkernel <= RECORD_MAX_KERNEL &&
	    r.stack.nkernel <= record_words(&r.stack)) {
		p->handlers.stack(p, time, 0, &r.stack);
		symbolize(p);
	} else if (r.head.kind == RECORD_CONTINUATION && r.stack.nkernel <= RECORD_MAX_KERNEL &&
		   record_words(&r.stack) > r.stack.nkernel + 2) {
		p->handlers.continuation(p, time, &r.stack);
	} else if (r.head.kind == RECORD_COPY) {
		take_continuations(p, time, &r.copy);
	} else if (r.head.kind == RECORD_MISSED) {
		p->handlers.missed(p, time, 0, &r.missed);
	} else if (r.head.kind == RECORD_EMISSION &&
		   r.emission.bytes <= r.head.size - sizeof(r.emission)) {
		p->handlers.emission(p, time, &r.emission);
	}
	assert(begun - added == sum);
}

static bool keep(void *arg, struct process *proc)
{
	(void)arg;
	return proc->id & 1;
}

static void change(struct pipeline *p, uint64_t time, const uint8_t *b)
{
	struct process *proc = process_get(p->processes, b[1] % PIDS);
	struct process_mapping m = {.lo = (uint64_t)b[2] << 12, .since = time};

	m.hi = m.lo + ((uint64_t)((b[3] & 15) + 1) << 12);
	switch (b[0] / 2 % 4) {
	case 0:
		process_map(proc, &m);
		break;
	case 1:
		process_fork(p->processes, b[1] % PIDS, b[2] % PIDS);
		break;
	case 2:
		process_exec(p->processes, b[1] % PIDS, time, "x");
		break;
	case 3:
		process_thread_exited(p->processes, proc, b[1] % PIDS, time);
		process_sweep(p->processes, time > 40 ? time - 40 : 0, keep, NULL);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pipeline p;
	static uint64_t aligned[sizeof(union record) / 8 + 1];
	const struct process_owner owner = {
		.bytes = sizeof(struct followed), .freed = on_freed, .arg = &p};
	struct plugin_set set = {list, 2};
	uint64_t time = 1;

	memset(&p, 0, sizeof(p));
	for (uint32_t i = 0; i < 2; i++)
		instances[i] = (struct fusee_instance){
			.descriptor = &descriptor, .name = "x", .ctx = &instances[i]};
	if (claims_new(&p.claims, &set) || process_table_new(&p.processes, &owner) ||
	    collector_new(&p.slots[0]))
		abort();
	p.walker.unwinders = &set;
	claims_set_limit(p.claims, 1 << 16);
	pipeline_set_record_handlers(&p);
	for (size_t at = 0; at + 4 <= size; time++) {
		uint32_t len = data[at + 1] | (uint32_t)data[at + 2] << 8;

		if (data[at] & 1) {
			at += 3;
			len = len < size - at ? len : (uint32_t)(size - at);
			len = len < sizeof(aligned) ? len : sizeof(aligned);
			memcpy(aligned, data + at, len);
			dispatch(&p, time, (const uint8_t *)aligned, len);
			at += len;
		} else {
			change(&p, time, data + at);
			at += 4;
		}
	}
	preceding_fini(&p.preceding);
	process_table_free(p.processes);
	collector_free(p.slots[0]);
	claims_free(p.claims);
	return 0;
}
