/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner of a file's bytes. Files that a worker has read may have taken it over, so it reads
 * files of one owner only. Clean files were written by root; only inspections of clean files, and
 * of the agent's own user's, are kept on disk, under a name that the agent makes. One thread.
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

/* clean: root's file on a known file system, to which no other user can write. A file of an unknown
 * file system, as a container's, belongs to its user there and nowhere else. */
struct owner {
	uint64_t dev; /* 0: a known file system */
	uint32_t uid;
	bool clean;
	bool fetched; /* with a debug file from a server, which makes it an owner of its own */
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
/* Whether inspections of its files may be kept on disk: it is clean, or the agent's own user. */
bool owner_is_kept(const struct owner *);
/* The name of its inspection on disk: a hash of what identifies the file, of its owner and of the
 * unwinders. unwinders NULL: none. */
void owner_key(const struct owner_identity *, const struct plugin_set *unwinders, uint8_t key[32]);
/* The name of its table of names on disk: a hash of what identifies the file and its debug file
 * (zeros: none), and of `stamp`, which differs where tables of the same files do. */
void owner_names_key(const struct owner_identity *, const struct owner_identity *debug,
		     uint64_t stamp, uint8_t key[32]);
#endif
