/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/rates.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "bpf/sampler_events.h"
#include "bpf/internal/sampler_state.h"

_Static_assert(BPF_RATE_NONE == PERIOD_NONE && BPF_RATE_ANY == PERIOD_ANY, "the same periods");

bool bpf_rates_work(const struct bpf_sampler *b)
{
	return !b->foreign_pids;
}

/* Since when threads of the process are followed as they leave their CPUs: waits of those that are
 * not had begun before. */
static uint64_t selected_since(const struct bpf_sampler *b, pid_t pid)
{
	struct process_rate before;

	if (!b->waits.sampled && !b->waits.beside)
		return 0;
	if (!bpf_map_lookup_elem(b->fds.rates, &pid, &before))
		return before.period == PERIOD_NONE ? clock_now() : before.since;
	return b->settings->default_period == PERIOD_NONE ? clock_now() : 0;
}

/* As put_rate() of bpf/processes.h. */
static int set(struct bpf_sampler *b, pid_t pid, const struct process_rate *rate)
{
	if (b->foreign_pids)
		return -EXDEV;
	if (!bpf_map_update_elem(b->fds.rates, &pid, rate, BPF_NOEXIST)) {
		waits_count(b, pid, 1);
		return 0;
	}
	if (errno != EEXIST)
		return -errno;
	return bpf_map_update_elem(b->fds.rates, &pid, rate, BPF_EXIST) ? -errno : 0;
}

int bpf_rates_set(struct bpf_sampler *b, pid_t pid, uint64_t period_ns, uint64_t weight_ns)
{
	struct process_rate rate = {.period = period_ns, .since = selected_since(b, pid)};

	if (period_ns != PERIOD_NONE && weight_ns > period_ns) {
		rate.weight = weight_ns;
		rate.keep = (uint32_t)((double)period_ns / (double)weight_ns * 0x1p32);
		rate.keep += !rate.keep;
	}
	return set(b, pid, &rate);
}

int bpf_rates_set_on_exec(struct bpf_sampler *b, pid_t pid)
{
	return set(b, pid, &(struct process_rate){.period = PERIOD_ON_EXEC});
}

void bpf_rates_set_default(struct bpf_sampler *b, uint64_t period_ns)
{
	__atomic_store_n(&b->settings->default_period, period_ns, __ATOMIC_RELAXED);
	waits_set_scope(b);
}

void bpf_rates_set_share(struct bpf_sampler *b, uint8_t share)
{
	__atomic_store_n(&b->settings->share, share, __ATOMIC_RELAXED);
}

void bpf_rates_remove(struct bpf_sampler *b, pid_t pid)
{
	if (!b->foreign_pids && !bpf_map_delete_elem(b->fds.rates, &pid))
		waits_count(b, pid, -1u);
}

bool bpf_rates_has(const struct bpf_sampler *b, pid_t pid)
{
	struct process_rate rate;

	return !bpf_map_lookup_elem(b->fds.rates, &pid, &rate);
}

int bpf_rates_add_group(struct bpf_sampler *b, uint64_t id)
{
	int fd = bpf_object__find_map_fd_by_name(b->object, "sampler_groups");
	const uint32_t yes = 1;

	if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_pt_regs, NULL) != 1)
		return -ENOTSUP; /* as is_in_group() of bpf/processes.h */
	if (bpf_map_update_elem(fd, &id, &yes, BPF_ANY))
		return -errno;
	b->settings->own = (uint32_t)getpid();
	__atomic_store_n(&b->settings->groups, 1, __ATOMIC_RELEASE);
	waits_set_scope(b);
	return 0;
}

uint32_t bpf_rates_joined(const struct bpf_sampler *b)
{
	return __atomic_load_n(&b->settings->joined, __ATOMIC_ACQUIRE);
}

void bpf_rates_each(struct bpf_sampler *b, void (*each)(void *arg, pid_t pid), void *arg)
{
	uint32_t pid, most = bpf_map__max_entries(
			      bpf_object__find_map_by_name(b->object, "sampler_rates"));
	const void *before = NULL;

	/* If the key before is removed meanwhile, the kernel begins anew: hence the limit. */
	for (uint32_t i = 0; i < most && !bpf_map_get_next_key(b->fds.rates, before, &pid); i++) {
		each(arg, (pid_t)pid);
		before = &pid;
	}
}

int bpf_sampler_add_thread(struct bpf_sampler *b, pid_t tid)
{
	const uint32_t yes = 1;

	if (bpf_map_update_elem(b->fds.threads, &tid, &yes, BPF_ANY))
		return -errno;
	__atomic_store_n(&b->settings->own_threads, 1, __ATOMIC_RELEASE);
	return 0;
}
