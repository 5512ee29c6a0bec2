/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/internal/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"

#define SECOND 1000000000ull
#define END ".parquet"
#define MERGED ".merged" END

/* The form of names at a level of folders, and the length of the time that they name. */
static const struct level {
	const char *shape; /* '0' is a digit */
	const char *format;
	uint64_t ns;
} levels[] = {
	{"date=0000-00-00", "date=%Y-%m-%d", 86400 * SECOND},
	{"hour=00", "hour=%H", 3600 * SECOND},
	{"0000-00-00T00-00-00Z-", "%Y-%m-%dT%H-%M-%SZ-", SECOND},
};
enum { DATE, HOUR, FILES };

static bool begins(const char *name, const char *shape)
{
	for (; *shape; name++, shape++)
		if (*shape == '0' ? *name < '0' || *name > '9' : *name != *shape)
			return false;
	return true;
}

/* Reads the begin of the time that a name has. False: it has none. */
static bool parse(const char *name, const struct level *l, struct tm *tm, uint64_t *ns)
{
	int64_t t;

	if (!begins(name, l->shape) || !strptime(name, l->format, tm))
		return false;
	t = timegm(tm);
	if (t < 0 || t > 9000000000)
		return false;
	*ns = (uint64_t)t * SECOND;
	return true;
}

int parquet_list_add(struct parquet_list *list, struct parquet_entry e)
{
	if (!e.path || !ARRAY_ROOM(list->entries, list->n, list->cap)) {
		free(e.path);
		return -ENOMEM;
	}
	list->entries[list->n++] = e;
	return 0;
}

static bool ends(const char *name, const char *end)
{
	size_t n = strlen(name);

	return n > strlen(end) && !strcmp(name + n - strlen(end), end);
}

bool parquet_list_is_merged(const char *path)
{
	return ends(path, MERGED);
}

static bool is_table(const char *name)
{
	return *name != '.' && ends(name, END);
}

/* A file whose name has no time may have any time of its partition. A file whose time is outside of
 * its partition is a copy, which would count twice, and is omitted. */
static int add_file(struct parquet_list *list, const char *folder, const char *name, struct tm tm,
		    uint64_t hour_ns)
{
	struct parquet_entry e = {NULL, hour_ns, hour_ns + levels[HOUR].ns, 0, false};
	uint64_t ns;

	if (!is_table(name))
		return 0;
	if (parse(name, &levels[FILES], &tm, &ns)) {
		if (ns < e.from_ns || ns >= e.to_ns)
			return 0;
		e.from_ns = ns;
		if (!ends(name, MERGED)) /* the windows of a merged file begin at ns or later */
			e.to_ns = ns + SECOND;
	}
	if (asprintf(&e.path, "%s/%s", folder, name) < 0)
		e.path = NULL;
	return parquet_list_add(list, e);
}

/* A folder's name has exactly the level's shape. */
static bool parse_folder(const char *name, int level, struct tm *tm, uint64_t *ns)
{
	return strlen(name) == strlen(levels[level].shape) && parse(name, &levels[level], tm, ns);
}

/* ---- names of objects ---- */

int parquet_list_take(struct parquet_list *list, const char *path)
{
	const char *hour = strchr(path, '/'), *name = hour ? strchr(hour + 1, '/') : NULL;
	char date[16], partition[32];
	struct tm tm = {0};
	uint64_t ns;

	if (!name || strchr(name + 1, '/') || (size_t)(hour - path) >= sizeof(date) ||
	    (size_t)(name - path) >= sizeof(partition))
		return 0;
	snprintf(date, sizeof(date), "%.*s", (int)(hour - path), path);
	snprintf(partition, sizeof(partition), "%.*s", (int)(name - path), path);
	if (!parse_folder(date, DATE, &tm, &ns) ||
	    !parse_folder(partition + (hour - path) + 1, HOUR, &tm, &ns))
		return 0;
	return add_file(list, partition, name + 1, tm, ns);
}

bool parquet_list_is_day(const char *name, uint64_t *ns)
{
	struct tm tm = {0};

	return parse_folder(name, DATE, &tm, ns);
}

void parquet_list_partition(char *to, size_t size, const char *before, uint64_t ns, bool day)
{
	time_t t = (time_t)(ns / SECOND);
	char text[64];
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(text, sizeof(text), day ? "date=%Y-%m-%d/" : "date=%Y-%m-%d/hour=%H/", &tm);
	snprintf(to, size, "%s%s", before, text);
}

/* ---- folders ---- */

static DIR *open_folder(int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d && fd >= 0)
		close(fd);
	return d;
}

static int walk(struct parquet_list *list, int dir, const char *folder, int level, struct tm tm,
		uint64_t ns);

/* A folder of the next level, if its name is one. */
static int enter(struct parquet_list *list, int dir, const char *folder, const char *name,
		 int level, struct tm tm)
{
	char path[64];
	uint64_t ns;

	if (!parse_folder(name, level, &tm, &ns))
		return 0;
	/* names of folders are shorter, which gcc cannot know */
	snprintf(path, sizeof(path), "%.31s%s%.31s", level == DATE ? "" : folder,
		 level == DATE ? "" : "/", name);
	return walk(list, dir, path, level + 1, tm, ns);
}

/* Adds a folder of partitions that cannot be read. level: the level of its entries. */
static int add_failed(struct parquet_list *list, const char *folder, int level, uint64_t ns,
		      int err)
{
	struct parquet_entry e = {NULL, ns, ns + levels[level - 1].ns, err, false};

	if (err == -ENOENT || err == -ENOTDIR || err == -ELOOP)
		return 0;
	e.path = strdup(folder);
	return parquet_list_add(list, e);
}

static int walk(struct parquet_list *list, int dir, const char *folder, int level, struct tm tm,
		uint64_t ns)
{
	DIR *d = open_folder(dir, folder);
	const struct dirent *e = NULL;
	int r = 0, failed = d ? 0 : -errno;

	while (d && !r && (errno = 0, e = readdir(d)))
		r = level == FILES ? add_file(list, folder, e->d_name, tm, ns)
				   : enter(list, dir, folder, e->d_name, level, tm);
	if (d && !r)
		failed = -errno;
	if (d)
		closedir(d);
	if (r || !failed)
		return r;
	return level == DATE ? failed : add_failed(list, folder, level, ns, failed);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct parquet_entry *)a)->path,
		      ((const struct parquet_entry *)b)->path);
}

int parquet_list_read(struct parquet_list *list, int dir)
{
	int r = walk(list, dir, ".", DATE, (struct tm){0}, 0);

	parquet_list_sort(list);
	return r;
}

void parquet_list_sort(struct parquet_list *list)
{
	if (list->n)
		qsort(list->entries, list->n, sizeof(*list->entries), by_path);
}

void parquet_list_fini(struct parquet_list *list)
{
	for (uint64_t i = 0; i < list->n; i++)
		free(list->entries[i].path);
	free(list->entries);
	*list = (struct parquet_list){0};
}
