/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/process
#include "lib/put_file.h"

#include "process/internal/cgroup.h"
#include "process/cgroup_namespace.h"

TEST(the_path_that_says_most)
{
	static const struct {
		const char *text, *path;
	} cases[] = {
		{"0::/system.slice/a.service\n", "/system.slice/a.service"},
		{"0::/\n", "/"},
		{"", "/"},
		{"0::/a", "/a"},
		{"4:memory:/m\n1:name=systemd:/s\n0::/\n", "/s"},
		{"4:memory:/m\n1:name=systemd:/\n0::/\n", "/m"},
		{"9:hugetlb:/h\n4:cpu,cpuacct:/c\n", "/c"},
		{"9:hugetlb:/h\n", "/h"},
		{"12:cpuacct,cpu:/docker/abc\n1:name=systemd:/\n", "/docker/abc"},
		{"4:memory:/m\n0::/u\n", "/u"},
		{"1:name=systemd:/with:colon/x\n", "/with:colon/x"},
		{"0::/../../other\n", "/../../other"},
		/* Docker and Kubernetes with cgroupfs, v1 and v2 mixed */
		{"9:memory:/docker/a\n1:name=systemd:/docker/a\n0::/system.slice/"
		 "containerd.service\n",
		 "/docker/a"},
	};
	char out[CGROUP_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK_INT(cgroup_parse(cases[i].text, out, NULL), 0);
		CHECK_STR(out, cases[i].path);
	}
}

TEST(lines_that_lie)
{
	char out[CGROUP_MAX], text[3 * CGROUP_MAX] = "0::/";

	CHECK_INT(cgroup_parse("nonsense\n", out, NULL), -EBADMSG);
	CHECK_INT(cgroup_parse("0:\n", out, NULL), -EBADMSG);
	CHECK_INT(cgroup_parse("0::relative\n", out, NULL), -EBADMSG);
	memset(text + 4, 'x', 2 * CGROUP_MAX);
	CHECK_INT(cgroup_parse(text, out, NULL), 0); /* longer than any that there is */
	CHECK_STR(out, "/");
}

static int found;

static int note(void *arg, pid_t pid)
{
	found += pid == *(pid_t *)arg;
	return 0;
}

TEST(of_live_processes)
{
	char out[CGROUP_MAX], dir[CGROUP_MAX];
	pid_t me = getpid();
	uint64_t id = 0;
	int r;

	CHECK_INT(cgroup_of("", 4194301, out, NULL), -ESRCH);
	CHECK_INT(cgroup_of("", me, out, NULL), 0);
	CHECK_INT(cgroup_find("/no/such/group", dir), -ENOENT);
	if (cgroup_find(out, dir))
		SKIP("no control groups are mounted here");
	CHECK_INT(cgroup_each_process(dir, note, &me), 0);
	CHECK(found >= 1);
	r = cgroup_id(dir, &id);
	CHECK(r == -ENOTSUP || (!r && id));
	CHECK_INT(cgroup_id("/proc", &id), -ENOTSUP);
	CHECK_INT(cgroup_id("/no/such/folder", &id), -ENOENT);
}

/* ---- in a container's namespace ---- */

TEST(paths_from_the_machines_root)
{
	static const struct {
		const char *base, *path, *resolved;
	} cases[] = {
		{"/pods/pod1/c", "/../../pod2/d", "/pods/pod2/d"},
		{"/pods/pod1/c", "/../../..", "/"},
		{"/pods/pod1/c", "/../../../system.slice/a", "/system.slice/a"},
		{"/pods/pod1/c", "/", "/pods/pod1/c"},
		{"/pods/pod1/c", "/below", "/pods/pod1/c/below"},
		{"/pods/pod1/c", "/../..x", "/pods/pod1/..x"},
		/* above the root of the mount: a node that is a container itself */
		{"/pods/pod1/c", "/../../../../other", "/../../../../other"},
		{"", "/../other", "/../other"},
		{"", "/a", "/a"},
	};
	char path[CGROUP_MAX], base[CGROUP_MAX] = "/b";

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		strcpy(path, cases[i].path);
		cgroup_namespace_resolve(cases[i].base, path);
		CHECK_STR(path, cases[i].resolved);
	}
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[CGROUP_MAX - 1] = '\0';
	cgroup_namespace_resolve(base, path); /* no room for two bytes more */
	CHECK_INT(strlen(path), CGROUP_MAX - 1);
	CHECK_INT(path[1], 'x');
}

/* A tree of the form of /proc and /sys/fs/cgroup: this process is number 7 in host/a/b/c. */
TEST(where_a_namespace_begins)
{
	const char *root = test_dir();
	char out[CGROUP_MAX], *text;
	size_t rank = CGROUP_NO_RANK;

	CHECK_INT(cgroup_namespace_find(root, 7, out, &rank), -ENOENT);
	put_file("own/cgroup.procs", "");
	put_file("host/cgroup.procs", "7\n");
	put_file("host/o/cgroup.procs", "17\n77\n");
	put_file("host/a/b/c/cgroup.procs", "1\n7\n");
	CHECK(asprintf(&text,
		       "30 29 0:26 / %s/own ro - cgroup2 cgroup rw\n"
		       "31 29 0:26 /../x %s/o ro - cgroup2 cgroup rw\n"
		       "32 29 0:27 /.. %s/own ro - cgroup cgroup rw,pids\n"
		       "33 29 0:26 /../.. %s/host ro shared:1 - cgroup2 cgroup rw,nsdelegate\n"
		       "34 29 0:28 /.. %s/own ro - ext4 /dev/x rw\nnonsense - cgroup2\n",
		       root, root, root, root, root) > 0);
	put_file("proc/self/mountinfo", text);
	CHECK_INT(cgroup_namespace_find(root, 7, out, &rank), 0);
	CHECK_STR(out, "/a/b");
	CHECK_INT(rank, cgroup_rank(""));
	CHECK_INT(cgroup_namespace_find(root, 8, out, &rank), -ENOENT);
	CHECK_STR(out, "");
	free(text);
}
