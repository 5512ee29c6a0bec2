/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/internal/chooser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/log.h"

int chooser_open(struct profiler *p, const struct profiler_options *o)
{
	char *text = NULL;
	int r = o->chooser ? plugin_sampler_open(o->chooser, &p->chooser, &text) : 0;

	if (r)
		log_error("%s", text ? text : strerror(-r));
	free(text);
	return !r ? 0 : r == -ENOMEM ? EX_OSERR : EX_USAGE;
}

bool chooser_takes_all(const struct profiler_options *o)
{
	return o->chooser && !o->chooser->beside;
}

bool chooser_counts_from_exec(const struct profiler *p, const struct profiler_options *o)
{
	const struct fusee_sampler_ops *ops = chooser_takes_all(o) ? p->chooser->descriptor->ops
								   : NULL;

	return ops && o->held && !o->all && !(ops->flags & FUSEE_SAMPLER_TIME);
}
