/* SPDX-License-Identifier: Apache-2.0 */
#include "compact.h"

#include <stdlib.h>
#include <unistd.h>

#include <fusee/bytes.h>

#include "swap.h"

#define PIECE (FUSEE_SECOND / 2)     /* of work after a delivery */
#define KEEP_OLD (60 * FUSEE_SECOND) /* readers may still be listing an exchanged folder */
#define LEAST 4                      /* windows that are worth a merge */
#define MOST 400                     /* in one file */
#define SMALL (8ull << 20)           /* bytes of a window's files; larger windows stay */
#define WAIT (FUSEE_SECOND / 4)      /* for the folder's lock */

struct compact {
	struct fusee_folder *folder;
	uint64_t age;
	int64_t codec;
	int cancelled; /* atomic */
	bool off;      /* the file system cannot exchange folders */
	/* partitions to be merged, the newest last; and the time of the next search */
	struct partition *hours;
	uint32_t nhours;
	uint64_t hours_cap;
	uint64_t next_ns;
	/* the current partition; merge NULL: none */
	struct partition hour;
	struct merge_window *windows;
	uint32_t nwindows, next, nmerged;
	uint64_t windows_cap;
	int at[TABLES];
	struct merge *merge;
	bool copies; /* all windows were counted */
	char part[NAME_SIZE];
};

static bool is_over(const struct compact *c, uint64_t hour_ns)
{
	return hour_ns + FUSEE_HOUR + c->age <= fusee_now(CLOCK_REALTIME);
}

static const char *reason_of(int err)
{
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
		return "no space";
	case -EIO:
		return "i/o error";
	case -ENOMEM:
		return "no memory";
	case -ESTALE:
	case -EAGAIN:
		return "changed meanwhile";
	case -EEXIST:
		return "other files";
	case -EOPNOTSUPP:
		return "file system";
	default:
		return "other";
	}
}

static void failed(struct compact *c, int err, const char *what, const char *why)
{
	const struct fusee_self *self = c->folder->self;

	fusee_count_by(self, "compactions_failed", "reason", reason_of(err), 1);
	fusee_log(self, err == -ESTALE || err == -EAGAIN ? FUSEE_DEBUG : FUSEE_WARNING,
		  "cannot merge the windows of %s/%s in '%s': %s: %s", c->hour.date, c->hour.hour,
		  c->folder->dir, what, *why ? why : strerror(-err));
}

/* Whether other partitions would fail in the same way. */
static bool is_general(int err)
{
	return err == -ENOSPC || err == -EDQUOT || err == -EROFS || err == -ENOMEM || err == -EIO ||
	       err == -EOPNOTSUPP;
}

/* ---- partitions ---- */

static int by_time(const void *a, const void *b)
{
	const struct partition *x = a, *y = b;
	int r = strcmp(x->date, y->date);

	return r ? r : strcmp(x->hour, y->hour);
}

static int add_hours(struct compact *c, int at, const char *date)
{
	int folder = folder_open(at, date, 0), r = 0;
	DIR *d = folder < 0 ? NULL : fusee_folder_list(folder);
	const struct dirent *e;

	while (!r && d && (e = readdir(d))) {
		struct partition p;

		if (!name_is_hour(e->d_name))
			continue;
		snprintf(p.date, sizeof(p.date), "%.15s", date);
		snprintf(p.hour, sizeof(p.hour), "%.7s", e->d_name);
		if (!is_over(c, name_begin(&p)))
			continue;
		if (!fusee_grow(&c->hours, &c->hours_cap, c->nhours + 1ull, sizeof(*c->hours)))
			r = -ENOMEM;
		else
			c->hours[c->nhours++] = p;
	}
	if (d)
		closedir(d);
	if (folder >= 0)
		close(folder);
	return r;
}

/* Lists the partitions, once an hour, because windows may arrive late. */
static int find_hours(struct compact *c, int dir)
{
	int at = folder_open(dir, folder_tables[SAMPLES], 0), r = 0;
	uint64_t t = fusee_now(CLOCK_REALTIME), hour = (t > c->age ? t - c->age : 0) / FUSEE_HOUR;
	DIR *d = at < 0 ? NULL : fusee_folder_list(at);
	const struct dirent *e;

	c->nhours = 0;
	c->next_ns = (hour + 1) * FUSEE_HOUR + c->age;
	while (!r && d && (e = readdir(d)))
		if (name_is_date(e->d_name))
			r = add_hours(c, at, e->d_name);
	if (d)
		closedir(d);
	if (at >= 0)
		close(at);
	if (c->nhours)
		qsort(c->hours, c->nhours, sizeof(*c->hours), by_time);
	return r;
}

/* ---- the windows of a partition ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct merge_window *)a)->name,
		      ((const struct merge_window *)b)->name);
}

static int list_windows(struct compact *c)
{
	DIR *d = fusee_folder_list(c->at[SAMPLES]);
	const struct dirent *e;
	struct partition p;
	int r = d ? 0 : -errno;

	c->nwindows = 0;
	while (!r && d && (e = readdir(d))) {
		if (!name_is_ours(e->d_name, NULL) || name_is_merged(e->d_name))
			continue;
		name_partition(e->d_name, &p);
		if (by_time(&p, &c->hour))
			continue;
		if (!fusee_grow(&c->windows, &c->windows_cap, c->nwindows + 1ull,
				sizeof(*c->windows)))
			r = -ENOMEM;
		else
			snprintf(c->windows[c->nwindows++].name, NAME_SIZE, "%.127s", e->d_name);
	}
	if (d)
		closedir(d);
	return r;
}

/* Drops windows that cannot be merged from the list. */
static void inspect_windows(struct compact *c)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->nwindows; i++) {
		struct merge_window *w = &c->windows[i];
		const char *why;
		int r = merge_inspect(w, c->at, &why);

		w->chosen = false;
		if (r && r != -ENOENT)
			failed(c, r, w->name, why);
		if (!r && w->bytes < SMALL)
			c->windows[kept++] = *w;
	}
	c->nwindows = kept;
	qsort(c->windows, c->nwindows, sizeof(*c->windows), by_name);
}

/* Whether a kept window has the same time, length, period and profile: in one file their samples
 * could not be distinguished. Names contain the second and are sorted. */
static bool is_kept(const struct compact *c, uint32_t kept, const struct merge_window *w)
{
	while (kept-- && !strncmp(c->windows[kept].name, w->name, 20))
		if (c->windows[kept].window == w->window)
			return true;
	return false;
}

/* Keeps the first windows with the most frequent types. Returns their number. */
static uint32_t choose(struct compact *c)
{
	uint32_t most = 0, kept = 0;
	uint64_t types = 0;

	for (uint32_t i = 0; i < c->nwindows && most <= c->nwindows - i; i++) {
		uint32_t n = 0;

		for (uint32_t k = i; k < c->nwindows; k++)
			n += c->windows[k].types == c->windows[i].types;
		if (n > most) {
			most = n;
			types = c->windows[i].types;
		}
	}
	for (uint32_t i = 0; i < c->nwindows && kept < MOST; i++)
		if (c->windows[i].types == types && !is_kept(c, kept, &c->windows[i]))
			c->windows[kept++] = c->windows[i];
	c->nwindows = kept;
	return kept;
}

static uint64_t hash_names(const struct compact *c)
{
	uint64_t h = 0xcbf29ce484222325;

	for (uint32_t i = 0; i < c->nwindows; i++)
		for (const char *p = c->windows[i].name; c->windows[i].chosen && *p; p++)
			h = (h ^ (uint8_t)*p) * 0x100000001b3;
	return h;
}

/* ---- one partition ---- */

static void close_hour(struct compact *c)
{
	merge_free(c->merge);
	c->merge = NULL;
	for (int i = 0; i < TABLES; i++) {
		if (c->at[i] >= 0)
			close(c->at[i]);
		c->at[i] = -1;
	}
}

static void discard(struct compact *c, int dir)
{
	for (int i = 0; i < TABLES; i++)
		folder_discard(dir, c->part, i);
	close_hour(c);
}

static int begin_merge(struct compact *c, int dir)
{
	const struct merge_options o = {c->codec, c->folder->dir_mode, c->folder->file_mode};
	uint64_t bytes = 0, max = c->folder->max_size;
	int r;

	for (uint32_t i = 0; i < c->nwindows; i++)
		bytes += c->windows[i].bytes;
	if (max && bytes > max / 4) /* retention would remove other files for it */
		return -EFBIG;
	r = fusee_folder_make_room(c->folder, dir, bytes);
	if (r)
		return r;
	c->next = c->nmerged = 0;
	c->copies = false;
	name_merged(c->part, c->windows[0].name, c->windows[0].name, 0);
	r = merge_new(&c->merge, dir, c->part, c->at, &o);
	if (r && r != -EAGAIN)
		discard(c, dir);
	return r;
}

/* Opens the next partition that has enough small windows. 0: there is none, or it has failed. */
static int begin_hour(struct compact *c, int dir)
{
	int r = 0;

	c->hour = c->hours[--c->nhours];
	for (int i = 0; !r && i < TABLES; i++) {
		c->at[i] = folder_partition(dir, &c->hour, i, 0);
		r = c->at[i] < 0 ? c->at[i] : 0;
	}
	if (!r)
		r = list_windows(c);
	if (!r && c->nwindows >= LEAST)
		inspect_windows(c);
	if (!r && c->nwindows >= LEAST && choose(c) >= LEAST) {
		r = begin_merge(c, dir);
		if (!r)
			return 1;
	}
	if (r && r != -ENOENT && r != -EFBIG)
		failed(c, r, "its files", "");
	if (is_general(r))
		c->nhours = 0;
	close_hour(c);
	return 0;
}

static int take_place(struct compact *c, int dir, const char *name)
{
	const struct swap s = {.dir = dir,
			       .p = &c->hour,
			       .part = c->part,
			       .name = name,
			       .windows = c->windows,
			       .n = c->nwindows,
			       .nchosen = c->nmerged,
			       .dir_mode = c->folder->dir_mode};
	int lock = swap_lock(dir, c->folder->dir_mode, WAIT), r;

	if (lock < 0)
		return lock;
	r = swap_in(&s);
	close(lock);
	return r;
}

/* Counts the bytes in the folder, where the windows' stacks still are. */
static void count_bytes(struct compact *c)
{
	uint64_t old = 0, *bytes = &c->folder->bytes;

	for (uint32_t i = 0; i < c->nwindows; i++)
		old += c->windows[i].chosen ? c->windows[i].samples_bytes : 0;
	*bytes += merge_bytes(c->merge);
	*bytes -= old < *bytes ? old : *bytes;
}

static int end_hour(struct compact *c, int dir)
{
	const struct merge_window *last = c->windows;
	const struct fusee_self *self = c->folder->self;
	char name[NAME_SIZE];
	uint64_t again;
	int r = merge_finish(c->merge);

	for (uint32_t i = 0; i < c->nwindows; i++)
		if (c->windows[i].chosen)
			last = &c->windows[i];
	name_merged(name, c->windows[0].name, last->name, hash_names(c));
	if (!r)
		r = take_place(c, dir, name);
	if (r)
		return r;
	fusee_count(self, "windows_merged", c->nmerged);
	count_bytes(c);
	fusee_log(self, FUSEE_DEBUG, "merged %u windows of %s/%s in '%s'", c->nmerged, c->hour.date,
		  c->hour.hour, c->folder->dir);
	close_hour(c);
	/* the hour may have more windows, of other types or beyond the limits: they are merged when
	 * no reader can be listing the old folder any more */
	again = fusee_now(CLOCK_REALTIME) + KEEP_OLD;
	c->next_ns = again < c->next_ns ? again : c->next_ns;
	return 0;
}

/* A window that cannot be read stays as it is, and the others are merged from the start. */
static int without(struct compact *c, int dir, struct merge_window *w, int err, const char *why)
{
	uint32_t i = (uint32_t)(w - c->windows);
	int r;

	failed(c, err, w->name, why);
	merge_free(c->merge);
	c->merge = NULL;
	memmove(w, w + 1, (c->nwindows - i - 1) * sizeof(*w));
	c->nwindows--;
	for (i = 0; i < c->nwindows; i++)
		c->windows[i].chosen = false;
	if (c->nwindows < LEAST) {
		discard(c, dir);
		return 0;
	}
	r = begin_merge(c, dir);
	if (r != -EAGAIN)
		return r;
	/* another process has begun to write these files, so they must not be discarded */
	failed(c, r, "its files", "");
	close_hour(c);
	return 0;
}

/* Begins to merge the windows that were counted. */
static int begin_copy(struct compact *c)
{
	c->nmerged = c->next;
	c->next = 0;
	c->copies = true;
	return merge_order(c->merge);
}

static int step(struct compact *c, int dir)
{
	struct merge_window *w = &c->windows[c->next];
	const char *why = "";
	bool broken = false;
	int r;

	if (!c->copies && (c->next == c->nwindows || (c->next && merge_is_full(c->merge))))
		return begin_copy(c);
	if (c->copies && merge_is_copied(c->merge))
		return end_hour(c, dir);
	r = c->copies ? merge_copy(c->merge, w, &why, &broken)
		      : merge_add(c->merge, w, &why, &broken);
	if (r && broken && r != -ENOMEM)
		return without(c, dir, w, r, why);
	w->chosen = !r;
	c->next++;
	if (c->copies && c->next == c->nmerged)
		c->next = 0;
	return r;
}

/* A failure that all partitions would have ends the work until the next hour. */
static void give_up(struct compact *c, int dir, int err)
{
	bool never = err == -EOPNOTSUPP;

	failed(c, err, "its files",
	       never ? "the file system cannot exchange folders; windows stay as they are" : "");
	discard(c, dir);
	c->off = never;
	if (is_general(err))
		c->nhours = 0;
}

/* ---- the work ---- */

static void clean(struct compact *c, int dir)
{
	uint64_t bytes = 0;
	int r = swap_clean(dir, c->folder->dir_mode, KEEP_OLD, &bytes);

	c->folder->bytes -= bytes < c->folder->bytes ? bytes : c->folder->bytes;
	if (r) {
		fusee_count_by(c->folder->self, "compactions_failed", "reason", reason_of(r), 1);
		fusee_log(c->folder->self, FUSEE_WARNING,
			  "cannot remove windows that were merged in '%s': %s", c->folder->dir,
			  strerror(-r));
	}
}

void compact_work(struct compact *c, int dir, uint64_t window_ns)
{
	uint64_t end = fusee_now(CLOCK_MONOTONIC) + PIECE;
	int r = 0;

	if (!c || !c->age || c->off || is_over(c, window_ns - window_ns % FUSEE_HOUR))
		return;
	clean(c, dir);
	if (!c->merge && !c->nhours && fusee_now(CLOCK_REALTIME) >= c->next_ns)
		r = find_hours(c, dir);
	while (!r && (c->merge || c->nhours) && !__atomic_load_n(&c->cancelled, __ATOMIC_RELAXED) &&
	       fusee_now(CLOCK_MONOTONIC) < end)
		r = c->merge ? step(c, dir) : begin_hour(c, dir) < 0;
	if (r)
		give_up(c, dir, r);
}

void compact_cancel(struct compact *c)
{
	if (c)
		__atomic_store_n(&c->cancelled, 1, __ATOMIC_RELAXED);
}

int compact_new(struct compact **ret, struct fusee_folder *folder, uint64_t age, int64_t codec)
{
	struct compact *c = calloc(1, sizeof(*c));

	*ret = c;
	if (!c)
		return -ENOMEM;
	*c = (struct compact){.folder = folder, .age = age, .codec = codec, .at = {-1, -1}};
	return 0;
}

void compact_free(struct compact *c)
{
	if (!c)
		return;
	close_hour(c);
	free(c->hours);
	free(c->windows);
	free(c);
}
