/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads /proc: processes, threads and mappings that existed before the sideband records. Functions
 * return 0 or -errno; -ESRCH: the process ended; -EACCES, -EPERM: no right to look into it.
 * [any thread]
 */
#ifndef PROCESS_PROCFS_H
#define PROCESS_PROCFS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* An executable mapping of the addresses [lo, hi), from `offset` of the file on. Names and pointers
 * are valid until the callback returns. */
struct procfs_mapping {
	uint64_t lo, hi, offset;
	uint64_t ino;        /* 0: not known */
	uint64_t generation; /* of the inode, whose number can be reused; 0: not known */
	uint32_t dev_major, dev_minor;
	const char *name; /* as the kernel prints it; "": anonymous */
	/* Of executable memory (procfs_is_memory()): the nearest mappings of files below and above
	 * it, executable or not. NULL: none; `above` also if other code is in between. */
	const struct procfs_mapping *below, *above;
	bool beside; /* not executable, kept because `below` or `above` of another point to it */
};

/* Whether the name is of memory: anonymous, shared, of huge pages, a memfd. */
bool procfs_is_memory(const struct procfs_mapping *);

/* These call each() until it returns non-zero, and return that value. */
int procfs_each_mapping(pid_t pid, int (*each)(void *arg, const struct procfs_mapping *),
			void *arg);
int procfs_each_thread(pid_t pid, int (*each)(void *arg, pid_t tid), void *arg);
int procfs_each_process(int (*each)(void *arg, pid_t pid), void *arg);

/* Reads a /proc file up to cap - 1 bytes, terminated. 0; -ESRCH: it does not exist, and buf is
 * unchanged; or -errno. */
int procfs_read_small(const char *path, char *buf, size_t cap);
int procfs_comm(pid_t pid, pid_t tid, char comm[16]);
/* The start of a process in clock ticks since boot: with the pid it identifies the process. Waits
 * for an exec of the process, which the process can delay (as of Linux 6.18). */
int procfs_start_ticks(pid_t pid, uint64_t *ticks);
/* The same, of the text of /proc/PID/stat. 0 or -EBADMSG. */
int procfs_parse_start(const char *stat, uint64_t *ticks);
/* A number that identifies the process, with its pid, among all processes since boot. Compare it
 * only with other results of this function. On Linux 6.9 and later the call never waits; before, it
 * is procfs_start_ticks(). */
int procfs_identity(pid_t pid, uint64_t *identity);
/* procfs_identity() and the real user, where the kernel says both without being able to wait: since
 * Linux 6.13. 0 or -errno. */
int procfs_identity_and_user(pid_t pid, uint64_t *identity, uid_t *real);
/* A number of its control group of cgroup2, which no later group has; 0: the kernel, before 6.13,
 * does not say it without being able to wait. */
uint64_t procfs_cgroup_id(pid_t pid);
/* From now on this thread keeps what it reads of the process: its leader, identity,
 * users and executable. While an event of the process is handled, several parts need the same, and
 * what changes meanwhile has an event of its own. 0: keeps nothing any more. */
void procfs_keep(pid_t pid);
/* Whether it is a kernel thread. Needs no right to look into the process. */
int procfs_is_kernel(pid_t pid, bool *kernel);
/* The thread by whose /proc/TID a process can be read: its first thread or, if that has ended and
 * others go on, one of the others. /proc of a first thread that has ended has no memory, files and
 * namespaces and, in version 1, no control groups; it still has the start, CPU time and user of the
 * process. Returns pid if all threads have ended, or there is no such process. */
pid_t procfs_living_thread(pid_t pid);
/* Whether the first thread has no memory any more, or does not exist: the process has ended, or
 * others of its threads go on. Also true for kernel threads. */
bool procfs_is_leaderless(pid_t pid);
/* Whether the process has ended or is about to, so that some of its files in /proc are not valid
 * any more. Also true for kernel threads. */
bool procfs_is_exiting(pid_t pid);
/* The path of its executable, terminated, up to cap - 1 bytes. The length or -errno; -ENOENT: it is
 * a kernel thread, or has ended. */
ssize_t procfs_exe(pid_t pid, char *exe, size_t cap);
/* CPU time of all threads, in ns, rounded to clock ticks. */
int procfs_cpu_ns(pid_t pid, uint64_t *user, uint64_t *system);

/* CPU time of all threads, in ns. Can't wait, and needs no right to look into the process. */
int procfs_used_ns(pid_t pid, uint64_t *used);

/* Values of /proc/PID/status. */
struct procfs_status {
	uid_t uid;    /* effective */
	uid_t fs_uid; /* of files that the process creates */
	pid_t ns_pid; /* its pid in its innermost pid namespace */
};
int procfs_status(pid_t pid, struct procfs_status *);
/* Its `uid` alone, which is cheaper. */
int procfs_user(pid_t pid, uid_t *uid);
/* The process to which a thread belongs; tid: there is no such thread. */
pid_t procfs_process_of(pid_t tid);
int procfs_parent(pid_t pid, pid_t *parent);
/* Whether it is this process or a child of it. */
bool procfs_is_own(pid_t pid);
#endif
