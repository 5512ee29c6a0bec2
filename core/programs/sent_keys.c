/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/sent_keys.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "programs/map_entries.h"
#include "programs/programs.h"

struct forgetting {
	int map;
	bool (*of)(void *arg, uint64_t process);
	void *arg;
};

/* A key begins with the number of its process. */
static int forget(void *arg, const void *key, const void *value)
{
	const struct forgetting *f = arg;
	uint64_t process;

	(void)value;
	memcpy(&process, key, sizeof(process));
	if (f->of(f->arg, process) && bpf_map_delete_elem(f->map, key) && errno != ENOENT)
		return -errno;
	return 0;
}

/* After it no CPU believes what it found in the map of keys before, nor what steps remember. */
static int raise_withdrawn(int map)
{
	uint32_t *times = programs_map_memory(map, sizeof(*times));

	if (!times)
		return -errno;
	__atomic_fetch_add(times, 1, __ATOMIC_SEQ_CST);
	munmap(times, sizeof(*times));
	return 0;
}

int sent_keys_forget(struct bpf_object *object, bool (*of)(void *arg, uint64_t process), void *arg)
{
	const struct bpf_map *sent = bpf_object__find_map_by_name(object, "sampler_sent");
	const struct bpf_map *times = bpf_object__find_map_by_name(object, "sampler_withdrawn");
	struct forgetting f = {.map = sent ? bpf_map__fd(sent) : -1, .of = of, .arg = arg};
	int r;

	if (f.map < 0 || !times || bpf_map__fd(times) < 0)
		return -ENOENT; /* there is no language */
	r = map_entries_each(f.map, bpf_map__key_size(sent), bpf_map__value_size(sent), forget, &f);
	return r ? r : raise_withdrawn(bpf_map__fd(times));
}
