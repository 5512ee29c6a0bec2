/* SPDX-License-Identifier: Apache-2.0 */
#include "swap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fusee/bytes.h>

#define LOCK "lock"
#define OLD "old-"
#define OLD_SIZE (HOUR_SIZE + 8)
#define WAIT_US 5000

/* ---- the lock ---- */

/* The file must not be accessible to other users, who could lock it for ever. */
static int open_lock(int at)
{
	char name[32];
	struct stat st;
	int fd;

	snprintf(name, sizeof(name), LOCK "-%u", geteuid());
	for (int attempt = 0; attempt < 2; attempt++) {
		fd = openat(at, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
		if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		    !(st.st_mode & 0077))
			return fd;
		if (fd >= 0)
			close(fd);
		if (unlinkat(at, name, 0))
			return -errno;
	}
	return -EPERM;
}

int swap_lock(int dir, mode_t dir_mode, uint64_t wait_ns)
{
	int at = folder_open(dir, FOLDER_UNFINISHED, dir_mode), fd, r = -EAGAIN;

	if (at < 0)
		return at;
	fd = open_lock(at);
	close(at);
	if (fd < 0)
		return fd;
	for (uint64_t waited = 0; r == -EAGAIN; waited += WAIT_US * 1000ull) {
		r = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
		if (r == -EAGAIN && waited >= wait_ns)
			break;
		if (r == -EAGAIN)
			usleep(WAIT_US);
	}
	if (!r)
		return fd;
	close(fd);
	return r;
}

/* ---- the windows of merged files ---- */

struct names {
	char (*at)[NAME_SIZE];
	uint64_t n, cap;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static bool has(const struct names *s, const char *name)
{
	return s->n && bsearch(name, s->at, s->n, sizeof(*s->at), by_text);
}

static int add_names(struct names *s, int at, const char *merged)
{
	struct input in;
	int r = input_open_any(&in, at, merged);

	for (uint32_t i = 0; !r; i++) {
		if (!fusee_grow(&s->at, &s->cap, s->n + 1, sizeof(*s->at)))
			r = -ENOMEM;
		else if (input_window(&in, i, s->at[s->n]))
			s->n++;
		else
			break;
	}
	input_close(&in);
	/* a file that readers cannot read, or that retention has removed, replaces nothing */
	return r == -EINVAL || r == -EFBIG || r == -ENOENT ? 0 : r;
}

/* at: a folder of samples; -ENOENT is empty. */
static int read_names(struct names *s, int at)
{
	const struct dirent *e;
	DIR *d = at == -ENOENT ? NULL : fusee_folder_list(at);
	int r = d || at == -ENOENT ? 0 : at < 0 ? at : -errno;

	while (!r && d && (errno = 0, e = readdir(d)))
		if (name_is_ours(e->d_name, NULL) && name_is_merged(e->d_name))
			r = add_names(s, at, e->d_name);
	if (d && !r && !e)
		r = -errno;
	if (d)
		closedir(d);
	if (s->n)
		qsort(s->at, s->n, sizeof(*s->at), by_text);
	return r;
}

int swap_has(int dir, const char *name)
{
	struct names s = {0};
	struct partition p;
	int at, r;

	name_partition(name, &p);
	at = folder_partition(dir, &p, SAMPLES, 0);
	r = read_names(&s, at);
	if (!r)
		r = has(&s, name);
	if (at >= 0)
		close(at);
	free(s.at);
	return r;
}

/* ---- cleaning ---- */

struct cleaning {
	int dir, old, at[TABLES]; /* at: -ENOENT: there is no such folder */
	mode_t dir_mode;
	struct partition p;
	struct names replaced;
	uint64_t *stacks_bytes;
};

static void remove_stacks(struct cleaning *c, const char *name)
{
	struct stat st;

	if (c->at[STACKS] >= 0 && !fstatat(c->at[STACKS], name, &st, AT_SYMLINK_NOFOLLOW) &&
	    !unlinkat(c->at[STACKS], name, 0))
		*c->stacks_bytes += (uint64_t)st.st_size;
}

static bool is_at(int at, const char *name)
{
	return at >= 0 && !faccessat(at, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* Puts back a window that was added without the lock, by another user or an older version. */
static int put_back(const struct cleaning *c, const char *name)
{
	int to = folder_partition(c->dir, &c->p, SAMPLES, c->dir_mode), r;

	if (to < 0)
		return to;
	r = renameat2(c->old, name, to, name, RENAME_NOREPLACE) ? -errno : 0;
	close(to);
	return r;
}

static int clean_file(struct cleaning *c, const char *name)
{
	bool there = is_at(c->at[SAMPLES], name);

	/* retention has removed windows whose stacks are missing */
	if (!there && !name_is_merged(name) && !has(&c->replaced, name) &&
	    is_at(c->at[STACKS], name))
		return put_back(c, name);
	if (!there)
		remove_stacks(c, name);
	return unlinkat(c->old, name, 0) ? -errno : 0;
}

static int clean_files(struct cleaning *c)
{
	const struct dirent *e;
	DIR *d = fusee_folder_list(c->old);
	int r = d ? read_names(&c->replaced, c->at[SAMPLES]) : -errno;

	while (!r && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			r = clean_file(c, e->d_name);
	if (d)
		closedir(d);
	free(c->replaced.at);
	return r;
}

/* An hour's second folder, in the open folder `at`. */
static int clean_hour(int dir, mode_t dir_mode, int at, const char *old, uint64_t *stacks_bytes)
{
	struct cleaning c = {.dir = dir, .dir_mode = dir_mode, .stacks_bytes = stacks_bytes};
	int r = 0;

	if (strncmp(old, OLD, strlen(OLD)) || !name_parse_hour(old + strlen(OLD), &c.p))
		return 0;
	c.old = folder_open(at, old, 0);
	if (c.old < 0)
		return c.old == -ENOENT ? 0 : c.old;
	for (int i = 0; i < TABLES; i++) {
		c.at[i] = folder_partition(dir, &c.p, i, 0);
		if (c.at[i] < 0 && c.at[i] != -ENOENT)
			r = c.at[i];
	}
	if (!r)
		r = clean_files(&c);
	for (int i = 0; i < TABLES; i++) {
		if (c.at[i] >= 0)
			close(c.at[i]);
		folder_remove_empty(dir, &c.p, i);
	}
	close(c.old);
	if (!r && unlinkat(at, old, AT_REMOVEDIR))
		r = -errno;
	return r;
}

/* Whether the folder was moved at least ns ago; true on file systems that do not record the
 * time. */
static bool is_since(int at, const char *name, uint64_t ns)
{
	struct stat st;
	int64_t age;

	if (!ns || fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW))
		return true;
	age = (int64_t)fusee_now(CLOCK_REALTIME) - st.st_ctim.tv_sec * FUSEE_SECOND -
	      st.st_ctim.tv_nsec;
	return age < 0 || age >= (int64_t)ns; /* < 0: the clock was set back */
}

int swap_clean(int dir, mode_t dir_mode, uint64_t min_ns, uint64_t *stacks_bytes)
{
	int at = folder_open(dir, FOLDER_UNFINISHED, 0), lock = -1, r = 0;
	const struct dirent *e;
	DIR *d;

	if (at < 0)
		return at == -ENOENT ? 0 : at;
	d = fusee_folder_list(at);
	if (!d)
		r = -errno;
	while (!r && d && (e = readdir(d))) {
		if (strncmp(e->d_name, OLD, strlen(OLD)) || !is_since(at, e->d_name, min_ns))
			continue;
		if (lock < 0)
			lock = swap_lock(dir, dir_mode, 0);
		r = lock < 0 ? lock : clean_hour(dir, dir_mode, at, e->d_name, stacks_bytes);
	}
	if (d)
		closedir(d);
	if (lock >= 0)
		close(lock);
	close(at);
	return r == -EAGAIN ? 0 : r;
}

/* ---- the exchange ---- */

static const struct merge_window *find(const struct swap *s, const char *name)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->windows[i].chosen && !strcmp(s->windows[i].name, name))
			return &s->windows[i];
	return NULL;
}

/* 1: the file is one of the replaced windows. */
static int take_over(const struct swap *s, int from, int to, const char *name)
{
	const struct merge_window *w = find(s, name);
	struct stat st;

	if (!name_is_ours(name, NULL) || fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return -EEXIST;
	if (w)
		return st.st_ino == w->ino ? 1 : -ESTALE;
	return linkat(from, name, to, name, 0) ? -errno : 0;
}

static int take_all_over(const struct swap *s, int from, int to)
{
	DIR *d = fusee_folder_list(from);
	const struct dirent *e;
	uint32_t found = 0;
	int r = d ? 0 : -errno;

	while (r >= 0 && d && (errno = 0, e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		r = take_over(s, from, to, e->d_name);
		found += r == 1;
	}
	if (r >= 0 && d && !e && errno) /* a file that readdir() missed would be lost */
		r = -errno;
	if (d)
		closedir(d);
	return r < 0 ? r : found == s->nchosen ? 0 : -ESTALE;
}

/* Fills the second folder; its permissions are those of the first. */
static int fill(const struct swap *s, int from, int to)
{
	struct stat st;
	int r = fstat(from, &st) || fchmod(to, st.st_mode & 07777) ? -errno : 0;

	if (!r && fchown(to, (uid_t)-1, st.st_gid) && errno != EPERM)
		r = -errno;
	if (!r)
		r = take_all_over(s, from, to);
	return r ? r : folder_rename(s->dir, s->part, SAMPLES, to, s->name);
}

static int exchange(const struct swap *s, int at, const char *old, bool *done)
{
	int table = folder_open(s->dir, folder_tables[SAMPLES], 0), date, r;

	if (table < 0)
		return table;
	date = folder_open(table, s->p->date, 0);
	close(table);
	if (date < 0)
		return date;
	r = renameat2(at, old, date, s->p->hour, RENAME_EXCHANGE) ? -errno : 0;
	if (r == -EINVAL || r == -ENOSYS || r == -EXDEV)
		r = -EOPNOTSUPP;
	*done = !r;
	if (!r && (fsync(date) || fsync(at)) && errno != EINVAL)
		r = -errno;
	close(date);
	return r;
}

static int stage(const struct swap *s, int at, const char *old)
{
	int from = folder_partition(s->dir, s->p, SAMPLES, 0), to, stacks, r;

	if (from < 0)
		return from;
	to = folder_open(at, old, s->dir_mode);
	r = to < 0 ? to : fill(s, from, to);
	if (to >= 0)
		close(to);
	close(from);
	if (r)
		return r;
	stacks = folder_partition(s->dir, s->p, STACKS, 0);
	if (stacks < 0)
		return stacks;
	r = folder_rename(s->dir, s->part, STACKS, stacks, s->name);
	close(stacks);
	return r;
}

int swap_in(const struct swap *s)
{
	int at = folder_open(s->dir, FOLDER_UNFINISHED, 0), r;
	char old[OLD_SIZE] = OLD;
	uint64_t bytes = 0;
	bool done = false;

	if (at < 0)
		return at;
	name_hour(old + strlen(OLD), s->p);
	r = clean_hour(s->dir, s->dir_mode, at, old, &bytes);
	if (!r) {
		r = stage(s, at, old);
		if (!r)
			r = exchange(s, at, old, &done);
		if (!done)
			clean_hour(s->dir, s->dir_mode, at, old, &bytes);
	}
	close(at);
	return r;
}
