/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There is no index, because other processes may write into the same folder. A scan keeps a bounded
 * number of the oldest files in memory, and removes more than needed, so that not every window
 * needs a scan.
 */
#include <fusee/folder.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define OLDEST 4096 /* files that a scan keeps in memory */

struct entry {
	uint64_t ns, bytes;
	uint32_t table;
	char name[FUSEE_FOLDER_NAME];
};

struct fusee_folder_scan {
	struct entry *entries; /* 2 * OLDEST */
	uint32_t n;
	uint64_t bytes;             /* of all files, also of those without an entry */
	uint64_t oldest;            /* window of the oldest remaining file; 0: unknown */
	uint64_t too_old, too_many; /* files removed, by limit */
	bool more;                  /* there are files without an entry */
};

static int by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : (x->table > y->table) - (x->table < y->table);
}

/* Keeps the OLDEST entries, sorted. */
static void drop_newest(struct fusee_folder_scan *l)
{
	qsort(l->entries, l->n, sizeof(*l->entries), by_name);
	if (l->n > OLDEST) {
		l->n = OLDEST;
		l->more = true;
	}
}

void fusee_folder_found(struct fusee_folder_scan *l, int at, const char *name, uint64_t ns,
			uint32_t table)
{
	struct entry *e = &l->entries[l->n];
	size_t len = strlen(name);
	struct stat st;

	if (len >= sizeof(e->name) || fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return;
	*e = (struct entry){.ns = ns, .bytes = (uint64_t)st.st_size, .table = table};
	memcpy(e->name, name, len + 1);
	l->bytes += e->bytes;
	if (++l->n == 2 * OLDEST)
		drop_newest(l);
}

static int read_files(const struct fusee_folder *f, struct fusee_folder_scan *l, int dir)
{
	int r;

	l->n = 0;
	l->bytes = 0;
	l->more = false;
	r = f->ops->each(dir, l);
	drop_newest(l);
	return r;
}

/* Removes files in order of age. True: all entries were removed, so that another scan may find
 * more. */
static bool remove_oldest(const struct fusee_folder *f, struct fusee_folder_scan *l, int dir,
			  uint64_t max)
{
	uint64_t t = fusee_now(CLOCK_REALTIME), before = f->keep && t > f->keep ? t - f->keep : 0;
	bool removed = false;
	uint32_t i;

	for (i = 0; i < l->n; i++) {
		const struct entry *e = &l->entries[i];
		bool old = e->ns < before;
		int r;

		if (!old && l->bytes <= max)
			break;
		r = f->ops->remove(dir, e->name, e->table);
		if (r && r != -ENOENT)
			continue;
		removed = true;
		l->bytes -= e->bytes;
		*(old ? &l->too_old : &l->too_many) += 1;
	}
	l->oldest = i < l->n ? l->entries[i].ns : 0;
	return removed && i == l->n;
}

/* Bytes that may remain before `need` bytes are added, with room for some more windows. */
static uint64_t allowed_bytes(const struct fusee_folder *f, uint64_t bytes, uint64_t need)
{
	uint64_t spare = f->max_size / 32;

	if (!f->max_size || (bytes <= f->max_size && need <= f->max_size - bytes))
		return UINT64_MAX;
	if (need >= f->max_size)
		return 0;
	return spare < f->max_size - need ? f->max_size - need - spare : 0;
}

/* The time at which a file becomes too old, rounded up so that not each file needs a scan; at most
 * an hour ahead, as other processes write too. */
static uint64_t next_scan(const struct fusee_folder *f, uint64_t oldest)
{
	uint64_t hour = FUSEE_HOUR, slack = f->keep / 64 < hour ? f->keep / 64 : hour,
		 t = fusee_now(CLOCK_REALTIME), next = (oldest ? oldest : t) + f->keep + slack;

	if (!f->keep || next > t + hour)
		return t + hour;
	return next > t + slack ? next : t + slack;
}

static int scan(struct fusee_folder *f, int dir, uint64_t need)
{
	struct fusee_folder_scan l = {.entries = calloc(2 * OLDEST, sizeof(*l.entries))};
	bool again = true;
	int r = l.entries ? 0 : -ENOMEM;

	while (!r && again) {
		r = read_files(f, &l, dir);
		again = !r && remove_oldest(f, &l, dir, allowed_bytes(f, l.bytes, need)) && l.more;
	}
	fusee_count_by(f->self, "files_removed", "reason", "keep", l.too_old);
	fusee_count_by(f->self, "files_removed", "reason", "max_size", l.too_many);
	if (!r) {
		f->bytes = l.bytes;
		f->next_ns = next_scan(f, l.oldest);
	}
	free(l.entries);
	return r;
}

int fusee_folder_make_room(struct fusee_folder *f, int dir, uint64_t need)
{
	bool due = !f->next_ns ||
		   ((f->keep || f->max_size) && fusee_now(CLOCK_REALTIME) > f->next_ns),
	     fits = !f->max_size || (f->bytes <= f->max_size && need <= f->max_size - f->bytes);

	return due || !fits ? scan(f, dir, need) : 0;
}
