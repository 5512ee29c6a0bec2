/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/policy core/plugin
/* Every allocation failed in turn, from a discovery instance's start to a process's decision: an
 * error that says so, and once there is memory again the next scan completes it. */
#include "test.h"

#include "policy/decisions.h"
#include "policy/discoveries.h"
#include "lib/faults.h"
#include "plugin/plugin.h"
#include "lib/str.h"

static struct fusee_instance *self; /* the instance under test */
static int errors;                  /* of its host calls, in this round */

static int put(uint32_t match, const char *key, const char *team)
{
	struct fusee_label l = {.key = str("team"), .str = str(team)};
	const struct fusee_target t = {.size = sizeof(t),
				       .match = match,
				       .key = str(key),
				       .pid = (uint32_t)getpid(),
				       .cgroup = str("/a/b"),
				       .match_label = {.key = str("team"), .str = str("x")},
				       .labels = {&l, 1, sizeof(l)}};
	int r = discovery_host.put(self, &t);

	CHECK(!r || (r == -ENOMEM && faults_happened()));
	errors += r != 0;
	return r;
}

static int say(void *ctx)
{
	int r = discovery_host.begin(self);

	r = r ? r : put(FUSEE_MATCH_PID, "p", "x");
	r = r ? r : put(FUSEE_MATCH_CGROUP, "c", "y");
	r = r ? r : put(FUSEE_MATCH_LABEL, "l", "z");
	r = r ? r : put(FUSEE_MATCH_PID, "p", "w");
	return r ? r : discovery_host.commit(self);
}

static int start(void *ctx)
{
	int r = say(ctx);

	r = r ? r : discovery_host.watch_fd(self, 0, 1 /* EPOLLIN */);
	if (r == -EPERM) /* a file */
		r = 0;
	return r ? r : discovery_host.timer(self, 1000000000);
}

static int process(void *ctx, const struct fusee_process_event *e)
{
	return e->kind == FUSEE_PROCESS_EXEC ? say(ctx) : 0;
}

static const struct fusee_discovery_ops ops = {.size = sizeof(ops),
					       .flags = FUSEE_DISCOVERY_PROCESSES,
					       .start = start,
					       .process = process};
static const struct fusee_plugin plugin = {.magic = FUSEE_MAGIC,
					   .size = sizeof(plugin),
					   .kind = FUSEE_DISCOVERY,
					   .name = "test",
					   .ctx_size = 8,
					   .ops = &ops};

static int decide(void *arg, const struct fusee_label *labels, uint32_t n,
		  struct policy_answer *ret, char **text)
{
	*ret = (struct policy_answer){.profile = true, .hz = 19, .sinks = 1, .nlabels = 1};
	ret->labels[0] = (struct fusee_label){.key = str("tier"), .str = str("1")};
	for (uint32_t i = 0; i < n; i++)
		if (labels[i].key.len == 4 && !memcmp(labels[i].key.p, "team", 4))
			ret->hz = 97;
	return 0;
}

static int nsampled;

static int changed(void *arg, pid_t pid, const struct decision *d, bool inherited)
{
	if (pid == getpid())
		nsampled = d && d->profile;
	return 0;
}

struct world {
	struct loop *loop;
	struct targets *targets;
	struct discoveries *all;
	struct discovery *one;
	struct decisions *d;
};

static int build(struct world *w)
{
	struct fusee_host host = plugin_host_base;
	struct decisions_options o = {.decide = decide, .changed = changed, .unknown_keep = true};
	char *text = NULL;
	int r;

	*w = (struct world){0};
	host.discovery = &discovery_host;
	r = loop_new(&w->loop);
	r = r ? r : targets_new(&w->targets);
	r = r ? r : discoveries_new(&w->all, w->loop, w->targets);
	r = r ? r
	      : instance_new(&self, &plugin, &host,
			     &(struct instance_options){.name = "discover.test", .where = ""},
			     &text);
	if (!r) {
		r = discoveries_add(w->all, self, &w->one, &text);
		if (r)
			instance_free(self);
	}
	free(text);
	o.targets = w->targets;
	return r ? r : decisions_new(&w->d, &o);
}

static bool never(void *arg, uint32_t set)
{
	return false;
}

static void work(struct world *w)
{
	const struct fusee_process_event exec = {
		.size = sizeof(exec), .kind = FUSEE_PROCESS_EXEC, .pid = (uint32_t)getpid()};

	decisions_execed(w->d, getpid(), NULL, 0);
	discoveries_process(w->all, &exec);
	decisions_forked(w->d, getpid(), 5000000);
	decisions_refresh(w->d);
	decisions_sweep(w->d, never, NULL);
	decisions_replan(w->d, true);
	decisions_exited(w->d, 5000000, 1);
	decisions_tidy(w->d, 20000000000u);
}

/* Reported once, with an allocation failing: no event is repeated by itself. */
TEST_FOR(one_event_alone, 900)
{
	const struct fusee_process_event exec = {
		.size = sizeof(exec), .kind = FUSEE_PROCESS_EXEC, .pid = (uint32_t)getpid()};
	const struct decision *d;
	struct world w;
	unsigned long rounds = 0;

	for (faults_from(0); faults_next(); rounds++) {
		faults_stop();
		nsampled = errors = 0;
		CHECK_INT(build(&w), 0);
		faults.seen = 0;
		faults.armed = true;
		decisions_execed(w.d, getpid(), NULL, 0);
		discoveries_process(w.all, &exec);
		decisions_refresh(w.d);
		decisions_forked(w.d, getpid(), getppid());
		faults.armed = false;
		for (int i = 0; i < 2; i++) { /* the first allocates what remains */
			discoveries_retry(w.all);
			decisions_refresh(w.d);
			decisions_tidy(w.d, 20000000000u);
		}
		d = decisions_of(w.d, getpid());
		CHECK(d && d->profile && d->hz == 97 && nsampled);
		CHECK(decisions_of(w.d, getppid()) != NULL);
		CHECK_INT(discovery_targets(w.one), 3);
		CHECK_STR(discovery_error(w.one), "");
		decisions_free(w.d);
		discoveries_free(w.all);
		targets_free(w.targets);
		loop_free(w.loop);
	}
	CHECK(rounds > 10);
}

TEST_FOR(from_discovery_to_decision, 900)
{
	const struct decision *d;
	struct world w;
	unsigned long rounds = 0;
	int r;

	for (faults_from(0); faults_next(); rounds++) {
		nsampled = errors = 0;
		r = build(&w);
		CHECK(!r || faults_happened());
		if (!r) {
			work(&w);
			faults_stop();
			work(&w);
			for (int i = 0; i < 15; i++)
				decisions_tidy(w.d, 20000000000u);
			d = decisions_of(w.d, getpid());
			CHECK(d && d->profile && d->hz == 97 && nsampled);
			CHECK(d->nlabels == 5 && targets_count(w.targets) == 3);
			CHECK_INT(discovery_targets(w.one), 3);
			CHECK(discoveries_synced(w.all));
			CHECK_STR(discovery_error(w.one), "");
		}
		faults_stop();
		decisions_free(w.d);
		discoveries_free(w.all);
		targets_free(w.targets);
		loop_free(w.loop);
	}
	CHECK(rounds > 60);
}
