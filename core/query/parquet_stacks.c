/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row is a stack: its number, and its frames as lists of equal lengths, leaf first. Frames that
 * are inlined belong to the location of the next that is not. Most locations are in many stacks:
 * they are known by the codes of their values and built once in each row group.
 */
#include "query/parquet_stacks.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/dict.h"

#define MAX_BYTES (512ull << 20) /* of the builder and of `known` */

enum {
	ID = PARQUET_STACKS_ID,
	FUNCTION,
	FILE_NAME,
	LINE,
	INLINED,
	START_LINE,
	ADDRESS,
	MAPPING,
	BUILD_ID,
	TYPE,
	LANGUAGE,
	FLAGS,
	COLUMNS,
};
#define FIRST FUNCTION /* of the columns of frames */
#define NFRAME (COLUMNS - FIRST)

static const struct parquet_column columns[COLUMNS] = {
	[ID] = {"stack_id", NULL, FUSEE_PARQUET_INT64},
	[FUNCTION] = {"function", "frames", FUSEE_PARQUET_TEXT},
	[FILE_NAME] = {"file", "frames", FUSEE_PARQUET_TEXT},
	[LINE] = {"line", "frames", FUSEE_PARQUET_INT64},
	[START_LINE] = {"start_line", "frames", FUSEE_PARQUET_INT64},
	[ADDRESS] = {"address", "frames", FUSEE_PARQUET_INT64},
	[MAPPING] = {"mapping", "frames", FUSEE_PARQUET_TEXT},
	[BUILD_ID] = {"build_id", "frames", FUSEE_PARQUET_TEXT},
	[INLINED] = {"inlined", "frames", FUSEE_PARQUET_INT32},
	[TYPE] = {"type", "frames", FUSEE_PARQUET_TEXT},
	[LANGUAGE] = {"language", "frames", FUSEE_PARQUET_TEXT},
	[FLAGS] = {"flags", "frames", FUSEE_PARQUET_INT32},
};
static const uint32_t frame_columns[NFRAME] = {FUNCTION,   FILE_NAME, LINE,    INLINED,
					       START_LINE, ADDRESS,   MAPPING, BUILD_ID,
					       TYPE,       LANGUAGE,  FLAGS};

struct reading {
	struct parquet_stacks_reading in;
	struct builder *b;
	struct dict known;  /* locations of the row group; 0 is none */
	struct buf indices; /* uint32_t: of the builder, by number in `known` less 1 */
	struct buf key, lines, frames;
};

/* Values of `numbers`: this address, or one more than the stack's index behind it. */
static char required;

void parquet_stacks_fini(struct parquet_stacks *s)
{
	hashmap_fini(&s->numbers);
}

/* A file chooses the numbers, and could choose those that meet in the table. Each number has a key
 * of its own. */
static uint64_t key_of(const struct parquet_stacks *s, int64_t number)
{
	uint64_t key = (uint64_t)number * s->seed;

	return (key ^ key >> 32) * s->seed;
}

static void choose_seed(struct parquet_stacks *s)
{
	if (getrandom(&s->seed, sizeof(s->seed), GRND_NONBLOCK) != sizeof(s->seed))
		s->seed = (uintptr_t)s ^ (uint64_t)getpid() << 32;
	s->seed |= 1;
}

int parquet_stacks_require(struct parquet_stacks *s, int64_t number)
{
	uint64_t key;

	if (!s->seed)
		choose_seed(s);
	key = key_of(s, number);
	return hashmap_get(&s->numbers, key) ? 0 : hashmap_put(&s->numbers, key, &required);
}

uint64_t parquet_stacks_bytes(const struct parquet_stacks *s)
{
	return s->numbers.nslots * sizeof(*s->numbers.slots);
}

uint32_t parquet_stacks_at(const struct parquet_stacks *s, int64_t number)
{
	const char *at = hashmap_get(&s->numbers, key_of(s, number));

	return (uint32_t)((uintptr_t)at - (uintptr_t)&required - 1);
}

bool parquet_stacks_is_missing(const struct parquet_stacks *s, int64_t number)
{
	return hashmap_get(&s->numbers, key_of(s, number)) == &required;
}

int parquet_stacks_put(struct parquet_stacks_reading *r, int64_t number, uint32_t index)
{
	struct parquet_stacks *s = r->stacks;

	r->missing--;
	return hashmap_put(&s->numbers, key_of(s, number),
			   (void *)((uintptr_t)&required + 1 + index));
}

static int damaged(struct reading *r)
{
	*r->in.why = "its frames are no stacks";
	return -EINVAL;
}

/* ---- locations ---- */

static uint32_t text(struct reading *r, uint32_t column, uint64_t i)
{
	struct fusee_str s = parquet_text(&r->in.t, column, i);

	return s.len ? builder_string(r->b, s.p, s.len) : 0;
}

static uint32_t small(const struct reading *r, uint32_t column, uint64_t i)
{
	int64_t v = parquet_number(&r->in.t, column, i);

	return v > 0 && v < UINT32_MAX ? (uint32_t)v : 0;
}

static uint32_t flags_at(const struct reading *r, uint64_t i)
{
	return (uint32_t)parquet_number(&r->in.t, FLAGS, i);
}

/* A frame without a name, file and line is a location without lines. */
static bool add_line(struct reading *r, uint64_t i)
{
	struct fusee_function f = {.name = text(r, FUNCTION, i),
				   .file = text(r, FILE_NAME, i),
				   .start_line = small(r, START_LINE, i),
				   .flags = flags_at(r, i) >> 8 & 0xff};
	struct fusee_line line = {.line = small(r, LINE, i),
				  .flags = parquet_number(&r->in.t, INLINED, i) ? FUSEE_LINE_INLINED
										: 0};

	f.system_name = f.name;
	if (!f.name && !f.file && !line.line && !line.flags)
		return true;
	line.function = builder_function(r->b, &f);
	return !buf_add(&r->lines, &line, sizeof(line));
}

static uint32_t mapping_of(struct reading *r, uint64_t i)
{
	struct fusee_mapping m = {.path = text(r, MAPPING, i),
				  .build_id = text(r, BUILD_ID, i),
				  .flags = flags_at(r, i) >> 16 & 0xff,
				  .limit = UINT64_MAX};

	return m.path || m.build_id || m.flags ? builder_mapping(r->b, &m) : 0;
}

/* Frames `at` to `end` - 1 as a location; the last is that of its code. */
static uint32_t build_location(struct reading *r, uint64_t at, uint64_t end)
{
	struct fusee_location l = {.mapping = mapping_of(r, end - 1),
				   .frame_type = text(r, TYPE, end - 1),
				   .language = text(r, LANGUAGE, end - 1),
				   .flags = flags_at(r, end - 1) & 0xff,
				   .address = (uint64_t)parquet_number(&r->in.t, ADDRESS, end - 1)};

	buf_reset(&r->lines);
	for (; at < end; at++)
		if (!add_line(r, at))
			return BUILDER_NONE;
	return builder_location(r->b, &l, (const struct fusee_line *)(const void *)r->lines.p,
				(uint32_t)(r->lines.len / sizeof(struct fusee_line)));
}

static bool make_key(struct reading *r, uint64_t at, uint64_t end)
{
	uint64_t *k;

	buf_reset(&r->key);
	k = buf_grow(&r->key, (end - at) * NFRAME * sizeof(*k));
	for (; k && at < end; at++)
		for (uint32_t c = FIRST; c < COLUMNS; c++) {
			const struct fusee_parquet_values *v = r->in.t.values[c];

			*k++ = v->codes ? v->codes[at] : (uint64_t)v->numbers[at];
		}
	return k;
}

static int add_location(struct reading *r, uint64_t at, uint64_t end)
{
	uint32_t before = r->known.n, index, number;

	if (!make_key(r, at, end))
		return -ENOMEM;
	number = dict_add(&r->known, r->key.p, r->key.len);
	if (number == DICT_NONE)
		return -ENOMEM;
	if (r->known.n > before) {
		index = build_location(r, at, end);
		if (index == BUILDER_NONE || buf_add(&r->indices, &index, sizeof(index)))
			return -ENOMEM;
	}
	memcpy(&index, r->indices.p + (number - 1) * sizeof(index), sizeof(index));
	return buf_add(&r->frames, &index, sizeof(index));
}

/* ---- stacks ---- */

static int add_stack(struct reading *r, uint64_t row)
{
	uint64_t i = parquet_begin(&r->in.t, FUNCTION, row),
		 end = r->in.t.values[FUNCTION]->ends[row];
	uint32_t index;
	int err = 0;

	buf_reset(&r->frames);
	for (uint64_t first = i; !err && i < end; i++) {
		if (parquet_number(&r->in.t, INLINED, i))
			continue;
		err = add_location(r, first, i + 1);
		first = i + 1;
	}
	if (!err && end > parquet_begin(&r->in.t, FUNCTION, row) &&
	    parquet_number(&r->in.t, INLINED, end - 1))
		err = damaged(r);
	if (err)
		return err;
	index = builder_stack(r->b, (const uint32_t *)(const void *)r->frames.p,
			      (uint32_t)(r->frames.len / sizeof(uint32_t)));
	return index == BUILDER_NONE
		       ? -ENOMEM
		       : parquet_stacks_put(&r->in, parquet_number(&r->in.t, ID, row), index);
}

/* Lists of equal lengths in all columns. */
static int load_frames(struct reading *r)
{
	const struct fusee_parquet_values *first;
	int err = parquet_table_load(&r->in.t, frame_columns, NFRAME, r->in.why);

	if (err)
		return err;
	first = r->in.t.values[FIRST];
	for (uint32_t c = FIRST + 1; c < COLUMNS; c++)
		if (r->in.t.values[c]->n != first->n || memcmp(r->in.t.values[c]->ends, first->ends,
							       r->in.t.rows * sizeof(*first->ends)))
			return damaged(r);
	return 0;
}

static int read_group(void *arg)
{
	struct reading *r = arg;
	int err;

	dict_fini(&r->known);
	buf_reset(&r->indices);
	err = dict_init(&r->known);
	if (!err)
		err = load_frames(r);
	for (uint64_t row = 0; !err && row < r->in.t.rows; row++) {
		if (parquet_stacks_is_missing(r->in.stacks, parquet_number(&r->in.t, ID, row)))
			err = add_stack(r, row);
		if (!err && builder_bytes(r->b) + r->known.bytes > MAX_BYTES) {
			*r->in.why = "its stacks take more memory than may be used";
			err = -EFBIG;
		}
	}
	return err;
}

int parquet_stacks_read(struct parquet_stacks *s, struct builder *b, struct files *files,
			const char *path, uint64_t *bytes, const char **why)
{
	struct reading r = {
		.in = {.stacks = s, .columns = columns, .ncolumns = COLUMNS, .why = why}, .b = b};
	int err = parquet_stacks_read_groups(&r.in, files, path, bytes, read_group, &r);

	dict_fini(&r.known);
	buf_fini(&r.indices);
	buf_fini(&r.key);
	buf_fini(&r.lines);
	buf_fini(&r.frames);
	return err;
}

/* ---- row groups ---- */

/* 1: some of its stacks are missing. */
static int begin_group(struct parquet_stacks_reading *r, uint32_t group)
{
	static const uint32_t id_column[] = {ID};
	int err;

	parquet_table_group(&r->t, group);
	err = parquet_table_load(&r->t, id_column, 1, r->why);
	for (uint64_t row = 0; !err && row < r->t.rows; row++)
		if (parquet_stacks_is_missing(r->stacks, parquet_number(&r->t, ID, row)))
			return 1;
	return err;
}

int parquet_stacks_read_groups(struct parquet_stacks_reading *r, struct files *files,
			       const char *path, uint64_t *bytes, int (*read)(void *arg), void *arg)
{
	int err = parquet_table_open(&r->t, files, FILES_STACKS, path, r->columns, r->ncolumns,
				     r->why);

	r->missing = r->stacks->numbers.n;
	for (uint32_t g = 0; !err && r->missing && g < r->t.ngroups; g++) {
		err = begin_group(r, g);
		if (err == 1)
			err = read(arg);
	}
	if (!err && r->missing) {
		*r->why = "it lacks stacks that samples of its window have";
		err = -EINVAL;
	}
	*bytes += r->t.bytes;
	parquet_table_close(&r->t);
	return err;
}
