/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/profile/builder.c core/profiler/build_labels.c
// core/profiler/build_profile.c
/* Each sample of a profile has the labels of its process, set, thread, CPU, sampler and program,
 * also where those of few samples were looked up. */
#include <fusee/helpers.h>

#include "lib/profiles.h"
#include "lib/random.h"
#include "pipeline/state.h"
#include "plugin/instance.h"
#include "profiler/build_profile.h"
#include "profiler/profiler.h"

#define SAMPLES 20000u
#define MOST 2000u /* more than is noted */

/* Of sample i, whose tid is i + 1. */
struct expected {
	uint32_t set, process, comm, cpu, part;
	bool texts;
};

static struct expected all[SAMPLES];
static char part_text[16];

static int part_label(void *ctx, uint32_t number, struct fusee_label *ret)
{
	(void)ctx;
	snprintf(part_text, sizeof(part_text), "part-%u", number);
	*ret = fusee_text_label("part", part_text);
	return 0;
}

static const struct fusee_label *set_labels(void *arg, uint32_t set, uint32_t *n)
{
	static struct fusee_label labels[2];
	static char text[16];

	(void)arg;
	snprintf(text, sizeof(text), "set-%u", set);
	labels[0] = fusee_text_label("set", text);
	labels[1] = fusee_text_label("process", "that of the set");
	*n = 2;
	return labels;
}

static void add_sample(struct collector *c, uint32_t i)
{
	static const unsigned char texts[] = "\4\3nameown";
	const struct expected *e = &all[i];
	struct process process = {.id = e->process + 1, .pid = 7};
	struct collected_at at = {.time_ns = 1, .cpu = e->cpu};
	const struct collected_parts parts = {
		.set = e->set, .tid = i + 1, .n = 1, .part = {{1, e->part, 1}}};
	char comm[16];

	snprintf(process.name, sizeof(process.name), "process-%u", e->process);
	snprintf(comm, sizeof(comm), "thread-%u", e->comm);
	if (e->part)
		CHECK_INT(collector_add_parts(c, &process, &parts, comm, NULL, 0, &at), 0);
	else
		CHECK_INT(collector_add(c, &process, e->set, i + 1, comm, NULL, 0, 1, &at), 0);
	if (e->texts)
		collector_set_ids(
			c, &(struct sample_ids){.texts = texts, .texts_len = sizeof(texts) - 1});
}

static void check_label(const struct fusee_profile *p, const struct fusee_sample *s,
			const char *key, const char *format, uint32_t n)
{
	char text[32] = "";

	if (format)
		snprintf(text, sizeof(text), format, n);
	for (uint32_t i = 0; i < s->nlabels; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->labels,
						       s->first_label + i);

		if (!fusee_text_is(l->key, key))
			continue;
		CHECK(fusee_text_is(l->str, text));
		return;
	}
	CHECK(!format);
}

static void check_sample(const struct fusee_profile *p, const struct fusee_sample *s)
{
	const struct expected *e = &all[s->tid - 1];

	check_label(p, s, "process", "process-%u", e->process);
	check_label(p, s, "thread", "thread-%u", e->comm);
	check_label(p, s, "cpu", "%u", e->cpu);
	check_label(p, s, "set", "set-%u", e->set);
	check_label(p, s, "part", e->part ? "part-%u" : NULL, e->part);
	check_label(p, s, "name", e->texts ? "own" : NULL, 0);
}

/* Most samples differ from others by one of what their labels are made of. */
static void choose(void)
{
	for (uint32_t i = 0; i < SAMPLES; i++) {
		uint32_t any = random32() % MOST, which = i % 5;

		all[i] = (struct expected){.set = which == 0 ? any : 0,
					   .process = which == 1 ? any : 0,
					   .comm = which == 2 ? any : 0,
					   .cpu = which == 3 ? any * 16 : 0,
					   .part = which == 4 ? any : 0,
					   .texts = random32() % 8 == 0};
	}
}

TEST(each_sample_has_its_own_labels)
{
	const struct fusee_sampler_ops ops = {.type = "type", .unit = "unit", .label = part_label};
	const struct fusee_plugin plugin = {.ops = &ops};
	struct fusee_instance instance = {.descriptor = &plugin};
	struct plugin_set none = {0};
	struct files files = {.n = 1};
	struct pipeline pipeline = {.files = &files};
	struct profiler profiler = {.pipeline = &pipeline, .choosers = {{&instance}, 1}};
	const struct build_options o = {.period_ns = 1, .labels = set_labels};
	const struct fusee_profile *p;
	struct collector *c;
	struct builder *b;

	CHECK_INT(claims_new(&pipeline.claims, &none), 0);
	CHECK_INT(symbolizer_new(&profiler.symbolizer, &files, NULL, true), 0);
	CHECK_INT(collector_new(&c), 0);
	choose();
	for (uint32_t i = 0; i < SAMPLES; i++)
		add_sample(c, i);
	CHECK_INT(builder_new(&b), 0);
	CHECK_INT(build_profile(b, &profiler, c, &o), 0);
	p = finished(b);
	CHECK_INT(p->samples.n, SAMPLES);
	for (uint32_t i = 0; i < SAMPLES; i++)
		check_sample(p, FUSEE_AT(struct fusee_sample, p->samples, i));
	builder_free(b);
	collector_free(c);
	symbolizer_free(profiler.symbolizer);
	claims_free(pipeline.claims);
}
