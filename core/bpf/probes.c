/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "bpf/internal/sampler_state.h"

#define PROBE_TEXT(name, text) text,

const char *const probe_result_texts[PROBE_RESULT_COUNT] = {PROBE_RESULTS(PROBE_TEXT)};

static const char *const programs[PROBE_PROGRAMS] = {[PROBE_CALL] = "sampler_probe_call",
						     [PROBE_ALLOC] = "sampler_probe_alloc",
						     [PROBE_RETURN] = "sampler_probe_begin"};

/* Behind the begin of what is timed. */
#define RETURNED "sampler_probe_return"

int probes_open(struct bpf_sampler *b)
{
	int walk = bpf_object__find_map_fd_by_name(b->object, "sampler_probe_walk");
	uint32_t zero = 0;

	b->probes.cpus = bpf_object__find_map_fd_by_name(b->object, "sampler_probe_cpus");
	if (walk < 0 || b->probes.cpus < 0)
		return -ENOENT;
	return bpf_map_update_elem(walk, &zero, &b->fds.tick, BPF_ANY) ? -errno : 0;
}

void probes_close(struct bpf_sampler *b)
{
	for (size_t i = 0; i < b->probes.n; i++)
		bpf_link__destroy(b->probes.links[i]);
	free(b->probes.links);
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

	if (r == -EOPNOTSUPP && p->filter.operator)
		text = "a filter needs Linux 5.15";
	if (asprintf(why, "no probe at %s, offset 0x%llx: %s", p->path,
		     (unsigned long long)p->offset, text) < 0)
		*why = NULL;
	return r;
}

void probes_prepare(struct bpf_sampler *b, const struct probe_points *points)
{
	for (size_t i = 0; i < points->n; i++) {
		b->probes.timed |= points->at[i].program == PROBE_RETURN;
		if (points->at[i].filter.operator)
			b->probes.numbers = (uint32_t)points->n;
	}
}

int probes_size(const struct bpf_sampler *b)
{
	struct bpf_map *calls = bpf_object__find_map_by_name(b->object, "sampler_calls");
	struct bpf_map *filters = bpf_object__find_map_by_name(b->object, "sampler_filters");
	int r;

	if (!calls || !filters)
		return -ENOENT;
	r = bpf_map__set_max_entries(calls, b->probes.timed ? PROBE_CALLS : 1);
	return r ? r : bpf_map__set_max_entries(filters, b->probes.numbers + 1);
}

static int attach_program(struct bpf_sampler *b, const char *name, const struct probe_point *p,
			  pid_t pid, const char *path, struct bpf_uprobe_opts *o)
{
	struct bpf_program *program = bpf_object__find_program_by_name(b->object, name);
	struct bpf_link *link;

	if (!program || !ARRAY_ROOM(b->probes.links, b->probes.n, b->probes.cap))
		return program ? -ENOMEM : -ENOENT;
	link = bpf_program__attach_uprobe_opts(program, pid, path, p->offset, o);
	if (!link)
		return -errno;
	b->probes.links[b->probes.n++] = link;
	return 0;
}

/* The probe at the begin comes first: a return without its begin would be of no use. The number of
 * the place tells calls of several functions that return at once apart. */
static int attach_timed(struct bpf_sampler *b, const struct probe_point *p, uint64_t number,
			pid_t pid, const char *path)
{
	LIBBPF_OPTS(bpf_uprobe_opts, o, .bpf_cookie = number);
	int r = attach_program(b, programs[p->program], p, pid, path, &o);

	if (r == -EOPNOTSUPP && !p->filter.operator) { /* before Linux 5.15 */
		o.bpf_cookie = 0;
		r = attach_program(b, programs[p->program], p, pid, path, &o);
	}
	o.retprobe = true;
	return r ? r : attach_program(b, RETURNED, p, pid, path, &o);
}

/* What the program at this place compares. */
static int set_filter(struct bpf_sampler *b, const struct probe_point *p, uint32_t number)
{
	int map = bpf_object__find_map_fd_by_name(b->object, "sampler_filters");

	if (!p->filter.operator)
		return 0;
	return bpf_map_update_elem(map, &number, &p->filter, BPF_ANY) ? -errno : 0;
}

static int attach(struct bpf_sampler *b, const struct probe_point *p, uint64_t number, pid_t pid,
		  const char *path)
{
	LIBBPF_OPTS(bpf_uprobe_opts, o);

	if (p->program == PROBE_RETURN)
		return attach_timed(b, p, number, pid, path);
	o.ref_ctr_offset = p->semaphore;
	if (p->filter.operator)
		o.bpf_cookie = number;
	if (p->program == PROBE_ALLOC)
		o.bpf_cookie = ALLOC_COOKIE(p->kind, p->bytes);
	return attach_program(b, programs[p->program], p, pid, path, &o);
}

int bpf_probes_attach(struct bpf_sampler *b, const struct probe_points *points, char **why)
{
	int r = 0;

	*why = NULL;
	for (size_t i = 0; !r && i < points->n; i++) {
		r = set_filter(b, &points->at[i], (uint32_t)i + 1);
		if (!r)
			r = attach(b, &points->at[i], i + 1, -1, points->at[i].path);
		if (r)
			explain(r, &points->at[i], why);
	}
	return r;
}

int bpf_probes_attach_to(struct bpf_sampler *b, pid_t pid, int fd,
			 const struct probe_points *points)
{
	char path[64];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (b->inuse.followed)
		return inuse_attach(b, pid, path, points);
	for (size_t i = 0; !r && i < points->n; i++)
		r = attach(b, &points->at[i], i + 1, pid, path);
	return r;
}

void bpf_probes_set_period(struct bpf_sampler *b, uint32_t period)
{
	__atomic_store_n(&b->settings->probe_period, period, __ATOMIC_RELEASE);
}

void bpf_probes_counts(const struct bpf_sampler *b, uint64_t counts[PROBE_RESULT_COUNT])
{
	int ncpus = b->probes.sampled ? libbpf_num_possible_cpus() : 0;
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
