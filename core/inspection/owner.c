// SPDX-License-Identifier: Apache-2.0
/* The owner of a file's bytes, and the name of its inspection on disk. */
#include "inspection/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <openssl/sha.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "plugin/instance.h"
#include "inspection/internal/block.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#ifndef ZFS_SUPER_MAGIC
#define ZFS_SUPER_MAGIC 0x2fc12fc1
#endif

/* File systems that update a file's ctime, in ns, at each change. FUSE is not among them, as a
 * user's process may implement it. */
static bool is_known_type(uint64_t type)
{
	static const uint32_t types[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,  BTRFS_SUPER_MAGIC,
					 TMPFS_MAGIC,      F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC,
					 ZFS_SUPER_MAGIC};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (type == types[i])
			return true;
	return false;
}

void owner_find_devices(struct owner_devices *d)
{
	static const char *const paths[] = {"/",    "/usr", "/usr/local", "/lib", "/opt",
					    "/var", "/tmp", "/var/tmp",   "/nix", "/gnu"};
	struct statfs fs;
	struct stat st;

	d->n = 0;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths) && d->n < OWNER_MAX_DEVICES; i++) {
		uint32_t at = 0;

		if (stat(paths[i], &st) || statfs(paths[i], &fs) ||
		    !is_known_type((uint64_t)fs.f_type))
			continue;
		while (at < d->n && d->at[at].dev != st.st_dev)
			at++;
		if (at < d->n)
			continue;
		d->at[d->n].dev = st.st_dev;
		memcpy(&d->at[d->n++].fsid, &fs.f_fsid, 8);
	}
}

static int64_t nanoseconds(struct statx_timestamp t)
{
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

int owner_of(const struct owner_devices *d, int fd, struct owner_file *f)
{
	struct statx x;
	bool known = false;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &x))
		return -errno;
	*f = (struct owner_file){
		.owner = {.uid = x.stx_uid},
		.identity = {.ino = x.stx_ino,
			     .size = x.stx_size,
			     .mtime_ns = nanoseconds(x.stx_mtime),
			     .ctime_ns = nanoseconds(x.stx_ctime),
			     .uid = x.stx_uid,
			     .mode = x.stx_mode},
		.dev = makedev(x.stx_dev_major, x.stx_dev_minor),
		.stored = x.stx_blocks * 512,
	};
	for (uint32_t i = 0; i < d->n && !known; i++) {
		known = d->at[i].dev == f->dev;
		f->identity.fsid = known ? d->at[i].fsid : 0;
	}
	if (!known)
		f->owner.dev = f->dev;
	/* Only regular files have bytes. */
	f->owner.clean = known && S_ISREG(x.stx_mode) && !x.stx_uid && !(x.stx_mode & 022);
	return 0;
}

bool owner_equal(const struct owner *a, const struct owner *b)
{
	return a->dev == b->dev && a->uid == b->uid && a->clean == b->clean &&
	       a->fetched == b->fetched;
}

bool owner_is_kept(const struct owner *o)
{
	return o->clean || (geteuid() && !o->dev && o->uid == geteuid());
}

static void add(SHA256_CTX *h, const void *p, uint64_t len)
{
	SHA256_Update(h, &len, sizeof(len));
	SHA256_Update(h, p, len);
}

void owner_key(const struct owner_identity *i, const struct plugin_set *unwinders, uint8_t key[32])
{
	uint32_t version = INSPECTION_VERSION;
	SHA256_CTX h;

	SHA256_Init(&h);
	add(&h, &version, sizeof(version));
	add(&h, i, sizeof(*i));
	for (uint32_t u = 0; unwinders && u < unwinders->n; u++) {
		const struct fusee_plugin *d = unwinders->instances[u]->descriptor;
		const struct fusee_unwinder_ops *ops = d->ops;
		struct plugin_stamp stamp = plugin_stamp(d);

		add(&h, d->name, strlen(d->name));
		add(&h, &stamp, sizeof(stamp));
		add(&h, &ops->slab_version, sizeof(ops->slab_version));
		add(&h, unwinders->instances[u]->given, strlen(unwinders->instances[u]->given));
	}
	SHA256_Final(key, &h);
}

void owner_names_key(const struct owner_identity *i, const struct owner_identity *debug,
		     uint64_t stamp, uint8_t key[32])
{
	static const char what[] = "names";
	SHA256_CTX h;

	SHA256_Init(&h);
	add(&h, what, sizeof(what));
	add(&h, &stamp, sizeof(stamp));
	add(&h, i, sizeof(*i));
	add(&h, debug, sizeof(*debug));
	SHA256_Final(key, &h);
}
