// SPDX-License-Identifier: Apache-2.0
#include "relabel/relabel.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <openssl/md5.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "base/str.h"
#include "base/utf8.h"
#include "target/labelset.h"

/* A text that a rule made. */
struct text {
	struct text *next;
	char bytes[];
};

/* Labels while rules are applied: first the original labels that were not set since, by name, then
 * those that were set, in the order of their setting. labelmap visits them in this order, as
 * Prometheus does, so that the same label wins if it gives two labels the same name. */
struct work {
	struct fusee_label labels[RELABEL_LABELS];
	uint32_t n, nold, lost;
	struct text *texts;
	struct buf value, name, joined;
	bool dropped;
};

/* ---- labels ---- */

static uint32_t find(const struct work *w, struct fusee_str name)
{
	uint32_t i = 0;

	while (i < w->n && !str_equal(w->labels[i].key, name))
		i++;
	return i;
}

static void delete (struct work *w, struct fusee_str name)
{
	uint32_t i = find(w, name);

	if (i == w->n)
		return;
	w->n--;
	w->nold -= i < w->nold;
	memmove(&w->labels[i], &w->labels[i + 1], (w->n - i) * sizeof(w->labels[0]));
}

/* Copies a text into *ret. 0 or -ENOMEM. */
static int keep_text(struct work *w, struct fusee_str from, struct fusee_str *ret)
{
	struct text *t = malloc(sizeof(*t) + from.len + 1);

	if (!t)
		return -ENOMEM;
	memcpy(t->bytes, from.len ? from.p : "", from.len);
	t->bytes[from.len] = '\0';
	t->next = w->texts;
	w->texts = t;
	*ret = (struct fusee_str){t->bytes, from.len};
	return 0;
}

/* Sets a label to a value, truncated to LABELSET_VALUE_MAX. Its name is borrowed. */
static int set(struct work *w, struct fusee_str name, struct fusee_str value)
{
	struct fusee_label l = {.key = name};
	struct buf clean = {0};
	uint32_t i = find(w, name);
	int err;

	if (!value.len) {
		delete (w, name);
		return 0;
	}
	err = labelset_value(&clean, value);
	if (!err)
		err = keep_text(w, (struct fusee_str){clean.p, clean.len}, &l.str);
	buf_fini(&clean);
	if (err)
		return err;
	if (i < w->nold) {
		delete (w, name);
		i = w->n;
	}
	if (i == RELABEL_LABELS) {
		w->lost++;
		return 0;
	}
	w->labels[i] = l;
	w->n += i == w->n;
	return 0;
}

/* The values of the source labels, joined, in w->joined. */
static int join(struct work *w, const struct relabel_rule *r, struct fusee_str *ret)
{
	buf_reset(&w->joined);
	for (uint32_t i = 0; i < r->nsource; i++) {
		uint32_t at = find(w, fusee_text(r->source_labels[i]));

		buf_str(&w->joined, i ? r->separator : "");
		if (at < w->n)
			buf_add(&w->joined, w->labels[at].str.p, w->labels[at].str.len);
	}
	*ret = (struct fusee_str){w->joined.p ? w->joined.p : "", w->joined.len};
	return w->joined.error;
}

/* ---- actions ---- */

/* The functions below return 0, -ENOMEM, or -EAGAIN: the regex's limit. */

static int replace(struct work *w, const struct relabel_rule *r, struct fusee_str value)
{
	struct fusee_str name, text;
	struct regex_match m;
	int matches = regex_match(r->regex, value, &m), err;

	if (matches <= 0)
		return matches;
	buf_reset(&w->name);
	err = regex_expand(r->regex, r->target_label, value, &m, &w->name);
	name = (struct fusee_str){w->name.p, w->name.len};
	if (err || !labelset_name(name))
		return err;
	buf_reset(&w->value);
	err = regex_expand(r->regex, r->replacement, value, &m, &w->value);
	text = (struct fusee_str){w->value.p, w->value.len};
	if (!err && text.len)
		err = keep_text(w, name, &name);
	return err ? err : set(w, name, text);
}

static int hashmod(struct work *w, const struct relabel_rule *r, struct fusee_str value)
{
	uint8_t digest[16];
	uint64_t n = 0;
	char text[24];

	MD5((const uint8_t *)value.p, value.len, digest);
	for (uint32_t i = 8; i < 16; i++)
		n = n << 8 | digest[i];
	snprintf(text, sizeof(text), "%" PRIu64, n % r->modulus);
	return set(w, fusee_text(r->target_label), fusee_text(text));
}

/* Converts the letters of Unicode, independently of the locale. */
static int change_case(struct work *w, const struct relabel_rule *r, struct fusee_str value)
{
	locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0), before;
	char out[MB_LEN_MAX];

	buf_reset(&w->value);
	if (!utf8)
		return -ENOMEM;
	before = uselocale(utf8);
	for (size_t at = 0, len; at < value.len; at += len) {
		mbstate_t state = {0}, to = {0};
		wchar_t c = 0;

		len = utf8_char(value.p + at, value.len - at);
		len = len ? len : 1;
		if (mbrtowc(&c, value.p + at, len, &state) != len)
			continue;
		c = (wchar_t)(r->action == RELABEL_LOWERCASE ? towlower((wint_t)c)
							     : towupper((wint_t)c));
		buf_add(&w->value, out, wcrtomb(out, c, &to));
	}
	uselocale(before);
	freelocale(utf8);
	if (w->value.error)
		return w->value.error;
	return set(w, fusee_text(r->target_label), (struct fusee_str){w->value.p, w->value.len});
}

static int map_label(struct work *w, const struct relabel_rule *r, const struct fusee_label *l,
		     const struct regex_match *m)
{
	struct fusee_str name;
	int err;

	buf_reset(&w->name);
	err = regex_expand(r->regex, r->replacement, l->key, m, &w->name);
	name = (struct fusee_str){w->name.p, w->name.len};
	if (err || !labelset_name(name))
		return err;
	err = keep_text(w, name, &name);
	return err ? err : set(w, name, l->str);
}

/* labelmap, labelkeep, labeldrop: visits each label that existed before the rule. */
static int each_name(struct work *w, const struct relabel_rule *r)
{
	struct fusee_label before[RELABEL_LABELS];
	uint32_t n = w->n;
	int err = 0;

	memcpy(before, w->labels, n * sizeof(*before));
	for (uint32_t i = 0; !err && i < n; i++) {
		struct regex_match m;
		int matches = regex_match(r->regex, before[i].key, &m);

		if (matches < 0)
			return matches;
		if (r->action == RELABEL_LABELMAP)
			err = matches ? map_label(w, r, &before[i], &m) : 0;
		else if (matches == (r->action == RELABEL_LABELDROP))
			delete (w, before[i].key);
	}
	return err;
}

/* keepequal, dropequal */
static void compare(struct work *w, const struct relabel_rule *r, struct fusee_str value)
{
	uint32_t i = find(w, fusee_text(r->target_label));
	bool equal = i < w->n ? str_equal(w->labels[i].str, value) : !value.len;

	w->dropped = equal == (r->action == RELABEL_DROPEQUAL);
}

static int apply(struct work *w, const struct relabel_rule *r)
{
	struct fusee_str value;
	int err = join(w, r, &value);

	if (err)
		return err;
	switch (r->action) {
	case RELABEL_KEEP:
	case RELABEL_DROP:
		err = regex_match(r->regex, value, NULL);
		w->dropped = err == (r->action == RELABEL_DROP);
		return err < 0 ? err : 0;
	case RELABEL_KEEPEQUAL:
	case RELABEL_DROPEQUAL:
		compare(w, r, value);
		return 0;
	case RELABEL_REPLACE:
		return replace(w, r, value);
	case RELABEL_HASHMOD:
		return hashmod(w, r, value);
	case RELABEL_LOWERCASE:
	case RELABEL_UPPERCASE:
		return change_case(w, r, value);
	default:
		return each_name(w, r);
	}
}

/* ---- results ---- */

/* The labels, copied into one block. NULL: no memory. */
static struct relabeled *finish(struct work *w)
{
	struct relabeled *ret = calloc(1, sizeof(*ret) + labels_size(w->labels, w->n));

	if (!ret)
		return NULL;
	qsort(w->labels, w->n, sizeof(w->labels[0]), label_by_name);
	labels_copy(ret->labels, w->labels, w->n);
	ret->n = w->n;
	ret->lost = w->lost;
	return ret;
}

static void work_fini(struct work *w)
{
	while (w->texts) {
		struct text *t = w->texts;

		w->texts = t->next;
		free(t);
	}
	buf_fini(&w->value);
	buf_fini(&w->name);
	buf_fini(&w->joined);
}

/* 0, or what stopped it at *list and *rule: a rule dropped it, -EAGAIN, or -ENOMEM. */
static int apply_all(struct work *w, const struct relabel_rules *const *lists, uint32_t nlists,
		     const struct relabel_rules **list, uint32_t *rule)
{
	int err = 0;

	for (uint32_t i = 0; i < nlists; i++)
		for (uint32_t k = 0; lists[i] && k < lists[i]->n; k++) {
			*list = lists[i];
			*rule = k;
			err = apply(w, &lists[i]->rules[k]);
			if (err || w->dropped)
				return err;
		}
	*list = NULL;
	return 0;
}

int relabel_apply(const struct relabel_rules *const *lists, uint32_t nlists,
		  const struct fusee_label *labels, uint32_t n, struct relabeled **ret)
{
	const struct relabel_rules *list;
	struct work w = {0};
	uint32_t rule = 0;
	int err;

	for (uint32_t i = 0; i < n && w.n < RELABEL_LABELS; i++)
		if (labels[i].str.len)
			w.labels[w.n++] = labels[i];
	qsort(w.labels, w.n, sizeof(w.labels[0]), label_by_name);
	w.nold = w.n;
	err = apply_all(&w, lists, nlists, &list, &rule);
	if (list)
		w.n = 0;
	*ret = err == -ENOMEM ? NULL : finish(&w);
	work_fini(&w);
	if (!*ret)
		return -ENOMEM;
	(*ret)->list = list;
	(*ret)->rule = rule;
	if (list)
		(*ret)->fate = err == -EAGAIN ? RELABEL_LIMIT : RELABEL_DROPPED;
	return 0;
}

const char *relabel_reason(const struct relabeled *r)
{
	if (r->fate == RELABEL_KEPT)
		return NULL;
	return r->fate == RELABEL_LIMIT ? "match limit"
					: relabel_action_names[r->list->rules[r->rule].action];
}

void relabel_rule_name(const struct relabeled *r, char *text, size_t size)
{
	snprintf(text, size, "%s, rule %u", r->list ? r->list->where : "", r->rule + 1);
}
