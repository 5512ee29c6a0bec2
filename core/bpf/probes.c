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

static const char *const programs[PROBE_PROGRAMS] = {
	[PROBE_CALL] = "sampler_probe_call", [PROBE_ALLOC] = "sampler_probe_alloc"};

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

	if (asprintf(why, "no probe at %s, offset 0x%llx: %s", p->path,
		     (unsigned long long)p->offset, text) < 0)
		*why = NULL;
	return r;
}

static int attach(struct bpf_sampler *b, const struct probe_point *p, pid_t pid, const char *path)
{
	LIBBPF_OPTS(bpf_uprobe_opts, o);
	struct bpf_program *program = bpf_object__find_program_by_name(b->object,
								       programs[p->program]);
	struct bpf_link *link;

	if (p->program == PROBE_ALLOC)
		o.bpf_cookie = ALLOC_COOKIE(p->kind, p->bytes);
	if (!program || !ARRAY_ROOM(b->probes.links, b->probes.n, b->probes.cap))
		return program ? -ENOMEM : -ENOENT;
	link = bpf_program__attach_uprobe_opts(program, pid, path, p->offset, &o);
	if (!link)
		return -errno;
	b->probes.links[b->probes.n++] = link;
	return 0;
}

int bpf_probes_attach(struct bpf_sampler *b, const struct probe_points *points, char **why)
{
	int r = 0;

	*why = NULL;
	for (size_t i = 0; !r && i < points->n; i++) {
		r = attach(b, &points->at[i], -1, points->at[i].path);
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
		r = attach(b, &points->at[i], pid, path);
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
