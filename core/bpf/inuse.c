/* SPDX-License-Identifier: Apache-2.0 */
/* The programs are attached by links of uprobe sessions, which libbpf knows from 1.5 on and the
 * kernel from 6.13 on. */
#include "bpf/inuse.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "bpf/internal/sampler_state.h"
#include "bpf/probes.h"

#define BATCH 4096u

#define STATE (BPF_INUSE_SPACES + 1)

static const struct map_kind {
	const char *name;
	size_t key, value;
} maps[] = {
	[BPF_INUSE_CALLS] = {"sampler_inuse_calls", sizeof(struct inuse_call_key),
			     sizeof(struct inuse_call)},
	[BPF_INUSE_LIVE] = {"sampler_inuse_live", sizeof(struct inuse_key),
			    sizeof(struct inuse_block)},
	[BPF_INUSE_SPACES] = {"sampler_spaces", sizeof(uint32_t), sizeof(uint32_t)},
	[STATE] = {"sampler_inuse_state", 0, 0},
};
static const char *const programs[] = {"sampler_inuse_alloc", "sampler_inuse_free"};

/* ---- opening ---- */

int inuse_prepare(const struct bpf_sampler *b, struct bpf_object *object)
{
	int r = 0;

	for (size_t i = 0; !b->inuse.followed && !r && i <= STATE; i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, maps[i].name);

		if (i != BPF_INUSE_SPACES)
			r = map ? bpf_map__set_autocreate(map, false) : -ENOENT;
	}
	for (size_t i = 0; !b->inuse.followed && !r && i < 2; i++) {
		struct bpf_program *p = bpf_object__find_program_by_name(object, programs[i]);

		r = p ? bpf_program__set_autoload(p, false) : -ENOENT;
	}
	return r;
}

int inuse_open(struct bpf_sampler *b, char **why)
{
	struct bpf_object *o = b->probes.object;
	int *fd[2] = {&b->inuse.alloc, &b->inuse.free};
	void *p;

	for (size_t i = 0; i <= STATE; i++)
		b->inuse.maps[i] = bpf_object__find_map_fd_by_name(o, maps[i].name);
	for (size_t i = 0; i < 2; i++)
		*fd[i] = bpf_program__fd(bpf_object__find_program_by_name(o, programs[i]));
	if (!uprobe_link_has_sessions(b->inuse.alloc)) {
		*why = strdup("memory in use needs uprobe sessions, which Linux has from 6.13 on");
		return -ENOTSUP;
	}
	p = mmap(NULL, sizeof(struct inuse_state), PROT_READ | PROT_WRITE, MAP_SHARED,
		 b->inuse.maps[STATE], 0);
	if (p == MAP_FAILED)
		return -errno;
	b->inuse.state = p;
	return 0;
}

void inuse_close(struct bpf_sampler *b)
{
	if (b->inuse.state)
		munmap(b->inuse.state, sizeof(*b->inuse.state));
}

/* ---- probes ---- */

/* What is followed must be seen when it is freed. */
int inuse_attach(const struct bpf_sampler *b, const struct probe_target *to,
		 const struct probe_points *points)
{
	int r = probe_links_put(UPROBE_SESSION, b->inuse.free, points, PROBE_FREE, to);

	return r ? r : probe_links_put(UPROBE_SESSION, b->inuse.alloc, points, PROBE_ALLOC, to);
}

/* ---- what they have written ---- */

bool bpf_inuse_is_followed(const struct bpf_sampler *b)
{
	return b->inuse.followed;
}

int bpf_inuse_each(const struct bpf_sampler *b, enum bpf_inuse_map map,
		   int (*each)(void *arg, const void *key, const void *value), void *arg)
{
	const struct map_kind *m = &maps[map];
	char *keys = malloc(BATCH * m->key), *values = malloc(BATCH * m->value);
	uint64_t in = 0, out = 0; /* places in the map */
	int r = keys && values ? 0 : -ENOMEM, end = 0;

	for (bool first = true; !r && !end; first = false, in = out) {
		uint32_t n = BATCH;

		if (bpf_map_lookup_batch(b->inuse.maps[map], first ? NULL : &in, &out, keys, values,
					 &n, NULL))
			end = -errno;
		if (end && end != -ENOENT) {
			r = end;
			break;
		}
		for (uint32_t i = 0; !r && i < n; i++)
			r = each(arg, keys + i * m->key, values + i * m->value);
	}
	free(keys);
	free(values);
	return r;
}

void bpf_inuse_remove(const struct bpf_sampler *b, const struct inuse_key *key, uint32_t id)
{
	struct inuse_block block;

	if (bpf_map_lookup_elem(b->inuse.maps[BPF_INUSE_LIVE], key, &block) || block.id != id ||
	    bpf_map_delete_elem(b->inuse.maps[BPF_INUSE_LIVE], key))
		return;
	__atomic_sub_fetch(&b->inuse.state->live[inuse_hash(key->at, key->tgid)], 1,
			   __ATOMIC_RELAXED);
}

void bpf_inuse_forget(const struct bpf_sampler *b, enum bpf_inuse_map map, const void *key)
{
	bpf_map_delete_elem(b->inuse.maps[map], key);
}

struct bpf_inuse_counts bpf_inuse_counts(const struct bpf_sampler *b)
{
	return (struct bpf_inuse_counts){
		__atomic_load_n(&b->inuse.state->full, __ATOMIC_RELAXED),
		__atomic_load_n(&b->inuse.state->unreturned, __ATOMIC_RELAXED)};
}
