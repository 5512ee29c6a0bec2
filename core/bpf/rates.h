/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ticks the BPF sampler keeps of which process. It drops all others before they cost
 * anything. At first it keeps all ticks of all processes. For one thread.
 */
#ifndef BPF_RATES_H
#define BPF_RATES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/sampler.h"

#define BPF_RATE_NONE UINT64_MAX /* a period that no event has: no tick is kept */
#define BPF_RATE_ANY 0u          /* ticks of all events are kept */

/* false: this process is in another pid namespace than the programs, so that pids differ. */
bool bpf_rates_work(const struct bpf_sampler *);
/*
 * Of this process keeps ticks of events with this period. If weight_ns is above the period, keeps a
 * random part of them, so that each represents weight_ns of CPU time. A child has its parent's rate
 * from fork on; exec keeps a rate, but not BPF_RATE_NONE. 0 or -errno, -EXDEV in another pid
 * namespace.
 */
int bpf_rates_set(struct bpf_sampler *, pid_t pid, uint64_t period_ns, uint64_t weight_ns);
/* Keeps all ticks of this process and of what it starts, from its next exec on. 0 or -errno. */
int bpf_rates_set_on_exec(struct bpf_sampler *, pid_t pid);
/* The period for processes without a rate. */
void bpf_rates_set_default(struct bpf_sampler *, uint64_t period_ns);
/* Of 256 ticks that are samples by these rates, those that are kept, chosen at random; 0: all. The
 * records say so: record_head.share. */
void bpf_rates_set_share(struct bpf_sampler *, uint8_t share);
void bpf_rates_remove(struct bpf_sampler *, pid_t pid);
bool bpf_rates_has(const struct bpf_sampler *, pid_t pid);
/* From now on the kernel gives BPF_RATE_ANY to each process without a rate that runs in this
 * control group of the v2 hierarchy (cgroup_id()) or in one below it, but not to this process and
 * its children. 0; -ENOTSUP: the kernel cannot (before 5.15); -E2BIG: there are too many groups;
 * -errno. */
int bpf_rates_add_group(struct bpf_sampler *, uint64_t id);
/* A number that differs after each process to which the kernel gave a rate so. */
uint32_t bpf_rates_joined(const struct bpf_sampler *);
/* Calls each() with the processes that have a rate. */
void bpf_rates_each(struct bpf_sampler *, void (*each)(void *arg, pid_t pid), void *arg);
#endif
