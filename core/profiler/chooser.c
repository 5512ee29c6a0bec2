/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/internal/chooser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/log.h"

int choosers_open(struct profiler *p, const struct profiler_options *o)
{
	char *text = NULL;
	int r = o->choosers.n > PLUGIN_MAX_SAMPLERS ? -E2BIG : 0;

	for (uint32_t i = 0; !r && i < o->choosers.n; i++) {
		r = plugin_sampler_open(&o->choosers.at[i], &p->choosers.at[i], &text);
		p->wait_periods.at[i] = o->choosers.at[i].period;
		if (!r)
			p->choosers.n = p->wait_periods.n = i + 1;
	}
	if (r)
		log_error("%s", text ? text : strerror(-r));
	free(text);
	return !r ? 0 : r == -ENOMEM ? EX_OSERR : EX_USAGE;
}

bool chooser_takes_all(const struct profiler_options *o)
{
	return o->choosers.n && !o->choosers.beside;
}

bool choosers_count_from_exec(const struct profiler *p, const struct profiler_options *o,
			      struct wait_periods *ret)
{
	bool any = false;

	*ret = p->wait_periods;
	for (uint32_t i = 0; i < p->choosers.n; i++) {
		if (plugin_chooser_ops(&p->choosers, i)->flags & FUSEE_SAMPLER_TIME)
			ret->at[i] = 0;
		any |= ret->at[i] != 0;
	}
	return any && o->held && !o->all;
}
