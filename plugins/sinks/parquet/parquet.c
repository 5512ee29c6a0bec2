/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each window is two files of the same name, its samples and the frames of its stacks. Both are
 * written as unfinished files and synced; the stacks are renamed first, so that no sample is ever
 * without its stack. A window that is delivered again replaces its files. A bucket gets the files
 * in the same order, from the folder or from files without names. After a delivery, windows of
 * hours that have ended are merged (compact.c).
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bucket/bucket.h"
#include "merge/compact.h"
#include "rows.h"
#include "merge/swap.h"

#define LOCK_WAIT (10 * FUSEE_SECOND) /* other processes hold it for moments */

struct parquet {
	struct fusee_self self;
	struct fusee_folder folder;
	uint64_t last_size; /* bytes of the previous window */
	int64_t compression;
	uint64_t compact; /* ns */
	struct compact *compaction;
	const char *bucket, *endpoint, *region, *credentials_file;
	struct fusee_http_options http; /* of the bucket */
	struct bucket *client;          /* owned; NULL: there is no bucket */
	/* a window that is in the folder but not yet in the bucket; "": none */
	char pending[NAME_SIZE];
};

static const char *const compressions[] = {"zstd", "gzip", "none", NULL};

static const struct fusee_option options[] = {
	FUSEE_FOLDER_ROW(struct parquet, folder, dir, FUSEE_STRING, "",
			 "Directory of the files, created if it is missing; '' for none, with a "
			 "bucket."),
	FUSEE_FOLDER_LIMITS(struct parquet, folder, "30d", "10GiB"),
	FUSEE_OPTION_ENUM(struct parquet, compression, "zstd", compressions,
			  "How pages are compressed: gzip is about as small and slower."),
	FUSEE_OPTION_DURATION(struct parquet, compact, "15m", 0, 24 * FUSEE_HOUR,
			      "Windows of an hour that ended so long ago are merged into one file, "
			      "in the folder; 0 leaves them as they are."),
	FUSEE_OPTION_STRING(struct parquet, bucket, "",
			    "Bucket that the files are sent to, s3://NAME/PREFIX; '' for none."),
	FUSEE_OPTION_STRING(struct parquet, endpoint, "",
			    "Server of the bucket, http:// or https://; '' for Amazon's of the "
			    "region."),
	FUSEE_OPTION_STRING(struct parquet, region, "",
			    "Region of the bucket; '' for that of the environment (AWS_REGION), or "
			    "us-east-1."),
	FUSEE_OPTION_STRING(struct parquet, credentials_file, "",
			    "File with the bucket's keys, in the form of ~/.aws/credentials, read "
			    "for each request; '' for AWS_ACCESS_KEY_ID of the environment."),
	FUSEE_HTTP_ROW(struct parquet, http, headers, FUSEE_MAP, "",
		       "More headers of requests that make an object, as x-amz-storage-class; no "
		       "place for secrets.",
		       0, 0),
	FUSEE_HTTP_CONNECTION(struct parquet, http, "60s"),
};

static const struct fusee_folder_ops folder_ops = {.each = folder_each, .remove = folder_remove};

/* ---- a window ---- */

struct output {
	const int *fd;
	bool *failed;
};

static int write_bytes(void *arg, const void *bytes, uint64_t len)
{
	const struct output *o = arg;
	int r = fusee_folder_write(*o->fd, bytes, len);

	*o->failed |= r != 0;
	return r;
}

/* A window that is being written. dir: -1: only the bucket gets it. */
struct window {
	const char *name;
	struct output outputs[TABLES];
	bool failed; /* creating or writing a file failed */
	int dir, fds[TABLES];
	struct fusee_parquet *writers[TABLES];
	uint64_t bytes;
	struct fusee_sink_out *out;
	bool sending; /* to the bucket, which reports its errors itself */
	bool busy;    /* other processes held the lock of the folder */
};

static int begin_window(struct parquet *s, struct window *w)
{
	const struct fusee_table columns[TABLES] = {rows_samples, rows_stacks},
				 sort[TABLES] = {rows_samples_sort, rows_stacks_sort};
	int r = 0;

	for (int i = 0; !r && i < TABLES; i++) {
		struct fusee_parquet_options o = {.columns = columns[i],
						  .sort = sort[i],
						  .codec = (uint32_t)s->compression,
						  .filtered = rows_filtered[i],
						  .write = write_bytes,
						  .arg = &w->outputs[i]};

		w->fds[i] = w->dir < 0 ? bucket_temporary(s->folder.dir)
				       : folder_create(w->dir, w->name, i, s->folder.dir_mode,
						       s->folder.file_mode);
		w->outputs[i] = (struct output){&w->fds[i], &w->failed};
		w->failed = w->fds[i] < 0;
		r = w->failed ? w->fds[i] : fusee_parquet_new(&w->writers[i], &o);
	}
	return r;
}

static void count_rows(struct parquet *s, const struct window *w,
		       const struct fusee_rows_shortened *n)
{
	fusee_count(&s->self, "rows_written", fusee_parquet_rows(w->writers[SAMPLES]));
	fusee_count_by(&s->self, "shortened", "what", "stack", n->stacks);
	fusee_count_by(&s->self, "shortened", "what", "frames", n->frames);
	fusee_count_by(&s->self, "shortened", "what", "label", n->labels);
}

/* Commits the window's files, unless a merged file has the window already: then it was delivered
 * before, and would count twice. */
static int place_window(struct parquet *s, struct window *w)
{
	int lock = swap_lock(w->dir, s->folder.dir_mode, LOCK_WAIT), r;

	w->busy = lock == -EAGAIN;
	if (lock < 0)
		return lock;
	r = swap_has(w->dir, w->name);
	for (int i = 0; r == 1 && i < TABLES; i++)
		folder_discard(w->dir, w->name, i);
	for (int i = TABLES; !r && i-- > 0;)
		r = folder_commit(w->dir, w->name, i, s->folder.dir_mode);
	close(lock);
	return r;
}

static int commit_window(struct parquet *s, struct window *w)
{
	int r = 0;

	for (int i = 0; !r && i < TABLES; i++) {
		w->bytes += fusee_parquet_bytes(w->writers[i]);
		r = fsync(w->fds[i]) ? -errno : 0;
	}
	if (!r && s->folder.max_size && w->bytes > s->folder.max_size)
		r = -EFBIG;
	if (!r)
		r = fusee_folder_make_room(&s->folder, w->dir, w->bytes);
	if (!r)
		r = place_window(s, w);
	if (!r) {
		fusee_folder_wrote(&s->folder, w->bytes);
		s->last_size = w->bytes;
	}
	if (r >= 0)
		snprintf(s->pending, sizeof(s->pending), "%s", w->name);
	return r > 0 ? 0 : r;
}

static int send_window(struct parquet *s, struct window *w)
{
	struct partition p;
	char key[NAME_SIZE + 64];
	int r = 0;

	w->sending = true;
	name_partition(w->name, &p);
	for (int i = TABLES; !r && i-- > 0;) {
		snprintf(key, sizeof(key), "%s/%s/%s/%s", folder_tables[i], p.date, p.hour,
			 w->name);
		r = bucket_put(s->client, w->out, key, w->fds[i],
			       fusee_parquet_bytes(w->writers[i]));
	}
	if (!r)
		*s->pending = '\0';
	return r;
}

static int write_window(struct parquet *s, struct window *w, const struct fusee_profile *p)
{
	struct fusee_rows_shortened shortened = {0};
	int r = begin_window(s, w);

	if (!r)
		r = rows_write(p, w->writers[SAMPLES], w->writers[STACKS], &shortened);
	if (!r && w->dir >= 0)
		r = commit_window(s, w);
	if (!r && s->client)
		r = send_window(s, w);
	if (!r)
		count_rows(s, w, &shortened);
	for (int i = 0; i < TABLES; i++) {
		if (r && w->dir >= 0 && w->fds[i] >= 0)
			folder_discard(w->dir, w->name, i);
		fusee_parquet_free(w->writers[i]);
		if (w->fds[i] >= 0)
			close(w->fds[i]);
	}
	return r;
}

/* What consume() returns. */
static int explain(struct parquet *s, const struct window *w, int r)
{
	int err = r == -EAGAIN ? -EIO : r; /* a disk error is not retried */

	if (w->sending) {
		if (r != -EAGAIN && r != -ECANCELED)
			fusee_count_by(&s->self, "windows_lost", "reason", "bucket", 1);
		return r;
	}
	if (w->busy)
		return fusee_fail(&s->self, -EAGAIN, "another process keeps '%s' locked",
				  s->folder.dir);
	if (w->dir < 0 && !w->failed) {
		fusee_count_by(&s->self, "windows_lost", "reason", "other", 1);
		return fusee_fail(&s->self, err, "cannot make the rows of '%s': %s", w->name,
				  strerror(-r));
	}
	if (w->dir < 0) {
		if (w->fds[TABLES - 1] < 0) /* the temporary folder may exist and have room later */
			err = -EAGAIN;
		else
			fusee_count_by(&s->self, "windows_lost", "reason", "temporary file", 1);
		return fusee_fail(
			&s->self, err,
			"cannot write a temporary file for '%s': %s; TMPDIR names its folder",
			w->name, strerror(-r));
	}
	fusee_folder_count_lost(&s->folder, r);
	if (r == -EFBIG && s->folder.max_size && w->bytes > s->folder.max_size)
		return fusee_fail(&s->self, r,
				  "a window of %llu bytes is more than 'max_size' allows",
				  (unsigned long long)w->bytes);
	return fusee_fail(&s->self, err, "cannot write '%s' in '%s': %s", w->name, s->folder.dir,
			  strerror(-r));
}

static int consume(void *ctx, const struct fusee_delivery *d)
{
	struct parquet *s = ctx;
	char name[NAME_SIZE];
	struct window w = {.name = name, .dir = -1, .fds = {-1, -1}, .out = d->out};
	int r = 0;

	name_make(name, d->profile);
	/* unless this is another attempt to send a window whose files were written to the folder */
	if (*s->folder.dir && !(s->client && !strcmp(name, s->pending))) {
		w.dir = fusee_folder_open(&s->folder);
		if (w.dir < 0)
			return w.dir;
		/* old files are removed also when the disk is full */
		r = fusee_folder_make_room(&s->folder, w.dir,
					   s->last_size < s->folder.max_size ? s->last_size : 0);
	}
	if (!r)
		r = write_window(s, &w, d->profile);
	if (!r && w.dir >= 0)
		compact_work(s->compaction, w.dir, d->profile->start_ns);
	if (w.dir >= 0)
		close(w.dir);
	return r ? explain(s, &w, r) : 0;
}

/* ---- the instance ---- */

/* Removes unfinished files of earlier runs. */
static int clean(struct parquet *s)
{
	int dir = fusee_folder_open(&s->folder);
	int64_t unfinished;
	uint64_t bytes = 0;
	int r;

	if (dir < 0)
		return dir;
	unfinished = folder_clean(dir);
	r = swap_clean(dir, s->folder.dir_mode, 0, &bytes);
	close(dir);
	if (r)
		fusee_log(&s->self, FUSEE_WARNING,
			  "cannot remove windows that were merged in '%s': %s", s->folder.dir,
			  strerror(-r));
	if (unfinished < 0)
		return fusee_fail(&s->self, (int)unfinished, "cannot read directory '%s': %s",
				  s->folder.dir, strerror((int)-unfinished));
	fusee_count_by(&s->self, "files_removed", "reason", "unfinished", (uint64_t)unfinished);
	return 0;
}

static int init_bucket(struct parquet *s)
{
	const struct bucket_options o = {.bucket = s->bucket,
					 .endpoint = s->endpoint,
					 .region = s->region,
					 .credentials_file = s->credentials_file,
					 .http = &s->http};

	if (*s->bucket)
		return bucket_open(&s->client, &s->self, &o);
	if (!*s->folder.dir)
		return fusee_fail(&s->self, -EINVAL,
				  "set 'dir' to a folder, 'bucket' to s3://NAME/PREFIX, or both");
	if (*s->endpoint || *s->region || *s->credentials_file)
		return fusee_fail(&s->self, -EINVAL,
				  "'endpoint', 'region' and 'credentials_file' need 'bucket'");
	return 0;
}

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	struct parquet *s = ctx;
	int r;

	fusee_self_init(ctx, in, host);
	r = init_bucket(s);
	if (r || !*s->folder.dir)
		return r;
	r = fusee_folder_init(&s->folder, &s->self, &folder_ops);
	if (!r)
		r = clean(s);
	if (!r && compact_new(&s->compaction, &s->folder, s->compact, s->compression))
		r = fusee_fail(&s->self, -ENOMEM, "no memory");
	return r;
}

static void fini(void *ctx)
{
	struct parquet *s = ctx;

	bucket_close(s->client);
	compact_free(s->compaction);
}

static void cancel(void *ctx)
{
	struct parquet *s = ctx;

	compact_cancel(s->compaction);
	if (s->client)
		bucket_cancel(s->client);
}

/* ---- reading back ---- */

static int list(void *ctx, const struct fusee_listing *l)
{
	struct parquet *s = ctx;

	return s->client ? bucket_list(s->client, l)
			 : fusee_fail(&s->self, -EINVAL, "'bucket' is not set");
}

static int64_t read_object(void *ctx, const char *name, uint64_t at, void *to, uint64_t n,
			   uint64_t *all)
{
	struct parquet *s = ctx;

	return s->client ? bucket_read(s->client, name, at, to, n, all)
			 : fusee_fail(&s->self, -EINVAL, "'bucket' is not set");
}

static const struct fusee_sink_ops ops = {.size = sizeof(ops),
					  .consume = consume,
					  .cancel = cancel,
					  .list = list,
					  .read = read_object};

FUSEE_PLUGIN(parquet, FUSEE_SINK, .version = "0.1",
	     .doc = "Writes profiles as Parquet files, for DuckDB and other engines of SQL.",
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct parquet), .init = init,
	     .fini = fini, .ops = &ops);
