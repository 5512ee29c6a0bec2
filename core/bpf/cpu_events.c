/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs' events: which periods they have, and what the programs counted of their ticks. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "bpf/sampler_events.h"
#include "bpf/internal/sampler_state.h"

_Static_assert(MAX_CPU_EVENTS == 8 * sizeof(((struct bpf_sampler *)0)->cpu_events.now),
	       "a bit for each");

void bpf_sampler_set_cpu_period(struct bpf_sampler *b, uint64_t period_ns)
{
	b->cpu_events.ever |= 1;
	__atomic_store_n(&b->settings->cpu_period, period_ns, __ATOMIC_RELAXED);
	__atomic_add_fetch(&b->settings->stretch, 1, __ATOMIC_RELEASE);
}

/* The programs begin to count anew where an index gets another period. */
int bpf_sampler_add_cpu_period(struct bpf_sampler *b, uint64_t period_ns)
{
	uint32_t used = b->cpu_events.now | 1, index; /* 0: of cpu_period */

	if (!~used)
		return -ENOSPC;
	index = (uint32_t)__builtin_ctz(~used);
	if (bpf_map_update_elem(b->fds.cpu_periods, &period_ns, &index, BPF_NOEXIST))
		return -errno;
	b->cpu_events.now |= 1u << index;
	b->cpu_events.ever |= 1u << index;
	__atomic_store_n(&b->settings->more_periods, 1, __ATOMIC_RELEASE);
	return 0;
}

void bpf_sampler_remove_cpu_period(struct bpf_sampler *b, uint64_t period_ns)
{
	uint32_t index;

	if (bpf_map_lookup_elem(b->fds.cpu_periods, &period_ns, &index))
		return;
	bpf_map_delete_elem(b->fds.cpu_periods, &period_ns);
	b->cpu_events.now &= ~(1u << index);
	__atomic_store_n(&b->settings->more_periods, b->cpu_events.now != 0, __ATOMIC_RELEASE);
}

/* ---- their ticks ---- */

static void add_missed(const struct cpu_ticks *t, int n, struct bpf_missed_ticks *missed)
{
	for (int i = 0; i < n; i++) {
		missed->all += t[i].missed > 0 ? (uint64_t)t[i].missed : 0;
		missed->selected += t[i].missed_of_selected > 0 ? (uint64_t)t[i].missed_of_selected
								: 0;
	}
}

/* Room for those of each CPU, *n of them, to be freed; NULL: no memory. */
static struct cpu_ticks *new_ticks(int *n)
{
	*n = libbpf_num_possible_cpus();
	return *n > 0 ? calloc((size_t)*n, sizeof(struct cpu_ticks)) : NULL;
}

void bpf_sampler_missed_ticks(struct bpf_sampler *b, struct bpf_missed_ticks *missed)
{
	int n;
	struct cpu_ticks *t = new_ticks(&n);

	*missed = (struct bpf_missed_ticks){0};
	for (uint32_t i = 0; t && i < MAX_CPU_EVENTS; i++)
		if (b->cpu_events.ever >> i & 1 && !bpf_map_lookup_elem(b->fds.cpu_ticks, &i, t))
			add_missed(t, n, missed);
	free(t);
}

void bpf_sampler_set_timed(struct bpf_sampler *b, bool timed)
{
	__atomic_store_n(&b->settings->timed, timed, __ATOMIC_RELAXED);
}

uint64_t bpf_sampler_spent(const struct bpf_sampler *b)
{
	const uint32_t zero = 0;
	uint64_t spent = 0;
	int n;
	struct cpu_ticks *t = new_ticks(&n);

	if (t && !bpf_map_lookup_elem(b->fds.cpu_ticks, &zero, t))
		for (int i = 0; i < n; i++)
			spent += t[i].spent;
	free(t);
	return spent;
}
