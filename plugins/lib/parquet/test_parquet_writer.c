/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/lib/parquet
/* Writers that fail, and calls that are refused. What files hold is tested by
 * tests/run/parquet-files. */
#include "test.h"

#include <fusee/parquet_read.h>

static const struct fusee_parquet_column columns[] = {
	{"ts", FUSEE_PARQUET_TIME, FUSEE_PARQUET_FLAT, NULL},
	{"stack", FUSEE_PARQUET_TEXT, FUSEE_PARQUET_FLAT, NULL},
	{NULL, FUSEE_PARQUET_TEXT, FUSEE_PARQUET_MAP, "labels"},
	{NULL, FUSEE_PARQUET_TEXT, FUSEE_PARQUET_MAP, "labels"},
};
static const uint32_t sort[] = {1, 0};

struct file {
	char *p;
	uint64_t len, calls, fail_at; /* call that fails, from 1; 0: none */
};

static int put(void *arg, const void *bytes, uint64_t n)
{
	struct file *f = arg;

	if (++f->calls == f->fail_at)
		return -ENOSPC;
	f->p = realloc(f->p, f->len + n);
	memcpy(f->p + f->len, bytes, n);
	f->len += n;
	return 0;
}

static int begin(struct fusee_parquet **w, struct file *f)
{
	struct fusee_parquet_options o = {.columns = FUSEE_TABLE(columns),
					  .sort = FUSEE_TABLE(sort),
					  .rows = 40,
					  .write = put,
					  .arg = f};

	return fusee_parquet_new(w, &o);
}

static int add_row(struct fusee_parquet *w, int i)
{
	char stack[200];

	snprintf(stack, sizeof(stack), "main;%0*d", i % 150, i % 7);
	fusee_parquet_int(w, 0, i);
	fusee_parquet_text(w, 1, fusee_text(stack));
	for (int k = 0; k < i % 3; k++) {
		fusee_parquet_text(w, 2, fusee_text(k ? "a" : "b"));
		fusee_parquet_text(w, 3, fusee_text(""));
	}
	return fusee_parquet_row(w);
}

/* A file of 100 rows. The first error. */
static int write_file(struct file *f)
{
	struct fusee_parquet *w;
	int r = begin(&w, f), after;

	if (r)
		return r;
	for (int i = 0; !r && i < 100; i++)
		r = add_row(w, i);
	if (!r) {
		fusee_parquet_metadata(w, fusee_text("k"), fusee_text("v"));
		r = fusee_parquet_finish(w);
	}
	after = add_row(w, 1);
	CHECK_INT(after, r ? r : -EINVAL);
	CHECK_INT(fusee_parquet_finish(w), after);
	CHECK_INT(fusee_parquet_bytes(w), f->len);
	CHECK_INT(fusee_parquet_rows(w), r ? fusee_parquet_rows(w) : 100);
	fusee_parquet_free(w);
	return r;
}

TEST(each_write_fails_in_turn)
{
	struct file all = {0}, f;

	CHECK_INT(write_file(&all), 0);
	CHECK(all.len > 8 && !memcmp(all.p, "PAR1", 4) && !memcmp(all.p + all.len - 4, "PAR1", 4));
	CHECK(all.calls > 30);
	for (uint64_t i = 1; i <= all.calls; i++) {
		f = (struct file){.fail_at = i};
		CHECK_INT(write_file(&f), -ENOSPC);
		CHECK(f.len < all.len && !memcmp(f.p ? f.p : all.p, all.p, f.len));
		free(f.p);
	}
	free(all.p);
}

static int get(void *arg, uint64_t at, void *to, uint64_t n)
{
	memcpy(to, ((struct file *)arg)->p + at, n);
	return 0;
}

TEST(a_row_group_ends_where_the_caller_says)
{
	static const uint64_t rows[] = {3, 40, 7};
	struct fusee_parquet_input in = {.read = get};
	struct fusee_parquet_file *read;
	struct file f = {0};
	struct fusee_parquet *w;
	const char *why;

	CHECK_INT(begin(&w, &f), 0);
	CHECK_INT(fusee_parquet_end_group(w), 0); /* it has no rows */
	for (int i = 0; i < 50; i++) {
		CHECK_INT(add_row(w, i), 0);
		if (i == 2 || i == 42)
			CHECK_INT(fusee_parquet_end_group(w), 0);
	}
	CHECK_INT(fusee_parquet_finish(w), 0);
	CHECK_INT(fusee_parquet_end_group(w), -EINVAL);
	fusee_parquet_free(w);
	in.arg = &f;
	in.size = f.len;
	CHECK_INT(fusee_parquet_open(&read, &in, &why), 0);
	CHECK_INT(fusee_parquet_groups(read), 3);
	for (uint32_t i = 0; i < 3; i++)
		CHECK_INT(fusee_parquet_group_rows(read, i), rows[i]);
	fusee_parquet_close(read);
	free(f.p);
}

TEST(a_level_above_those_of_zstd_is_refused)
{
	struct fusee_parquet_options o = {
		.columns = FUSEE_TABLE(columns), .write = put, .level = 20};
	struct fusee_parquet *w;

	CHECK_INT(fusee_parquet_new(&w, &o), -EINVAL);
}

TEST(an_unfinished_row_is_refused)
{
	struct file f = {0};
	struct fusee_parquet *w;

	CHECK_INT(begin(&w, &f), 0);
	CHECK_INT(add_row(w, 1), 0);
	fusee_parquet_int(w, 0, 1);
	CHECK_INT(fusee_parquet_finish(w), -EINVAL);
	fusee_parquet_free(w);
	fusee_parquet_free(NULL);
	free(f.p);
}

TEST(a_file_without_rows)
{
	struct file f = {0};
	struct fusee_parquet *w;

	CHECK_INT(begin(&w, &f), 0);
	CHECK_INT(fusee_parquet_finish(w), 0);
	CHECK_INT(fusee_parquet_rows(w), 0);
	CHECK(f.len > 100);
	fusee_parquet_free(w);
	free(f.p);
}
