/* SPDX-License-Identifier: Apache-2.0 */
#include "files/file_open.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/background.h"
#include "base/metrics.h"
#include "process/safe_open.h"

struct file_identity file_identity_of(const struct opener_stat *st)
{
	return (struct file_identity){st->dev, st->ino, st->size, st->mtime, st->mtime_ns};
}

int file_open(struct files *fs, pid_t pid, const struct procfs_mapping *m, struct opener_answer *a)
{
	struct opener *o = worker_opener(fs->worker);
	const struct opener_query q = {.kind = OPENER_MAPPING, .pid = pid, .mapping = *m};
	int err;

	*a = (struct opener_answer){.fd = o ? safe_open_own(m) : -1};
	if (a->fd < 0)
		return opener_call(o, &q, a);
	err = opener_describe(a);
	if (err)
		background_close(worker_background(fs->worker), a->fd);
	return err;
}

const char *file_open_explain(int err)
{
	switch (-err) {
	case ESTALE:
	case ENOENT:
	case ESRCH:
		return "the file was removed or replaced before it could be opened";
	case ETIMEDOUT:
		return "its file system does not answer, or files of its user do not";
	case EAGAIN:
		return "it could not be opened yet";
	case ENOBUFS:
		return "its file system can keep readers waiting, and copies of other files on "
		       "such file systems take all memory for that";
	case EDQUOT:
		return "its process or its user maps too many files to keep them all open";
	case EFBIG:
		return "its file system can keep readers waiting, and the file is too large to be "
		       "copied";
	default:
		return strerror(-err);
	}
}

/* The last close of a deleted file waits for the disk. */
void file_answer_close(struct files *fs, const struct opener_answer *a)
{
	background_close(worker_background(fs->worker), a->fd);
	opener_release_copy(worker_opener(fs->worker), a->st.copied);
}

void file_close(struct file *f)
{
	if (f->fd < 0)
		return;
	background_close(worker_background(f->files->worker), f->fd);
	file_quota_remove(&f->files->quota, f->pid, f->uid);
	f->fd = -1;
}

/* ---- while it is needed ---- */

/* Can it be opened again? The vDSO can't, and a copy may have changed by then. */
static bool has_place(const struct file *f)
{
	return f->source.place.mapping.ino && !f->source.copied;
}

static int open_again(struct file *f)
{
	struct procfs_mapping m = f->source.place.mapping;
	struct file_identity id;
	struct opener_answer a;
	int err;

	m.name = f->path;
	err = file_open(f->files, f->source.place.pid, &m, &a);
	if (err)
		return err;
	id = file_identity_of(&a.st);
	if (a.st.copied || f->key_len != sizeof(id) || memcmp(f->key, &id, sizeof(id)))
		err = -ESTALE;
	else
		err = file_quota_add(&f->files->quota, f->pid, f->uid);
	if (err) {
		file_answer_close(f->files, &a);
		return err;
	}
	f->fd = a.fd;
	return 0;
}

int files_hold(struct file *f)
{
	int err = -ENOENT;

	if (f->fd < 0 && f->source.readable) {
		err = open_again(f);
		metric_add("files_reopened_total",
			   "Total number of times that a mapped file was opened again.",
			   METRIC_LABELS("result", err ? "failed" : "opened"), 1);
	}
	if (f->fd < 0)
		return err;
	f->uses++;
	return f->fd;
}

void files_release(struct file *f)
{
	fusee_assert(f->uses);
	f->uses--;
	if (!f->uses && has_place(f) && file_quota_is_many(&f->files->quota, f->uid))
		file_close(f);
}

bool files_is_same(const struct file *f, int fd)
{
	struct file_identity id;
	struct stat st;

	if (!f->source.readable || f->key_len != sizeof(id) || fstat(fd, &st))
		return false;
	memcpy(&id, f->key, sizeof(id));
	return id.dev == st.st_dev && id.ino == st.st_ino;
}
