/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/delivery core/pprof core/profile
/* core/delivery/scraped: what is made of the bytes of a server, and the labels that each sink sees.
 */
#include "delivery/scraped.h"

#include <fusee/helpers.h>

#include "lib/profiles.h"
#include "pprof/pprof.h"
#include "relabel/rules.h"

#define NOW 1795357844000000000ull
#define MIB (1ull << 20)

/* A sample with 3 samples and 30 ns, whose own labels have these keys. */
static struct buf encoded(bool gzip, const char *key, const char *other)
{
	const struct fusee_label labels[] = {fusee_text_label(key, "theirs"),
					     fusee_text_label(other, "b")};
	const int64_t values[] = {3, 30};
	struct builder *b = new_builder();
	const uint32_t main = builder_function(
		b, &(struct fusee_function){.name = builder_cstr(b, "main"),
					    .system_name = builder_cstr(b, "main")});
	const uint32_t at = builder_location(b, &(struct fusee_location){.address = 16},
					     &(struct fusee_line){.function = main}, 1);
	struct buf out = {0};

	CHECK_INT(builder_sample(b, builder_stack(b, &at, 1), labels, 2, 0, 0, values), 0);
	builder_profile(b)->start_ns = 5;
	builder_profile(b)->duration_ns = 2 * FUSEE_SECOND;
	CHECK_INT(pprof_encode(finished(b), gzip, &out), 0);
	builder_free(b);
	return out;
}

static const struct fusee_label ours[2] = {
	{.key = {"job", 3}, .str = {"shop", 4}},
	{.key = {"instance", 8}, .str = {"web:6060", 8}},
};

static struct fusee_pprof of(const struct buf *bytes)
{
	return (struct fusee_pprof){.size = sizeof(struct fusee_pprof),
				    .bytes = {bytes->p, bytes->len},
				    .kind = fusee_text("mutex"),
				    .labels = {ours, 2, sizeof(ours[0])},
				    .max_bytes = MIB,
				    .start_ns = NOW,
				    .took_ns = 3 * FUSEE_SECOND};
}

static struct scraped *scraped(bool gzip, const char *key, const char *other)
{
	struct buf bytes = encoded(gzip, key, other);
	struct fusee_pprof p = of(&bytes);
	struct scraped *s = NULL;
	const char *why;

	CHECK_INT(scraped_new(&s, &p, &why), 0);
	CHECK_STR(why, "");
	buf_fini(&bytes);
	return s;
}

static char *no_omit[] = {NULL};

static struct builder *built(struct scraped *s, char **omit, struct relabel_rules *rules)
{
	const struct plan_instance plan = {.name = "sink.x", .omit = omit, .relabel = rules};
	const char *dropped;
	struct builder *b = NULL;

	CHECK_INT(scraped_build(s, &plan, &b, &dropped), 0);
	CHECK(!dropped);
	return b;
}

/* "job=shop instance=web:6060" */
static const char *labels_of(struct fusee_table labels)
{
	static char text[400];
	int n = 0;

	*text = '\0';
	FUSEE_FOR_EACH (struct fusee_label, l, labels)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%.*s=%.*s", n ? " " : "",
			      (int)l->key.len, l->key.p, (int)l->str.len, l->str.p);
	return text;
}

TEST(values_types_and_time)
{
	struct scraped *s = scraped(true, "a", "b");
	struct builder *b = built(s, no_omit, NULL);
	const struct fusee_profile *p = builder_profile(b);

	scraped_free(s); /* the sink still has it */
	CHECK_INT(p->types.n, 2);
	CHECK_INT(p->samples.n, 1);
	CHECK_INT(*FUSEE_AT(int64_t, p->values, 0), 3);
	CHECK_INT(*FUSEE_AT(int64_t, p->values, 1), 30);
	CHECK(fusee_text_is(*FUSEE_AT(struct fusee_str, p->strings, p->kind), "mutex"));
	CHECK_STR(labels_of(p->resource), "instance=web:6060 job=shop");
	CHECK_STR(labels_of(p->labels), "a=theirs b=b");
	/* by this machine's clock: it ended with the request */
	CHECK_INT(p->start_ns, NOW + FUSEE_SECOND);
	CHECK_INT(p->duration_ns, 2 * FUSEE_SECOND);
	CHECK(builder_bytes(b) > 1000);
	builder_free(b);
}

TEST(labels_of_a_server_do_not_replace_ours)
{
	struct scraped *s = scraped(false, "job", "exported_job");
	struct builder *b = built(s, no_omit, NULL);

	CHECK_STR(labels_of(builder_profile(b)->labels),
		  "exported_exported_job=theirs exported_job=b");
	CHECK_STR(labels_of(builder_profile(b)->resource), "instance=web:6060 job=shop");
	builder_free(b);
	/* another sink, whose profile has no label job */
	b = built(s, (char *[]){"job", NULL}, NULL);
	CHECK_STR(labels_of(builder_profile(b)->labels), "job=theirs exported_job=b");
	CHECK_STR(labels_of(builder_profile(b)->resource), "instance=web:6060");
	builder_free(b);
	scraped_free(s);
}

static struct relabel_rules *rules(char *action, char *source, char *target)
{
	const struct fusee_str from = fusee_text(source);
	struct relabel_rule_text text = {.action = action,
					 .source_labels = {&from, 1, sizeof(from)},
					 .separator = ";",
					 .regex = "sh(.*)",
					 .target_label = target,
					 .replacement = "$1"};
	struct relabel_rules *r = relabel_rules_new("f.lua:1");
	char *wrong = NULL;

	CHECK(r);
	CHECK_INT(relabel_rules_add(r, &text, &wrong), 0);
	return r;
}

TEST(rules_of_a_sink)
{
	struct scraped *s = scraped(true, "a", "b");
	struct relabel_rules *sets = rules("replace", "job", "x"),
			     *drops = rules("drop", "job", "");
	const struct plan_instance plan = {.name = "sink.x", .omit = no_omit, .relabel_all = drops};
	struct builder *b = built(s, no_omit, sets);
	const char *dropped;

	CHECK_STR(labels_of(builder_profile(b)->resource), "instance=web:6060 job=shop x=op");
	builder_free(b);
	CHECK_INT(scraped_build(s, &plan, &b, &dropped), -ECANCELED);
	CHECK_STR(dropped, "drop");
	scraped_free(s);
	relabel_rules_free(sets);
	relabel_rules_free(drops);
}

static void refused(struct fusee_pprof p, int err, const char *sentence)
{
	struct scraped *s = NULL;
	const char *why;

	CHECK_INT(scraped_new(&s, &p, &why), err);
	CHECK_STR(why, sentence);
	CHECK(!s);
}

TEST(bytes_that_are_no_profile)
{
	struct buf bytes = encoded(true, "a", "b"), plain = encoded(false, "a", "b"), many = {0};
	struct fusee_pprof p = of(&bytes);
	struct builder *b;

	for (size_t n = 1; n < bytes.len; n++) {
		struct fusee_pprof part = p;
		struct scraped *s = NULL;
		const char *why;

		part.bytes.len = n;
		CHECK_INT(scraped_new(&s, &part, &why), -EINVAL);
	}
	p.bytes = (struct fusee_str){"", 0};
	refused(p, -EINVAL, "the file is empty");
	p = of(&bytes);
	p.max_bytes = plain.len - 1;
	refused(p, -EFBIG, "the profile is larger than its limit uncompressed");
	p = of(&plain);
	p.max_bytes = plain.len - 1;
	refused(p, -EFBIG, "the profile is larger than its limit");
	p.max_bytes = plain.len;
	p.kind = fusee_text("a\nb");
	refused(p, -EINVAL, "the labels are not valid");

	CHECK_INT(builder_new(&b), 0);
	for (uint32_t i = 0; i <= SCRAPED_MAX_TYPES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "t%u", i);
		builder_type(b, name, "count");
	}
	CHECK_INT(pprof_encode(finished(b), true, &many), 0);
	builder_free(b);
	refused(of(&many), -EINVAL, "the profile has more than 32 sample types");
	buf_fini(&many);
	buf_fini(&plain);
	buf_fini(&bytes);
}
