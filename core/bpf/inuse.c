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

static const char *const maps[] = {"sampler_inuse_live", "sampler_inuse_calls",
				   "sampler_inuse_state"};
static const char *const programs[] = {"sampler_inuse_alloc", "sampler_inuse_free"};

/* ---- opening ---- */

int inuse_prepare(const struct bpf_sampler *b, struct bpf_object *object)
{
	struct bpf_map *spaces = bpf_object__find_map_by_name(object, "sampler_spaces");
	int r = 0;

	if (b->inuse.followed)
		return spaces ? bpf_map__set_max_entries(spaces, INUSE_SPACES) : -ENOENT;
	for (size_t i = 0; !r && i < sizeof(maps) / sizeof(*maps); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, maps[i]);

		r = map ? bpf_map__set_autocreate(map, false) : -ENOENT;
	}
	for (size_t i = 0; !r && i < sizeof(programs) / sizeof(*programs); i++) {
		struct bpf_program *p = bpf_object__find_program_by_name(object, programs[i]);

		r = p ? bpf_program__set_autoload(p, false) : -ENOENT;
	}
	return r;
}

int inuse_open(struct bpf_sampler *b, char **why)
{
	int state = bpf_object__find_map_fd_by_name(b->object, maps[2]),
	    *fd[2] = {&b->inuse.alloc, &b->inuse.free};
	void *p;

	b->inuse.live = bpf_object__find_map_fd_by_name(b->object, maps[0]);
	b->inuse.calls = bpf_object__find_map_fd_by_name(b->object, maps[1]);
	b->inuse.spaces = bpf_object__find_map_fd_by_name(b->object, "sampler_spaces");
	for (size_t i = 0; i < 2; i++)
		*fd[i] = bpf_program__fd(bpf_object__find_program_by_name(b->object, programs[i]));
	if (!uprobe_link_has_sessions(b->inuse.alloc)) {
		*why = strdup("memory in use needs uprobe sessions, which Linux has from 6.13 on");
		return -ENOTSUP;
	}
	p = mmap(NULL, sizeof(struct inuse_state), PROT_READ | PROT_WRITE, MAP_SHARED, state, 0);
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

/* Calls each() with all entries of a map. 0 or -errno. */
static int each_entry(int map, size_t key_size, size_t value_size,
		      int (*each)(void *arg, const void *key, const void *value), void *arg)
{
	char *keys = malloc(BATCH * key_size), *values = malloc(BATCH * value_size);
	uint64_t in = 0, out = 0; /* places in the map */
	int r = keys && values ? 0 : -ENOMEM;
	bool first = true;

	while (!r) {
		uint32_t n = BATCH;
		int end = bpf_map_lookup_batch(map, first ? NULL : &in, &out, keys, values, &n,
					       NULL)
				  ? -errno
				  : 0;

		if (end && end != -ENOENT) {
			r = end;
			break;
		}
		for (uint32_t i = 0; !r && i < n; i++)
			r = each(arg, keys + i * key_size, values + i * value_size);
		if (end)
			break;
		in = out;
		first = false;
	}
	free(keys);
	free(values);
	return r;
}

int bpf_inuse_each(const struct bpf_sampler *b, enum bpf_inuse_map map,
		   int (*each)(void *arg, const void *key, const void *value), void *arg)
{
	switch (map) {
	case BPF_INUSE_CALLS:
		return each_entry(b->inuse.calls, sizeof(struct inuse_call_key),
				  sizeof(struct inuse_call), each, arg);
	case BPF_INUSE_LIVE:
		return each_entry(b->inuse.live, sizeof(struct inuse_key),
				  sizeof(struct inuse_block), each, arg);
	default: /* BPF_INUSE_SPACES */
		return each_entry(b->inuse.spaces, sizeof(uint32_t), sizeof(uint32_t), each, arg);
	}
}

void bpf_inuse_remove(const struct bpf_sampler *b, const struct inuse_key *key, uint32_t id)
{
	struct inuse_block block;

	if (bpf_map_lookup_elem(b->inuse.live, key, &block) || block.id != id ||
	    bpf_map_delete_elem(b->inuse.live, key))
		return;
	__atomic_sub_fetch(&b->inuse.state->live[inuse_hash(key->at, key->tgid)], 1,
			   __ATOMIC_RELAXED);
}

uint32_t bpf_inuse_unfollowed(const struct bpf_sampler *b)
{
	return __atomic_load_n(&b->inuse.state->full, __ATOMIC_RELAXED);
}

uint32_t bpf_inuse_unreturned(const struct bpf_sampler *b)
{
	return __atomic_load_n(&b->inuse.state->unreturned, __ATOMIC_RELAXED);
}
