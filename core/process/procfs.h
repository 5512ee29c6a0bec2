/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says of a process: read once for what ran before us, and to open the files that it
 * maps. */
#ifndef PROCESS_PROCFS_H
#define PROCESS_PROCFS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* One executable mapping. name: as the kernel prints it, "" anonymous; lives until the callback
 * returns. */
struct procfs_mapping {
	uint64_t lo, hi, offset;
	uint64_t ino;
	uint64_t
		generation; /* of the inode: its number may be a new file's already; 0: not known */
	uint32_t dev_major, dev_minor;
	const char *name;
};

/* 0, or -errno (-ESRCH: gone; -EACCES: not ours). A callback that returns non-zero ends it, with
 * that value. */
int procfs_each_mapping(pid_t pid, int (*each)(void *arg, const struct procfs_mapping *),
			void *arg);
int procfs_each_thread(pid_t pid, int (*each)(void *arg, pid_t tid), void *arg);
int procfs_each_process(int (*each)(void *arg, pid_t pid), void *arg);

int procfs_comm(pid_t pid, pid_t tid, char comm[16]);
int procfs_start_ticks(pid_t pid,
		       uint64_t *ticks); /* since boot, in clock ticks: names one life of a pid */
/* Whether it is a thread of the kernel's own; needs no right to look into it. */
int procfs_is_kernel(pid_t pid, bool *kernel);

/* Of /proc/PID/status. */
struct procfs_status {
	uid_t uid, fs_uid; /* effective; of the files it makes */
	pid_t ns_pid;      /* in the innermost pid namespace that it is in */
};
int procfs_status(pid_t pid, struct procfs_status *); /* 0 or -errno */
int procfs_cpu_ns(pid_t pid, uint64_t *user, uint64_t *system);

/*
 * Opens the file behind a mapping: by /proc/PID/map_files (right even for deleted and replaced
 * files, but wants CAP_CHECKPOINT_RESTORE), else by its path in the process's root, else, for a
 * process that is gone, by its path in ours. Only a regular file with the mapping's inode, and its
 * generation where the file system tells, is opened (0 is not compared). fd or -errno.
 */
int procfs_open_mapping(pid_t pid, const struct procfs_mapping *);
#endif
