/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/internal/table.h"

#include <errno.h>
#include <string.h>

#define MEMORY_OF_COLUMN (256ull << 20)
#define MEMORY (512ull << 20) /* of the columns of a row group, also while one is being loaded */

/* ---- columns ---- */

static bool is_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : !a && !b;
}

static bool is_column(const struct fusee_parquet_column *c, const struct parquet_column *required)
{
	return c->type == required->type && is_same(c->name, required->name) &&
	       is_same(c->in, required->in);
}

static int find_columns(struct parquet_table *t, const struct parquet_column *required, uint32_t n)
{
	struct fusee_table columns = fusee_parquet_columns(t->file);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = 0;

		while (k < columns.n &&
		       !is_column(FUSEE_AT(struct fusee_parquet_column, columns, k), &required[i]))
			k++;
		if (k == columns.n && !required[i].may_lack)
			return -EINVAL;
		t->places[i] = k < columns.n ? k : PARQUET_LACKS;
	}
	t->ncolumns = n;
	t->ngroups = fusee_parquet_groups(t->file);
	return 0;
}

/* ---- files ---- */

int parquet_table_open(struct parquet_table *t, struct files *files, enum files_table table,
		       const char *path, const struct parquet_column *required, uint32_t n,
		       const char **why)
{
	int r;

	*t = (struct parquet_table){.files = files, .in = {.memory = MEMORY_OF_COLUMN}};
	r = files->ops->open(files, table, path, &t->in, why);
	if (r)
		return r;
	r = fusee_parquet_open(&t->file, &t->in, why);
	if (r) {
		files->ops->shut(files, &t->in);
		return r;
	}
	r = find_columns(t, required, n);
	if (r) {
		*why = "it lacks columns of this version of sink.parquet";
		parquet_table_close(t);
	}
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
	if (!t->file)
		return;
	unload(t);
	fusee_parquet_close(t->file);
	t->files->ops->shut(t->files, &t->in);
	*t = (struct parquet_table){0};
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

		if (*v || t->places[columns[i]] == PARQUET_LACKS)
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

int parquet_table_distinct(struct parquet_table *t, uint32_t column,
			   struct fusee_parquet_values **values, const char **why)
{
	int r = fusee_parquet_load_distinct(t->file, t->group, t->places[column], values, why);

	if (!r)
		t->bytes += (*values)->bytes;
	return r;
}

bool parquet_table_bounds(const struct parquet_table *t, uint32_t group, uint32_t column,
			  struct fusee_parquet_bounds *b)
{
	return t->places[column] != PARQUET_LACKS &&
	       fusee_parquet_bounds(t->file, group, t->places[column], b);
}

int parquet_table_may_have(struct parquet_table *t, uint32_t group, uint32_t column,
			   struct fusee_str text, const char **why)
{
	return t->places[column] == PARQUET_LACKS
		       ? 1
		       : fusee_parquet_may_have(t->file, group, t->places[column], text, &t->bytes,
						why);
}
