/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/cgroup.h"

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
		CHECK_INT(cgroup_parse(cases[i].text, out), 0);
		CHECK_STR(out, cases[i].path);
	}
}

TEST(lines_that_lie)
{
	char out[CGROUP_MAX], text[3 * CGROUP_MAX] = "0::/";

	CHECK_INT(cgroup_parse("nonsense\n", out), -EBADMSG);
	CHECK_INT(cgroup_parse("0:\n", out), -EBADMSG);
	CHECK_INT(cgroup_parse("0::relative\n", out), -EBADMSG);
	memset(text + 4, 'x', 2 * CGROUP_MAX);
	CHECK_INT(cgroup_parse(text, out), 0); /* longer than any that there is */
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

	CHECK_INT(cgroup_of("", 4194301, out), -ESRCH);
	CHECK_INT(cgroup_of("", me, out), 0);
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
