/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles as files. A file is written under a temporary name, synced and renamed, so that a reader
 * never sees an incomplete file. Other users may be able to write into the directory: no link in it
 * is followed, and only files with the form of this sink's own names are removed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <fusee/folder.h>

#include "name.h"

struct pprof {
	struct fusee_self self;
	struct fusee_folder folder;
};

static const struct fusee_option options[] = {
	FUSEE_FOLDER_OPTIONS(struct pprof, folder, "7d", "1GiB"),
};

/* ---- the folder ---- */

static int each_file(int dir, struct fusee_folder_scan *scan)
{
	DIR *d = fusee_folder_list(dir);
	const struct dirent *e;
	uint64_t ns;
	int r;

	if (!d)
		return -errno;
	while ((errno = 0, e = readdir(d))) {
		if (name_is_unfinished(e->d_name))
			fusee_folder_remove_unlocked(dir, e->d_name);
		else if (name_is_ours(e->d_name, &ns))
			fusee_folder_found(scan, dir, e->d_name, ns, 0);
	}
	r = -errno;
	closedir(d);
	return r;
}

static int remove_file(int dir, const char *name, uint32_t table)
{
	(void)table;
	return unlinkat(dir, name, 0) ? -errno : 0;
}

static const struct fusee_folder_ops folder_ops = {.each = each_file, .remove = remove_file};

/* ---- a window ---- */

static int write_file(struct pprof *s, int dir, const char *name, struct fusee_str bytes)
{
	char part[NAME_SIZE];
	int fd, r;

	name_make_unfinished(part, name);
	fd = fusee_folder_create(dir, part, s->folder.file_mode);
	if (fd < 0)
		return fd;
	r = fusee_folder_write(fd, bytes.p, bytes.len);
	if (!r && fsync(fd))
		r = -errno;
	if (!r && renameat(dir, part, dir, name))
		r = -errno;
	if (r)
		unlinkat(dir, part, 0);
	/* a file system that cannot sync directories says EINVAL */
	else if (fsync(dir) && errno != EINVAL)
		r = -errno;
	if (close(fd) && !r)
		r = -errno;
	return r;
}

static int fail_lost(struct pprof *s, int err, const char *name)
{
	fusee_folder_count_lost(&s->folder, err);
	return fusee_fail(&s->self, err == -EAGAIN ? -EIO : err, "cannot write '%s/%s': %s",
			  s->folder.dir, name, strerror(-err));
}

/* Writes one file, after removing old files: that must happen also when the disk is full. */
static int store(struct pprof *s, int dir, const char *name, struct fusee_str bytes)
{
	int r;

	if (s->folder.max_size && bytes.len > s->folder.max_size) {
		fusee_folder_count_lost(&s->folder, -EFBIG);
		return fusee_fail(&s->self, -EFBIG,
				  "a profile of %llu bytes is more than 'max_size' allows",
				  (unsigned long long)bytes.len);
	}
	r = fusee_folder_make_room(&s->folder, dir, bytes.len);
	if (!r)
		r = write_file(s, dir, name, bytes);
	if (r)
		return fail_lost(s, r, name);
	fusee_folder_wrote(&s->folder, bytes.len);
	return 0;
}

static int consume(void *ctx, const struct fusee_delivery *d)
{
	struct pprof *s = ctx;
	struct fusee_str bytes;
	char name[NAME_SIZE];
	int dir, r = s->self.host->sink->encode(d->out, d->profile, FUSEE_PPROF_GZ, &bytes);

	if (r)
		return fusee_fail(&s->self, r, "cannot encode a profile: %s", strerror(-r));
	name_make(name, d->profile);
	dir = fusee_folder_open(&s->folder);
	if (dir < 0)
		return dir;
	r = store(s, dir, name, bytes);
	close(dir);
	return r;
}

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	struct pprof *s = ctx;

	fusee_self_init(ctx, in, host);
	return fusee_folder_init(&s->folder, &s->self, &folder_ops);
}

static const struct fusee_sink_ops ops = {.size = sizeof(ops), .consume = consume};

FUSEE_PLUGIN(pprof, FUSEE_SINK, .version = "0.1",
	     .doc = "Writes profiles as pprof files into a directory.",
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct pprof), .init = init,
	     .ops = &ops);
