/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/waits.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fusee/sampler.bpf.h>

#include "base/clock.h"
#include "bpf/internal/sampler_state.h"

#define WAIT_TEXT(name, text) text,

const char *const wait_result_texts[WAIT_RESULT_COUNT] = {WAIT_RESULTS(WAIT_TEXT)};

/* ---- the rings whose wakes are interrupts ---- */

/* What the kernel shares of a ring: a page with the reader's position, which is written here, and a
 * page with the writer's. */
struct wait_ring {
	uint64_t *consumer;
	const uint64_t *producer;
};

static void close_ring(struct wait_ring *r, size_t page)
{
	if (r->consumer)
		munmap(r->consumer, page);
	if (r->producer)
		munmap((void *)r->producer, page);
}

/* The map in the kernel keeps the ring. */
static int open_ring(int outer, uint32_t cpu, size_t page, struct wait_ring *r)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "wait_wake", 0, 0, WAIT_RING_BYTES, NULL);
	void *at;

	if (fd < 0)
		return -errno;
	at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	r->consumer = at == MAP_FAILED ? NULL : at;
	at = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, (off_t)page);
	r->producer = at == MAP_FAILED ? NULL : at;
	if (!r->consumer || !r->producer || bpf_map_update_elem(outer, &cpu, &fd, BPF_ANY)) {
		int e = -errno;

		close(fd);
		return e;
	}
	close(fd);
	return 0;
}

static struct fusee_sampler_scope *map_scope(int fd)
{
	void *at = mmap(NULL, sizeof(struct fusee_sampler_scope), PROT_READ | PROT_WRITE,
			MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Storage of threads is used by programs where kernel_has(task_pt_regs), as bpf/waiters.h says. */
int waits_prepare(struct bpf_object *object, uint32_t cpus)
{
	struct bpf_map *wakes = bpf_object__find_map_by_name(object, "sampler_wait_wakes");
	struct bpf_map *storage = bpf_object__find_map_by_name(object, "sampler_storage");
	int r;

	if (!wakes || !storage)
		return -ENOENT;
	r = bpf_map__set_max_entries(wakes, cpus);
	if (r)
		return r;
	if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_pt_regs, NULL) == 1)
		return 0;
	return bpf_map__set_autocreate(storage, false);
}

/* A tick may interrupt the walk of a wait, so what a walk writes is each object's own. */
static bool is_shared(const char *name)
{
	static const char *const names[] = {
		"sampler_pids",   "sampler_rates",  "sampler_settings",   "sampler_threads",
		"sampler_groups", "sampler_chunks", "sampler_output",     "sampler_wake",
		"sampler_woken",  "sampler_sent",   "sampler_withdrawn",  "fusee_slabs",
		"fusee_frames",   "fusee_abi",      "fusee_frame_states",
	};

	for (uint32_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

int waits_share_maps(struct bpf_object *to, struct bpf_object *from, bool all)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, to)
	{
		const char *name = bpf_map__name(map);
		struct bpf_map *first = bpf_object__find_map_by_name(from, name);
		int r;

		if (!first || bpf_map__is_internal(map) || bpf_map__fd(first) < 0 ||
		    (!all && !is_shared(name)))
			continue;
		r = bpf_map__reuse_fd(map, bpf_map__fd(first));
		if (r)
			return r;
	}
	return 0;
}

static int load_object(struct bpf_sampler *b, uint32_t cpus)
{
	struct bpf_object *object = b->waits.object;
	struct bpf_map *copies = bpf_object__find_map_by_name(object, "sampler_copies");
	int r = copies ? bpf_map__set_max_entries(copies, cpus) : -ENOENT;

	if (!r)
		r = sampler_object_exclude_languages(b, object);
	if (!r)
		r = waits_share_maps(object, b->object, false);
	if (!r)
		r = waits_prepare(object, cpus);
	return r ? r : bpf_object__load(object);
}

int waits_load_beside(struct bpf_sampler *b, uint32_t cpus, char **why)
{
	struct linker_part parts[SAMPLER_PARTS];
	int fd, r = linker_link(parts, sampler_object_parts(b, true, -1, parts), &fd, why);

	if (r)
		return r;
	r = sampler_object_open(&b->waits.object, fd);
	close(fd);
	return r ? r : load_object(b, cpus);
}

void waits_set_scope(struct bpf_sampler *b)
{
	const struct sampler_settings *o = b->settings;

	if (b->waits.scope)
		__atomic_store_n(&b->waits.scope->all,
				 o->default_period != PERIOD_NONE || o->groups, __ATOMIC_RELEASE);
}

int waits_open(struct bpf_sampler *b)
{
	int scope = bpf_object__find_map_fd_by_name(b->waits.object, "sampler_scope");
	int outer = bpf_object__find_map_fd_by_name(b->waits.object, "sampler_wait_wakes");
	int ncpus = libbpf_num_possible_cpus(), r = outer < 0 ? outer : 0;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (ncpus < 1)
		return -EINVAL;
	b->waits.cpus = bpf_object__find_map_fd_by_name(b->waits.object, "sampler_wait_cpus");
	b->waits.programs = bpf_object__find_map_fd_by_name(b->waits.object, "sampler_programs");
	b->waits.rings = calloc((size_t)ncpus, sizeof(*b->waits.rings));
	if (!b->waits.rings)
		return -ENOMEM;
	b->waits.n = (uint32_t)ncpus;
	b->waits.scope = map_scope(scope);
	if (!b->waits.scope)
		return -errno;
	waits_set_scope(b);
	for (uint32_t i = 0; !r && i < b->waits.n; i++)
		r = open_ring(outer, i, page, &b->waits.rings[i]);
	return r;
}

void waits_close(struct bpf_sampler *b)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (uint32_t i = 0; i < b->waits.n; i++)
		close_ring(&b->waits.rings[i], page);
	free(b->waits.rings);
	if (b->waits.scope)
		munmap(b->waits.scope, sizeof(*b->waits.scope));
	if (b->waits.beside)
		bpf_object__close(b->waits.object);
}

void bpf_waits_make_room(struct bpf_sampler *b)
{
	for (uint32_t i = 0; i < b->waits.n; i++) {
		const struct wait_ring *r = &b->waits.rings[i];

		__atomic_store_n(r->consumer, __atomic_load_n(r->producer, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
	}
}

/* ---- the programs ---- */

void bpf_waits_set_period(struct bpf_sampler *b, uint64_t period_ns)
{
	if (!b->waits.scope)
		return;
	if (period_ns)
		__atomic_store_n(&b->settings->wait_began, clock_now(), __ATOMIC_RELAXED);
	__atomic_store_n(&b->waits.scope->period, period_ns >> 32 ? 0 : period_ns,
			 __ATOMIC_RELEASE);
}

void bpf_waits_counts(const struct bpf_sampler *b, uint64_t counts[WAIT_RESULT_COUNT])
{
	struct wait_cpu *cpus = b->waits.n ? calloc(b->waits.n, sizeof(*cpus)) : NULL;
	uint32_t zero = 0;
	bool read = cpus && !bpf_map_lookup_elem(b->waits.cpus, &zero, cpus);

	for (uint32_t i = 0; i < WAIT_RESULT_COUNT; i++) {
		counts[i] = 0;
		for (uint32_t c = 0; read && c < b->waits.n; c++)
			counts[i] += cpus[c].counts[i];
	}
	free(cpus);
}
