/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/preview.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "config/lua_policy.h"
#include "events/probe.h"
#include "net/loop.h"
#include "plugin/instance.h"
#include "policy/discoveries.h"
#include "process/procfs.h"
#include "worker/opener.h"

#define CHECK_NS 20000000u /* between two looks whether the discoveries have committed */

struct preview {
	const struct plan *plan;
	struct fusee_host host;
	struct loop *loop;
	struct opener *opener; /* NULL: without CAP_SYS_PTRACE only the own processes are read */
	struct targets *targets;
	struct discoveries *discoveries;
	struct discovery *found[PLAN_MAX_DISCOVERIES]; /* of plan->discoveries[i]; NULL: failed */
	struct decisions *decisions;
	uint64_t until_ns;
	uint32_t failed, wrong;
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
	buf_str(b, "]}");
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

/* ---- discoveries ---- */

static void log_text(char *text)
{
	log_warning("%s", text ? text : strerror(ENOMEM));
	free(text);
}

static void add_discovery(struct preview *p, uint32_t i)
{
	const struct plan_instance *plan = p->plan->discoveries[i];
	const struct instance_options o = {.name = plan->name,
					   .where = plan->where,
					   .options = plan->options,
					   .n = plan->noptions};
	struct fusee_instance *in;
	char *text = NULL;

	if (instance_new(&in, plan->descriptor, &p->host, &o, &text)) {
		log_text(text);
	} else if (discoveries_add(p->discoveries, in, &p->found[i], &text)) {
		p->found[i] = NULL;
		instance_free(in);
		log_text(text);
	}
	p->failed += !p->found[i];
}

static void look(void *arg)
{
	struct preview *p = arg;

	discoveries_retry(p->discoveries);
	if (discoveries_synced(p->discoveries) || clock_now() >= p->until_ns)
		loop_stop(p->loop);
}

static int run_discoveries(struct preview *p, uint64_t wait_ns)
{
	struct loop_timer *timer;
	int r;

	for (uint32_t i = 0; i < p->plan->ndiscoveries; i++)
		add_discovery(p, i);
	p->until_ns = clock_now() + wait_ns;
	r = loop_every(p->loop, CHECK_NS, look, p, &timer);
	if (!r && !discoveries_synced(p->discoveries))
		r = loop_run(p->loop);
	for (uint32_t i = 0; !r && i < p->plan->ndiscoveries; i++) {
		const char *error = p->found[i] ? discovery_error(p->found[i]) : "";

		if (!p->found[i] || discovery_synced(p->found[i]))
			continue;
		log_warning("%s has found nothing within %g s%s%s", p->plan->discoveries[i]->name,
			    (double)wait_ns / 1e9, *error ? ": " : "", error);
		p->failed++;
	}
	return r;
}

static void on_opener(void *arg, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	opener_dispatch(arg);
}

static int open_discoveries(struct preview *p)
{
	struct loop_watch *watch;
	int r = discoveries_new(&p->discoveries, p->loop, p->targets);

	if (r || !(probe_caps() >> CAP_SYS_PTRACE & 1))
		return r;
	r = opener_new(&p->opener);
	if (!r)
		r = loop_watch(p->loop, opener_fd(p->opener), EPOLLIN, on_opener, p->opener,
			       &watch);
	if (!r)
		discoveries_set_opener(p->discoveries, p->opener);
	return r;
}

/* ---- decisions ---- */

static int decide(void *arg, const struct fusee_label *labels, uint32_t n,
		  struct policy_answer *answer, char **text)
{
	struct preview *p = arg;
	int r = lua_policy_ask(p->plan, labels, n, answer, text);

	p->wrong += r == -EINVAL;
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
	p->host = plugin_host_base;
	p->host.size = sizeof(p->host);
	p->host.discovery = &discovery_host;
	r = loop_new(&p->loop);
	if (!r)
		r = targets_new(&p->targets);
	if (!r)
		r = open_discoveries(p);
	if (!r)
		r = run_discoveries(p, wait_ns);
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
	discoveries_free(p->discoveries);
	targets_free(p->targets);
	loop_free(p->loop);
	opener_free(p->opener);
	free(p);
}

uint32_t preview_processes(const struct preview *p, uint32_t *profiled)
{
	return decisions_processes(p->decisions, profiled);
}

uint32_t preview_failed(const struct preview *p)
{
	return p->failed;
}

uint32_t preview_wrong(const struct preview *p)
{
	return p->wrong;
}
