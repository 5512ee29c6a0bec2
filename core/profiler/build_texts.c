/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/internal/build_texts.h"

#include <stdbool.h>

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

uint32_t build_texts_put(struct build_texts *t, const struct build_options *o, uint32_t set,
			 uint64_t count, struct fusee_label *labels, uint32_t n, uint32_t most)
{
	uint32_t before = n, nof_set = 0;
	const struct fusee_label *of_set = NULL;
	const unsigned char *p, *end;

	if (!t->of)
		return n;
	if (o->labels && o->one_set) /* else they are among the n */
		of_set = o->labels(o->arg, set, &nof_set);
	for (p = t->of->key, end = p + t->of->len; p < end;) {
		const char *key = (const char *)p + 2;
		const struct fusee_label l = {
			.key = {key, p[0]}, .str = {key + p[0], p[1]}, .num = FUSEE_LABEL_OWN};

		p += 2u + p[0] + p[1];
		if (build_omits(o, l.key))
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
