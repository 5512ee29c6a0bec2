/* SPDX-License-Identifier: Apache-2.0 */
// sources: plugins/lib/parquet/chunk.c plugins/lib/parquet/codec.c
// sources: plugins/lib/parquet/dictionary.c plugins/lib/parquet/encode.c
// sources: plugins/lib/parquet/footer.c plugins/lib/parquet/output.c plugins/lib/parquet/text.c
// sources: plugins/lib/parquet/thrift.c plugins/lib/parquet/writer.c plugins/lib/parquet/read.c
// sources: plugins/lib/parquet/read_codec.c plugins/lib/parquet/read_decode.c
// sources: plugins/lib/parquet/read_footer.c plugins/lib/parquet/read_pages.c
// sources: plugins/lib/parquet/read_schema.c plugins/lib/parquet/read_thrift.c
// sources: plugins/lib/parquet/filter.c plugins/lib/parquet/read_filter.c
// libs: -lz -lzstd
/*
 * Any bytes as a Parquet file, and any changes of a file of our writer: refused with a sentence, or
 * columns whose codes and rows are what readers rely on. Checksums would refuse nearly all of them:
 * here each is 0.
 */
#include "fuzz.h"
#include <zlib.h>

#include <fusee/parquet_read.h>

#define MEMORY (16ull << 20)
#define ROWS 60

/* Instead of zlib's. */
uLong crc32_z(uLong crc, const Bytef *bytes, z_size_t n)
{
	(void)crc;
	(void)bytes;
	(void)n;
	return 0;
}

static const struct fusee_parquet_column columns[] = {
	{"ts", FUSEE_PARQUET_TIME, FUSEE_PARQUET_FLAT, NULL},
	{"unique", FUSEE_PARQUET_INT32, FUSEE_PARQUET_FLAT, NULL},
	{"stack", FUSEE_PARQUET_TEXT, FUSEE_PARQUET_FLAT, NULL},
	{NULL, FUSEE_PARQUET_TEXT, FUSEE_PARQUET_MAP, "labels"},
	{NULL, FUSEE_PARQUET_TEXT, FUSEE_PARQUET_MAP, "labels"},
	{"line", FUSEE_PARQUET_INT64, FUSEE_PARQUET_LIST, "lines"},
	{NULL, FUSEE_PARQUET_TEXT, FUSEE_PARQUET_LIST, "frames"},
};

struct file {
	uint8_t *p;
	uint64_t len;
};

static int put(void *arg, const void *bytes, uint64_t n)
{
	struct file *f = arg;

	f->p = realloc(f->p, f->len + n);
	memcpy(f->p + f->len, bytes, n);
	f->len += n;
	return 0;
}

static int get(void *arg, uint64_t at, void *to, uint64_t n)
{
	const struct file *f = arg;

	must(at <= f->len && n <= f->len - at, "reads are within the file");
	memcpy(to, f->p + at, n);
	return 0;
}

static void write_file(struct file *f, uint32_t codec)
{
	static const uint32_t filtered[] = {2};
	struct fusee_parquet_options o = {.columns = FUSEE_TABLE(columns),
					  .filtered = FUSEE_TABLE(filtered),
					  .codec = codec,
					  .rows = ROWS - 20,
					  .write = put,
					  .arg = f};
	struct fusee_parquet *w;

	must(!fusee_parquet_new(&w, &o), "a writer");
	for (int i = 0; i < ROWS; i++) {
		fusee_parquet_int(w, 0, i % 2);
		fusee_parquet_int(w, 1, i);
		fusee_parquet_text(w, 2, fusee_text(i % 3 ? "main;a" : "main;b"));
		for (int k = 0; k < i % 4; k++) {
			fusee_parquet_text(w, 3, fusee_text(k ? "a" : "b"));
			fusee_parquet_text(w, 4, fusee_text("x"));
			fusee_parquet_int(w, 5, k);
			fusee_parquet_text(w, 6, fusee_text(k % 2 ? "{}" : "{\"line\":1}"));
		}
		fusee_parquet_row(w);
	}
	must(!fusee_parquet_finish(w), "a file");
	fusee_parquet_free(w);
}

static void check_values(const struct fusee_parquet_values *v, uint64_t rows)
{
	uint64_t at = 0;
	volatile char last;

	must(!v->numbers != !v->texts || !v->n, "numbers or texts");
	must(v->memory <= MEMORY, "memory is limited");
	must(v->ends || v->n == rows, "a value in each row");
	for (uint64_t i = 0; i < v->n; i++)
		must((v->codes ? v->codes[i] : i) < v->ndistinct, "codes are those of values");
	for (uint32_t i = 0; v->texts && i < v->ndistinct; i++)
		if (v->texts[i].len)
			last = v->texts[i].p[v->texts[i].len - 1];
	(void)last;
	for (uint64_t i = 0; v->ends && i < rows; i++) {
		must(v->ends[i] >= at && v->ends[i] <= v->n, "rows ascend");
		at = v->ends[i];
	}
	must(!v->ends || at == v->n, "each value is in a row");
}

/* All of it can be read. */
static int read_file(struct file *bytes)
{
	const struct fusee_parquet_input in = {
		.read = get, .arg = bytes, .size = bytes->len, .memory = MEMORY};
	struct fusee_parquet_file *f;
	struct fusee_parquet_values *v;
	struct fusee_parquet_bounds b;
	const char *why = NULL;
	uint64_t n = 0;
	int all = 1;

	if (fusee_parquet_open(&f, &in, &why)) {
		must(why && *why, "an error has its sentence");
		return 0;
	}
	fusee_parquet_pair(f, fusee_text("x"));
	for (uint32_t g = 0; g < fusee_parquet_groups(f) && g < 4; g++)
		for (uint32_t c = 0; c < fusee_parquet_columns(f).n; c++) {
			fusee_parquet_bounds(f, g, c, &b);
			why = NULL;
			if (fusee_parquet_may_have(f, g, c, fusee_text("main;a"), &n, &why) < 0)
				must(why && *why, "an error has its sentence");
			why = NULL;
			if (fusee_parquet_load(f, g, c, &v, &why)) {
				must(why && *why, "an error has its sentence");
				all = 0;
				continue;
			}
			check_values(v, fusee_parquet_group_rows(f, g));
			fusee_parquet_unload(v);
		}
	fusee_parquet_close(f);
	return all;
}

/* The first byte chooses: these bytes, or three of each change of a file: where, and to what. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct file ours[3];
	struct file f = {0};

	if (!size)
		return 0;
	if (*data % 4 == 3) {
		put(&f, data + 1, size - 1);
	} else {
		struct file *from = &ours[*data % 4];

		if (!from->p)
			write_file(from, *data % 4);
		put(&f, from->p, from->len);
		for (size_t i = 1; i + 2 < size; i += 3)
			f.p[(data[i] << 8 | data[i + 1]) % f.len] = data[i + 2];
	}
	must(read_file(&f) || *data % 4 == 3 || size > 3, "a file without changes is read");
	free(f.p);
	return 0;
}
