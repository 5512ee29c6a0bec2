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

/* ---- what each sampler has of its own ---- */

_Static_assert(MAX_SAMPLERS == PLUGIN_MAX_SAMPLERS, "a map for each");

static char *map_scopes(int fd, uint32_t n)
{
	void *at = mmap(NULL, n * sizeof(struct fusee_scope), PROT_READ | PROT_WRITE, MAP_SHARED,
			fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Elements of an array are a multiple of 8 bytes apart. */
_Static_assert(sizeof(struct fusee_scope) % 8 == 0, "scopes are apart");

static struct fusee_scope *scope_of(const struct bpf_sampler *b, uint32_t sampler)
{
	return (struct fusee_scope *)b->waits.scope + sampler;
}

void waits_count(struct bpf_sampler *b, pid_t pid, uint32_t more)
{
	for (uint32_t i = 0; b->waits.scope && i < waits_samplers(b); i++)
		__atomic_add_fetch(&scope_of(b, i)->entries[(uint32_t)pid % FUSEE_SAMPLER_ENTRIES],
				   more, __ATOMIC_RELEASE);
}

/* Is it a sampler's own map, of a number that is not used, or storage where there is none? */
static bool is_unused(const char *name, uint32_t samplers, bool storage)
{
	static const char *const own[] = {"sampler_waiters_", "sampler_slots_", "sampler_storage_"};

	for (uint32_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strncmp(name, own[i], strlen(own[i])))
			return strtoul(name + strlen(own[i]), NULL, 10) >= samplers ||
			       (own[i] == own[2] && !storage);
	return false;
}

/* Storage of threads is used by programs where kernel_has(task_pt_regs), as bpf/waiters.h says. */
static int exclude_unused(const struct bpf_sampler *b, struct bpf_object *object)
{
	bool storage = libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_pt_regs,
					       NULL) == 1;
	struct bpf_map *map;
	int r = 0;

	bpf_object__for_each_map(map, object)
	{
		if (!r && is_unused(bpf_map__name(map), waits_samplers(b), storage))
			r = bpf_map__set_autocreate(map, false);
	}
	return r;
}

int waits_prepare(const struct bpf_sampler *b, struct bpf_object *object, uint32_t cpus)
{
	const struct {
		const char *name;
		uint32_t n;
	} sizes[] = {
		{"sampler_wait_wakes", cpus},
		{"sampler_wait_cpus", waits_samplers(b)},
		{"sampler_scope", waits_samplers(b)},
	};
	struct bpf_program *again = bpf_object__find_program_by_name(object, "sampler_again");
	int r = again ? bpf_program__set_autoload(again, waits_samplers(b) > 1) : -ENOENT;

	for (uint32_t i = 0; !r && i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, sizes[i].name);

		r = map ? bpf_map__set_max_entries(map, sizes[i].n) : -ENOENT;
	}
	return r ? r : exclude_unused(b, object);
}

/* A tick may interrupt the walk of a wait, so what a walk writes is each object's own. */
static bool is_shared(const char *name)
{
	static const char *const names[] = {
		"sampler_pids",   "sampler_rates",  "sampler_settings",   "sampler_threads",
		"sampler_groups", "sampler_chunks", "sampler_output",     "sampler_wake",
		"sampler_woken",  "sampler_sent",   "sampler_withdrawn",  "fusee_slabs",
		"fusee_frames",   "fusee_abi",      "fusee_frame_states", "sampler_spaces",
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

		if (first && all && bpf_map__fd(first) < 0 && is_unused(name, 0, false)) {
			bpf_map__set_autocreate(map, false);
			continue;
		}
		if (!first || bpf_map__is_internal(map) || bpf_map__fd(first) < 0 ||
		    (!all && !is_shared(name)))
			continue;
		r = bpf_map__reuse_fd(map, bpf_map__fd(first));
		if (r)
			return r;
	}
	return 0;
}

int waits_load_beside(struct bpf_sampler *b, uint32_t cpus)
{
	int r = waits_prepare(b, b->waits.object, cpus);

	return r ? r : bpf_object__load(b->waits.object);
}

void waits_set_scope(struct bpf_sampler *b)
{
	const struct sampler_settings *o = b->settings;

	for (uint32_t i = 0; b->waits.scope && i < waits_samplers(b); i++)
		__atomic_store_n(&scope_of(b, i)->all,
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
	b->waits.scope = map_scopes(scope, waits_samplers(b));
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
		munmap(b->waits.scope, waits_samplers(b) * sizeof(struct fusee_scope));
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

void bpf_waits_set_periods(struct bpf_sampler *b, const uint64_t *periods)
{
	if (!b->waits.scope)
		return;
	if (periods)
		__atomic_store_n(&b->settings->wait_began, clock_now(), __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < waits_samplers(b); i++) {
		uint64_t period = periods && !(periods[i] >> 32) ? periods[i] : 0;

		__atomic_store_n(&scope_of(b, i)->period, period, __ATOMIC_RELEASE);
	}
}

uint32_t bpf_waits_samplers(const struct bpf_sampler *b)
{
	return waits_samplers(b);
}

void bpf_waits_counts(const struct bpf_sampler *b, uint32_t sampler,
		      uint64_t counts[WAIT_RESULT_COUNT])
{
	struct wait_cpu *cpus = b->waits.n ? calloc(b->waits.n, sizeof(*cpus)) : NULL;
	bool read = cpus && !bpf_map_lookup_elem(b->waits.cpus, &sampler, cpus);

	for (uint32_t i = 0; i < WAIT_RESULT_COUNT; i++) {
		counts[i] = 0;
		for (uint32_t c = 0; read && c < b->waits.n; c++)
			counts[i] += cpus[c].counts[i];
	}
	free(cpus);
}
