/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/waits.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

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

static struct rate_counts *map_rate_counts(int fd)
{
	void *at = mmap(NULL, sizeof(struct rate_counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			0);

	return at == MAP_FAILED ? NULL : at;
}

/* Storage of threads is used by programs where kernel_has(task_pt_regs), as bpf/waiters.h says. */
int waits_prepare(struct bpf_sampler *b, uint32_t cpus)
{
	struct bpf_map *wakes = bpf_object__find_map_by_name(b->object, "sampler_wait_wakes");
	struct bpf_map *storage = bpf_object__find_map_by_name(b->object, "sampler_storage");
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

int waits_open(struct bpf_sampler *b)
{
	int counts = bpf_object__find_map_fd_by_name(b->object, "sampler_rate_counts");
	int outer = bpf_object__find_map_fd_by_name(b->object, "sampler_wait_wakes");
	int ncpus = libbpf_num_possible_cpus(), r = outer < 0 ? outer : 0;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (ncpus < 1)
		return -EINVAL;
	b->waits.cpus = bpf_object__find_map_fd_by_name(b->object, "sampler_wait_cpus");
	b->waits.rings = calloc((size_t)ncpus, sizeof(*b->waits.rings));
	if (!b->waits.rings)
		return -ENOMEM;
	b->waits.n = (uint32_t)ncpus;
	b->waits.rate_counts = map_rate_counts(counts);
	if (!b->waits.rate_counts)
		return -errno;
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
	if (b->waits.rate_counts)
		munmap(b->waits.rate_counts, sizeof(*b->waits.rate_counts));
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
	if (period_ns)
		__atomic_store_n(&b->settings->wait_began, clock_now(), __ATOMIC_RELAXED);
	__atomic_store_n(&b->settings->wait_period, period_ns, __ATOMIC_RELEASE);
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
