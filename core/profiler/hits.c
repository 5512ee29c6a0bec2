/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/internal/hits.h"

#include "process/procfs.h"

#define RINGS_NS 2000000u /* rings have room as for samples of CPU time of this period */

bool hits_alone(const struct profiler_options *o)
{
	return o->kind && o->kind->probes;
}

/* Has the first thread of one ended? */
static bool is_leaderless(const struct profiler_options *o)
{
	bool any = false;

	for (uint32_t i = 0; !any && i < o->npids; i++)
		any = procfs_living_thread(o->pids[i]) != o->pids[i];
	return any;
}

void hits_set_bpf(const struct profiler_options *o, struct bpf_sampler_options *bpf)
{
	bpf->probes_beside = !hits_alone(o);
	bpf->probes = hits_alone(o) ? o->kind->probes : o->choosers.hits.probes;
	bpf->in_use = hits_alone(o) ? o->kind->in_use : o->choosers.hits.in_use;
	bpf->hooks = o->choosers.hits.hooks;
	bpf->leaderless = bpf->probes && is_leaderless(o);
}

void hits_set_stream(const struct profiler_options *o, struct perf_stream_options *stream)
{
	if (hits_alone(o)) {
		stream->kind = NULL;
		stream->hit_period = (uint32_t)o->period_ns;
		stream->period_ns = RINGS_NS;
	} else if (o->choosers.hits.probes || o->choosers.hits.hooks) {
		/* hooks have periods of their own */
		stream->hit_period = o->choosers.hits.probes ? o->choosers.hits.period : 1;
		stream->hits_beside = true;
	}
}
