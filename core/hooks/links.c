/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of hooks in processes: put when a process maps the file, and removed in the background. */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hooks/internal/state.h"
#include "pipeline/state.h"

#define MOST_HOOKED 512u          /* at a time; each has some descriptors */
#define UNMAPPED_NS 2000000000ull /* for so long a file may be unmapped and keeps its probes */
#define RETRY_NS 1000000000ull    /* until probes that the kernel refused are tried again */

/* Whose probes are being removed. */
static atomic_uint leaving;

bool hooks_are_leaving(void)
{
	return atomic_load(&leaving);
}

/* ---- removal ---- */

static void detach(void *arg)
{
	struct probe_links *links = arg;

	bpf_probes_detach(links);
	free(links);
	atomic_fetch_sub(&leaving, 1);
}

/* The kernel waits for each CPU. */
static void detach_later(struct hooks *h, struct probe_links *links)
{
	struct probe_links *moved = bpf_probes_are_put(links) ? malloc(sizeof(*moved)) : NULL;

	if (!moved) {
		bpf_probes_detach(links);
		return;
	}
	*moved = *links;
	*links = PROBE_LINKS_NONE;
	atomic_fetch_add(&leaving, 1);
	background_run(h->background, detach, moved);
}

static void drop(struct hooks *h, struct hooked **at)
{
	struct hooked *p = *at;

	*at = p->next;
	h->n -= bpf_probes_are_put(&p->links);
	p->hook->state.now -= bpf_probes_are_put(&p->links);
	detach_later(h, &p->links);
	hashmap_del(&h->hooked, p->key);
	free(p);
}

void hooks_detach(struct hooks *h, const struct hook *hook)
{
	for (struct hooked **at = &h->first; *at;)
		if ((*at)->hook == hook)
			drop(h, at);
		else
			at = &(*at)->next;
	for (uint32_t i = 0; i < TRACEPOINTS; i++)
		if (h->tracepoints[i].hook == hook) {
			h->tracepoints[i].hook = NULL;
			detach_later(h, &h->tracepoints[i].links);
		}
}

/* Finds those whose process has ended, or the thread by which they were probed. */
static bool poll_all(struct hooks *h)
{
	uint32_t n = 0;

	if (h->n > h->polled_cap) {
		struct pollfd *grown = realloc(h->polled, h->n * 2 * sizeof(*grown));

		if (!grown)
			return false;
		h->polled = grown;
		h->polled_cap = h->n * 2;
	}
	for (struct hooked *p = h->first; p; p = p->next)
		if (bpf_probes_are_put(&p->links))
			h->polled[n++] = (struct pollfd){.fd = p->links.watch, .events = POLLIN};
	return n && poll(h->polled, n, 0) >= 0;
}

static pid_t pid_of(const struct hooked *p)
{
	return (pid_t)(p->key >> 40);
}

void hooks_drop_ended(struct hooks *h)
{
	bool polled = poll_all(h);
	uint32_t i = 0;

	for (struct hooked **at = &h->first; *at;) {
		struct hooked *p = *at;
		bool put = bpf_probes_are_put(&p->links),
		     says = polled && put && h->polled[i].revents & (POLLIN | POLLHUP);

		i += put;
		if (bpf_probes_have_ended(&p->links, pid_of(p), says) ||
		    h->now - p->seen_ns > UNMAPPED_NS)
			drop(h, at);
		else
			at = &p->next;
	}
}

/* ---- attaching ---- */

static int attach(struct hooks *h, struct hooked *p, struct file *f,
		  const struct probe_points *points)
{
	int fd, r;

	if (f->source.copied)
		return -EREMOTE; /* the kernel knows the copy as another file */
	if (h->n + atomic_load(&leaving) >= MOST_HOOKED)
		return -E2BIG;
	fd = files_hold(f);
	if (fd < 0)
		return fd;
	r = bpf_hooks_attach_to(h->profiler->bpf, pid_of(p), fd, points, &p->links);
	files_release(f);
	return r;
}

static const char *explain(int r)
{
	switch (r) {
	case -E2BIG:
		return "too many processes are probed at once";
	case -EOWNERDEAD:
		return "the first thread of the process has ended";
	case -EREMOTE:
		return "the file is on a file system that can keep readers waiting";
	case -EOPNOTSUPP:
	case -EINVAL:
	case -EILSEQ:
		return "the kernel puts no probe at this instruction, or is older than 5.15";
	default:
		return strerror(-r);
	}
}

static void refuse(struct hooked *p, int r)
{
	char *why;

	if (!p->refused && p->hook->state.unprobed++ == 0) {
		if (asprintf(&why, "process %d is not probed: %s", (int)pid_of(p), explain(r)) < 0)
			why = NULL;
		hooks_failed(p->hook, why);
	}
	p->refused = true;
}

static void try(struct hooks *h, struct hooked *p, struct file *f,
		const struct probe_points *points)
{
	int r = attach(h, p, f, points);

	p->retry_ns = h->now + (r == -E2BIG || r == -ESRCH ? 0 : RETRY_NS);
	if (!r) {
		h->n++;
		p->hook->state.now++;
	} else if (r != -ESRCH) { /* it has not ended */
		refuse(p, r);
	}
}

static struct hooked *add(struct hooks *h, uint64_t key, const struct hook_file *f)
{
	struct hooked *p = calloc(1, sizeof(*p));

	if (!p || hashmap_put(&h->hooked, key, p)) {
		free(p);
		return NULL;
	}
	*p = (struct hooked){.next = h->first,
			     .key = key,
			     .hook = f->hook,
			     .added_ns = f->added_ns,
			     .links = PROBE_LINKS_NONE};
	h->first = p;
	return p;
}

static void see_file(struct hooks *h, pid_t pid, struct file *file)
{
	for (struct hook_file *f = hooks_file(h, file); f; f = f->next) {
		uint64_t key = (uint64_t)(uint32_t)pid << 40 | (uint64_t)f->hook->number << 32 |
			       file->id;
		struct hooked *p;

		if (!f->points.n || f->state != FILE_KNOWN)
			continue;
		p = hashmap_get(&h->hooked, key);
		if (p && p->added_ns != f->added_ns)
			continue; /* of another file, which no process maps: it is dropped */
		p = p ? p : add(h, key, f);
		if (!p)
			return;
		p->seen_ns = h->now;
		if (!bpf_probes_are_put(&p->links) && h->now >= p->retry_ns)
			try(h, p, file, &f->points);
	}
}

static void see(void *arg, struct process *proc)
{
	struct hooks *h = arg;

	if (proc->ended || !pipeline_selects(h->profiler->pipeline, proc->pid))
		return;
	/* a record of a mapping may have been lost; without probes no sample makes it be read */
	pipeline_scan_if_due(h->profiler->pipeline, proc);
	for (uint32_t i = 0; i < proc->n; i++)
		if (proc->mappings[i].file)
			see_file(h, proc->pid, proc->mappings[i].file);
}

/* ---- tracepoints ---- */

static struct hooked_tracepoint *tracepoint_of(struct hooks *h, const struct hook *hook)
{
	struct hooked_tracepoint *unused = NULL;

	for (uint32_t i = 0; i < TRACEPOINTS; i++)
		if (h->tracepoints[i].hook == hook)
			return &h->tracepoints[i];
		else if (!h->tracepoints[i].hook)
			unused = &h->tracepoints[i];
	return unused;
}

static void attach_tracepoint(struct hooks *h, struct hook *hook)
{
	struct hooked_tracepoint *t = tracepoint_of(h, hook);
	struct probe_point p = {.path = (char *)hook->parsed.path,
				.program = PROBE_TRACEPOINT,
				.filter = hook->parsed.filter,
				.period = hook->period,
				.hook = hook->number};
	char *why;
	int r;

	/* a program that is being removed may still run, with the place of the next */
	if (!t || t->links.n || h->now < t->retry_ns || hooks_are_leaving())
		return;
	t->hook = hook;
	p.number = (uint32_t)(t - h->tracepoints) + 1;
	r = bpf_hooks_attach(h->profiler->bpf, &p, &t->links);
	if (!r)
		return;
	t->retry_ns = h->now + RETRY_NS;
	if (asprintf(&why, "no probe at the tracepoint: %s",
		     r == -ENOENT ? "its module is not loaded" : strerror(-r)) < 0)
		why = NULL;
	hooks_failed(hook, why);
}

void hooks_attach(struct hooks *h)
{
	process_each(h->profiler->pipeline->processes, see, h);
	for (uint32_t i = 1; i <= MOST_HOOKS; i++)
		if (h->at[i] && !h->at[i]->retired_ns && !hook_is_of_file(h->at[i]))
			attach_tracepoint(h, h->at[i]);
}
