/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/programs
/* core/programs/cgroup_moves: a real move is counted. */
#include "lib/sleeper.h"

#include "programs/cgroup_moves.h"

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

TEST(nobody_counts)
{
	CHECK_INT(cgroup_moves_count(NULL), 0);
	cgroup_moves_close(NULL);
}

/* The BPF maps of which this process has a descriptor. */
static uint32_t open_maps(void)
{
	uint32_t n = 0;

	for (int fd = 0; fd < 256; fd++) {
		char path[64], text[512] = "";
		int info;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
		info = open(path, O_RDONLY | O_CLOEXEC);
		if (info < 0)
			continue;
		if (read(info, text, sizeof(text) - 1) > 0 && strstr(text, "map_id:"))
			n++;
		close(info);
	}
	return n;
}

TEST(only_the_map_that_it_uses)
{
	struct cgroup_moves *m = NULL;
	uint32_t before = open_maps();
	int r = cgroup_moves_open(&m);

	if (r == -EPERM || r == -EACCES)
		SKIP("no BPF program may be loaded (needs CAP_BPF and CAP_PERFMON)");
	CHECK_INT(r, 0);
	CHECK_INT(open_maps(), before + 1);
	cgroup_moves_close(m);
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
	end(child);
	WAIT_FOR(!rmdir(dir));
	CHECK(moved);
	CHECK(before > 0 && after > before);
	cgroup_moves_close(m);
}
