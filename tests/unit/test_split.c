/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/pprof
#include "test.h"

#include "profile/builder.h"
#include "profile/merge.h"
#include "pprof/pprof.h"
#include "report/report.h"
#include "pprof/split.h"
#include "lib/str.h"

static uint32_t location(struct builder *b, uint32_t mapping, uint32_t i)
{
	char name[64], file[64];
	struct fusee_function f = {.start_line = i};
	struct fusee_line line = {.line = i * 3, .column = 4};
	struct fusee_location l = {.address = 0x1000 + i * 16ull, .mapping = mapping};

	snprintf(name, sizeof(name), "function_with_a_name_%u", i);
	snprintf(file, sizeof(file), "/usr/src/part/file_%u.c", i % 50);
	f.name = f.system_name = builder_cstr(b, name);
	f.file = builder_cstr(b, file);
	line.function = builder_function(b, &f);
	l.frame_type = builder_cstr(b, "native");
	l.flags = i % 3 ? 0 : FUSEE_LOCATION_GUESSED;
	return builder_location(b, &l, &line, 1);
}

/* `n` samples of depth 3 to 22, with a thread's name and two values; a third of the locations are
 * in all. */
static const struct fusee_profile *profile_of_all(struct builder **ret, uint32_t n)
{
	const struct fusee_profile *p = NULL;
	struct fusee_mapping m = {.limit = UINT64_MAX};
	struct builder *b;
	uint32_t mapping[2];

	CHECK_INT(builder_new(ret), 0);
	b = *ret;
	builder_type(b, "samples", "count");
	builder_type(b, "cpu", "nanoseconds");
	m.path = builder_cstr(b, "/usr/bin/one");
	mapping[0] = builder_mapping(b, &m);
	m.path = builder_cstr(b, "/usr/lib/libtwo.so");
	m.build_id = builder_cstr(b, "00112233445566778899aabbccddeeff00112233");
	mapping[1] = builder_mapping(b, &m);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t stack[22], depth = 3 + i % 20;
		int64_t values[2] = {1, 10000000 + i};
		char thread[32];
		struct fusee_label l[2] = {{.key = str("thread")},
					   {.key = str("bytes"), .unit = str("bytes"), .num = i}};

		for (uint32_t k = 0; k < depth; k++)
			stack[k] = location(b, mapping[k % 2], k % 3 ? i * 7 + k : k);
		snprintf(thread, sizeof(thread), "worker-%u", i % 9);
		l[0].str = str(thread);
		CHECK_INT(builder_sample(b, builder_stack(b, stack, depth), l, 2, 100 + i % 5, 0,
					 values),
			  0);
	}
	builder_resource(b, "service_name", "part");
	builder_loss(b, LOSS_TICK, "timer skipped", 12);
	builder_comment(b, "made by hand");
	builder_profile(b)->default_type = 1;
	builder_profile(b)->period_type = builder_cstr(b, "cpu");
	builder_profile(b)->period_unit = builder_cstr(b, "nanoseconds");
	builder_profile(b)->kind = builder_cstr(b, "cpu");
	builder_profile(b)->start_ns = 5000000000;
	builder_profile(b)->duration_ns = 1000000000;
	memcpy(builder_profile(b)->id, "0123456789abcdef", 16);
	CHECK_INT(builder_finish(b, &p), 0);
	return p;
}

#define PARTS 4096

struct seen {
	const struct fusee_profile *p;
	struct pprof_file *parts[PARTS];
	uint8_t ids[PARTS][16];
	uint64_t max_samples, max_bytes, samples;
	uint32_t n, stop_at;
	bool small, last_small; /* a part that was not the last is less than half full */
};

static void see_bytes(struct seen *s, const struct fusee_profile *part)
{
	struct buf pprof = {0};
	const char *why = "";

	CHECK_INT(pprof_encode(part, false, &pprof), 0);
	CHECK(!s->max_bytes || pprof.len <= s->max_bytes || part->samples.n == 1);
	CHECK_INT(pprof_decode(pprof.p, pprof.len, &s->parts[s->n], &why), 0);
	CHECK_INT(pprof_profile(s->parts[s->n])->samples.n, part->samples.n);
	s->small |= s->last_small;
	s->last_small = s->max_bytes && pprof.len < s->max_bytes / 2;
	buf_fini(&pprof);
}

static int see(void *arg, const struct fusee_profile *part)
{
	struct seen *s = arg;
	const struct fusee_str *kind;

	CHECK(s->n < PARTS);
	CHECK(!s->max_samples || part->samples.n <= s->max_samples);
	see_bytes(s, part);
	for (uint32_t i = 0; i < s->n; i++)
		CHECK(memcmp(s->ids[i], part->id, 16));
	memcpy(s->ids[s->n], part->id, 16);
	CHECK_INT(part->losses.n, s->n ? 0 : 1);
	CHECK_INT(part->resource.n, 1);
	CHECK_INT(part->comments.n, 1);
	CHECK_INT(part->start_ns, s->p->start_ns);
	kind = FUSEE_AT(struct fusee_str, part->strings, part->kind);
	CHECK(kind->len == 3 && !memcmp(kind->p, "cpu", 3));
	CHECK_INT(part->default_type, 1);
	s->samples += part->samples.n;
	return ++s->n == s->stop_at ? -ECANCELED : 0;
}

static void forget(struct seen *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		pprof_free(s->parts[i]);
	free(s);
}

static struct seen *split(const struct fusee_profile *p, uint64_t max_samples, uint64_t max_bytes)
{
	struct seen *s = calloc(1, sizeof(*s));

	CHECK(s);
	s->p = p;
	s->max_samples = max_samples;
	s->max_bytes = max_bytes;
	CHECK_INT(profile_split(p, max_samples, max_bytes, see, s), 0);
	return s;
}

/* All parts together have the stacks and sums of the profile. */
static void check_all(const struct seen *s)
{
	static const struct render_options none;
	const struct fusee_profile *parts[PARTS], *put = NULL;
	struct buf a = {0}, b = {0};
	struct builder *m;
	uint32_t odd;

	for (uint32_t i = 0; i < s->n; i++)
		parts[i] = pprof_profile(s->parts[i]);
	CHECK_INT(builder_new(&m), 0);
	CHECK_INT(merge_profiles(m, parts, s->n, &odd), 0);
	CHECK_INT(builder_finish(m, &put), 0);
	CHECK_INT(put->samples.n, s->p->samples.n);
	CHECK_INT(FUSEE_AT(struct fusee_label, put->losses, 0)->num, 12);
	CHECK_INT(render_folded(put, NULL, &none, &a), 0);
	CHECK_INT(render_folded(s->p, NULL, &none, &b), 0);
	CHECK(a.len == b.len && a.len && !memcmp(a.p, b.p, a.len));
	buf_fini(&a);
	buf_fini(&b);
	builder_free(m);
}

static uint32_t check_split(uint32_t samples, uint64_t max_samples, uint64_t max_bytes)
{
	struct builder *b;
	const struct fusee_profile *p = profile_of_all(&b, samples);
	struct seen *s = split(p, max_samples, max_bytes), *again;
	uint32_t n = s->n;

	CHECK_INT(s->samples, samples);
	CHECK(!s->small);
	check_all(s);
	again = split(p, max_samples, max_bytes);
	CHECK_INT(again->n, n);
	CHECK(!memcmp(s->ids, again->ids, sizeof(s->ids)));
	forget(s);
	forget(again);
	builder_free(b);
	return n;
}

TEST(by_samples)
{
	CHECK_INT(check_split(1000, 300, 0), 4);
	CHECK_INT(check_split(1000, 500, 0), 2);
	CHECK_INT(check_split(1000, 999, 0), 2);
	CHECK_INT(check_split(40, 1, 0), 40);
}

TEST(by_bytes)
{
	CHECK(check_split(2000, 0, 64 << 10) > 5);
	CHECK(check_split(2000, 0, 8 << 10) > 50);
	CHECK(check_split(2000, 20, 16 << 10) >= 100);
}

/* More than one sample can't be had: one is what a part has. */
TEST(a_sample_that_is_too_large)
{
	CHECK_INT(check_split(30, 0, 10), 30);
}

static int same(void *arg, const struct fusee_profile *part)
{
	const struct fusee_profile **p = arg;

	CHECK(part == *p);
	*p = NULL;
	return 7;
}

TEST(what_fits_is_handed_on_as_it_is)
{
	struct builder *b;
	const struct fusee_profile *p = profile_of_all(&b, 100), *seen = p;

	CHECK_INT(profile_split(p, 0, 0, same, &seen), 7);
	CHECK(!seen);
	seen = p;
	CHECK_INT(profile_split(p, 100, 1 << 20, same, &seen), 7);
	builder_free(b);
	p = seen = profile_of_all(&b, 0);
	CHECK_INT(profile_split(p, 1, 1, same, &seen), 7);
	builder_free(b);
}

static int fewer(void *arg, const struct fusee_profile *part)
{
	const struct fusee_profile *p = arg;

	CHECK_INT(part->samples.n, p->samples.n);
	CHECK(part->functions.n < p->functions.n && part->locations.n < p->locations.n);
	CHECK(!memcmp(part->id, p->id, sizeof(p->id)));
	return 0;
}

/* What a sink makes of a profile: some of its samples, with the tables of all. */
TEST(only_what_its_samples_use)
{
	struct builder *b;
	struct fusee_profile some = *profile_of_all(&b, 100);

	some.samples.n = 10;
	some.values.n = 10 * some.types.n;
	CHECK_INT(profile_split(&some, 0, 0, fewer, &some), 0);
	builder_free(b);
}

TEST(stops_at_the_first_error)
{
	struct seen *s = calloc(1, sizeof(*s));
	struct builder *b;

	s->p = profile_of_all(&b, 100);
	s->stop_at = 3;
	CHECK_INT(profile_split(s->p, 10, 0, see, s), -ECANCELED);
	CHECK_INT(s->n, 3);
	forget(s);
	builder_free(b);
}

/* Other samples are other parts, for a backend that drops those that it had. */
TEST(ids_follow_from_what_is_inside)
{
	struct builder *b;
	const struct fusee_profile *p = profile_of_all(&b, 100);
	struct seen *tens = split(p, 10, 0), *twenties = split(p, 20, 0);

	for (uint32_t i = 0; i < tens->n; i++)
		for (uint32_t k = 0; k < twenties->n; k++)
			CHECK(memcmp(tens->ids[i], twenties->ids[k], 16));
	forget(tens);
	forget(twenties);
	builder_free(b);
}

TEST(times_and_labels_stay_with_their_samples)
{
	struct builder *b;
	struct fusee_profile p = *profile_of_all(&b, 20);
	struct fusee_sample samples[20];
	uint64_t times[20];
	struct seen *s;

	for (uint32_t i = 0; i < 20; i++) {
		samples[i] = *FUSEE_AT(struct fusee_sample, p.samples, i);
		samples[i].ntimes = 1;
		samples[i].first_time = i;
		times[i] = 1000 + i;
	}
	p.samples.at = samples;
	p.times = (struct fusee_table){times, 20, sizeof(*times)};
	s = split(&p, 6, 0);
	CHECK_INT(s->n, 4);
	for (uint32_t i = 0; i < 20; i++) {
		const struct fusee_profile *part = pprof_profile(s->parts[i / 6]);
		const struct fusee_sample *x = FUSEE_AT(struct fusee_sample, part->samples, i % 6);
		bool found = false;

		for (uint32_t k = 0; k < x->nlabels; k++) {
			const struct fusee_label *l = FUSEE_AT(struct fusee_label, part->labels,
							       x->first_label + k);

			if (l->key.len == 5 && !memcmp(l->key.p, "bytes", 5))
				found = l->num == i;
		}
		CHECK(found);
		CHECK_INT(*FUSEE_AT(int64_t, part->values, 2 * (i % 6) + 1), 10000000 + i);
	}
	forget(s);
	builder_free(b);
}

static int none(void *arg, const struct fusee_profile *part)
{
	CHECK(!"handed on");
	return 0;
}

TEST(an_index_that_leads_nowhere)
{
	struct builder *b;
	const struct fusee_profile *good = profile_of_all(&b, 5);
	struct fusee_sample bad = {.stack = 6};
	struct fusee_profile p = *good;

	p.samples = (struct fusee_table){&bad, 1, sizeof(bad)};
	CHECK_INT(profile_split(&p, 1, 0, none, NULL), -EINVAL);
	bad = (struct fusee_sample){.ntimes = 1};
	CHECK_INT(profile_split(&p, 1, 0, none, NULL), -EINVAL);
	bad = (struct fusee_sample){.first_label = UINT32_MAX, .nlabels = 1};
	CHECK_INT(profile_split(&p, 1, 0, none, NULL), -EINVAL);
	p = *good;
	p.kind = p.strings.n;
	CHECK_INT(profile_split(&p, 1, 0, none, NULL), -EINVAL);
	p = *good;
	p.values.n--;
	CHECK_INT(profile_split(&p, 1, 0, none, NULL), -EINVAL);
	builder_free(b);
}

/* ---- builder_bytes ---- */

TEST(bytes_of_a_builder)
{
	struct builder *b;
	char text[1000];
	uint64_t empty, filled;

	CHECK_INT(builder_new(&b), 0);
	empty = builder_bytes(b);
	CHECK(empty > 1000 && empty < 20000);
	for (uint32_t i = 0; i < 1000; i++) {
		memset(text, 'a' + (int)(i % 26), sizeof(text));
		memcpy(text, &i, sizeof(i));
		for (int k = 0; k < 4; k++)
			text[k] &= 0x7f;
		text[4] = (char)('0' + i / 128);
		builder_string(b, text, sizeof(text));
	}
	filled = builder_bytes(b);
	CHECK(filled > 1000000 && filled < 1300000);
	builder_free(b);
	profile_of_all(&b, 100);
	filled = builder_bytes(b);
	CHECK(filled > 100000 && filled < 1000000);
	builder_free(b);
	profile_of_all(&b, 1000);
	CHECK(builder_bytes(b) > 8 * filled && builder_bytes(b) < 12 * filled);
	builder_free(b);
}
