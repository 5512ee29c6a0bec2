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

/* An executable mapping: addresses [lo, hi), from `offset` of the file on. Names and pointers are
 * valid until the callback returns. */
struct procfs_mapping {
	uint64_t lo, hi, offset;
	uint64_t ino;        /* 0: not known */
	uint64_t generation; /* of the inode, whose number can be reused; 0: not known */
	uint32_t dev_major, dev_minor;
	const char *name; /* as the kernel prints it; "": anonymous */
	/* Of executable memory, see procfs_is_memory(): the mappings of files below and above it,
	 * executable or not, with other memory in between at most. NULL: none. */
	const struct procfs_mapping *below, *above;
	bool beside; /* it is only there because of such a pointer: maps_reader.h */
};

/* Is it memory, by its name: anonymous, shared, of huge pages, a memfd? */
bool procfs_is_memory(const struct procfs_mapping *);

/* Each calls each() until that returns non-zero, and returns its value then. */
int procfs_each_mapping(pid_t pid, int (*each)(void *arg, const struct procfs_mapping *),
			void *arg);
int procfs_each_thread(pid_t pid, int (*each)(void *arg, pid_t tid), void *arg);
int procfs_each_process(int (*each)(void *arg, pid_t pid), void *arg);

/* Reads a /proc file up to cap - 1 bytes, terminated. 0; -ESRCH: it is not there, and buf is as it
 * was; or -errno. */
int procfs_read_small(const char *path, char *buf, size_t cap);
int procfs_comm(pid_t pid, pid_t tid, char comm[16]);
/* The start of a process in clock ticks since boot: with the pid it identifies the process. Waits
 * while the process executes a program, which it can draw out (as of Linux 6.18). */
int procfs_start_ticks(pid_t pid, uint64_t *ticks);
/* The same, of the text of /proc/PID/stat. 0 or -EBADMSG. */
int procfs_parse_start(const char *stat, uint64_t *ticks);
/* A number that no other process of this boot has, to be compared with others of this function. On
 * Linux 6.9 and later it waits for nothing; before, it is procfs_start_ticks(). */
int procfs_identity(pid_t pid, uint64_t *identity);
/* Whether it is a kernel thread. Needs no right to look into the process. */
int procfs_is_kernel(pid_t pid, bool *kernel);
/* The thread by whose /proc/TID to read a process: its first or, where that has ended and others go
 * on, one of these. Of the first the kernel then knows neither memory nor files, nor namespaces
 * nor, in version 1, control groups; still the start and CPU time of the process, and its user.
 * pid: all have ended, or the process is not there. */
pid_t procfs_living_thread(pid_t pid);
/* Its first thread has no memory any more, or is not there: the process has ended, or others of its
 * threads go on. True of kernel threads too. */
bool procfs_is_leaderless(pid_t pid);
/* The process has ended, or is about to: some files of it say what does not hold any more. True of
 * kernel threads too. */
bool procfs_is_exiting(pid_t pid);
/* The path of its executable, terminated, up to cap - 1 bytes. The length or -errno; -ENOENT: it is
 * a kernel thread, or has ended. */
ssize_t procfs_exe(pid_t pid, char *exe, size_t cap);
/* CPU time of all threads, in ns, rounded to clock ticks. */
int procfs_cpu_ns(pid_t pid, uint64_t *user, uint64_t *system);

/* Of /proc/PID/status. */
struct procfs_status {
	uid_t uid;    /* effective */
	uid_t fs_uid; /* of files that the process creates */
	pid_t ns_pid; /* its pid in its innermost pid namespace */
};
int procfs_status(pid_t pid, struct procfs_status *);
/* The process that a thread is of; tid: it is not there. */
pid_t procfs_process_of(pid_t tid);
int procfs_parent(pid_t pid, pid_t *parent);
/* Is it this process or a child of it? */
bool procfs_is_own(pid_t pid);
#endif
