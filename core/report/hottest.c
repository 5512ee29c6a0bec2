/* SPDX-License-Identifier: Apache-2.0 */
/* The hottest functions, at the end of `fusee record`. The reason of a truncated stack is not shown
 * as a function. Lost samples are a row, so that the rows are shares of the CPU time used. */
#include "report/report.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "report/internal/scale.h"
#include "report/model.h"

#define ROWS 10
#define GAPS_WIDTH 23 /* of percentages and gaps around names */
#define LIBRARY_MAX 16
#define NAME_MIN 20

struct hottest {
	const struct render_model *m;
	uint32_t *order;
	uint32_t n;
	struct render_scale scale;
};

static int compare(const void *a, const void *b, void *model)
{
	const struct render_model *m = model;
	const struct render_function *x = &m->functions[*(const uint32_t *)a],
				     *y = &m->functions[*(const uint32_t *)b];

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return str_order(x->shown, y->shown);
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Beside the name: the library, or file and line of a function that no library holds. */
static struct fusee_str place_of(const struct render_function *f, char text[RENDER_PLACE])
{
	return f->library.len ? str_base_name(f->library) : render_place(f, text);
}

/* Columns of names: as many as the longest name needs, if libraries have room beside it. */
static uint32_t name_width(const struct hottest *h, uint32_t width)
{
	uint32_t names = 0, libraries = 0, room;
	uint32_t numbers = GAPS_WIDTH + 2 * (uint32_t)h->scale.width;

	for (uint32_t i = 0; i < h->n; i++) {
		const struct render_function *f = &h->m->functions[h->order[i]];
		char text[RENDER_PLACE];

		names = larger(names, render_columns(render_name_beside_place(h->m, f)));
		libraries = larger(libraries, render_columns(place_of(f, text)));
	}
	if (!width)
		return names;
	libraries = libraries < LIBRARY_MAX ? libraries : LIBRARY_MAX;
	room = width > numbers + libraries + NAME_MIN ? width - numbers - libraries : NAME_MIN;
	return names < room ? names : room;
}

static void put_row(const struct hottest *h, const struct render_function *f, uint32_t width,
		    bool narrow, struct buf *out)
{
	char text[RENDER_PLACE];
	struct fusee_str name, place = place_of(f, text);
	size_t at;

	buf_str(out, "  ");
	render_scale_put(&h->scale, f->self, out);
	render_scale_put(&h->scale, f->total, out);
	buf_str(out, "   ");
	at = out->len;
	render_name(out, render_name_beside_place(h->m, f), width);
	name = (struct fusee_str){out->p + at, out->len - at};
	if (place.len && !out->error) {
		buf_printf(out, "%*s  ", (int)(width - render_columns(name)), "");
		render_name(out, place, narrow ? LIBRARY_MAX : 0);
	}
	buf_str(out, "\n");
}

static int choose(struct hottest *h, const struct render_options *o)
{
	const struct render_model *m = h->m;
	uint32_t rows = o->rows ? o->rows : ROWS, functions = 0;

	h->order = calloc(m->nfunctions + 1, sizeof(*h->order));
	if (!h->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->nfunctions; i++)
		if (m->functions[i].self ||
		    (m->functions[i].code != RENDER_REASON && m->functions[i].total))
			h->order[functions++] = i;
	qsort_r(h->order, functions, sizeof(*h->order), compare, (void *)(uintptr_t)m);
	for (h->n = 0; h->n < rows && h->n < functions && m->functions[h->order[h->n]].self > 0;)
		h->n++;
	return 0;
}

int render_hottest(const struct fusee_profile *p, const struct render_options *o, struct buf *out)
{
	struct render_model m;
	struct hottest h = {.m = &m};
	uint32_t width;
	int ret = render_model_make(&m, p, NULL, o, out);

	if (ret)
		return ret;
	render_scale_choose(&h.scale, &m);
	ret = choose(&h, o);
	width = ret ? 0 : name_width(&h, o->width);
	if (h.n)
		buf_printf(out, "%*s%*s\n", h.scale.width + 2, "self", h.scale.width + 8, "total");
	for (uint32_t i = 0; !ret && i < h.n; i++)
		put_row(&h, &m.functions[h.order[i]], width, o->width, out);
	free(h.order);
	render_model_free(&m);
	return ret ? ret : out->error;
}
