/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/policy core/target
/* Decisions about processes whose labels are not all known: by a policy that looks at some. */
#include "test.h"

#include "lib/str.h"
#include "policy/decisions.h"

#define US ((uint32_t)getpid())

struct world {
	struct targets *targets;
	struct decisions *d;
	const char *looks; /* at this label; what has "off" there is refused */
	const char *team;  /* the label that is found later */
	int early, full;   /* calls of the policy */
	int found;         /* calls of find_labels() */
	bool fails;        /* the label is not there then either */
};

static const char *value_of(const struct fusee_label *l, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (l[i].key.len == strlen(name) && !memcmp(l[i].key.p, name, l[i].key.len))
			return l[i].str.p;
	return "";
}

static bool is_off(const struct world *w, const struct fusee_label *l, uint32_t n)
{
	return !strncmp(value_of(l, n, w->looks), "off", 3);
}

static int decide(void *arg, const struct fusee_label *l, uint32_t n, struct policy_answer *ret,
		  char **text)
{
	struct world *w = arg;

	(void)text;
	w->full++;
	*ret = (struct policy_answer){.profile = !is_off(w, l, n), .hz = 19, .sinks = 1};
	return 0;
}

static int decide_early(void *arg, const struct fusee_label *l, uint32_t n,
			struct policy_answer *ret, struct policy_watch *watch)
{
	struct world *w = arg;

	w->early++;
	*ret = (struct policy_answer){.profile = !is_off(w, l, n), .hz = 19, .sinks = 1};
	watch->requested |= watch->may_change(watch->arg, str(w->looks));
	return 0;
}

static int changed(void *arg, pid_t pid, const struct decision *d, bool inherited)
{
	(void)arg, (void)pid, (void)d, (void)inherited;
	return 0;
}

/* The target of this process: `kind` is known at once, `team` only later. */
static void put(struct world *w, const char *kind, const char *team, bool later)
{
	const struct fusee_label l[] = {{.key = str("kind"), .str = str(kind)},
					{.key = str("team"), .str = str(team ? team : "")}};
	const struct fusee_str names[] = {str("team")};
	const struct fusee_target t = {
		.size = sizeof(t),
		.match = FUSEE_MATCH_PID,
		.pid = US,
		.key = str("us"),
		.labels = {l, team ? 2 : 1, sizeof(*l)},
		.later = {names, later, sizeof(*names)},
	};
	const char *why;

	CHECK_INT(targets_put(w->targets, 1, &t, &why), 0);
}

static void find_labels(void *arg, pid_t pid)
{
	struct world *w = arg;

	CHECK_INT(pid, getpid());
	CHECK(targets_lack_labels(w->targets, pid, 0) && targets_lack_labels(w->targets, pid, 1));
	CHECK(!targets_lack_labels(w->targets, pid, 2));
	w->found++;
	if (!w->fails)
		put(w, "a", w->team, false);
}

static void world_new(struct world *w, const char *looks, const char *team)
{
	struct decisions_options o = {.decide = decide,
				      .decide_early = decide_early,
				      .find_labels = find_labels,
				      .changed = changed,
				      .arg = w};

	*w = (struct world){.looks = looks, .team = team};
	CHECK_INT(targets_new(&w->targets), 0);
	o.targets = w->targets;
	CHECK_INT(decisions_new(&w->d, &o), 0);
}

static void world_free(struct world *w)
{
	decisions_free(w->d);
	targets_free(w->targets);
}

static const struct decision *run(struct world *w, const char *kind)
{
	const struct decision *d;

	put(w, kind, NULL, true);
	decisions_execed(w->d, getpid(), NULL, 0);
	d = decisions_of(w->d, getpid());
	CHECK(d && d->known);
	return d;
}

/* It is refused by what is known: nobody reads the rest, and the policy is requested once. */
TEST(a_refusal_by_what_is_known)
{
	struct world w;

	world_new(&w, "kind", "x");
	for (int i = 0; i < 3; i++)
		CHECK(!run(&w, "off")->profile && decisions_of(w.d, getpid())->refused);
	CHECK_INT(w.found, 0);
	CHECK_INT(w.early, 1);
	CHECK_INT(w.full, 0);
	/* what is profiled has all its labels */
	CHECK(run(&w, "on")->profile);
	CHECK_STR(value_of(decisions_of(w.d, getpid())->labels,
			   decisions_of(w.d, getpid())->nlabels, "team"),
		  "x");
	CHECK_INT(w.found, 1);
	CHECK_INT(w.full, 1);
	world_free(&w);
}

TEST(a_policy_that_looks_at_what_is_not_known)
{
	struct world w;

	world_new(&w, "team", "off");
	CHECK(!run(&w, "a")->profile);
	CHECK_INT(w.found, 1);
	CHECK_INT(w.full, 1);
	w.team = "on";
	CHECK(run(&w, "a")->profile);
	CHECK_INT(w.found, 2);
	/* it cannot be found: it is decided by what there is */
	w.fails = true;
	CHECK(run(&w, "a")->profile);
	CHECK_INT(w.found, 3);
	world_free(&w);
}

/* service_name can follow from any label, and a target that matches by a later label can add any
 * other. Before that was known, the process was refused. */
TEST(what_later_labels_change)
{
	const struct fusee_target joined = {.size = sizeof(joined),
					    .match = FUSEE_MATCH_LABEL,
					    .key = str("joined"),
					    .match_label = {.key = str("team"), .str = str("x")}};
	struct world w;
	const char *why;

	world_new(&w, "service_name", "x");
	run(&w, "off");
	CHECK_INT(w.found, 1);
	world_free(&w);

	world_new(&w, "kind", "x");
	CHECK(!targets_may_change(w.targets, str("team")));
	run(&w, "off");
	CHECK_INT(w.found, 0);
	CHECK(targets_may_change(w.targets, str("team")));
	CHECK(!targets_may_change(w.targets, str("kind")));
	CHECK_INT(targets_put(w.targets, 2, &joined, &why), 0);
	CHECK(targets_may_change(w.targets, str("kind")));
	decisions_refresh(w.d);
	CHECK_INT(w.found, 1);
	world_free(&w);
}

TEST(wrong_names)
{
	const struct fusee_str names[] = {str("team"), str("no name")};
	struct fusee_target t = {.size = sizeof(t),
				 .match = FUSEE_MATCH_PID,
				 .pid = US,
				 .key = str("us"),
				 .later = {names, 2, sizeof(*names)}};
	struct targets *targets;
	const char *why = NULL;

	CHECK_INT(targets_new(&targets), 0);
	CHECK_INT(targets_put(targets, 1, &t, &why), -EINVAL);
	CHECK(why);
	t.later.n = 1;
	t.later.stride = 1;
	CHECK_INT(targets_put(targets, 1, &t, &why), -EINVAL);
	t.later.stride = sizeof(*names);
	CHECK_INT(targets_put(targets, 1, &t, &why), 0);
	t.match = FUSEE_MATCH_CGROUP;
	t.cgroup = str("/");
	CHECK_INT(targets_put(targets, 1, &t, &why), -EINVAL);
	targets_free(targets);
}
