// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/policy
/* core/policy/decision_changes: what a script changes of a decision holds for its time, for all its
 * processes, and not for others. The numbers of processes are beyond the kernel's largest. */
#include "test.h"

#include "base/hashmap.h"
#include "base/metrics.h"
#include "policy/decisions.h"
#include "lib/str.h"

#define FIRST 5000000 /* no process has this number */
#define SECOND UINT64_C(1000000000)

struct world {
	struct targets *targets;
	struct decisions *d;
	int changes;
	int answer; /* of changed() */
};

/* Processes of team "off" are refused. */
static int decide(void *arg, const struct fusee_label *labels, uint32_t n,
		  struct policy_answer *ret, char **text)
{
	*ret = (struct policy_answer){.profile = true, .hz = 19, .sinks = 5};
	for (uint32_t i = 0; i < n; i++)
		if (labels[i].str.len == 3 && !memcmp(labels[i].str.p, "off", 3))
			ret->profile = false;
	ret->labels[ret->nlabels++] = (struct fusee_label){.key = str("tier"), .str = str("first")};
	return 0;
}

static int changed(void *arg, pid_t pid, const struct decision *d, bool inherited)
{
	struct world *w = arg;

	w->changes++;
	return w->answer;
}

/* Two processes of team "db", one of "web", one of "off". */
static void world_new(struct world *w)
{
	static const char *const teams[] = {"db", "db", "web", "off"};
	const char *why;
	struct decisions_options o = {.decide = decide, .changed = changed, .arg = w};

	*w = (struct world){0};
	o.unknown_keep = true;
	CHECK_INT(targets_new(&w->targets), 0);
	o.targets = w->targets;
	CHECK_INT(decisions_new(&w->d, &o), 0);
	decisions_execed(w->d, getpid(), NULL, 0);
	for (uint32_t i = 0; i < 4; i++) {
		struct fusee_label l = {.key = str("team"), .str = str(teams[i])};
		struct fusee_target t = {.size = sizeof(t),
					 .match = FUSEE_MATCH_PID,
					 .pid = FIRST + i,
					 .key = {"0123" + i, 1},
					 .labels = {&l, 1, sizeof(l)}};

		decisions_forked(w->d, getpid(), (pid_t)t.pid);
		CHECK_INT(targets_put(w->targets, 1, &t, &why), 0);
	}
	decisions_refresh(w->d);
	w->changes = 0;
}

static void world_free(struct world *w)
{
	decisions_free(w->d);
	targets_free(w->targets);
}

static const struct decision *of(const struct world *w, int i)
{
	const struct decision *d = decisions_of(w->d, FIRST + i);

	CHECK(d != NULL);
	return d;
}

static int set_rate(struct world *w, int i, double hz, uint64_t until)
{
	const struct decision *d = of(w, i);

	return decision_set_rate(decisions_cache(w->d), d->set, d->known, hz, until);
}

static int drop(struct world *w, int i, uint64_t until)
{
	const struct decision *d = of(w, i);

	return decision_drop(decisions_cache(w->d), d->set, d->known, until);
}

static const char *label(const struct world *w, int i, const char *name)
{
	static char text[5000];
	const struct decision *d = of(w, i);

	for (uint32_t k = 0; k < d->nlabels; k++) {
		const struct fusee_label *l = &d->labels[k];

		if (k)
			CHECK(decision_label_order(&d->labels[k - 1], l) < 0);
		if (l->key.len == strlen(name) && !memcmp(l->key.p, name, l->key.len)) {
			snprintf(text, sizeof(text), "%.*s", (int)l->str.len, l->str.p);
			return text;
		}
	}
	return "(none)";
}

static int add_label(struct world *w, int i, const char *name, const char *value)
{
	const struct decision *d = of(w, i);

	return decision_add_label(decisions_cache(w->d), d->set, d->known,
				  &(struct fusee_label){.key = str(name), .str = str(value)});
}

TEST_IN_WORLD(a_rate_for_a_time)
{
	CHECK(of(w, 0) == of(w, 1) && of(w, 0) != of(w, 2));
	CHECK_INT(set_rate(w, 0, 97, 30 * SECOND), 0);
	CHECK(of(w, 0)->hz == 19);
	decisions_apply(w->d, 0);
	CHECK(of(w, 1)->hz == 97 && of(w, 1)->profile && of(w, 1)->sinks == 5);
	CHECK(of(w, 2)->hz == 19);
	CHECK_INT(w->changes, 2); /* both processes, and no other */
	decisions_apply(w->d, 20 * SECOND);
	CHECK_INT(w->changes, 2);
	CHECK_INT(set_rate(w, 0, 5, 40 * SECOND), 0); /* in place of the earlier */
	decisions_apply(w->d, 31 * SECOND);
	CHECK(of(w, 0)->hz == 5);
	CHECK_INT(decisions_cache(w->d)->changed, 1);
	decisions_tidy(w->d, 40 * SECOND);
	CHECK(of(w, 0)->hz == 19);
	CHECK_INT(w->changes, 6);
	CHECK_INT(decisions_cache(w->d)->changed, 0);
}

TEST_IN_WORLD(dropped_for_a_time)
{
	CHECK_INT(set_rate(w, 2, 97, 60 * SECOND), 0);
	CHECK_INT(drop(w, 2, 30 * SECOND), 0);
	decisions_apply(w->d, 0);
	CHECK(!of(w, 2)->profile && !of(w, 2)->hz && !of(w, 2)->sinks && !of(w, 2)->refused);
	CHECK(of(w, 0)->profile);
	CHECK_INT(w->changes, 1);
	decisions_apply(w->d, 30 * SECOND);
	CHECK(of(w, 2)->profile && of(w, 2)->hz == 97 && of(w, 2)->sinks == 5);
	decisions_apply(w->d, 60 * SECOND);
	CHECK(of(w, 2)->hz == 19);
}

TEST_IN_WORLD(more_sinks_for_a_time)
{
	CHECK_INT(decision_add_sinks(decisions_cache(w->d), of(w, 0)->set, of(w, 0)->known, 8,
				     30 * SECOND),
		  0);
	decisions_apply(w->d, 0);
	CHECK_INT(of(w, 0)->sinks, 13);
	CHECK_INT(of(w, 2)->sinks, 5);
	CHECK_INT(drop(w, 0, 20 * SECOND), 0);
	decisions_apply(w->d, 1);
	CHECK_INT(of(w, 0)->sinks, 0);
	decisions_apply(w->d, 20 * SECOND);
	CHECK_INT(of(w, 0)->sinks, 13);
	decisions_apply(w->d, 30 * SECOND);
	CHECK_INT(of(w, 0)->sinks, 5);
	CHECK_INT(decisions_cache(w->d)->changed, 0);
	CHECK_INT(decision_add_sinks(decisions_cache(w->d), of(w, 3)->set, of(w, 3)->known, 8,
				     30 * SECOND),
		  -EACCES);
}

TEST_IN_WORLD(what_cannot_be_changed)
{
	uint32_t set;

	CHECK(of(w, 3)->refused && !of(w, 3)->profile);
	CHECK_INT(set_rate(w, 3, 97, SECOND), -EACCES);
	set = of(w, 0)->set;
	CHECK_INT(decision_set_rate(decisions_cache(w->d), set, !of(w, 0)->known, 97, SECOND),
		  -ENOENT);
	CHECK_INT(decision_drop(decisions_cache(w->d), 12345, true, SECOND), -ENOENT);
	decisions_apply(w->d, 0);
	CHECK_INT(w->changes, 0);
}

TEST_IN_WORLD(labels)
{
	char name[16], value[16];
	int r = 0;
	uint32_t n = of(w, 0)->nlabels;

	CHECK_INT(add_label(w, 0, "state", "hot"), 0);
	CHECK_STR(label(w, 1, "state"), "hot");
	CHECK_STR(label(w, 2, "state"), "(none)");
	CHECK_INT(of(w, 0)->nlabels, n + 1);
	for (int i = 0; i < 1000; i++) { /* replaced, and its texts freed */
		snprintf(value, sizeof(value), "%d", i);
		CHECK_INT(add_label(w, 0, "state", value), 0);
		CHECK_STR(label(w, 0, "state"), value);
	}
	CHECK_INT(add_label(w, 0, "tier", "second"), 0); /* the policy's */
	CHECK_STR(label(w, 0, "tier"), "second");
	CHECK_INT(add_label(w, 0, "team", "none"), 0); /* the target's */
	CHECK_STR(label(w, 0, "team"), "none");
	CHECK_STR(label(w, 2, "tier"), "first");
	CHECK_INT(of(w, 0)->nlabels, n + 1);
	for (uint32_t i = 0; !r && i < 100; i++) {
		snprintf(name, sizeof(name), "l%02u", i);
		r = add_label(w, 0, name, "x");
	}
	CHECK_INT(r, -ENOSPC);
	CHECK_INT(of(w, 0)->nlabels, DECISION_LABELS);
	CHECK_STR(label(w, 0, "l00"), "x");
	CHECK_INT(add_label(w, 0, "state", "still"), 0);
}

/* The change holds for a child and for who comes later; another plan ends it. */
TEST_IN_WORLD(processes_that_begin)
{
	CHECK_INT(set_rate(w, 0, 97, 30 * SECOND), 0);
	decisions_apply(w->d, 0);
	decisions_forked(w->d, FIRST, FIRST + 9);
	CHECK(of(w, 9) == of(w, 0) && of(w, 9)->hz == 97);
	decisions_replan(w->d, true);
	CHECK(of(w, 0)->hz == 19);
	CHECK_INT(decisions_cache(w->d)->changed, 0);
}

/* Events that could not be opened are tried again. */
TEST_IN_WORLD(a_failure_is_repeated)
{
	int n;

	CHECK_INT(drop(w, 2, 30 * SECOND), 0);
	w->answer = -ENOMEM;
	decisions_apply(w->d, 0);
	n = w->changes;
	CHECK_INT(n, 1);
	w->answer = 0;
	decisions_tidy(w->d, SECOND);
	CHECK(w->changes > n);
	n = w->changes;
	decisions_tidy(w->d, 2 * SECOND);
	CHECK_INT(w->changes, n);
}
