/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a plan's probes before there are processes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/plan_builder.h"
#include "hooks/hooks.h"
#include "programs/tracepoints.h"

/* Is the file there? Then it has the place. Else it may come, or be a container's. */
static int check_file(const struct probe_text *t, char **why)
{
	struct probe_points points = {0};
	int fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;

	if (fd < 0)
		return 0;
	close(fd);
	r = probe_text_find(&points, t, why);
	probe_points_fini(&points);
	return r;
}

static int say(char **why, const char *format, const char *name, uint32_t n)
{
	if (asprintf(why, format, name, n) < 0)
		*why = NULL;
	return -EINVAL;
}

/* Has the kernel the tracepoint, and the filter's argument? before: how many tracepoints there are.
 */
static int check_tracepoint(const struct probe_text *t, uint32_t before, char **why)
{
	int n = tracepoint_arguments(t->path, why);

	if (n < 0)
		return n;
	if (before >= MOST_TRACEPOINTS)
		return say(why, "the tracepoint '%s' is one more than the %u that there may be",
			   t->path, MOST_TRACEPOINTS);
	if (!t->filter.operator|| t->filter.argument<(uint32_t) n)
		return 0;
	return say(why, "the tracepoint '%s' has %u arguments, the first is arg0", t->path,
		   (uint32_t)n);
}

static int check(const struct plan_probe *p, uint32_t *tracepoints, char **why)
{
	struct probe_text t;
	int r = probe_text_parse(&t, probe_kind_of(p->text), p->text, why);

	if (r)
		return r;
	if (t.kind->program == PROBE_TRACEPOINT)
		r = check_tracepoint(&t, (*tracepoints)++, why);
	else
		r = check_file(&t, why);
	probe_text_fini(&t);
	return r;
}

int hooks_check(struct plan **plan, struct plan_errors *errors)
{
	const struct plan_samplers *s = &(*plan)->samplers;
	struct plan_builder b = {.errors = errors};
	uint32_t tracepoints = 0;
	int r;

	for (uint32_t i = 0; i < s->nprobes; i++) {
		const struct plan_probe *p = &s->probes[i];
		char *why = NULL;

		r = check(p, &tracepoints, &why);
		if (r)
			plan_builder_error(&b, p->where, "sample.probe: %s: %s", p->text,
					   why ? why : strerror(-r));
		free(why);
	}
	if (!errors->n && !b.no_memory)
		return 0;
	plan_free(*plan);
	*plan = NULL;
	return b.no_memory ? -ENOMEM : -EINVAL;
}
