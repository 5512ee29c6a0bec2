/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/preview.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/internal/relabeling.h"
#include "base/json.h"
#include "lua/policy.h"
#include "policy/discover_once.h"
#include "process/procfs.h"

struct preview {
	const struct plan *plan;
	struct targets *targets;
	struct discover_once *found;
	struct decisions *decisions;
	uint32_t wrong;
};

/* ---- JSON ---- */

void decision_json(const struct plan *plan, const struct decision *d, struct buf *b)
{
	const char *comma = "";

	buf_str(b, "{\"labels\": {");
	for (uint32_t i = 0; i < d->nlabels; i++) {
		buf_str(b, i ? ", " : "");
		json_string(b, d->labels[i].key.p, d->labels[i].key.len);
		buf_str(b, ": ");
		json_string(b, d->labels[i].str.p, d->labels[i].str.len);
	}
	buf_printf(b, "}, \"processes\": %u, \"profile\": %s, \"hz\": %g, \"sinks\": [",
		   d->processes, d->profile ? "true" : "false", d->hz);
	for (uint64_t sinks = d->sinks; sinks; sinks &= sinks - 1, comma = ", ") {
		buf_str(b, comma);
		json_text(b, plan->sinks[__builtin_ctzll(sinks)]->name);
	}
	buf_str(b, "]");
	relabeling_json(plan, d->labels, d->nlabels, b);
	buf_str(b, "}");
}

struct listing {
	const struct plan *plan;
	struct buf *b;
	const char *comma;
};

static void add_target(void *arg, const struct decision *d)
{
	struct listing *l = arg;

	if (!d->processes)
		return;
	buf_str(l->b, l->comma);
	decision_json(l->plan, d, l->b);
	l->comma = ", ";
}

void preview_targets(const struct preview *p, struct buf *b)
{
	struct listing l = {p->plan, b, ""};

	buf_str(b, "[");
	decisions_each_set(p->decisions, add_target, &l);
	buf_str(b, "]");
}

/* ---- decisions ---- */

static int decide(void *arg, const struct fusee_label *labels, uint32_t n,
		  struct policy_answer *answer, char **text)
{
	struct preview *p = arg;
	int r = lua_policy_ask(p->plan, labels, n, answer, text);

	p->wrong += r == -EINVAL;
	relabeling_decide(p->plan, labels, n, answer, false);
	return r;
}

static int changed(void *arg, pid_t pid, const struct decision *d, bool inherited)
{
	(void)arg;
	(void)pid;
	(void)d;
	(void)inherited;
	return 0;
}

static int decide_running(void *arg, pid_t pid)
{
	decisions_execed(((struct preview *)arg)->decisions, pid, NULL, 0);
	return 0;
}

static int decide_all(struct preview *p)
{
	const struct decisions_options o = {.targets = p->targets,
					    .decide = decide,
					    .unknown_keep = p->plan->unknown_keep,
					    .changed = changed,
					    .arg = p};
	int r = decisions_new(&p->decisions, &o);

	return r ? r : procfs_each_process(decide_running, p);
}

/* ---- all ---- */

int preview_new(struct preview **ret, const struct plan *plan, uint64_t wait_ns)
{
	struct preview *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->plan = plan;
	r = targets_new(&p->targets);
	if (!r) {
		targets_set_labels(p->targets, &plan->labels);
		r = discover_once_new(&p->found, plan, p->targets, wait_ns);
	}
	if (!r)
		r = decide_all(p);
	if (r) {
		preview_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void preview_free(struct preview *p)
{
	if (!p)
		return;
	decisions_free(p->decisions);
	discover_once_free(p->found);
	targets_free(p->targets);
	free(p);
}

uint32_t preview_processes(const struct preview *p, uint32_t *profiled)
{
	return decisions_processes(p->decisions, profiled);
}

uint32_t preview_failed(const struct preview *p)
{
	return discover_once_failed(p->found);
}

uint32_t preview_wrong(const struct preview *p)
{
	return p->wrong;
}
