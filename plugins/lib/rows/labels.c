/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

/* By enum fusee_rows_own. */
static const char *const own_labels[FUSEE_ROWS_OWN] = {
	"host", "service_name", "process", "namespace", "pod", "container", "thread"};

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

static void add_other(struct fusee_rows *r, const struct fusee_label *l, uint32_t n)
{
	struct row_labels *all = &r->labels;
	struct fusee_str value = l->str;

	if (!value.p) {
		snprintf(all->numbers[n], sizeof(all->numbers[n]), "%lld", (long long)l->num);
		value = fusee_text(all->numbers[n]);
	}
	all->others[n].key = rows_bounded(r, l->key);
	all->others[n].value = rows_bounded(r, value);
}

void rows_labels(struct fusee_rows *r, const struct fusee_sample *s, struct fusee_rows_sample *row)
{
	uint32_t n = 0;

	collect(r, s);
	memset(row->own, 0, sizeof(row->own));
	for (uint32_t i = 0; i < r->labels.n; i++) {
		const struct fusee_label *l = r->labels.at[i];
		uint32_t k = 0;

		while (k < FUSEE_ROWS_OWN && (!l->str.p || !fusee_text_is(l->key, own_labels[k])))
			k++;
		if (k < FUSEE_ROWS_OWN)
			row->own[k] = rows_bounded(r, l->str);
		else
			add_other(r, l, n++);
	}
	row->labels = (struct fusee_table){r->labels.others, n, sizeof(*r->labels.others)};
}
