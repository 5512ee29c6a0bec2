/* SPDX-License-Identifier: Apache-2.0 */
#include "query/label_list.h"

#include <errno.h>
#include <string.h>

#include "base/guess.h"
#include "base/saturate.h"
#include "base/str.h"
#include "report/labels.h"

int label_list_init(struct label_list *l)
{
	*l = (struct label_list){0};
	if (!tally_init(&l->keys) && !tally_init(&l->values))
		return 0;
	label_list_fini(l);
	return -ENOMEM;
}

void label_list_fini(struct label_list *l)
{
	filter_fini(&l->filter);
	tally_fini(&l->keys);
	tally_fini(&l->values);
	buf_fini(&l->text);
}

static int add_label(struct label_list *l, const struct fusee_profile *p,
		     const struct fusee_sample *s, struct fusee_str key, int64_t v)
{
	buf_reset(&l->text);
	buf_add(&l->text, key.p, key.len);
	buf_add(&l->text, "", 1);
	if (!key.len || !render_label(p, s, key, &l->text))
		return 0;
	if (l->text.error || tally_add(&l->keys, key.p, key.len, v) == TALLY_NONE ||
	    tally_add(&l->values, l->text.p, l->text.len, v) == TALLY_NONE)
		return -ENOMEM;
	return 0;
}

static int add_sample(struct label_list *l, const struct fusee_profile *p, uint32_t i)
{
	const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, i);
	int64_t v = *FUSEE_AT(int64_t, p->values, (uint64_t)i * p->types.n + l->filter.type);
	int r = 0;

	if (!filter_takes(&l->filter, p, s))
		return l->filter.error;
	l->stacks++;
	saturate_add(&l->samples, filter_samples(&l->filter, p, i));
	saturate_add(&l->total, v);
	for (uint32_t k = 0; !r && k < s->nlabels; k++)
		r = add_label(l, p, s,
			      FUSEE_AT(struct fusee_label, p->labels, s->first_label + k)->key, v);
	if (!r && s->pid)
		r = add_label(l, p, s, fusee_text("pid"), v);
	if (!r && s->tid)
		r = add_label(l, p, s, fusee_text("tid"), v);
	return r;
}

int label_list_add(struct label_list *l, const struct fusee_profile *p, const char *name,
		   struct buf *error)
{
	int r = filter_begin(&l->filter, p, name, error);

	if (r <= 0)
		return r;
	r = 0;
	for (uint32_t i = 0; !r && i < p->samples.n; i++)
		r = add_sample(l, p, i);
	if (l->filter.error)
		buf_str(error, filter_error(&l->filter));
	if (!r && tally_bytes(&l->keys) + tally_bytes(&l->values) > LABEL_LIST_MAX_BYTES) {
		r = -EFBIG;
		buf_printf(error, "the values of all labels take more than %llu MiB: select less",
			   LABEL_LIST_MAX_BYTES >> 20);
	}
	return r;
}

/* ---- misspelt words ---- */

/* Copies a label, or a value of the label `key`, with a NUL. false: it is another label's value, or
 * too long to be near any word. */
static bool copy_text(struct fusee_str s, const char *key, char text[LABEL_LIST_NEAR])
{
	size_t skip = key ? strlen(key) + 1 : 0;

	if (key && (s.len < skip || memcmp(s.p, key, skip)))
		return false;
	if (s.len - skip >= LABEL_LIST_NEAR || memchr(s.p + skip, '\0', s.len - skip))
		return false;
	memcpy(text, s.p + skip, s.len - skip);
	text[s.len - skip] = '\0';
	return true;
}

int label_list_nearest(const struct label_list *l, const char *key, const char *word,
		       char near[LABEL_LIST_NEAR])
{
	const struct tally *t = key ? &l->values : &l->keys;
	struct guess guess = {.word = word};
	char text[LABEL_LIST_NEAR];

	for (uint32_t i = 0; i < tally_size(t); i++) {
		if (!copy_text(tally_key(t, i), key, text))
			continue;
		if (!strcmp(text, word))
			return -EEXIST;
		guess_offer(&guess, text);
		if (guess.best == text) {
			strcpy(near, text);
			guess.best = near;
		}
	}
	return guess.best != NULL;
}
