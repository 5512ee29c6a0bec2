/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/allocators.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/log.h"
#include "bpf/inuse.h"
#include "bpf/probes.h"
#include "pipeline/state.h"
#include "profiler/internal/allocator_search.h"
#include "profiler/internal/prepare.h"
#include "profiler/in_use_ledger.h"
#include "profiler/internal/process_tree.h"
#include "profiler/profiler.h"

#define MOST_PROBED 256u          /* at a time; each is some 13 probes, of 2 descriptors each */
#define UNMAPPED_NS 2000000000ull /* for so long a file may be unmapped and keeps its probes */
#define RETRY_NS 1000000000ull    /* until probes that the kernel refused are tried again */
#define PREPARE_NS 5000000000ull  /* for the files of what runs before it is sampled */
#define POLL_NS 1000000
#define MANY 8u /* are removed in several seconds */

#define ALLOCATES(name, kind, rank)                            \
	{                                                      \
		name, 0, PROBE_ALLOC, ALLOC_RANKED(kind, rank) \
	}

#define FREES(name)                    \
	{                              \
		name, 0, PROBE_FREE, 0 \
	}

/* A file that has malloc() has an allocator; a file with some of the others calls it. */
static const struct probe_function functions[] = {
	ALLOCATES("malloc", ALLOC_MALLOC, 0),
	ALLOCATES("realloc", ALLOC_REALLOC, 1),
	ALLOCATES("reallocf", ALLOC_REALLOC, 2),
	ALLOCATES("calloc", ALLOC_CALLOC, 3),
	ALLOCATES("reallocarray", ALLOC_REALLOCARRAY, 3),
	ALLOCATES("aligned_alloc", ALLOC_ALIGNED, 1),
	ALLOCATES("memalign", ALLOC_ALIGNED, 2),
	ALLOCATES("posix_memalign", ALLOC_POSIX, 3),
	ALLOCATES("valloc", ALLOC_NEW, 3),
	ALLOCATES("pvalloc", ALLOC_NEW, 3),
	ALLOCATES("mallocx", ALLOC_NEW, 3),
	ALLOCATES("rallocx", ALLOC_REALLOC, 1),
	/* operator new and new[], also nothrow, which call those that throw, and with an alignment
	 */
	ALLOCATES("_Znwm", ALLOC_THROWS, 4),
	ALLOCATES("_Znam", ALLOC_THROWS, 5),
	ALLOCATES("_ZnwmRKSt9nothrow_t", ALLOC_THROWS, 5),
	ALLOCATES("_ZnamRKSt9nothrow_t", ALLOC_THROWS, 6),
	ALLOCATES("_ZnwmSt11align_val_t", ALLOC_THROWS, 4),
	ALLOCATES("_ZnamSt11align_val_t", ALLOC_THROWS, 5),
	ALLOCATES("_ZnwmSt11align_val_tRKSt9nothrow_t", ALLOC_THROWS, 5),
	ALLOCATES("_ZnamSt11align_val_tRKSt9nothrow_t", ALLOC_THROWS, 6),
	/* What frees: last, since it is looked for only where memory is followed. */
	FREES("free"),
	FREES("cfree"),
	FREES("free_sized"),
	FREES("free_aligned_sized"),
	FREES("dallocx"),
	FREES("sdallocx"),
	FREES("_ZdlPv"),
	FREES("_ZdaPv"),
	FREES("_ZdlPvm"),
	FREES("_ZdaPvm"),
	FREES("_ZdlPvRKSt9nothrow_t"),
	FREES("_ZdaPvRKSt9nothrow_t"),
	FREES("_ZdlPvSt11align_val_t"),
	FREES("_ZdaPvSt11align_val_t"),
	FREES("_ZdlPvmSt11align_val_t"),
	FREES("_ZdaPvmSt11align_val_t"),
	FREES("_ZdlPvSt11align_val_tRKSt9nothrow_t"),
	FREES("_ZdaPvSt11align_val_tRKSt9nothrow_t"),
};
#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))
#define FREEING 18u /* of them */

/* A file with an allocator that a process maps. */
struct probed {
	struct probed *next;
	uint64_t key;
	uint64_t added_ns; /* of the file: its id may be another's later */
	uint64_t seen_ns;  /* CLOCK_MONOTONIC, as retry_ns */
	uint64_t retry_ns;
	bool refused;             /* counted as such */
	bool replaced;            /* the id of the file is another's */
	struct probe_links links; /* none: it was refused */
};

struct allocators {
	struct profiler *profiler;
	struct allocator_search *search;
	struct background *background; /* removes probes */
	struct in_use_ledger *in_use;  /* NULL: it is not followed, or the caller has it */
	struct hashmap probed;         /* pid and file -> struct probed */
	struct probed *first;
	struct pollfd *polled; /* of those with probes */
	uint32_t n, polled_cap;
	uint64_t now;
	struct allocator_counts counts;
	bool warned; /* of processes that are probed late */
};

/* Whose probes are being removed, which goes on behind the end of a session: they take descriptors
 * until then. */
static atomic_uint leaving;

int allocators_new(struct allocators **ret, struct profiler *p)
{
	struct allocators *a = *ret = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->profiler = p;
	if (background_new(&a->background))
		return -ENOMEM;
	return allocator_search_new(&a->search, functions,
				    FUNCTIONS - (bpf_inuse_is_followed(p->bpf) ? 0 : FREEING));
}

int allocators_follow(struct allocators *a)
{
	return in_use_ledger_new(&a->in_use, a->profiler);
}

struct in_use_ledger *allocators_in_use(const struct allocators *a)
{
	return a ? a->in_use : NULL;
}

/* Warns of a process that the target started: it ran before it could be probed. */
static void warn_of_late(void *arg, struct process *proc)
{
	struct allocators *a = arg;
	const struct profiler *p = a->profiler;

	if (a->warned || !p->tree || !process_tree_has(p->tree, proc->pid))
		return;
	for (uint32_t i = 0; i < p->npids; i++)
		if (p->pids[i] == proc->pid)
			return;
	a->warned = true;
	log_warning("processes that the target starts are probed some milliseconds after their "
		    "start: what they allocate before is not sampled");
}

/* ---- removal ---- */

static void detach(void *arg)
{
	struct probe_links *links = arg;

	bpf_probes_detach(links);
	free(links);
	atomic_fetch_sub(&leaving, 1);
}

/* The last close of a probe waits twice until no CPU and no thread runs a program: some 20 ms to
 * 30 ms for each, and one after the other. */
static void detach_later(struct allocators *a, struct probed *p)
{
	struct probe_links *links = bpf_probes_are_put(&p->links) ? malloc(sizeof(*links)) : NULL;

	if (!links) {
		bpf_probes_detach(&p->links);
		return;
	}
	*links = p->links;
	atomic_fetch_add(&leaving, 1);
	background_run(a->background, detach, links);
}

static void drop(struct allocators *a, struct probed **at)
{
	struct probed *p = *at;

	*at = p->next;
	a->n -= bpf_probes_are_put(&p->links);
	detach_later(a, p);
	hashmap_del(&a->probed, p->key);
	free(p);
}

/* Finds those whose process has ended, or the thread by which they were probed. */
static bool poll_all(struct allocators *a)
{
	uint32_t n = 0;

	if (a->n > a->polled_cap) {
		struct pollfd *grown = realloc(a->polled, a->n * 2 * sizeof(*grown));

		if (!grown)
			return false;
		a->polled = grown;
		a->polled_cap = a->n * 2;
	}
	for (struct probed *p = a->first; p; p = p->next)
		if (bpf_probes_are_put(&p->links))
			a->polled[n++] = (struct pollfd){.fd = p->links.watch, .events = POLLIN};
	return n && poll(a->polled, n, 0) >= 0;
}

/* What is followed may be freed by code that is mapped again, or is so and not known to be. Of a
 * process that is not selected any more it is followed no further. */
static bool is_unmapped(const struct allocators *a, const struct probed *p)
{
	const struct profiler *of = a->profiler;
	uint32_t tgid = (uint32_t)(p->key >> 32);
	bool late = a->now - p->seen_ns > UNMAPPED_NS;

	if (!bpf_inuse_is_followed(of->bpf) || !bpf_probes_are_put(&p->links))
		return late;
	if (!late || !of->dynamic || pipeline_selects(of->pipeline, (pid_t)tgid))
		return p->replaced;
	bpf_inuse_forget(of->bpf, BPF_INUSE_SPACES, &tgid);
	return true;
}

static void drop_ended(struct allocators *a)
{
	bool polled = poll_all(a);
	uint32_t i = 0;

	for (struct probed **at = &a->first; *at;) {
		struct probed *p = *at;
		bool says = polled && bpf_probes_are_put(&p->links) &&
			    a->polled[i].revents & (POLLIN | POLLHUP);

		i += bpf_probes_are_put(&p->links);
		if (bpf_probes_have_ended(&p->links, (pid_t)(p->key >> 32), says) ||
		    is_unmapped(a, p))
			drop(a, at);
		else
			at = &p->next;
	}
}

void allocators_stop(struct allocators *a)
{
	if (!a)
		return;
	process_each(a->profiler->pipeline->processes, warn_of_late, a);
	if (a->n + atomic_load(&leaving) > MANY)
		log_info("the kernel removes the probes of %u processes one by one: fusee ends "
			 "when it has",
			 a->n + atomic_load(&leaving));
	while (a->first)
		drop(a, &a->first);
}

void allocators_free(struct allocators *a)
{
	if (!a)
		return;
	while (a->first)
		drop(a, &a->first);
	background_free(a->background);
	in_use_ledger_free(a->in_use);
	allocator_search_free(a->search);
	hashmap_fini(&a->probed);
	free(a->polled);
	free(a);
}

/* ---- attaching ---- */

static int attach(struct allocators *a, struct probed *p, pid_t pid, struct file *f,
		  const struct probe_points *points)
{
	int fd, r;

	if (f->source.copied)
		return -EREMOTE; /* the kernel knows the copy as another file */
	if (a->n + atomic_load(&leaving) >= MOST_PROBED)
		return -E2BIG;
	fd = files_hold(f);
	if (fd < 0)
		return fd;
	r = bpf_probes_attach_to(a->profiler->bpf, pid, fd, points, &p->links);
	files_release(f);
	return r;
}

/* pid -1: all processes. */
static void try(struct allocators *a, struct probed *p, pid_t pid, struct file *f,
		const struct probe_points *points)
{
	int r = attach(a, p, pid, f, points);

	p->retry_ns = a->now + (r == -E2BIG || r == -ESRCH ? 0 : RETRY_NS);
	if (!r) {
		a->n++;
		a->counts.processes++;
	} else if (r != -ESRCH) { /* it has not ended */
		a->counts.unprobed += !p->refused;
		a->counts.err = r;
		p->refused = true;
	}
}

static struct probed *add(struct allocators *a, uint64_t key, const struct file *f)
{
	struct probed *p = calloc(1, sizeof(*p));

	if (!p || hashmap_put(&a->probed, key, p)) {
		free(p);
		return NULL;
	}
	*p = (struct probed){
		.next = a->first, .key = key, .added_ns = f->added_ns, .links = PROBE_LINKS_NONE};
	a->first = p;
	return p;
}

static void see_file(struct allocators *a, pid_t pid, struct file *f)
{
	uint64_t key = (uint64_t)(uint32_t)pid << 32 | f->id;
	const struct probe_points *points;
	struct probed *p;

	if (allocator_search_file(a->search, f, &points) || !points->n)
		return;
	p = hashmap_get(&a->probed, key);
	if (p && p->added_ns != f->added_ns) {
		p->replaced = true; /* no process maps the other, which is dropped */
		return;
	}
	p = p ? p : add(a, key, f);
	if (!p)
		return;
	p->seen_ns = a->now;
	if (!bpf_probes_are_put(&p->links) && a->now >= p->retry_ns)
		try(a, p, pid, f, points);
}

static void see(void *arg, struct process *proc)
{
	struct allocators *a = arg;
	const struct profiler *p = a->profiler;
	bool of_process = p->tree || p->dynamic; /* not of all that map a file */

	if (proc->ended || !pipeline_selects(p->pipeline, proc->pid))
		return;
	for (uint32_t i = 0; i < proc->n; i++)
		if (proc->mappings[i].file)
			see_file(a, of_process ? proc->pid : -1, proc->mappings[i].file);
}

void allocators_update(struct allocators *a)
{
	a->now = clock_now();
	drop_ended(a);
	process_each(a->profiler->pipeline->processes, warn_of_late, a);
	allocator_search_poll(a->search);
	process_each(a->profiler->pipeline->processes, see, a);
}

void allocators_prepare(struct allocators *a)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	uint64_t until = clock_now() + PREPARE_NS;

	if (!a)
		return;
	allocators_update(a);
	while (allocator_search_running(a->search) && clock_now() < until &&
	       !prepare_is_interrupted()) {
		nanosleep(&pause, NULL);
		if (allocator_search_poll(a->search))
			allocators_update(a);
	}
}

const char *allocators_explain(int err)
{
	switch (err) {
	case -E2BIG:
		return "too many run at once";
	case -EOWNERDEAD:
		return "the first thread of the process has ended";
	case -EREMOTE:
		return "they are on a file system that can keep readers waiting";
	default:
		return strerror(-err);
	}
}

struct allocator_counts allocators_counts(const struct allocators *a)
{
	struct allocator_counts c = a->counts;

	c.files = allocator_search_found(a->search);
	c.now = a->n;
	return c;
}

void allocators_hits(const struct allocators *a, uint64_t counts[])
{
	bpf_probes_counts(a->profiler->bpf, counts);
}

uint32_t allocators_unknown(const struct allocators *a,
			    void (*each)(void *arg, const char *path, const char *why), void *arg)
{
	return allocator_search_unknown(a->search, each, arg);
}
