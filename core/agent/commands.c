/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the control socket. docs/internals/agent.md lists the members of their answers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "agent/internal/state.h"
#include "agent/internal/explain.h"
#include "agent/preview.h"
#include "agent/internal/usage.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "loss/loss.h"

#define BLOCKED_NS 5000000000u /* a sink whose call takes longer is reported as blocked */

/* ---- status ---- */

static void add_losses(const struct agent *a, struct buf *b)
{
	struct loss_account l;

	profiler_account(&a->sampling.profiler, &l);
	buf_printf(b,
		   "\"samples_due\": %llu, \"samples\": %llu, \"complete\": %llu, \"truncated\": ",
		   (unsigned long long)l.due, (unsigned long long)(l.due - l.lost),
		   (unsigned long long)l.complete);
	loss_account_json(&l, LOSS_STACK, b);
	buf_str(b, ", \"lost\": ");
	loss_account_json(&l, LOSS_TICK, b);
}

static const char *sink_state(const struct delivery_stats *s)
{
	if (s->blocked_since && clock_now() - s->blocked_since > BLOCKED_NS)
		return "blocked";
	return s->denied_since ? "denied" : *s->last_error ? "failing" : "ok";
}

/* A clock that was set back makes nothing younger than now. */
static void add_spool(struct buf *b, const struct delivery_stats *s)
{
	uint64_t now = clock_ns(CLOCK_REALTIME), oldest = s->spooled_oldest_ns;
	uint64_t age = oldest && oldest < now ? now - oldest : 0;

	buf_printf(b,
		   ", \"spooled\": %llu, \"spooled_bytes\": %llu, \"spooled_oldest_s\": %.1f, "
		   "\"spool_error\": ",
		   (unsigned long long)s->spooled, (unsigned long long)s->spooled_bytes,
		   (double)age / 1e9);
	json_text(b, s->spool_error);
}

/* Of a sink that a server denies. */
static void add_denied(struct buf *b, const struct delivery_stats *s)
{
	uint64_t now = clock_now(), wait = s->retry_at > now ? s->retry_at - now : 0;

	buf_printf(b, ", \"denied_s\": %.1f, \"retry_s\": %.1f",
		   (double)(now - s->denied_since) / 1e9, (double)wait / 1e9);
}

static void add_sink(struct buf *b, const struct sink_window *w)
{
	struct delivery_stats s;

	delivery_stats(sink_window_delivery(w), &s);
	buf_str(b, "{\"name\": ");
	json_text(b, sink_window_plan(w)->name);
	buf_printf(b,
		   ", \"names\": \"%s\", \"state\": \"%s\", \"delivered\": %llu, "
		   "\"retried\": %llu, \"lost\": ",
		   sink_window_plan(w)->server_names ? "server" : "local", sink_state(&s),
		   (unsigned long long)s.delivered, (unsigned long long)s.retried);
	loss_account_json(&s.losses, LOSS_DELIVERY, b);
	buf_printf(b, ", \"queued\": %llu, \"queued_bytes\": %llu, \"last_error\": ",
		   (unsigned long long)s.queued, (unsigned long long)s.queued_bytes);
	json_text(b, s.last_error);
	if (s.denied_since)
		add_denied(b, &s);
	if (s.has_spool)
		add_spool(b, &s);
	plan_options_json(sink_window_plan(w), b);
	buf_str(b, "}");
}

static void add_instances(const struct agent *a, struct buf *b)
{
	buf_str(b, ", \"sinks\": [");
	for (uint32_t i = 0; i < a->instances.plan->nsinks; i++) {
		buf_str(b, i ? ", " : "");
		add_sink(b, a->instances.windows[i]);
	}
	buf_str(b, "], \"discoveries\": [");
	for (uint32_t i = 0; i < a->instances.nsources; i++) {
		buf_printf(b, "%s{\"name\": ", i ? ", " : "");
		json_text(b, a->instances.sources[i].plan->name);
		buf_printf(b, ", \"targets\": %u, \"synced\": %s, \"error\": ",
			   discovery_targets(a->instances.sources[i].discovery),
			   discovery_synced(a->instances.sources[i].discovery) ? "true" : "false");
		json_text(b, discovery_error(a->instances.sources[i].discovery));
		buf_str(b, "}");
	}
	buf_str(b, "]");
}

/* Sends the members in b, and frees b. */
static void answer(struct control_reply *reply, struct buf *b)
{
	buf_add(b, "", 1);
	control_answer(reply, b->error ? "" : b->p, b->error ? "out of memory" : NULL);
	buf_fini(b);
}

static void on_status(void *arg, const char *word, struct control_reply *reply)
{
	const struct agent *a = arg;
	uint32_t profiled, n = decisions_processes(a->sampling.decisions, &profiled);
	const struct plan *plan = a->instances.plan;
	struct usage_cpu cpu;
	struct buf b = {0};

	(void)word;
	buf_printf(&b,
		   "\"version\": \"%s\", \"pid\": %d, \"uptime_s\": %.1f, \"state\": \"%s\", "
		   "\"sampler\": \"%s\", \"config\": ",
		   FUSEE_VERSION, (int)getpid(), (double)(clock_now() - a->start_ns) / 1e9,
		   a->sampling.paused_ns ? "paused" : "running",
		   a->sampling.profiler.bpf ? "bpf" : "snapshot");
	json_text(&b, plan->path ? plan->path : "");
	buf_printf(&b, ", \"generation\": %u, \"last_reload\": {\"ok\": %s, \"error\": ",
		   a->instances.generation, a->reload.failed ? "false" : "true");
	json_text(&b, reload_error(&a->reload));
	buf_str(&b, "}, ");
	add_losses(a, &b);
	buf_printf(&b, ", \"processes\": %u, \"profiled\": %u", n, profiled);
	add_instances(a, &b);
	usage_cpu(&a->sampling.profiler, &cpu);
	buf_printf(&b, ", \"cpu_s\": %.3f, \"rss_bytes\": %llu", cpu.agent,
		   (unsigned long long)usage_resident_bytes());
	if (plan->limits.budget_cpu)
		buf_printf(&b, ", \"budget\": {\"cpu\": %.9g, \"used\": %.6f, \"share\": %.4f}",
			   (double)plan->limits.budget_cpu / 1e6, cpu_budget_used(&a->budget),
			   cpu_budget_share(&a->budget));
	answer(reply, &b);
}

/* ---- targets ---- */

struct listing {
	const struct agent *a;
	struct buf *b;
	bool first;
};

static void add_target(void *arg, const struct decision *d)
{
	struct listing *l = arg;

	if (!d->processes)
		return;
	buf_str(l->b, l->first ? "" : ", ");
	l->first = false;
	decision_json(l->a->instances.plan, d, l->b);
}

static void on_targets(void *arg, const char *word, struct control_reply *reply)
{
	struct agent *a = arg;
	struct buf b = {0};
	struct listing l = {a, &b, true};

	(void)word;
	buf_str(&b, "\"targets\": [");
	decisions_each_set(a->sampling.decisions, add_target, &l);
	buf_str(&b, "]");
	answer(reply, &b);
}

static void on_explain(void *arg, const char *word, struct control_reply *reply)
{
	struct buf b = {0};
	char *end;
	long pid = strtol(word, &end, 10);
	int r = pid > 0 && pid <= INT32_MAX && !*end ? explain_json(arg, (pid_t)pid, &b) : -EINVAL;

	if (!r) {
		answer(reply, &b);
		return;
	}
	buf_fini(&b);
	control_answer(reply, "",
		       r == -EINVAL  ? "explain takes the number of a process"
		       : r == -ESRCH ? "there is no such process, or it began just now"
				     : "out of memory");
}

/* ---- commands that change something ---- */

static void on_reload(void *arg, const char *word, struct control_reply *reply)
{
	struct agent *a = arg;

	(void)word;
	reload_run(&a->reload);
	control_answer(reply, "", reload_error(&a->reload));
}

static void on_pause(void *arg, const char *word, struct control_reply *reply)
{
	struct agent *a = arg;

	(void)word;
	agent_sampling_pause(&a->sampling, true);
	if (a->pulls)
		pulls_paused(a->pulls);
	log_info("sampling is paused");
	control_answer(reply, "\"state\": \"paused\"", NULL);
}

static void on_resume(void *arg, const char *word, struct control_reply *reply)
{
	struct agent *a = arg;

	(void)word;
	agent_sampling_pause(&a->sampling, false);
	log_info("sampling is resumed");
	control_answer(reply, "\"state\": \"running\"", NULL);
}

static void on_flush(void *arg, const char *word, struct control_reply *reply)
{
	struct agent *a = arg;

	(void)word;
	flushes_add(&a->flushes, reply);
}

/* control.c answers help with these names. */
static const struct control_command commands[] = {
	{"status", on_status},   {"targets", on_targets},
	{"explain", on_explain}, {"reload", on_reload},
	{"pause", on_pause},     {"resume", on_resume},
	{"flush", on_flush},     {0},
};

int commands_open(struct agent *a)
{
	const char *path = a->instances.plan->control;
	int r = *path ? control_new(&a->control, a->loop, path, commands, a) : 0;

	if (r == -EADDRINUSE)
		log_error("another agent answers at %s: end it, or name another control socket",
			  path);
	else if (r)
		log_error("cannot make the control socket %s: %s", path, strerror(-r));
	return r ? EX_UNAVAILABLE : 0;
}
