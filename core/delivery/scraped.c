/* SPDX-License-Identifier: Apache-2.0 */
#include "delivery/scraped.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <fusee/helpers.h>

#include "base/metrics.h"
#include "base/utf8.h"
#include "pprof/pprof.h"
#include "relabel/relabel.h"

#define MAX_SECONDS 3600u /* a longer duration is not believed */
#define MAX_TEXT 4096u    /* bytes of a label's key or text */
#define EXPORTED "exported_"

struct scraped {
	atomic_uint users;
	struct pprof_file *file;
	struct fusee_profile profile;
	struct fusee_str *strings; /* the file's, and the kind */
	struct fusee_label labels[SCRAPED_MAX_LABELS];
	uint32_t nlabels;
	char *texts; /* of the labels and the kind */
};

/* What one sink's profile has of its own. */
struct view {
	struct scraped *of;
	struct relabeled *relabeled;
	struct fusee_label *samples; /* labels of samples; NULL: those of the file */
	struct fusee_label resource[RELABEL_LABELS];
	uint32_t nresource;
	char *renamed[RELABEL_LABELS];
	uint32_t nrenamed;
};

/* ---- from bytes ---- */

static bool is_text(struct fusee_str s)
{
	return s.p && s.len && s.len <= MAX_TEXT && utf8_printable(s.p, s.len);
}

/* Copies a text to *at, which is moved on. */
static struct fusee_str keep(char **at, struct fusee_str s)
{
	struct fusee_str kept = {*at, s.len};

	memcpy(*at, s.p ? s.p : "", s.len);
	*at += s.len;
	return kept;
}

static int copy_labels(struct scraped *s, const struct fusee_pprof *p, struct fusee_str *kind)
{
	uint64_t bytes = p->kind.len;
	char *at;

	if (p->labels.n > SCRAPED_MAX_LABELS || !is_text(p->kind))
		return -EINVAL;
	FUSEE_FOR_EACH (struct fusee_label, l, p->labels) {
		if (!is_text(l->key) || !is_text(l->str))
			return -EINVAL;
		bytes += l->key.len + l->str.len;
	}
	at = s->texts = malloc(bytes);
	if (!at)
		return -ENOMEM;
	*kind = keep(&at, p->kind);
	FUSEE_FOR_EACH (struct fusee_label, l, p->labels)
		s->labels[s->nlabels++] = (struct fusee_label){.key = keep(&at, l->key),
							       .str = keep(&at, l->str)};
	return 0;
}

/* The server's clock may be wrong: the time is that of this machine's request. */
static void set_time(struct fusee_profile *p, const struct fusee_pprof *from)
{
	uint64_t end = from->start_ns + from->took_ns;

	if (p->duration_ns > MAX_SECONDS * FUSEE_SECOND || p->duration_ns > end)
		p->duration_ns = 0;
	p->start_ns = end - p->duration_ns;
}

static int set_profile(struct scraped *s, const struct fusee_pprof *from, struct fusee_str kind)
{
	struct fusee_profile *p = &s->profile;
	uint32_t n;

	*p = *pprof_profile(s->file);
	n = p->strings.n;
	s->strings = malloc(((uint64_t)n + 1) * sizeof(*s->strings));
	if (!s->strings)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		s->strings[i] = *FUSEE_AT(struct fusee_str, p->strings, i);
	s->strings[n] = kind;
	p->strings = (struct fusee_table){s->strings, n + 1, sizeof(*s->strings)};
	p->kind = n;
	set_time(p, from);
	return getrandom(p->id, sizeof(p->id), 0) == sizeof(p->id) ? 0 : -EIO;
}

static int check_types(const struct fusee_profile *p, const char **why)
{
	if (p->types.n && p->types.n <= SCRAPED_MAX_TYPES)
		return 0;
	*why = p->types.n ? "the profile has more than 32 sample types"
			  : "the profile has no sample type";
	return -EINVAL;
}

int scraped_new(struct scraped **ret, const struct fusee_pprof *p, const char **why)
{
	uint64_t most = p->max_bytes < PPROF_MAX_BYTES ? p->max_bytes : PPROF_MAX_BYTES;
	struct scraped *s = calloc(1, sizeof(*s));
	struct fusee_str kind;
	int r;

	*why = "no memory";
	if (!s)
		return -ENOMEM;
	s->users = 1;
	r = copy_labels(s, p, &kind);
	if (r == -EINVAL)
		*why = "the labels are not valid";
	if (!r)
		r = pprof_decode_within(p->bytes.p, p->bytes.len, most, &s->file, why);
	if (!r)
		r = check_types(pprof_profile(s->file), why);
	if (!r)
		r = set_profile(s, p, kind);
	if (r) {
		scraped_free(s);
		return r;
	}
	*why = "";
	*ret = s;
	return 0;
}

void scraped_free(struct scraped *s)
{
	if (!s || atomic_fetch_sub(&s->users, 1) != 1)
		return;
	pprof_free(s->file);
	free(s->strings);
	free(s->texts);
	free(s);
}

uint64_t scraped_bytes(const struct scraped *s)
{
	return sizeof(*s) + pprof_file_bytes(s->file) +
	       s->profile.strings.n * sizeof(struct fusee_str);
}

uint64_t scraped_samples(const struct scraped *s)
{
	return s->profile.samples.n;
}

/* ---- to a sink ---- */

static void free_view(void *arg)
{
	struct view *v = arg;

	for (uint32_t i = 0; i < v->nrenamed; i++)
		free(v->renamed[i]);
	free(v->relabeled);
	free(v->samples);
	scraped_free(v->of);
	free(v);
}

static bool is_omitted(char *const *omit, struct fusee_str key)
{
	for (; *omit; omit++)
		if (fusee_text_is(key, *omit))
			return true;
	return false;
}

static bool has_key(struct fusee_table labels, struct fusee_str key)
{
	FUSEE_FOR_EACH (struct fusee_label, l, labels)
		if (fusee_text_same(l->key, key))
			return true;
	return false;
}

/* A key for the samples' own label of this key: "exported_job". NULL: no memory. */
static char *rename_key(struct view *v, const struct fusee_profile *p, struct fusee_str key)
{
	char *name = NULL;

	for (uint32_t depth = 1; depth < 8; depth++) {
		int n;

		free(name);
		n = asprintf(&name, "%.*s%.*s", (int)(depth * (sizeof(EXPORTED) - 1)),
			     EXPORTED EXPORTED EXPORTED EXPORTED EXPORTED EXPORTED EXPORTED,
			     (int)key.len, key.p);
		if (n < 0)
			return NULL;
		if (!has_key(p->labels, fusee_text(name)) &&
		    !has_key(p->resource, fusee_text(name)))
			break;
	}
	v->renamed[v->nrenamed++] = name;
	return name;
}

/* The target's labels win over labels of samples with their keys, which are the server's own. */
static int rename_labels(struct view *v, struct fusee_profile *p)
{
	for (uint32_t i = 0; i < v->nresource; i++) {
		struct fusee_str key = v->resource[i].key;
		char *name;

		if (!has_key(p->labels, key))
			continue;
		if (!v->samples) {
			v->samples = malloc(p->labels.n * sizeof(*v->samples));
			if (!v->samples)
				return -ENOMEM;
			for (uint32_t k = 0; k < p->labels.n; k++)
				v->samples[k] = *FUSEE_AT(struct fusee_label, p->labels, k);
			p->labels.at = v->samples;
			p->labels.stride = sizeof(*v->samples);
		}
		name = rename_key(v, p, key);
		if (!name)
			return -ENOMEM;
		for (uint32_t k = 0; k < p->labels.n; k++)
			if (fusee_text_same(v->samples[k].key, key))
				v->samples[k].key = fusee_text(name);
	}
	return 0;
}

static int set_labels(struct view *v, const struct plan_instance *plan, struct fusee_profile *p)
{
	for (uint32_t i = 0; i < v->relabeled->n; i++)
		if (!is_omitted(plan->omit, v->relabeled->labels[i].key))
			v->resource[v->nresource++] = v->relabeled->labels[i];
	p->resource = (struct fusee_table){v->resource, v->nresource, sizeof(*v->resource)};
	return rename_labels(v, p);
}

int scraped_build(struct scraped *s, const struct plan_instance *plan, struct builder **ret,
		  const char **dropped)
{
	const struct relabel_rules *lists[] = {plan->relabel_all, plan->relabel};
	struct view *v = calloc(1, sizeof(*v));
	struct builder *b = NULL;
	struct fusee_profile *p;
	int r = v ? builder_new(&b) : -ENOMEM;

	*dropped = NULL;
	if (r) {
		free(v);
		return r;
	}
	v->of = s;
	atomic_fetch_add(&s->users, 1);
	builder_hold(b, free_view, v, sizeof(*v) + scraped_bytes(s));
	p = builder_profile(b);
	*p = s->profile;
	r = relabel_apply(lists, 2, s->labels, s->nlabels, &v->relabeled);
	if (!r && v->relabeled->fate != RELABEL_KEPT) {
		*dropped = relabel_reason(v->relabeled);
		r = -ECANCELED;
	}
	if (!r)
		r = set_labels(v, plan, p);
	if (r)
		builder_free(b);
	else
		*ret = b;
	return r;
}

int scraped_put(struct scraped *s, struct sink_window *sink)
{
	const struct plan_instance *plan = sink_window_plan(sink);
	const char *dropped;
	struct builder *b;
	int r = scraped_build(s, plan, &b, &dropped);

	if (!r)
		sink_window_put(sink, b, builder_profile(b));
	if (r == -ECANCELED)
		metric_add("relabel_profiles_dropped_total",
			   "Total number of scraped profiles that rules of relabeling dropped.",
			   METRIC_LABELS("instance", plan->name, "reason", dropped), 1);
	else if (r)
		delivery_not_built(sink_window_delivery(sink), scraped_samples(s));
	return r == -ECANCELED ? 0 : r;
}
