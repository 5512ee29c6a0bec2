/* SPDX-License-Identifier: Apache-2.0 */
/* One lock protects all metrics. It is held at most for the time that printing them takes. */
#include "base/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/utf8.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define PREFIX "fusee_"
#define OVERFLOW_LABELS "{overflow=\"true\"}"

enum { MAX_NAMES = 1024, MAX_LABELS = 32, MAX_VALUE = 512 };

struct series {
	struct series *next; /* of its bucket */
	uint64_t hash;
	uint64_t count; /* the value if !is_real */
	double real;    /* the value if is_real */
	bool is_real;   /* metric_set() was called */
	uint32_t len;
	char labels[]; /* as printed: "" or {a="b",c="d"}, sorted by name */
};

struct family {
	char *name, *help;
	struct series **buckets; /* nbuckets: 0 or a power of two */
	uint32_t n, nbuckets;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct family **families; /* sorted by name */
static uint32_t nfamilies;

/* ---- labels as text ---- */

static bool name_char(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (!first && c >= '0' && c <= '9');
}

/* Whether a name is printed as it is. */
static bool is_plain_name(const char *name)
{
	const char *p = name;

	while (name_char(*p, p == name))
		p++;
	return !*p && p > name;
}

/* Appends the name; characters that Prometheus does not allow become '_'. */
static void add_name(struct buf *b, const char *name)
{
	if (is_plain_name(name)) {
		buf_str(b, name);
		return;
	}
	if (!*name)
		buf_str(b, "_");
	for (const char *p = name; *p; p++)
		buf_add(b, name_char(*p, p == name) ? p : "_", 1);
}

static void add_escaped(struct buf *b, const char *p, size_t len, bool quotes)
{
	for (size_t i = 0; i < len; i++) {
		if (p[i] == '\\' || (quotes && p[i] == '"'))
			buf_str(b, "\\");
		if (p[i] == '\n')
			buf_str(b, "\\n");
		else
			buf_add(b, &p[i], 1);
	}
}

/* key="value"; a value beyond MAX_VALUE is truncated. */
static void add_label(struct buf *b, const char *key, const char *value)
{
	size_t len = strnlen(value, MAX_VALUE + 1);
	struct buf clean = {0};

	if (len > MAX_VALUE)
		for (len = MAX_VALUE; len && ((unsigned char)value[len] & 0xc0) == 0x80;)
			len--; /* to the beginning of a character */
	if (utf8_clean(&clean, value, len))
		b->error = -ENOMEM;
	add_name(b, key);
	buf_str(b, "=\"");
	add_escaped(b, clean.p, clean.len, true);
	buf_str(b, "\"");
	buf_fini(&clean);
}

/* Whether a label begins with the text `label`, which is key=" or longer. Quotes within values are
 * escaped, so key=" occurs at the beginning of a label only. */
static bool has_label(const char *labels, size_t len, const struct buf *label)
{
	const char *p = labels, *end = len ? labels + len : labels;

	while (p < end && (p = memmem(p, (size_t)(end - p), label->p, label->len))) {
		if (p > labels && (p[-1] == '{' || p[-1] == ','))
			return true;
		p++;
	}
	return false;
}

struct pair {
	const char *key, *value;
	uint32_t order;
};

static int by_key(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	int c = strcmp(x->key, y->key);

	return c ? c : (x->order > y->order) - (x->order < y->order);
}

/* Whether a value is printed as it is: letters, digits, dots, blanks and the like. */
static bool is_plain_value(const char *value)
{
	size_t n = 0;

	while (n <= MAX_VALUE && value[n] &&
	       (name_char(value[n], false) || strchr(".- /:", value[n])))
		n++;
	return n <= MAX_VALUE && !value[n];
}

/* The text of a single label, as most metrics have that change often. false: it is not plain. */
static bool add_plain_label(struct buf *b, const struct metric_labels *l)
{
	if (!l || l->n != 2 || !l->pairs[0] || !l->pairs[1] || !is_plain_name(l->pairs[0]) ||
	    !is_plain_value(l->pairs[1]))
		return false;
	buf_str(b, "{");
	buf_str(b, l->pairs[0]);
	buf_str(b, "=\"");
	buf_str(b, l->pairs[1]);
	buf_str(b, "\"}");
	return true;
}

/* The labels in canonical form: sorted, each name once. */
static int labels_text(const struct metric_labels *l, struct buf *b)
{
	struct pair pairs[MAX_LABELS];
	struct buf name = {0};
	uint32_t n = 0;

	if (add_plain_label(b, l))
		return b->error;
	for (uint32_t i = 0; l && i + 1 < l->n && n < MAX_LABELS; i += 2, n++)
		pairs[n] = (struct pair){l->pairs[i] ? l->pairs[i] : "",
					 l->pairs[i + 1] ? l->pairs[i + 1] : "", n};
	if (!n)
		return 0;
	qsort(pairs, n, sizeof(pairs[0]), by_key);
	for (uint32_t i = 0; i < n; i++) {
		buf_reset(&name);
		add_name(&name, pairs[i].key);
		buf_str(&name, "=\"");
		if (has_label(b->p, b->len, &name))
			continue;
		buf_str(b, b->len ? "," : "{");
		add_label(b, pairs[i].key, pairs[i].value);
		if (name.error)
			b->error = name.error;
	}
	buf_fini(&name);
	return buf_str(b, "}");
}

/* ---- families and their series, under the lock ---- */

/* The index at which the family is, or would be inserted. */
static uint32_t index_of(const char *name, bool *found)
{
	uint32_t lo = 0, hi = nfamilies;

	*found = false;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		int c = strcmp(families[mid]->name, name);

		if (!c) {
			*found = true;
			return mid;
		}
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void family_free(struct family *f)
{
	for (uint32_t i = 0; i < f->nbuckets; i++)
		for (struct series *s = f->buckets[i], *next; s; s = next) {
			next = s->next;
			free(s);
		}
	free(f->buckets);
	free(f->name);
	free(f->help);
	free(f);
}

static struct family *family_of(const char *name, const char *help)
{
	struct family *f, **more;
	bool found;
	uint32_t at = index_of(name, &found);

	if (found)
		return families[at];
	if (nfamilies == MAX_NAMES)
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->name = strdup(name);
	f->help = strdup(help ? help : "");
	more = f->name && f->help ? realloc(families, (nfamilies + 1) * sizeof(struct family *))
				  : NULL;
	if (!more) {
		family_free(f);
		return NULL;
	}
	families = more;
	memmove(&families[at + 1], &families[at], (nfamilies - at) * sizeof(struct family *));
	families[at] = f;
	nfamilies++;
	return f;
}

static struct series *series_find(const struct family *f, const char *p, size_t len, uint64_t hash)
{
	struct series *s = f->nbuckets ? f->buckets[hash & (f->nbuckets - 1)] : NULL;

	while (s && (s->hash != hash || s->len != len || (len && memcmp(s->labels, p, len))))
		s = s->next;
	return s;
}

static int rehash(struct family *f)
{
	uint32_t n = f->nbuckets ? f->nbuckets * 2 : 4;
	struct series **buckets;

	if (f->n < f->nbuckets)
		return 0;
	buckets = calloc(n, sizeof(struct series *));
	if (!buckets)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->nbuckets; i++)
		for (struct series *s = f->buckets[i], *next; s; s = next) {
			next = s->next;
			s->next = buckets[s->hash & (n - 1)];
			buckets[s->hash & (n - 1)] = s;
		}
	free(f->buckets);
	f->buckets = buckets;
	f->nbuckets = n;
	return 0;
}

static struct series *series_of(struct family *f, const char *p, size_t len)
{
	uint64_t hash = XXH3_64bits(len ? p : "", len);
	struct series *s = series_find(f, p, len, hash);

	if (s)
		return s;
	if (f->n >= METRICS_MAX_SERIES && (len != sizeof(OVERFLOW_LABELS) - 1 ||
					   memcmp(p, OVERFLOW_LABELS, sizeof(OVERFLOW_LABELS) - 1)))
		return series_of(f, OVERFLOW_LABELS, sizeof(OVERFLOW_LABELS) - 1);
	s = rehash(f) ? NULL : calloc(1, sizeof(*s) + len);
	if (!s)
		return NULL;
	s->hash = hash;
	s->len = (uint32_t)len;
	if (len)
		memcpy(s->labels, p, len);
	s->next = f->buckets[hash & (f->nbuckets - 1)];
	f->buckets[hash & (f->nbuckets - 1)] = s;
	f->n++;
	return s;
}

/* ---- public ---- */

/* The family's name and the labels' text, owned by the caller. 0 or -ENOMEM. */
static int texts(const char *name, const struct metric_labels *l, struct buf *n, struct buf *text)
{
	add_name(n, name);
	buf_add(n, "", 1);
	labels_text(l, text);
	if (!n->error && !text->error)
		return 0;
	buf_fini(n);
	buf_fini(text);
	return -ENOMEM;
}

static void change(const char *name, const char *help, const struct metric_labels *l, bool set,
		   uint64_t add, double value)
{
	struct buf n = {0}, text = {0};
	struct family *f;
	struct series *s;

	if (texts(name, l, &n, &text))
		return;
	pthread_mutex_lock(&lock);
	f = family_of(n.p, help);
	s = f ? series_of(f, text.p, text.len) : NULL;
	if (s && set) {
		s->is_real = true;
		s->real = value;
	} else if (s && s->is_real) {
		s->real += (double)add;
	} else if (s) {
		s->count += add;
	}
	pthread_mutex_unlock(&lock);
	buf_fini(&n);
	buf_fini(&text);
}

void metric_add(const char *name, const char *help, const struct metric_labels *l, uint64_t add)
{
	change(name, help, l, false, add, 0);
}

void metric_set(const char *name, const char *help, const struct metric_labels *l, double value)
{
	change(name, help, l, true, 0, value);
}

void metric_set_all(const struct metric_gauge *g, size_t n)
{
	for (size_t i = 0; i < n; i++)
		metric_set(g[i].name, g[i].help, NULL, g[i].value);
}

double metric_get(const char *name, const struct metric_labels *l)
{
	struct buf n = {0}, text = {0};
	const struct series *s = NULL;
	double value = 0;
	uint32_t at;
	bool found;

	if (texts(name, l, &n, &text))
		return 0;
	pthread_mutex_lock(&lock);
	at = index_of(n.p, &found);
	if (found)
		s = series_find(families[at], text.p, text.len,
				XXH3_64bits(text.len ? text.p : "", text.len));
	if (s)
		value = s->is_real ? s->real : (double)s->count;
	pthread_mutex_unlock(&lock);
	buf_fini(&n);
	buf_fini(&text);
	return value;
}

void metric_forget(const char *key, const char *value)
{
	struct buf label = {0};

	add_label(&label, key, value);
	if (label.error) {
		buf_fini(&label);
		return;
	}
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < nfamilies; i++)
		for (uint32_t k = 0; k < families[i]->nbuckets; k++)
			for (struct series **at = &families[i]->buckets[k], *s; (s = *at);) {
				if (!has_label(s->labels, s->len, &label)) {
					at = &s->next;
					continue;
				}
				*at = s->next;
				families[i]->n--;
				free(s);
			}
	pthread_mutex_unlock(&lock);
	buf_fini(&label);
}

/* ---- text ---- */

static int by_labels(const void *a, const void *b)
{
	const struct series *x = *(const struct series *const *)a,
			    *y = *(const struct series *const *)b;
	int c = memcmp(x->labels, y->labels, x->len < y->len ? x->len : y->len);

	return c ? c : (x->len > y->len) - (x->len < y->len);
}

static void add_real(struct buf *b, double v)
{
	char text[40];

	if (isnan(v) || isinf(v)) {
		buf_str(b, isnan(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf");
		return;
	}
	snprintf(text, sizeof(text), "%.15g", v);
	if (strtod(text, NULL) != v)
		snprintf(text, sizeof(text), "%.17g", v);
	buf_str(b, text);
}

static int family_text(const struct family *f, struct buf *out)
{
	const struct series **all = malloc(f->n * sizeof(const struct series *));
	size_t len = strlen(f->name);
	bool total = len > 6 && !strcmp(f->name + len - 6, "_total");
	uint32_t n = 0;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->nbuckets; i++)
		for (const struct series *s = f->buckets[i]; s; s = s->next) {
			fusee_require(n < f->n);
			all[n++] = s;
		}
	qsort(all, n, sizeof(const struct series *), by_labels);
	if (*f->help) {
		buf_printf(out, "# HELP " PREFIX "%s ", f->name);
		add_escaped(out, f->help, strlen(f->help), false);
		buf_str(out, "\n");
	}
	buf_printf(out, "# TYPE " PREFIX "%s %s\n", f->name, total ? "counter" : "gauge");
	for (uint32_t i = 0; i < n; i++) {
		buf_printf(out, PREFIX "%s%.*s ", f->name, (int)all[i]->len, all[i]->labels);
		if (all[i]->is_real)
			add_real(out, all[i]->real);
		else
			buf_printf(out, "%" PRIu64, all[i]->count);
		buf_str(out, "\n");
	}
	free(all);
	return out->error;
}

int metrics_text(struct buf *out)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < nfamilies && !err; i++)
		if (families[i]->n)
			err = family_text(families[i], out);
	pthread_mutex_unlock(&lock);
	return err ? err : out->error;
}

void metrics_reset(void)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < nfamilies; i++)
		family_free(families[i]);
	free(families);
	families = NULL;
	nfamilies = 0;
	pthread_mutex_unlock(&lock);
}
