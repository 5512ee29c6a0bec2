/* SPDX-License-Identifier: Apache-2.0 */
#include "input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../rows.h"

/* The limit for a column or a footer: a row group of a window took up to 64 MiB when it was
 * written, and lists also have levels. */
#define MEMORY (128ull << 20)

static bool is_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : !a && !b;
}

/* A map's columns are "key" and "value" in files. */
static bool has_columns(const struct input *in, struct fusee_table ours)
{
	struct fusee_table theirs = fusee_parquet_columns(in->file);

	if (theirs.n != ours.n || theirs.n > INPUT_COLUMNS)
		return false;
	for (uint32_t i = 0; i < ours.n; i++) {
		const struct fusee_parquet_column *a = FUSEE_AT(struct fusee_parquet_column, ours,
								i),
						  *b = FUSEE_AT(struct fusee_parquet_column, theirs,
								i);

		if (a->type != b->type || a->group != b->group || !is_same(a->in, b->in) ||
		    (a->group != FUSEE_PARQUET_MAP && !is_same(a->name, b->name)))
			return false;
	}
	return true;
}

int input_open_any(struct input *in, int at, const char *name)
{
	struct fusee_parquet_input p = {
		.read = fusee_parquet_read_fd, .arg = &in->fd, .memory = MEMORY};
	struct stat st;

	*in = (struct input){.why = ""};
	in->fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (in->fd < 0 || fstat(in->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
		in->why = "it is no regular file of ours";
		return -EINVAL;
	}
	p.size = (uint64_t)st.st_size;
	return fusee_parquet_open(&in->file, &p, &in->why);
}

int input_open(struct input *in, int at, const char *name, int table)
{
	struct fusee_table ours = table == SAMPLES ? rows_samples : rows_stacks;
	int r = input_open_any(in, at, name);

	if (!r && !has_columns(in, ours)) {
		in->why = "it has not the columns of this version";
		r = -EINVAL;
	}
	in->ncolumns = r ? 0 : ours.n;
	return r;
}

static void unload(struct input *in)
{
	for (uint32_t i = 0; i < in->ncolumns; i++) {
		fusee_parquet_unload(in->values[i]);
		in->values[i] = NULL;
	}
}

void input_close(struct input *in)
{
	unload(in);
	fusee_parquet_close(in->file);
	if (in->fd >= 0)
		close(in->fd);
	in->file = NULL;
	in->fd = -1;
}

static int load(struct input *in, uint32_t group, uint32_t column)
{
	return in->values[column]
		       ? 0
		       : fusee_parquet_load(in->file, group, column, &in->values[column], &in->why);
}

int input_load(struct input *in, uint32_t group, const uint32_t *columns, uint32_t n)
{
	int r = 0;

	unload(in);
	for (uint32_t i = 0; !r && i < n; i++)
		r = load(in, group, columns[i]);
	return r;
}

/* Columns of a map or list have the same number of values in each row: the writer checks that. */
int input_load_rest(struct input *in, uint32_t group)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < in->ncolumns; i++)
		r = load(in, group, i);
	return r;
}

int64_t input_number(const struct input *in, uint32_t column, uint64_t row)
{
	const struct fusee_parquet_values *v = in->values[column];

	return v->numbers[v->codes ? v->codes[row] : row];
}

void input_copy_column(const struct input *in, struct fusee_parquet *w, uint32_t c, uint64_t row)
{
	const struct fusee_parquet_values *v = in->values[c];
	uint64_t i = v->ends ? row ? v->ends[row - 1] : 0 : row,
		 end = v->ends ? v->ends[row] : row + 1;

	for (; i < end; i++) {
		uint64_t code = v->codes ? v->codes[i] : i;

		if (v->numbers)
			fusee_parquet_int(w, c, v->numbers[code]);
		else
			fusee_parquet_text(w, c, v->texts[code]);
	}
}

int input_copy(const struct input *in, struct fusee_parquet *w, uint64_t row)
{
	for (uint32_t c = 0; c < in->ncolumns; c++)
		input_copy_column(in, w, c, row);
	return fusee_parquet_row(w);
}

bool input_window(const struct input *in, uint32_t i, char name[NAME_SIZE])
{
	char key[32];
	const struct fusee_str *text;
	uint64_t n = 0;

	snprintf(key, sizeof(key), INPUT_WINDOW "%u", i);
	text = fusee_parquet_pair(in->file, fusee_text(key));
	if (!text)
		return false;
	while (n < text->len && text->p[n] != ' ')
		n++;
	snprintf(name, NAME_SIZE, "%.*s", (int)(n < NAME_SIZE ? n : NAME_SIZE - 1), text->p);
	return true;
}
