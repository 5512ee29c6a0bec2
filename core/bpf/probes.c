/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int probes_open(struct probes *h)
{
	int walk = bpf_object__find_map_fd_by_name(h->object, "sampler_probe_walk");
	struct bpf_program *p = bpf_object__find_program_by_name(h->object, "sampler_tick");
	int tick = p ? bpf_program__fd(p) : -ENOENT;
	uint32_t zero = 0;

	h->programs = bpf_object__find_map_fd_by_name(h->object, "sampler_programs");
	h->cpus = bpf_object__find_map_fd_by_name(h->object, "sampler_probe_cpus");
	h->counts = bpf_object__find_map_fd_by_name(h->object, "sampler_hooks");
	if (walk < 0 || tick < 0 || h->cpus < 0 || h->counts < 0)
		return -ENOENT;
	return bpf_map_update_elem(walk, &zero, &tick, BPF_ANY) ? -errno : 0;
}

/* The object beside that of CPU time. Processes are followed by that. */
int probes_load_beside(const struct bpf_sampler *b, struct probes *h)
{
	const char *section = h->tracepoints ? "raw_tp" : "uprobe";
	struct bpf_program *p;
	int r = 0;

	bpf_object__for_each_program(p, h->object)
	{
		if (!r && strcmp(bpf_program__section_name(p), section) != 0)
			r = bpf_program__set_autoload(p, false);
	}
	if (!r)
		r = probes_size(h);
	uprobe_link_set_type(h->object, h->type);
	if (!r && !h->tracepoints)
		r = inuse_prepare(h->object, !h->hooks && b->inuse.followed);
	return r ? r : bpf_object__load(h->object);
}

void probes_close(struct bpf_sampler *b)
{
	bpf_probes_detach(&b->probes.links);
	for (uint32_t i = 0; i < PROBE_OBJECTS; i++)
		if (probes_at(b, i)->beside)
			bpf_object__close(probes_at(b, i)->object);
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

/* All programs of their object, since a reload may add places of any kind. */
static void prepare_hooks(struct bpf_sampler *b, const struct bpf_sampler_options *o)
{
	const struct probes of_files = {.which = OBJECT_PROBES,
					.beside = true,
					.hooks = true,
					.type = takes_links(o) ? UPROBE_MULTI : UPROBE_EVENTS,
					.used = 1u << PROBE_CALL | 1u << PROBE_DESCRIBED |
						1u << PROBE_RETURN,
					.numbers = HOOK_PLACES};

	b->hooks[0] = of_files;
	b->hooks[1] = (struct probes){.which = OBJECT_TRACEPOINTS,
				      .beside = true,
				      .hooks = true,
				      .tracepoints = MOST_TRACEPOINTS};
}

void probes_prepare(struct bpf_sampler *b, const struct bpf_sampler_options *o)
{
	const struct probe_points *points = o->probes;

	b->probes = (struct probes){.which = OBJECT_PROBES,
				    .beside = points && o->probes_beside,
				    .sampled = points && !o->probes_beside,
				    .links = PROBE_LINKS_NONE};
	if (o->hooks)
		prepare_hooks(b, o);
	if (!points)
		return;
	b->probes.type = o->in_use ? UPROBE_SESSION : takes_links(o) ? UPROBE_MULTI : UPROBE_EVENTS;
	/* those of allocators are found later */
	b->probes.used = points->n ? 0 : 1u << PROBE_ALLOC;
	for (size_t i = 0; i < points->n; i++) {
		b->probes.used |= 1u << points->at[i].program;
		b->probes.tracepoints += points->at[i].program == PROBE_TRACEPOINT;
		if (points->at[i].filter.operator)
			b->probes.numbers = (uint32_t)points->n;
	}
	if (b->probes.tracepoints)
		b->probes.which = OBJECT_TRACEPOINTS;
}

static int exclude(const struct probes *h, const char *program)
{
	struct bpf_program *p = bpf_object__find_program_by_name(h->object, program);

	return p ? bpf_program__set_autoload(p, false) : -ENOENT;
}

/* Each tracepoint has the program of its number. */
static int size_tracepoints(const struct probes *h, struct bpf_map *filters)
{
	int r = bpf_map__set_max_entries(filters, MOST_TRACEPOINTS + 1);

	for (uint32_t i = h->tracepoints + 1; !r && i <= MOST_TRACEPOINTS; i++) {
		char name[32];

		snprintf(name, sizeof(name), TRACEPOINT "%u", i);
		r = exclude(h, name);
	}
	return r;
}

/* Programs for other kinds of probes need not be verified. */
static int exclude_unused(const struct probes *h)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < PROBE_PROGRAMS; i++)
		if (programs[i] && !(h->used & 1u << i))
			r = exclude(h, programs[i]);
	if (!r && !(h->used & 1u << PROBE_RETURN))
		r = exclude(h, RETURNED);
	return r;
}

int probes_size(const struct probes *h)
{
	struct bpf_map *calls = bpf_object__find_map_by_name(h->object, "sampler_calls");
	struct bpf_map *filters = bpf_object__find_map_by_name(h->object, "sampler_filters");
	struct bpf_map *hooks = bpf_object__find_map_by_name(h->object, "sampler_hooks");
	bool timed = h->used & 1u << PROBE_RETURN;
	int r = hooks && filters ? 0 : -ENOENT;

	if (!r && h->hooks)
		r = bpf_map__set_max_entries(hooks, MOST_HOOKS + 1);
	if (r || h->tracepoints)
		return r ? r : size_tracepoints(h, filters);
	if (!calls)
		return -ENOENT;
	r = bpf_map__set_max_entries(calls, timed ? PROBE_CALLS : 1);
	if (!r)
		r = exclude_unused(h);
	return r ? r : bpf_map__set_max_entries(filters, h->numbers + 1);
}

/* A link of one place, for which an event would do: one object has programs of one type. */
static int link_place(const struct probes *h, const struct bpf_program *program, uint64_t offset,
		      const struct probe_where *to, const struct bpf_uprobe_opts *o)
{
	const uint64_t cookie = o->bpf_cookie, counter = o->ref_ctr_offset;
	const struct uprobe_places at = {&offset, &cookie, &counter, 1, o->retprobe};

	return probe_links_add(to->links, uprobe_link_create(h->type, bpf_program__fd(program),
							     to->pid, to->path, &at));
}

/* o: NULL at a tracepoint. */
static int attach_program(const struct probes *h, const char *name, const struct probe_point *p,
			  const struct probe_where *to, struct bpf_uprobe_opts *o)
{
	struct bpf_program *program = bpf_object__find_program_by_name(h->object, name);
	struct bpf_link *link;

	if (program && o && h->type == UPROBE_MULTI)
		return link_place(h, program, p->offset, to, o);
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
static int attach_timed(const struct probes *h, const struct probe_point *p, uint64_t number,
			const struct probe_where *to)
{
	LIBBPF_OPTS(bpf_uprobe_opts, o, .bpf_cookie = number);
	int r = attach_program(h, programs[p->program], p, to, &o);

	if (r == -EOPNOTSUPP && !p->filter.operator&& !p->hook) { /* before Linux 5.15 */
		o.bpf_cookie = 0;
		r = attach_program(h, programs[p->program], p, to, &o);
	}
	o.retprobe = true;
	return r ? r : attach_program(h, RETURNED, p, to, &o);
}

/* What the program at this place compares, and whose it is. */
static int set_place(const struct probes *h, const struct probe_point *p, uint32_t number)
{
	int map = bpf_object__find_map_fd_by_name(h->object, "sampler_filters");
	const struct probe_place at = {.filter = p->filter, .period = p->period, .hook = p->hook};

	if (!p->filter.operator&& !p->hook)
		return 0;
	return bpf_map_update_elem(map, &number, &at, BPF_ANY) ? -errno : 0;
}

static int attach(const struct probes *h, const struct probe_point *p, uint64_t number,
		  const struct probe_where *to)
{
	LIBBPF_OPTS(bpf_uprobe_opts, o);
	char name[48];

	snprintf(name, sizeof(name), TRACEPOINT "%llu", (unsigned long long)number);
	if (p->program == PROBE_TRACEPOINT)
		return attach_program(h, name, p, to, NULL);
	if (p->program == PROBE_RETURN)
		return attach_timed(h, p, number, to);
	o.ref_ctr_offset = p->semaphore;
	if (p->filter.operator|| p->hook || p->program == PROBE_ALLOC)
		o.bpf_cookie = probe_links_cookie(p, number);
	return attach_program(h, programs[p->program], p, to, &o);
}

int bpf_probes_attach(struct bpf_sampler *b, const struct probe_points *points, char **why)
{
	int r = 0;

	*why = NULL;
	for (size_t i = 0; !r && i < points->n; i++) {
		const struct probe_where to = {&b->probes.links, -1, points->at[i].path};

		r = set_place(&b->probes, &points->at[i], (uint32_t)i + 1);
		if (!r)
			r = attach(&b->probes, &points->at[i], i + 1, &to);
		if (r)
			explain(r, &points->at[i], why);
	}
	return r;
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
		probe_links_close_watch(links);
		links->leaderless = !probe_links_watch_process(links, pid);
	}
	return !links->leaderless;
}

/* Those of a program are one link. The begin of what is timed comes before its return. */
static int link_many(const struct probes *h, const struct probe_points *points,
		     const struct probe_where *to)
{
	int r = 0;

	for (uint32_t i = 0; !r && i <= PROBE_PROGRAMS; i++) {
		bool returned = i == PROBE_PROGRAMS;
		const char *name = returned ? RETURNED : programs[i];
		const struct bpf_program *p = name ? bpf_object__find_program_by_name(h->object,
										      name)
						   : NULL;
		const struct probe_linked l = {UPROBE_MULTI, p ? bpf_program__fd(p) : -1,
					       returned ? PROBE_RETURN : (enum probe_program)i,
					       returned};

		if (p)
			r = probe_links_put(&l, points, to);
	}
	return r;
}

static int attach_many(const struct probes *h, const struct probe_points *points,
		       const struct probe_where *to)
{
	int r = 0;

	for (size_t i = 0; !r && h->hooks && i < points->n; i++)
		r = set_place(h, &points->at[i], points->at[i].number);
	if (!r && h->type == UPROBE_MULTI)
		r = link_many(h, points, to);
	for (size_t i = 0; !r && h->type != UPROBE_MULTI && i < points->n; i++)
		r = attach(h, &points->at[i], probe_links_number(&points->at[i], i), to);
	/* it had memory, which has the probes, if it has it still */
	if (!r && h->type == UPROBE_MULTI && to->pid > 0 &&
	    procfs_living_thread(to->pid) != to->pid)
		r = -EOWNERDEAD;
	return r;
}

/* First the watch: if another thread has exec'ed meanwhile, it says so. */
static int attach_to(struct bpf_sampler *b, const struct probes *h, struct probe_where *to, int fd,
		     const struct probe_points *points)
{
	bool followed = !h->hooks && b->inuse.followed;
	pid_t pid = to->pid;
	char path[64];
	int r;

	*to->links = PROBE_LINKS_NONE;
	to->path = path;
	to->pid = h->type == UPROBE_EVENTS && pid > 0 ? procfs_living_thread(pid) : pid;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = pid <= 0   ? 0
	    : followed ? probe_links_watch_process(to->links, pid)
		       : probe_links_watch(to->links, to->pid);
	if (!r)
		r = followed ? inuse_attach(b, to, points) : attach_many(h, points, to);
	if (r)
		bpf_probes_detach(to->links);
	return r;
}

int bpf_probes_attach_to(struct bpf_sampler *b, pid_t pid, int fd,
			 const struct probe_points *points, struct probe_links *links)
{
	return attach_to(b, &b->probes, &(struct probe_where){links, pid, NULL}, fd, points);
}

int bpf_hooks_attach_to(struct bpf_sampler *b, pid_t pid, int fd, const struct probe_points *points,
			struct probe_links *links)
{
	return attach_to(b, &b->hooks[0], &(struct probe_where){links, pid, NULL}, fd, points);
}

int bpf_hooks_attach(struct bpf_sampler *b, const struct probe_point *p, struct probe_links *links)
{
	int r = set_place(&b->hooks[1], p, p->number);

	*links = PROBE_LINKS_NONE;
	return r ? r : attach(&b->hooks[1], p, p->number, &(struct probe_where){links, -1, NULL});
}

void bpf_probes_detach(struct probe_links *links)
{
	for (size_t i = 0; i < links->n; i++)
		bpf_link__destroy(links->at[i]);
	for (size_t i = links->nmany; i-- > 0;) /* what frees is put first, and removed last */
		close(links->many[i]);
	free(links->at);
	free(links->many);
	probe_links_close_watch(links);
	*links = PROBE_LINKS_NONE;
}

void bpf_probes_set_period(struct bpf_sampler *b, uint32_t period)
{
	__atomic_store_n(&b->settings->probe_period, period, __ATOMIC_RELEASE);
}

/* Of a map by CPU, whose values begin with counts. */
static void sum_counts(int map, uint32_t key, size_t size, uint64_t counts[PROBE_RESULT_COUNT])
{
	int ncpus = map > 0 ? libbpf_num_possible_cpus() : 0;
	char *cpus = ncpus > 0 ? calloc((size_t)ncpus, size) : NULL;
	bool read = cpus && !bpf_map_lookup_elem(map, &key, cpus);

	for (uint32_t i = 0; i < PROBE_RESULT_COUNT; i++) {
		counts[i] = 0;
		for (int c = 0; read && c < ncpus; c++)
			counts[i] += ((const uint64_t *)(cpus + (size_t)c * size))[i];
	}
	free(cpus);
}

void bpf_probes_counts(const struct bpf_sampler *b, uint64_t counts[PROBE_RESULT_COUNT])
{
	sum_counts(b->probes.object ? b->probes.cpus : 0, 0, sizeof(struct probe_cpu), counts);
}

void bpf_hooks_counts(const struct bpf_sampler *b, bool tracepoint, uint32_t hook,
		      uint64_t counts[PROBE_RESULT_COUNT])
{
	const struct probes *h = &b->hooks[tracepoint];

	if (hook)
		sum_counts(h->object ? h->counts : 0, hook, sizeof(struct hook_cpu), counts);
	else
		sum_counts(h->object ? h->cpus : 0, 0, sizeof(struct probe_cpu), counts);
}
