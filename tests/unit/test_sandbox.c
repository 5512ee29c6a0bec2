// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/sandbox
/* What the worker may do, and what happens when it tries more: each attempt made by a plugin inside
 * a real one. */
#include "sandbox/sandbox.h"
#include <dirent.h>
#include <linux/capability.h>

#include "worker_help.h"

static struct worker *start(void)
{
	struct worker_options o = {.plugin_dir = nasty_plugins(), .memory_limit = 256 << 20};
	struct worker *w;

	CHECK_INT(worker_new(&w, &o), 0);
	return w;
}

static void stop(struct worker *w)
{
	worker_stop(w);
}

TEST(the_list)
{
	char *text = NULL, *line, *save = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	CHECK(f);
	sandbox_print(f);
	fclose(f);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		printf("# %s\n", line);
	CHECK_STR(sandbox_call_name(41), "socket");
	free(text);
}

/* These end the worker, twice, and the message names the call. */
TEST(ends_it)
{
	static const struct {
		uint64_t what;
		const char *call;
	} attempts[] = {
		{DO_SOCKET, "socket (41)"},
		{DO_EXECVE, "execve (59)"},
		{DO_FORK, "clone (56)"},
		{DO_PTRACE, "ptrace (101)"},
		{DO_KILL, "kill (62)"},
		{DO_TGKILL_OTHER, "tgkill (234)"},
		{DO_BPF, "bpf (321)"},
		{DO_UNLINK, "unlinkat (263)"},
		{DO_MAP_EXEC, "mmap (9)"},
		{DO_MAP_SHARED, "mmap (9)"},
		{DO_PROTECT_EXEC, "mprotect (10)"},
#ifndef __SANITIZE_ADDRESS__
		{DO_SIGACTION, "rt_sigaction (13)"},
#endif
	};
	struct worker *w = start();

	for (size_t i = 0; i < sizeof(attempts) / sizeof(*attempts); i++) {
		struct inspected a = inspect_fd(w, elf_with_entry(attempts[i].what));

		printf("# %-18s %s\n", attempts[i].call, refusal(w));
		CHECK_INT(a.err, 0);
		CHECK_INT(a.i->nslabs, 0);
		CHECK(strstr(refusal(w), attempts[i].call));
		inspection_unref(a.i);
	}
	/* And it goes on to serve others. */
	CHECK_INT(inspect_err(w, elf_with_entry(DO_NOTHING)), 0);
	stop(w);
}

/* Looking for files only fails: libraries do that, and can do without. */
TEST(files_by_path_are_not_there)
{
	static const uint64_t attempts[] = {DO_OPEN, DO_CREATE, DO_STAT};
	struct worker *w = start();

	for (int i = 0; i < 3; i++) {
		struct inspected a = inspect_fd(w, elf_with_entry(attempts[i]));

		CHECK_INT(a.err, 0);
		CHECK_INT(a.i->slabs[0].words[1], EACCES);
		inspection_unref(a.i);
	}
	CHECK(access("/tmp/fusee-was-here", F_OK));
	stop(w);
}

TEST(memory_ends_at_its_limit)
{
	struct worker *w = start();
	struct inspected a;

#ifdef __SANITIZE_ADDRESS__
	stop(w);
	SKIP("sanitizers need more than any limit");
#endif
	a = inspect_fd(w, elf_with_entry(DO_TAKE_MEMORY));
	CHECK_INT(a.err, 0);
	printf("# %u MiB could be had of 256\n", a.i->slabs[0].words[1]);
	CHECK(a.i->slabs[0].words[1] > 100 && a.i->slabs[0].words[1] < 257);
	inspection_unref(a.i);
	stop(w);
}

static void field(int pid, const char *name, char *value, size_t len)
{
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	CHECK(f);
	*value = 0;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			snprintf(value, len, "%s", line + strlen(name) + 2);
	fclose(f);
	value[strcspn(value, "\n")] = 0;
}

static bool in_our_namespace(int pid, const char *kind)
{
	char ours[64], its[64], path[64];
	ssize_t n, m;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	n = readlink(path, ours, sizeof(ours));
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kind);
	m = readlink(path, its, sizeof(its));
	return n == m && n > 0 && !memcmp(ours, its, (size_t)n);
}

/* What the kernel says of the worker's user. Whether its id is one of its own. */
static bool check_user(int pid)
{
	unsigned int real, effective, saved, fs;
	char value[64];

	field(pid, "Uid", value, sizeof(value));
	CHECK_INT(sscanf(value, "%u %u %u %u", &real, &effective, &saved, &fs), 4);
	if (!real)
		return false;
	CHECK(real >= 0x7f000000 && real == effective && real == fs && !saved);
	field(pid, "Gid", value, sizeof(value));
	CHECK(atoll(value) == real);
	field(pid, "Groups", value, sizeof(value));
	CHECK(strspn(value, " ") == strlen(value));
	printf("# uid %u\n", real);
	return true;
}

static void check_namespaces(int pid)
{
	static const char *const kinds[] = {"net", "ipc", "uts", "mnt"};
	char path[64];
	struct dirent *e;
	DIR *d;

	for (int i = 0; i < 4; i++)
		CHECK(!in_our_namespace(pid, kinds[i]));
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	d = opendir(path);
	CHECK(d);
	while ((e = readdir(d)))
		CHECK(!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."));
	closedir(d);
	printf("# namespaces of its own, an empty root\n");
}

/* Takes the capabilities from this test and from the programs that it starts. false: it is not
 * root's, or may not. */
static bool give_up(const int *caps, int n)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2] = {0};
	bool ok = !geteuid() && !syscall(SYS_capget, &head, sets);

	for (int i = 0; ok && i < n; i++) {
		uint32_t bit = 1u << caps[i] % 32;

		ok = sets[caps[i] / 32].effective & bit &&
		     !prctl(PR_CAPBSET_DROP, caps[i], 0, 0, 0);
		sets[caps[i] / 32].effective &= ~bit;
		sets[caps[i] / 32].permitted &= ~bit;
		sets[caps[i] / 32].inheritable &= ~bit;
	}
	return ok && !syscall(SYS_capset, &head, sets);
}

/* May this kernel's users make namespaces? */
static bool users_have_namespaces(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(syscall(SYS_setresuid, 0x7f000001, 0x7f000001, 0x7f000001) ||
		      unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS));
	CHECK_INT(waitpid(pid, &status, 0), pid);
	return !status;
}

/* An agent without CAP_SYS_ADMIN: the worker has a user of its own and namespaces that any user may
 * make, and the agent can kill it without CAP_KILL. */
TEST(without_the_right_to_make_namespaces)
{
	static const int without[] = {CAP_SYS_ADMIN, CAP_KILL};
	struct worker *w;
	int pid;

	if (!give_up(without, 2))
		SKIP("needs root");
	if (!users_have_namespaces())
		SKIP("this kernel lets no user make namespaces");
	w = start();
	CHECK_INT(inspect_err(w, elf_with_entry(DO_NOTHING)), 0);
	pid = worker_pid(w);
	CHECK(check_user(pid));
	CHECK(!in_our_namespace(pid, "user"));
	check_namespaces(pid);
	stop(w);
	CHECK(kill(pid, 0) && errno == ESRCH);
}

/* An agent that may change no user id: uid 0 of a user namespace of the worker's own has no right
 * outside of it. */
TEST(without_the_right_to_change_users)
{
	static const int without[] = {CAP_SETUID, CAP_SETGID};
	struct worker *w;
	int pid;

	if (!give_up(without, 2))
		SKIP("needs root");
	if (unshare(CLONE_NEWNS))
		SKIP("this machine lets root make no namespaces");
	w = start();
	CHECK_INT(inspect_err(w, elf_with_entry(DO_NOTHING)), 0);
	pid = worker_pid(w);
	CHECK(!check_user(pid));
	CHECK(!in_our_namespace(pid, "user"));
	check_namespaces(pid);
	stop(w);
}

static void check_ends_first(int pid)
{
	char path[64], value[16] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	f = fopen(path, "r");
	CHECK(f && fgets(value, sizeof(value), f));
	CHECK_INT(atoi(value), 1000);
	fclose(f);
}

/* As the kernel says: no capability, no new privileges, a filter, nothing open but what it must
 * have. */
TEST(as_the_kernel_sees_it)
{
	static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapAmb"};
	struct worker *w = start();
	char value[64], path[64];
	int pid;

	CHECK_INT(inspect_err(w, elf_with_entry(DO_NOTHING)), 0);
	pid = worker_pid(w);
	CHECK(pid > 0);
	for (int i = 0; i < 4; i++) {
		field(pid, sets[i], value, sizeof(value));
		CHECK_STR(value, "0000000000000000");
	}
	field(pid, "NoNewPrivs", value, sizeof(value));
	CHECK_STR(value, "1");
	check_ends_first(pid);
	if (!geteuid() && !unshare(CLONE_NEWNET | CLONE_NEWNS)) {
		CHECK(check_user(pid));
		check_namespaces(pid);
	}
	field(pid, "Seccomp", value, sizeof(value));
	CHECK_STR(value, "2");
	/* Its stdio and its socket; pipes are libunwind's, which tests with them what may be read.
	 */
	for (int fd = 4; fd < 64; fd++) {
		char to[200] = "";

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		/* The memfd of its answer is closed just after the answer was sent. */
		WAIT_FOR(readlink(path, to, sizeof(to) - 1) <= 0 || !strstr(to, "memfd"));
		CHECK(!*to || strstr(to, "memfd") || !strncmp(to, "pipe:", 5));
	}
	stop(w);
}
