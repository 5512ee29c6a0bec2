/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/internal/usage.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bpf/sampler.h"
#include "profiler/profiler.h"
#include "worker/worker.h"

static double seconds_of(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

void usage_cpu(const struct profiler *p, struct usage_cpu *u)
{
	u->agent = seconds_of(RUSAGE_SELF);
	u->workers = seconds_of(RUSAGE_CHILDREN) + (double)worker_cpu_ns(p->worker) / 1e9;
	u->bpf = p->bpf ? (double)bpf_sampler_spent(p->bpf) / 1e9 : 0;
}

uint64_t usage_resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long size, rss = 0;

	if (f) {
		if (fscanf(f, "%lu %lu", &size, &rss) != 2)
			rss = 0;
		fclose(f);
	}
	return rss * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t usage_heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}
