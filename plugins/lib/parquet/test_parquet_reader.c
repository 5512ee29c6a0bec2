/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/lib/parquet
/* What the writer writes is read again, with every type, codec and size of row groups; a file that
 * is truncated or changed gives an error or the same values. */
#include "test.h"

#include <fusee/parquet_read.h>

#include "read_internal.h"

enum { TS, SMALL, LARGE, UNIQUE, SERVICE, KEY, VALUE, FUNCTION, LINE, NAME, COLUMNS };

static const struct fusee_parquet_column columns[COLUMNS] = {
	[TS] = {"ts", FUSEE_PARQUET_TIME, FUSEE_PARQUET_FLAT, NULL},
	[SMALL] = {"small", FUSEE_PARQUET_INT32, FUSEE_PARQUET_FLAT, NULL},
	[LARGE] = {"large", FUSEE_PARQUET_INT64, FUSEE_PARQUET_FLAT, NULL},
	[UNIQUE] = {"unique", FUSEE_PARQUET_INT64, FUSEE_PARQUET_FLAT, NULL},
	[SERVICE] = {"service", FUSEE_PARQUET_TEXT, FUSEE_PARQUET_FLAT, NULL},
	[KEY] = {NULL, FUSEE_PARQUET_TEXT, FUSEE_PARQUET_MAP, "labels"},
	[VALUE] = {NULL, FUSEE_PARQUET_TEXT, FUSEE_PARQUET_MAP, "labels"},
	[FUNCTION] = {"function", FUSEE_PARQUET_TEXT, FUSEE_PARQUET_LIST, "frames"},
	[LINE] = {"line", FUSEE_PARQUET_INT64, FUSEE_PARQUET_LIST, "frames"},
	[NAME] = {NULL, FUSEE_PARQUET_TEXT, FUSEE_PARQUET_LIST, "names"},
};
static const uint32_t by_unique[] = {UNIQUE}, with_filter[] = {SERVICE};

/* A file in memory. */
struct file {
	uint8_t *p;
	uint64_t len, reads, fail_at; /* read that fails, from 1; 0: none */
	uint64_t cap;
};

static int put(void *arg, const void *bytes, uint64_t n)
{
	struct file *f = arg;

	if (f->len + n > f->cap) {
		f->cap = 2 * (f->len + n);
		f->p = realloc(f->p, f->cap);
		CHECK(f->p);
	}
	memcpy(f->p + f->len, bytes, n);
	f->len += n;
	return 0;
}

static int get(void *arg, uint64_t at, void *to, uint64_t n)
{
	struct file *f = arg;

	if (at > f->len || n > f->len - at)
		test_fail(__FILE__, __LINE__, "bytes %lu to %lu of a file of %lu", (long)at,
			  (long)(at + n), (long)f->len);
	if (++f->reads == f->fail_at)
		return -EIO;
	if (n)
		memcpy(to, f->p + at, n);
	return 0;
}

/* ---- rows, each known by its number ---- */

static uint32_t nth(uint32_t row, uint32_t column, uint32_t i)
{
	uint64_t x = (row * 31ull + column) * 31 + i + 1;

	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull;
	return (uint32_t)(x >> 32);
}

static uint32_t number_of_labels(uint32_t row)
{
	return row % 5 == 1 ? 0 : nth(row, KEY, 99) % 4;
}

static uint32_t number_of_frames(uint32_t row)
{
	return row % 7 == 2 ? 0 : nth(row, LINE, 99) % 30;
}

static int64_t number_at(uint32_t row, uint32_t column, uint32_t i)
{
	switch (column) {
	case TS:
		return row % 3 ? 1764000000000000 : -1;
	case SMALL:
		return (int32_t)(nth(row, column, i) % 11 ? nth(row, column, i) : 0x80000000u);
	case LARGE:
		return row % 9 ? INT64_MIN + row / 300 : INT64_MAX;
	case UNIQUE:
		return ((int64_t)row - 1500) * 300000000000000 + nth(row, column, i);
	default:
		return nth(row, column, i) % 40;
	}
}

/* Texts of all lengths: empty, with NUL, longer than bounds. */
static struct fusee_str text_at(uint32_t row, uint32_t column, uint32_t i, char room[200])
{
	static const char *const services[] = {"web", "db", "", "\xf4\x8f\xbf\xbf", "a\0b"};
	uint32_t x = nth(row, column, i);

	if (column == SERVICE)
		return (struct fusee_str){services[x % 5],
					  x % 5 == 4 ? 3 : strlen(services[x % 5])};
	if (column == KEY)
		return (struct fusee_str){room, (uint64_t)snprintf(room, 200, "key %u", i)};
	return (struct fusee_str){
		room, (uint64_t)snprintf(room, 200, "%0*u", (int)(x % 100 + 1), x % 400)};
}

static uint32_t values_of(uint32_t row, uint32_t column)
{
	return columns[column].group == FUSEE_PARQUET_MAP    ? number_of_labels(row)
	       : columns[column].group == FUSEE_PARQUET_LIST ? number_of_frames(row)
							     : 1;
}

static void add_row(struct fusee_parquet *w, uint32_t row)
{
	char room[200];

	for (uint32_t c = 0; c < COLUMNS; c++)
		for (uint32_t i = 0; i < values_of(row, c); i++) {
			if (columns[c].type == FUSEE_PARQUET_TEXT)
				fusee_parquet_text(w, c, text_at(row, c, i, room));
			else
				fusee_parquet_int(w, c, number_at(row, c, i));
		}
	CHECK_INT(fusee_parquet_row(w), 0);
}

static struct file written(uint32_t codec, uint32_t rows, uint32_t group)
{
	struct file f = {0};
	struct fusee_parquet_options o = {.columns = FUSEE_TABLE(columns),
					  .codec = codec,
					  .rows = group,
					  .filtered = FUSEE_TABLE(with_filter),
					  .write = put,
					  .arg = &f};
	struct fusee_parquet *w;

	if (rows % 2)
		o.sort = (struct fusee_table)FUSEE_TABLE(by_unique);
	CHECK_INT(fusee_parquet_new(&w, &o), 0);
	for (uint32_t i = 0; i < rows; i++)
		add_row(w, i);
	fusee_parquet_metadata(w, fusee_text("fusee.schema"), fusee_text("x/1"));
	fusee_parquet_metadata(w, fusee_text(""), fusee_text(""));
	CHECK_INT(fusee_parquet_finish(w), 0);
	fusee_parquet_free(w);
	return f;
}

/* ---- reading ---- */

static int open_file(struct fusee_parquet_file **out, struct file *f, uint64_t memory,
		     const char **why)
{
	const struct fusee_parquet_input in = {
		.read = get, .arg = f, .size = f->len, .memory = memory};

	*why = NULL;
	return fusee_parquet_open(out, &in, why);
}

static bool same(struct fusee_str a, struct fusee_str b)
{
	return a.len == b.len && (!a.len || !memcmp(a.p, b.p, a.len));
}

static void check_value(const struct fusee_parquet_values *v, uint64_t at, uint32_t row, uint32_t c,
			uint32_t i)
{
	uint64_t k = v->codes ? v->codes[at] : at;
	char room[200];

	CHECK(k < v->ndistinct);
	if (columns[c].type == FUSEE_PARQUET_TEXT)
		CHECK(same(v->texts[k], text_at(row, c, i, room)));
	else
		CHECK_INT(v->numbers[k], number_at(row, c, i));
}

static void check_column(struct fusee_parquet_file *f, uint32_t group, uint32_t c, uint32_t first)
{
	struct fusee_parquet_values *v = NULL;
	const char *why = "";
	uint64_t at = 0, rows = fusee_parquet_group_rows(f, group);

	CHECK_INT(fusee_parquet_load(f, group, c, &v, &why), 0);
	CHECK(!v->ends == (columns[c].group == FUSEE_PARQUET_FLAT));
	for (uint32_t row = 0; row < rows; row++) {
		uint32_t n = values_of(first + row, c);

		for (uint32_t i = 0; i < n; i++)
			check_value(v, at++, first + row, c, i);
		if (v->ends)
			CHECK_INT(v->ends[row], at);
	}
	CHECK_INT(v->n, at);
	CHECK(v->bytes && v->memory);
	fusee_parquet_unload(v);
}

/* Numbers have a dictionary if it makes them smaller. */
static void check_distinct(struct fusee_parquet_file *f, uint32_t group, uint32_t c)
{
	struct fusee_parquet_values *v = NULL, *d = NULL;
	const char *why = "";

	CHECK_INT(fusee_parquet_load(f, group, c, &v, &why), 0);
	if (!v->codes) {
		CHECK_INT(fusee_parquet_load_distinct(f, group, c, &d, &why), -EINVAL);
		CHECK_STR(why, "a column has no dictionary");
		fusee_parquet_unload(v);
		return;
	}
	CHECK_INT(fusee_parquet_load_distinct(f, group, c, &d, &why), 0);
	CHECK(!d->n && d->ndistinct == v->ndistinct && d->bytes < v->bytes);
	for (uint32_t i = 0; i < d->ndistinct; i++)
		CHECK(d->texts ? same(d->texts[i], v->texts[i]) : d->numbers[i] == v->numbers[i]);
	fusee_parquet_unload(v);
	fusee_parquet_unload(d);
}

static void check_bounds(struct fusee_parquet_file *f, uint32_t group, uint32_t first)
{
	uint64_t rows = fusee_parquet_group_rows(f, group);
	struct fusee_parquet_bounds b;

	CHECK(fusee_parquet_bounds(f, group, UNIQUE, &b));
	CHECK_INT(b.min, number_at(first, UNIQUE, 0));
	CHECK_INT(b.max, number_at(first + (uint32_t)rows - 1, UNIQUE, 0));
	CHECK(fusee_parquet_bounds(f, group, SMALL, &b));
	CHECK(b.min <= number_at(first, SMALL, 0) && b.max >= number_at(first, SMALL, 0));
	if (rows > 100) {
		CHECK(fusee_parquet_bounds(f, group, SERVICE, &b));
		CHECK(!b.min_text.len && same(b.max_text, fusee_text("\xf4\x8f\xbf\xbf")));
	}
	CHECK(!fusee_parquet_bounds(f, group, KEY, &b));
}

static void check_file(struct file *bytes, uint32_t rows)
{
	struct fusee_parquet_file *f;
	const char *why;
	uint32_t first = 0;
	struct fusee_table t;

	CHECK_INT(open_file(&f, bytes, 0, &why), 0);
	t = fusee_parquet_columns(f);
	CHECK_INT(t.n, COLUMNS);
	for (uint32_t c = 0; c < COLUMNS; c++) {
		const struct fusee_parquet_column *is = FUSEE_AT(struct fusee_parquet_column, t, c);

		CHECK(is->type == columns[c].type && is->group == columns[c].group);
		CHECK(!is->name == (c == NAME));
		if (is->name)
			CHECK_STR(is->name, c == KEY     ? "key"
					    : c == VALUE ? "value"
							 : columns[c].name);
		CHECK_STR(is->in ? is->in : "", columns[c].in ? columns[c].in : "");
	}
	CHECK(same(*fusee_parquet_pair(f, fusee_text("fusee.schema")), fusee_text("x/1")));
	CHECK(same(fusee_parquet_pair_at(f, 1)[0], fusee_text("")));
	CHECK(!fusee_parquet_pair(f, fusee_text("x/1")) && !fusee_parquet_pair_at(f, 4));
	for (uint32_t g = 0; g < fusee_parquet_groups(f); g++) {
		for (uint32_t c = 0; c < COLUMNS; c++) {
			check_column(f, g, c, first);
			check_distinct(f, g, c);
		}
		check_bounds(f, g, first);
		first += (uint32_t)fusee_parquet_group_rows(f, g);
	}
	CHECK_INT(first, rows);
	fusee_parquet_close(f);
}

TEST(each_type_codec_and_size)
{
	static const uint32_t sizes[][2] = {{0, 10},     {1, 10},      {2, 1},
					    {1000, 300}, {3001, 5000}, {25000, 100000}};

	for (uint32_t codec = FUSEE_PARQUET_ZSTD; codec <= FUSEE_PARQUET_NONE; codec++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			struct file f = written(codec, sizes[i][0], sizes[i][1]);

			check_file(&f, sizes[i][0]);
			free(f.p);
		}
}

/* Ids of a row group of its own each: one row group may have an id, and few others seem to. */
TEST(a_filter_finds_the_row_group)
{
	static const struct fusee_parquet_column own[] = {
		{"id", FUSEE_PARQUET_TEXT, FUSEE_PARQUET_FLAT, NULL},
		{"other", FUSEE_PARQUET_TEXT, FUSEE_PARQUET_FLAT, NULL},
	};
	static const uint32_t ids[] = {0}, none[] = {2};
	struct file bytes = {0};
	struct fusee_parquet_options o = {.columns = FUSEE_TABLE(own),
					  .rows = 10000,
					  .filtered = FUSEE_TABLE(ids),
					  .write = put,
					  .arg = &bytes};
	struct fusee_parquet_file *f;
	struct fusee_parquet *w;
	uint64_t read = 0, seem = 0;
	const char *why;
	char id[17];

	CHECK_INT(fusee_parquet_new(&w, &o), 0);
	for (uint32_t i = 0; i < 50000; i++) {
		snprintf(id, sizeof(id), "%016llx", (i + 1ull) * 0x9e3779b97f4a7c15ull);
		fusee_parquet_text(w, 0, fusee_text(id));
		fusee_parquet_text(w, 1, fusee_text(i % 2 ? "a" : "b"));
		CHECK_INT(fusee_parquet_row(w), 0);
	}
	CHECK_INT(fusee_parquet_finish(w), 0);
	fusee_parquet_free(w);
	CHECK_INT(open_file(&f, &bytes, 0, &why), 0);
	for (uint32_t i = 0; i < 50000; i += 7)
		for (uint32_t g = 0; g < 5; g++) {
			int r;

			snprintf(id, sizeof(id), "%016llx", (i + 1ull) * 0x9e3779b97f4a7c15ull);
			r = fusee_parquet_may_have(f, g, 0, fusee_text(id), &read, &why);
			CHECK(r == 1 || (r == 0 && i / 10000 != g));
			seem += r == 1 && i / 10000 != g;
		}
	CHECK(seem && seem < 7143 * 4 * 0.02); /* of 13 bits each: 0.3 % are expected */
	CHECK(read >= 7143ull * 5 * 16384 && read < 7143ull * 5 * 16500);
	CHECK_INT(fusee_parquet_may_have(f, 0, 1, fusee_text("c"), &read, &why), 1);
	fusee_parquet_close(f);
	free(bytes.p);
	o.filtered = (struct fusee_table)FUSEE_TABLE(none);
	CHECK_INT(fusee_parquet_new(&w, &o), -EINVAL);
}

/* Numbers `at(i)` as differences, truncated at each byte. */
static void check_delta(int64_t (*at)(uint32_t i), uint32_t n)
{
	struct pq_dictionary d = {.seed = 1};
	uint32_t codes[400];
	int64_t got[400];
	struct fusee_bytes b = {0};
	struct pq_in in;

	for (uint32_t i = 0; i < n; i++)
		codes[i] = (uint32_t)pq_dictionary_number(&d, at(i));
	pq_put_delta(&b, &d, codes, n);
	for (size_t len = 0; len <= b.len; len++) {
		uint8_t *copy = malloc(len + 1); /* so that a sanitizer sees its end */

		memcpy(copy, b.p, len);
		in = (struct pq_in){copy, copy + len, false};
		pq_get_delta(&in, got, n);
		CHECK(in.bad == (len < b.len) && (in.bad || in.at == in.end));
		free(copy);
	}
	for (uint32_t i = 0; i < n; i++)
		CHECK(got[i] == at(i));
	fusee_bytes_fini(&b);
	pq_dictionary_fini(&d);
}

static int64_t steps(uint32_t i)
{
	return 1ll << 40 | i / 3;
}

static int64_t extremes(uint32_t i)
{
	return i % 3 ? i % 2 ? INT64_MIN : INT64_MAX : (int64_t)i - 200;
}

static int64_t widths(uint32_t i)
{
	return (int64_t)(0x9e3779b97f4a7c15ull * (i + 1) >> (i / 32 * 8 % 64));
}

TEST(differences)
{
	static const uint32_t sizes[] = {1, 2, 32, 33, 34, 128, 129, 130, 161, 257, 400};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		check_delta(steps, sizes[i]);
		check_delta(extremes, sizes[i]);
		check_delta(widths, sizes[i]);
	}
}

/* Lists are compared from the end; numbers are replaced in the order of sorted rows. */
static int next_number(void *arg, int64_t value, int64_t *to)
{
	*to = value == 77 ? -1 : 1000 - value;
	return 0;
}

TEST(lists_sort_and_numbers_are_replaced)
{
	static const struct fusee_parquet_column own[] = {
		{"id", FUSEE_PARQUET_INT64, FUSEE_PARQUET_FLAT, NULL},
		{NULL, FUSEE_PARQUET_TEXT, FUSEE_PARQUET_LIST, "names"},
	};
	static const uint32_t sort[] = {1, 0}, bad[] = {1};
	static const char *const lists[] = {"bb", "", "ab", "b", "ab", "cb", "ba"};
	static const int64_t ids[] = {5, 77, 9, 3, 8, 5, 4},
			     want[] = {-1, 996, 997, 991, 992, 995, 995};
	struct file f = {0};
	struct fusee_parquet_options o = {.columns = FUSEE_TABLE(own),
					  .sort = FUSEE_TABLE(sort),
					  .write = put,
					  .arg = &f,
					  .renumbered = 0,
					  .renumber = next_number};
	struct fusee_parquet_values *v, *names;
	struct fusee_parquet_file *file;
	struct fusee_parquet *w;
	const char *why;

	CHECK_INT(fusee_parquet_new(&w, &o), 0);
	for (uint32_t i = 0; i < 7; i++) {
		fusee_parquet_int(w, 0, ids[i]);
		for (const char *p = lists[i]; *p; p++)
			fusee_parquet_text(w, 1, (struct fusee_str){p, 1});
		CHECK_INT(fusee_parquet_row(w), 0);
	}
	CHECK_INT(fusee_parquet_finish(w), 0);
	fusee_parquet_free(w);
	CHECK_INT(open_file(&file, &f, 0, &why), 0);
	CHECK_INT(fusee_parquet_load(file, 0, 0, &v, &why), 0);
	CHECK_INT(fusee_parquet_load(file, 0, 1, &names, &why), 0);
	/* "", "ba", "b", "ab" (991: 9), "ab" (992: 8), "bb", "cb" */
	for (uint32_t i = 0; i < 7; i++)
		CHECK_INT(v->numbers[v->codes ? v->codes[i] : i], want[i]);
	CHECK_INT(names->ends[0], 0);
	CHECK(names->texts[names->codes[names->ends[1] - 1]].p[0] == 'a');
	fusee_parquet_unload(v);
	fusee_parquet_unload(names);
	fusee_parquet_close(file);
	free(f.p);
	o.renumbered = 1;
	CHECK_INT(fusee_parquet_new(&w, &o), -EINVAL);
	o = (struct fusee_parquet_options){
		.columns = FUSEE_TABLE(columns), .sort = FUSEE_TABLE(bad), .write = put, .arg = &f};
	o.sort = (struct fusee_table){(const uint32_t[]){LINE}, 1, sizeof(uint32_t)};
	CHECK_INT(fusee_parquet_new(&w, &o), -EINVAL);
}

/* ---- damage ---- */

static uint64_t add_value(uint64_t sum, const struct fusee_parquet_values *v, uint64_t i)
{
	uint64_t k = v->codes ? v->codes[i] : i;

	if (!v->texts)
		return sum * 31 + (uint64_t)v->numbers[k];
	for (uint64_t n = 0; n < v->texts[k].len; n++)
		sum = sum * 31 + (uint8_t)v->texts[k].p[n];
	return sum * 31 + v->texts[k].len;
}

/* A filter never excludes a text that a row has. */
static int has_text(struct fusee_parquet_file *f, uint32_t group, uint32_t c, struct fusee_str text,
		    const char **why)
{
	uint64_t bytes = 0;
	int r = fusee_parquet_may_have(f, group, c, text, &bytes, why);

	CHECK(r);
	return r < 0 ? r : 0;
}

static int add_column(struct fusee_parquet_file *f, uint32_t group, uint32_t c, uint64_t *sum,
		      const char **why)
{
	struct fusee_parquet_values *v, *d;
	const char *other;
	int r = fusee_parquet_load(f, group, c, &v, why);

	if (!fusee_parquet_load_distinct(f, group, c, &d, &other)) {
		CHECK(r || d->ndistinct == v->ndistinct);
		fusee_parquet_unload(d);
	}
	if (r)
		return r;
	CHECK(v->memory <= 1 << 20);
	for (uint64_t i = 0; !r && columns[c].type == FUSEE_PARQUET_TEXT && i < v->n; i++)
		r = has_text(f, group, c, v->texts[v->codes[i]], why);
	if (r) {
		fusee_parquet_unload(v);
		return r;
	}
	for (uint64_t i = 0; i < v->n; i++)
		*sum = add_value(*sum, v, i);
	for (uint64_t i = 0; v->ends && i < fusee_parquet_group_rows(f, group); i++)
		*sum = *sum * 31 + v->ends[i];
	fusee_parquet_unload(v);
	return 0;
}

/* All that a file has, as a number. -errno: it cannot be read. */
static int64_t digest(struct file *bytes)
{
	struct fusee_parquet_file *f = NULL;
	const char *why;
	uint64_t sum = 1;
	int r = open_file(&f, bytes, 1 << 20, &why);

	for (uint32_t g = 0; !r && g < fusee_parquet_groups(f); g++)
		for (uint32_t c = 0; !r && c < COLUMNS; c++)
			r = add_column(f, g, c, &sum, &why);
	fusee_parquet_close(f);
	if (r && ((r != -EINVAL && r != -EFBIG) || !why || !*why))
		test_fail(__FILE__, __LINE__, "error %d has no sentence", r);
	return r ? r : (int64_t)(sum >> 1 | 1);
}

TEST(a_file_that_ends_early_is_refused)
{
	for (uint32_t codec = FUSEE_PARQUET_ZSTD; codec <= FUSEE_PARQUET_NONE; codec++) {
		struct file f = written(codec, 40, 30);

		for (uint64_t n = f.len; n-- > 0;) {
			struct file part = {f.p, n, 0, 0, 0};

			CHECK_INT(digest(&part), -EINVAL);
		}
		free(f.p);
	}
}

/* Three changes of each byte; the short form makes every fourth of them. */
TEST_FOR(a_byte_that_changes_is_an_error_or_means_nothing, 300)
{
	const uint64_t step = getenv("FUSEE_TEST_LONG") ? 1 : 4;

	for (uint32_t codec = FUSEE_PARQUET_ZSTD; codec <= FUSEE_PARQUET_NONE; codec++) {
		struct file f = written(codec, 24, 20);
		int64_t right = digest(&f), got;
		uint64_t refused = 0;

		CHECK(right > 0);
		for (uint64_t i = 0; i < 3 * f.len; i += step) {
			uint8_t change = i % 3 == 0 ? 0xff : i % 3 == 1 ? 0x80 : 1 << i / 3 % 7;

			f.p[i / 3] ^= change;
			got = digest(&f);
			f.p[i / 3] ^= change;
			if (got > 0 && got != right)
				test_fail(__FILE__, __LINE__, "byte %ld of %ld ^ %d", (long)i / 3,
					  (long)f.len, change);
			refused += got < 0;
		}
		/* nothing reads the page index */
		CHECK(refused > f.len / step);
		free(f.p);
	}
}

TEST(another_writer_is_named_as_that)
{
	struct file f = written(FUSEE_PARQUET_ZSTD, 10, 10);
	struct fusee_parquet_file *file;
	uint8_t *at = memmem(f.p, f.len, "fusee version", 13);
	const char *why;

	CHECK(at);
	memcpy(at, "other", 5);
	CHECK_INT(open_file(&file, &f, 0, &why), -EINVAL);
	CHECK_STR(why, "it is a Parquet file of another program, not of fusee");
	memcpy(at, "fusee", 5);
	f.p[f.len - 9] ^= 1;
	CHECK_INT(open_file(&file, &f, 0, &why), -EINVAL);
	f.p[f.len - 9] ^= 1;
	at = memmem(f.p, f.len, PQ_CHECKSUM, strlen(PQ_CHECKSUM));
	CHECK(at);
	*at = 'F';
	CHECK_INT(open_file(&file, &f, 0, &why), -EINVAL);
	CHECK_STR(why, "it is of an earlier version of fusee");
	free(f.p);
}

TEST(memory_is_limited)
{
	struct file f = written(FUSEE_PARQUET_ZSTD, 20000, 100000);
	struct fusee_parquet_file *file;
	struct fusee_parquet_values *v;
	const char *why;

	CHECK_INT(open_file(&file, &f, 100, &why), -EFBIG);
	CHECK_STR(why, "its footer takes more memory than may be used");
	CHECK_INT(open_file(&file, &f, 200000, &why), 0);
	CHECK_INT(fusee_parquet_load(file, 0, LINE, &v, &why), -EFBIG);
	CHECK_STR(why, "a column takes more memory than may be used");
	CHECK_INT(fusee_parquet_load(file, 0, TS, &v, &why), 0);
	CHECK(v->memory <= 200000);
	fusee_parquet_unload(v);
	fusee_parquet_close(file);
	free(f.p);
}

/* A file of a column, with that many rows, a group each, and pairs. */
static struct fusee_parquet *large(struct file *f, const struct fusee_parquet_column *column,
				   uint32_t rows, uint32_t pairs)
{
	struct fusee_parquet_options o = {.columns = {column, 1, sizeof(*column)},
					  .codec = FUSEE_PARQUET_NONE,
					  .rows = 1,
					  .write = put,
					  .arg = f};
	struct fusee_parquet *w;

	*f = (struct file){0};
	CHECK_INT(fusee_parquet_new(&w, &o), 0);
	for (uint32_t i = 0; i < rows; i++) {
		fusee_parquet_int(w, 0, 1);
		CHECK_INT(fusee_parquet_row(w), 0);
	}
	for (uint32_t i = 0; i < pairs; i++)
		fusee_parquet_metadata(w, fusee_text("k"), fusee_text("v"));
	return w;
}

static int open_finished(struct fusee_parquet *w, struct file *f, const char **why)
{
	struct fusee_parquet_file *file = NULL;
	int r;

	CHECK_INT(fusee_parquet_finish(w), 0);
	fusee_parquet_free(w);
	r = open_file(&file, f, 0, why);
	fusee_parquet_close(file);
	free(f->p);
	return r;
}

static int open_large(const char *name, uint32_t rows, uint32_t pairs, const char **why)
{
	const struct fusee_parquet_column one = {name, FUSEE_PARQUET_INT32, 0, NULL};
	struct file f;

	return open_finished(large(&f, &one, rows, pairs), &f, why);
}

/* The footer tells of `rows` in each group, and of pages that begin `step` bytes behind those of
 * the group before. */
static int open_made_up(uint32_t groups, int64_t rows, int64_t step, const char **why)
{
	const struct fusee_parquet_column one = {"n", FUSEE_PARQUET_INT32, 0, NULL};
	struct file f;
	struct fusee_parquet *w = large(&f, &one, groups, 0);

	CHECK_INT(w->nrow_groups, groups);
	for (uint32_t i = 0; i < groups; i++) {
		struct fusee_bytes *to = &w->row_groups[i].chunks[0].metadata;
		struct pq_struct s;

		to->len = 0;
		s = pq_begin_element(to);
		pq_i32(&s, 1, pq_physical_type(one.type));
		pq_i32(&s, 4, pq_codec_number(FUSEE_PARQUET_NONE));
		pq_i64(&s, 5, rows);
		pq_i64(&s, 7, 5);
		pq_i64(&s, 9, 4 + i * step);
		w->row_groups[i].rows = (uint64_t)rows;
	}
	w->total_rows = groups * (uint64_t)rows;
	return open_finished(w, &f, why);
}

TEST(the_footer_is_limited)
{
	char name[1026];
	const char *why;

	memset(name, 'n', sizeof(name));
	name[1025] = '\0';
	CHECK_INT(open_large(name + 1, 1, 4095, &why), 0); /* the checksum is a pair, too */
	CHECK_INT(open_large(name, 1, 0, &why), -EINVAL);
	CHECK_STR(why, "its footer is damaged");
	CHECK_INT(open_large("n", 1, 4096, &why), -EFBIG);
	CHECK_STR(why, "its footer has more pairs than may be read");
	CHECK_INT(open_large("n", 1 << 14, 0, &why), 0);
	CHECK_INT(open_large("n", (1 << 14) + 1, 0, &why), -EFBIG);
	CHECK_STR(why, "it has more row groups than may be read");
}

TEST(rows_are_limited_and_no_page_is_in_two_columns)
{
	const char *why;

	CHECK_INT(open_made_up(2, 1, 5, &why), 0);
	CHECK_INT(open_made_up(2, 1, 4, &why), -EINVAL);
	CHECK_STR(why, "its footer is damaged");
	CHECK_INT(open_made_up(2, 1, 0, &why), -EINVAL);
	CHECK_INT(open_made_up(8, 1 << 24, 5, &why), 0);
	CHECK_INT(open_made_up(9, 1 << 24, 5, &why), -EFBIG);
	CHECK_STR(why, "it has more rows than may be read");
}

/* Rows of 0, 1 and this many values; the writer is made to take more than it takes. */
static int load_list(uint32_t n, const char **why)
{
	static const struct fusee_parquet_column list = {"n", FUSEE_PARQUET_INT32,
							 FUSEE_PARQUET_LIST, "l"};
	struct fusee_parquet_values *v = NULL;
	struct fusee_parquet_file *file;
	struct file f;
	struct fusee_parquet *w = large(&f, &list, 1, 0);
	int r;

	w->o.rows = 10;
	CHECK_INT(fusee_parquet_row(w), 0);
	for (uint32_t i = 0; i < n; i++) {
		w->leaves[0].ended = w->leaves[0].n;
		fusee_parquet_int(w, 0, 7);
	}
	w->leaves[0].ended = 0;
	CHECK_INT(fusee_parquet_row(w), 0);
	CHECK_INT(fusee_parquet_finish(w), 0);
	fusee_parquet_free(w);
	CHECK_INT(open_file(&file, &f, 0, why), 0);
	r = fusee_parquet_load(file, 1, 0, &v, why);
	if (!r)
		CHECK(v->n == n && !v->ends[0] && v->ends[1] == n);
	fusee_parquet_unload(v);
	fusee_parquet_close(file);
	free(f.p);
	return r;
}

TEST(a_row_has_as_many_values_as_the_writer_takes)
{
	const char *why;

	CHECK_INT(load_list(1, &why), 0);
	CHECK_INT(load_list(FUSEE_PARQUET_MAX_VALUES, &why), 0);
	CHECK_INT(load_list(FUSEE_PARQUET_MAX_VALUES + 1, &why), -EINVAL);
	CHECK_STR(why, "a page is damaged");
}

TEST(each_read_fails_in_turn)
{
	struct file f = written(FUSEE_PARQUET_GZIP, 10, 10);
	struct fusee_parquet_file *file;
	struct fusee_parquet_values *v;
	const char *why;

	for (f.fail_at = 1; f.fail_at <= 3; f.fail_at++) {
		f.reads = 0;
		CHECK_INT(open_file(&file, &f, 0, &why), -EIO);
	}
	f.reads = 0;
	CHECK_INT(open_file(&file, &f, 0, &why), 0);
	CHECK_INT(fusee_parquet_load(file, 0, TS, &v, &why), -EIO);
	CHECK_INT(fusee_parquet_load(file, 0, TS, &v, &why), 0);
	fusee_parquet_close(file);
	CHECK_INT(v->n, 10);
	fusee_parquet_unload(v);
	fusee_parquet_unload(NULL);
	fusee_parquet_close(NULL);
	free(f.p);
}
