/* SPDX-License-Identifier: Apache-2.0 */
/* The programs are attached by links of uprobe sessions, which libbpf knows from 1.5 on and the
 * kernel from 6.13 on. */
#include "bpf/inuse.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "bpf/internal/sampler_state.h"
#include "bpf/probes.h"
#include "programs/map_entries.h"

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
/* What is followed must be seen when it is freed, so that is attached first. */
static const struct {
	const char *name;
	enum uprobe_link_type type;
	enum probe_program at;
} programs[] = {{"sampler_inuse_free", UPROBE_SESSION, PROBE_FREE},
		{"sampler_inuse_alloc", UPROBE_SESSION, PROBE_ALLOC},
		{"sampler_inuse_throws", UPROBE_MULTI, PROBE_THROWS}};
#define PROGRAMS 3

/* ---- opening ---- */

int inuse_prepare(struct bpf_object *object, bool followed)
{
	int r = 0;

	for (size_t i = 0; !r && i <= STATE; i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, maps[i].name);

		if (i != BPF_INUSE_SPACES)
			r = map ? bpf_map__set_autocreate(map, followed) : -ENOENT;
	}
	for (size_t i = 0; !r && i < PROGRAMS; i++) {
		struct bpf_program *p = bpf_object__find_program_by_name(object, programs[i].name);

		r = p ? bpf_program__set_autoload(p, followed) : -ENOENT;
		bpf_program__set_expected_attach_type(p, (enum bpf_attach_type)programs[i].type);
	}
	return r;
}

int inuse_open(struct bpf_sampler *b, char **why)
{
	struct bpf_object *o = b->probes.object;
	void *p;

	for (size_t i = 0; i <= STATE; i++)
		b->inuse.maps[i] = bpf_object__find_map_fd_by_name(o, maps[i].name);
	for (size_t i = 0; i < PROGRAMS; i++)
		b->inuse.programs[i] = bpf_program__fd(
			bpf_object__find_program_by_name(o, programs[i].name));
	if (!uprobe_link_has_sessions(b->inuse.programs[0])) {
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

int inuse_attach(const struct bpf_sampler *b, const struct probe_where *to,
		 const struct probe_points *points)
{
	int r = 0;

	for (size_t i = 0; !r && i < PROGRAMS; i++)
		r = probe_links_put(&(struct probe_linked){programs[i].type, b->inuse.programs[i],
							   programs[i].at, false},
				    points, to);
	return r;
}

/* ---- what they have written ---- */

bool bpf_inuse_is_followed(const struct bpf_sampler *b)
{
	return b->inuse.followed;
}

int bpf_inuse_each(const struct bpf_sampler *b, enum bpf_inuse_map map,
		   int (*each)(void *arg, const void *key, const void *value), void *arg)
{
	return map_entries_each(b->inuse.maps[map], maps[map].key, maps[map].value, each, arg);
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
