/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "bpf/internal/sampler_state.h"
#include "process/procfs.h"

#define PROBE_TEXT(name, text) text,

const char *const probe_result_texts[PROBE_RESULT_COUNT] = {PROBE_RESULTS(PROBE_TEXT)};

static const char *const programs[PROBE_PROGRAMS] = {[PROBE_CALL] = "sampler_probe_call",
						     [PROBE_ALLOC] = "sampler_probe_alloc",
						     [PROBE_RETURN] = "sampler_probe_begin",
						     [PROBE_DESCRIBED] = "sampler_probe_described"};

/* Behind the begin of what is timed. */
#define RETURNED "sampler_probe_return"
#define TRACEPOINT "sampler_tracepoint_"

int probes_open(struct bpf_sampler *b)
{
	int walk = bpf_object__find_map_fd_by_name(b->probes.object, "sampler_probe_walk");
	struct bpf_program *p = bpf_object__find_program_by_name(b->probes.object, "sampler_tick");
	int tick = p ? bpf_program__fd(p) : -ENOENT;
	uint32_t zero = 0;

	b->probes.programs = bpf_object__find_map_fd_by_name(b->probes.object, "sampler_programs");
	b->probes.cpus = bpf_object__find_map_fd_by_name(b->probes.object, "sampler_probe_cpus");
	if (walk < 0 || tick < 0 || b->probes.cpus < 0)
		return -ENOENT;
	return bpf_map_update_elem(walk, &zero, &tick, BPF_ANY) ? -errno : 0;
}

/* The object beside that of CPU time. Processes are followed by that. */
int probes_load_beside(struct bpf_sampler *b)
{
	struct bpf_object *object = b->probes.object;
	struct bpf_program *p;
	int r = 0;

	bpf_object__for_each_program(p, object)
	{
		if (!r && strcmp(bpf_program__section_name(p), "uprobe") != 0)
			r = bpf_program__set_autoload(p, false);
	}
	if (!r)
		r = probes_size(b);
	uprobe_link_set_type(object, b->probes.type);
	if (!r)
		r = inuse_prepare(b, object);
	return r ? r : bpf_object__load(object);
}

void probes_close(struct bpf_sampler *b)
{
	bpf_probes_detach(&b->probes.links);
	if (b->probes.beside)
		bpf_object__close(b->probes.object);
}

/* -ENOTSUP: the instruction cannot be probed; -ENOENT: the kernel has no uprobes, since the file
 * was there before. */
static int explain(int r, const struct probe_point *p, char **why)
{
	const char *text = r == -EPERM || r == -EACCES ? "it needs CAP_BPF and CAP_PERFMON"
			   : r == -ENOTSUP || r == -EINVAL || r == -EILSEQ
				   ? "the kernel puts none at this instruction"
			   : r == -ENOENT || r == -EOPNOTSUPP || r == -ENODEV
				   ? "this kernel has no uprobes (CONFIG_UPROBE_EVENTS)"
				   : strerror(-r);

	if (p->program == PROBE_TRACEPOINT) {
		if (asprintf(why, "no probe at the tracepoint '%s': %s", p->path,
			     r == -ENOENT ? "its module is not loaded" : strerror(-r)) < 0)
			*why = NULL;
		return r;
	}
	if (r == -EOPNOTSUPP && p->filter.operator)
		text = "a filter needs Linux 5.15";
	if (asprintf(why, "no probe at %s, offset 0x%llx: %s", p->path,
		     (unsigned long long)p->offset, text) < 0)
		*why = NULL;
	return r;
}

/* The kernel's links are of processes by their first thread. */
static bool takes_links(const struct bpf_sampler_options *o)
{
	const char *given = secure_getenv("FUSEE_UPROBE_LINKS"); /* for tests */

	return !o->leaderless && (!given || strcmp(given, "0") != 0) && uprobe_link_has_multi();
}

void probes_prepare(struct bpf_sampler *b, const struct bpf_sampler_options *o)
{
	const struct probe_points *points = o->probes;

	b->probes.type = o->in_use ? UPROBE_SESSION : takes_links(o) ? UPROBE_MULTI : UPROBE_EVENTS;
	/* those of allocators are found later */
	b->probes.used = points->n ? 0 : 1u << PROBE_ALLOC;
	for (size_t i = 0; i < points->n; i++) {
		b->probes.used |= 1u << points->at[i].program;
		b->probes.tracepoints += points->at[i].program == PROBE_TRACEPOINT;
		if (points->at[i].filter.operator)
			b->probes.numbers = (uint32_t)points->n;
	}
}

static int exclude(const struct bpf_sampler *b, const char *program)
{
	struct bpf_program *p = bpf_object__find_program_by_name(b->probes.object, program);

	return p ? bpf_program__set_autoload(p, false) : -ENOENT;
}

/* Each tracepoint has the program of its number. */
static int size_tracepoints(const struct bpf_sampler *b, struct bpf_map *filters)
{
	int r = bpf_map__set_max_entries(filters, MOST_TRACEPOINTS + 1);

	for (uint32_t i = b->probes.tracepoints + 1; !r && i <= MOST_TRACEPOINTS; i++) {
		char name[32];

		snprintf(name, sizeof(name), TRACEPOINT "%u", i);
		r = exclude(b, name);
	}
	return r;
}

/* Programs for other kinds of probes need not be verified. */
static int exclude_unused(const struct bpf_sampler *b)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < PROBE_PROGRAMS; i++)
		if (programs[i] && !(b->probes.used & 1u << i))
			r = exclude(b, programs[i]);
	if (!r && !(b->probes.used & 1u << PROBE_RETURN))
		r = exclude(b, RETURNED);
	return r;
}

int probes_size(const struct bpf_sampler *b)
{
	struct bpf_map *calls = bpf_object__find_map_by_name(b->probes.object, "sampler_calls");
	struct bpf_map *filters = bpf_object__find_map_by_name(b->probes.object, "sampler_filters");
	bool timed = b->probes.used & 1u << PROBE_RETURN;
	int r;

	if (b->probes.tracepoints && filters)
		return size_tracepoints(b, filters);
	if (!calls || !filters)
		return -ENOENT;
	r = bpf_map__set_max_entries(calls, timed ? PROBE_CALLS : 1);
	if (!r)
		r = exclude_unused(b);
	return r ? r : bpf_map__set_max_entries(filters, b->probes.numbers + 1);
}

/* A link of one place, for which an event would do: one object has programs of one type. */
static int link_place(const struct bpf_sampler *b, const struct bpf_program *program,
		      uint64_t offset, const struct probe_target *to,
		      const struct bpf_uprobe_opts *o)
{
	const uint64_t cookie = o->bpf_cookie, counter = o->ref_ctr_offset;
	const struct uprobe_places at = {&offset, &cookie, &counter, 1, o->retprobe};

	return probe_links_add(to->links,
			       uprobe_link_create(b->probes.type, bpf_program__fd(program), to->pid,
						  to->path, &at));
}

/* o: NULL at a tracepoint. */
static int attach_program(struct bpf_sampler *b, const char *name, const struct probe_point *p,
			  const struct probe_target *to, struct bpf_uprobe_opts *o)
{
	struct bpf_program *program = bpf_object__find_program_by_name(b->probes.object, name);
	struct bpf_link *link;

	if (program && o && b->probes.type == UPROBE_MULTI)
		return link_place(b, program, p->offset, to, o);
	if (!program || !ARRAY_ROOM(to->links->at, to->links->n, to->links->cap))
		return program ? -ENOMEM : -ENOENT;
	link = o ? bpf_program__attach_uprobe_opts(program, to->pid, to->path, p->offset, o)
		 : bpf_program__attach_raw_tracepoint(program, p->path);
	if (!link)
		return uprobe_link_error(errno);
	to->links->at[to->links->n++] = link;
	return 0;
}

/* The probe at the begin comes first: a return without its begin would be of no use. The number of
 * the place tells calls of several functions that return at once apart. */
static int attach_timed(struct bpf_sampler *b, const struct probe_point *p, uint64_t number,
			const struct probe_target *to)
{
	LIBBPF_OPTS(bpf_uprobe_opts, o, .bpf_cookie = number);
	int r = attach_program(b, programs[p->program], p, to, &o);

	if (r == -EOPNOTSUPP && !p->filter.operator) { /* before Linux 5.15 */
		o.bpf_cookie = 0;
		r = attach_program(b, programs[p->program], p, to, &o);
	}
	o.retprobe = true;
	return r ? r : attach_program(b, RETURNED, p, to, &o);
}

/* What the program at this place compares. */
static int set_filter(struct bpf_sampler *b, const struct probe_point *p, uint32_t number)
{
	int map = bpf_object__find_map_fd_by_name(b->probes.object, "sampler_filters");

	if (!p->filter.operator)
		return 0;
	return bpf_map_update_elem(map, &number, &p->filter, BPF_ANY) ? -errno : 0;
}

static int attach(struct bpf_sampler *b, const struct probe_point *p, uint64_t number,
		  const struct probe_target *to)
{
	LIBBPF_OPTS(bpf_uprobe_opts, o);
	char name[48];

	snprintf(name, sizeof(name), TRACEPOINT "%llu", (unsigned long long)number);
	if (p->program == PROBE_TRACEPOINT)
		return attach_program(b, name, p, to, NULL);
	if (p->program == PROBE_RETURN)
		return attach_timed(b, p, number, to);
	o.ref_ctr_offset = p->semaphore;
	if (p->filter.operator|| p->program == PROBE_ALLOC)
		o.bpf_cookie = probe_links_cookie(p, number);
	return attach_program(b, programs[p->program], p, to, &o);
}

int bpf_probes_attach(struct bpf_sampler *b, const struct probe_points *points, char **why)
{
	int r = 0;

	*why = NULL;
	for (size_t i = 0; !r && i < points->n; i++) {
		const struct probe_target to = {&b->probes.links, -1, points->at[i].path};

		r = set_filter(b, &points->at[i], (uint32_t)i + 1);
		if (!r)
			r = attach(b, &points->at[i], i + 1, &to);
		if (r)
			explain(r, &points->at[i], why);
	}
	return r;
}

/* An event that counts nothing. Without a ring poll() would always say that its thread has ended.
 */
static int watch(struct probe_links *links, pid_t thread)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_kernel = 1,
	};

	links->watch = (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1,
				    PERF_FLAG_FD_CLOEXEC);
	if (links->watch < 0)
		return -errno;
	links->ring = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, links->watch,
			   0);
	if (links->ring == MAP_FAILED) {
		links->ring = NULL;
		return -errno;
	}
	return 0;
}

/* What a process has in use is known to its end, whichever of its threads have ended before. */
static int watch_process(struct probe_links *links, pid_t pid)
{
	links->watch = (int)syscall(SYS_pidfd_open, pid, 0);
	return links->watch < 0 ? -errno : 0;
}

static void close_watch(struct probe_links *links)
{
	if (links->ring)
		munmap(links->ring, (size_t)sysconf(_SC_PAGESIZE));
	if (links->watch >= 0)
		close(links->watch);
	links->ring = NULL;
	links->watch = -1;
}

bool bpf_probes_have_links(const struct bpf_sampler *b)
{
	return b->probes.type != UPROBE_EVENTS;
}

bool bpf_probes_are_put(const struct probe_links *links)
{
	return links->n || links->nmany;
}

bool bpf_probes_have_ended(struct probe_links *links, pid_t pid, bool watch_says)
{
	bool leaderless = links->nmany && (watch_says || links->leaderless) &&
			  procfs_living_thread(pid) != pid;

	if (!leaderless)
		return watch_says || links->leaderless; /* or another thread has exec'ed */
	if (!links->leaderless) {
		close_watch(links);
		links->leaderless = !watch_process(links, pid);
	}
	return !links->leaderless;
}

/* Those of all allocations are one link. */
static int attach_many(struct bpf_sampler *b, const struct probe_points *points,
		       const struct probe_target *to)
{
	int r = 0;

	if (b->probes.type == UPROBE_MULTI) {
		const struct bpf_program *alloc = bpf_object__find_program_by_name(
			b->probes.object, programs[PROBE_ALLOC]);

		r = probe_links_put(UPROBE_MULTI, bpf_program__fd(alloc), points, PROBE_ALLOC, to);
	}
	for (size_t i = 0; !r && i < points->n; i++)
		if (b->probes.type != UPROBE_MULTI || points->at[i].program != PROBE_ALLOC)
			r = attach(b, &points->at[i], i + 1, to);
	/* it had memory, which has the probes, if it has it still */
	if (!r && b->probes.type == UPROBE_MULTI && to->pid > 0 &&
	    procfs_living_thread(to->pid) != to->pid)
		r = -EOWNERDEAD;
	return r;
}

/* First the watch: if another thread has exec'ed meanwhile, it says so. */
int bpf_probes_attach_to(struct bpf_sampler *b, pid_t pid, int fd,
			 const struct probe_points *points, struct probe_links *links)
{
	bool of_thread = b->probes.type == UPROBE_EVENTS && pid > 0;
	pid_t thread = of_thread ? procfs_living_thread(pid) : pid;
	char path[64];
	const struct probe_target to = {links, thread, path};
	int r;

	*links = PROBE_LINKS_NONE;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = pid <= 0 ? 0 : b->inuse.followed ? watch_process(links, pid) : watch(links, thread);
	if (!r)
		r = b->inuse.followed ? inuse_attach(b, &to, points) : attach_many(b, points, &to);
	if (r)
		bpf_probes_detach(links);
	return r;
}

void bpf_probes_detach(struct probe_links *links)
{
	for (size_t i = 0; i < links->n; i++)
		bpf_link__destroy(links->at[i]);
	for (size_t i = links->nmany; i-- > 0;) /* what frees is put first, and removed last */
		close(links->many[i]);
	free(links->at);
	free(links->many);
	close_watch(links);
	*links = PROBE_LINKS_NONE;
}

void bpf_probes_set_period(struct bpf_sampler *b, uint32_t period)
{
	__atomic_store_n(&b->settings->probe_period, period, __ATOMIC_RELEASE);
}

void bpf_probes_counts(const struct bpf_sampler *b, uint64_t counts[PROBE_RESULT_COUNT])
{
	int ncpus = b->probes.object ? libbpf_num_possible_cpus() : 0;
	struct probe_cpu *cpus = ncpus > 0 ? calloc((size_t)ncpus, sizeof(*cpus)) : NULL;
	uint32_t zero = 0;
	bool read = cpus && !bpf_map_lookup_elem(b->probes.cpus, &zero, cpus);

	for (uint32_t i = 0; i < PROBE_RESULT_COUNT; i++) {
		counts[i] = 0;
		for (int c = 0; read && c < ncpus; c++)
			counts[i] += cpus[c].counts[i];
	}
	free(cpus);
}
