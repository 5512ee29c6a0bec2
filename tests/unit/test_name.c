/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/selection
/* core/cli/name, process_labels and selection: names of units, pods and containers, and what they
 * mean. */
#include "lib/sleeper.h"

#include <sysexits.h>

#include "base/str.h"
#include "selection/internal/name.h"
#include "record/internal/process_labels.h"
#include "selection/selection.h"
#include "process/cgroup.h"
#include "target/labelset.h"

#define UID "0b7b1c6e-9f6c-4a3e-8f0e-5d6a7b8c9d0e"
#define ID "4f5e6d7c8b9a0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796"
#define POD "/kubepods/burstable/pod" UID

static struct targets *targets;

static struct fusee_label pair(const char *key, const char *value)
{
	return (struct fusee_label){.key = fusee_text(key), .str = fusee_text(value)};
}

static void put(struct fusee_target t, const char *key, const struct fusee_label *labels,
		uint32_t n)
{
	const char *why = NULL;

	t.size = sizeof(t);
	t.key = fusee_text(key);
	t.labels = (struct fusee_table){labels, n, sizeof(*labels)};
	CHECK_INT(targets_put(targets, 1, &t, &why), 0);
}

static void put_cgroup(const char *path, struct fusee_label a, struct fusee_label b)
{
	const struct fusee_label labels[] = {a, b};

	put((struct fusee_target){.match = FUSEE_MATCH_CGROUP, .cgroup = fusee_text(path)}, path,
	    labels, 2);
}

static void put_pod(const char *key, const char *by, const char *value, const char *space,
		    const char *pod, const char *container)
{
	const struct fusee_label labels[] = {pair("namespace", space), pair("pod", pod),
					     pair("container", container)};

	put((struct fusee_target){.match = FUSEE_MATCH_LABEL, .match_label = pair(by, value)}, key,
	    labels, 3);
}

static void begin(void)
{
	CHECK_INT(targets_new(&targets), 0);
	put_cgroup("/system.slice/nginx.service", pair("unit", "nginx.service"),
		   pair("slice", "system.slice"));
	put_cgroup("/system.slice/system-getty.slice/getty@tty1.service",
		   pair("unit", "getty@tty1.service"), pair("slice", "system-getty.slice"));
	put_cgroup("/user.slice/user-7.slice/user@7.service", pair("unit", "user@7.service"),
		   pair("slice", "user-7.slice"));
	put_cgroup("/user.slice/user-7.slice/user@7.service/app.slice/u.service",
		   pair("unit", "user@7.service"), pair("user_unit", "u.service"));
	put_cgroup(POD, pair("pod_uid", UID), pair("cgroup", POD));
	put_cgroup(POD "/" ID, pair("pod_uid", UID), pair("container_id", ID));
	put_pod("p", "pod_uid", UID, "shop", "web-1", "");
	put_pod("c", "container_id", ID, "shop", "web-1", "main");
}

static void finish(void)
{
	targets_free(targets);
}

/* The group's path; "": the name means another. */
static const char *group(enum name_kind kind, const char *typed, bool user, const char *path)
{
	static char out[CGROUP_MAX];
	struct name n;

	CHECK_INT(name_init(&n, kind, typed), 0);
	n.user = user;
	snprintf(out, sizeof(out), "%.*s", (int)name_group(&n, targets, path), path);
	return out;
}

#define UNIT(typed, path) group(NAME_UNIT, typed, false, path)

#define TEST_OF_TARGETS(id) TEST_BETWEEN(id, begin(), finish())

TEST_OF_TARGETS(a_unit_is_its_control_group)
{
	const char *getty = "/system.slice/system-getty.slice/getty@tty1.service";

	CHECK_STR(UNIT("nginx", "/system.slice/nginx.service"), "/system.slice/nginx.service");
	CHECK_STR(UNIT("nginx.service", "/system.slice/nginx.service/worker"),
		  "/system.slice/nginx.service");
	CHECK_STR(UNIT("nginx.scope", "/system.slice/nginx.service"), "");
	CHECK_STR(UNIT("ngin", "/system.slice/nginx.service"), "");
	CHECK_STR(UNIT("nginx", "/system.slice/nginx.service2"), "");
	CHECK_STR(UNIT("nginx", "/"), "");
	CHECK_STR(UNIT("nginx", ""), "");
	CHECK_STR(UNIT("getty@tty1", getty), getty);
	CHECK_STR(UNIT("getty@.service", getty), getty);
	CHECK_STR(UNIT("getty@tty2", getty), "");
	CHECK_STR(UNIT("ge@.service", getty), "");
}

TEST_OF_TARGETS(units_of_users_and_slices)
{
	const char *path = "/user.slice/user-7.slice/user@7.service/app.slice/u.service/x";

	CHECK_STR(UNIT("u", path), "");
	CHECK_STR(group(NAME_UNIT, "u", true, path),
		  "/user.slice/user-7.slice/user@7.service/app.slice/u.service");
	CHECK_STR(UNIT("user@7", path), "/user.slice/user-7.slice/user@7.service");
	CHECK_STR(UNIT("user.slice", path), "/user.slice");
	CHECK_STR(UNIT("user-7.slice", path), "/user.slice/user-7.slice");
	/* of the user's manager */
	CHECK_STR(UNIT("app.slice", path), "");
	CHECK_STR(UNIT("user.slice", "/x.scope/user.slice/y.service"), "");
}

TEST_OF_TARGETS(pods_and_containers)
{
	const char *path = POD "/" ID;
	struct name pods[2], c;

	CHECK_STR(group(NAME_POD, "shop/web-1", false, path), POD);
	CHECK_STR(group(NAME_POD, "web-1", false, path), POD);
	CHECK_STR(group(NAME_POD, UID, false, path), POD);
	CHECK_STR(group(NAME_POD, "other/web-1", false, path), "");
	CHECK_STR(group(NAME_POD, "sho/web-1", false, path), "");
	CHECK_STR(group(NAME_POD, "web", false, path), "");
	/* a container that begins: its pod is known before it is */
	CHECK_STR(group(NAME_POD, "shop/web-1", false, POD "/new"), POD);
	CHECK_STR(group(NAME_CONTAINER, "main", false, POD "/new"), "");
	CHECK_STR(group(NAME_CONTAINER, "main", false, path), path);
	CHECK_STR(group(NAME_CONTAINER, "sidecar", false, path), "");
	CHECK_INT(name_init(&c, NAME_CONTAINER, "main"), 0);
	CHECK_INT(name_init(&pods[0], NAME_POD, "shop/other"), 0);
	CHECK_INT(name_init(&pods[1], NAME_POD, "web-1"), 0);
	c.pods = pods;
	c.npods = 1;
	CHECK_INT(name_group(&c, targets, path), 0);
	c.npods = 2;
	CHECK_INT(name_group(&c, targets, path), strlen(path));
}

TEST(what_is_no_name)
{
	char text[NAME_TEXT + 10];
	struct name n;

	CHECK_INT(name_init(&n, NAME_POD, ""), -EINVAL);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	CHECK_INT(name_init(&n, NAME_UNIT, text), -EINVAL);
	CHECK_INT(name_init(&n, NAME_UNIT, "a.b"), 0);
	CHECK_STR(n.text, "a.b.service");
	CHECK_INT(name_init(&n, NAME_UNIT, ".service"), 0);
	CHECK_STR(n.text, ".service.service");
}

static struct name_near near;

static void offer_all(const struct name *n, const char *const *all)
{
	near = (struct name_near){.name = n};
	for (; *all; all++)
		name_offer(&near, *all);
}

TEST(near_names)
{
	static const char *const units[] = {"ngin.service",  "nginx-debug.service", "ssh.service",
					    "nginy.service", "my-nginx-2.service",  NULL};
	static const char *const pods[] = {"shop/db-0", "shop/web-7d4b9c-x1", "test/wev", NULL};
	struct name n;

	CHECK_INT(name_init(&n, NAME_UNIT, "nginx"), 0);
	offer_all(&n, units);
	CHECK_INT(near.offered, 5);
	CHECK_INT(near.n, 3);
	CHECK_STR(near.near[0], "ngin.service");
	CHECK_STR(near.near[1], "nginy.service");
	CHECK_STR(near.near[2], "nginx-debug.service");
	CHECK(!near.equal);
	CHECK_INT(name_init(&n, NAME_POD, "web"), 0);
	offer_all(&n, pods);
	CHECK_INT(near.n, 2);
	CHECK_STR(near.near[0], "test/wev");
	CHECK_STR(near.near[1], "shop/web-7d4b9c-x1");
	CHECK_INT(name_init(&n, NAME_POD, "prod/web"), 0);
	offer_all(&n, pods);
	CHECK_INT(near.n, 1);
	CHECK_INT(name_init(&n, NAME_UNIT, "ssh"), 0);
	offer_all(&n, units);
	CHECK(near.equal);
}

/* ---- labels of processes ---- */

static const char *value(const struct process_labels *l, uint32_t set, const char *key)
{
	uint32_t n = 0;
	const struct fusee_label *all = process_labels_set(l, set, &n);

	for (uint32_t i = 0; i < n; i++)
		if (str_equal(all[i].key, fusee_text(key)))
			return all[i].str.p;
	return "";
}

TEST(labels_of_processes_that_ended)
{
	char path[CGROUP_MAX];
	struct process_labels *l;
	pid_t child = sleeper(), self = getpid();
	uint32_t set;

	CHECK_INT(cgroup_of("", self, path, NULL), 0);
	begin();
	put_cgroup(path, pair("unit", "mine.service"), pair("type", "service"));
	CHECK_INT(process_labels_new(&l, targets, &self, 1), 0);
	set = process_labels_of(l, child, 1);
	CHECK_STR(value(l, set, "unit"), "mine.service");
	kill(child, SIGKILL);
	CHECK_INT(waitpid(child, NULL, 0), child);
	/* its labels stay */
	CHECK_INT(process_labels_of(l, child, 60000000000u), set);
	process_labels_free(l);
	CHECK_INT(process_labels_new(&l, targets, &self, 1), 0);
	/* it was never seen: it has the labels that all processes had */
	set = process_labels_of(l, child, 1);
	CHECK_STR(value(l, set, "unit"), "mine.service");
	CHECK_STR(value(l, set, "type"), "service");
	process_labels_free(l);
	CHECK_INT(process_labels_new(&l, targets, NULL, 0), 0);
	CHECK_STR(value(l, process_labels_of(l, child, 1), "unit"), "");
	process_labels_free(l);
	finish();
}

/* ---- the selection ---- */

TEST(what_a_selection_takes)
{
	static struct selection o;

	CHECK_INT(selection_kinds(&o), 0);
	CHECK_INT(selection_add_container(&o, "0123456789abcdef0123456789abcdef"), -ENOENT);
	CHECK_INT(selection_add_container(&o, "012"), -ENOENT);
	for (uint32_t i = 0; i < SELECTION_MAX_NAMES; i++)
		CHECK_INT(selection_add_name(&o, NAME_UNIT, "x"), 0);
	CHECK_INT(selection_add_name(&o, NAME_UNIT, "x"), EX_USAGE);
	CHECK_INT(selection_kinds(&o), 1);
	for (uint32_t i = 0; i < SELECTION_MAX_DISCOVER; i++)
		CHECK_INT(selection_add_discover(&o, "x"), 0);
	CHECK_INT(selection_add_discover(&o, "x"), EX_USAGE);
	o.command = (char *const[]){"x", NULL};
	CHECK_INT(selection_kinds(&o), 2);
	selection_fini(&o);
}
