/* SPDX-License-Identifier: Apache-2.0 */
/* The places that texts name: now, or in the background. */
#include <errno.h>
#include <stdlib.h>

#include "probes/parse.h"
#include "probes/tracepoint.h"

static void set_filters(struct probe_points *p, size_t before, const struct probe_text *t)
{
	for (size_t i = before; t->usdt.name == NULL && i < p->n; i++)
		p->at[i].filter = t->filter;
}

int probe_text_find(struct probe_points *p, const struct probe_text *t, char **why)
{
	const struct probe_function f = {
		.name = t->name, .plus = t->plus, .program = t->kind->program};
	size_t before = p->n;
	int r;

	*why = NULL;
	if (t->kind->program == PROBE_TRACEPOINT)
		return tracepoint_find(p, t->path, &t->filter, why);
	if (t->usdt.name)
		return usdt_find(p, t->path, &t->usdt, why);
	r = probe_points_find(p, t->path, &f, 1, why);
	set_filters(p, before, t);
	return r;
}

int probes_parse(struct probe_points *p, const struct probe_kind *k, const char *text, char **why)
{
	struct probe_text t;
	int r = probe_text_parse(&t, k, text, why);

	if (r)
		return r;
	r = probe_text_find(p, &t, why);
	probe_text_fini(&t);
	return r;
}

/* ---- in the background ---- */

struct text_search {
	const struct probe_text *text;
	struct probe_function function;
	struct probe_search *functions; /* either */
	struct usdt_search *usdt;
};

int text_search_start(struct text_search **ret, int fd, const struct probe_text *t)
{
	struct text_search *s = *ret = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->text = t;
	s->function = (struct probe_function){
		.name = t->name, .plus = t->plus, .program = t->kind->program};
	r = t->usdt.name ? usdt_search_start(&s->usdt, fd, &t->usdt)
			 : probe_search_start(&s->functions, fd, &s->function, 1);
	if (!r)
		return 0;
	free(s);
	*ret = NULL;
	return r;
}

int text_search_poll(struct text_search *s, struct probe_points *p, char **why)
{
	size_t before = p->n;
	int r;

	*why = NULL;
	if (s->usdt)
		return usdt_search_poll(s->usdt, p, why);
	r = probe_search_poll(s->functions, p, why);
	if (!r)
		set_filters(p, before, s->text);
	return r;
}

void text_search_free(struct text_search *s)
{
	if (!s)
		return;
	probe_search_free(s->functions);
	usdt_search_free(s->usdt);
	free(s);
}
