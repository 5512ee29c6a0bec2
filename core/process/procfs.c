/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of /proc. Formats: proc(5). */
#include "process/internal/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "process/internal/kept.h"

#define MOST_ENDED 64u /* a traced process lists threads that have ended */

bool procfs_is_memory(const struct procfs_mapping *m)
{
	/* Of perf's records and of /proc. */
	static const char *const names[] = {"//anon", "[anon",          "/dev/zero",      "/memfd:",
					    "/SYSV",  "/anon_hugepage", "/dev/hugepages/"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(m->name, names[i], strlen(names[i])))
			return true;
	return !*m->name;
}

/* A line of /proc/PID/maps. */
struct line {
	char *text;
	size_t cap;
	struct procfs_mapping m;
	bool code;
};

/* false: malformed. */
static bool parse_line(struct line *l)
{
	struct procfs_mapping *m = &l->m;
	char prot[5];
	int at = 0;

	*m = (struct procfs_mapping){0};
	if (sscanf(l->text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &m->lo,
		   &m->hi, prot, &m->offset, &m->dev_major, &m->dev_minor, &m->ino, &at) < 7 ||
	    !at || m->lo >= m->hi)
		return false;
	l->text[strcspn(l->text, "\n")] = '\0';
	m->name = l->text + at;
	l->code = prot[2] == 'x';
	return true;
}

/* The lines that are still needed. A line of memory with code waits for the next mapping of a file,
 * which is `above` it. */
struct lines {
	struct line all[3];
	struct line *next, *below, *memory; /* of them */
	bool has_below, has_memory;
	int (*each)(void *, const struct procfs_mapping *);
	void *arg;
};

static void swap(struct line **a, struct line **b)
{
	struct line *was = *a;

	*a = *b;
	*b = was;
}

/* Hands over the line of memory with code that waits, if there is one. */
static int hand_memory(struct lines *s, const struct procfs_mapping *above)
{
	struct procfs_mapping m = s->memory->m;

	if (!s->has_memory)
		return 0;
	s->has_memory = false;
	m.below = s->has_below ? &s->below->m : NULL;
	m.above = above;
	return s->each(s->arg, &m);
}

/* Whether it is of a file that may have code: no memory, no device. */
static bool is_of_file(const struct procfs_mapping *m)
{
	return m->ino && *m->name == '/' && strncmp(m->name, "/dev/", 5) != 0 &&
	       !procfs_is_memory(m);
}

static int take_line(struct lines *s)
{
	struct line *l = s->next;
	bool of_file = is_of_file(&l->m), memory = l->code && procfs_is_memory(&l->m);
	int r = 0;

	if (of_file || l->code)
		r = hand_memory(s, of_file ? &l->m : NULL);
	if (!r && l->code && !memory)
		r = s->each(s->arg, &l->m);
	if (memory) {
		s->has_memory = true;
		swap(&s->next, &s->memory);
	} else if (of_file) {
		s->has_below = true;
		swap(&s->next, &s->below);
	}
	return r;
}

int procfs_each_mapping(pid_t pid, int (*each)(void *, const struct procfs_mapping *), void *arg)
{
	struct lines s = {.each = each, .arg = arg};
	char path[64], room[16384];
	int r = 0;
	FILE *f;

	s.next = &s.all[0];
	s.below = &s.all[1];
	s.memory = &s.all[2];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)procfs_living_thread(pid));
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	setvbuf(f, room, _IOFBF, sizeof(room)); /* each read takes a lock of the process */
	while (!r && (errno = 0, getline(&s.next->text, &s.next->cap, f)) > 0)
		if (parse_line(s.next))
			r = take_line(&s);
	if (!r && errno == ENOMEM)
		r = -ENOMEM;
	else if (!r && ferror(f))
		r = -ESRCH;
	else if (!r)
		r = hand_memory(&s, NULL);
	for (int i = 0; i < 3; i++)
		free(s.all[i].text);
	fclose(f);
	return r;
}

static int each_number(const char *dir, int (*each)(void *, pid_t), void *arg)
{
	struct dirent *e;
	int r = 0;
	DIR *d = opendir(dir);

	if (!d)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!r && (e = readdir(d)))
		if (*e->d_name >= '1' && *e->d_name <= '9')
			r = each(arg, (pid_t)strtol(e->d_name, NULL, 10));
	closedir(d);
	return r;
}

int procfs_each_thread(pid_t pid, int (*each)(void *, pid_t), void *arg)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return each_number(path, each, arg);
}

int procfs_each_process(int (*each)(void *, pid_t), void *arg)
{
	return each_number("/proc", each, arg);
}

int procfs_read_small(const char *path, char *buf, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	n = read(fd, buf, cap - 1);
	r = n < 0 ? -errno : 0;
	buf[n < 0 ? 0 : n] = '\0';
	close(fd);
	return r;
}

int procfs_comm(pid_t pid, pid_t tid, char comm[16])
{
	char path[64], text[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	r = procfs_read_small(path, text, sizeof(text));
	if (r)
		return r;
	text[strcspn(text, "\n")] = '\0';
	snprintf(comm, 16, "%.15s", text);
	return 0;
}

/* Reads /proc/PID/stat. *rest: from the last ')', as the name before it can contain anything. */
static int read_stat(pid_t pid, char text[1024], char **rest)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	r = procfs_read_small(path, text, 1024);
	if (r)
		return r;
	*rest = strrchr(text, ')');
	return *rest ? 0 : -EBADMSG;
}

/* From the last ')' of /proc/PID/stat on. */
static int parse_times(const char *p, uint64_t *user, uint64_t *system, uint64_t *start)
{
	return sscanf(p + 1,
		      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
		      " %*d %*d %*d %*d %*d %*d %" SCNu64,
		      user, system, start) == 3
		       ? 0
		       : -EBADMSG;
}

static int stat_fields(pid_t pid, uint64_t *user, uint64_t *system, uint64_t *start)
{
	char text[1024], *p;
	int r = read_stat(pid, text, &p);

	if (r)
		return r;
	return parse_times(p, user, system, start);
}

int procfs_parse_start(const char *stat, uint64_t *ticks)
{
	const char *p = strrchr(stat, ')');
	uint64_t user, system;

	return p ? parse_times(p, &user, &system, ticks) : -EBADMSG;
}

int procfs_status_value(const char *path, const char *key, char value[STATUS_VALUE_BYTES])
{
	char text[4096], *p = NULL;
	size_t keep = 0;
	ssize_t n = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!p && (n = read(fd, text + keep, sizeof(text) - 1 - keep)) > 0) {
		n += (ssize_t)keep;
		text[n] = '\0';
		p = strstr(text, key);
		if (p && !strchr(p + 1, '\n'))
			p = NULL; /* the rest of the line comes with the next part */
		keep = (size_t)n < STATUS_VALUE_BYTES ? (size_t)n : STATUS_VALUE_BYTES;
		if (!p)
			memmove(text, text + n - keep, keep);
	}
	n = p || n >= 0 ? 0 : -errno;
	close(fd);
	if (!p)
		return (int)n;
	p += strlen(key);
	p[strcspn(p, "\n")] = '\0';
	snprintf(value, STATUS_VALUE_BYTES, "%s", p);
	return 1;
}

/* The number behind a key of /proc/PID/status. 1; 0: there is no such line; -errno. */
static int status_number(pid_t pid, const char *key, long *value)
{
	char path[64], text[STATUS_VALUE_BYTES];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	r = procfs_status_value(path, key, text);
	if (r == 1)
		*value = strtol(text, NULL, 10);
	return r;
}

#define PF_KTHREAD 0x00200000u /* the kernel's linux/sched.h */

int procfs_is_kernel(pid_t pid, bool *kernel)
{
	char text[1024], *p;
	unsigned int flags;
	long value = 0;
	int r = status_number(pid, "\nKthread:", &value); /* since Linux 6.8 */

	if (r) {
		*kernel = value;
		return r < 0 ? r : 0;
	}
	r = read_stat(pid, text, &p);
	if (!r && sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
		r = -EBADMSG;
	if (!r)
		*kernel = flags & PF_KTHREAD;
	return r;
}

/* Whether a thread has memory, which it gives up first when it ends. 0 or -errno. move_pages(2) of
 * no pages only looks for the memory. It takes a fifth of the time of reading /proc and never
 * waits, while a reader of the memory waits for an exec, which its process can delay. */
static int has_memory(pid_t tid, bool *has)
{
	char path[64], text[64];
	int r = (int)syscall(SYS_move_pages, tid, 0ul, NULL, NULL, NULL, 0);

	*has = !r;
	if (tid > 0 && (!r || errno == EINVAL || errno == ESRCH))
		return r && errno == ESRCH ? -ESRCH : 0;
	/* this user may not call it, or the kernel has no such call */
	snprintf(path, sizeof(path), "/proc/%d/statm", (int)tid);
	r = procfs_read_small(path, text, sizeof(text));
	*has = !r && strtoull(text, NULL, 10);
	return r;
}

struct search {
	pid_t found; /* 0: none */
	uint32_t tried;
};

static int find_living(void *arg, pid_t tid)
{
	struct search *s = arg;
	bool has;

	if (!has_memory(tid, &has) && has)
		s->found = tid;
	return s->found || ++s->tried == MOST_ENDED;
}

pid_t procfs_living_thread(pid_t pid)
{
	struct kept *kept = kept_of(pid);
	struct search s = {0};
	bool has;

	if (kept && (kept->has_leader || kept->has_none))
		return pid;
	if (!has_memory(pid, &has) && !has) {
		bool all = !procfs_each_thread(pid, find_living, &s);

		if (kept)
			kept->has_none = all && !s.found;
	} else if (kept) {
		kept->has_leader = true;
	}
	return s.found ? s.found : pid;
}

bool procfs_is_leaderless(pid_t pid)
{
	bool has;

	return has_memory(pid, &has) || !has;
}

bool procfs_is_exiting(pid_t pid)
{
	bool has;

	return has_memory(procfs_living_thread(pid), &has) || !has;
}

static ssize_t read_exe(pid_t tid, char *exe, size_t cap)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)tid);
	n = readlink(path, exe, cap - 1);
	exe[n < 0 ? 0 : n] = '\0';
	return n < 0 ? -errno : n;
}

ssize_t procfs_exe(pid_t pid, char *exe, size_t cap)
{
	struct kept *kept = kept_of(pid);
	ssize_t n;

	if (kept && kept->exe && kept->exe_len < cap) {
		memcpy(exe, kept->exe, kept->exe_len + 1);
		return (ssize_t)kept->exe_len;
	}
	n = kept && kept->has_none ? -ENOENT : read_exe(pid, exe, cap);
	if (n == -ENOENT) { /* its first thread has ended, or it has no memory */
		pid_t thread = procfs_living_thread(pid);

		n = thread != pid ? read_exe(thread, exe, cap) : n;
	} else if (n >= 0 && kept) {
		kept->has_leader = true;
	}
	if (kept && n >= 0 && (size_t)n < cap - 1) /* complete */
		kept_take_exe(kept, exe, (size_t)n);
	return n;
}

int procfs_start_ticks(pid_t pid, uint64_t *ticks)
{
	uint64_t user, system;

	return stat_fields(pid, &user, &system, ticks);
}

int procfs_used_ns(pid_t pid, uint64_t *used)
{
	struct timespec t;
	clockid_t clock;
	int r = clock_getcpuclockid(pid, &clock);

	if (r || clock_gettime(clock, &t))
		return r ? -r : -ESRCH;
	*used = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	return 0;
}

int procfs_cpu_ns(pid_t pid, uint64_t *user, uint64_t *system)
{
	uint64_t start, tick = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	int r = stat_fields(pid, user, system, &start);

	if (r)
		return r;
	*user *= tick;
	*system *= tick;
	return 0;
}

/* The last number of a line; fallback: there is no line. -EBADMSG: it has other characters. */
static pid_t last_number(const char *line, pid_t fallback)
{
	char *end;

	for (const char *p = line; *(p += strspn(p, " \t")); p = end) {
		fallback = (pid_t)strtol(p, &end, 10);
		if (end == p)
			return -EBADMSG;
	}
	return fallback;
}

int procfs_status(pid_t pid, struct procfs_status *s)
{
	char path[64], text[4096], line[STATUS_VALUE_BYTES] = "", *uid, *ns;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	r = procfs_read_small(path, text, sizeof(text));
	if (r)
		return r;
	uid = strstr(text, "\nUid:");
	if (!uid || sscanf(uid, "\nUid: %*u %u %*u %u", &s->uid, &s->fs_uid) != 2)
		return -EBADMSG;
	ns = strstr(text, "\nNSpid:");
	if (ns && strchr(ns + 1, '\n'))
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(ns + 7, "\n"), ns + 7);
	else /* the process is in many groups, or the kernel has no pid namespaces and no such line
	      */
		r = procfs_status_value(path, "\nNSpid:", line);
	s->ns_pid = last_number(line, pid);
	return r < 0 ? r : s->ns_pid > 0 ? 0 : -EBADMSG;
}

pid_t procfs_process_of(pid_t tid)
{
	long pid;

	return status_number(tid, "\nTgid:", &pid) == 1 ? (pid_t)pid : tid;
}

int procfs_parent(pid_t pid, pid_t *parent)
{
	char text[1024], *p;
	int r = read_stat(pid, text, &p);

	if (r)
		return r;
	return sscanf(p + 1, " %*c %d", parent) == 1 ? 0 : -EBADMSG;
}

bool procfs_is_own(pid_t pid)
{
	long parent;

	if (pid == getpid())
		return true;
	return status_number(pid, "\nPPid:", &parent) == 1 && parent == getpid();
}
