/* SPDX-License-Identifier: Apache-2.0 */
/* A Parquet file of sink.parquet. Columns of one row group at a time are loaded. Errors are -EINVAL
 * and -EFBIG with a static sentence in *why, and -errno. */
#ifndef PARQUET_TABLE_H
#define PARQUET_TABLE_H

#include <stdbool.h>

#include "parquet/internal/files.h"

#define PARQUET_COLUMNS 24

/* What a file must have, or may have: files of an earlier version lack it. */
struct parquet_column {
	const char *name;
	const char *in; /* of a map or list; NULL: flat */
	uint32_t type;  /* enum fusee_parquet_type */
	bool may_lack;
};
#define PARQUET_LACKS UINT32_MAX

struct parquet_table {
	struct files *files;
	struct fusee_parquet_input in;
	struct fusee_parquet_file *file; /* NULL: it is not open */
	/* by the number of a column: its index in the file, or PARQUET_LACKS */
	uint32_t places[PARQUET_COLUMNS];
	uint32_t ncolumns, ngroups;
	/* of row group `group`, by the number of a column; NULL: not loaded */
	struct fusee_parquet_values *values[PARQUET_COLUMNS];
	uint32_t group;
	uint64_t rows;   /* of that group */
	uint64_t bytes;  /* that were read so far */
	uint64_t memory; /* of the loaded columns */
};

/* -ENOENT: there is no such file. After an error there is nothing to close. */
int parquet_table_open(struct parquet_table *, struct files *, enum files_table, const char *path,
		       const struct parquet_column *, uint32_t n, const char **why);
/* A table that could not be opened, or was closed, is fine. */
void parquet_table_close(struct parquet_table *);
/* Changes to a row group; frees the columns of another. */
void parquet_table_group(struct parquet_table *, uint32_t group);
/* Loads columns of the group; columns that are loaded already stay. Columns that the file lacks are
 * skipped. */
int parquet_table_load(struct parquet_table *, const uint32_t *columns, uint32_t n,
		       const char **why);
/* The distinct values of a column of texts of the group, by code; to be unloaded. */
int parquet_table_distinct(struct parquet_table *, uint32_t column, struct fusee_parquet_values **,
			   const char **why);
/* Frees the loaded columns, if they take more than `keep` bytes. */
void parquet_table_unload(struct parquet_table *, uint64_t keep);
/* The bounds of a flat column in any row group. False: it has none. */
bool parquet_table_bounds(const struct parquet_table *, uint32_t group, uint32_t column,
			  struct fusee_parquet_bounds *);

/* Whether a row of the group can have this text, by the column's filter. 1, 0, or an error. */
int parquet_table_may_have(struct parquet_table *, uint32_t group, uint32_t column,
			   struct fusee_str text, const char **why);

/* Value i of a loaded column; of texts that the file lacks: "". */
static inline int64_t parquet_number(const struct parquet_table *t, uint32_t column, uint64_t i)
{
	const struct fusee_parquet_values *v = t->values[column];

	return v->numbers[v->codes ? v->codes[i] : i];
}

static inline struct fusee_str parquet_text(const struct parquet_table *t, uint32_t column,
					    uint64_t i)
{
	const struct fusee_parquet_values *v = t->values[column];

	return v ? v->texts[v->codes ? v->codes[i] : i] : (struct fusee_str){"", 0};
}

/* Where the values of a row of a map or list begin. */
static inline uint64_t parquet_begin(const struct parquet_table *t, uint32_t column, uint64_t row)
{
	return row ? t->values[column]->ends[row - 1] : 0;
}
#endif
