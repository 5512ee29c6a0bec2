/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/profile core/pprof
#include "test.h"

#include <zlib.h>

#include "profile.pb-c.h"
#include "profile/builder.h"
#include "pprof/pprof.h"
#include "base/utf8.h"

#include "lib/random.h"
#include "lib/profiles.h"

typedef Perftools__Profiles__Profile Profile;

/* ---- a profile as text, sorted: two that say the same give the same ---- */

static void put(struct buf *out, const struct fusee_profile *p, uint32_t string)
{
	const struct fusee_str *s = FUSEE_AT(struct fusee_str, p->strings, string);

	buf_add(out, s->p, s->len);
}

static void put_location(struct buf *out, const struct fusee_profile *p, uint32_t i)
{
	const struct fusee_location *l = FUSEE_AT(struct fusee_location, p->locations, i);
	const struct fusee_mapping *m = FUSEE_AT(struct fusee_mapping, p->mappings, l->mapping);

	buf_printf(out, " %llx@", (unsigned long long)l->address);
	put(out, p, m->path);
	buf_printf(out, "/%llx-%llx+%llx/", (unsigned long long)m->start,
		   (unsigned long long)m->limit, (unsigned long long)m->offset);
	put(out, p, m->build_id);
	for (uint32_t k = 0; k < l->nlines; k++) {
		const struct fusee_line *line = FUSEE_AT(struct fusee_line, p->lines,
							 l->first_line + k);
		const struct fusee_function *f = FUSEE_AT(struct fusee_function, p->functions,
							  line->function);

		buf_str(out, "(");
		put(out, p, f->name);
		buf_str(out, "|");
		put(out, p, f->system_name ? f->system_name : f->name);
		buf_str(out, "|");
		put(out, p, f->file);
		buf_printf(out, "|%u|%u:%u)", f->start_line, line->line, line->column);
	}
}

static char *line_of(const struct fusee_profile *p, uint32_t i)
{
	const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, i);
	const struct fusee_stack *stack = FUSEE_AT(struct fusee_stack, p->stacks, s->stack);
	struct buf out = {0};

	for (uint32_t k = 0; k < p->types.n; k++)
		buf_printf(&out, "%lld ",
			   (long long)*FUSEE_AT(int64_t, p->values, (uint64_t)i * p->types.n + k));
	buf_printf(&out, "pid %u tid %u", s->pid, s->tid);
	for (uint32_t k = 0; k < stack->n; k++)
		put_location(&out, p, *FUSEE_AT(uint32_t, p->stack_locations, stack->first + k));
	for (uint32_t pass = 0; pass < 26; pass++) {
		for (uint32_t k = 0; k < s->nlabels; k++) {
			const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->labels,
							       s->first_label + k);

			if (*l->key.p != (char)('a' + pass))
				continue;
			buf_printf(&out, " {%.*s=%.*s %lld %.*s}", (int)l->key.len, l->key.p,
				   (int)l->str.len, l->str.p ? l->str.p : "", (long long)l->num,
				   (int)l->unit.len, l->unit.p ? l->unit.p : "");
		}
	}
	buf_add(&out, "", 1);
	return out.p;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char **lines_of(const struct fusee_profile *p)
{
	char **lines = calloc(p->samples.n + 1, sizeof(*lines));

	for (uint32_t i = 0; i < p->samples.n; i++)
		lines[i] = line_of(p, i);
	qsort(lines, p->samples.n, sizeof(*lines), compare);
	return lines;
}

static void check_same(const struct fusee_profile *a, const struct fusee_profile *b)
{
	char **x = lines_of(a), **y = lines_of(b);

	CHECK_INT(a->samples.n, b->samples.n);
	for (uint32_t i = 0; i < a->samples.n; i++) {
		CHECK_STR(x[i], y[i]);
		free(x[i]);
		free(y[i]);
	}
	free(x);
	free(y);
	CHECK_INT(a->types.n, b->types.n);
	CHECK_INT(a->default_type, b->default_type);
	CHECK_INT(a->period, b->period);
	CHECK_INT(a->start_ns, b->start_ns);
	CHECK_INT(a->duration_ns, b->duration_ns);
	CHECK_INT(a->losses.n, b->losses.n);
	CHECK_INT(a->comments.n, b->comments.n);
}

/* ---- profiles ---- */

static uint32_t function(struct builder *b, const char *name, const char *file, uint32_t start)
{
	struct fusee_function f = {.name = builder_cstr(b, name),
				   .system_name = builder_cstr(b, name),
				   .file = builder_cstr(b, file),
				   .start_line = start};

	return builder_function(b, &f);
}

/* Two mappings of which the second is the program, an inlined call, labels of all kinds, losses. */
static struct builder *example(void)
{
	struct builder *b;
	struct fusee_profile *p;
	struct fusee_mapping libc, prog;
	struct fusee_label labels[] = {{.key = str("thread"), .str = str("work\xc3")},
				       {.key = str("bytes"), .num = 4096, .unit = str("bytes")}};
	struct fusee_location l = {0};
	uint32_t stack[3];
	const int64_t v[] = {2, 20000000}, w[] = {-1, -10000000};

	CHECK_INT(builder_new(&b), 0);
	libc = (struct fusee_mapping){.path = builder_cstr(b, "/lib/libc.so.6"),
				      .build_id = builder_cstr(b, "abcd"),
				      .limit = UINT64_MAX};
	prog = (struct fusee_mapping){.path = builder_cstr(b, "/bin/prog"),
				      .limit = UINT64_MAX,
				      .flags = FUSEE_MAPPING_MAIN | FUSEE_MAPPING_FUNCTIONS};
	builder_type(b, "samples", "count");
	builder_type(b, "cpu", "nanoseconds");
	l.mapping = builder_mapping(b, &libc);
	l.address = 0x1000;
	l.flags = FUSEE_LOCATION_STUB;
	stack[0] = builder_location(
		b, &l, (struct fusee_line[]){{.function = function(b, "libc.so.6+0x1000", "", 0)}},
		1);
	l = (struct fusee_location){.mapping = builder_mapping(b, &prog), .address = 0x2000};
	stack[1] = builder_location(
		b, &l,
		(struct fusee_line[]){{function(b, "inner", "a.c", 10), 12, 3, FUSEE_LINE_INLINED},
				      {function(b, "outer", "a.c", 20), 25, 0, 0}},
		2);
	l.address = 0x3000;
	stack[2] = builder_location(
		b, &l, (struct fusee_line[]){{function(b, "main", "b.c", 1), 5, 0, 0}}, 1);
	builder_sample(b, builder_stack(b, stack, 3), labels, 2, 77, 78, v);
	builder_sample(b, builder_stack(b, stack + 1, 2), labels, 1, 77, 0, w);
	builder_sample(b, 0, NULL, 0, 0, 0, v);
	p = builder_profile(b);
	p->default_type = 1;
	p->period_type = builder_cstr(b, "cpu");
	p->period_unit = builder_cstr(b, "nanoseconds");
	p->period = 10101010;
	p->start_ns = 1700000000000000000ull;
	p->duration_ns = 5000000000ull;
	builder_loss(b, LOSS_TICK, "timer skipped", 12);
	builder_loss(b, LOSS_STACK, "too deep", 3);
	builder_comment(b, "host %s", "x");
	return b;
}

static Profile *unpack(const struct buf *b)
{
	Profile *p = perftools__profiles__profile__unpack(NULL, b->len, (const uint8_t *)b->p);

	CHECK(p);
	return p;
}

/* As pprof's own schema has it. */
static Profile *encoded(struct builder *b)
{
	struct buf out = {0};
	Profile *p;

	CHECK_INT(pprof_encode(finished(b), false, &out), 0);
	p = unpack(&out);
	buf_fini(&out);
	return p;
}

static struct pprof_file *decode(const struct buf *b)
{
	struct pprof_file *f = NULL;
	const char *text;

	if (pprof_decode(b->p, b->len, &f, &text)) {
		fprintf(stderr, "# %s\n", text);
		exit(1);
	}
	CHECK_STR(text, "");
	return f;
}

/* Checks texts, ids and references of an encoded profile. */
static void check_strict(const Profile *p)
{
	CHECK(p->n_string_table && !*p->string_table[0]);
	for (size_t i = 0; i < p->n_string_table; i++)
		CHECK(utf8_valid(p->string_table[i], strlen(p->string_table[i])));
	for (size_t i = 0; i < p->n_mapping; i++)
		CHECK_INT(p->mapping[i]->id, i + 1);
	for (size_t i = 0; i < p->n_function; i++)
		CHECK_INT(p->function[i]->id, i + 1);
	for (size_t i = 0; i < p->n_location; i++) {
		CHECK_INT(p->location[i]->id, i + 1);
		CHECK(p->location[i]->mapping_id <= p->n_mapping);
		for (size_t k = 0; k < p->location[i]->n_line; k++)
			CHECK(p->location[i]->line[k]->function_id - 1 < p->n_function);
	}
	for (size_t i = 0; i < p->n_sample; i++) {
		CHECK(p->sample[i]->n_location_id > 0);
		CHECK_INT(p->sample[i]->n_value, p->n_sample_type);
		for (size_t k = 0; k < p->sample[i]->n_location_id; k++)
			CHECK(p->sample[i]->location_id[k] - 1 < p->n_location);
		for (size_t k = 0; k < p->sample[i]->n_label; k++) {
			CHECK(p->sample[i]->label[k]->key);
			for (size_t j = 0; j < k; j++)
				CHECK(p->sample[i]->label[k]->key != p->sample[i]->label[j]->key);
		}
	}
}

#define TEST_OF_BUILDER(id) TEST_WITH(id, struct builder *, b, example(), builder_free(b))

TEST_OF_BUILDER(encoded_to_the_letter)
{
	Profile *p = encoded(b);

	check_strict(p);
	CHECK_STR(p->string_table[p->mapping[0]->filename], "/bin/prog");
	CHECK(p->mapping[0]->has_functions && !p->mapping[1]->has_functions);
	CHECK_INT(p->mapping[0]->memory_start, 0);
	CHECK_INT(p->mapping[0]->memory_limit, UINT64_MAX);
	CHECK_STR(p->string_table[p->default_sample_type], "cpu");
	CHECK_INT(p->location[1]->n_line, 2);
	CHECK_STR(p->string_table[p->function[p->location[1]->line[0]->function_id - 1]->name],
		  "inner");
	CHECK_INT(p->function[p->location[1]->line[0]->function_id - 1]->start_line, 10);
	CHECK_STR(p->string_table[p->sample[0]->label[0]->str], "work\xef\xbf\xbd");
	CHECK_INT(p->sample[1]->value[1], -10000000);
	CHECK_INT(p->sample[2]->n_location_id, 1);
	CHECK_STR(p->string_table[p->function[p->location[p->sample[2]->location_id[0] - 1]
						      ->line[0]
						      ->function_id -
					      1]
					  ->name],
		  "[unknown]");
	CHECK_INT(p->n_comment, 3);
	CHECK_STR(p->string_table[p->comment[1]], "fusee: lost 12 samples: timer skipped");
	perftools__profiles__profile__free_unpacked(p, NULL);
}

TEST_OF_BUILDER(round_trip)
{
	const struct fusee_profile *p = finished(b), *q;
	struct buf out = {0}, again = {0};
	struct pprof_file *f, *g;

	CHECK_INT(pprof_encode(p, true, &out), 0);
	CHECK((uint8_t)out.p[0] == 0x1f && (uint8_t)out.p[1] == 0x8b);
	f = decode(&out);
	q = pprof_profile(f);
	CHECK_INT(q->samples.n, 3);
	CHECK_INT(FUSEE_AT(struct fusee_sample, q->samples, 0)->pid, 77);
	CHECK_INT(FUSEE_AT(struct fusee_sample, q->samples, 0)->tid, 78);
	CHECK_INT(FUSEE_AT(struct fusee_sample, q->samples, 0)->nlabels, 2);
	CHECK_INT(q->losses.n, 2);
	CHECK_INT(FUSEE_AT(struct fusee_label, q->losses, 0)->num, 12);
	CHECK(!strncmp(FUSEE_AT(struct fusee_label, q->losses, 0)->key.p, "timer skipped", 13));
	CHECK_INT(q->comments.n, 1);
	CHECK(FUSEE_AT(struct fusee_mapping, q->mappings, 1)->flags & FUSEE_MAPPING_MAIN);
	CHECK(FUSEE_AT(struct fusee_location, q->locations, 1)->flags & FUSEE_LOCATION_STUB);
	CHECK_INT(FUSEE_AT(struct fusee_location, q->locations, 4)->flags, FUSEE_LOCATION_REASON);
	/* from here on nothing changes any more */
	CHECK_INT(pprof_encode(q, true, &again), 0);
	g = decode(&again);
	check_same(q, pprof_profile(g));
	pprof_free(f);
	pprof_free(g);
	pprof_free(NULL);
	buf_fini(&out);
	buf_fini(&again);
}

static uint64_t time_of(const struct fusee_profile *p, uint32_t sample, uint32_t i)
{
	const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, sample);

	return i < s->ntimes ? *FUSEE_AT(uint64_t, p->times, s->first_time + i) : 0;
}

/* Times of samples are in order in the file, whatever the order of their addition; before the
 * start, and behind 2^63. */
TEST(times_of_samples)
{
	const uint64_t start = 1700000000000000000ull;
	int64_t one[] = {1};
	const struct fusee_profile *q;
	struct buf out = {0};
	struct pprof_file *f;
	struct builder *b;

	CHECK_INT(builder_new(&b), 0);
	builder_type(b, "samples", "count");
	builder_profile(b)->start_ns = start;
	CHECK_INT(builder_time(b, start), 0); /* of no sample */
	for (uint32_t i = 0; i < 3; i++) {
		CHECK_INT(builder_sample(b, 0, NULL, 0, 7, 8, one), 0);
		CHECK_INT(builder_time(b, start + 900 - 400 * i), 0);
	}
	CHECK_INT(builder_sample(b, 0, NULL, 0, 7, 9, one), 0);
	CHECK_INT(builder_sample(b, 0, NULL, 0, 7, 10, one), 0);
	CHECK_INT(builder_time(b, UINT64_MAX), 0);
	CHECK_INT(pprof_encode(finished(b), true, &out), 0);
	f = decode(&out);
	q = pprof_profile(f);
	CHECK_INT(q->times.n, 4);
	CHECK_INT(time_of(q, 0, 0), start + 100);
	CHECK_INT(time_of(q, 0, 1), start + 500);
	CHECK_INT(time_of(q, 0, 2), start + 900);
	CHECK_INT(time_of(q, 1, 0), 0);
	CHECK(time_of(q, 2, 0) == UINT64_MAX);
	pprof_free(f);
	builder_free(b);
	buf_fini(&out);
}

/* A flag is at the end of a system name only; functions with other flags are others. */
TEST(flags_of_functions)
{
	static const struct {
		const char *name;
		uint32_t flags;
	} want[] = {
		{"plain", 0},
		{"plain", FUSEE_FRAME_HIDDEN},
		{"plain", FUSEE_FRAME_ASYNC | FUSEE_FRAME_BUILTIN | FUSEE_FRAME_HIDDEN},
		{"x [y]", FUSEE_FRAME_BUILTIN},
		{"x [hidden,y]", 0},
		{"x [,hidden]", 0},
		{"[hidden]", 0},
		{"x[hidden]", 0},
		{"]", 0},
		{" [async]", FUSEE_FRAME_ASYNC},
	};
	const uint32_t n = sizeof(want) / sizeof(want[0]);
	const struct fusee_profile *p;
	struct pprof_file *file;
	struct builder *b;
	struct buf out = {0};

	CHECK_INT(builder_new(&b), 0);
	builder_type(b, "samples", "count");
	for (uint32_t i = 0; i < n; i++) {
		struct fusee_function f = {.name = builder_cstr(b, want[i].name),
					   .flags = want[i].flags};

		CHECK_INT(builder_function(b, &f), i + 1);
	}
	CHECK_INT(pprof_encode(finished(b), false, &out), 0);
	file = decode(&out);
	p = pprof_profile(file);
	CHECK_INT(p->functions.n, n + 1);
	for (uint32_t i = 0; i < n; i++) {
		const struct fusee_function *f = FUSEE_AT(struct fusee_function, p->functions,
							  i + 1);
		const struct fusee_str *s = FUSEE_AT(struct fusee_str, p->strings, f->system_name);

		CHECK_INT(f->flags, want[i].flags);
		CHECK(s->len == strlen(want[i].name) && !memcmp(s->p, want[i].name, s->len));
	}
	pprof_free(file);
	buf_fini(&out);
	builder_free(b);
}

/* A guessed location has marked functions of its own, which are the same again when they are read.
 */
TEST(guessed_locations_come_back)
{
	struct fusee_location l = {.address = 0x1000};
	const struct fusee_profile *p;
	struct pprof_file *file;
	const int64_t one = 1;
	struct builder *b;
	struct buf out = {0};
	uint32_t stack[3], f;
	bool found = false;

	CHECK_INT(builder_new(&b), 0);
	builder_type(b, "samples", "count");
	f = function(b, "often", "a.c", 10);
	stack[0] = builder_location(b, &l, (struct fusee_line[]){{f, 12, 0, 0}}, 1);
	l.flags = FUSEE_LOCATION_GUESSED;
	stack[1] = builder_location(b, &l, (struct fusee_line[]){{f, 12, 0, 0}}, 1);
	l.address = 0x2000;
	stack[2] = builder_location(
		b, &l,
		(struct fusee_line[]){{f, 13, 0, FUSEE_LINE_INLINED},
				      {function(b, "rare", "a.c", 20), 1, 0, 0}},
		2);
	builder_sample(b, builder_stack(b, stack, 3), NULL, 0, 0, 0, &one);
	builder_sample(b, 0, NULL, 0, 0, 0, &one); /* whose function is between those */
	CHECK_INT(pprof_encode(finished(b), false, &out), 0);
	for (size_t i = 0; i + 15 <= out.len; i++)
		found |= !memcmp(out.p + i, "often [guessed]", 15);
	CHECK_INT(found, 1);
	file = decode(&out);
	p = pprof_profile(file);
	CHECK_INT(p->functions.n, 4); /* none, often, rare, [unknown] */
	for (uint32_t i = 1; i < 4; i++) {
		const struct fusee_location *to = FUSEE_AT(struct fusee_location, p->locations, i);

		CHECK_INT(!!(to->flags & FUSEE_LOCATION_GUESSED), i > 1);
		CHECK_INT(FUSEE_AT(struct fusee_line, p->lines, to->first_line)->function, 1);
	}
	CHECK_INT(FUSEE_AT(struct fusee_function, p->functions, 1)->flags, 0);
	pprof_free(file);
	buf_fini(&out);
	builder_free(b);
}

TEST(resource_labels_go_on_samples)
{
	struct builder *b;
	struct fusee_label own = {.key = str("unit"), .str = str("mine")};
	const int64_t one = 1;
	Profile *p;

	builder_new(&b);
	builder_type(b, "cpu-clock", "my unit");
	builder_resource(b, "unit", "theirs");
	builder_resource(b, "host", "h");
	builder_sample(b, 0, &own, 1, 0, 0, &one);
	builder_sample(b, 0, NULL, 0, 0, 0, &one);
	p = encoded(b);
	check_strict(p);
	CHECK_INT(p->sample[0]->n_label, 2);
	CHECK_STR(p->string_table[p->sample[0]->label[0]->str], "mine");
	CHECK_STR(p->string_table[p->sample[1]->label[0]->str], "theirs");
	CHECK_STR(p->string_table[p->sample_type[0]->type], "cpu_clock");
	CHECK_STR(p->string_table[p->sample_type[0]->unit], "my_unit");
	perftools__profiles__profile__free_unpacked(p, NULL);
	builder_free(b);
}

#define LABELS 500u
#define SAMPLES 20000u

/* The labels are k0=v0, k1=v1, .. */
static void check_labels(const Profile *p, const Perftools__Profiles__Sample *s,
			 const struct fusee_sample *from)
{
	char text[16];
	bool has_id = from->span_id;

	CHECK_INT(s->n_label, has_id + from->nlabels + 2);
	for (uint32_t i = 0; i < from->nlabels; i++) {
		const Perftools__Profiles__Label *l = s->label[has_id + i];

		snprintf(text, sizeof(text), "k%u", from->first_label + i);
		CHECK_STR(p->string_table[l->key], text);
		*text = 'v';
		CHECK_STR(p->string_table[l->str], text);
	}
	CHECK_STR(p->string_table[s->label[s->n_label - 2]->key], "pid");
	CHECK_INT(s->label[s->n_label - 2]->num, from->pid);
	CHECK_STR(p->string_table[s->label[s->n_label - 1]->key], "tid");
	CHECK_INT(s->label[s->n_label - 1]->num, from->tid);
	if (has_id)
		CHECK_STR(p->string_table[s->label[0]->str], "0000000000000007");
}

/* The samples have more combinations of labels, pid and tid than the encoder notes. */
static Profile *encoded_labels(const struct fusee_profile *empty,
			       const struct fusee_sample *samples)
{
	static int64_t values[SAMPLES];
	static struct fusee_label labels[LABELS];
	static char texts[2 * LABELS][8];
	struct fusee_profile p = *empty;
	struct buf out = {0};
	Profile *ret;

	for (uint32_t i = 0; i < LABELS; i++) {
		snprintf(texts[2 * i], sizeof(*texts), "k%u", i);
		snprintf(texts[2 * i + 1], sizeof(*texts), "v%u", i);
		labels[i].key = str(texts[2 * i]);
		labels[i].str = str(texts[2 * i + 1]);
	}
	p.labels = (struct fusee_table){labels, LABELS, sizeof(*labels)};
	p.samples = (struct fusee_table){samples, SAMPLES, sizeof(*samples)};
	p.values = (struct fusee_table){values, SAMPLES, sizeof(*values)};
	CHECK_INT(pprof_encode(&p, false, &out), 0);
	ret = perftools__profiles__profile__unpack(NULL, out.len, (uint8_t *)out.p);
	CHECK(ret && ret->n_sample == SAMPLES);
	buf_fini(&out);
	return ret;
}

TEST(each_sample_has_its_own_labels)
{
	static struct fusee_sample samples[SAMPLES];
	struct builder *b;
	Profile *p;

	/* most differ from some others by one of the three */
	for (uint32_t i = 0; i < SAMPLES; i++)
		samples[i] = (struct fusee_sample){.first_label = i % 3 ? 0
									: random32() % (LABELS - 3),
						   .nlabels = random32() % 3,
						   .pid = i % 3 == 1 ? random32() | 1 : 7,
						   .tid = i % 3 == 2 ? random32() | 1 : 7,
						   .span_id = random32() % 8 ? 0 : 7};
	builder_new(&b);
	builder_type(b, "samples", "count");
	p = encoded_labels(finished(b), samples);
	for (uint32_t i = 0; i < SAMPLES; i++)
		check_labels(p, p->sample[i], &samples[i]);
	perftools__profiles__profile__free_unpacked(p, NULL);
	builder_free(b);
}

/* An index that a plugin made up is an error, not a read outside a table. */
TEST_OF_BUILDER(encoder_checks_indices)
{
	struct fusee_profile p = *finished(b);
	struct buf out = {0};
	struct fusee_sample s = *FUSEE_AT(struct fusee_sample, p.samples, 0);
	struct fusee_location l[2] = {{0}, {.first_line = 1, .nlines = UINT32_MAX}};
	const struct fusee_profile good = p;

	p.samples.at = &s;
	p.samples.n = 1;
	CHECK_INT(pprof_encode(&p, true, &out), 0);
	s.stack = p.stacks.n;
	CHECK_INT(pprof_encode(&p, true, &out), -EINVAL);
	s.stack = 0;
	s.first_label = UINT32_MAX;
	CHECK_INT(pprof_encode(&p, true, &out), -EINVAL);
	p = good;
	p.locations.at = l;
	CHECK_INT(p.locations.n > 2, 1);
	p.locations.n = 2;
	p.stack_locations.n = 0;
	p.stacks.n = 1;
	p.samples.n = 0;
	CHECK_INT(pprof_encode(&p, true, &out), -EINVAL);
	l[1] = (struct fusee_location){.mapping = 99};
	CHECK_INT(pprof_encode(&p, true, &out), -EINVAL);
	p = good;
	p.strings.n = 1;
	CHECK_INT(pprof_encode(&p, true, &out), -EINVAL);
	p = good;
	p.values.n--;
	CHECK_INT(pprof_encode(&p, true, &out), -EINVAL);
	buf_fini(&out);
}

/* ---- what must be refused ---- */

static void expect(Profile *p, const char *text)
{
	size_t len = perftools__profiles__profile__get_packed_size(p);
	uint8_t *bytes = malloc(len + 1);
	struct pprof_file *f = NULL;
	const char *got;
	int ret;

	perftools__profiles__profile__pack(p, bytes);
	ret = pprof_decode(bytes, len, &f, &got);
	CHECK_STR(got, text);
	CHECK_INT(ret, *text ? -EINVAL : 0);
	pprof_free(f);
	free(bytes);
}

TEST_OF_BUILDER(each_rule_of_check_valid)
{
	Profile *p = encoded(b);
	char *string;

#define WITH(place, value, text)                   \
	do {                                       \
		__typeof__(place) keep_ = (place); \
		(place) = (value);                 \
		expect(p, text);                   \
		(place) = keep_;                   \
		expect(p, "");                     \
	} while (0)
	expect(p, "");
	WITH(p->n_sample_type, 1, "a sample has more or fewer values than there are sample types");
	WITH(p->n_sample_type, 0, "the profile has samples but no sample type");
	WITH(p->sample[1]->n_value, 1,
	     "a sample has more or fewer values than there are sample types");
	WITH(p->sample[1]->location_id[0], 99, "a sample's location is not in the profile");
	WITH(p->sample[1]->location_id[0], 0, "a sample's location is not in the profile");
	WITH(p->mapping[0]->id, 0, "a mapping has the id 0");
	WITH(p->mapping[0]->id, 2, "two mappings have the same id");
	WITH(p->function[0]->id, 0, "a function has the id 0");
	WITH(p->function[0]->id, 2, "two functions have the same id");
	WITH(p->location[0]->id, 0, "a location has the id 0");
	WITH(p->location[0]->id, 3, "two locations have the same id");
	WITH(p->location[0]->mapping_id, 3, "a location's mapping is not in the profile");
	WITH(p->location[0]->mapping_id, UINT64_MAX, "a location's mapping is not in the profile");
	WITH(p->location[0]->line[0]->function_id, 0, "a line's function is not in the profile");
	WITH(p->location[0]->line[0]->function_id, 1ull << 40,
	     "a line's function is not in the profile");
	string = p->string_table[0];
	p->string_table[0] = (char[]){"x"};
	expect(p, "the first string of the string table is not empty");
	p->string_table[0] = string;
	WITH(p->n_string_table, 0, "the profile has no string table");
	perftools__profiles__profile__free_unpacked(p, NULL);
}

TEST_OF_BUILDER(each_string_index)
{
	Profile *p = encoded(b);
	size_t n = p->n_string_table;

#define STRING(place)                                                             \
	WITH(place, (int64_t)n, "a string's number is outside the string table"); \
	WITH(place, -1, "a string's number is outside the string table")
	STRING(p->sample_type[0]->type);
	STRING(p->sample_type[1]->unit);
	STRING(p->period_type->type);
	STRING(p->period_type->unit);
	STRING(p->mapping[1]->filename);
	STRING(p->mapping[1]->build_id);
	STRING(p->function[1]->name);
	STRING(p->function[1]->system_name);
	STRING(p->function[1]->filename);
	STRING(p->sample[0]->label[0]->key);
	STRING(p->sample[0]->label[0]->str);
	STRING(p->sample[0]->label[1]->num_unit);
	STRING(p->comment[0]);
	STRING(p->default_sample_type);
	STRING(p->drop_frames);
	STRING(p->keep_frames);
	STRING(p->doc_url);
	perftools__profiles__profile__free_unpacked(p, NULL);
}

/* Gaps in ids, a location without a mapping, without a line, a sample without a location. */
TEST_OF_BUILDER(what_is_allowed)
{
	Profile *p = encoded(b);

	p->mapping[1]->id = 1ull << 60;
	p->location[0]->mapping_id = 1ull << 60;
	p->location[0]->n_line = 0;
	WITH(p->sample[0]->n_location_id, 0, "");
	expect(p, "");
	p->location[0]->n_line = 1;
	perftools__profiles__profile__free_unpacked(p, NULL);
}

static void expect_bytes(const struct buf *b, const char *text)
{
	struct pprof_file *f = NULL;
	const char *got;
	int ret = pprof_decode(b->p, b->len, &f, &got);

	CHECK_STR(got, text);
	CHECK_INT(!ret, !*text);
	pprof_free(f);
}

TEST_OF_BUILDER(containers)
{
	const struct fusee_profile *p = finished(b);
	struct buf gz = {0}, plain = {0}, all = {0};
	struct pprof_file *f;

	CHECK_INT(pprof_encode(p, true, &gz), 0);
	CHECK_INT(pprof_encode(p, false, &plain), 0);
	expect_bytes(&gz, "");
	expect_bytes(&plain, "");
	expect_bytes(&all, "the file is empty");
	/* garbage, and a second profile, behind it */
	buf_add(&all, gz.p, gz.len);
	buf_str(&all, "garbage");
	expect_bytes(&all, "there is something else behind the gzip stream");
	buf_reset(&all);
	buf_add(&all, gz.p, gz.len);
	buf_add(&all, gz.p, gz.len);
	expect_bytes(&all, "several profiles are concatenated in this file");
	buf_reset(&all);
	buf_add(&all, plain.p, plain.len);
	buf_add(&all, "\x07", 1);
	expect_bytes(&all, "this is not a pprof profile, or it is truncated");
	/* one profile in two members */
	buf_reset(&all);
	for (int i = 0; i < 2; i++) {
		size_t half = plain.len / 2, len = i ? plain.len - half : half;
		z_stream z = {.next_in = (Bytef *)plain.p + (i ? half : 0), .avail_in = (uInt)len};

		CHECK_INT(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
		z.avail_out = (uInt)deflateBound(&z, len);
		z.next_out = buf_grow(&all, z.avail_out);
		CHECK_INT(deflate(&z, Z_FINISH), Z_STREAM_END);
		all.len -= z.avail_out;
		deflateEnd(&z);
	}
	f = decode(&all);
	CHECK_INT(pprof_profile(f)->samples.n, 3);
	pprof_free(f);
	gz.p[gz.len - 5] ^= 1; /* the checksum */
	expect_bytes(&gz, "the gzip stream is damaged");
	buf_fini(&gz);
	buf_fini(&plain);
	buf_fini(&all);
}

/* Samples that writers may write in other ways, and bytes that are no sample. */
TEST(forms_of_samples)
{
	static const struct {
		const char *sample, *text;
		size_t len;
		int64_t value; /* of the one sample */
	} forms[] = {
		{"\x0a\x01\x01\x12\x01\x05", "", 6, 5},           /* packed numbers */
		{"\x08\x01\x10\x05", "", 4, 5},                   /* single numbers */
		{"\x12\x02\x85\x01\x0a\x00\x08\x01", "", 8, 133}, /* in two parts, of two bytes */
		{"\x08\x01\x10\x05\x25zzzz\x29zzzzzzzz\x32\x01z", "", 21, 5}, /* other fields */
		{"\x08\x01\x10\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01", "", 13, -5},
		{"\x08\x81\x80\x00\x10\x05", "", 6, 5}, /* a long form of 1 */
		{"\x08\x02\x10\x05", "a sample's location is not in the profile", 4, 0},
		{"\x08\x01\x10\x05\x10\x05",
		 "a sample has more or fewer values than there are sample types", 6, 0},
		{"\x0d zzz\x10\x05", "this is not a pprof profile, or it is damaged", 7, 0},
		{"\x08\x01\x12\x02\x85\x85", "this is not a pprof profile, or it is damaged", 6, 0},
		{"\x08\x01\x10\x05\x18\x01", "this is not a pprof profile, or it is damaged", 6, 0},
		{"\x08\x01\x10\x05\x1a\x02\x0a\x00",
		 "this is not a pprof profile, or it is damaged", 8, 0},
		{"\x08\x01\x10\x05\x1b", "this is not a pprof profile, or it is damaged", 5, 0},
		{"\x08\x01\x10\x05\x1a\x04\x08\x01\x10\x09",
		 "a string's number is outside the string table", 10, 0},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		struct buf bytes = {0};
		struct pprof_file *f;

		buf_add(&bytes, "\x0a\x02\x08\x01\x12", 5); /* a type, and the sample */
		buf_add(&bytes, (const char[]){(char)forms[i].len}, 1);
		buf_add(&bytes, forms[i].sample, forms[i].len);
		buf_add(&bytes, "\x22\x02\x08\x01\x32\x00\x32\x01x", 9);
		expect_bytes(&bytes, forms[i].text);
		if (!*forms[i].text) {
			f = decode(&bytes);
			CHECK_INT(pprof_profile(f)->samples.n, 1);
			CHECK_INT(*FUSEE_AT(int64_t, pprof_profile(f)->values, 0), forms[i].value);
			pprof_free(f);
		}
		buf_fini(&bytes);
	}
}

TEST_OF_BUILDER(truncated_anywhere)
{
	const struct fusee_profile *p = finished(b);

	for (int gzip = 0; gzip < 2; gzip++) {
		struct buf all = {0};

		CHECK_INT(pprof_encode(p, gzip, &all), 0);
		for (size_t len = 0; len < all.len; len++) {
			char *exact = malloc(len ? len : 1); /* so that a read behind it is seen */
			struct pprof_file *f = NULL;
			const char *text;

			memcpy(exact, all.p, len);
			CHECK(pprof_decode(exact, len, &f, &text) < 0);
			CHECK(text && *text);
			free(exact);
		}
		buf_fini(&all);
	}
}

/* 700 MiB of zeros in under a megabyte. */
TEST(bombs)
{
	struct buf gz = {0};
	static char zeros[1 << 20];
	struct pprof_file *f = NULL;
	const char *text;
	z_stream z = {0};

	CHECK_INT(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	for (int i = 0; i < 700; i++) {
		z.next_in = (Bytef *)zeros;
		z.avail_in = sizeof(zeros);
		do {
			z.next_out = buf_grow(&gz, 4096);
			z.avail_out = 4096;
			deflate(&z, i == 699 ? Z_FINISH : Z_NO_FLUSH);
			gz.len -= z.avail_out;
		} while (!z.avail_out);
	}
	deflateEnd(&z);
	CHECK(gz.len < 1 << 20);
	CHECK_INT(pprof_decode(gz.p, gz.len, &f, &text), -EFBIG);
	CHECK_STR(text, "the profile is larger than 512 MiB uncompressed");
	buf_fini(&gz);
}

/* Empty functions: two bytes each, and a hundred times that in memory. */
TEST(bomb_of_messages)
{
	struct buf bytes = {0};
	struct pprof_file *f = NULL;
	const char *text;

	for (int i = 0; i < 2 << 20; i++)
		buf_add(&bytes, "\x2a\x00", 2);
	CHECK_INT(pprof_decode(bytes.p, bytes.len, &f, &text), -EFBIG);
	CHECK_STR(text, "this profile would take far more memory than its size explains");
	buf_fini(&bytes);
}

TEST_OF_BUILDER(flipped_bytes)
{
	struct buf out = {0};

	CHECK_INT(pprof_encode(finished(b), false, &out), 0);
	for (size_t i = 0; i < out.len; i++) {
		for (int bit = 0; bit < 8; bit++) {
			struct pprof_file *f = NULL;
			const char *text;

			out.p[i] ^= (char)(1 << bit);
			if (!pprof_decode(out.p, out.len, &f, &text)) {
				struct buf again = {0};

				CHECK_INT(pprof_encode(pprof_profile(f), true, &again), 0);
				buf_fini(&again);
				pprof_free(f);
			}
			out.p[i] ^= (char)(1 << bit);
		}
	}
	buf_fini(&out);
}

/* ---- random profiles ---- */

static uint32_t random_location(struct builder *b)
{
	char name[32], path[32];
	struct fusee_mapping m = {.limit = UINT64_MAX};
	struct fusee_location l = {.address = random32() % 50};
	struct fusee_line lines[3];
	uint32_t n = random32() % 4;

	snprintf(path, sizeof(path), "/lib/lib%u.so", random32() % 5);
	m.path = builder_cstr(b, path);
	if (random32() % 8)
		l.mapping = builder_mapping(b, &m);
	for (uint32_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "f%u", random32() % 20);
		lines[i] = (struct fusee_line){function(b, name, "x.c", 1), random32() % 9, 0,
					       i + 1 < n ? FUSEE_LINE_INLINED : 0};
	}
	return builder_location(b, &l, lines, n);
}

static struct builder *random_profile(void)
{
	struct builder *b;
	uint32_t ntypes = 1 + random32() % 3, n = random32() % 50;

	CHECK_INT(builder_new(&b), 0);
	for (uint32_t i = 0; i < ntypes; i++)
		builder_type(b, (const char *[]){"a", "b", "c"}[i], "count");
	builder_profile(b)->default_type = random32() % ntypes;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t stack[20], depth = 1 + random32() % 19;
		int64_t v[3] = {(int64_t)random32() << 31, -(int64_t)random32(), 0};
		struct fusee_label labels[2] = {
			{.key = str("l"), .num = 1 + random32() % 3, .unit = str("bytes")},
			{.key = str("m"), .str = str(random32() % 2 ? "u" : "v")}};

		for (uint32_t k = 0; k < depth; k++)
			do
				stack[k] = random_location(b);
			while (!stack[k]);
		builder_sample(b, builder_stack(b, stack, depth), labels, random32() % 3,
			       random32() % 3, random32() % 3, v);
	}
	return b;
}

TEST(random_round_trips)
{
	for (int i = 0; i < 300; i++) {
		struct builder *b = random_profile();
		const struct fusee_profile *p = finished(b);
		struct buf out = {0};
		struct pprof_file *f;
		Profile *pb;

		CHECK_INT(pprof_encode(p, false, &out), 0);
		pb = unpack(&out);
		check_strict(pb);
		perftools__profiles__profile__free_unpacked(pb, NULL);
		f = decode(&out);
		check_same(p, pprof_profile(f));
		pprof_free(f);
		buf_fini(&out);
		builder_free(b);
	}
}
