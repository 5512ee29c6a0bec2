/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/internal/profiles.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile/str.h"
#include "ui/internal/windows.h"

/* ---- reading ---- */

struct reading {
	const atomic_bool *ending; /* the loop would see it only after the reading */
	int (*window)(void *arg, const struct fusee_profile *, const char *name);
	void *arg;
};

static int on_window(void *arg, const struct fusee_profile *p, const char *name)
{
	const struct reading *r = arg;

	return atomic_load(r->ending) ? -ECANCELED : r->window(r->arg, p, name);
}

static void on_broken(void *arg, const char *name, const char *why)
{
	(void)arg;
	(void)name;
	(void)why;
}

static void on_progress(void *arg, uint64_t done, uint64_t all)
{
	(void)arg;
	(void)done;
	(void)all;
}

int ui_profiles_read(struct ui_profiles *u, const struct store_request *request,
		     int (*window)(void *arg, const struct fusee_profile *, const char *name),
		     void *arg, struct store_counts *counts, struct buf *error)
{
	struct reading reading = {&u->ending, window, arg};
	const struct store_reader reader = {on_window, on_broken, on_progress, &reading};
	const char *failure;
	int r = store_read(u->store, request, &reader, counts);

	failure = store_failure(u->store);
	if (r < 0 && !error->len)
		buf_printf(error, "cannot read the profiles: %s", failure ? failure : strerror(-r));
	return r < 0 ? r : 0;
}

int ui_type_selector(struct selector **ret, const char *type)
{
	struct buf text = {0};
	char *why = NULL;
	int r = -EINVAL;

	buf_printf(&text, "%s{}", type ? type : "");
	if (!buf_add(&text, "", 1))
		r = selector_parse(ret, text.p, &why);
	free(why);
	buf_fini(&text);
	/* a type that the selector's grammar does not allow cannot be selected: take all types */
	return r == -EINVAL ? selector_parse(ret, "{}", &why) : r;
}

/* ---- sums ---- */

struct adding {
	struct ui_sum *s;
	struct buf *error;
};

void ui_default_type(const struct fusee_profile *p, struct buf *to)
{
	uint32_t i = p->default_type < p->types.n ? p->default_type : p->types.n - 1;
	struct fusee_str t = {0};

	if (p->types.n)
		t = str_at(p, FUSEE_AT(struct fusee_value_type, p->types, i)->type);
	buf_add(to, t.p, t.len);
	buf_add(to, "", 1);
}

static void note_types(struct ui_sum *s, const struct fusee_profile *p)
{
	for (uint32_t i = 0; i < p->types.n && s->ntypes < UI_MAX_TYPES; i++) {
		struct fusee_str t = str_at(p,
					    FUSEE_AT(struct fusee_value_type, p->types, i)->type);
		bool known = false;

		for (size_t at = 0; !known && at < s->types.len; at += strlen(s->types.p + at) + 1)
			known = fusee_text_is(t, s->types.p + at);
		if (known || !t.len || memchr(t.p, '\0', t.len))
			continue;
		buf_add(&s->types, t.p, t.len);
		buf_add(&s->types, "", 1);
		s->ntypes++;
	}
}

/* Adds a window if it has the types of the first. Lists the types of all windows. */
static int add_window(void *arg, const struct fusee_profile *p, const char *name)
{
	struct adding *a = arg;
	int r;

	note_types(a->s, p);
	if (!a->s->first.len && p->types.n)
		ui_default_type(p, &a->s->first);
	if (a->s->mixed)
		return 0;
	r = merged_add(&a->s->merged, p, name, a->error);
	if (r == -EINVAL && !selector_type(a->s->selector)) {
		a->s->mixed = true;
		buf_reset(a->error);
		return 0;
	}
	if (r == -EINVAL) {
		a->s->others++;
		buf_reset(a->error);
		return 0;
	}
	if (r == -EFBIG) {
		buf_reset(a->error);
		buf_printf(a->error,
			   "these profiles take more than %llu MiB together: select a "
			   "shorter range of time",
			   (unsigned long long)(UI_MAX_SUM >> 20));
	}
	return r;
}

static int add_files(struct ui_profiles *u, const struct ui_side *side, struct adding *a)
{
	const struct fusee_profile *p;
	int r = 0;

	for (uint32_t i = 0; !r && i < side->n; i++) {
		r = ui_files_profile(&u->files, side->files[i], &p, a->error);
		if (!r) {
			a->s->counts.read++;
			r = add_window(a, p, u->files.files[side->files[i]].name);
		}
	}
	return r;
}

static void sum_fini(struct ui_sum *s)
{
	merged_fini(&s->merged);
	selector_free(s->selector);
	buf_fini(&s->types);
	buf_fini(&s->first);
	free(s->key);
	*s = (struct ui_sum){0};
}

/* A range of the times of one profile. */
static bool is_part(const struct ui_side *side)
{
	return side->n == 1 && (side->range.from_ns || side->range.to_ns != UINT64_MAX);
}

static int sum_make(struct ui_profiles *u, struct ui_sum *s, const struct ui_side *side,
		    const char *type, struct buf *error)
{
	struct adding a = {s, error};
	struct store_request request = {.from_ns = side->range.from_ns, .to_ns = side->range.to_ns};
	int r = ui_type_selector(&s->selector, type);

	s->merged = (struct merged){.max_bytes = UI_MAX_SUM};
	s->merged.filter.selector = request.selector = s->selector;
	if (is_part(side)) {
		s->merged.choice.from_ns = side->range.from_ns;
		s->merged.choice.to_ns = side->range.to_ns;
	}
	if (!r && side->all)
		r = ui_profiles_read(u, &request, add_window, &a, &s->counts, error);
	else if (!r)
		r = add_files(u, side, &a);
	if (!r && !s->mixed)
		r = merged_finish(&s->merged, &s->profile);
	if (s->mixed) /* the caller reads the windows again, for one type */
		merged_fini(&s->merged);
	if (s->mixed)
		s->merged = (struct merged){0};
	return r;
}

/* Appends what the sum is made of: of files also time and size, as they may change. Windows of a
 * store do not change. */
static int put_key(struct buf *key, const struct ui_profiles *u, const struct ui_side *side,
		   const char *type)
{
	if (side->all || is_part(side))
		buf_printf(key, "%s %" PRIu64 " %" PRIu64 " ", side->all ? "all" : "part",
			   side->range.from_ns, side->range.to_ns);
	for (uint32_t i = 0; i < side->n; i++) {
		const struct ui_file *f = &u->files.files[side->files[i]];

		buf_printf(key, "%u %" PRId64 " %" PRId64 ",", side->files[i], f->time_ns,
			   f->bytes);
	}
	if (type)
		buf_printf(key, " of %s", type);
	return buf_add(key, "", 1);
}

static struct ui_sum *place_of(struct ui_profiles *u, const char *key)
{
	struct ui_sum *oldest = &u->sums[0];

	for (uint32_t i = 0; i < UI_MAX_SUMS; i++) {
		struct ui_sum *s = &u->sums[i];

		if (s->key && !strcmp(s->key, key))
			return s;
		if (s->used < oldest->used)
			oldest = s;
	}
	sum_fini(oldest);
	u->changes++;
	return oldest;
}

static int sum_get(struct ui_profiles *u, const struct ui_side *side, const char *type,
		   struct ui_sum **ret, struct buf *error)
{
	struct buf key = {0};
	struct ui_sum *s;
	int r = put_key(&key, u, side, type);

	if (r) {
		buf_fini(&key);
		return r;
	}
	s = place_of(u, key.p);
	if (s->key) {
		buf_fini(&key);
	} else {
		s->key = key.p;
		r = sum_make(u, s, side, type, error);
	}
	s->used = ++u->uses;
	if (r)
		sum_fini(s);
	else
		*ret = s;
	return r;
}

static int get_sum(struct ui_profiles *u, const struct ui_side *side, const char *type,
		   struct ui_sum **ret, struct buf *error)
{
	int r = sum_get(u, side, NULL, ret, error);

	if (!r && (*ret)->mixed) {
		char *first = strdup(type && *type ? type : (*ret)->first.p);

		r = first ? sum_get(u, side, first, ret, error) : -ENOMEM;
		free(first);
	}
	if (r || (*ret)->profile)
		return r;
	buf_printf(error,
		   is_part(side) ? "the selected profile has no sample at these times%s"
		   : side->all   ? "no profile that begins in this range of time has a sample%s"
				 : "the selected profiles have no sample%s",
		   type ? " of this type" : "");
	return -EINVAL;
}

int ui_profiles_get(struct ui_profiles *u, const struct ui_side *side, const char *type,
		    const struct fusee_profile **ret, const struct ui_sum **sum, struct buf *error)
{
	struct ui_sum *s;
	int r;

	*sum = NULL;
	for (uint32_t i = 0; i < side->n; i++)
		if (side->files[i] >= u->files.n)
			return -ENOENT;
	if (ui_side_is_empty(side))
		return -ENOENT;
	if (side->n == 1 && !is_part(side))
		return ui_files_profile(&u->files, side->files[0], ret, error);
	r = side->n ? ui_files_look(&u->files) : 0;
	if (!r)
		r = get_sum(u, side, type, &s, error);
	if (r)
		return r;
	*ret = s->profile;
	*sum = s;
	return 0;
}

/* ---- all ---- */

int ui_profiles_open(struct ui_profiles *u, struct store *store, const char *place)
{
	u->store = store;
	u->place = place;
	return store ? 0 : ui_windows_open(&u->store, &u->files);
}

void ui_profiles_close(struct ui_profiles *u)
{
	for (uint32_t i = 0; i < UI_MAX_SUMS; i++)
		sum_fini(&u->sums[i]);
	store_close(u->store);
	ui_files_close(&u->files);
}
