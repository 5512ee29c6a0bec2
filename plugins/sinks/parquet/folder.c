/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_SIZE (NAME_SIZE + 16)

const char *const folder_tables[TABLES] = {"samples", "stacks"};

int folder_open(int dir, const char *name, mode_t mode)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir, name, flags);

	if (fd >= 0 || errno != ENOENT || !mode)
		return fd >= 0 ? fd : -errno;
	if (mkdirat(dir, name, mode) && errno != EEXIST)
		return -errno;
	/* a file system that cannot sync directories says EINVAL */
	if (fsync(dir) && errno != EINVAL)
		return -errno;
	fd = openat(dir, name, flags);
	return fd >= 0 ? fd : -errno;
}

int folder_partition(int dir, const struct partition *p, int table, mode_t mode)
{
	int at = folder_open(dir, folder_tables[table], mode), date, hour;

	if (at < 0)
		return at;
	date = folder_open(at, p->date, mode);
	close(at);
	if (date < 0)
		return date;
	hour = folder_open(date, p->hour, mode);
	close(date);
	return hour;
}

/* The folder of a file, created if mode is not 0. */
static int open_partition(int dir, const char *name, int table, mode_t mode)
{
	struct partition p;

	name_partition(name, &p);
	return folder_partition(dir, &p, table, mode);
}

/* ---- unfinished files ---- */

static void part_name(char part[PART_SIZE], const char *name, int table)
{
	snprintf(part, PART_SIZE, "%.127s.%s", name, folder_tables[table]);
}

static bool is_part(const char *part)
{
	const char *dot = strrchr(part, '.');
	char name[NAME_SIZE];

	if (!dot || dot - part >= NAME_SIZE)
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)(dot - part), part);
	return name_is_ours(name, NULL) && (!strcmp(dot + 1, folder_tables[SAMPLES]) ||
					    !strcmp(dot + 1, folder_tables[STACKS]));
}

int folder_create(int dir, const char *name, int table, mode_t dir_mode, mode_t file_mode)
{
	int at = folder_open(dir, FOLDER_UNFINISHED, dir_mode), fd;
	char part[PART_SIZE];

	if (at < 0)
		return at;
	part_name(part, name, table);
	fd = fusee_folder_create(at, part, file_mode);
	close(at);
	return fd;
}

void folder_discard(int dir, const char *name, int table)
{
	int at = folder_open(dir, FOLDER_UNFINISHED, 0);
	char part[PART_SIZE];

	if (at < 0)
		return;
	part_name(part, name, table);
	unlinkat(at, part, 0);
	close(at);
}

int folder_rename(int dir, const char *name, int table, int to, const char *as)
{
	int at = folder_open(dir, FOLDER_UNFINISHED, 0), r;
	char part[PART_SIZE];

	if (at < 0)
		return at;
	part_name(part, name, table);
	r = renameat(at, part, to, as) ? -errno : 0;
	if (!r && fsync(to) && errno != EINVAL)
		r = -errno;
	close(at);
	return r;
}

int folder_commit(int dir, const char *name, int table, mode_t dir_mode)
{
	int to, r = 0;

	/* another agent's retention may remove the empty folder meanwhile */
	for (int attempt = 0; attempt < 3; attempt++) {
		to = open_partition(dir, name, table, dir_mode);
		if (to < 0) {
			r = to;
		} else {
			r = folder_rename(dir, name, table, to, name);
			close(to);
		}
		if (r != -ENOENT)
			break;
	}
	return r;
}

/* ---- walking through folders ---- */

int64_t folder_clean(int dir)
{
	int at = folder_open(dir, FOLDER_UNFINISHED, 0);
	int64_t removed = 0;
	struct dirent *e;
	DIR *d;

	if (at < 0)
		return at == -ENOENT ? 0 : at;
	d = fusee_folder_list(at);
	if (!d)
		removed = -errno;
	while (d && (e = readdir(d)))
		if (is_part(e->d_name))
			removed += fusee_folder_remove_unlocked(at, e->d_name);
	if (d)
		closedir(d);
	close(at);
	return removed;
}

struct walk {
	struct fusee_folder_scan *scan;
	int table;
	const char *date, *hour;
};

/* A level of the walk: 0 the dates of a table, 1 the hours of a date, 2 the files of an hour. */
static int walk_level(struct walk *w, int dir, int level)
{
	DIR *d = fusee_folder_list(dir);
	struct dirent *e;
	struct partition p;
	uint64_t ns;
	int r = d ? 0 : -errno;

	while (!r && (e = readdir(d))) {
		int at;

		if (level == 2) {
			if (!name_is_ours(e->d_name, &ns))
				continue;
			name_partition(e->d_name, &p);
			if (!strcmp(p.date, w->date) && !strcmp(p.hour, w->hour))
				fusee_folder_found(w->scan, dir, e->d_name, ns, (uint32_t)w->table);
			continue;
		}
		if (level ? !name_is_hour(e->d_name) : !name_is_date(e->d_name))
			continue;
		at = folder_open(dir, e->d_name, 0);
		if (at < 0) /* a file, a link, or removed meanwhile */
			continue;
		*(level ? &w->hour : &w->date) = e->d_name;
		r = walk_level(w, at, level + 1);
		close(at);
	}
	if (d)
		closedir(d);
	return r;
}

int folder_each(int dir, struct fusee_folder_scan *scan)
{
	int r = 0;

	for (int table = 0; !r && table < TABLES; table++) {
		struct walk w = {scan, table, NULL, NULL};
		int at = folder_open(dir, folder_tables[table], 0);

		if (at == -ENOENT)
			continue;
		r = at < 0 ? at : walk_level(&w, at, 0);
		if (at >= 0)
			close(at);
	}
	return r;
}

void folder_remove_empty(int dir, const struct partition *p, int table)
{
	int at = folder_open(dir, folder_tables[table], 0), date;

	if (at < 0)
		return;
	date = folder_open(at, p->date, 0);
	if (date >= 0) {
		unlinkat(date, p->hour, AT_REMOVEDIR); /* fails unless it is empty */
		close(date);
	}
	unlinkat(at, p->date, AT_REMOVEDIR);
	close(at);
}

int folder_remove(int dir, const char *name, uint32_t table)
{
	struct partition p;
	int at = open_partition(dir, name, (int)table, 0), r;

	if (at < 0)
		return at;
	r = unlinkat(at, name, 0) ? -errno : 0;
	close(at);
	if (r)
		return r;
	name_partition(name, &p);
	folder_remove_empty(dir, &p, (int)table);
	return 0;
}
