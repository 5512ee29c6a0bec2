/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/internal/match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "parquet/internal/frame.h"

enum { ID = PARQUET_STACKS_ID, FRAMES, COLUMNS };

static const struct parquet_column columns[COLUMNS] = {
	[ID] = {"stack_id", NULL, FUSEE_PARQUET_INT64},
	[FRAMES] = {NULL, "frames", FUSEE_PARQUET_TEXT},
};
static const uint32_t frames_column[] = {FRAMES};

struct reading {
	struct parquet_stacks_reading in;
	struct functions *functions;
	struct builder *b;
	uint32_t matched; /* index of the stack in the builder; 0: none yet */
	uint32_t nframes; /* distinct frames of the row group */
	struct buf room;
};

/* Not if the expressions match an empty name: whether a frame without a name has a function depends
 * on its file and line, which are not read. */
bool parquet_match_can(struct functions *f)
{
	return f && !functions_match(f, (struct fusee_str){"", 0});
}

/* Builds the one stack of all stacks that match. */
static int build_stack(struct reading *r, struct fusee_str name)
{
	struct fusee_function f = {.name = builder_string(r->b, name.p, name.len)};
	const struct fusee_location none = {0};
	struct fusee_line line = {0};
	uint32_t location;

	f.system_name = f.name;
	line.function = builder_function(r->b, &f);
	location = builder_location(r->b, &none, &line, 1);
	r->matched = builder_stack(r->b, &location, 1);
	return r->matched == BUILDER_NONE ? -ENOMEM : 0;
}

/* Whether a frame's function matches: 1, 0, -errno. last, match: function and result of the
 * previous frame, whose function is mostly the same. */
static int match_frame(struct reading *r, struct fusee_str frame, struct fusee_str *last, int match)
{
	struct fusee_str name;
	int err = parquet_frame_function(&name, frame, &r->room);

	if (err) {
		*r->in.why = "its frames are no stacks";
		return err;
	}
	if (last->p && str_equal(*last, name))
		return match;
	/* the next name with escapes would overwrite it */
	*last = r->room.len ? (struct fusee_str){NULL, 0} : name;
	match = functions_match(r->functions, name);
	if (match > 0 && !r->matched)
		err = build_stack(r, name);
	return err ? err : match;
}

/* met[code]: whether the name matches. 1: some do; 0; -errno. */
static int match_names(struct reading *r, const struct fusee_parquet_values *frames, uint8_t *met)
{
	struct fusee_str last = {NULL, 0};
	int any = 0, match = 0;

	for (uint32_t i = 0; i < frames->ndistinct; i++) {
		match = match_frame(r, frames->texts[i], &last, match);
		if (match < 0)
			return match;
		met[i] = (uint8_t)match;
		any |= match;
	}
	return any;
}

static bool has_match(const struct reading *r, const uint8_t *met, uint64_t row)
{
	const struct fusee_parquet_values *v = r->in.t.values[FRAMES];

	for (uint64_t i = parquet_begin(&r->in.t, FRAMES, row); i < v->ends[row]; i++)
		if (met[v->codes[i]])
			return true;
	return false;
}

/* met: NULL: nothing matches. */
static int put_rows(struct reading *r, const uint8_t *met)
{
	int err = met ? parquet_table_load(&r->in.t, frames_column, 1, r->in.why) : 0;

	if (!err && met && r->in.t.values[FRAMES]->ndistinct != r->nframes) {
		*r->in.why = "it was changed while it was read";
		err = -EINVAL;
	}
	for (uint64_t row = 0; !err && row < r->in.t.rows; row++) {
		int64_t number = parquet_number(&r->in.t, ID, row);

		if (!parquet_stacks_is_missing(r->in.stacks, number))
			continue;
		err = parquet_stacks_put(&r->in, number,
					 met && has_match(r, met, row) ? r->matched : 0);
	}
	return err;
}

static int read_group(void *arg)
{
	struct reading *r = arg;
	struct fusee_parquet_values *frames = NULL;
	uint8_t *met = NULL;
	int any = parquet_table_distinct(&r->in.t, FRAMES, &frames, r->in.why);

	if (any)
		return any;
	r->nframes = frames->ndistinct;
	met = malloc(r->nframes + 1ull);
	any = met ? match_names(r, frames, met) : -ENOMEM;
	fusee_parquet_unload(frames);
	if (any >= 0)
		any = put_rows(r, any ? met : NULL);
	free(met);
	return any;
}

int parquet_match_read(struct parquet_stacks *s, struct functions *functions, struct builder *b,
		       struct files *files, const char *path, uint64_t *bytes, const char **why)
{
	struct reading r = {
		.in = {.stacks = s, .columns = columns, .ncolumns = COLUMNS, .why = why},
		.functions = functions,
		.b = b};
	int err = parquet_stacks_read_groups(&r.in, files, path, bytes, read_group, &r);

	buf_fini(&r.room);
	return err;
}
