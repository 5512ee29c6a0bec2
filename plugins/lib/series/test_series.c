/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/lib/series
#include "test.h"

#include <fusee/series.h>

#include "lib/fakehost.h"

static struct builder *b;

static struct fusee_label text_label(const char *key, const char *text)
{
	return fusee_text_label(key, text);
}

/* A sample of the stack "work_I" with these labels: name, value, .., NULL. */
static void add(uint32_t i, int64_t value, ...)
{
	struct fusee_label labels[40];
	struct fusee_location l = {.address = i + 1};
	uint32_t n = 0, stack;
	const char *key;
	va_list ap;

	va_start(ap, value);
	while ((key = va_arg(ap, const char *)))
		labels[n++] = text_label(key, va_arg(ap, const char *));
	va_end(ap);
	stack = builder_location(b, &l, NULL, 0);
	builder_sample(b, builder_stack(b, &stack, 1), labels, n, 100 + i, 200 + i, &value);
}

static const struct fusee_profile *begin(void)
{
	CHECK_INT(builder_new(&b), 0);
	builder_type(b, "cpu", "nanoseconds");
	return NULL;
}

static const struct fusee_profile *end(void)
{
	const struct fusee_profile *p;

	builder_profile(b)->id[0] = 9;
	CHECK_INT(builder_finish(b, &p), 0);
	return p;
}

/* What each() saw: a line for each series, "a=b,c=d: 2 samples, 30". */
static struct buf seen;
static uint32_t dropped;
static uint8_t ids[64][16];
static int nids;

static int each(void *arg, const struct fusee_series *s)
{
	const struct fusee_profile *p = s->profile;
	int64_t sum = 0;

	FUSEE_FOR_EACH (struct fusee_label, l, s->labels) {
		buf_printf(&seen, "%.*s=%.*s,", (int)l->key.len, l->key.p, (int)l->str.len,
			   l->str.p);
	}
	for (uint32_t i = 0; i < p->samples.n; i++) {
		const struct fusee_sample *sample = FUSEE_AT(struct fusee_sample, p->samples, i);

		CHECK(!sample->nlabels && !sample->pid && !sample->tid);
		sum += *FUSEE_AT(int64_t, p->values, i * p->types.n);
	}
	CHECK_INT(p->resource.n, 0);
	buf_printf(&seen, ": %u samples, %lld\n", p->samples.n, (long long)sum);
	dropped += s->dropped;
	for (int i = 0; i < nids; i++)
		CHECK(memcmp(ids[i], p->id, 16));
	memcpy(ids[nids++], p->id, 16);
	return 0;
}

static const char *series(const struct fusee_profile *p, const struct fusee_series_options *o)
{
	buf_reset(&seen);
	nids = 0;
	CHECK_INT(fusee_series_each(p, o, each, NULL), 0);
	CHECK_INT(buf_add(&seen, "", 1), 0);
	return seen.p;
}

TEST(a_series_for_each_set_of_labels)
{
	struct fusee_str thread = FUSEE_TEXT("thread");
	struct fusee_series_options o = {0};
	const struct fusee_profile *p = begin();
	uint8_t before[2][16];

	add(1, 10, "process", "web", "thread", "one", NULL);
	add(1, 20, "process", "web", "thread", "two", NULL);
	add(2, 5, "thread", "one", "process", "web", NULL);
	add(1, 7, "process", "db", "thread", "one", NULL);
	builder_resource(b, "host", "h1");
	p = end();
	CHECK_STR(series(p, &o), "host=h1,process=web,thread=one,: 2 samples, 15\n"
				 "host=h1,process=web,thread=two,: 1 samples, 20\n"
				 "host=h1,process=db,thread=one,: 1 samples, 7\n");
	o.without = (struct fusee_table){&thread, 1, sizeof(thread)};
	CHECK_STR(series(p, &o), "host=h1,process=web,: 2 samples, 35\n"
				 "host=h1,process=db,: 1 samples, 7\n");
	memcpy(before, ids, sizeof(before));
	series(p, &o);
	CHECK(!memcmp(before, ids, sizeof(before)));
	builder_free(b);
}

/* Labels that programs have given their threads may have a value for each request. */
TEST(labels_of_the_program_make_no_series)
{
	struct fusee_series_options o = {0};
	const struct fusee_profile *p = begin();
	struct fusee_location l = {.address = 1};
	uint32_t stack = builder_location(b, &l, NULL, 0);

	stack = builder_stack(b, &stack, 1);
	for (uint32_t i = 0; i < 3; i++) {
		char request[] = {(char)('a' + i), '\0'};
		struct fusee_label labels[] = {text_label("process", "web"),
					       text_label("request", request)};
		int64_t value = 10;

		labels[1].num = FUSEE_LABEL_OWN;
		builder_sample(b, stack, labels, 2, 1, 1, &value);
	}
	p = end();
	CHECK_INT(p->samples.n, 3);
	CHECK_STR(series(p, &o), "process=web,: 1 samples, 30\n");
	builder_free(b);
}

/* Of a profile that is read from a file, where ids are labels, also: they would be a series each.
 */
TEST(ids_make_no_series)
{
	struct fusee_series_options o = {0};
	const struct fusee_profile *p = begin();
	struct fusee_location l = {.address = 1};
	uint32_t stack = builder_location(b, &l, NULL, 0);

	stack = builder_stack(b, &stack, 1);
	for (uint32_t i = 0; i < 1000; i++) {
		char span[17];
		struct fusee_label labels[] = {text_label("process", "web"),
					       text_label("span_id", span),
					       text_label("trace_id", span)};
		int64_t value = 10;

		snprintf(span, sizeof(span), "%016x", 1 + i);
		builder_sample(b, stack, labels, 3, 1, 1, &value);
		builder_ids(b, (uint64_t[]){i, 1}, i);
		builder_sample(b, stack, labels, 1, 1, 1, &value);
		builder_ids(b, (uint64_t[]){0, 0}, 0);
	}
	p = end();
	CHECK_INT(p->samples.n, 2000);
	CHECK_STR(series(p, &o), "process=web,: 1 samples, 20000\n");
	builder_free(b);
}

/* What a server answers 200 to and does not index. */
TEST(names_and_values)
{
	struct fusee_series_options o = {0};
	const struct fusee_profile *p = begin();

	add(1, 1, "k8s.pod", "a-b", "9th", "x", "a-b/c", "y", "none", "", "\xc3\xa4", "z", NULL);
	add(1, 2, "a.b", "first", "a-b", "second", NULL);
	builder_resource(b, "a_b", "third");
	p = end();
	CHECK_STR(series(p, &o), "_9th=x,__=z,a_b=third,a_b_c=y,k8s_pod=a-b,: 1 samples, 1\n"
				 "a_b=second,: 1 samples, 2\n");
	builder_free(b);
}

TEST(limits)
{
	struct fusee_series_options o = {.max_labels = 2, .max_name = 4, .max_value = 3};
	const struct fusee_profile *p = begin();

	add(1, 1, "c", "1", "a", "a\xc3\xa4\xc3\xa4", "bbbbbb", "2", "bbbbcc", "3", NULL);
	p = end();
	CHECK_STR(series(p, &o), "a=a\xc3\xa4,bbbb=2,: 1 samples, 1\n");
	CHECK_INT(dropped, 1);
	builder_free(b);
}

/* Labels that a backend cannot do without, by the names that a user knows. */
TEST(first_labels)
{
	static const struct fusee_str first[] = {FUSEE_TEXT("z.app"), FUSEE_TEXT("9th"),
						 FUSEE_TEXT("none")};
	struct fusee_series_options o = {.max_labels = 2, .first = {first, 3, sizeof(*first)}};
	const struct fusee_profile *p = begin();

	add(1, 1, "a", "1", "b", "2", "z.app", "shop", NULL);
	add(1, 1, "a", "1", "9th", "x", "z.app", "shop", "z_b", "2", NULL);
	p = end();
	CHECK_STR(series(p, &o), "a=1,z_app=shop,: 1 samples, 1\n"
				 "_9th=x,z_app=shop,: 1 samples, 1\n");
	CHECK_INT(dropped, 3);
	o.max_labels = 1;
	CHECK_STR(series(p, &o), "z_app=shop,: 1 samples, 1\n_9th=x,: 1 samples, 1\n");
	builder_free(b);
}

TEST(many_sets)
{
	struct fusee_series_options o = {0};
	const struct fusee_profile *p = begin();
	const char *at;
	int lines = 0;

	for (uint32_t i = 0; i < 60; i++) {
		char name[16];

		snprintf(name, sizeof(name), "p%u", i);
		for (uint32_t k = 0; k < 3; k++)
			add(k, 1, "process", name, NULL);
	}
	p = end();
	for (at = series(p, &o); (at = strchr(at, '\n')); at++)
		lines++;
	CHECK_INT(lines, 60);
	CHECK(strstr(seen.p, "process=p59,: 3 samples, 3\n"));
	builder_free(b);
}

static int stop(void *arg, const struct fusee_series *s)
{
	const struct fusee_label *l = fusee_series_label(s, "process");

	CHECK(l && fusee_text_is(l->str, "web") && !fusee_series_label(s, "pro"));
	++*(int *)arg;
	return -EAGAIN;
}

TEST(ends_where_each_ends)
{
	struct fusee_series_options o = {0};
	const struct fusee_profile *p = begin();
	int calls = 0;

	add(1, 1, "process", "web", NULL);
	add(1, 1, "process", "db", NULL);
	p = end();
	CHECK_INT(fusee_series_each(p, &o, stop, &calls), -EAGAIN);
	CHECK_INT(calls, 1);
	builder_free(b);
	begin();
	p = end();
	CHECK_STR(series(p, &o), "");
	builder_free(b);
}
