/* SPDX-License-Identifier: Apache-2.0 */
/* A file of this sink that is read again for a merge. Errors: -errno, with a sentence in `why` for
 * -EINVAL and -EFBIG. */
#ifndef PARQUET_INPUT_H
#define PARQUET_INPUT_H

#include <stdbool.h>

#include <fusee/parquet_read.h>

#include "../folder.h"

/* Keys of a merged file's own metadata: "fusee.window.12" = "NAME TS DURATION PERIOD PROFILE", and
 * "fusee.window.12.lost.ring full" = "3". TS is -1 for a window without samples. */
#define INPUT_WINDOW "fusee.window."
#define INPUT_COLUMNS 24

struct input {
	int fd;
	struct fusee_parquet_file *file;
	uint32_t ncolumns;
	struct fusee_parquet_values *values[INPUT_COLUMNS]; /* of the loaded row group */
	const char *why;
};

/* Opens a regular file of this sink, without checking its columns: for its metadata. */
int input_open_any(struct input *, int at, const char *name);
/* The same, but checks that it has the columns of a table of this sink. */
int input_open(struct input *, int at, const char *name, int table);
void input_close(struct input *); /* also after a failed open */
/* Loads columns of a row group; those of another are freed. */
int input_load(struct input *, uint32_t group, const uint32_t *columns, uint32_t n);
/* Loads the other columns of the same row group. */
int input_load_rest(struct input *, uint32_t group);
int64_t input_number(const struct input *, uint32_t column, uint64_t row);
/* Copies the values of a row in a column that is loaded. */
void input_copy_column(const struct input *, struct fusee_parquet *, uint32_t column, uint64_t row);
/* Copies a row of the row group, of which all columns are loaded. */
int input_copy(const struct input *, struct fusee_parquet *, uint64_t row);
/* The name of window i of a merged file, and all of its text. False: there are fewer. */
bool input_window(const struct input *, uint32_t i, char name[NAME_SIZE]);
#endif
