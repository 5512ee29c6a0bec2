/* SPDX-License-Identifier: Apache-2.0 */
#include "events/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "process/procfs.h"

#define RING (512 * 1024)
#define CAP_ADMIN 21
#define CAP_PERFMON 38

static const char *const cap_names[] = {
	"CAP_CHOWN",
	"CAP_DAC_OVERRIDE",
	"CAP_DAC_READ_SEARCH",
	"CAP_FOWNER",
	"CAP_FSETID",
	"CAP_KILL",
	"CAP_SETGID",
	"CAP_SETUID",
	"CAP_SETPCAP",
	"CAP_LINUX_IMMUTABLE",
	"CAP_NET_BIND_SERVICE",
	"CAP_NET_BROADCAST",
	"CAP_NET_ADMIN",
	"CAP_NET_RAW",
	"CAP_IPC_LOCK",
	"CAP_IPC_OWNER",
	"CAP_SYS_MODULE",
	"CAP_SYS_RAWIO",
	"CAP_SYS_CHROOT",
	"CAP_SYS_PTRACE",
	"CAP_SYS_PACCT",
	"CAP_SYS_ADMIN",
	"CAP_SYS_BOOT",
	"CAP_SYS_NICE",
	"CAP_SYS_RESOURCE",
	"CAP_SYS_TIME",
	"CAP_SYS_TTY_CONFIG",
	"CAP_MKNOD",
	"CAP_LEASE",
	"CAP_AUDIT_WRITE",
	"CAP_AUDIT_CONTROL",
	"CAP_SETFCAP",
	"CAP_MAC_OVERRIDE",
	"CAP_MAC_ADMIN",
	"CAP_SYSLOG",
	"CAP_WAKE_ALARM",
	"CAP_BLOCK_SUSPEND",
	"CAP_AUDIT_READ",
	"CAP_PERFMON",
	"CAP_BPF",
	"CAP_CHECKPOINT_RESTORE",
};

const char *probe_cap_name(unsigned int cap)
{
	return cap < sizeof(cap_names) / sizeof(*cap_names) ? cap_names[cap] : NULL;
}

/* The value of "Name:" in /proc/self/status, a number of this base; 0: there is none. */
static uint64_t status_field(const char *name, int base)
{
	char line[256];
	uint64_t value = 0;
	size_t len = strlen(name);
	FILE *f = fopen("/proc/self/status", "re");

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && line[len] == ':')
			value = strtoull(line + len + 1, NULL, base);
	fclose(f);
	return value;
}

uint64_t probe_caps(void)
{
	return status_field("CapEff", 16);
}

bool probe_seccomp(void)
{
	return status_field("Seccomp", 10) == 2;
}

static int sysctl_int(const char *path)
{
	int value = PROBE_UNKNOWN;
	FILE *f = fopen(path, "re");

	if (!f)
		return PROBE_UNKNOWN;
	if (fscanf(f, "%d", &value) != 1)
		value = PROBE_UNKNOWN;
	fclose(f);
	return value;
}

static int perf_open(struct perf_event_attr *attr, pid_t pid, int cpu, unsigned long flags)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1,
			      flags | PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* 0 or -errno */
static int perf_try(struct perf_event_attr *attr, pid_t pid, int cpu, unsigned long flags)
{
	int fd = perf_open(attr, pid, cpu, flags);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static struct perf_event_attr attr_base(void)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000 * 1000,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
}

static uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Uses the CPU until the event's ring has a record: for half a second of CPU time at most, or for 5
 * s on a busy machine. Most of it is outside of the kernel, which the event does not sample. */
static int perf_wait(int fd, const struct perf_event_mmap_page *page)
{
	uint64_t end = clock_now() + 5000000000u, cpu_end = cpu_ns() + 500000000u;

	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return -errno;
	while (!__atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE)) {
		if (clock_now() > end || cpu_ns() > cpu_end)
			return -ETIME;
		for (volatile int i = 0; i < 200000; i++)
			;
	}
	return 0;
}

static int probe_own(void)
{
	struct perf_event_attr attr = attr_base();

	return perf_try(&attr, 0, -1, 0);
}

static void perf_own(struct probe_perf *ret)
{
	struct perf_event_attr attr = attr_base();
	size_t len = RING + (size_t)sysconf(_SC_PAGESIZE);
	void *page;
	int fd;

	attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr.sample_regs_user = 0xff0fff; /* all user registers of x86-64 */
	attr.sample_stack_user = 65528;
	ret->ring = ret->arrives = -ECANCELED;
	fd = perf_open(&attr, 0, -1, 0);
	ret->own = fd < 0 ? fd : 0;
	if (fd < 0)
		return;
	page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ret->ring = page == MAP_FAILED ? -errno : 0;
	if (page != MAP_FAILED) {
		ret->arrives = perf_wait(fd, page);
		munmap(page, len);
	}
	close(fd);
}

static int perf_cgroup(void)
{
	static const char *const roots[] = {"/sys/fs/cgroup/perf_event", "/sys/fs/cgroup",
					    "/sys/fs/cgroup/unified"};
	struct perf_event_attr attr = attr_base();
	int r = -ENOENT;

	for (size_t i = 0; r && i < sizeof(roots) / sizeof(*roots); i++) {
		int fd = open(roots[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0)
			continue;
		r = perf_try(&attr, fd, 0, PERF_FLAG_PID_CGROUP);
		close(fd);
	}
	return r;
}

void probe_perf(struct probe_perf *ret)
{
	struct perf_event_attr attr = attr_base();

	ret->paranoid = sysctl_int("/proc/sys/kernel/perf_event_paranoid");
	ret->mlock_kb = sysctl_int("/proc/sys/kernel/perf_event_mlock_kb");
	perf_own(ret);
	ret->others = perf_try(&attr, 1, -1, 0);
	ret->all = perf_try(&attr, -1, 0, 0);
	ret->cgroup = perf_cgroup();
	attr.mmap = attr.mmap2 = 1;
	attr.build_id = 1;
	ret->build_ids = perf_try(&attr, 0, -1, 0);
	attr = attr_base();
	attr.exclude_kernel = 0;
	attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	ret->kernel = perf_try(&attr, 0, -1, 0);
	attr = attr_base();
	attr.type = PERF_TYPE_HARDWARE;
	attr.config = PERF_COUNT_HW_CPU_CYCLES;
	ret->cycles = perf_try(&attr, 0, -1, 0);
}

int probe_kallsyms(void)
{
	char line[512];
	int r = -EPERM;
	FILE *f = fopen("/proc/kallsyms", "re");

	if (!f)
		return -errno;
	/* hidden addresses are 0; so are those of a few per-CPU symbols */
	while (r && fgets(line, sizeof(line), f))
		if (strtoull(line, NULL, 16) >> 32)
			r = 0;
	fclose(f);
	return r;
}

int probe_map_files(void)
{
	char line[512], path[128];
	unsigned long lo, hi, inode;
	int r = -ENOENT, fd;
	FILE *f = fopen("/proc/self/maps", "re");

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %*s %*s %*s %lu", &lo, &hi, &inode) != 3 || !inode)
			continue;
		snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", lo, hi);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
		if (fd >= 0)
			close(fd);
		break;
	}
	fclose(f);
	return r;
}

static const char *user_name(uid_t uid, char *to, size_t size)
{
	const struct passwd *p = getpwuid(uid);

	if (p)
		snprintf(to, size, "user %s", p->pw_name);
	else
		snprintf(to, size, "uid %u", (unsigned int)uid);
	return to;
}

/* "pid 812 (postgres)" */
static void add_pid(struct buf *b, pid_t pid)
{
	char comm[16] = "";

	procfs_comm(pid, pid, comm);
	buf_printf(b, "pid %d", (int)pid);
	if (*comm)
		buf_printf(b, " (%s)", comm);
}

/* The user of the process. 0 or -errno. */
static int pid_owner(pid_t pid, uid_t *uid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st))
		return -errno;
	*uid = st.st_uid;
	return 0;
}

/* A command line and what it does, in two columns. */
static void add_way(struct buf *b, const char *paste, const char *does)
{
	buf_printf(b, "\n    %-48s  %s", paste, does);
}

static void add_sudo(struct buf *b, const struct probe_target *t)
{
	char line[512];

	snprintf(line, sizeof(line), "sudo %s", t->again);
	add_way(b, line, t->pid || t->all ? "once" : "once (the program still runs as you)");
}

static void add_setcap(struct buf *b)
{
	char exe[PATH_MAX], line[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n <= 0)
		return;
	exe[n] = 0;
	snprintf(line, sizeof(line), "sudo setcap cap_perfmon,cap_sys_ptrace+ep %s", exe);
	add_way(b, line, "for good, this program only");
}

static void add_sysctl(struct buf *b, int level)
{
	char line[64];

	snprintf(line, sizeof(line), "sudo sysctl kernel.perf_event_paranoid=%d", level);
	add_way(b, line, "until the next boot, every profiler");
}

static void explain_filter(struct buf *b)
{
	buf_str(b,
		"a seccomp filter around this process forbids sampling (perf_event_open); one of "
		"these helps:");
	add_way(b, "docker run --cap-add PERFMON ...", "podman likewise");
	add_way(b, "capabilities: {add: [PERFMON]}", "in the container's securityContext");
	add_way(b, "SystemCallFilter=perf_event_open", "in the systemd unit, if it has a filter");
}

/* Levels above 2 exist on Debian and Ubuntu only, and require CAP_SYS_ADMIN. */
static void explain_paranoid(struct buf *b, int paranoid, const struct probe_target *t)
{
	buf_printf(b,
		   "this kernel lets only root sample%s (kernel.perf_event_paranoid is %d); one of "
		   "these helps:",
		   paranoid > 2 ? "" : " other users' programs", paranoid);
	add_sudo(b, t);
	if (paranoid <= 2)
		add_setcap(b);
	add_sysctl(b, t->all ? 0 : 2);
}

/* Events can be opened: the mapping of the ring failed. */
static void explain_locked_memory(struct buf *b, const struct probe_target *t)
{
	buf_printf(b,
		   "no memory for sample buffers: %d kB a CPU are allowed, and 'ulimit -l' on top; "
		   "one of these helps:",
		   sysctl_int("/proc/sys/kernel/perf_event_mlock_kb"));
	add_sudo(b, t);
	add_way(b, "sudo sysctl kernel.perf_event_mlock_kb=4096", "until the next boot");
}

static void explain_refused(struct buf *b, int error, const struct probe_target *t)
{
	int paranoid = sysctl_int("/proc/sys/kernel/perf_event_paranoid");
	bool admin = probe_caps() & (1ull << CAP_ADMIN);
	bool perfmon = admin || (probe_caps() & (1ull << CAP_PERFMON));
	uid_t uid = geteuid();
	char name[128];

	if (t->pid && !pid_owner(t->pid, &uid) && uid != geteuid() && !perfmon) {
		add_pid(b, t->pid);
		user_name(uid, name, sizeof(name));
		buf_printf(b, " belongs to %s: run fusee as root%s%s", name, uid ? " or as " : "",
			   uid ? strchr(name, ' ') + 1 : "");
	} else if ((paranoid > 2 && !admin) || (t->all && paranoid > 0 && !perfmon)) {
		explain_paranoid(b, paranoid, t);
	} else if (error == EPERM && !probe_own()) {
		explain_locked_memory(b, t);
	} else if (probe_seccomp()) {
		explain_filter(b);
	} else if (t->pid && !perfmon) {
		add_pid(b, t->pid);
		buf_str(b, " runs with more privileges than fusee has: run fusee as root");
	} else {
		buf_printf(b,
			   "the kernel refuses to sample (perf_event_open: %s); a security module "
			   "or a "
			   "container's rules may forbid it: run fusee outside of them",
			   strerror(error));
	}
}

static void explain_no_events(struct buf *b)
{
	if (probe_seccomp())
		explain_filter(b);
	else
		buf_str(b, "this kernel was built without perf events (CONFIG_PERF_EVENTS): "
			   "nothing can be sampled on it");
}

char *probe_explain(int error, const struct probe_target *t)
{
	struct buf b = {0};

	error = error < 0 ? -error : error;
	switch (error) {
	case EACCES:
	case EPERM:
		explain_refused(&b, error, t);
		break;
	case ESRCH:
		buf_printf(&b, "there is no process %d", (int)t->pid);
		break;
	case EMFILE:
	case ENFILE:
		buf_str(&b, "too few file descriptors for one event for each thread and CPU; raise "
			    "the limit:");
		add_way(&b, "ulimit -n $(ulimit -Hn)", "in this shell");
		break;
	case ENOSYS:
		explain_no_events(&b);
		break;
	case ENOENT:
	case EOPNOTSUPP:
	case ENODEV:
		buf_str(&b, "this machine has no such counter (a virtual machine without a PMU?): "
			    "leave the "
			    "event out and CPU time is sampled");
		break;
	default:
		buf_printf(&b, "cannot sample: perf_event_open: %s", strerror(error));
	}
	buf_add(&b, "", 1);
	if (b.error) {
		buf_fini(&b);
		return NULL;
	}
	return (char *)b.p;
}
