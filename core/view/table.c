/* SPDX-License-Identifier: Apache-2.0 */
#include "view/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "console/grid.h"
#include "report/model.h"

#define SECOND 1000000000ull
#define TIME_SIZE 40
#define BAR_MAX 40u
#define NUMBERS_WIDTH 36u /* of a row of the series, with its gaps */
#define MOST 4            /* values of a label that are shown */

static void put_time(char to[TIME_SIZE], uint64_t ns)
{
	time_t t = (time_t)(ns / SECOND);
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(to, TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm))
		snprintf(to, TIME_SIZE, "%" PRIu64, (uint64_t)t);
}

/* The value of a key in a group. */
static const char *value_of(const struct sums_group *g, uint32_t key)
{
	const char *p = g->values.p;

	while (key--)
		p += strlen(p) + 1;
	return p;
}

/* "service_name: web, pod: a"; a label that the samples lack is "-". */
static void put_group(const struct sums *s, const struct sums_group *g, struct buf *out)
{
	for (uint32_t i = 0; i < s->nkeys; i++) {
		const char *value = value_of(g, i);

		buf_str(out, i ? ", " : "");
		render_plain(out, s->keys[i]);
		buf_str(out, ": ");
		render_plain(out, fusee_text(*value ? value : "-"));
	}
}

/* ---- the series ---- */

/* An eighth of a column is the smallest step. */
static void put_bar(int64_t value, int64_t largest, uint32_t columns, struct buf *out)
{
	static const char *const eighths[] = {"",
					      "\xe2\x96\x8f",
					      "\xe2\x96\x8e",
					      "\xe2\x96\x8d",
					      "\xe2\x96\x8c",
					      "\xe2\x96\x8b",
					      "\xe2\x96\x8a",
					      "\xe2\x96\x89"};
	double share = value > 0 && largest > 0 ? (double)value / (double)largest : 0;
	uint32_t n = (uint32_t)(share * columns * 8 + 0.5);

	for (uint32_t i = 0; i < n / 8; i++)
		buf_str(out, "\xe2\x96\x88");
	buf_str(out, eighths[n % 8]);
	buf_str(out, "\n");
}

/* Prints the points of a group, from *at on: points are sorted by group. */
static void put_points(const struct sums *s, uint32_t group, uint32_t *at, uint64_t step_ns,
		       int64_t largest, uint32_t columns, struct buf *out)
{
	uint64_t expected = 0;

	for (; *at < s->npoints && s->points[*at].group == group; ++*at) {
		const struct sums_point *p = &s->points[*at];
		char time[TIME_SIZE], value[RENDER_NUMBER];

		if (expected && p->start_ns > expected)
			buf_str(out, "  ..\n");
		expected = p->start_ns + step_ns;
		put_time(time, p->start_ns);
		render_value(value, p->value, fusee_text(s->unit), "auto");
		buf_printf(out, "  %s %10s  ", time, value);
		put_bar(p->value, largest, columns, out);
	}
}

int query_print_series(const struct sums *s, uint64_t step_ns, uint32_t width, struct buf *out)
{
	uint32_t columns = !width                            ? BAR_MAX
			   : width < NUMBERS_WIDTH + 8       ? 8
			   : width - NUMBERS_WIDTH < BAR_MAX ? width - NUMBERS_WIDTH
							     : BAR_MAX;
	char value[RENDER_NUMBER], step[RENDER_NUMBER];
	int64_t largest = 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i < s->npoints; i++)
		largest = s->points[i].value > largest ? s->points[i].value : largest;
	render_value(step, (int64_t)step_ns, fusee_text("nanoseconds"), "auto");
	buf_printf(out, "%s, by %s\n", s->type, step);
	for (uint32_t i = 0; i < s->ngroups; i++) {
		render_value(value, s->groups[i].total, fusee_text(s->unit), "auto");
		put_group(s, &s->groups[i], out);
		buf_printf(out, "%s%s\n", s->nkeys ? "  " : "", value);
		put_points(s, i, &at, step_ns, largest, columns, out);
	}
	return out->error;
}

/* ---- CSV ---- */

static void put_field(struct fusee_str s, struct buf *out)
{
	bool quote = false;

	for (uint64_t i = 0; i < s.len; i++)
		quote |= strchr(",\"\r\n", s.p[i]) != NULL;
	if (!quote) {
		buf_add(out, s.p, s.len);
		return;
	}
	buf_str(out, "\"");
	for (uint64_t i = 0; i < s.len; i++)
		buf_add(out, s.p[i] == '"' ? "\"\"" : &s.p[i], s.p[i] == '"' ? 2 : 1);
	buf_str(out, "\"");
}

int query_print_csv(const struct sums *s, struct buf *out)
{
	char time[TIME_SIZE], name[160];

	buf_str(out, "time");
	for (uint32_t i = 0; i < s->nkeys; i++) {
		buf_str(out, ",");
		put_field(s->keys[i], out);
	}
	snprintf(name, sizeof(name), "%s_%s", s->type, s->unit);
	buf_str(out, ",");
	put_field(fusee_text(name), out);
	buf_str(out, "\r\n");
	for (uint32_t i = 0; i < s->npoints; i++) {
		const struct sums_point *p = &s->points[i];

		put_time(time, p->start_ns);
		buf_str(out, time);
		for (uint32_t k = 0; k < s->nkeys; k++) {
			buf_str(out, ",");
			put_field(fusee_text(value_of(&s->groups[p->group], k)), out);
		}
		buf_printf(out, ",%" PRId64 "\r\n", p->value);
	}
	return out->error;
}

/* ---- totals and labels ---- */

int query_print_totals(const struct sums *s, uint32_t width, struct buf *out)
{
	struct grid g = {.columns = {{s->type, true, 0}, {"SHARE", true, 0}, {"", false, 0}},
			 .ncolumns = 3};
	struct buf name = {0};

	for (uint32_t i = 0; i < s->ngroups; i++) {
		char value[RENDER_NUMBER], share[RENDER_NUMBER];

		render_value(value, s->groups[i].total, fusee_text(s->unit), "auto");
		render_percent(share, s->groups[i].total, s->total);
		buf_reset(&name);
		put_group(s, &s->groups[i], &name);
		buf_add(&name, "", 1);
		grid_cell(&g, "%s", value);
		grid_cell(&g, "%s", share);
		grid_cell(&g, "%s", name.error ? "" : name.p);
	}
	grid_print(&g, width, out);
	grid_fini(&g);
	if (name.error)
		out->error = name.error;
	buf_fini(&name);
	return out->error;
}

struct label {
	struct fusee_str key;
	int64_t sum;
	uint32_t values, nmost;
	uint32_t most[MOST]; /* numbers of values, the largest first */
};

/* Puts a value where its sum belongs among the largest. */
static void offer(const struct label_list *l, struct label *to, uint32_t value)
{
	int64_t sum = tally_sum(&l->values, value);
	uint32_t at = to->nmost;

	to->values++;
	while (at && tally_sum(&l->values, to->most[at - 1]) < sum)
		at--;
	if (at == MOST)
		return;
	to->nmost += to->nmost < MOST;
	for (uint32_t i = to->nmost - 1; i > at; i--)
		to->most[i] = to->most[i - 1];
	to->most[at] = value;
}

static int by_key(const void *a, const void *b)
{
	const struct fusee_str *x = &((const struct label *)a)->key,
			       *y = &((const struct label *)b)->key;
	int order = memcmp(x->p, y->p, x->len < y->len ? x->len : y->len);

	return order ? order : (x->len > y->len) - (x->len < y->len);
}

static struct label *collect(const struct label_list *l)
{
	struct label *all = calloc(tally_size(&l->keys) + 1, sizeof(*all));

	for (uint32_t i = 0; all && i < tally_size(&l->keys); i++)
		all[i] = (struct label){.key = tally_key(&l->keys, i),
					.sum = tally_sum(&l->keys, i)};
	for (uint32_t i = 0; all && i < tally_size(&l->values); i++) {
		struct fusee_str key = tally_key(&l->values, i);
		uint32_t id = dict_find(&l->keys.keys, key.p, strnlen(key.p, key.len));

		if (id != DICT_NONE && id)
			offer(l, &all[id - 1], i);
	}
	if (all)
		qsort(all, tally_size(&l->keys), sizeof(*all), by_key);
	return all;
}

/* "web 61.2%, db 20.0%" */
static void put_most(const struct label_list *l, const struct label *label, struct buf *to)
{
	buf_reset(to);
	for (uint32_t i = 0; i < label->nmost; i++) {
		struct fusee_str s = tally_key(&l->values, label->most[i]);
		char share[RENDER_NUMBER];

		s.p += label->key.len + 1;
		s.len -= label->key.len + 1;
		render_percent(share, tally_sum(&l->values, label->most[i]), l->total);
		buf_str(to, i ? ", " : "");
		render_plain(to, s);
		buf_printf(to, " %s", share + strspn(share, " "));
	}
	buf_str(to, label->values > MOST ? ", .." : "");
	buf_add(to, "", 1);
}

int query_print_labels(const struct label_list *l, uint32_t width, struct buf *out)
{
	struct grid g = {.columns = {{"LABEL", false, 0}, {"VALUES", true, 0}, {"MOST", false, 0}},
			 .ncolumns = 3};
	struct label *all = collect(l);
	struct buf most = {0};

	for (uint32_t i = 0; all && i < tally_size(&l->keys); i++) {
		put_most(l, &all[i], &most);
		grid_cell(&g, "%.*s", (int)all[i].key.len, all[i].key.p);
		grid_cell(&g, "%u", all[i].values);
		grid_cell(&g, "%s", most.error ? "" : most.p);
	}
	grid_print(&g, width, out);
	grid_fini(&g);
	if (!all || most.error)
		out->error = -ENOMEM;
	buf_fini(&most);
	free(all);
	return out->error;
}
