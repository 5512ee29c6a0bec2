/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row is a stack: its number, and its frames, leaf first. Inlined frames belong to the location
 * of the next frame that is not inlined. Most locations occur in many stacks, so they are found by
 * the codes of their frames, and each frame is read once a row group.
 */
#include "parquet/internal/stacks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/dict.h"
#include "parquet/internal/frame.h"

#define MAX_BYTES (512ull << 20) /* of the builder and of the tables of a row group */

enum { ID = PARQUET_STACKS_ID, FRAMES, COLUMNS };

static const struct parquet_column columns[COLUMNS] = {
	[ID] = {"stack_id", NULL, FUSEE_PARQUET_INT64},
	[FRAMES] = {NULL, "frames", FUSEE_PARQUET_TEXT},
};
static const uint32_t frames_column[] = {FRAMES};

/* A distinct frame of the row group, by its code. */
struct frame {
	struct fusee_line line;
	uint32_t mapping, type, language, flags;
	uint64_t address;
	bool is_read, is_inlined;
	bool has_line;     /* else it is a location without lines */
	uint32_t location; /* 1 + the location of this frame alone; 0: not built yet */
};

struct reading {
	struct parquet_stacks_reading in;
	struct builder *b;
	struct frame *of;   /* by code */
	struct dict known;  /* locations of several frames, of the row group; 0 is none */
	struct buf indices; /* uint32_t: of the builder, by number in `known` less 1 */
	struct buf lines, locations, room;
};

/* Values of `numbers`: this address, or this address + 1 + the stack's index. */
static char required;

void parquet_stacks_fini(struct parquet_stacks *s)
{
	hashmap_fini(&s->numbers);
}

/* Mixes the number with the seed: a crafted file could choose numbers that collide in the table.
 * Different numbers have different keys. */
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

/* ---- frames ---- */

static uint32_t text(struct reading *r, struct fusee_str s)
{
	return s.len ? builder_string(r->b, s.p, s.len) : 0;
}

static uint32_t small(int64_t v)
{
	return v > 0 && v < UINT32_MAX ? (uint32_t)v : 0;
}

/* A frame without a name, file and line is a location without lines. */
static void set_line(struct reading *r, const struct parquet_frame *f, struct frame *to)
{
	struct fusee_function function = {.name = text(r, f->texts[FRAME_FUNCTION]),
					  .file = text(r, f->texts[FRAME_FILE]),
					  .start_line = small(f->numbers[FRAME_START_LINE]),
					  .flags = (uint32_t)f->numbers[FRAME_FLAGS] >> 8 & 0xff};

	function.system_name = function.name;
	to->is_inlined = f->numbers[FRAME_INLINED] != 0;
	to->line.line = small(f->numbers[FRAME_LINE]);
	to->line.flags = to->is_inlined ? FUSEE_LINE_INLINED : 0;
	to->has_line = function.name || function.file || to->line.line || to->line.flags;
	if (to->has_line)
		to->line.function = builder_function(r->b, &function);
}

static uint32_t mapping_of(struct reading *r, const struct parquet_frame *f)
{
	struct fusee_mapping m = {.path = text(r, f->texts[FRAME_MAPPING]),
				  .build_id = text(r, f->texts[FRAME_BUILD_ID]),
				  .flags = (uint32_t)f->numbers[FRAME_FLAGS] >> 16 & 0xff,
				  .limit = UINT64_MAX};

	return m.path || m.build_id || m.flags ? builder_mapping(r->b, &m) : 0;
}

static int read_frame(struct reading *r, uint32_t code)
{
	struct frame *to = &r->of[code];
	struct parquet_frame f;
	int err = parquet_frame_read(&f, r->in.t.values[FRAMES]->texts[code], &r->room);

	if (err)
		return err == -EINVAL ? damaged(r) : err;
	set_line(r, &f, to);
	to->mapping = mapping_of(r, &f);
	to->type = text(r, f.texts[FRAME_TYPE]);
	to->language = text(r, f.texts[FRAME_LANGUAGE]);
	to->flags = (uint32_t)f.numbers[FRAME_FLAGS] & 0xff;
	to->address = (uint64_t)f.numbers[FRAME_ADDRESS];
	to->is_read = true;
	return 0;
}

/* ---- locations ---- */

/* Builds the location of the frames with these codes; the last frame is not inlined. BUILDER_NONE:
 * no memory. */
static uint32_t build_location(struct reading *r, const uint32_t *codes, uint64_t n)
{
	const struct frame *last = &r->of[codes[n - 1]];
	struct fusee_location l = {.mapping = last->mapping,
				   .frame_type = last->type,
				   .language = last->language,
				   .flags = last->flags,
				   .address = last->address};

	buf_reset(&r->lines);
	for (uint64_t i = 0; i < n; i++) {
		const struct frame *f = &r->of[codes[i]];

		if (f->has_line && buf_add(&r->lines, &f->line, sizeof(f->line)))
			return BUILDER_NONE;
	}
	return builder_location(r->b, &l, (const struct fusee_line *)(const void *)r->lines.p,
				(uint32_t)(r->lines.len / sizeof(struct fusee_line)));
}

/* The location of several frames. 0 or -ENOMEM. */
static int find_location(struct reading *r, const uint32_t *codes, uint64_t n, uint32_t *location)
{
	uint32_t before = r->known.n,
		 number = dict_add(&r->known, (const char *)codes, n * sizeof(*codes));

	if (number == DICT_NONE)
		return -ENOMEM;
	if (r->known.n > before) {
		*location = build_location(r, codes, n);
		return *location == BUILDER_NONE
			       ? -ENOMEM
			       : buf_add(&r->indices, location, sizeof(*location));
	}
	memcpy(location, r->indices.p + (number - 1) * sizeof(*location), sizeof(*location));
	return 0;
}

static int add_location(struct reading *r, const uint32_t *codes, uint64_t n)
{
	struct frame *only = &r->of[codes[0]];
	uint32_t location = only->location - 1;
	int err = 0;

	if (n > 1) {
		err = find_location(r, codes, n, &location);
	} else if (!only->location) {
		location = build_location(r, codes, 1);
		only->location = location + 1;
		err = location == BUILDER_NONE ? -ENOMEM : 0;
	}
	return err ? err : buf_add(&r->locations, &location, sizeof(location));
}

/* ---- stacks ---- */

static int add_stack(struct reading *r, uint64_t row)
{
	const struct fusee_parquet_values *v = r->in.t.values[FRAMES];
	uint64_t i = parquet_begin(&r->in.t, FRAMES, row), end = v->ends[row], first = i;
	uint32_t index;
	int err = 0;

	buf_reset(&r->locations);
	for (; !err && i < end; i++) {
		if (!r->of[v->codes[i]].is_read)
			err = read_frame(r, v->codes[i]);
		if (err || r->of[v->codes[i]].is_inlined)
			continue;
		err = add_location(r, v->codes + first, i + 1 - first);
		first = i + 1;
	}
	if (!err && first < end)
		err = damaged(r);
	if (err)
		return err;
	index = builder_stack(r->b, (const uint32_t *)(const void *)r->locations.p,
			      (uint32_t)(r->locations.len / sizeof(uint32_t)));
	return index == BUILDER_NONE
		       ? -ENOMEM
		       : parquet_stacks_put(&r->in, parquet_number(&r->in.t, ID, row), index);
}

static int load_frames(struct reading *r)
{
	int err = parquet_table_load(&r->in.t, frames_column, 1, r->in.why);

	if (err)
		return err;
	free(r->of);
	r->of = calloc(r->in.t.values[FRAMES]->ndistinct + 1ull, sizeof(*r->of));
	return r->of ? 0 : -ENOMEM;
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

	free(r.of);
	dict_fini(&r.known);
	buf_fini(&r.indices);
	buf_fini(&r.lines);
	buf_fini(&r.locations);
	buf_fini(&r.room);
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
