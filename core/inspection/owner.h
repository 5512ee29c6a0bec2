/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner of a file's bytes. A malicious file may control the worker that reads it, so a worker
 * reads files of one owner only. A file is clean if only root can have written it. Inspections of
 * clean files, and of files of the agent's own user, are kept on disk, under names that the agent
 * makes. One thread.
 */
#ifndef INSPECTION_OWNER_H
#define INSPECTION_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin/plugin.h"

#define OWNER_MAX_DEVICES 16u

/* File systems that root mounted and that report owners truly. */
struct owner_devices {
	uint32_t n;
	struct {
		uint64_t dev, fsid;
	} at[OWNER_MAX_DEVICES];
};

/* clean: a regular file of root on a known file system, to which no other user can write. On an
 * unknown file system, such as a container's, an owner is a user of that file system only. */
struct owner {
	uint64_t dev; /* 0: a known file system */
	uint32_t uid;
	bool clean;
	bool fetched; /* read together with a debug file of a server: another owner */
};

/* If these are equal, the file is unchanged. */
struct owner_identity {
	uint64_t fsid, ino, size;
	int64_t mtime_ns, ctime_ns;
	uint32_t uid, mode;
};

struct owner_file {
	struct owner owner;
	struct owner_identity identity;
	uint64_t dev, stored; /* stored: bytes on disk */
};

/* Finds the file systems of the agent's own /, /usr, /tmp and the like. */
void owner_find_devices(struct owner_devices *);
/* Reads the kernel's data about an open file without waiting for a file server. 0 or -errno. */
int owner_of(const struct owner_devices *, int fd, struct owner_file *);
bool owner_equal(const struct owner *, const struct owner *);
/* Whether inspections of its files may be kept on disk: they are clean, or are on a known file
 * system and belong to the agent's own user, who is not root. */
bool owner_is_kept(const struct owner *);
/* The name on disk of the file's inspection: a hash of the identity and of the unwinders.
 * unwinders NULL: none. */
void owner_key(const struct owner_identity *, const struct plugin_set *unwinders, uint8_t key[32]);
/* The name on disk of the file's table of names: a hash of the identities of the file and of its
 * debug file (zeros: none), and of `stamp`, which differs where tables of the same files differ. */
void owner_names_key(const struct owner_identity *, const struct owner_identity *debug,
		     uint64_t stamp, uint8_t key[32]);
#endif
