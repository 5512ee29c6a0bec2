/* SPDX-License-Identifier: Apache-2.0 */
/* When each thread ran, of a profile whose samples have times. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/dict.h"
#include "base/json.h"
#include "base/saturate.h"
#include "base/str.h"
#include "profile/str.h"
#include "report/labels.h"
#include "ui/internal/function.h"
#include "ui/internal/models.h"
#include "ui/internal/views.h"

#define MAX_TRACKS 64u /* of one answer */
#define STEPS 400u
#define MS 1000000ull

struct track {
	uint32_t id; /* of its key */
	int64_t total;
};

/* The key of a thread: these two, and the texts of its labels, each with its NUL. */
struct ids {
	uint32_t pid, tid;
};

struct tracks {
	const struct fusee_profile *p;
	struct render_labels labels; /* conditions of the selection */
	uint32_t type;
	struct ui_model model; /* of the selected function */
	struct ui_function function;
	struct ui_function_marks marks;
	bool has_model;
	struct dict keys;
	struct buf of;     /* uint32_t: key of each sample; 0: it is not selected, or has no time */
	struct buf totals; /* struct track, by key */
	const struct ui_listing *listing;
	uint64_t first_ns, last_ns; /* of all times */
	int64_t untimed;            /* of selected samples without a time */
};

/* ---- what is selected ---- */

static int find_function(struct tracks *t, const struct ui_view *v, struct buf *error)
{
	int r = ui_function_find(&t->function, v, &t->model, error);

	t->has_model = !r;
	t->marks.f = &t->function;
	return r ? r : ui_function_begin(&t->marks, t->p);
}

static int prepare(struct tracks *t, const struct ui_view *v, struct buf *error)
{
	int r = dict_init(&t->keys);

	t->type = t->p->default_type < t->p->types.n ? t->p->default_type : 0;
	if (v->o.type && !render_find_type(t->p, fusee_text(v->o.type), NULL, &t->type)) {
		buf_printf(error, "the profile has no values of type '%s'", v->o.type);
		return -EINVAL;
	}
	if (!r)
		r = render_labels_make(&t->labels, t->p, NULL, &v->o, error);
	if (!r && v->o.function)
		r = find_function(t, v, error);
	return r;
}

static bool takes(const struct tracks *t, const struct fusee_sample *s)
{
	return render_labels_keep(&t->labels, t->p, s) &&
	       (!t->has_model || ui_function_has(&t->marks, t->p, s->stack));
}

/* ---- threads ---- */

/* The id of the sample's thread. */
static uint32_t key_of(struct tracks *t, const struct fusee_sample *s, struct buf *scratch)
{
	const struct ids ids = {s->pid, s->tid};

	buf_reset(scratch);
	buf_add(scratch, &ids, sizeof(ids));
	render_label(t->p, s, fusee_text("process"), scratch);
	buf_add(scratch, "", 1);
	render_label(t->p, s, fusee_text("thread"), scratch);
	return scratch->error ? DICT_NONE : dict_add(&t->keys, scratch->p, scratch->len);
}

static int64_t value_of(const struct tracks *t, uint32_t sample)
{
	return *FUSEE_AT(int64_t, t->p->values, (uint64_t)sample * t->p->types.n + t->type);
}

static int add_total(struct tracks *t, uint32_t key, int64_t value)
{
	while (t->totals.len / sizeof(struct track) <= key) {
		struct track *more = buf_grow(&t->totals, sizeof(*more));

		if (!more)
			return -ENOMEM;
		*more = (struct track){.id = (uint32_t)(t->totals.len / sizeof(*more)) - 1};
	}
	saturate_add(&((struct track *)(void *)t->totals.p)[key].total, value);
	return 0;
}

static void widen(struct tracks *t, const struct fusee_sample *s)
{
	uint64_t first = *FUSEE_AT(uint64_t, t->p->times, s->first_time),
		 last = *FUSEE_AT(uint64_t, t->p->times, s->first_time + s->ntimes - 1);

	t->first_ns = first < t->first_ns ? first : t->first_ns;
	t->last_ns = last > t->last_ns ? last : t->last_ns;
}

static int find_threads(struct tracks *t)
{
	struct buf scratch = {0};
	int r = 0;

	t->first_ns = UINT64_MAX;
	for (uint32_t i = 0; !r && i < t->p->samples.n; i++) {
		const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, t->p->samples, i);
		bool taken = takes(t, s);
		uint32_t key = s->ntimes && taken ? key_of(t, s, &scratch) : 0;

		if (s->ntimes)
			widen(t, s);
		else if (taken)
			saturate_add(&t->untimed, value_of(t, i));
		if (key)
			r = key == DICT_NONE ? -ENOMEM : add_total(t, key, value_of(t, i));
		buf_add(&t->of, &key, sizeof(key));
	}
	buf_fini(&scratch);
	return r ? r : t->of.error;
}

static int largest_first(const void *a, const void *b)
{
	const struct track *x = a, *y = b;

	return x->total != y->total ? (x->total < y->total) - (x->total > y->total)
				    : (x->id > y->id) - (x->id < y->id);
}

/* Whether the thread's names or ids contain the text that is searched, in any case of letters. */
static bool is_listed(const struct tracks *t, const struct track *track, struct buf *scratch)
{
	const struct dict_entry *e = &t->keys.entries[track->id];
	const char *names = (const char *)e->key + sizeof(struct ids);
	struct ids ids;

	if (!t->listing->text)
		return true;
	memcpy(&ids, e->key, sizeof(ids));
	buf_reset(scratch);
	buf_printf(scratch, "%u %u %s ", ids.pid, ids.tid, names);
	names += strlen(names) + 1;
	buf_add(scratch, names, (size_t)((const char *)e->key + e->len - names));
	buf_add(scratch, "", 1);
	return !scratch->error && strcasestr(scratch->p, t->listing->text);
}

/* Sorts the threads that are searched, and moves them to the front; returns how many they are. */
static uint32_t list_threads(const struct tracks *t, struct track *all, uint32_t n)
{
	struct buf scratch = {0};
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++)
		if (is_listed(t, &all[i], &scratch))
			all[kept++] = all[i];
	buf_fini(&scratch);
	if (kept)
		qsort(all, kept, sizeof(*all), largest_first);
	return kept;
}

/* ---- steps ---- */

static uint64_t step_of(const struct tracks *t)
{
	return ((t->last_ns / MS - t->first_ns / MS) / STEPS + 1) * MS;
}

/* Adds the part of the sample's value that belongs to each of its times; together they are it. */
static void add_times(const struct tracks *t, uint32_t sample, int64_t values[STEPS + 1])
{
	const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, t->p->samples, sample);
	uint64_t step = step_of(t), start = t->first_ns / MS * MS;
	__int128 value = value_of(t, sample), before = 0;

	for (uint32_t i = 0; i < s->ntimes; i++) {
		uint64_t at = *FUSEE_AT(uint64_t, t->p->times, s->first_time + i);
		__int128 upto = value * (i + 1) / s->ntimes;

		saturate_add(&values[(at - start) / step], (int64_t)(upto - before));
		before = upto;
	}
}

/* The values of the n largest tracks, one after the other. NULL: no memory. */
static int64_t *find_values(const struct tracks *t, const struct track *largest, uint32_t n)
{
	const uint32_t *of = (const uint32_t *)(const void *)t->of.p;
	int64_t *values = calloc(n * (STEPS + 1ull) + 1, sizeof(*values));
	uint32_t *row = calloc(t->keys.n + 1ull, sizeof(*row)); /* and 1; 0: not listed */

	for (uint32_t i = 0; row && i < n; i++)
		row[largest[i].id] = i + 1;
	for (uint32_t i = 0; values && row && i < t->p->samples.n; i++)
		if (of[i] && row[of[i]])
			add_times(t, i, values + (row[of[i]] - 1) * (STEPS + 1ull));
	if (!row) {
		free(values);
		values = NULL;
	}
	free(row);
	return values;
}

/* ---- JSON ---- */

static void put_track(struct json *j, const struct tracks *t, const struct track *track,
		      const int64_t *values)
{
	const struct dict_entry *e = &t->keys.entries[track->id];
	const char *process = (const char *)e->key + sizeof(struct ids),
		   *thread = process + strlen(process) + 1;
	struct ids ids;

	memcpy(&ids, e->key, sizeof(ids));
	json_list(j, NULL);
	json_text(j, NULL, process);
	json_str(j, NULL,
		 (struct fusee_str){thread, (uint64_t)((const char *)e->key + e->len - thread)});
	json_uint(j, NULL, ids.pid);
	json_uint(j, NULL, ids.tid);
	json_int(j, NULL, track->total);
	json_list(j, NULL);
	for (uint32_t i = 0; i <= STEPS; i++) {
		if (!values[i])
			continue;
		json_list(j, NULL);
		json_uint(j, NULL, i);
		json_int(j, NULL, values[i]);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static int put_tracks(struct json *j, struct tracks *t)
{
	const struct fusee_value_type *type = FUSEE_AT(struct fusee_value_type, t->p->types,
						       t->type);
	struct track *all = (struct track *)(void *)t->totals.p;
	uint32_t n = t->keys.n - 1, listed;
	bool has = t->first_ns != UINT64_MAX;
	int64_t *values;

	if (n) /* element 0 is that of no key */
		n = list_threads(t, ++all, n);
	if (t->listing->skip < n)
		all += t->listing->skip;
	n -= t->listing->skip < n ? t->listing->skip : n;
	listed = n < MAX_TRACKS ? n : MAX_TRACKS;
	values = find_values(t, all, listed);
	if (!values)
		return -ENOMEM;
	json_open(j, NULL);
	json_str(j, "type", str_at(t->p, type->type));
	json_str(j, "unit", str_at(t->p, type->unit));
	json_int(j, "untimed", t->untimed);
	json_uint(j, "start", has ? t->first_ns / MS : 0);
	json_uint(j, "step", has ? step_of(t) / MS : 0);
	json_uint(j, "steps", has ? (t->last_ns - t->first_ns / MS * MS) / step_of(t) + 1 : 0);
	json_list(j, "tracks");
	for (uint32_t i = 0; i < listed; i++)
		put_track(j, t, &all[i], values + i * (STEPS + 1ull));
	json_end(j);
	json_uint(j, "others", n - listed);
	json_end(j);
	free(values);
	return 0;
}

int ui_tracks(const struct ui_view *v, struct buf *out)
{
	struct tracks t = {.p = v->p, .listing = &v->threads};
	struct json j = {.out = out};
	int r = t.p->types.n ? prepare(&t, v, out) : -EINVAL;

	if (!r)
		r = find_threads(&t);
	if (!r)
		r = put_tracks(&j, &t);
	else if (r == -EINVAL && !out->len)
		buf_str(out, "the profile has no values");
	render_labels_free(&t.labels);
	if (t.has_model)
		ui_model_close(&t.model);
	ui_function_end(&t.marks);
	dict_fini(&t.keys);
	buf_fini(&t.of);
	buf_fini(&t.totals);
	return r ? r : out->error;
}
