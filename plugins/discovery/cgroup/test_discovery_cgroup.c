/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/discovery/cgroup
#include "test.h"

#include "container.h"
#include "lib/fakehost.h"
#include "lib/begun.h"
#include "lib/cgroup_table.h"
#include "lib/discovery.h"
#include "process/internal/cgroup.h"

extern const struct fusee_plugin fusee_plugin;

/* Two ids, as runtimes make them. */
#define A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define POD "pod12345678-1234-1234-1234-123456789abc"
#define SLICE "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12345678_1234.slice"

static const struct form {
	const char *what, *path, *runtime, *id;
} forms[] = {
	{"Docker, cgroupfs", "/docker/" A, "docker", A},
	{"Docker, systemd", "/system.slice/docker-" A ".scope", "docker", A},
	{"Docker, systemd, below it", "/system.slice/docker-" A ".scope/init", "docker", A},
	{"Docker, parent of the user's", "/mine/" A, "", A},
	{"Docker rootless",
	 "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" A ".scope", "docker",
	 A},
	{"Docker in Docker", "/docker/" A "/docker/" B, "docker", B},
	{"kind: containerd in Docker", "/docker/" A "/kubelet/kubepods/burstable/" POD "/" B, "",
	 B},
	{"buildkit", "/docker/buildkit/" A, "buildkit", A},
	{"GitHub's runner", "/actions_job/" A, "docker", A},
	{"Amazon ECS", "/ecs/0123456789abcdef0123456789abcdef/" A, "docker", A},
	{"containerd by CRI, systemd", SLICE "/cri-containerd-" A ".scope", "containerd", A},
	{"containerd by CRI, not expanded", "/kubepods-pod1234.slice:cri-containerd:" A,
	 "containerd", A},
	{"containerd by CRI, below system.slice",
	 "/system.slice/containerd.service/" SLICE ":cri-containerd:" A, "containerd", A},
	{"containerd, cgroupfs", "/k8s.io/" A, "containerd", A},
	{"Kubernetes, cgroupfs", "/kubepods/burstable/" POD "/" A, "", A},
	{"Kubernetes, guaranteed", "/kubepods/" POD "/" A, "", A},
	{"Kubernetes, Docker, systemd", SLICE "/docker-" A ".scope", "docker", A},
	{"nerdctl", "/system.slice/nerdctl-" A ".scope", "containerd", A},
	{"CRI-O, systemd", SLICE "/crio-" A ".scope", "cri-o", A},
	{"CRI-O, systemd, below it", SLICE "/crio-" A ".scope/container", "cri-o", A},
	{"CRI-O, its conmon", SLICE "/crio-conmon-" A ".scope", NULL, NULL},
	{"CRI-O, cgroupfs", "/kubepods/besteffort/" POD "/crio-" A, "cri-o", A},
	{"Podman, systemd", "/machine.slice/libpod-" A ".scope", "podman", A},
	{"Podman, its container group", "/machine.slice/libpod-" A ".scope/container", "podman", A},
	{"Podman, its conmon", "/machine.slice/libpod-conmon-" A ".scope", NULL, NULL},
	{"Podman, cgroupfs", "/libpod_parent/libpod-" A, "podman", A},
	{"Podman rootless",
	 "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A ".scope", "podman",
	 A},
	{"Podman, a pod", "/machine.slice/machine-libpod_pod_" A ".slice/libpod-" B ".scope",
	 "podman", B},
	{"Podman, payload", "/machine.slice/libpod-payload-" A, "podman", A},
	{"systemd-nspawn, service", "/machine.slice/systemd-nspawn@web.service", "systemd-nspawn",
	 "web"},
	{"systemd-nspawn, below it", "/machine.slice/systemd-nspawn@web.service/payload/init.scope",
	 "systemd-nspawn", "web"},
	{"systemd-nspawn, scope", "/machine.slice/machine-my\\x2dbox.scope", "systemd-nspawn",
	 "my-box"},
	{"libvirt", "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt", "libvirt-qemu",
	 "qemu-1-vm"},
	{"LXC", "/lxc.payload.web/system.slice", "lxc", "web"},
	{"LXC, older", "/lxc/web/init.scope", "lxc", "web"},
	{"another cgroup namespace", "/../../docker/" A, "docker", A},
	{"no container", "/system.slice/ssh.service", NULL, NULL},
	{"no container, root", "/", NULL, NULL},
	{"no container, user", "/user.slice/user-0.slice/session-3.scope", NULL, NULL},
	{"nearly an id", "/docker/" A "0", NULL, NULL},
	{"nearly BuildKit's", "/buildkit/r8wym59fjeuwv89y521xsiqz", NULL, NULL},
	{"nearly Fargate's", "/ecs/0123456789abcdef0123456789abcdef-", NULL, NULL},
	{"nearly garden's", "/garden/6f265890-5165-7fab-6b52-18d", NULL, NULL},
	{"nearly Mesos'", "/mesos/077d75a1-d7b6-4e55-8114x13f925fe4f49", NULL, NULL},
	{"an id of another's place", "/other/077d75a1-d7b6-4e55-8114-13f925fe4f49", NULL, NULL},
	{"capitals are no id",
	 "/docker/0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", NULL, NULL},
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

TEST(forms_of_paths)
{
	int wrong = 0;

	fprintf(stderr, "# %-38s %-15s %-15s id\n", "form", "expected", "found");
	for (size_t i = 0; i < FORMS; i++) {
		const struct form *f = &forms[i];
		struct container c = {.runtime = ""};
		bool is = container_of(f->path, &c);
		bool right = is == !!f->id &&
			     (!is || (!strcmp(c.id, f->id) && !strcmp(c.runtime, f->runtime)));

		fprintf(stderr, "# %-38s %-15s %-15s %.20s%s\n", f->what,
			f->id ? (*f->runtime ? f->runtime : "?") : "-",
			is ? (*c.runtime ? c.runtime : "?") : "-", is ? c.id : "-",
			right ? "" : "   WRONG");
		wrong += !right;
	}
	CHECK_INT(wrong, 0);
}

#define UID "0a1b2c3d-1111-2222-3333-444455556666"
#define UID_ "0a1b2c3d_1111_2222_3333_444455556666"
#define FILE_UID "0123456789abcdef0123456789abcdef"

TEST(pods_of_paths)
{
	static const struct {
		const char *path, *uid; /* NULL: it is in no pod */
	} pods[] = {
		{"/kubepods/burstable/pod" UID "/" A, UID},
		{"/kubepods/pod" UID, UID},
		{"/kubepods/besteffort/pod" FILE_UID "/crio-" A, FILE_UID},
		{"/kubepods.slice/kubepods-pod" UID_ ".slice/cri-containerd-" A ".scope", UID},
		{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
		 ".slice/crio-" A ".scope/container",
		 UID},
		{"/kubepods-besteffort-pod" UID_ ".slice:cri-containerd:" A, UID},
		{"/docker/" B
		 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
		 "kubelet-kubepods-burstable-pod" UID_ ".slice/cri-containerd-" A ".scope",
		 UID},
		{"/kubepods/burstable", NULL},
		{"/kubepods/burstable/pod" UID_, NULL},
		{"/kubepods/pod" UID "0", NULL},
		{"/kubepods.slice/kubepods-pod" UID ".slice", UID},
		{"/kubepods.slice/kubepods-pod0a1b2c3d_1111.slice", NULL},
		{"/kubepods.slice/-pod.slice", NULL},
		{"/kubepods/pod", NULL},
		{"/docker/" A, NULL},
		{"/pod" UID, NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < sizeof(pods) / sizeof(pods[0]); i++) {
		char uid[POD_UID] = "";
		bool found = container_pod_uid(pods[i].path, uid);

		fprintf(stderr, "# %s\n", pods[i].path);
		CHECK_INT(found, pods[i].uid != NULL);
		if (found)
			CHECK_STR(uid, pods[i].uid);
	}
}

/* What the label of a path says, against what the table has. */
static int wrong_label(const struct cgroup_row *r, const char *label, const char *found,
		       const char *expected)
{
	if (!strcmp(found, expected))
		return 0;
	fprintf(stderr, "# line %d, %s: found '%s', expected '%s'\n", r->line, label, found,
		expected);
	return 1;
}

TEST(paths_in_clusters)
{
	FILE *f = cgroup_table_open();
	int lines = 0, rows = 0, wrong = 0;
	struct cgroup_row r;

	while (cgroup_table_next(f, &lines, &r)) {
		struct container c = {.runtime = ""};
		char path[CGROUP_MAX], uid[POD_UID] = "";

		CHECK_INT(cgroup_parse(r.text, path, NULL), 0);
		if (!container_of(path, &c))
			c = (struct container){.runtime = ""};
		container_pod_uid(path, uid);
		wrong += wrong_label(&r, "container_id", c.id, r.container);
		wrong += wrong_label(&r, "container_runtime", c.runtime, r.runtime);
		wrong += wrong_label(&r, "pod_uid", uid, r.pod);
		rows++;
	}
	fclose(f);
	CHECK_INT(wrong, 0);
	CHECK(rows >= 70);
}

TEST(paths_that_mean_harm)
{
	char path[9000] = "";
	struct container c;

	memset(path, '/', sizeof(path) - 1);
	CHECK(!container_of(path, &c));
	memset(path, 'a', sizeof(path) - 1);
	path[0] = '/';
	CHECK(!container_of(path, &c));
	memcpy(path, "/lxc/", 5); /* a name longer than a label */
	CHECK(!container_of(path, &c));
	CHECK(!container_of("", &c));
	CHECK(!container_of("/machine.slice/machine-.scope", &c));
	srand(2);
	for (int i = 0; i < 50000; i++) {
		char *p;
		size_t len = (size_t)rand() % 100;

		p = malloc(len + 1);
		for (size_t k = 0; k < len; k++)
			p[k] = "/:-.\\x2dockerlibpodscope0123456789abcdef"[rand() % 39];
		p[len] = '\0';
		container_of(p, &c);
		free(p);
	}
}

/* ---- trees ---- */

static char top[64];

static void in_tree(const char *tree, const char *path, bool make)
{
	char full[1024], *p;

	snprintf(full, sizeof(full), "%s%s%s", top, tree, path);
	if (!make) {
		CHECK(!rmdir(full));
		return;
	}
	for (p = full + strlen(top); (p = strchr(p + 1, '/'));) {
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
	CHECK(!mkdir(full, 0755) || errno == EEXIST);
}

static int unlink_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	return remove(path);
}

/* A folder laid out like /sys/fs/cgroup: "v1", "v2" or "hybrid". -> the trees' names. */
static const char *const *layout(const char *kind)
{
	static const char *const v1[] = {"/systemd", "/pids", "/memory", NULL};
	static const char *const v2[] = {"", NULL};
	static const char *const hybrid[] = {"/unified", "/systemd", "/pids", NULL};
	const char *const *trees = !strcmp(kind, "v1") ? v1 : !strcmp(kind, "v2") ? v2 : hybrid;
	char path[128];
	FILE *f;

	strcpy(top, "/tmp/fusee-cgroups-XXXXXX");
	CHECK(mkdtemp(top));
	for (int i = 0; trees[i]; i++)
		if (*trees[i])
			in_tree(trees[i], "", true);
	snprintf(path, sizeof(path), "%s%s/cgroup.controllers", top, v2 == trees ? "" : "/unified");
	f = strcmp(kind, "v1") ? fopen(path, "w") : NULL;
	if (f)
		fclose(f);
	return trees;
}

static void all_removed(void)
{
	nftw(top, unlink_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Until all events are read. Those of a folder are there when the call that caused them is done. */
static void settle(struct fake *f)
{
	while (fake_round(f, 0) > 0)
		;
}

static struct fake *started(const char *option, const char *value)
{
	struct fake *f = begun(fake_new(&fusee_plugin, "root", top, option, value, NULL));

	CHECK_INT(fake_start(f), 0);
	CHECK_INT(f->begins, 1);
	CHECK_INT(f->commits, 1);
	return f;
}

/* Each form of path in each layout: there at the start, or made later; then removed. */
static void all_forms(const char *kind)
{
	const char *const *trees = layout(kind);
	struct fake *f;

	for (size_t i = 0; i < FORMS / 2; i++)
		if (!strstr(forms[i].path, ".."))
			in_tree(trees[trees[1] ? 1 : 0], forms[i].path, true);
	f = started(NULL, NULL);
	for (size_t i = FORMS / 2; i < FORMS; i++)
		if (!strstr(forms[i].path, "..") && strcmp(forms[i].path, "/"))
			in_tree(trees[i % 2 && trees[1] ? 1 : 0], forms[i].path, true);
	settle(f);
	for (size_t i = 0; i < FORMS; i++) {
		const struct form *form = &forms[i];
		struct fake_target *t;
		const char *id, *runtime;

		if (strstr(form->path, "//") || strstr(form->path, ".."))
			continue;
		t = fake_find(f, form->path);
		if (!t)
			fprintf(stderr, "# %s: no target %s\n", kind, form->path);
		CHECK(t);
		CHECK_INT(t->t.match, FUSEE_MATCH_CGROUP);
		CHECK(fake_is(t->t.cgroup, form->path));
		CHECK_STR(fake_label(t, "cgroup"), form->path);
		id = fake_label(t, "container_id");
		runtime = fake_label(t, "container_runtime");
		CHECK_STR(id ? id : "none", form->id ? form->id : "none");
		CHECK_STR(runtime ? runtime : "", form->runtime ? form->runtime : "");
	}
	all_removed();
	settle(f);
	CHECK_INT(f->ntargets, 0);
	fake_free(f);
}

TEST(forms_in_v1)
{
	all_forms("v1");
}

TEST(forms_in_v2)
{
	all_forms("v2");
}

TEST(forms_in_hybrid)
{
	all_forms("hybrid");
}

/* A path in two hierarchies is one target until both are removed. */
TEST(one_path_in_two_trees)
{
	struct fake *f;

	layout("hybrid");
	in_tree("/unified", "/a", true);
	f = started(NULL, NULL);
	in_tree("/systemd", "/a", true);
	settle(f);
	CHECK(fake_find(f, "/a"));
	CHECK_INT(f->puts, 2); /* / and /a */
	in_tree("/unified", "/a", false);
	settle(f);
	CHECK(fake_find(f, "/a"));
	in_tree("/systemd", "/a", false);
	settle(f);
	CHECK(!fake_find(f, "/a"));
	all_removed();
	fake_free(f);
}

TEST(only_some)
{
	struct fake *f;

	layout("v2");
	in_tree("", "/docker/" A, true);
	in_tree("", "/system.slice/a.service", true);
	f = started("containers", "true");
	CHECK_INT(f->ntargets, 1);
	CHECK(fake_find(f, "/docker/" A));
	fake_free(f);
	f = started("match", "*.service,/nothing");
	CHECK_INT(f->ntargets, 1);
	CHECK(fake_find(f, "/system.slice/a.service"));
	fake_free(f);
	f = started("max", "2");
	CHECK_INT(f->ntargets, 2);
	CHECK(fake_logged(f, "more than 2 control groups"));
	CHECK(fake_count(f, "ignored") >= 1);
	fake_free(f);
	all_removed();
}

/* Groups that come and go faster than they can be looked at; the queue overflows or not. */
TEST(a_storm)
{
	struct fake *f;
	char name[64];

	layout("v2");
	f = started(NULL, NULL);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 1000; i++) {
			snprintf(name, sizeof(name), "/g%d/below", i);
			in_tree("", name, true);
		}
		if (round < 2)
			for (int i = 0; i < 1000; i++) {
				snprintf(name, sizeof(name), "/g%d/below", i);
				in_tree("", name, false);
				snprintf(name, sizeof(name), "/g%d", i);
				in_tree("", name, false);
			}
		if (round)
			settle(f);
	}
	settle(f);
	CHECK_INT(f->ntargets, 2001);
	CHECK(fake_find(f, "/g999/below"));
	all_removed();
	settle(f);
	CHECK_INT(f->ntargets, 0);
	fake_free(f);
}

/* Deeper than a stack of calls could follow: the first 64 levels are seen. */
TEST(a_deep_tree)
{
	struct fake *f;
	char path[1000] = "";

	layout("v2");
	for (int i = 0; i < 490; i++)
		strcat(path, "/a");
	in_tree("", path, true);
	f = started(NULL, NULL);
	CHECK_INT(f->ntargets, 65);
	CHECK(fake_logged(f, "more than 64 levels deep"));
	CHECK(fake_count(f, "ignored") >= 1);
	all_removed();
	settle(f);
	CHECK_INT(f->ntargets, 0);
	fake_free(f);
}

TEST(a_hidden_name)
{
	struct fake *f;

	layout("v2");
	in_tree("", "/.hidden", true);
	in_tree("", "/\xff\xfe: %s", true);
	f = started(NULL, NULL);
	CHECK(fake_find(f, "/.hidden"));
	CHECK(fake_find(f, "/\xff\xfe: %s"));
	all_removed();
	fake_free(f);
}

/* A group made again at once is another directory of the same path. */
TEST(made_again)
{
	struct fake *f;

	layout("v2");
	in_tree("", "/a/b", true);
	f = started(NULL, NULL);
	in_tree("", "/a/b", false);
	in_tree("", "/a", false);
	in_tree("", "/a/c", true);
	settle(f);
	CHECK(fake_find(f, "/a"));
	CHECK(fake_find(f, "/a/c"));
	CHECK(!fake_find(f, "/a/b"));
	in_tree("", "/a/c/d", true);
	settle(f);
	CHECK(fake_find(f, "/a/c/d"));
	all_removed();
	settle(f);
	CHECK_INT(f->ntargets, 0);
	fake_free(f);
}

/* The kernel's own trees, which tell less than a folder does: a group's end stands in its parent's
 * events only. */
static void in_the_kernel(const char *point)
{
	char path[128], below[300], key[300], in_tree_path[64];
	struct fake *f;

	snprintf(in_tree_path, sizeof(in_tree_path), "/fusee-unit-%d", (int)getpid());
	snprintf(path, sizeof(path), "%.60s%s", point, in_tree_path);
	snprintf(below, sizeof(below), "%s/docker-" A ".scope", path);
	if (mkdir(path, 0755))
		SKIP("no writable hierarchy here");
	f = begun(fake_new(&fusee_plugin, NULL));
	CHECK_INT(fake_start(f), 0);
	CHECK(fake_find(f, in_tree_path));
	for (int i = 0; i < 100; i++) {
		CHECK(!mkdir(below, 0755));
		if (i % 2)
			settle(f);
		CHECK(!rmdir(below));
	}
	CHECK(!mkdir(below, 0755));
	snprintf(key, sizeof(key), "%s/docker-" A ".scope", in_tree_path);
	LABEL_COMES(f, key, "container_id", A);
	CHECK(!rmdir(below));
	CHECK(!rmdir(path));
	ROUNDS_UNTIL(f, !fake_find(f, key) && !fake_find(f, in_tree_path));
	fake_free(f);
}

TEST(v2_of_the_kernel)
{
	in_the_kernel(access("/sys/fs/cgroup/unified", F_OK) ? "/sys/fs/cgroup"
							     : "/sys/fs/cgroup/unified");
}

TEST(v1_of_the_kernel)
{
	in_the_kernel("/sys/fs/cgroup/systemd");
}

TEST(nothing_is_mounted)
{
	struct fake *f;

	strcpy(top, "/nowhere");
	f = started(NULL, NULL);
	CHECK_INT(f->ntargets, 0);
	CHECK(fake_logged(f, "no control groups are mounted"));
	fake_free(f);
}
