/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There is no index, since other processes may remove files or write into the same directory. A
 * scan reads the directory and keeps a bounded number of its oldest files. It makes more room than
 * is needed, so that not every window needs a scan.
 */
#include "retention.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "name.h"

#define OLDEST 4096 /* files that a scan keeps */

struct entry {
	uint64_t ns, bytes;
	char name[NAME_SIZE];
};

struct scan {
	struct entry *entries; /* 2 * OLDEST */
	uint32_t n;
	uint64_t bytes;  /* of all files, also of those without an entry */
	uint64_t oldest; /* window of the oldest file that stays; 0: not known */
	bool more;       /* there are files without an entry */
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* Keeps the OLDEST entries, sorted. */
static void drop_newest(struct scan *l)
{
	qsort(l->entries, l->n, sizeof(*l->entries), by_name);
	if (l->n > OLDEST) {
		l->n = OLDEST;
		l->more = true;
	}
}

static void add(struct scan *l, int dir, const char *name)
{
	struct entry *e = &l->entries[l->n];
	struct stat st;

	if (!name_is_ours(name, &e->ns) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return;
	e->bytes = (uint64_t)st.st_size;
	memcpy(e->name, name, strlen(name) + 1);
	l->bytes += e->bytes;
	if (++l->n == 2 * OLDEST)
		drop_newest(l);
}

/* Removes an unfinished file unless the process that writes it holds its lock. */
static void remove_unfinished(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && !flock(fd, LOCK_EX | LOCK_NB))
		unlinkat(dir, name, 0);
	close(fd);
}

static int read_names(struct scan *l, int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;
	struct dirent *e;
	DIR *d = copy < 0 ? NULL : fdopendir(copy);

	l->n = 0;
	l->bytes = 0;
	l->more = false;
	if (!d) {
		r = -errno;
		if (copy >= 0)
			close(copy);
		return r;
	}
	errno = 0;
	while ((e = readdir(d))) {
		if (name_is_unfinished(e->d_name))
			remove_unfinished(dir, e->d_name);
		else
			add(l, dir, e->d_name);
		errno = 0;
	}
	r = -errno;
	closedir(d);
	drop_newest(l);
	return r;
}

/* Removes files in order of age. True: all entries were removed, so that another scan may find
 * more. */
static bool remove_oldest(struct retention *k, struct scan *l, int dir, uint64_t max)
{
	uint64_t t = now(), before = k->keep_ns && t > k->keep_ns ? t - k->keep_ns : 0;
	bool removed = false;
	uint32_t i;

	for (i = 0; i < l->n; i++) {
		struct entry *e = &l->entries[i];
		bool old = e->ns < before;

		if (!old && l->bytes <= max)
			break;
		if (unlinkat(dir, e->name, 0) && errno != ENOENT)
			continue;
		removed = true;
		l->bytes -= e->bytes;
		*(old ? &k->too_old : &k->too_many) += 1;
	}
	l->oldest = i < l->n ? l->entries[i].ns : 0;
	return removed && i == l->n;
}

/* Bytes that may remain before `need` bytes are added, with room for some more windows. */
static uint64_t allowed_bytes(const struct retention *k, uint64_t bytes, uint64_t need)
{
	uint64_t spare = k->max_size / 32;

	if (!k->max_size || (bytes <= k->max_size && need <= k->max_size - bytes))
		return UINT64_MAX;
	if (need >= k->max_size)
		return 0;
	return spare < k->max_size - need ? k->max_size - need - spare : 0;
}

int retention_scan(struct retention *k, int dir, uint64_t need)
{
	uint64_t slack = k->keep_ns / 64 < (uint64_t)FUSEE_HOUR ? k->keep_ns / 64
								: (uint64_t)FUSEE_HOUR,
		 t;
	struct scan l = {.entries = calloc(2 * OLDEST, sizeof(*l.entries))};
	bool again = true;
	int r = l.entries ? 0 : -ENOMEM;

	while (!r && again) {
		r = read_names(&l, dir);
		again = !r && remove_oldest(k, &l, dir, allowed_bytes(k, l.bytes, need)) && l.more;
	}
	if (!r) {
		k->bytes = l.bytes;
		t = now();
		k->next_ns = (l.oldest ? l.oldest : t) + k->keep_ns + slack;
		if (k->next_ns < t + slack)
			k->next_ns = t + slack;
	}
	free(l.entries);
	return r;
}

int retention_make_room(struct retention *k, int dir, uint64_t need)
{
	bool old = k->keep_ns && now() > k->next_ns;

	if (!old && (!k->max_size || (k->bytes <= k->max_size && need <= k->max_size - k->bytes)))
		return 0;
	return retention_scan(k, dir, need);
}
