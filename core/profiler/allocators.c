/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/allocators.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/log.h"
#include "bpf/inuse.h"
#include "bpf/probes.h"
#include "pipeline/state.h"
#include "profiler/internal/process_tree.h"
#include "profiler/profiler.h"

#define MOST_PROBED 256u /* a probe is 10 descriptors of each */

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
	/* operator new and new[], also nothrow, and with an alignment */
	ALLOCATES("_Znwm", ALLOC_THROWS, 4),
	ALLOCATES("_Znam", ALLOC_THROWS, 5),
	ALLOCATES("_ZnwmRKSt9nothrow_t", ALLOC_NEW, 5),
	ALLOCATES("_ZnamRKSt9nothrow_t", ALLOC_NEW, 6),
	ALLOCATES("_ZnwmSt11align_val_t", ALLOC_THROWS, 4),
	ALLOCATES("_ZnamSt11align_val_t", ALLOC_THROWS, 5),
	ALLOCATES("_ZnwmSt11align_val_tRKSt9nothrow_t", ALLOC_NEW, 5),
	ALLOCATES("_ZnamSt11align_val_tRKSt9nothrow_t", ALLOC_NEW, 6),
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

/* By id of a file. */
struct searched {
	uint64_t added_ns;          /* of the file: its id may be another's later; 0: none was */
	struct probe_points points; /* none: it has no allocator */
};

struct allocators {
	struct profiler *profiler;
	struct searched *searched;
	size_t n, cap;
	struct hashmap seen; /* pid and file -> this */
	struct allocator_counts counts;
	bool warned; /* of processes that are probed late */
};

int allocators_new(struct allocators **ret, struct profiler *p)
{
	struct allocators *a = *ret = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->profiler = p;
	return 0;
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

void allocators_free(struct allocators *a)
{
	if (!a)
		return;
	process_each(a->profiler->pipeline->processes, warn_of_late, a);
	for (size_t i = 0; i < a->n; i++)
		probe_points_fini(&a->searched[i].points);
	free(a->searched);
	hashmap_fini(&a->seen);
	free(a);
}

static bool has_malloc(const struct probe_points *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->at[i].program == PROBE_ALLOC && ALLOC_KIND(p->at[i].kind) == ALLOC_MALLOC)
			return true;
	return false;
}

/* The file is open. */
static void search(struct allocators *a, struct searched *s, int fd, const char *path)
{
	char *why = NULL;
	uint32_t n = FUNCTIONS - (bpf_inuse_is_followed(a->profiler->bpf) ? 0 : FREEING);
	int r = probe_points_find_open(&s->points, fd, functions, n, &why);

	if (r && r != -ENOENT)
		log_debug("%s: no allocator is looked for: %s", path, why ? why : "");
	free(why);
	if (r || !has_malloc(&s->points)) {
		probe_points_fini(&s->points);
		return;
	}
	a->counts.files++;
	log_debug("%s has an allocator: %zu functions", path, s->points.n);
}

/* What was found in the file, which is open. NULL: no memory. */
static struct searched *searched_of(struct allocators *a, const struct file *f, int fd)
{
	struct searched *s;

	while (a->n <= f->id) {
		if (!ARRAY_ROOM(a->searched, a->n, a->cap))
			return NULL;
		a->searched[a->n++] = (struct searched){0};
	}
	s = &a->searched[f->id];
	if (s->added_ns == f->added_ns)
		return s;
	probe_points_fini(&s->points);
	s->added_ns = f->added_ns;
	search(a, s, fd, f->path ? f->path : "");
	return s;
}

/* pid -1: all processes. */
static void attach(struct allocators *a, pid_t pid, struct file *f)
{
	int fd = files_hold(f), r = 0;
	struct searched *s = fd < 0 ? NULL : searched_of(a, f, fd);

	if (s && s->points.n) {
		r = a->counts.processes < MOST_PROBED
			    ? bpf_probes_attach_to(a->profiler->bpf, pid, fd, &s->points)
			    : -E2BIG;
		a->counts.processes += !r;
		a->counts.unprobed += r && r != -ESRCH;
		a->counts.err = r && r != -ESRCH ? r : a->counts.err;
	}
	if (fd >= 0)
		files_release(f);
}

static void see(void *arg, struct process *proc)
{
	struct allocators *a = arg;
	struct process_tree *tree = a->profiler->tree;

	if (proc->ended || (tree && !process_tree_has(tree, proc->pid)))
		return;
	for (uint32_t i = 0; i < proc->n; i++) {
		struct file *f = proc->mappings[i].file;
		pid_t pid = tree ? proc->pid : -1;
		uint64_t key = f ? (uint64_t)(uint32_t)pid << 32 | f->id : 0;

		if (!f || hashmap_get(&a->seen, key) || hashmap_put(&a->seen, key, a))
			continue;
		attach(a, pid, f);
	}
}

void allocators_update(struct allocators *a)
{
	process_each(a->profiler->pipeline->processes, warn_of_late, a);
	process_each(a->profiler->pipeline->processes, see, a);
}

struct allocator_counts allocators_counts(const struct allocators *a)
{
	return a->counts;
}
