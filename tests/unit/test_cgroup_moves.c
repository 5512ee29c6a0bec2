/* SPDX-License-Identifier: Apache-2.0 */
/* core/bpf/cgroup_moves: a real move is counted. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/cgroup_moves.h"

static bool write_pid(const char *path, pid_t pid)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && dprintf(fd, "%d", (int)pid) > 0;

	if (fd >= 0)
		close(fd);
	return done;
}

/* false: none can be made here */
static bool make_cgroup(char dir[256])
{
	static const char *const roots[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup",
					    "/sys/fs/cgroup/freezer"};

	for (int i = 0; i < 3; i++) {
		snprintf(dir, 256, "%s/cgroup.procs", roots[i]);
		if (access(dir, W_OK))
			continue;
		snprintf(dir, 256, "%s/fusee-moves-%d", roots[i], (int)getpid());
		if (!mkdir(dir, 0755))
			return true;
	}
	return false;
}

static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	return pid;
}

TEST(nobody_counts)
{
	CHECK_INT(cgroup_moves_count(NULL), 0);
	cgroup_moves_close(NULL);
}

TEST(a_move_is_counted)
{
	char dir[256], procs[300];
	struct cgroup_moves *m = NULL;
	uint64_t before, after;
	bool moved;
	pid_t child;
	int r = cgroup_moves_open(&m);

	if (r == -EPERM || r == -EACCES)
		SKIP("no BPF program may be loaded (needs CAP_BPF and CAP_PERFMON)");
	CHECK_INT(r, 0);
	if (!make_cgroup(dir)) {
		cgroup_moves_close(m);
		SKIP("no control group can be made here (needs root)");
	}
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", dir);
	child = sleeper();
	before = cgroup_moves_count(m);
	moved = write_pid(procs, child);
	after = cgroup_moves_count(m);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	usleep(20000);
	rmdir(dir);
	CHECK(moved);
	CHECK(before > 0 && after > before);
	cgroup_moves_close(m);
}
