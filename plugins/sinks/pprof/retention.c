/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No index is kept: others may remove files too, or write into the same directory. A look reads the
 * directory and remembers the oldest files, a bounded number of them; it makes more room than was
 * asked for, so that it is not needed at each window.
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

#define OLDEST 4096
#define HOUR 3600000000000ull

struct entry {
	uint64_t ns, bytes;
	char name[NAME_SIZE];
};

struct look {
	struct entry *entries; /* 2 * OLDEST */
	uint32_t n;
	uint64_t bytes;  /* of all files, also those that are not among the entries */
	uint64_t oldest; /* window of the oldest that stays */
	bool more;       /* there are files beyond the entries */
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

static void forget_newest(struct look *l)
{
	qsort(l->entries, l->n, sizeof(*l->entries), by_name);
	if (l->n > OLDEST) {
		l->n = OLDEST;
		l->more = true;
	}
}

static void add(struct look *l, int dir, const char *name)
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
		forget_newest(l);
}

/* Left by a run that died. Whoever still writes one holds its lock. */
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

static int read_names(struct look *l, int dir)
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
	forget_newest(l);
	return r;
}

/* From the oldest on; true: something went, and all that could. */
static bool remove_oldest(struct retention *k, struct look *l, int dir, uint64_t most)
{
	uint64_t t = now(), before = k->keep_ns && t > k->keep_ns ? t - k->keep_ns : 0;
	bool removed = false;
	uint32_t i;

	for (i = 0; i < l->n; i++) {
		struct entry *e = &l->entries[i];
		bool old = e->ns < before;

		if (!old && l->bytes <= most)
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

/* What may be there before `need` bytes are added: with room for some more windows. */
static uint64_t allowed(const struct retention *k, uint64_t bytes, uint64_t need)
{
	uint64_t spare = k->max_size / 32;

	if (!k->max_size || (bytes <= k->max_size && need <= k->max_size - bytes))
		return UINT64_MAX;
	if (need >= k->max_size)
		return 0;
	return spare < k->max_size - need ? k->max_size - need - spare : 0;
}

int retention_look(struct retention *k, int dir, uint64_t need)
{
	uint64_t slack = k->keep_ns / 64 < HOUR ? k->keep_ns / 64 : HOUR, t;
	struct look l = {.entries = calloc(2 * OLDEST, sizeof(*l.entries))};
	bool again = true;
	int r = l.entries ? 0 : -ENOMEM;

	while (!r && again) {
		r = read_names(&l, dir);
		again = !r && remove_oldest(k, &l, dir, allowed(k, l.bytes, need)) && l.more;
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
	return retention_look(k, dir, need);
}
