/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/samplers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/log.h"

static int open_bpf(struct bpf_sampler **bpf, char **no_bpf, const struct plugin_set *set,
		    const struct samplers_options *o)
{
	int r = bpf_sampler_choose(bpf, o->choice, set, &o->bpf, no_bpf);

	if (!r)
		return 0;
	log_error("cannot use the sampler 'bpf': %s", *no_bpf ? *no_bpf : strerror(-r));
	return r == -EPERM || r == -EACCES ? EX_NOPERM : EX_UNAVAILABLE;
}

static int open_snapshot(struct perf_stream **snapshot, struct bpf_sampler **bpf, char **no_bpf,
			 const struct samplers_options *o)
{
	struct perf_stream_options events = o->snapshot;
	char *why;
	int r;

	events.bpf = *bpf;
	r = perf_stream_open(snapshot, &events);
	/* One that loads, but whose events are refused. */
	if (r && *bpf && o->choice == SAMPLER_AUTO) {
		*no_bpf = strdup(strerror(-r));
		bpf_sampler_close(*bpf);
		events.bpf = *bpf = NULL;
		r = perf_stream_open(snapshot, &events);
	}
	if (!r)
		return 0;
	why = probe_explain(r, &o->target);
	log_error("%s", why ? why : strerror(-r));
	free(why);
	return r == -ESRCH ? EX_NOINPUT : EX_NOPERM;
}

int samplers_open(struct perf_stream **snapshot, struct bpf_sampler **bpf, char **no_bpf,
		  const struct plugin_set *set, const struct samplers_options *o)
{
	int r = open_bpf(bpf, no_bpf, set, o);

	if (!r)
		r = open_snapshot(snapshot, bpf, no_bpf, o);
	if (r) {
		bpf_sampler_close(*bpf);
		free(*no_bpf);
		*bpf = NULL;
		*no_bpf = NULL;
	}
	return r;
}
