/* SPDX-License-Identifier: Apache-2.0 */
#include "query/parquet_match.h"

#include <errno.h>
#include <stdlib.h>

#include "query/parquet_table.h"

enum { ID, FUNCTION, COLUMNS };

static const struct parquet_column columns[COLUMNS] = {
	[ID] = {"stack_id", NULL, FUSEE_PARQUET_INT64},
	[FUNCTION] = {"function", "frames", FUSEE_PARQUET_TEXT},
};
static const uint32_t id_column[] = {ID}, function_column[] = {FUNCTION};

struct reading {
	struct parquet_stacks *stacks;
	struct functions *functions;
	struct builder *b;
	struct parquet_table t;
	uint64_t missing; /* stacks that are required and not read yet */
	uint32_t matched; /* index of the stack in the builder; 0: none yet */
	uint32_t nnames;  /* of the row group */
	const char **why;
};

/* Whether a frame without a name has a function depends on its file and line. */
bool parquet_match_can(struct functions *f)
{
	return f && !functions_match(f, (struct fusee_str){"", 0});
}

/* The stack that all have which match. */
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

/* met[code]: whether the name matches. 1: some do; 0; -errno. */
static int match_names(struct reading *r, const struct fusee_parquet_values *names, uint8_t *met)
{
	int any = 0;

	for (uint32_t i = 0; i < names->ndistinct; i++) {
		int match = functions_match(r->functions, names->texts[i]), err = 0;

		if (match > 0 && !r->matched)
			err = build_stack(r, names->texts[i]);
		if (match < 0 || err)
			return match < 0 ? match : err;
		met[i] = (uint8_t)match;
		any |= match;
	}
	return any;
}

static bool has_match(const struct reading *r, const uint8_t *met, uint64_t row)
{
	const struct fusee_parquet_values *v = r->t.values[FUNCTION];

	for (uint64_t i = parquet_begin(&r->t, FUNCTION, row); i < v->ends[row]; i++)
		if (met[v->codes[i]])
			return true;
	return false;
}

/* met: NULL: nothing matches. */
static int put_rows(struct reading *r, const uint8_t *met)
{
	int err = met ? parquet_table_load(&r->t, function_column, 1, r->why) : 0;

	if (!err && met && r->t.values[FUNCTION]->ndistinct != r->nnames) {
		*r->why = "it was changed while it was read";
		err = -EINVAL;
	}
	for (uint64_t row = 0; !err && row < r->t.rows; row++) {
		int64_t number = parquet_number(&r->t, ID, row);

		if (!parquet_stacks_is_missing(r->stacks, number))
			continue;
		r->missing--;
		err = parquet_stacks_put(r->stacks, number,
					 met && has_match(r, met, row) ? r->matched : 0);
	}
	return err;
}

static int read_group(struct reading *r, uint32_t group)
{
	struct fusee_parquet_values *names = NULL;
	uint64_t row = 0;
	uint8_t *met = NULL;
	int any;

	parquet_table_group(&r->t, group);
	any = parquet_table_load(&r->t, id_column, 1, r->why);
	while (!any && row < r->t.rows &&
	       !parquet_stacks_is_missing(r->stacks, parquet_number(&r->t, ID, row)))
		row++;
	if (any || row == r->t.rows)
		return any;
	any = parquet_table_distinct(&r->t, FUNCTION, &names, r->why);
	if (any)
		return any;
	r->nnames = names->ndistinct;
	met = malloc(r->nnames + 1ull);
	any = met ? match_names(r, names, met) : -ENOMEM;
	fusee_parquet_unload(names);
	if (any >= 0)
		any = put_rows(r, any ? met : NULL);
	free(met);
	return any;
}

int parquet_match_read(struct parquet_stacks *s, struct functions *functions, struct builder *b,
		       struct files *files, const char *path, uint64_t *bytes, const char **why)
{
	struct reading r = {
		.stacks = s, .functions = functions, .b = b, .missing = s->numbers.n, .why = why};
	int err = parquet_table_open(&r.t, files, FILES_STACKS, path, columns, COLUMNS, why);

	for (uint32_t g = 0; !err && r.missing && g < r.t.ngroups; g++)
		err = read_group(&r, g);
	if (!err && r.missing) {
		*why = PARQUET_STACKS_LACKING;
		err = -EINVAL;
	}
	*bytes += r.t.bytes;
	parquet_table_close(&r.t);
	return err;
}
