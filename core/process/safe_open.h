/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files by names that other users chose. A name is first resolved to an O_PATH descriptor,
 * which does not open the file, and is checked; only a regular file is then opened. Each call can
 * block for as long as the file system to which the name leads. [any thread]
 */
#ifndef PROCESS_SAFE_OPEN_H
#define PROCESS_SAFE_OPEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "process/procfs.h"

/* Returns an O_PATH descriptor of the path, with `root` as "/", or -errno. Neither ".." nor a link
 * leads out of it. No link of /proc is followed; with `resolve` RESOLVE_NO_SYMLINKS no link at all.
 */
int safe_hold(int root, const char *path, uint64_t resolve);
/* Opens the file of an O_PATH descriptor for reading. Returns a descriptor or -errno; -EINVAL: it
 * is not a regular file, and was not opened. st: of the file. `held` stays open. */
int safe_reopen(int held, struct stat *st);

/* Finds the mount of this descriptor in a file such as /proc/PID/mountinfo. *dev: its device, as
 * the kernel also prints it for mappings. false: the mount is not in it. */
bool safe_mount_device(int fd, const char *mountinfo, dev_t *dev);

/* As safe_open_mapping(), but no user can keep it waiting: opens the mapping's path below fusee's
 * own root, if all of the path is on the root's file system, that is on a disk, and the kernel has
 * the names in memory. -EAGAIN: it has not. One thread. */
int safe_open_own(const struct procfs_mapping *);

/*
 * Opens the file behind a mapping: by /proc/PID/map_files (correct even for deleted and replaced
 * files; needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN), else by its
 * path below the process's root, else, if the inode is known, by its path below the own root, as
 * the process may have ended. Returns a descriptor or -errno.
 *
 * The descriptor is of a regular file with the mapping's inode number, device and, where the file
 * system reports it, generation. What is 0 in the mapping is not compared. No symbolic link in the
 * path is followed.
 */
int safe_open_mapping(pid_t pid, const struct procfs_mapping *);
#endif
