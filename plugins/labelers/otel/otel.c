/* SPDX-License-Identifier: Apache-2.0 */
/* labeler "otel": finds the variable by which threads publish the span on which they work, as
 * OpenTelemetry's OTEP 4947 describes it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/helpers.h>
#include <fusee/labeler.h>
#include <fusee/tls.h>

#include "record.h"

FUSEE_EMBED(otel_bpf, "otel.bpf.o");

/* A process in which files have the variable. */
struct otel_process {
	struct otel_process *next;
	uint64_t process;
	uint32_t n; /* variables */
	uint32_t words[OTEL_VARIABLES * OTEL_WORDS];
};

struct otel {
	struct fusee_self self;
	struct otel_process *processes;
};

static int otel_inspect(void *ctx, uint64_t file)
{
	struct otel *o = ctx;
	const struct fusee_unwinder_host *host = o->self.host->unwinder;
	uint32_t words[FUSEE_TLS_WORDS];
	struct fusee_range at;
	struct fusee_tls tls;
	int r;

	if (host->file_symbol(file, OTEL_VARIABLE, &at))
		return 0;
	r = fusee_find_tls(host, file, at.lo, &tls);
	if (r)
		return fusee_fail(&o->self, r, "no way to its variable %s is known: %s",
				  OTEL_VARIABLE, strerror(-r));
	fusee_tls_put(&tls, words);
	r = host->file_slab(o->self.in, file, words, FUSEE_TLS_WORDS);
	return r ? r : 1;
}

static struct otel_process *process_of(struct otel *o, uint64_t process)
{
	struct otel_process *p = o->processes;

	while (p && p->process != process)
		p = p->next;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->process = process;
	p->next = o->processes;
	o->processes = p;
	return p;
}

/* The words of a variable whose file has the table of these words, at this place. */
static void place(uint32_t to[OTEL_WORDS], const uint32_t *table, uint64_t bias)
{
	uint64_t at = ((uint64_t)table[3] << 32 | table[2]) + bias;

	to[OTEL_KIND] = table[0];
	to[OTEL_OFFSET] = table[1];
	to[OTEL_ADDRESS] = (uint32_t)at;
	to[OTEL_ADDRESS + 1] = (uint32_t)(at >> 32);
	to[OTEL_DESCRIBED] = table[4];
}

static int otel_mapped(void *ctx, uint64_t process, const struct fusee_mapping_view *view)
{
	struct otel *o = ctx;
	struct otel_process *p;
	uint32_t words[OTEL_WORDS];

	if (!(view->flags & FUSEE_VIEW_LIBRARY) || !FUSEE_HAS(view, table) ||
	    view->table.n != FUSEE_TLS_WORDS)
		return 0;
	p = process_of(o, process);
	if (!p)
		return -ENOMEM;
	place(words, view->table.at, view->bias);
	for (uint32_t i = 0; i < p->n; i++)
		if (!memcmp(p->words + i * OTEL_WORDS, words, sizeof(words)))
			return 0;
	if (p->n == OTEL_VARIABLES) {
		fusee_count_by(&o->self, "variables_ignored", "reason", "too many in a process", 1);
		return -ENOSPC;
	}
	memcpy(p->words + p->n * OTEL_WORDS, words, sizeof(words));
	p->n++;
	return o->self.host->unwinder->process_slab(o->self.in, process, p->words,
						    (uint64_t)p->n * OTEL_WORDS);
}

static void otel_detach(void *ctx, uint64_t process)
{
	struct otel *o = ctx;

	for (struct otel_process **at = &o->processes; *at; at = &(*at)->next) {
		struct otel_process *p = *at;

		if (p->process != process)
			continue;
		*at = p->next;
		free(p);
		return;
	}
}

static void otel_fini(void *ctx)
{
	struct otel *o = ctx;

	while (o->processes)
		otel_detach(o, o->processes->process);
}

static const char *const reasons[] = {NULL};

static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops),
	.flags = FUSEE_UNWINDER_LABELS,
	.order = 100,
	.slab_version = 1,
	.frame_type = "native",
	.reasons = reasons,
	.bpf = otel_bpf,
	.bpf_end = otel_bpf_end,
	.inspect = otel_inspect,
	.mapped = otel_mapped,
	.detach = otel_detach,
};

FUSEE_PLUGIN(
	otel, FUSEE_UNWINDER, .version = "0.1",
	.doc = "Gives samples the trace and span that their thread works on, as OpenTelemetry's "
	       "SDKs publish them.",
	.ctx_size = sizeof(struct otel), .init = fusee_self_init, .fini = otel_fini, .ops = &ops);
