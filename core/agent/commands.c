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

static void add_losses(const struct agent *a, struct json *j)
{
	struct loss_account l;

	profiler_account(&a->sampling.profiler, &l);
	json_uint(j, "samples_due", l.due);
	json_uint(j, "samples", l.due - l.lost);
	json_uint(j, "complete", l.complete);
	loss_account_json(&l, LOSS_STACK, "truncated", j);
	loss_account_json(&l, LOSS_TICK, "lost", j);
}

static const char *sink_state(const struct delivery_stats *s)
{
	if (s->blocked_since && clock_now() - s->blocked_since > BLOCKED_NS)
		return "blocked";
	return s->denied_since ? "denied" : *s->last_error ? "failing" : "ok";
}

/* The age is 0 if the clock was set back. */
static void add_spool(struct json *j, const struct delivery_stats *s)
{
	uint64_t now = clock_ns(CLOCK_REALTIME), oldest = s->spooled_oldest_ns;
	uint64_t age = oldest && oldest < now ? now - oldest : 0;

	json_uint(j, "spooled", s->spooled);
	json_uint(j, "spooled_bytes", s->spooled_bytes);
	json_printf(j, "spooled_oldest_s", "%.1f", (double)age / 1e9);
	json_text(j, "spool_error", s->spool_error);
}

/* Appends the members of a sink that its server denies. */
static void add_denied(struct json *j, const struct delivery_stats *s)
{
	uint64_t now = clock_now(), wait = s->retry_at > now ? s->retry_at - now : 0;

	json_printf(j, "denied_s", "%.1f", (double)(now - s->denied_since) / 1e9);
	json_printf(j, "retry_s", "%.1f", (double)wait / 1e9);
}

static void add_sink(struct json *j, const struct sink_window *w)
{
	struct delivery_stats s;

	delivery_stats(sink_window_delivery(w), &s);
	json_open(j, NULL);
	json_text(j, "name", sink_window_plan(w)->name);
	json_text(j, "names", sink_window_plan(w)->server_names ? "server" : "local");
	json_text(j, "state", sink_state(&s));
	json_uint(j, "delivered", s.delivered);
	json_uint(j, "retried", s.retried);
	loss_account_json(&s.losses, LOSS_DELIVERY, "lost", j);
	json_uint(j, "queued", s.queued);
	json_uint(j, "queued_bytes", s.queued_bytes);
	json_text(j, "last_error", s.last_error);
	if (s.denied_since)
		add_denied(j, &s);
	if (s.has_spool)
		add_spool(j, &s);
	plan_options_json(sink_window_plan(w), j);
	json_end(j);
}

static void add_instances(const struct agent *a, struct json *j)
{
	json_list(j, "sinks");
	for (uint32_t i = 0; i < a->instances.plan->nsinks; i++)
		add_sink(j, a->instances.windows[i]);
	json_end(j);
	json_list(j, "discoveries");
	for (uint32_t i = 0; i < a->instances.nsources; i++) {
		const struct discovery *d = a->instances.sources[i].discovery;

		json_open(j, NULL);
		json_text(j, "name", a->instances.sources[i].plan->name);
		json_uint(j, "targets", discovery_targets(d));
		json_flag(j, "synced", discovery_synced(d));
		json_text(j, "error", discovery_error(d));
		json_end(j);
	}
	json_end(j);
}

static void add_budget(const struct agent *a, struct json *j)
{
	json_open(j, "budget");
	json_printf(j, "cpu", "%.9g", (double)a->instances.plan->limits.budget_cpu / 1e6);
	json_printf(j, "used", "%.6f", cpu_budget_used(&a->budget));
	json_printf(j, "share", "%.4f", cpu_budget_share(&a->budget));
	json_end(j);
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
	struct json j = {.out = &b, .spaced = true};

	(void)word;
	json_text(&j, "version", FUSEE_VERSION);
	json_int(&j, "pid", getpid());
	json_printf(&j, "uptime_s", "%.1f", (double)(clock_now() - a->start_ns) / 1e9);
	json_text(&j, "state", a->sampling.paused_ns ? "paused" : "running");
	json_text(&j, "sampler", a->sampling.profiler.bpf ? "bpf" : "snapshot");
	json_text(&j, "config", plan->path ? plan->path : "");
	json_uint(&j, "generation", a->instances.generation);
	json_open(&j, "last_reload");
	json_flag(&j, "ok", !a->reload.failed);
	json_text(&j, "error", reload_error(&a->reload) ? reload_error(&a->reload) : "");
	json_end(&j);
	add_losses(a, &j);
	json_uint(&j, "processes", n);
	json_uint(&j, "profiled", profiled);
	if (a->sampling.allocators)
		allocators_json(a->sampling.allocators, &j);
	hooks_json(a->sampling.hooks, &j);
	add_instances(a, &j);
	usage_cpu(&a->sampling.profiler, &cpu);
	json_printf(&j, "cpu_s", "%.3f", cpu.agent);
	json_uint(&j, "rss_bytes", usage_resident_bytes());
	if (plan->limits.budget_cpu)
		add_budget(a, &j);
	answer(reply, &b);
}

/* ---- targets ---- */

struct listing {
	const struct agent *a;
	struct json *j;
};

static void add_target(void *arg, const struct decision *d)
{
	struct listing *l = arg;

	if (d->processes)
		decision_json(l->a->instances.plan, d, l->j);
}

static void on_targets(void *arg, const char *word, struct control_reply *reply)
{
	struct agent *a = arg;
	struct buf b = {0};
	struct json j = {.out = &b, .spaced = true};
	struct listing l = {a, &j};

	(void)word;
	json_list(&j, "targets");
	decisions_each_set(a->sampling.decisions, add_target, &l);
	json_end(&j);
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
