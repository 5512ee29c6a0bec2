/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "annotation/annotation.h"

static void subtract(int64_t *from, int64_t v)
{
	if (__builtin_sub_overflow(*from, v, from))
		*from = v < 0 ? INT64_MAX : INT64_MIN;
}

/* The function of a that corresponds to g of another build; of several, that of the same library.
 * NULL: none. */
static struct annotated_function *counterpart(struct annotation *a,
					      const struct annotated_function *g)
{
	struct annotated_function *found = NULL;

	for (uint32_t i = 0; i < a->n; i++) {
		struct annotated_function *f = &a->functions[i];

		if (str_equal(f->name, g->name) && str_equal(f->file, g->file) &&
		    (!found || str_equal(f->library, g->library)))
			found = f;
	}
	return found;
}

static int subtract_lines(struct annotated_function *f, const struct annotated_function *g)
{
	struct annotated_line *all = calloc((size_t)f->nlines + g->nlines + 1, sizeof(*all));
	uint32_t i = 0, k = 0, n = 0;

	if (!all)
		return -ENOMEM;
	while (i < f->nlines || k < g->nlines) {
		bool own = i < f->nlines &&
			   (k == g->nlines || f->lines[i].line <= g->lines[k].line);
		uint32_t line = own ? f->lines[i].line : g->lines[k].line;

		all[n] = own ? f->lines[i++] : (struct annotated_line){.line = line};
		if (k < g->nlines && g->lines[k].line == line) {
			subtract(&all[n].flat, g->lines[k].flat);
			subtract(&all[n].cum, g->lines[k++].cum);
		}
		n++;
	}
	free(f->lines);
	f->lines = all;
	f->nlines = n;
	return 0;
}

/* For equal builds only: addresses of different builds cannot be compared. */
static int subtract_addresses(struct annotated_function *f, const struct annotated_function *g)
{
	struct annotated_address *all;
	uint32_t i = 0, k = 0, n = 0;

	if (!f->naddresses || !str_equal(f->library, g->library) ||
	    !str_equal(f->build_id, g->build_id)) {
		f->naddresses = 0;
		return 0;
	}
	all = calloc((size_t)f->naddresses + g->naddresses + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	while (i < f->naddresses || k < g->naddresses) {
		bool own = i < f->naddresses &&
			   (k == g->naddresses ||
			    f->addresses[i].address <= g->addresses[k].address);
		uint64_t at = own ? f->addresses[i].address : g->addresses[k].address;

		all[n] = own ? f->addresses[i++]
			     : (struct annotated_address){f->addresses[0].mapping, at, 0, 0};
		if (k < g->naddresses && g->addresses[k].address == at) {
			subtract(&all[n].flat, g->addresses[k].flat);
			subtract(&all[n].cum, g->addresses[k++].cum);
		}
		n++;
	}
	free(f->addresses);
	f->addresses = all;
	f->naddresses = n;
	return 0;
}

static int subtract_function(struct annotated_function *f, const struct annotated_function *g)
{
	int r = subtract_lines(f, g);

	subtract(&f->flat, g->flat);
	subtract(&f->cum, g->cum);
	return r ? r : subtract_addresses(f, g);
}

int annotation_subtract(struct annotation *a, const struct annotation *base)
{
	struct annotated_function *all = realloc(a->functions,
						 ((size_t)a->n + base->n + 1) * sizeof(*all));
	uint32_t own = a->n;
	int r = all ? 0 : -ENOMEM;

	if (all)
		a->functions = all;
	for (uint32_t i = 0; !r && i < base->n; i++) {
		const struct annotated_function *g = &base->functions[i];
		struct annotation profile = {.functions = a->functions, .n = own};
		struct annotated_function *f = counterpart(&profile, g);

		if (!f) {
			f = &a->functions[a->n++];
			*f = (struct annotated_function){.name = g->name,
							 .file = g->file,
							 .library = g->library,
							 .build_id = g->build_id,
							 .start_line = g->start_line};
		}
		r = subtract_function(f, g);
	}
	a->total = base->total;
	return r;
}
