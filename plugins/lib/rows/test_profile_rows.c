/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/lib/rows
#include "test.h"

#include <fusee/rows.h>

#include "lib/fakehost.h"

static struct builder *b;
static struct fusee_rows *rows;
static struct fusee_rows_sample sample;
static struct fusee_rows_stack stack;

/* A frame with one line of the function; inlined: and another function that is inlined into it. */
static uint32_t frame(const char *name, uint64_t address, const char *inlined)
{
	struct fusee_location l = {.address = address, .flags = FUSEE_LOCATION_GUESSED};
	struct fusee_line lines[2] = {{.line = 7}, {.line = 8}};
	struct fusee_function f = {
		.start_line = 3, .flags = FUSEE_FRAME_ASYNC, .name = builder_cstr(b, name)};
	uint32_t n = 0;

	if (inlined) {
		struct fusee_function in = {.name = builder_cstr(b, inlined)};

		lines[0].function = builder_function(b, &in);
		lines[0].flags = FUSEE_LINE_INLINED;
		n = 1;
	}
	lines[n].function = builder_function(b, &f);
	return builder_location(b, &l, lines, n + 1);
}

static void add(const uint32_t *frames, uint32_t n, const int64_t *values,
		const struct fusee_label *labels, uint32_t nlabels)
{
	static uint32_t tid; /* equal samples would be added up */

	builder_sample(b, builder_stack(b, frames, n), labels, nlabels, 5, ++tid, values);
}

static const struct fusee_profile *begin(const char *first, const char *second)
{
	CHECK_INT(builder_new(&b), 0);
	builder_type(b, first, "count");
	if (second)
		builder_type(b, second, "nanoseconds");
	return NULL;
}

static void open_rows(uint64_t max_text, uint32_t max_frames)
{
	const struct fusee_rows_options o = {.max_text = max_text, .max_frames = max_frames};
	const struct fusee_profile *p;

	CHECK_INT(builder_finish(b, &p), 0);
	CHECK_INT(fusee_rows_open(&rows, p, &o), 0);
}

static void end(void)
{
	fusee_rows_close(rows);
	builder_free(b);
}

static const struct fusee_rows_label *label(uint32_t i)
{
	CHECK(i < sample.labels.n);
	return FUSEE_AT(struct fusee_rows_label, sample.labels, i);
}

#define CHECK_TEXT(s, expected) CHECK(fusee_text_is(s, expected))

TEST(samples_with_their_number_as_a_column)
{
	uint32_t frames[2];

	begin("samples", "cpu");
	frames[0] = frame("leaf", 1, "tiny");
	frames[1] = frame("a;b", 2, NULL);
	add(frames, 2, (int64_t[]){3, 30}, NULL, 0);
	add(frames + 1, 1, (int64_t[]){1, 10}, NULL, 0);
	add(frames, 2, (int64_t[]){2, 20}, NULL, 0);
	open_rows(1000, 10);
	CHECK_INT(fusee_rows_nsamples(rows), 3);
	CHECK_INT(fusee_rows_nstacks(rows), 2);
	CHECK_INT(fusee_rows_fill_sample(rows, 2, &sample), 0);
	CHECK_TEXT(sample.sample_type, "cpu");
	CHECK_TEXT(sample.unit, "nanoseconds");
	CHECK_TEXT(sample.stack, "a:b;leaf;tiny");
	CHECK_INT(sample.value, 20);
	CHECK_INT(sample.count, 2);
	CHECK_INT(sample.pid, 5);
	CHECK_INT(sample.tid, 3);
	CHECK_INT(fusee_rows_fill_stack(rows, 0, &stack), 0);
	CHECK(stack.id == sample.stack_id && stack.id == fusee_rows_stack_id(rows, 0));
	CHECK(stack.id != fusee_rows_stack_id(rows, 1) && fusee_rows_stack_id(rows, 1));
	CHECK_TEXT(stack.stack, "a:b;leaf;tiny");
	CHECK_INT(stack.frames.n, 3);
	CHECK_TEXT(FUSEE_AT(struct fusee_rows_frame, stack.frames, 0)->function, "tiny");
	CHECK_INT(FUSEE_AT(struct fusee_rows_frame, stack.frames, 0)->inlined, 1);
	CHECK_INT(FUSEE_AT(struct fusee_rows_frame, stack.frames, 1)->inlined, 0);
	CHECK_TEXT(FUSEE_AT(struct fusee_rows_frame, stack.frames, 2)->function, "a;b");
	CHECK_INT(FUSEE_AT(struct fusee_rows_frame, stack.frames, 2)->address, 2);
	CHECK_INT(FUSEE_AT(struct fusee_rows_frame, stack.frames, 2)->start_line, 3);
	CHECK_INT(FUSEE_AT(struct fusee_rows_frame, stack.frames, 2)->flags,
		  FUSEE_LOCATION_GUESSED | FUSEE_FRAME_ASYNC << 8);
	end();
}

/* Which frames are inlined follows from the place of a line in its location. */
TEST(flags_of_lines_do_not_join_locations)
{
	static const int inlined[] = {1, 1, 0, 1, 1, 0, 0}; /* two of three lines, one of none */
	struct fusee_location l = {.address = 1};
	struct fusee_line lines[3] = {{0}};
	uint32_t frames[3];

	begin("cpu", NULL);
	for (uint32_t k = 0; k < 2; k++) {
		for (uint32_t i = 0; i < 3; i++)
			lines[i] = (struct fusee_line){.line = 1 + i,
						       .flags = k ? 0 : FUSEE_LINE_INLINED};
		l.address = 1 + k;
		frames[k] = builder_location(b, &l, lines, 3);
	}
	l.address = 3;
	frames[2] = builder_location(b, &l, NULL, 0);
	add(frames, 3, (int64_t[]){1}, NULL, 0);
	open_rows(1000, 10);
	CHECK_INT(fusee_rows_fill_stack(rows, 0, &stack), 0);
	CHECK_INT(stack.frames.n, 7);
	for (uint32_t i = 0; i < 7; i++)
		CHECK_INT(FUSEE_AT(struct fusee_rows_frame, stack.frames, i)->inlined, inlined[i]);
	end();
}

TEST(a_row_for_each_type_of_value)
{
	begin("alloc", "bytes");
	add((uint32_t[]){frame("f", 1, NULL)}, 1, (int64_t[]){1, 2}, NULL, 0);
	open_rows(1000, 10);
	CHECK_INT(fusee_rows_nsamples(rows), 2);
	CHECK_INT(fusee_rows_fill_sample(rows, 1, &sample), 0);
	CHECK_TEXT(sample.sample_type, "bytes");
	CHECK_INT(sample.value, 2);
	CHECK_INT(sample.count, 0);
	end();
	/* the number of samples is all that there is */
	begin("samples", NULL);
	add((uint32_t[]){frame("f", 1, NULL)}, 1, (int64_t[]){4}, NULL, 0);
	open_rows(1000, 10);
	CHECK_INT(fusee_rows_nsamples(rows), 1);
	CHECK_INT(fusee_rows_fill_sample(rows, 0, &sample), 0);
	CHECK_TEXT(sample.sample_type, "samples");
	CHECK(sample.value == 4 && sample.count == 4);
	end();
	begin("samples", NULL);
	open_rows(1000, 10);
	CHECK(!fusee_rows_nsamples(rows) && !fusee_rows_nstacks(rows));
	end();
}

TEST(labels)
{
	const struct fusee_label own[] = {
		fusee_text_label("z", "1"),
		fusee_text_label("service_name", "shop"),
		fusee_text_label("a", "first"),
		fusee_text_label("a", "second"),
		{.key = FUSEE_TEXT("cpu"), .num = -7},
		{.key = FUSEE_TEXT("pod"), .num = 3}, /* a number is no pod's name */
		fusee_text_label("thread", ""),       /* as if it were not there */
		{.key = FUSEE_TEXT("zero"), .num = 0},
		{.key = FUSEE_TEXT("zero s"), .unit = FUSEE_TEXT("s")},
	};

	begin("cpu", NULL);
	add((uint32_t[]){frame("f", 1, NULL)}, 1, (int64_t[]){1}, own, 9);
	builder_resource(b, "host", "n1");
	builder_resource(b, "z", "of the target");
	builder_resource(b, "thread", "of the target");
	open_rows(1000, 10);
	CHECK_INT(fusee_rows_fill_sample(rows, 0, &sample), 0);
	CHECK_TEXT(sample.own[FUSEE_ROWS_SERVICE], "shop");
	CHECK_TEXT(sample.own[FUSEE_ROWS_HOST], "n1");
	CHECK_TEXT(sample.own[FUSEE_ROWS_THREAD], "of the target");
	CHECK_INT(sample.own[FUSEE_ROWS_POD].len, 0);
	CHECK_INT(sample.labels.n, 5);
	CHECK_TEXT(label(0)->key, "a");
	CHECK_TEXT(label(0)->value, "first");
	CHECK_TEXT(label(1)->key, "cpu");
	CHECK_TEXT(label(1)->value, "-7");
	CHECK_TEXT(label(2)->value, "3");
	CHECK_TEXT(label(3)->value, "1");
	CHECK_TEXT(label(4)->key, "zero s");
	CHECK_INT(fusee_rows_count_shortened(rows).labels, 0);
	end();
}

TEST(what_is_too_long)
{
	struct fusee_label many[60];
	static char names[160][8];
	uint32_t frames[6];

	begin("cpu", NULL);
	for (int i = 0; i < 160; i++) {
		snprintf(names[i], sizeof(names[i]), "l%d", i);
		if (i < 60)
			many[i] = fusee_text_label(names[i],
						   i == 10 ? "0123456789012345678\xc3\xa4" : "v");
		else
			builder_resource(b, names[i], "v");
	}
	for (uint32_t i = 0; i < 6; i++)
		frames[i] = frame("function", i, NULL);
	add(frames, 6, (int64_t[]){1}, many, 60);
	open_rows(20, 4);
	CHECK_INT(fusee_rows_fill_sample(rows, 0, &sample), 0);
	CHECK_INT(fusee_rows_fill_sample(rows, 0, &sample), 0);
	CHECK_INT(sample.labels.n, FUSEE_ROWS_LABELS);
	CHECK_TEXT(label(2)->key, "l10");
	CHECK_INT(label(2)->value.len, 19); /* the letter behind it is complete or absent */
	CHECK(sample.stack.len <= 20);
	CHECK_TEXT(sample.stack, "[too long];function");
	CHECK_INT(fusee_rows_count_shortened(rows).stacks, 1);
	CHECK_INT(fusee_rows_count_shortened(rows).labels, 2 * (160 - FUSEE_ROWS_LABELS + 1));
	CHECK_INT(fusee_rows_fill_stack(rows, 0, &stack), 0);
	CHECK_INT(stack.frames.n, 4);
	CHECK_INT(fusee_rows_count_shortened(rows).frames, 1);
	end();
}

/* Ids are of what frames are, and not of their places in a profile. */
TEST(stack_ids_of_two_profiles)
{
	int64_t id;

	begin("cpu", NULL);
	add((uint32_t[]){frame("f", 1, NULL)}, 1, (int64_t[]){1}, NULL, 0);
	open_rows(1000, 10);
	id = fusee_rows_stack_id(rows, 0);
	end();
	begin("cpu", NULL);
	add((uint32_t[]){frame("other", 9, NULL)}, 1, (int64_t[]){1}, NULL, 0);
	add((uint32_t[]){frame("f", 1, NULL)}, 1, (int64_t[]){1}, NULL, 0);
	open_rows(1000, 10);
	CHECK(fusee_rows_stack_id(rows, 0) != id && fusee_rows_stack_id(rows, 1) == id);
	end();
}

static int64_t value_of(uint64_t row)
{
	CHECK_INT(fusee_rows_fill_sample(rows, row, &sample), 0);
	return sample.value;
}

/* Of profiles as they are sampled, and as they are read from files. */
TEST(ids_are_columns)
{
	const struct fusee_label read[] = {
		fusee_text_label("span_id", "0000000000000009"),
		fusee_text_label("trace_id", "00000000000000010000000000000002")};
	const struct fusee_label number = {.key = FUSEE_TEXT("span_id"), .num = 77};
	const struct fusee_rows_options with = {.max_text = 1000, .max_frames = 10, .ids = 1};
	const struct fusee_profile *p;
	uint32_t f;

	begin("cpu", NULL);
	f = builder_stack(b, (uint32_t[]){frame("f", 1, NULL)}, 1);
	for (uint64_t i = 0; i < 3; i++) {
		builder_ids(b, (uint64_t[]){i ? 0xabc : 0, i}, i ? 0xfedcba9876543210 + i : 0);
		builder_sample(b, f, NULL, 0, 1, 1, (int64_t[]){1});
	}
	builder_ids(b, (uint64_t[]){0, 0}, 0);
	builder_sample(b, f, read, 2, 1, 1, (int64_t[]){1});
	builder_sample(b, f, &number, 1, 1, 1, (int64_t[]){1});
	CHECK_INT(builder_finish(b, &p), 0);
	CHECK_INT(fusee_rows_open(&rows, p, &with), 0);
	CHECK_INT(fusee_rows_nsamples(rows), 5);
	CHECK_INT(fusee_rows_fill_sample(rows, 4, &sample), 0);
	CHECK_TEXT(sample.own[FUSEE_ROWS_SPAN], "77");
	CHECK_INT(sample.labels.n, 0);
	CHECK_INT(fusee_rows_fill_sample(rows, 0, &sample), 0);
	CHECK(!sample.own[FUSEE_ROWS_TRACE].len && !sample.own[FUSEE_ROWS_SPAN].len);
	CHECK_INT(fusee_rows_fill_sample(rows, 2, &sample), 0);
	CHECK_TEXT(sample.own[FUSEE_ROWS_TRACE], "0000000000000abc0000000000000002");
	CHECK_TEXT(sample.own[FUSEE_ROWS_SPAN], "fedcba9876543212");
	CHECK_INT(sample.labels.n, 0);
	CHECK_INT(fusee_rows_fill_sample(rows, 3, &sample), 0);
	CHECK_TEXT(sample.own[FUSEE_ROWS_TRACE], "00000000000000010000000000000002");
	CHECK_TEXT(sample.own[FUSEE_ROWS_SPAN], "0000000000000009");
	CHECK_INT(sample.labels.n, 0);
	end();
}

/* Rows without ids: samples of other spans are one row, with the sum; others are not. */
TEST(samples_of_other_spans_are_one_row)
{
	const struct fusee_label labels[] = {{.key = fusee_text("state"), .str = fusee_text("on")}};
	uint32_t f[2];

	begin("samples", "cpu");
	f[0] = builder_stack(b, (uint32_t[]){frame("f", 1, NULL)}, 1);
	f[1] = builder_stack(b, (uint32_t[]){frame("g", 2, NULL)}, 1);
	for (uint64_t span = 0; span < 1000; span++) {
		builder_ids(b, (uint64_t[]){span % 7, span % 11}, span);
		builder_sample(b, f[span % 2], labels, 1, 5, 6, (int64_t[]){1, (int64_t)span});
		builder_sample(b, f[0], labels, 0, 5, 6, (int64_t[]){1, 1});
		builder_sample(b, f[0], labels, 1, 5, 7, (int64_t[]){1, 2});
		builder_sample(b, f[0], labels, 1, 8, 6, (int64_t[]){2, 3});
	}
	builder_ids(b, (uint64_t[]){1, 1}, 1);
	builder_sample(b, f[1], labels, 1, 5, 6, (int64_t[]){0, INT64_MAX});
	open_rows(1000, 10);
	CHECK_INT(fusee_rows_nsamples(rows), 5);
	CHECK_INT(value_of(0), 249500); /* the even of 0 to 999 */
	CHECK_INT(sample.count, 500);
	CHECK_TEXT(sample.stack, "f");
	CHECK_INT(value_of(1), 1000);
	CHECK_INT(sample.labels.n, 0);
	CHECK_INT(value_of(2), 2000);
	CHECK_INT(sample.tid, 7);
	CHECK_INT(value_of(3), 3000);
	CHECK_INT(sample.count, 2000);
	CHECK_INT(sample.pid, 8);
	CHECK(value_of(4) == INT64_MAX); /* and no overflow */
	CHECK_INT(sample.count, 500);
	CHECK_TEXT(sample.stack, "g");
	end();
}

/* More text than is kept: it is folded for each row, and the same. */
TEST(texts_that_are_not_kept)
{
	const uint32_t n = 200;
	char *name = malloc(300001);
	struct fusee_str first;

	CHECK(name);
	memset(name, 'x', 300000);
	name[300000] = '\0';
	begin("cpu", NULL);
	for (uint32_t i = 0; i < n; i++)
		add((uint32_t[]){frame("f", i, NULL), frame(name, 1000, NULL)}, 2, (int64_t[]){1},
		    NULL, 0);
	open_rows(1 << 20, 10);
	for (uint32_t i = 0; i < n; i++)
		CHECK_INT(fusee_rows_fill_stack(rows, i, &stack), 0);
	for (uint32_t i = 0; i < n; i += n - 1) {
		CHECK_INT(fusee_rows_fill_sample(rows, i, &sample), 0);
		first = sample.stack;
		CHECK_INT(first.len, 300002);
		CHECK(!memcmp(first.p, name, 300000) && !memcmp(first.p + 300000, ";f", 2));
	}
	end();
	free(name);
}
