/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose bytes a file has. A worker that has read the files of an owner may have been taken over by
 * them, so it reads no other owner's. What is clean was written by root: only its inspections are
 * kept on disk, under a name that the agent makes. One thread.
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

/* clean: root's file on a known file system, which no other user can write. A file of an unknown
 * file system, as a container's, belongs to its user there and nowhere else. */
struct owner {
	uint64_t dev; /* 0: a known file system */
	uint32_t uid;
	bool clean;
	bool fetched; /* with a debug file of a server, which is its own kind of owner */
};

/* What says that a file is unchanged. */
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

/* Those of the agent's own /, /usr, /tmp and the like. */
void owner_find_devices(struct owner_devices *);
/* Reads what the kernel knows of an open file; waits for no file server. 0 or -errno. */
int owner_of(const struct owner_devices *, int fd, struct owner_file *);
bool owner_equal(const struct owner *, const struct owner *);
/* Whether an inspection of it may be kept on disk: it is clean, or the agent's own user's. */
bool owner_is_kept(const struct owner *);
/* The name of its inspection on disk: a hash of what identifies the file, of its owner and of the
 * unwinders. unwinders NULL: none. */
void owner_key(const struct owner_identity *, const struct plugin_set *unwinders, uint8_t key[32]);
#endif
