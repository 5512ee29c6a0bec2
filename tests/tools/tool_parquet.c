/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_parquet FILE: writes a Parquet file of what stdin says, a line each:
 *	codec N | rows N | memory N | sort COLUMN..
 *	column NAME TYPE [map|list IN]	NAME: "-": a list of values
 *	begin
 *	row COLUMN=VALUE ..		texts in hex
 *	metadata KEY VALUE		in hex
 * Prints "BYTES ROWS" at the end. A failed call ends it with the call's name and errno.
 */
#include <stdio.h>
#include <stdlib.h>

#include <fusee/parquet.h>

static struct fusee_parquet_column columns[FUSEE_PARQUET_MAX_COLUMNS + 1];
static uint32_t ncolumns, sort[8], nsort;
static struct fusee_parquet_options options;

static int put(void *arg, const void *bytes, uint64_t n)
{
	return fwrite(bytes, 1, n, arg) == n ? 0 : -EIO;
}

static void check(const char *what, int r)
{
	if (!r)
		return;
	printf("%s: %d\n", what, -r);
	exit(1);
}

static char digit(char c)
{
	return (char)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static struct fusee_str unhex(const char *text)
{
	char *to = malloc(strlen(text) / 2 + 1);
	struct fusee_str s = {to, strlen(text) / 2};

	for (uint64_t i = 0; i < s.len; i++)
		to[i] = (char)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
	return s;
}

static void add_column(char **at)
{
	struct fusee_parquet_column *c = &columns[ncolumns++];
	const char *kind;

	c->name = strdup(strsep(at, " "));
	if (!strcmp(c->name, "-"))
		c->name = NULL;
	c->type = (uint32_t)atoi(strsep(at, " "));
	kind = strsep(at, " ");
	if (!kind)
		return;
	c->group = !strcmp(kind, "map") ? FUSEE_PARQUET_MAP : FUSEE_PARQUET_LIST;
	c->in = strdup(strsep(at, " "));
}

static struct fusee_parquet *begin(FILE *f)
{
	struct fusee_parquet *w;

	options.columns = (struct fusee_table){columns, ncolumns, sizeof(*columns)};
	options.sort = (struct fusee_table){sort, nsort, sizeof(*sort)};
	options.write = put;
	options.arg = f;
	check("new", fusee_parquet_new(&w, &options));
	return w;
}

static void add_row(struct fusee_parquet *w, char *at)
{
	char *word;

	while ((word = strsep(&at, " "))) {
		uint32_t column = (uint32_t)strtoul(word, &word, 10);

		word++;
		if (column < ncolumns && columns[column].type == FUSEE_PARQUET_TEXT) {
			struct fusee_str s = unhex(word);

			fusee_parquet_text(w, column, s);
			free((char *)(uintptr_t)s.p);
		} else {
			fusee_parquet_int(w, column, strtoll(word, NULL, 10));
		}
	}
	check("row", fusee_parquet_row(w));
}

static void add_pair(struct fusee_parquet *w, char *at)
{
	struct fusee_str key = unhex(strsep(&at, " ")), value = unhex(at);

	fusee_parquet_metadata(w, key, value);
	free((char *)(uintptr_t)key.p);
	free((char *)(uintptr_t)value.p);
}

static void obey(struct fusee_parquet **w, FILE *f, char *line)
{
	char *at = line, *word = strsep(&at, " ");

	if (!strcmp(word, "codec"))
		options.codec = (uint32_t)atoi(at);
	else if (!strcmp(word, "rows"))
		options.rows = (uint32_t)atoi(at);
	else if (!strcmp(word, "memory"))
		options.memory = strtoull(at, NULL, 10);
	else if (!strcmp(word, "sort"))
		while ((word = strsep(&at, " ")))
			sort[nsort++] = (uint32_t)atoi(word);
	else if (!strcmp(word, "column"))
		add_column(&at);
	else if (!strcmp(word, "begin"))
		*w = begin(f);
	else if (!strcmp(word, "row"))
		add_row(*w, at);
	else if (!strcmp(word, "metadata"))
		add_pair(*w, at);
}

int main(int argc, char **argv)
{
	FILE *f = argc == 2 ? fopen(argv[1], "w") : NULL;
	struct fusee_parquet *w = NULL;
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	if (!f)
		return 64;
	while ((n = getline(&line, &cap, stdin)) > 0) {
		line[n - 1] = '\0';
		obey(&w, f, line);
	}
	check("finish", fusee_parquet_finish(w));
	printf("%llu %llu\n", (unsigned long long)fusee_parquet_bytes(w),
	       (unsigned long long)fusee_parquet_rows(w));
	fusee_parquet_free(w);
	for (uint32_t i = 0; i < ncolumns; i++) {
		free((char *)(uintptr_t)columns[i].name);
		free((char *)(uintptr_t)columns[i].in);
	}
	free(line);
	return fclose(f) ? 1 : 0;
}
