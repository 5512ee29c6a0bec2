/* SPDX-License-Identifier: Apache-2.0 */
/* Objects beside the first, of what is sampled beside CPU time: each has programs of its own type,
 * that walk, and scratch of its own, since a tick may interrupt them. What says which processes are
 * sampled, and how they are walked, is shared. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>

#include "bpf/internal/sampler_state.h"

/* Links an object that is loaded beside the first. 0; or -errno and, in *why, a malloc'ed sentence
 * or NULL. */
static int link_beside(struct bpf_sampler *b, enum sampler_object which, uint32_t cpus,
		       struct bpf_object **ret, char **why)
{
	struct linker_part parts[SAMPLER_PARTS];
	struct bpf_map *copies;
	int fd, r = linker_link(parts, sampler_object_parts(b, which, -1, parts), &fd, why);

	if (r)
		return r;
	r = sampler_object_open(ret, fd);
	close(fd);
	if (r)
		return r;
	copies = bpf_object__find_map_by_name(*ret, "sampler_copies");
	r = copies ? bpf_map__set_max_entries(copies, cpus) : -ENOENT;
	if (!r)
		r = sampler_object_exclude_languages(b, *ret);
	return r ? r : waits_share_maps(*ret, b->object, false);
}

static int open_probes(struct bpf_sampler *b, struct probes *h, uint32_t cpus, char **why)
{
	int r = 0;

	if (h->beside) {
		r = link_beside(b, h->which, cpus, &h->object, why);
		if (!r)
			r = probes_load_beside(b, h);
	}
	return !r && h->object ? probes_open(h) : r;
}

int sampler_open_others(struct bpf_sampler *b, uint32_t cpus, char **why)
{
	int r = 0;

	if (b->waits.beside) {
		r = link_beside(b, OBJECT_WAITS, cpus, &b->waits.object, why);
		if (!r)
			r = waits_load_beside(b, cpus);
	} else if (b->waits.sampled) {
		b->waits.object = b->object;
	}
	for (uint32_t i = 0; !r && i < PROBE_OBJECTS; i++)
		r = open_probes(b, probes_at(b, i), cpus, why);
	if (!r && b->inuse.followed)
		r = inuse_open(b, why);
	return !r && b->waits.object ? waits_open(b) : r;
}
