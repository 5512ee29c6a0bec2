/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/process
#include "lib/leaderless.h"
#include "lib/sleeper.h"

#include <grp.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "process/process.h"
#include "process/procfs.h"
#include "process/safe_open.h"
#include "process/thread_state.h"

static struct process_table *new_table(void)
{
	struct process_table *t;

	CHECK_INT(process_table_new(&t, NULL), 0);
	return t;
}

static void map(struct process *p, struct process_mapping m)
{
	CHECK_INT(process_map(p, &m), 0);
}

#define TEST_OF_PROCESS_TABLE(id) \
	TEST_WITH(id, struct process_table *, t, new_table(), process_table_free(t))

TEST_OF_PROCESS_TABLE(mappings_cover_shorten_and_split)
{
	struct process *p = process_get(t, 7);

	map(p, (struct process_mapping){.lo = 100, .hi = 200, .offset = 1000});
	map(p, (struct process_mapping){.lo = 140, .hi = 160, .offset = 5000});
	CHECK_INT(p->n, 3);
	CHECK_INT(process_mapping(p, 139)->offset, 1000);
	CHECK_INT(process_mapping(p, 140)->offset, 5000);
	CHECK_INT(process_mapping(p, 160)->lo, 160);
	CHECK_INT(process_mapping(p, 160)->offset, 1060);
	CHECK(!process_mapping(p, 200));
	CHECK(!process_mapping(p, 99));
	map(p, (struct process_mapping){.lo = 150, .hi = 300, .offset = 9});
	CHECK_INT(p->n, 3);
	CHECK_INT(process_mapping(p, 149)->offset, 5000);
	CHECK_INT(process_mapping(p, 299)->offset, 9);
	map(p, (struct process_mapping){.lo = 0, .hi = 1000, .offset = 3});
	CHECK_INT(p->n, 1);
}

/* A child has its parent's mappings and no room for more. */
TEST_OF_PROCESS_TABLE(the_only_mapping_of_a_child_is_split)
{
	const struct process_mapping all = {.lo = 0x1000, .hi = 0x9000},
				     part = {.lo = 0x3000, .hi = 0x4000};
	struct process *p;

	CHECK_INT(process_map(process_get(t, 1), &all), 0);
	p = process_fork(t, 1, 2);
	CHECK(p && p->n == 1);
	CHECK_INT(process_map(p, &part), 0);
	CHECK_INT(p->n, 3);
	CHECK(p->n <= p->cap);
	CHECK(p->mappings[1].lo == 0x3000 && p->mappings[2].lo == 0x4000 &&
	      p->mappings[2].hi == 0x9000);
}

/* Against a plain array of bytes: who owns each address. */
TEST_OF_PROCESS_TABLE(mappings_against_a_plain_model)
{
	static uint64_t owner[512];
	struct process *p = process_get(t, 1);

	srand(1);
	for (uint64_t i = 1; i <= 3000; i++) {
		uint64_t lo = (uint64_t)rand() % 500, hi = lo + 1 + (uint64_t)rand() % (512 - lo);

		map(p, (struct process_mapping){
			       .lo = lo, .hi = hi, .offset = i * 1000 + lo, .since = i});
		for (uint64_t a = lo; a < hi && a < 512; a++)
			owner[a] = i;
		for (uint64_t a = 0; a < 512; a++) {
			struct process_mapping *m = process_mapping(p, a);

			CHECK_INT(m ? m->since : 0, owner[a]);
			if (m)
				CHECK_INT(m->offset + (a - m->lo), owner[a] * 1000 + a);
		}
	}
}

TEST(a_covered_mapping_is_found_by_its_time)
{
	struct process_table *t = new_table();
	struct process *p;
	struct file *one = (void *)&t, *two = (void *)&p;

	p = process_get(t, 7);
	map(p, (struct process_mapping){.lo = 100, .hi = 200, .file = one, .since = 10});
	map(p, (struct process_mapping){.lo = 50, .hi = 300, .file = two, .since = 20});
	CHECK(process_mapping_at(p, 150, 25)->file == two);
	CHECK(process_mapping_at(p, 150, 20)->file == two);
	CHECK(process_mapping_at(p, 150, 19)->file == one);
	CHECK(!process_mapping_at(p, 60, 19)); /* nothing was there */
	CHECK(!process_mapping_at(p, 150, 9));
	for (uint64_t i = 0; i < 3 * PROCESS_PAST; i++)
		map(p, (struct process_mapping){
			       .lo = 50, .hi = 300, .file = i % 2 ? one : two, .since = 30 + i});
	CHECK(process_mapping_at(p, 150, 30 + 3 * PROCESS_PAST - 10)->file ==
	      ((3 * PROCESS_PAST - 10) % 2 ? one : two));
	process_table_free(t);
}

/* Memory that has the code of a file now had other code before. */
TEST_OF_PROCESS_TABLE(memory_is_found_by_its_time)
{
	struct process *p = process_get(t, 7);
	struct file *file = (void *)&p;
	struct process_mapping *m;

	map(p, (struct process_mapping){
		       .lo = 100, .hi = 200, .text = {.file = file, .differed = 15}, .since = 10});
	map(p, (struct process_mapping){
		       .lo = 100, .hi = 200, .file = file, .moved = true, .since = 15});
	CHECK(process_mapping_at(p, 150, 15)->file == file);
	m = process_mapping_at(p, 150, 14);
	CHECK(m && !m->file && !m->text.file && m->until == 15);
}

TEST_OF_PROCESS_TABLE(processes_of_a_pid)
{
	struct process *parent, *child, *again;

	parent = process_get(t, 10);
	CHECK_INT(process_map(parent, &(struct process_mapping){.lo = 1, .hi = 2}), 0);
	child = process_fork(t, 10, 11);
	CHECK(process_mapping(child, 1) != NULL);
	again = process_exec(t, 11, 5, "prog");
	CHECK(again != child && again->id != child->id);
	CHECK(!process_mapping(again, 1));
	CHECK(process_mapping(child, 1) != NULL);
	CHECK(process_find(t, 11) == again);
	CHECK_STR(process_comm(t, again, 11), "prog");
	CHECK_INT(process_thread_comm(t, 11, 12, "worker", 5), 0);
	CHECK_STR(process_comm(t, again, 12), "worker");
	CHECK(!process_thread_exited(t, again, 12, 6));
	CHECK_STR(process_comm(t, again, 12), "prog");
	CHECK(process_by_id(t, child->id) == child && process_by_id(t, again->id) == again);
	CHECK(process_by_id(t, parent->id) == parent && !process_by_id(t, 99));
}

/* Another process with the pid has another, and nothing of a process is waited for. */
TEST(processes_have_identities)
{
	uint64_t own, again, other;
	pid_t pid = sleeper();
	bool kernel = true;

	CHECK_INT(procfs_identity(getpid(), &own), 0);
	CHECK_INT(procfs_identity(getpid(), &again), 0);
	CHECK(own == again && own);
	CHECK_INT(procfs_identity(pid, &other), 0);
	CHECK(!procfs_is_exiting(pid) && !procfs_is_exiting(getpid()));
	CHECK_INT(procfs_is_kernel(pid, &kernel), 0);
	CHECK(!kernel);
	CHECK(!kill(pid, SIGKILL));
	CHECK(!waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT));
	CHECK(procfs_is_exiting(pid));
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	CHECK_INT(procfs_identity(pid, &other), -ESRCH);
	CHECK(procfs_is_exiting(pid));
	CHECK_INT(procfs_parse_start("1 (a) b) S 1 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 4711 9",
				     &other),
		  0);
	CHECK_INT(other, 4711);
	CHECK_INT(procfs_parse_start("1 (a", &other), -EBADMSG);
}

static pid_t start_as(uid_t uid)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setresuid(0, uid, uid))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* which a change of the user forgets */
	pause();
	_exit(0);
}

/* The effective user, also of a process that hides from its user, and until it is waited for. */
TEST(the_user_of_a_process_is_that_of_its_status)
{
	struct procfs_status status;
	uid_t own = 1, other = 1;
	pid_t pid;

	CHECK_INT(procfs_user(getpid(), &own), 0);
	CHECK_INT(own, geteuid());
	if (geteuid())
		SKIP("another user's process needs root");
	pid = start_as(4711);
	do
		CHECK_INT(procfs_status(pid, &status), 0);
	while (status.uid != 4711);
	CHECK_INT(procfs_user(pid, &other), 0);
	CHECK_INT(other, 4711);
	CHECK(!kill(pid, SIGKILL));
	CHECK(!waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT));
	CHECK_INT(procfs_user(pid, &other), 0);
	CHECK_INT(other, 4711);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	CHECK_INT(procfs_user(pid, &other), -ESRCH);
}

static int count_code(void *arg, const struct procfs_mapping *m)
{
	int *n = arg, fd;

	(*n)++;
	if (*m->name != '/')
		return 0;
	fd = safe_open_mapping(getpid(), m);
	CHECK(fd >= 0);
	close(fd);
	return 0;
}

/* A process in a pid namespace of its own and in so many groups that its status is a long file; 0:
 * this test may start none. */
static pid_t start_with_groups(int ready)
{
	enum { GROUPS = 4000 };
	static gid_t groups[GROUPS];
	pid_t parent = fork(), pid;

	if (parent)
		return parent;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < GROUPS; i++)
		groups[i] = 1000000u + (gid_t)i;
	if (setgroups(GROUPS, groups) || unshare(CLONE_NEWPID))
		_exit(1);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	if (write(ready, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	pause();
	_exit(0);
}

TEST(a_process_of_many_groups_has_all_lines_of_its_status)
{
	uint64_t voluntary, involuntary;
	struct procfs_status status;
	pid_t parent, pid;
	int ready[2];

	CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
	parent = start_with_groups(ready[1]);
	close(ready[1]);
	if (read(ready[0], &pid, sizeof(pid)) != sizeof(pid)) {
		waitpid(parent, NULL, 0);
		SKIP("no right to set groups or to make a pid namespace");
	}
	close(ready[0]);
	CHECK_INT(procfs_status(pid, &status), 0);
	CHECK_INT(status.ns_pid, 1);
	while (thread_switches_read(pid, pid, &voluntary, &involuntary) == -EBUSY)
		;
	CHECK_INT(thread_switches_read(pid, pid, &voluntary, &involuntary), 0);
	CHECK(voluntary >= 1);
	kill(pid, SIGKILL);
	kill(parent, SIGKILL);
	waitpid(parent, NULL, 0);
}

/* What was read of the process is kept until it is to be kept no more, and of no other process. */
TEST(what_is_read_is_kept)
{
	char exe[4096], again[4096];
	uint64_t identity, other;
	pid_t pid = fork();
	uid_t user;

	if (!pid) {
		pause();
		_exit(0);
	}
	procfs_keep(pid);
	CHECK_INT(procfs_living_thread(pid), pid);
	CHECK(procfs_exe(pid, exe, sizeof(exe)) > 0);
	CHECK_INT(procfs_user(pid, &user), 0);
	CHECK_INT(user, geteuid());
	CHECK_INT(procfs_identity(pid, &identity), 0);
	CHECK_INT(procfs_identity(getpid(), &other), 0);
	CHECK(identity != other);
	kill(pid, SIGKILL);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	CHECK_INT(procfs_exe(pid, again, sizeof(again)), strlen(exe));
	CHECK_STR(again, exe);
	CHECK_INT(procfs_exe(pid, again, 4), -ENOENT); /* no room: it is read */
	CHECK_INT(procfs_identity(pid, &other), 0);
	CHECK_INT(other, identity);
	procfs_keep(0);
	CHECK_INT(procfs_exe(pid, again, sizeof(again)), -ENOENT);
	CHECK_INT(procfs_identity(pid, &other), -ESRCH);
	CHECK(procfs_user(pid, &user) < 0);
}

static unsigned exes_read; /* system calls */

ssize_t readlink(const char *path, char *to, size_t cap)
{
	exes_read += strstr(path, "/exe") != NULL;
	return syscall(SYS_readlink, path, to, cap);
}

/* Nor is a process read again that was found to have ended, before it is waited for. */
TEST(an_end_is_kept)
{
	char exe[4096];
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	CHECK(!waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT));
	exes_read = 0;
	CHECK_INT(procfs_exe(pid, exe, sizeof(exe)), -ENOENT);
	CHECK_INT(procfs_exe(pid, exe, sizeof(exe)), -ENOENT);
	CHECK_INT(exes_read, 2);
	procfs_keep(pid);
	CHECK_INT(procfs_living_thread(pid), pid);
	CHECK_INT(procfs_exe(pid, exe, sizeof(exe)), -ENOENT);
	CHECK_INT(exes_read, 2);
	CHECK(procfs_exe(getpid(), exe, sizeof(exe)) > 0);
	CHECK_INT(exes_read, 3);
	procfs_keep(0);
	CHECK_INT(procfs_exe(pid, exe, sizeof(exe)), -ENOENT);
	CHECK_INT(exes_read, 4);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
}

TEST(own_mappings_open)
{
	uint64_t user, system;
	int n = 0;

	CHECK_INT(procfs_each_mapping(getpid(), count_code, &n), 0);
	CHECK(n >= 3);
	CHECK_INT(procfs_cpu_ns(getpid(), &user, &system), 0);
}

static int open_changed(void *arg, const struct procfs_mapping *m)
{
	struct procfs_mapping other = *m;

	if (*m->name != '/')
		return 0;
	other.ino++; /* as if the file had been replaced */
	other.lo++;  /* and map_files could not be used */
	CHECK_INT(safe_open_mapping(getpid(), &other), -116 /* ESTALE */);
	return 1;
}

static int open_successor(void *arg, const struct procfs_mapping *m)
{
	struct procfs_mapping other = *m;
	uint32_t generation[2];
	int fd;

	if (*m->name != '/')
		return 0;
	fd = safe_open_mapping(getpid(), m);
	CHECK(fd >= 0);
	if (!ioctl(fd, FS_IOC_GETVERSION, generation) && generation[0]) {
		*(int *)arg = 1;
		close(fd);
		other.generation = generation[0];
		fd = safe_open_mapping(getpid(), &other);
		CHECK(fd >= 0);
		other.generation = generation[0] +
				   1; /* the inode's number was given to another file */
		CHECK_INT(safe_open_mapping(getpid(), &other), -116 /* ESTALE */);
	}
	close(fd);
	return 1;
}

TEST(a_new_file_with_the_old_inode_is_not_opened)
{
	int known = 0;

	CHECK_INT(procfs_each_mapping(getpid(), open_successor, &known), 1);
	if (!known)
		SKIP("this file system does not tell an inode's generation");
}

TEST(a_replaced_file_is_not_opened)
{
	CHECK_INT(procfs_each_mapping(getpid(), open_changed, NULL), 1);
}

static bool keep_none(void *arg, struct process *p)
{
	return false;
}

static void count_freed(void *arg, struct process *p)
{
	++*(uint32_t *)arg;
	*(uint32_t *)process_owner(p) = 0;
}

static void hand_on(void *arg, const struct process *parent, struct process *child)
{
	*(uint32_t *)process_owner(child) = *(uint32_t *)process_owner((struct process *)parent);
}

TEST(the_owners_part)
{
	uint32_t freed = 0, *own;
	const struct process_owner owner = {
		.bytes = sizeof(*own), .forked = hand_on, .freed = count_freed, .arg = &freed};
	struct process_table *t;

	CHECK_INT(process_table_new(&t, &owner), 0);
	own = process_owner(process_get(t, 10));
	CHECK_INT(*own, 0);
	*own = 7;
	CHECK_INT(*(uint32_t *)process_owner(process_fork(t, 10, 11)), 7);
	process_exec(t, 11, 5, "prog");
	CHECK_INT(*(uint32_t *)process_owner(process_find(t, 11)), 0);
	process_sweep(t, 6, keep_none, NULL);
	CHECK(freed >= 1);
	process_table_free(t);
	CHECK_INT(freed, 3);
}

TEST_OF_PROCESS_TABLE(names_of_threads)
{
	struct process *p, *other;

	p = process_get(t, 10);
	other = process_get(t, 11);
	CHECK_INT(process_thread_comm(t, 10, 12, "newer", 7), 0);
	CHECK_INT(process_thread_comm(t, 10, 12, "older", 6), 0);
	CHECK_STR(process_comm(t, p, 12), "newer");
	CHECK_STR(process_comm(t, other, 12), ""); /* the number is another thread's by now */
	CHECK_INT(process_thread_comm(t, 11, 12, "other", 8), 0);
	CHECK_STR(process_comm(t, other, 12), "other");
	CHECK_STR(process_comm(t, p, 12), "");
	/* Without a record of the thread's end the name goes with the process. */
	CHECK(process_thread_exited(t, other, 11, 9));
	process_sweep(t, 10, keep_none, NULL);
	CHECK_STR(process_comm(t, process_get(t, 11), 12), "");
}

/* The main thread's exit looks like the end, until another thread runs. */
TEST_OF_PROCESS_TABLE(a_process_without_its_main_thread)
{
	struct process *p = process_get(t, 10);

	CHECK(!process_thread_exited(t, p, 11, 1));
	CHECK(!p->ended);
	CHECK(process_thread_exited(t, p, 10, 2));
	CHECK_INT(p->ended, 2);
	process_ran(p, 10); /* on its way out */
	CHECK_INT(p->ended, 2);
	process_ran(p, 12);
	CHECK(!p->ended);
	CHECK(process_thread_exited(t, p, 12, 3));
	CHECK_INT(p->ended, 3);
}

static int count_mapping(void *arg, const struct procfs_mapping *m)
{
	++*(int *)arg;
	return !m->lo;
}

/* Its first thread has ended: it is read by another, until that ends. */
TEST_OF_PROCESS_TABLE(a_process_is_read_by_another_thread)
{
	struct leaderless l = leaderless_start();
	struct process *p = process_get(t, l.pid);
	char own[4096], exe[4096];
	int n = 0;

	CHECK(procfs_living_thread(l.pid) > l.pid);
	CHECK(!procfs_is_exiting(l.pid));
	CHECK(procfs_exe(getpid(), own, sizeof(own)) > 0);
	CHECK_INT(procfs_exe(l.pid, exe, sizeof(exe)), (int)strlen(own));
	CHECK_STR(exe, own);
	CHECK_INT(procfs_exe(l.pid, exe, 4), 3);
	CHECK_INT(procfs_each_mapping(l.pid, count_mapping, &n), 0);
	CHECK(n > 1);
	CHECK(!process_thread_exited(t, p, l.pid, 1) && !p->ended && p->leaderless);
	CHECK(!process_thread_exited(t, p, l.pid + 2, 2) && !p->ended); /* there is another */

	close(l.go);
	WAIT_FOR(procfs_is_exiting(l.pid));
	CHECK_INT(procfs_living_thread(l.pid), l.pid);
	CHECK(process_thread_exited(t, p, l.pid + 1, 3));
	CHECK_INT(p->ended, 3);
	CHECK_INT(procfs_exe(l.pid, exe, sizeof(exe)), -ENOENT);
	waitpid(l.pid, NULL, 0);
	CHECK_INT(procfs_exe(l.pid, exe, sizeof(exe)), -ENOENT);
	CHECK_INT(procfs_living_thread(l.pid), l.pid);
}

/* The number of mappings is that of all processes, whatever is done to them, and has a limit. */
/* Of thousands of processes that sleep this is half of the memory. */
TEST_OF_PROCESS_TABLE(few_mappings_take_little_memory)
{
	struct process *p = process_get(t, 5);
	uint32_t moves = 0, cap = 0;

	for (uint32_t n = 1; n <= 1000; n++) {
		map(p, (struct process_mapping){.lo = n * 0x2000, .hi = n * 0x2000 + 0x1000});
		CHECK_INT(p->n, n);
		CHECK(p->cap >= n && p->cap <= n + n / 2 + 4);
		moves += p->cap != cap;
		cap = p->cap;
	}
	CHECK(moves < 20);
}

TEST_OF_PROCESS_TABLE(mappings_are_counted_and_bounded)
{
	struct process_mapping m = {.lo = 0, .hi = 10};
	struct process *p, *child;

	p = process_get(t, 1);
	CHECK(!process_largest(t));
	for (uint32_t i = 0; i < PROCESS_MAX_MAPPINGS; i++, m.lo += 20, m.hi += 20)
		CHECK_INT(process_map(p, &m), 0);
	CHECK_INT(process_map(p, &m), -E2BIG);
	CHECK_INT(process_mappings(t), PROCESS_MAX_MAPPINGS);
	child = process_fork(t, 1, 2);
	CHECK_INT(process_mappings(t), 2 * PROCESS_MAX_MAPPINGS);
	process_forget_mappings(child);
	CHECK(!child->n && process_largest(t) == p);
	CHECK_INT(process_mappings(t), PROCESS_MAX_MAPPINGS);
	p->mappings[7].seen = p->mappings[9].seen = true;
	process_drop_unseen(p, 0, UINT64_MAX);
	CHECK_INT(process_mappings(t), 2);
	map(p, (struct process_mapping){.lo = 142, .hi = 145});
	CHECK_INT(process_mappings(t), 4); /* it splits another */
	map(p, (struct process_mapping){.lo = 0, .hi = 1000});
	CHECK_INT(process_mappings(t), 1);
	p->ended = 1;
	child->ended = 1;
	process_sweep(t, 2, keep_none, NULL);
	CHECK_INT(process_mappings(t), 0);
}
