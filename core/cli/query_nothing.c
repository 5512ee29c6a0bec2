/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/internal/query_nothing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "query/label_list.h"

#define LOOK_NS 1000000000u /* the longest search for labels that the selector may have meant */

/* ---- misspelt labels ---- */

struct look {
	struct label_list labels;
	struct buf error;
	uint64_t until_ns;
};

static int take(void *arg, const struct fusee_profile *p, const char *name)
{
	struct look *l = arg;
	int r = label_list_add(&l->labels, p, name, &l->error);

	return r ? r : clock_now() < l->until_ns ? 0 : -ECANCELED;
}

static void ignore_broken(void *arg, const char *name, const char *why)
{
	(void)arg;
	(void)name;
	(void)why;
}

static void ignore_progress(void *arg, uint64_t done, uint64_t all)
{
	(void)arg;
	(void)done;
	(void)all;
}

/* The labels of all samples in the range, or of those of the first second of reading. */
static void read_labels(const struct query_nothing *n, struct look *l)
{
	const struct store_reader reader = {take, ignore_broken, ignore_progress, l};
	struct store_request request = *n->request;
	const char *type = selector_type(request.selector);
	struct store_counts counts = {0};
	struct buf text = {0};
	char *why = NULL;

	buf_printf(&text, "%s{}", type ? type : "");
	if (!buf_add(&text, "", 1) && !selector_parse(&request.selector, text.p, &why)) {
		request.no_stacks = true;
		request.functions = NULL;
		request.keys = NULL;
		l->labels.filter.selector = request.selector;
		l->until_ns = clock_now() + LOOK_NS;
		store_read(n->store, &request, &reader, &counts);
		selector_free(request.selector);
	}
	free(why);
	buf_fini(&text);
}

static void put_nearest(const struct look *l, const struct selector *s, struct buf *b)
{
	char near[LABEL_LIST_NEAR];
	const char *key, *word;

	for (uint32_t i = 0; !b->len && selector_requires(s, i, &key, &word); i++) {
		int r = label_list_nearest(&l->labels, NULL, key, near);

		if (r == 1)
			buf_str(b, near);
		if (r != -EEXIST || label_list_nearest(&l->labels, key, word, near) != 1)
			continue;
		buf_printf(b, "%s=\"", key);
		utf8_clean_printable(b, near, strlen(near));
		buf_str(b, "\"");
	}
}

/* Ids are copied, not typed, and a guess would read all of them. */
static bool is_of_ids(const struct selector *s)
{
	const char *key, *id;
	uint32_t i = 0;

	while (selector_requires(s, i, &key, &id) &&
	       (!strcmp(key, "trace_id") || !strcmp(key, "span_id")))
		i++;
	return i && !selector_requires(s, i, &key, &id);
}

/* Logs that no sample meets the selector, with a guess, because the cause mostly is a mistyped
 * label. */
static void log_unmet(const struct query_nothing *n)
{
	struct buf meant = {0};
	struct look l = {0};

	if (!is_of_ids(n->request->selector) && !label_list_init(&l.labels)) {
		read_labels(n, &l);
		put_nearest(&l, n->request->selector, &meant);
		label_list_fini(&l.labels);
	}
	log_error("query: %sno sample in the range of time meets '%s' (%llu window%s read)%s"
		  "%.*s%s fusee query %s --labels lists the labels",
		  n->side, n->selector, (unsigned long long)n->counts->read,
		  n->counts->read == 1 ? " was" : "s were", meant.len ? "; did you mean " : ":",
		  (int)meant.len, meant.len ? meant.p : "", meant.len ? "?" : "", n->place);
	buf_fini(&meant);
	buf_fini(&l.error);
}

/* ---- the error ---- */

void query_log_nothing(const struct query_nothing *n)
{
	const struct store_counts *c = n->counts;

	if (!c->files && c->omitted)
		log_error("query: %s'%s' has no window in the range of time (%llu days were not "
			  "listed, or not completely)",
			  n->side, n->place, (unsigned long long)c->omitted);
	else if (!c->files)
		log_error("query: '%s' has no profile: %s", n->place, store_lacks(n->store));
	else if (!c->read && c->broken)
		log_error("query: %s'%s': no file of the range of time can be read", n->side,
			  n->place);
	else if (!c->read && !c->excluded)
		log_error("query: %sof %llu files in '%s' none has a window in the range of time",
			  n->side, (unsigned long long)c->files, n->place);
	else
		log_unmet(n);
}
