/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/target
/* core/process/target: what sources say, and the label sets that come of it. */
#include "test.h"

#include <sys/utsname.h>

#include "base/metrics.h"
#include "base/utf8.h"
#include "target/labelset.h"
#include "process/procfs.h"
#include "target/target.h"
#include "lib/str.h"

#define LABEL(k, v) ((struct fusee_label){.key = str(k), .str = str(v)})
#define LABELS(...)                                                         \
	((struct fusee_table){(struct fusee_label[]){__VA_ARGS__},          \
			      sizeof((struct fusee_label[]){__VA_ARGS__}) / \
				      sizeof(struct fusee_label),           \
			      sizeof(struct fusee_label)})
#define BY_PID(k, p, ...)                                            \
	(&(struct fusee_target){.size = sizeof(struct fusee_target), \
				.match = FUSEE_MATCH_PID,            \
				.key = str(k),                       \
				.pid = (p),                          \
				.labels = LABELS(__VA_ARGS__)})
#define BY_CGROUP(k, c, ...)                                         \
	(&(struct fusee_target){.size = sizeof(struct fusee_target), \
				.match = FUSEE_MATCH_CGROUP,         \
				.key = str(k),                       \
				.cgroup = str(c),                    \
				.labels = LABELS(__VA_ARGS__)})
#define BY_LABEL(k, n, v, ...)                                       \
	(&(struct fusee_target){.size = sizeof(struct fusee_target), \
				.match = FUSEE_MATCH_LABEL,          \
				.key = str(k),                       \
				.match_label = LABEL(n, v),          \
				.labels = LABELS(__VA_ARGS__)})

static struct targets *new_targets(void)
{
	struct targets *ts;

	CHECK_INT(targets_new(&ts), 0);
	return ts;
}

static void put(struct targets *ts, uint32_t source, const struct fusee_target *t)
{
	const char *why;

	CHECK_INT(targets_put(ts, source, t, &why), 0);
	CHECK(!why);
}

static bool last_known;

/* The value of a set's label; "none" if it lacks that. */
static const char *value_of(struct targets *ts, uint32_t id, const char *name)
{
	uint32_t n;
	const struct fusee_label *l = targets_set(ts, id, &n);

	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(l[i].key.p, name))
			return l[i].str.p;
	return "none";
}

static uint32_t labels(struct targets *ts, pid_t pid, uint64_t ticks, const char *cgroup)
{
	uint32_t id = targets_labels(
		ts,
		&(struct target_process){
			.pid = pid, .identity = ticks, .cgroup = cgroup, .name = "prog"},
		&last_known);

	CHECK(id != TARGET_NONE);
	return id;
}

/* "a=1 b=2", without cgroup, host and process */
static const char *text(struct targets *ts, uint32_t id)
{
	static char out[65536];
	uint32_t n, base = 0;
	const struct fusee_label *l = targets_set(ts, id, &n);
	size_t at = 0;

	*out = '\0';
	for (uint32_t i = 0; i < n; i++) {
		CHECK(!i || strcmp(l[i - 1].key.p, l[i].key.p) < 0);
		CHECK_INT(strlen(l[i].key.p), l[i].key.len);
		CHECK_INT(strlen(l[i].str.p), l[i].str.len);
		if (!strcmp(l[i].key.p, "host") || !strcmp(l[i].key.p, "cgroup") ||
		    !strcmp(l[i].key.p, "process")) {
			base++;
			continue;
		}
		at += (size_t)snprintf(out + at, sizeof(out) - at, "%s%s=%s", at ? " " : "",
				       l[i].key.p, l[i].str.p);
	}
	CHECK_INT(base, 3);
	return out;
}

static const char *value(struct targets *ts, uint32_t id, const char *name)
{
	uint32_t n;
	const struct fusee_label *l = targets_set(ts, id, &n);

	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(l[i].key.p, name))
			return l[i].str.p;
	return "(none)";
}

TEST(every_set_has_process_cgroup_and_host)
{
	struct targets *ts = new_targets();
	char host[256] = "";
	uint32_t id, n;

	gethostname(host, sizeof(host) - 1);
	id = labels(ts, 7, 0, "/a");
	CHECK(!last_known);
	CHECK_STR(text(ts, id), "");
	CHECK_STR(value(ts, id, "process"), "prog");
	CHECK_STR(value(ts, id, "cgroup"), "/a");
	CHECK_STR(value(ts, id, "host"), host);
	CHECK_INT(labels(ts, 8, 5, "/a"), id);
	CHECK(labels(ts, 8, 5, "/b") != id);
	CHECK_STR(value(ts, labels(ts, 7, 0, ""), "cgroup"), "");
	CHECK(!targets_set(ts, TARGET_NONE, &n));
	CHECK(!targets_set(ts, 999, &n));
	/* a source may say better than we know */
	put(ts, 1, BY_PID("p", 7, LABEL("process", "app.py"), LABEL("pid", "7")));
	id = labels(ts, 7, 0, "/a");
	CHECK_STR(value(ts, id, "process"), "app.py");
	CHECK_STR(value(ts, id, "pid"), "(none)");
	targets_free(ts);
	targets_free(NULL);
}

#define TEST_OF_TARGETS(id) TEST_WITH(id, struct targets *, ts, new_targets(), targets_free(ts))

TEST_OF_TARGETS(nearer_targets_come_first)
{
	put(ts, 1, BY_CGROUP("root", "/", LABEL("a", "root"), LABEL("e", "root")));
	put(ts, 1, BY_CGROUP("a", "/a", LABEL("a", "a"), LABEL("b", "a"), LABEL("c", "a")));
	put(ts, 1, BY_CGROUP("ab", "/a/b/", LABEL("b", "ab"), LABEL("c", "ab")));
	put(ts, 1, BY_PID("p", 7, LABEL("c", "pid")));
	put(ts, 1, BY_LABEL("j", "c", "pid", LABEL("a", "join"), LABEL("d", "join")));
	put(ts, 1, BY_LABEL("k", "d", "join", LABEL("f", "joined by a joined one")));
	CHECK_STR(text(ts, labels(ts, 7, 0, "/a/b/c")),
		  "a=a b=ab c=pid d=join e=root f=joined by a joined one");
	CHECK(last_known);
	CHECK_STR(text(ts, labels(ts, 8, 0, "/a/b")), "a=a b=ab c=ab e=root");
	CHECK_STR(text(ts, labels(ts, 8, 0, "/a/bc")), "a=a b=a c=a e=root");
	CHECK_STR(text(ts, labels(ts, 8, 0, "/ab")), "a=root e=root");
	CHECK_STR(text(ts, labels(ts, 8, 0, "/")), "a=root e=root");
	CHECK(last_known);
	CHECK_STR(text(ts, labels(ts, 8, 0, "")), "");
	CHECK(!last_known);
	/* of one rank: the lowest source, then the least key, however they came */
	put(ts, 3, BY_PID("z", 9, LABEL("a", "3z")));
	put(ts, 2, BY_PID("y", 9, LABEL("a", "2y"), LABEL("b", "2y")));
	put(ts, 2, BY_PID("x", 9, LABEL("a", "2x")));
	CHECK_STR(text(ts, labels(ts, 9, 0, "")), "a=2x b=2y");
}

TEST_OF_TARGETS(a_joined_label_goes_with_every_process)
{
	put(ts, 1, BY_CGROUP("c", "/pod", LABEL("container_id", "abc")));
	CHECK_STR(text(ts, labels(ts, 1, 0, "/pod")), "container_id=abc");
	put(ts, 2, BY_LABEL("pod", "container_id", "abc", LABEL("pod", "web-1")));
	CHECK_STR(text(ts, labels(ts, 1, 0, "/pod")), "container_id=abc pod=web-1");
	put(ts, 2, BY_LABEL("by name", "process", "prog", LABEL("team", "x")));
	CHECK_STR(text(ts, labels(ts, 1, 0, "")), "team=x");
	CHECK(last_known);
	CHECK_INT(targets_del(ts, 2, str("pod")), 0);
	CHECK_INT(targets_del(ts, 2, str("pod")), -ENOENT);
	CHECK_STR(text(ts, labels(ts, 1, 0, "/pod")), "container_id=abc team=x");
}

TEST_OF_TARGETS(a_pid_used_again_is_another_process)
{
	struct fusee_target *t = BY_PID("p", 7, LABEL("a", "1"));

	t->pid_start_ticks = 100;
	put(ts, 1, t);
	CHECK_STR(text(ts, labels(ts, 7, 100, "")), "a=1");
	CHECK_STR(text(ts, labels(ts, 7, 0, "")), "a=1");
	CHECK_STR(text(ts, labels(ts, 7, 101, "")), "");
	CHECK(!last_known);
	put(ts, 1, t); /* said again: it is the same process's */
	CHECK_STR(text(ts, labels(ts, 7, 101, "")), "");
	t->pid_start_ticks = 200;
	put(ts, 1, t);
	CHECK_STR(text(ts, labels(ts, 7, 101, "")), "a=1");
}

TEST_OF_TARGETS(begin_and_commit)
{
	uint64_t g;

	CHECK(!targets_synced(ts, 1));
	targets_begin(ts, 1);
	put(ts, 1, BY_PID("a", 1, LABEL("l", "a")));
	put(ts, 1, BY_PID("b", 2, LABEL("l", "b")));
	CHECK_STR(text(ts, labels(ts, 1, 0, "")), "");
	CHECK_INT(targets_count(ts), 0);
	CHECK(!targets_synced(ts, 1));
	targets_commit(ts, 1);
	CHECK(targets_synced(ts, 1));
	CHECK_INT(targets_count(ts), 2);
	CHECK_STR(text(ts, labels(ts, 1, 0, "")), "l=a");
	put(ts, 2, BY_PID("a", 3, LABEL("l", "other source")));
	g = targets_generation(ts);

	/* the same again changes nothing */
	targets_begin(ts, 1);
	put(ts, 1, BY_PID("a", 1, LABEL("l", "a")));
	put(ts, 1, BY_PID("b", 2, LABEL("l", "b")));
	targets_commit(ts, 1);
	put(ts, 1, BY_PID("b", 2, LABEL("l", "b")));
	CHECK(targets_generation(ts) == g);

	/* one changes twice and moves, one is not put again, one is new */
	targets_begin(ts, 1);
	put(ts, 1, BY_PID("b", 2, LABEL("l", "b2")));
	put(ts, 1, BY_PID("b", 4, LABEL("l", "b3")));
	put(ts, 1, BY_PID("c", 5, LABEL("l", "c")));
	CHECK_STR(text(ts, labels(ts, 2, 0, "")), "l=b");
	CHECK(targets_generation(ts) == g);
	targets_commit(ts, 1);
	CHECK(targets_generation(ts) > g);
	CHECK_STR(text(ts, labels(ts, 1, 0, "")), "");
	CHECK_STR(text(ts, labels(ts, 2, 0, "")), "");
	CHECK_STR(text(ts, labels(ts, 4, 0, "")), "l=b3");
	CHECK_STR(text(ts, labels(ts, 5, 0, "")), "l=c");
	CHECK_STR(text(ts, labels(ts, 3, 0, "")), "l=other source");
}

TEST_OF_TARGETS(changes_between_begin_and_commit)
{
	uint64_t g;

	put(ts, 1, BY_PID("b", 4, LABEL("l", "b3")));
	put(ts, 1, BY_PID("c", 5, LABEL("l", "c")));
	put(ts, 2, BY_PID("a", 3, LABEL("l", "other source")));
	/* changed and changed back, deleted and put again, put and deleted */
	g = targets_generation(ts);
	targets_begin(ts, 1);
	put(ts, 1, BY_PID("b", 4, LABEL("l", "else")));
	put(ts, 1, BY_PID("b", 4, LABEL("l", "b3")));
	CHECK_INT(targets_del(ts, 1, str("c")), 0);
	put(ts, 1, BY_PID("c", 5, LABEL("l", "c")));
	put(ts, 1, BY_PID("d", 6, LABEL("l", "d")));
	CHECK_INT(targets_del(ts, 1, str("d")), 0);
	CHECK_INT(targets_del(ts, 1, str("d")), -ENOENT);
	targets_commit(ts, 1);
	CHECK(targets_generation(ts) == g);
	CHECK_STR(text(ts, labels(ts, 4, 0, "")), "l=b3");
	CHECK_STR(text(ts, labels(ts, 5, 0, "")), "l=c");

	/* a begin without its commit is undone by the next; without begin a commit keeps all */
	targets_begin(ts, 1);
	put(ts, 1, BY_PID("e", 8, LABEL("l", "e")));
	targets_begin(ts, 1);
	put(ts, 1, BY_PID("c", 5, LABEL("l", "c")));
	targets_commit(ts, 1);
	targets_commit(ts, 1);
	CHECK_INT(targets_count(ts), 2);
	CHECK_INT(targets_count_of(ts, 1), 1);
	CHECK_INT(targets_count_of(ts, 9), 0);
	CHECK_STR(text(ts, labels(ts, 8, 0, "")), "");
	CHECK_STR(text(ts, labels(ts, 5, 0, "")), "l=c");

	targets_forget(ts, 1);
	targets_forget(ts, 1);
	CHECK(!targets_synced(ts, 1));
	CHECK_INT(targets_count(ts), 1);
	CHECK_STR(text(ts, labels(ts, 5, 0, "")), "");
}

static int nchanged;

static void note_pid(void *arg, pid_t pid)
{
	CHECK_INT(pid, *(pid_t *)arg);
	nchanged++;
}

static void changes(struct targets *ts, int n, pid_t pid)
{
	nchanged = 0;
	CHECK(!targets_changes(ts, note_pid, &pid));
	CHECK_INT(nchanged, n);
}

TEST_OF_TARGETS(what_changed)
{
	changes(ts, 0, 0);
	put(ts, 1, BY_PID("a", 7, LABEL("l", "a")));
	changes(ts, 1, 7);
	put(ts, 1, BY_PID("a", 7, LABEL("l", "a")));
	changes(ts, 0, 0);
	put(ts, 1, BY_PID("a", 7, LABEL("l", "b")));
	changes(ts, 1, 7);
	targets_begin(ts, 1);
	put(ts, 1, BY_PID("a", 7, LABEL("l", "c")));
	changes(ts, 0, 0);
	targets_commit(ts, 1);
	changes(ts, 1, 7);
	put(ts, 1, BY_PID("a", 7, LABEL("l", "d")));
	targets_forget_change(ts, 8);
	changes(ts, 1, 7);
	put(ts, 1, BY_PID("b", 8, LABEL("l", "d")));
	put(ts, 1, BY_PID("a", 7, LABEL("l", "e")));
	targets_forget_change(ts, 7);
	changes(ts, 1, 8);
	put(ts, 1, BY_CGROUP("c", "/a", LABEL("l", "c")));
	CHECK(targets_changes(ts, note_pid, NULL));
	changes(ts, 0, 0);
	put(ts, 1, BY_PID("b", 8, LABEL("l", "b")));
	put(ts, 1, BY_LABEL("d", "l", "b", LABEL("m", "c")));
	CHECK(targets_changes(ts, note_pid, NULL));
	put(ts, 1, BY_PID("b", 8, LABEL("l", "c")));
	CHECK(!targets_changes(ts, NULL, NULL));
	changes(ts, 0, 0);
	for (uint32_t i = 1; i < 2000; i++)
		put(ts, 1, BY_PID("many", i, LABEL("l", "c")));
	CHECK(targets_changes(ts, note_pid, NULL));
}

static void refused(const struct fusee_target *t, const char *what)
{
	struct targets *ts = new_targets();
	const char *why = NULL;

	CHECK_INT(targets_put(ts, 1, t, &why), -EINVAL);
	CHECK(why && strstr(why, what));
	CHECK_INT(targets_count(ts), 0);
	targets_free(ts);
}

TEST(wrong_targets)
{
	static char long_key[4098];
	struct fusee_target *t;

	memset(long_key, 'k', sizeof(long_key) - 1);
	refused(BY_PID("", 1, LABEL("a", "b")), "key");
	refused(BY_PID(long_key, 1, LABEL("a", "b")), "key");
	refused(BY_PID("p", 0, LABEL("a", "b")), "pid");
	refused(BY_CGROUP("p", "", LABEL("a", "b")), "control group");
	refused(BY_CGROUP("p", "a/b", LABEL("a", "b")), "control group");
	refused(BY_LABEL("p", "", "x", LABEL("a", "b")), "by label");
	refused(BY_LABEL("p", "n", "", LABEL("a", "b")), "by label");
	refused(BY_PID("p", 1, LABEL("1a", "b")), "name");
	refused(BY_PID("p", 1, LABEL("a-b", "b")), "name");
	refused(BY_PID("p", 1, LABEL("", "b")), "name");
	refused(BY_PID("p", 1, {.key = str("n"), .num = 3}), "number");
	t = BY_PID("p", 1, LABEL("a", "b"));
	t->match = 9;
	refused(t, "matches by");
	t = BY_PID("p", 1, LABEL("a", "b"));
	t->labels.stride = 1;
	refused(t, "stride");
	t = BY_PID("p", 1, LABEL("a", "b"));
	t->size = 0;
	refused(t, "key");
}

TEST_OF_TARGETS(values_are_truncated_between_characters)
{
	char long_value[2000];
	uint32_t id;

	for (size_t i = 0; i < sizeof(long_value) - 2; i += 3)
		memcpy(long_value + i, "\xe2\x82\xac", 3); /* 85 x 3 = 255 */
	long_value[sizeof(long_value) - 2] = '\0';
	put(ts, 1, BY_PID("p", 1, LABEL("a", long_value), LABEL("b", "x\xffy"), LABEL("c", "")));
	id = labels(ts, 1, 0, long_value);
	CHECK_INT(strlen(value(ts, id, "a")), 255);
	CHECK(utf8_valid(value(ts, id, "a"), 255));
	CHECK_INT(strlen(value(ts, id, "cgroup")), 255);
	CHECK_STR(value(ts, id, "b"), "x\xef\xbf\xbdy");
	CHECK_STR(value(ts, id, "c"), "(none)");
	/* a join by the untruncated value matches */
	put(ts, 1, BY_LABEL("j", "a", long_value, LABEL("joined", "yes")));
	CHECK_STR(value(ts, labels(ts, 1, 0, ""), "joined"), "yes");
}

TEST_OF_TARGETS(at_most_32_labels)
{
	struct fusee_label many[40];
	char names[40][8];
	struct fusee_target t = {.size = sizeof(t),
				 .match = FUSEE_MATCH_CGROUP,
				 .key = str("k"),
				 .cgroup = str("/a"),
				 .labels = {many, 40, sizeof(many[0])}};
	uint32_t id, n;

	for (int i = 0; i < 40; i++) {
		snprintf(names[i], sizeof(names[i]), "l%02d", i);
		many[i] = LABEL(names[i], "v");
	}
	metrics_reset();
	put(ts, 1, &t);
	CHECK_INT(metric_get("target_labels_dropped_total", NULL), 8);
	put(ts, 1, BY_PID("p", 7, LABEL("near", "1"), LABEL("process", "mine")));
	id = labels(ts, 7, 0, "/a/b");
	CHECK(targets_set(ts, id, &n));
	CHECK_INT(n, 32);
	CHECK_STR(value(ts, id, "near"), "1");
	CHECK_STR(value(ts, id, "process"), "mine");
	CHECK_STR(value(ts, id, "cgroup"), "/a/b");
	CHECK_STR(value(ts, id, "l27"), "v");
	CHECK_STR(value(ts, id, "l28"), "(none)");
	CHECK_INT(metric_get("target_labels_dropped_total", NULL), 8 + 4);
}

static bool is(void *arg, uint32_t id)
{
	return id == *(uint32_t *)arg;
}

TEST_OF_TARGETS(sweep)
{
	uint32_t kept = labels(ts, 1, 0, "/kept"), swept = labels(ts, 1, 0, "/swept"), n;

	for (int i = 0; i < 1000; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/%d", i);
		labels(ts, 1, 0, path);
	}
	targets_sweep(ts, is, &kept);
	CHECK(!targets_set(ts, swept, &n));
	CHECK(targets_set(ts, kept, &n));
	CHECK_INT(labels(ts, 1, 0, "/kept"), kept);
	CHECK(labels(ts, 1, 0, "/swept") > swept + 1000);
}

/* A process of another user, of whom it counts; 0: this test may start none. */
static pid_t start_as(uid_t uid)
{
	pid_t pid = getuid() ? 0 : fork();

	if (pid || getuid())
		return pid;
	if (setresuid(uid, uid, uid))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* which a change of the user forgets */
	pause();
	_exit(0);
}

/* Waits until the kernel says so. */
static void wait_for_user(pid_t pid, uid_t uid)
{
	struct procfs_status status;

	do
		CHECK_INT(procfs_status(pid, &status), 0);
	while (status.uid != uid);
}

/* Puts targets of the process with 32 labels of 256 bytes until they are refused. Their number. */
static uint32_t fill_with_labels(struct targets *ts, pid_t pid)
{
	struct fusee_label l[32];
	char names[32][8], value[257], key[32];
	uint32_t n = 0;
	int r;

	memset(value, 'x', sizeof(value) - 1);
	value[256] = '\0';
	for (int i = 0; i < 32; i++) {
		snprintf(names[i], sizeof(names[i]), "l%d", i);
		l[i] = LABEL(names[i], value);
	}
	do {
		struct fusee_target t = {.size = sizeof(t),
					 .match = FUSEE_MATCH_PID,
					 .pid = (uint32_t)pid,
					 .labels = {l, 32, sizeof(l[0])}};
		const char *why;

		snprintf(key, sizeof(key), "%d/%u", (int)pid, n);
		t.key = str(key);
		r = targets_put(ts, 7, &t, &why);
	} while (!r && ++n < 5000);
	CHECK_INT(r, -EDQUOT);
	return n;
}

static bool none(void *arg, uint32_t id)
{
	return false;
}

/* A user's processes with long labels, ever more of them. */
TEST(label_texts_of_a_user_are_bounded)
{
	struct targets *ts = new_targets();
	pid_t hostile = start_as(61000), other = start_as(61001);
	uint32_t n, before, kept;

	if (!hostile)
		SKIP("needs root, to be several users");
	wait_for_user(hostile, 61000);
	wait_for_user(other, 61001);
	n = fill_with_labels(ts, hostile);
	CHECK(n > 1000 && n < 2100); /* a third of 48 MiB */
	CHECK(targets_text_bytes(ts) > 15 << 20 && targets_text_bytes(ts) < 17 << 20);
	CHECK(metric_get("label_texts_refused_total", METRIC_LABELS("what", "target")) == 1);
	before = labels(ts, hostile, 0, "/hostile");
	CHECK_STR(value_of(ts, before, "process"), TARGET_REFUSED);
	CHECK_STR(value_of(ts, before, "cgroup"), "");
	CHECK(*value_of(ts, before, "host"));
	CHECK_STR(value_of(ts, before, "l0"), "none");
	CHECK(metric_get("label_texts_refused_total", METRIC_LABELS("what", "process")) == 1);
	/* others have theirs, whatever the first does */
	put(ts, 7, BY_PID("other", (uint32_t)other, LABEL("a", "1")));
	kept = labels(ts, other, 0, "/other");
	CHECK_STR(value_of(ts, kept, "process"), "prog");
	CHECK_STR(value_of(ts, kept, "a"), "1");
	CHECK(fill_with_labels(ts, other) > 1000);
	put(ts, 7, BY_CGROUP("group", "/other", LABEL("a", "1")));
	/* and when these are removed, it is reported, and all is as before */
	targets_changes(ts, NULL, NULL);
	targets_forget(ts, 7);
	targets_changes(ts, NULL, NULL);
	targets_sweep(ts, none, NULL);
	CHECK_INT(targets_text_bytes(ts), 0);
	CHECK(targets_changes(ts, NULL, NULL));
	CHECK_STR(value_of(ts, labels(ts, hostile, 0, "/hostile"), "cgroup"), "/hostile");
	targets_free(ts);
	kill(hostile, SIGKILL);
	kill(other, SIGKILL);
}

static void count(void *arg, uint32_t source, const struct fusee_target *t)
{
	CHECK_INT(source, 4);
	CHECK(t->key.len && t->labels.n == 1);
	++*(uint32_t *)arg;
}

/* Its bound, and that neither a full table nor long lists of one match make it slow. */
TEST_OF_TARGETS(two_hundred_thousand)
{
	char key[32], path[64];
	uint32_t seen = 0;
	const char *why;

	targets_begin(ts, 4);
	for (uint32_t i = 0; i < 200000; i++) {
		snprintf(key, sizeof(key), "k%u", i);
		snprintf(path, sizeof(path), "/a/b/%u", i);
		put(ts, 4,
		    i % 2 ? BY_CGROUP(key, path, LABEL("n", key))
			  : BY_PID(key, 5, LABEL("n", key)));
	}
	CHECK_INT(targets_put(ts, 4, BY_PID("more", 5, LABEL("n", "1")), &why), -ENOSPC);
	CHECK_INT(targets_put(ts, 5, BY_PID("more", 5, LABEL("n", "1")), &why), -ENOSPC);
	targets_commit(ts, 4);
	CHECK_INT(targets_count(ts), 200000);
	targets_each(ts, count, &seen);
	CHECK_INT(seen, 200000);
	for (uint32_t i = 0; i < 20000; i++) {
		snprintf(path, sizeof(path), "/a/b/%u/c/d", i);
		labels(ts, 6, 0, path);
		CHECK_INT(last_known, i % 2);
	}
	put(ts, 4, BY_PID("k0", 5, LABEL("n", "again")));
	CHECK_INT(targets_put(ts, 4, BY_PID("more", 5, LABEL("n", "1")), &why), -ENOSPC);
	targets_begin(ts, 4);
	targets_commit(ts, 4);
	CHECK_INT(targets_count(ts), 0);
	put(ts, 4, BY_PID("more", 5, LABEL("n", "1")));
}

/* ---- service_name ---- */

#define NAMES(...)                                                        \
	((struct fusee_table){(struct fusee_str[]){__VA_ARGS__},          \
			      sizeof((struct fusee_str[]){__VA_ARGS__}) / \
				      sizeof(struct fusee_str),           \
			      sizeof(struct fusee_str)})

#define ORDER(...) ((struct target_labels){.service_name = NAMES(__VA_ARGS__)})

TEST_OF_TARGETS(service_name_is_the_first_label_of_the_order)
{
	struct target_labels order = ORDER(str("service_name"), str("workload"), str("unit"));

	CHECK_STR(value(ts, labels(ts, 7, 0, "/a"), "service_name"), "(none)");
	targets_set_labels(ts, &order);
	CHECK_STR(value(ts, labels(ts, 7, 0, "/a"), "service_name"), "prog");
	put(ts, 1, BY_CGROUP("a", "/a", LABEL("unit", "a.service"), LABEL("key", "v")));
	CHECK_STR(value(ts, labels(ts, 7, 0, "/a"), "service_name"), "a.service");
	put(ts, 2, BY_LABEL("v", "key", "v", LABEL("workload", "shop")));
	CHECK_STR(value(ts, labels(ts, 7, 0, "/a"), "service_name"), "shop");
	put(ts, 3, BY_PID("p", 7, LABEL("service_name", "otel")));
	CHECK_STR(value(ts, labels(ts, 7, 0, "/a"), "service_name"), "otel");
	CHECK_STR(value(ts, labels(ts, 8, 0, "/a"), "service_name"), "shop");
	order = ORDER(str("unit"), str("service_name"));
	CHECK_STR(value(ts, labels(ts, 7, 0, "/a"), "service_name"), "a.service");
	CHECK_STR(value(ts, labels(ts, 7, 0, "/b"), "service_name"), "otel");
	CHECK_STR(value(ts,
			targets_labels(ts,
				       &(struct target_process){.pid = 9, .cgroup = "", .name = ""},
				       &last_known),
			"service_name"),
		  "unknown_service");
}

TEST_OF_TARGETS(service_name_has_a_place_in_a_full_set)
{
	struct target_labels order = ORDER(str("l7"));
	struct fusee_label many[LABELSET_MAX];
	struct fusee_target *t = BY_PID("p", 7, LABEL("x", "y"));
	char names[LABELSET_MAX][8];
	uint32_t n;

	for (uint32_t i = 0; i < LABELSET_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "l%u", i);
		many[i] = LABEL(names[i], names[i]);
	}
	t->labels = (struct fusee_table){many, LABELSET_MAX, sizeof(many[0])};
	targets_set_labels(ts, &order);
	put(ts, 1, t);
	CHECK_STR(value(ts, labels(ts, 7, 0, "/a"), "service_name"), "l7");
	targets_set(ts, labels(ts, 7, 0, "/a"), &n);
	CHECK_INT(n, LABELSET_MAX);
}

static void explained(void *arg, const struct fusee_label *l, const struct target_origin *o)
{
	char *out = arg;

	snprintf(out + strlen(out), 4096 - strlen(out), "%.*s=%.*s %d %.*s %.*s\n", (int)l->key.len,
		 l->key.p, (int)l->str.len, l->str.p, o->source == TARGET_OWN ? -1 : (int)o->source,
		 (int)o->by.len, o->by.p, (int)o->from.len, o->from.p);
}

TEST_OF_TARGETS(labels_on_request)
{
	struct target_process p = {.pid = 7, .cgroup = "/a", .name = "prog"};
	struct target_labels selected = ORDER(str("compiler"));
	char out[4096] = "";
	struct utsname u;

	CHECK_INT(uname(&u), 0);
	p.executable = "/usr/bin/prog";
	p.build_id = "0a1b";
	p.compiler = "GCC: 12";
	targets_set_labels(ts, &selected);
	CHECK_STR(value(ts, targets_labels(ts, &p, &last_known), "kernel"), "(none)");
	CHECK_STR(value(ts, targets_labels(ts, &p, &last_known), "build_id"), "(none)");
	selected.kernel = selected.executable = selected.build_id = selected.compiler = true;
	CHECK_STR(value(ts, targets_labels(ts, &p, &last_known), "kernel"), u.release);
	CHECK_STR(value(ts, targets_labels(ts, &p, &last_known), "executable"), "/usr/bin/prog");
	CHECK_STR(value(ts, targets_labels(ts, &p, &last_known), "build_id"), "0a1b");
	CHECK_STR(value(ts, targets_labels(ts, &p, &last_known), "service_name"), "GCC: 12");
	CHECK(!last_known); /* no discovery said anything */
	CHECK_INT(targets_explain(ts, &p, explained, out), 0);
	CHECK(strstr(out, "compiler=GCC: 12 -1 its program's file \n"));
	CHECK(strstr(out, "executable=/usr/bin/prog -1  \n"));
	/* before what joins a label, behind what a discovery says of the pid or the group */
	put(ts, 1, BY_LABEL("j", "process", "prog", LABEL("build_id", "joined")));
	CHECK_STR(value(ts, targets_labels(ts, &p, &last_known), "build_id"), "0a1b");
	put(ts, 2, BY_CGROUP("a", "/a", LABEL("build_id", "group's")));
	CHECK_STR(value(ts, targets_labels(ts, &p, &last_known), "build_id"), "group's");
	p.build_id = "";
	p.compiler = NULL;
	CHECK_STR(value(ts, targets_labels(ts, &p, &last_known), "compiler"), "(none)");
	CHECK_STR(value(ts, targets_labels(ts, &p, &last_known), "service_name"), "prog");
}

TEST_OF_TARGETS(each_label_has_an_origin)
{
	struct target_labels order = ORDER(str("service_name"), str("unit"));
	const struct target_process p = {.pid = 7, .cgroup = "/a/b", .name = "prog"};
	char out[4096] = "";

	targets_set_labels(ts, &order);
	put(ts, 1, BY_CGROUP("a", "/a", LABEL("unit", "a.service"), LABEL("key", "v")));
	put(ts, 2, BY_LABEL("v", "key", "v", LABEL("tier", "db")));
	put(ts, 3, BY_PID("p", 7, LABEL("user", "root")));
	CHECK_INT(targets_explain(ts, &p, explained, out), 0);
	CHECK(strstr(out, "user=root 3  \n"));
	CHECK(strstr(out, "unit=a.service 1 /a \n"));
	CHECK(strstr(out, "tier=db 2 key \n"));
	CHECK(strstr(out, "process=prog -1  \n"));
	CHECK(strstr(out, "service_name=a.service -1  unit\n"));
	put(ts, 4, BY_PID("q", 7, LABEL("service_name", "said")));
	*out = '\0';
	CHECK_INT(targets_explain(ts, &p, explained, out), 0);
	CHECK(strstr(out, "service_name=said 4  \n"));
}
