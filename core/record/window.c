/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/pipeline.h"
#include "record/session.h"

int session_close_window(struct session *s, struct profiler_window *w)
{
	const struct collector_carrying all = {0};
	struct profiler *p = &s->profiler;
	/* what was allocated and is in no call any more has its record in the collector */
	bool read = s->o.event.in_use && !in_use_read(&s->in_use, p, true);
	int r = profiler_close_window(p, 0, true, w);

	if (r || !read || !w->collector)
		return r;
	if (in_use_keep(&s->in_use, p, w->collector))
		return 0;
	/* without memory for it the next window lacks it */
	(void)collector_carry(pipeline_collector(p->pipeline, 0), w->collector, &all);
	return 0;
}
