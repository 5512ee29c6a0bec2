/* SPDX-License-Identifier: Apache-2.0 */
#include "report/labels.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "report/model.h"

#define LISTED_KEYS 16u /* keys that an error lists */

/* ---- the labels of a sample ---- */

static void put_value(const struct fusee_label *l, struct buf *out)
{
	if (l->str.p) {
		buf_add(out, l->str.p, l->str.len);
		return;
	}
	buf_printf(out, "%" PRId64, l->num);
	if (l->unit.len) {
		buf_str(out, " ");
		buf_add(out, l->unit.p, l->unit.len);
	}
}

static bool put_number(struct fusee_str key, const char *is, uint32_t n, struct buf *out)
{
	if (!n || !str_equal(key, fusee_text(is)))
		return false;
	buf_printf(out, "%u", n);
	return true;
}

bool render_label(const struct fusee_profile *p, const struct fusee_sample *s, struct fusee_str key,
		  struct buf *out)
{
	for (uint32_t i = 0; i < s->nlabels; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->labels,
						       s->first_label + i);

		if (str_equal(l->key, key)) {
			put_value(l, out);
			return true;
		}
	}
	if (put_number(key, "pid", s->pid, out) || put_number(key, "tid", s->tid, out))
		return true;
	for (uint32_t i = 0; i < p->resource.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->resource, i);

		if (str_equal(l->key, key)) {
			put_value(l, out);
			return true;
		}
	}
	return false;
}

void render_labels_json(const struct fusee_profile *p, const struct fusee_sample *s,
			struct buf *out)
{
	struct json j = {.out = out};

	json_open(&j, NULL);
	for (uint32_t i = 0; i < s->nlabels; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->labels,
						       s->first_label + i);

		json_key(&j, l->key);
		if (l->str.p)
			json_str(&j, NULL, l->str);
		else
			json_int(&j, NULL, l->num);
	}
	if (s->pid)
		json_uint(&j, "pid", s->pid);
	if (s->tid)
		json_uint(&j, "tid", s->tid);
	json_end(&j);
}

/* ---- the keys of the samples ---- */

static bool has_key(const struct fusee_profile *p, struct fusee_str key)
{
	struct buf ignored = {0};
	bool found = false;

	for (uint32_t i = 0; p && !found && i < p->samples.n; i++)
		found = render_label(p, FUSEE_AT(struct fusee_sample, p->samples, i), key,
				     &ignored);
	buf_fini(&ignored);
	return found;
}

static void list_key(struct fusee_str *keys, uint32_t *n, struct fusee_str key)
{
	for (uint32_t i = 0; i < *n; i++)
		if (str_equal(keys[i], key))
			return;
	if (*n < LISTED_KEYS)
		keys[(*n)++] = key;
}

static uint32_t list_keys(const struct fusee_profile *p, struct fusee_str keys[LISTED_KEYS])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->labels.n; i++)
		list_key(keys, &n, FUSEE_AT(struct fusee_label, p->labels, i)->key);
	for (uint32_t i = 0; i < p->resource.n; i++)
		list_key(keys, &n, FUSEE_AT(struct fusee_label, p->resource, i)->key);
	for (uint32_t i = 0; i < p->samples.n; i++) {
		const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, i);

		if (s->pid)
			list_key(keys, &n, fusee_text("pid"));
		if (s->tid)
			list_key(keys, &n, fusee_text("tid"));
	}
	return n;
}

/* Rejects a key that no sample has: a mistyped key would silently select nothing. A profile without
 * samples has no keys to check against. */
static int check_key(const struct fusee_profile *p, const struct fusee_profile *base,
		     const char *option, struct fusee_str key, struct buf *error)
{
	struct fusee_str keys[LISTED_KEYS];
	uint32_t n;

	if (has_key(p, key) || has_key(base, key) || !p->samples.n)
		return 0;
	n = list_keys(p, keys);
	buf_printf(error, "%s: no sample has a label '", option);
	render_plain(error, key);
	buf_str(error, n ? "' (there are:" : "': the samples have no labels");
	for (uint32_t i = 0; i < n; i++) {
		buf_str(error, " ");
		render_plain(error, keys[i]);
	}
	buf_str(error, n ? ")" : "");
	return -EINVAL;
}

/* ---- the options ---- */

static int parse_by(struct render_labels *l, const char *by, struct buf *error)
{
	while (*by) {
		size_t n = strcspn(by, ",");

		if (!n || l->nkeys == RENDER_MAX_KEYS) {
			buf_printf(error, "--by: it takes up to %u labels, as in process,thread",
				   RENDER_MAX_KEYS);
			return -EINVAL;
		}
		l->keys[l->nkeys++] = (struct fusee_str){by, n};
		by += n;
		by += *by == ',';
	}
	return 0;
}

static int parse_where(struct render_condition *c, const char *where, struct buf *error)
{
	size_t n = strcspn(where, "=!");
	const char *op = where + n;

	*c = (struct render_condition){.key = {where, n}, .negated = *op == '!'};
	if (!n || (op[0] == '!' && op[1] != '=' && op[1] != '~') || !*op) {
		buf_printf(error,
			   "--where: '%s' is no condition: LABEL=VALUE, LABEL!=VALUE, LABEL=~RE or "
			   "LABEL!~RE",
			   where);
		return -EINVAL;
	}
	c->is_regex = op[1] == '~';
	c->value = fusee_text(op + 1 + (c->is_regex || c->negated));
	return c->is_regex ? render_compile(&c->regex, "--where: ", c->value.p, error) : 0;
}

int render_labels_make(struct render_labels *l, const struct fusee_profile *p,
		       const struct fusee_profile *base, const struct render_options *o,
		       struct buf *error)
{
	int r = 0;

	*l = (struct render_labels){0};
	if (o->by)
		r = parse_by(l, o->by, error);
	for (uint32_t i = 0; !r && i < l->nkeys; i++)
		r = check_key(p, base, "--by", l->keys[i], error);
	for (uint32_t i = 0; !r && o->where[i]; i++) {
		struct render_condition *c = &l->conditions[i];

		r = parse_where(c, o->where[i], error);
		if (r)
			break;
		l->nconditions++;
		r = check_key(p, base, "--where", c->key, error);
	}
	if (r)
		render_labels_free(l);
	return r;
}

void render_labels_free(struct render_labels *l)
{
	for (uint32_t i = 0; i < l->nconditions; i++)
		if (l->conditions[i].is_regex)
			regfree(&l->conditions[i].regex);
	*l = (struct render_labels){0};
}

bool render_labels_keep(const struct render_labels *l, const struct fusee_profile *p,
			const struct fusee_sample *s)
{
	struct buf value = {0};
	bool keep = true;

	for (uint32_t i = 0; keep && i < l->nconditions; i++) {
		const struct render_condition *c = &l->conditions[i];
		bool met;

		buf_reset(&value);
		met = render_label(p, s, c->key, &value);
		if (met)
			met = c->is_regex
				      ? render_matches(&c->regex,
						       (struct fusee_str){value.p, value.len})
				      : str_equal((struct fusee_str){value.p, value.len}, c->value);
		keep = met != c->negated;
	}
	buf_fini(&value);
	return keep;
}
