/* SPDX-License-Identifier: Apache-2.0 */
#include "query/parquet_table.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMORY_OF_COLUMN (256ull << 20)
#define MEMORY (512ull << 20) /* of a row group's columns, while another is loaded, too */

/* ---- columns ---- */

static bool is_column(const struct fusee_parquet_column *c, const struct parquet_column *required)
{
	return c->type == required->type && !strcmp(c->name, required->name) &&
	       (required->in ? c->in && !strcmp(c->in, required->in) : !c->in);
}

static int find_columns(struct parquet_table *t, const struct parquet_column *required, uint32_t n)
{
	struct fusee_table columns = fusee_parquet_columns(t->file);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = 0;

		while (k < columns.n &&
		       !is_column(FUSEE_AT(struct fusee_parquet_column, columns, k), &required[i]))
			k++;
		if (k == columns.n)
			return -EINVAL;
		t->places[i] = k;
	}
	t->ncolumns = n;
	t->ngroups = fusee_parquet_groups(t->file);
	return 0;
}

/* ---- files ---- */

static int open_fd(struct parquet_table *t, int dir, const char *path, uint64_t *size,
		   const char **why)
{
	struct stat st;

	/* a named pipe would wait for a writer */
	t->fd = openat(dir, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	if (t->fd < 0 && errno == ELOOP) {
		*why = "it is a link";
		return -EINVAL;
	}
	if (t->fd < 0 || fstat(t->fd, &st))
		return -errno;
	*size = (uint64_t)st.st_size;
	if (S_ISREG(st.st_mode))
		return 0;
	*why = "it is no regular file";
	return -EINVAL;
}

int parquet_table_open(struct parquet_table *t, int dir, const char *path,
		       const struct parquet_column *required, uint32_t n, const char **why)
{
	struct fusee_parquet_input in = {.read = fusee_parquet_read_fd, .memory = MEMORY_OF_COLUMN};
	int r;

	*t = (struct parquet_table){.fd = -1};
	r = open_fd(t, dir, path, &in.size, why);
	in.arg = &t->fd;
	if (!r)
		r = fusee_parquet_open(&t->file, &in, why);
	if (!r) {
		r = find_columns(t, required, n);
		if (r)
			*why = "it lacks columns of this version of sink.parquet";
	}
	if (r)
		parquet_table_close(t);
	return r;
}

static void unload(struct parquet_table *t)
{
	for (uint32_t i = 0; i < t->ncolumns; i++) {
		fusee_parquet_unload(t->values[i]);
		t->values[i] = NULL;
	}
	t->memory = 0;
}

void parquet_table_unload(struct parquet_table *t, uint64_t keep)
{
	if (t->memory > keep)
		unload(t);
}

void parquet_table_close(struct parquet_table *t)
{
	unload(t);
	fusee_parquet_close(t->file);
	if (t->fd >= 0)
		close(t->fd);
	*t = (struct parquet_table){.fd = -1};
}

void parquet_table_group(struct parquet_table *t, uint32_t group)
{
	if (group != t->group)
		unload(t);
	t->group = group;
	t->rows = fusee_parquet_group_rows(t->file, group);
}

int parquet_table_load(struct parquet_table *t, const uint32_t *columns, uint32_t n,
		       const char **why)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < n; i++) {
		struct fusee_parquet_values **v = &t->values[columns[i]];

		if (*v)
			continue;
		if (t->memory > MEMORY - MEMORY_OF_COLUMN) {
			*why = "its columns take more memory than may be used";
			return -EFBIG;
		}
		r = fusee_parquet_load(t->file, t->group, t->places[columns[i]], v, why);
		if (r)
			break;
		t->bytes += (*v)->bytes;
		t->memory += (*v)->memory;
	}
	return r;
}

bool parquet_table_bounds(const struct parquet_table *t, uint32_t group, uint32_t column,
			  struct fusee_parquet_bounds *b)
{
	return fusee_parquet_bounds(t->file, group, t->places[column], b);
}
