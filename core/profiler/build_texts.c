/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/internal/build_texts.h"

#include <string.h>

#include <fusee/helpers.h>

#include "profile/builder.h"
#include "profiler/build_profile.h"

static bool is_among(const struct fusee_label *labels, uint32_t n, struct fusee_str name)
{
	for (uint32_t i = 0; i < n; i++)
		if (fusee_text_same(labels[i].key, name))
			return true;
	return false;
}

/* Would a reader take it for what fusee says of the sample, even of a sample of which it does not
 * say that? */
static bool is_own(struct fusee_str name)
{
	static const char *const own[] = {"trace_id", "span_id", "pid",  "tid",
					  "process",  "thread",  "host", "cpu"};

	for (uint32_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (fusee_text_is(name, own[i]))
			return true;
	return false;
}

/* n numbers as 16 small hexadecimal digits each; all of them 0 are no id. */
static bool read_id(struct fusee_str text, uint64_t *out, uint32_t n)
{
	uint64_t numbers[2] = {0};

	if (text.len != n * 16)
		return false;
	for (uint32_t i = 0; i < text.len; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *digit = memchr(digits, text.p[i], 16);

		if (!digit)
			return false;
		numbers[i / 16] = numbers[i / 16] << 4 | (uint64_t)(digit - digits);
	}
	if (!numbers[0] && !numbers[1])
		return false;
	memcpy(out, numbers, n * sizeof(*out));
	return true;
}

/* Is it an id? Then it is put there. */
static bool is_id(const struct fusee_label *l, uint64_t trace_id[2], uint64_t *span_id)
{
	if (fusee_text_is(l->key, "trace_id"))
		return read_id(l->str, trace_id, 2);
	return fusee_text_is(l->key, "span_id") && read_id(l->str, span_id, 1);
}

/* The label at *at, which is moved behind it. */
static struct fusee_label next_label(const unsigned char **at)
{
	const unsigned char *p = *at;
	const char *key = (const char *)p + 2;

	*at += 2u + p[0] + p[1];
	return (struct fusee_label){
		.key = {key, p[0]}, .str = {key + p[0], p[1]}, .num = FUSEE_LABEL_OWN};
}

static void ids_of_texts(struct build_texts *t, uint64_t trace_id[2], uint64_t *span_id)
{
	const unsigned char *p = t->of ? t->of->key : NULL, *end = p ? p + t->of->len : NULL;

	t->ids = true;
	while (p < end) {
		const struct fusee_label l = next_label(&p);

		is_id(&l, trace_id, span_id);
	}
}

void build_texts_begin(struct build_texts *t, const struct build_options *o,
		       const struct collector *c, const struct ids_key *ids, struct builder *b)
{
	uint64_t trace_id[2] = {ids->trace_id[0], ids->trace_id[1]}, span_id = ids->span_id;

	t->of = ids->texts ? &c->texts.entries[ids->texts] : NULL;
	t->ids = false;
	if (!trace_id[0] && !trace_id[1] && !span_id)
		ids_of_texts(t, trace_id, &span_id);
	if (build_omits(o, fusee_text("trace_id")))
		trace_id[0] = trace_id[1] = span_id = 0;
	builder_ids(b, trace_id, span_id);
}

uint32_t build_texts_put(struct build_texts *t, const struct build_options *o, uint32_t set,
			 uint64_t count, struct fusee_label *labels, uint32_t n, uint32_t most)
{
	uint32_t before = n, nof_set = 0;
	const struct fusee_label *of_set = NULL;
	const unsigned char *p, *end;
	uint64_t ids[2];

	if (!t->of)
		return n;
	if (o->labels && o->one_set) /* else they are among the n */
		of_set = o->labels(o->arg, set, &nof_set);
	for (p = t->of->key, end = p + t->of->len; p < end;) {
		const struct fusee_label l = next_label(&p);

		if (build_omits(o, l.key) || (t->ids && is_id(&l, ids, ids)))
			continue;
		if (n == most || is_own(l.key) || is_among(labels, before, l.key) ||
		    is_among(of_set, nof_set, l.key))
			t->taken += count;
		else
			labels[n++] = l;
	}
	return n;
}

void build_texts_end(const struct build_texts *t, struct builder *b)
{
	if (t->taken)
		builder_comment(b,
				"fusee: %llu labels of the program are omitted, as others have "
				"their names",
				(unsigned long long)t->taken);
}
