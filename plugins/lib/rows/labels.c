/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

/* By enum fusee_rows_own. */
static const char *const own_labels[FUSEE_ROWS_OWN] = {"host",      "service_name", "process",
						       "namespace", "pod",          "container",
						       "thread",    "trace_id",     "span_id"};

struct fusee_str rows_bounded(struct fusee_rows *r, struct fusee_str s)
{
	if (s.len <= r->o.max_text)
		return s;
	r->shortened.labels++;
	return fusee_text_shortened(s, r->o.max_text);
}

static int compare(struct fusee_str a, struct fusee_str b)
{
	uint64_t n = a.len < b.len ? a.len : b.len;
	int r = n ? memcmp(a.p, b.p, n) : 0;

	return r ? r : (a.len > b.len) - (a.len < b.len);
}

/* A key is in a map once: the first label of a key counts, of those that pprof files have. */
static void add(struct fusee_rows *r, const struct fusee_label *l)
{
	struct row_labels *all = &r->labels;
	uint32_t i = all->n;
	int order = 1;

	if (l->str.p ? !l->str.len : !l->num && !l->unit.len)
		return;
	while (i && (order = compare(all->at[i - 1]->key, l->key)) > 0)
		i--;
	if (i && !order)
		return;
	if (all->n == FUSEE_ROWS_LABELS) {
		r->shortened.labels++;
		return;
	}
	memmove(&all->at[i + 1], &all->at[i], (all->n - i) * sizeof(*all->at));
	all->at[i] = l;
	all->n++;
}

static void collect(struct fusee_rows *r, const struct fusee_sample *s)
{
	r->labels.n = 0;
	for (uint32_t i = 0; i < s->nlabels; i++)
		add(r, FUSEE_AT(struct fusee_label, r->p->labels, s->first_label + i));
	FUSEE_FOR_EACH (struct fusee_label, l, r->p->resource) {
		add(r, l);
	}
}

/* The value of label i, numbers as text. */
static struct fusee_str value_of(struct fusee_rows *r, uint32_t i)
{
	const struct fusee_label *l = r->labels.at[i];
	char *number = r->labels.numbers[i];

	if (l->str.p)
		return rows_bounded(r, l->str);
	snprintf(number, sizeof(r->labels.numbers[i]), "%lld", (long long)l->num);
	return fusee_text(number);
}

/* Whether a column has the label. Ids are never with the others, so that readers look nowhere else.
 */
static bool is_own(const struct fusee_label *l, uint32_t k)
{
	return (l->str.p || k == FUSEE_ROWS_TRACE || k == FUSEE_ROWS_SPAN) &&
	       fusee_text_is(l->key, own_labels[k]);
}

/* Profiles that were read from files have ids as labels, which are in the row already. */
static void add_id(struct fusee_rows *r, const uint64_t *words, uint32_t n, struct fusee_str *to)
{
	char *hex = r->labels.ids[n - 1];
	uint64_t any = 0;

	for (uint32_t i = 0; i < n; i++) {
		any |= words[i];
		snprintf(hex + 16ul * i, 17, "%016llx", (unsigned long long)words[i]);
	}
	if (any && r->o.ids)
		*to = fusee_text(hex);
}

void rows_labels(struct fusee_rows *r, const struct fusee_sample *s, struct fusee_rows_sample *row)
{
	uint32_t n = 0;

	collect(r, s);
	memset(row->own, 0, sizeof(row->own));
	for (uint32_t i = 0; i < r->labels.n; i++) {
		const struct fusee_label *l = r->labels.at[i];
		uint32_t k = 0;

		while (k < FUSEE_ROWS_OWN && !is_own(l, k))
			k++;
		if (k < FUSEE_ROWS_OWN)
			row->own[k] = value_of(r, i);
		else
			r->labels.others[n++] = (struct fusee_rows_label){rows_bounded(r, l->key),
									  value_of(r, i)};
	}
	add_id(r, s->trace_id, 2, &row->own[FUSEE_ROWS_TRACE]);
	add_id(r, &s->span_id, 1, &row->own[FUSEE_ROWS_SPAN]);
	row->labels = (struct fusee_table){r->labels.others, n, sizeof(*r->labels.others)};
}
