/* SPDX-License-Identifier: Apache-2.0 */
/* Processes, threads and mappings, from sideband records. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "pipeline/budget.h"
#include "pipeline/state.h"
#include "unwind/moved_text.h"

#define MOST_RETRY_NS 64000000000ull

/* ---- mappings ---- */

/* After a temporary failure to open a file: a sample makes the mappings be read again a moment
 * later, and then ever more rarely. */
void pipeline_retry_later(struct process *proc)
{
	struct followed *f = followed_of(proc);

	if (f->retry_ns)
		return;
	pipeline_begin_pause(&f->retry, MOST_RETRY_NS);
	f->retry_ns = f->retry.until_ns;
}

/* Sets the name by the path of the process's own mapping, because a file may have several names, as
 * busybox. A removed file keeps its name. */
static void set_name(struct process *proc, const char *path)
{
	static const char removed[] = " (deleted)";
	const char *slash = strrchr(path, '/'), *name = slash && slash[1] ? slash + 1 : path;
	size_t len = strlen(name), extra = sizeof(removed) - 1;

	if (len > extra && !strcmp(name + len - extra, removed))
		len -= extra;
	snprintf(proc->name, sizeof(proc->name), "%.*s", (int)len, name);
}

/* Whether the first record of a mapping is of its executable, which the kernel maps before the
 * loader. If not, a reading will tell: the process was there before, and maps libraries now. */
static bool was_seen_to_begin(struct process *proc)
{
	const struct followed *f = followed_of(proc);

	return f->scan && !f->reading;
}

static void name_process(struct process *proc, uint64_t since, struct file *f, const char *path)
{
	if (*proc->name || !f || *path != '/' || (since && !was_seen_to_begin(proc)))
		return;
	set_name(proc, path);
	proc->program = f->id;
	f->executable = true;
}

void pipeline_map(struct pipeline *p, struct process *proc, uint64_t since,
		  const struct procfs_mapping *m)
{
	struct process_mapping to = {
		.lo = m->lo,
		.hi = m->hi,
		.offset = m->offset,
		.since = since,
		.text = moved_text_of(p->files, proc, m),
		.file = files_of(p->files, proc->pid, m),
		.uprobes = !strcmp(m->name, "[uprobes]"),
	};

	if (p->files->shortage) {
		p->files->shortage = false;
		p->rescan.due = true;
		return;
	}
	if (p->files->later) {
		p->files->later = false;
		pipeline_retry_later(proc);
	}
	if (to.text.file)
		name_process(proc, since, to.text.file, to.text.file->path);
	else
		name_process(proc, since, to.file, m->name);
	pipeline_put_memory(p, proc, &to);
}

bool pipeline_selects(const struct pipeline *p, pid_t pid)
{
	return !p->o.selected || p->o.selected(p->o.arg, pid);
}

static void on_mapped(void *arg, pid_t pid, uint64_t time, const struct procfs_mapping *m)
{
	struct pipeline *p = arg;
	struct process *proc = NULL;
	uint64_t began;

	if (pipeline_selects(p, pid))
		proc = process_get(p->processes, pid);
	p->stats.new_code += proc != NULL;
	if (!proc || !budget_allows(p, proc, clock_now()))
		return;
	began = budget_begin();
	followed_of(proc)->mapped = true;
	pipeline_map(p, proc, time, m);
	budget_add(p, proc, began);
}

/* ---- processes ---- */

/* Whether the process is sampled: events of a CPU have records of all processes. */
static bool is_followed(struct pipeline *p, pid_t pid)
{
	return pipeline_selects(p, pid) || process_find(p->processes, pid);
}

static void on_comm(void *arg, pid_t pid, pid_t tid, uint64_t time, const char *comm, bool exec)
{
	struct pipeline *p = arg;
	struct process *proc;

	if (!is_followed(p, pid))
		return;
	if (exec) {
		p->stats.new_code += pipeline_selects(p, pid);
		proc = process_find(p->processes, pid);
		if (proc)
			kernel_view_withdraw(&p->views, proc);
		proc = process_exec(p->processes, pid, time, comm);
		if (proc)
			followed_of(proc)->scan = p->rescan.number;
		return;
	}
	proc = process_get(p->processes, pid);
	if (proc && pid == tid)
		snprintf(proc->comm, sizeof(proc->comm), "%s", comm);
	process_thread_comm(p->processes, pid, tid, comm, time);
}

static void on_forked(void *arg, pid_t pid, pid_t parent, pid_t tid, uint64_t time)
{
	struct pipeline *p = arg;
	struct process *older;

	(void)time;
	if (pid != tid || pid == parent)
		return;
	if (p->o.forked)
		p->o.forked(p->o.arg, parent, pid);
	older = process_find(p->processes, pid); /* an earlier process with this pid */
	if (older)
		kernel_view_withdraw(&p->views, older);
	process_thread_exited(p->processes, NULL, tid, 0);
	if (older || is_followed(p, parent) || is_followed(p, pid))
		process_fork(p->processes, parent, pid);
}

static void on_exited(void *arg, pid_t pid, pid_t tid, uint64_t time)
{
	struct pipeline *p = arg;
	struct process *proc = process_find(p->processes, pid);

	if (process_thread_exited(p->processes, proc, tid, time))
		kernel_view_withdraw(&p->views, proc);
}

static void on_lost(void *arg, uint64_t records)
{
	struct pipeline *p = arg;

	p->stats.lost_records += records;
	p->rescan.due = true; /* records of mappings may be lost */
	p->rescan.pause_ns = PIPELINE_PAUSE_NS;
	if (p->o.lost)
		p->o.lost(p->o.arg);
}

void pipeline_set_process_handlers(struct pipeline *p)
{
	p->handlers.mapped = on_mapped;
	p->handlers.comm = on_comm;
	p->handlers.forked = on_forked;
	p->handlers.exited = on_exited;
	p->handlers.lost = on_lost;
	p->rescan = (struct rescan){.number = 1, .pause_ns = PIPELINE_PAUSE_NS};
}
