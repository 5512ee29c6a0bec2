/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/preview.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/internal/relabeling.h"
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

void decision_sinks_json(const struct plan *plan, const struct decision *d, struct json *j)
{
	json_list(j, "sinks");
	for (uint64_t sinks = d->sinks; sinks; sinks &= sinks - 1)
		json_text(j, NULL, plan->sinks[__builtin_ctzll(sinks)]->name);
	json_end(j);
}

void decision_json(const struct plan *plan, const struct decision *d, struct json *j)
{
	json_open(j, NULL);
	json_labels(j, "labels", d->labels, d->nlabels);
	json_uint(j, "processes", d->processes);
	json_flag(j, "profile", d->profile);
	json_printf(j, "hz", "%g", d->hz);
	decision_sinks_json(plan, d, j);
	relabeling_json(plan, d->labels, d->nlabels, j);
	json_end(j);
}

struct listing {
	const struct plan *plan;
	struct json *j;
};

static void add_target(void *arg, const struct decision *d)
{
	struct listing *l = arg;

	if (d->processes)
		decision_json(l->plan, d, l->j);
}

void preview_targets(const struct preview *p, const char *name, struct json *j)
{
	struct listing l = {p->plan, j};

	json_list(j, name);
	decisions_each_set(p->decisions, add_target, &l);
	json_end(j);
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
