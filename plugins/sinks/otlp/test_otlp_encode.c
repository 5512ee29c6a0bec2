/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/otlp
/* Requests as libprotobuf-c reads them. */
#include <fusee/helpers.h>

#include "lib/fakehost.h"
#include "lib/otlp_read.h"
#include "lib/random.h"

#include "dictionary.h"
#include "encode.h"

static const struct fusee_table nothing;

static Otlp__Request *encoded(const struct fusee_profile *p, struct fusee_table more,
			      uint32_t *profiles)
{
	struct fusee_bytes w = {0};
	Otlp__Request *r;

	CHECK_INT(encode_request(p, more, &w, profiles), 0);
	r = otlp__request__unpack(NULL, w.len, (const uint8_t *)w.p);
	CHECK(r);
	fusee_bytes_fini(&w);
	return r;
}

/* ---- a profile with all that a profile can have ---- */

struct full {
	struct builder *b;
	uint32_t app, lib, work, inlined, kernel, script, reason;
};

static uint32_t code(struct builder *b, uint32_t mapping, const char *type, uint64_t address,
		     uint32_t flags, const char *name, const char *inlined)
{
	struct fusee_function fn = {.start_line = 3};
	struct fusee_line lines[2] = {{0}};
	struct fusee_location l = {.mapping = mapping, .address = address, .flags = flags};
	uint32_t n = 0;

	l.frame_type = builder_cstr(b, type);
	fn.file = builder_cstr(b, mapping ? "src/a.c" : "");
	if (inlined) {
		fn.name = fn.system_name = builder_cstr(b, inlined);
		lines[n].flags = FUSEE_LINE_INLINED;
		lines[n].column = 7;
		lines[n].line = 40;
		lines[n++].function = builder_function(b, &fn);
	}
	fn.name = builder_cstr(b, name);
	fn.system_name = builder_cstr(b, mapping ? "_Z4workv" : name);
	lines[n].line = 12;
	lines[n++].function = builder_function(b, &fn);
	return builder_location(b, &l, lines, n);
}

static void build_code(struct full *f)
{
	struct builder *b = f->b;
	struct fusee_mapping app = {.flags = FUSEE_MAPPING_MAIN | FUSEE_MAPPING_FUNCTIONS |
					     FUSEE_MAPPING_FILENAMES | FUSEE_MAPPING_LINES,
				    .limit = UINT64_MAX};
	struct fusee_mapping kernel = {.flags = FUSEE_MAPPING_KERNEL, .limit = UINT64_MAX};

	app.path = builder_cstr(b, "/usr/bin/app");
	app.build_id = builder_cstr(b, "00ff12");
	kernel.path = builder_cstr(b, "[kernel.kallsyms]");
	f->app = builder_mapping(b, &app);
	f->work = code(b, f->app, "native", 0x1234, 0, "work()", NULL);
	f->inlined = code(b, f->app, "native", 0x2000, FUSEE_LOCATION_GUESSED, "outer()", "inner");
	f->kernel = code(b, builder_mapping(b, &kernel), "kernel", 0xffffffff81000000, 0, "vfs",
			 NULL);
	f->script = code(b, 0, "cpython", 0, 0, "app.main", NULL);
	f->reason = code(b, 0, "", 0, FUSEE_LOCATION_REASON, "[truncated: too deep]", NULL);
}

static struct fusee_label label(const char *key, const char *value)
{
	return fusee_text_label(key, value);
}

static void describe(struct builder *b)
{
	struct fusee_profile *head = builder_profile(b);

	head->default_type = 1;
	head->period_type = builder_cstr(b, "cpu");
	head->period_unit = builder_cstr(b, "nanoseconds");
	head->period = 10000000;
	head->start_ns = 1795248900000000001ull;
	head->duration_ns = 10000000000ull;
	memset(head->id, 0x42, sizeof(head->id));
}

/* The samples of this process have a span, which the builder knows nothing of. */
static void set_span(const struct fusee_profile *p, uint32_t pid)
{
	for (uint32_t i = 0; i < p->samples.n; i++) {
		struct fusee_sample *s = (void *)(uintptr_t)FUSEE_AT(struct fusee_sample,
								     p->samples, i);

		if (s->pid != pid)
			continue;
		s->trace_id[0] = 0x0102030405060708;
		s->trace_id[1] = 0x090a0b0c0d0e0f10;
		s->span_id = 0xff00000000000001;
	}
}

static const struct fusee_profile *full_profile(struct full *f)
{
	struct fusee_label web[] = {label("process", "app"), label("thread", "t-1"),
				    label("service_name", "shop"), label("tier", "gold")};
	struct fusee_label db[] = {
		label("process", "db"),
		label("thread", "t-2"),
		{.key = FUSEE_TEXT("size"), .num = 64, .unit = FUSEE_TEXT("bytes")}};
	const struct fusee_profile *p = NULL;
	int64_t one[] = {1, 10000000}, seven[] = {7, -5};
	uint32_t stack[3];

	CHECK(!builder_new(&f->b));
	builder_type(f->b, "samples", "count");
	builder_type(f->b, "cpu", "nanoseconds");
	build_code(f);
	stack[0] = f->kernel;
	stack[1] = f->inlined;
	stack[2] = f->work;
	builder_sample(f->b, builder_stack(f->b, stack, 3), web, 4, 12, 13, one);
	stack[0] = f->script;
	stack[1] = f->reason;
	builder_sample(f->b, builder_stack(f->b, stack, 2), db, 3, 99, 0, seven);
	builder_sample(f->b, 0, web, 4, 12, 14, seven);
	builder_resource(f->b, "host", "n1");
	builder_resource(f->b, "pod", "shop-1");
	builder_resource(f->b, "container", "c");
	builder_resource(f->b, "workload", "shop");
	builder_resource(f->b, "workload_kind", "Deployment");
	builder_comment(f->b, "made by hand");
	builder_loss(f->b, LOSS_TICK, "timer skipped", 3);
	describe(f->b);
	CHECK_INT(builder_finish(f->b, &p), 0);
	set_span(p, 99);
	return p;
}

/* Everything that the request says, a line for each sample and head. */
static void describe_request(struct buf *b, const Otlp__Request *r)
{
	const Otlp__Dictionary *d = r->dictionary;

	for (size_t i = 0; i < r->n_resource_profiles; i++) {
		const Otlp__ScopeProfiles *sp = r->resource_profiles[i]->scope_profiles[0];

		otlp_put_resource(b, r->resource_profiles[i]->resource);
		buf_printf(b, "\n%s\n", sp->scope->name);
		for (size_t k = 0; k < sp->n_profiles; k++) {
			const Otlp__Profile *p = sp->profiles[k];

			buf_printf(b, "%s/%s of %s/%s %lld at %llu+%llu id %02x..%02x",
				   d->string_table[p->sample_type->type_strindex],
				   d->string_table[p->sample_type->unit_strindex],
				   d->string_table[p->period_type->type_strindex],
				   d->string_table[p->period_type->unit_strindex],
				   (long long)p->period, (unsigned long long)p->time_unix_nano,
				   (unsigned long long)p->duration_nano, p->profile_id.data[0],
				   p->profile_id.data[12]);
			otlp_put_attributes(b, d, p->n_attribute_indices, p->attribute_indices);
			for (size_t s = 0; s < p->n_samples; s++) {
				const Otlp__Sample *at = p->samples[s];

				buf_printf(b, "\n  %lld", (long long)at->values[0]);
				otlp_put_attributes(b, d, at->n_attribute_indices,
						    at->attribute_indices);
				otlp_put_link(b, d->link_table[at->link_index]);
				buf_str(b, ":");
				otlp_put_stack(b, d, d->stack_table[at->stack_index]);
			}
			buf_str(b, "\n");
		}
	}
}

#define APP                                                                            \
	" in /usr/bin/app 0-ffffffffffffffff+0 process.executable.build_id.gnu=00ff12" \
	" pprof.mapping.has_functions=yes pprof.mapping.has_filenames=yes"             \
	" pprof.mapping.has_line_numbers=yes"
#define WEB_STACK                                                               \
	" vfs|_Z4workv|src/a.c:3@12.0 /ffffffff81000000 in [kernel.kallsyms] "  \
	"0-ffffffffffffffff+0 profile.frame.type=kernel;"                       \
	" inner|inner|src/a.c:3@40.7 outer()|_Z4workv|src/a.c:3@12.0 /2000" APP \
	" profile.frame.type=native fusee.frame.guessed=yes;"                   \
	" work()|_Z4workv|src/a.c:3@12.0 /1234" APP " profile.frame.type=native;\n"
#define DB_STACK                                                    \
	" app.main|app.main|:3@12.0 /0 profile.frame.type=cpython;" \
	" [truncated: too deep]|[truncated: too deep]|:3@12.0 /0;\n"
#define NO_STACK " [unknown]|[unknown]|:0@0.0 /0;\n"
#define LINK " 0102030405060708090a0b0c0d0e0f10ff00000000000001"
#define PLACE                                                                              \
	" host.name=n1 k8s.pod.name=shop-1 k8s.container.name=c k8s.deployment.name=shop " \
	"workload_kind=Deployment"
#define OF " of cpu/nanoseconds 10000000 at 1795248900000000001+10000000000 id 42.."
#define MORE " service.namespace=ns service.name=all process.executable.name="

static const char everything[] = MORE
	"app tier=gold" PLACE " process.pid=12\nfusee\n"
	"cpu/nanoseconds" OF "42 fusee.lost.timer_skipped=3 pprof.profile.comment=[made by hand]\n"
	"  10000000 thread.name=t-1 thread.id=13:" WEB_STACK
	"  -5 thread.name=t-1 thread.id=14:" NO_STACK "samples/count" OF "43\n"
	"  1 thread.name=t-1 thread.id=13:" WEB_STACK
	"  7 thread.name=t-1 thread.id=14:" NO_STACK MORE "db" PLACE " process.pid=99\nfusee\n"
	"cpu/nanoseconds" OF "40\n"
	"  -5 thread.name=t-2 size=64bytes" LINK ":" DB_STACK "samples/count" OF "41\n"
	"  7 thread.name=t-2 size=64bytes" LINK ":" DB_STACK;

TEST(everything_arrives)
{
	struct fusee_label more[] = {label("service.namespace", "ns"),
				     label("service.name", "all")};
	struct full f = {0};
	const struct fusee_profile *p = full_profile(&f);
	uint32_t profiles;
	Otlp__Request *r = encoded(p, (struct fusee_table)FUSEE_TABLE(more), &profiles);
	struct buf b = {0};

	CHECK_INT(profiles, 4);
	otlp_check(r);
	describe_request(&b, r);
	buf_add(&b, "", 1);
	CHECK_STR(b.p, everything);
	otlp__request__free_unpacked(r, NULL);
	buf_fini(&b);
	builder_free(f.b);
}

/* ---- large profiles ---- */

static const char *name_of(const struct fusee_profile *p, uint32_t location)
{
	const struct fusee_location *l = FUSEE_AT(struct fusee_location, p->locations, location);
	const struct fusee_line *line = FUSEE_AT(struct fusee_line, p->lines, l->first_line);
	const struct fusee_function *fn = FUSEE_AT(struct fusee_function, p->functions,
						   line->function);
	struct fusee_str s = *FUSEE_AT(struct fusee_str, p->strings, fn->name);
	static char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)s.len, s.p);
	return name;
}

/* Samples as "pid tid value stack" lines, in any order: what they hash to, added. */
static uint64_t line_hash(const struct buf *b)
{
	uint64_t h = 14695981039346656037ull;

	for (size_t i = 0; i < b->len; i++)
		h = (h ^ (uint8_t)b->p[i]) * 1099511628211ull;
	return h * (h | 1);
}

static uint64_t sum_of_profile(const struct fusee_profile *p)
{
	struct buf b = {0};
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->samples.n; i++) {
		const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, i);
		const struct fusee_stack *stack = FUSEE_AT(struct fusee_stack, p->stacks, s->stack);

		for (uint32_t t = 0; t < p->types.n; t++) {
			buf_reset(&b);
			buf_printf(&b, "%u %u %lld", s->pid, s->tid,
				   (long long)*FUSEE_AT(int64_t, p->values, i * p->types.n + t));
			for (uint32_t k = 0; k < stack->n; k++)
				buf_printf(&b, " %s",
					   name_of(p, *FUSEE_AT(uint32_t, p->stack_locations,
								stack->first + k)));
			sum += line_hash(&b);
		}
	}
	buf_fini(&b);
	return sum;
}

static int64_t int_attribute(const Otlp__Dictionary *d, const Otlp__Sample *s, const char *key)
{
	for (size_t i = 0; i < s->n_attribute_indices; i++) {
		const Otlp__KeyValueAndUnit *a = d->attribute_table[s->attribute_indices[i]];

		if (!strcmp(d->string_table[a->key_strindex], key))
			return a->value->int_value;
	}
	return 0;
}

static uint64_t sum_of_samples(const Otlp__Dictionary *d, const Otlp__Profile *p, long long pid)
{
	struct buf b = {0};
	uint64_t sum = 0;

	for (size_t i = 0; i < p->n_samples; i++) {
		const Otlp__Stack *stack = d->stack_table[p->samples[i]->stack_index];

		buf_reset(&b);
		buf_printf(&b, "%lld %lld %lld", pid,
			   (long long)int_attribute(d, p->samples[i], "thread.id"),
			   (long long)p->samples[i]->values[0]);
		for (size_t k = 0; k < stack->n_location_indices; k++) {
			const Otlp__Location *l = d->location_table[stack->location_indices[k]];
			const Otlp__Function *f = d->function_table[l->lines[0]->function_index];

			buf_printf(&b, " %s", d->string_table[f->name_strindex]);
		}
		sum += line_hash(&b);
	}
	buf_fini(&b);
	return sum;
}

static uint64_t sum_of_request(const Otlp__Request *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->n_resource_profiles; i++) {
		const Otlp__Resource *at = r->resource_profiles[i]->resource;
		const Otlp__ScopeProfiles *sp = r->resource_profiles[i]->scope_profiles[0];
		long long pid = at->attributes[at->n_attributes - 1]->value->int_value;

		for (size_t k = 0; k < sp->n_profiles; k++)
			sum += sum_of_samples(r->dictionary, sp->profiles[k], pid);
	}
	return sum;
}

/* Locations, functions and strings that no sample needs are in it too. */
static const struct fusee_profile *random_profile(struct builder **b, uint32_t nsamples)
{
	const struct fusee_profile *p = NULL;
	uint32_t locations[500], stack[40];
	char name[32];

	CHECK(!builder_new(b));
	builder_type(*b, "samples", "count");
	builder_type(*b, "cpu", "nanoseconds");
	for (uint32_t i = 0; i < 500; i++) {
		struct fusee_mapping m = {.limit = UINT64_MAX};

		snprintf(name, sizeof(name), "/lib/%u.so", i % 9);
		m.path = builder_cstr(*b, name);
		snprintf(name, sizeof(name), "function_%u", i % 400);
		locations[i] = code(*b, builder_mapping(*b, &m), "native", i % 450, 0, name, NULL);
	}
	for (uint32_t i = 0; i < nsamples; i++) {
		uint32_t n = 1 + random32() % 40, pid = 1 + random32() % 30;
		int64_t values[2] = {random32() % 9, random32()};
		char thread[16];
		struct fusee_label labels[2];

		snprintf(thread, sizeof(thread), "t%u", random32() % 50);
		labels[0] = label("process", "p");
		labels[1] = label("thread", thread);
		for (uint32_t k = 0; k < n; k++)
			stack[k] = locations[random32() % 300];
		builder_sample(*b, builder_stack(*b, stack, n), labels, 2, pid,
			       pid + random32() % 9, values);
	}
	describe(*b);
	CHECK_INT(builder_finish(*b, &p), 0);
	return p;
}

TEST(random_profiles_arrive)
{
	static const uint32_t sizes[] = {1, 2, 63, 5000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct builder *b;
		const struct fusee_profile *p = random_profile(&b, sizes[i]);
		uint32_t profiles;
		Otlp__Request *r = encoded(p, nothing, &profiles);

		CHECK_INT(profiles, 2 * r->n_resource_profiles);
		otlp_check(r);
		CHECK(sum_of_request(r) == sum_of_profile(p));
		otlp__request__free_unpacked(r, NULL);
		builder_free(b);
	}
}

TEST(bytes_that_are_no_text)
{
	static const struct {
		const char *from, *to;
	} texts[] = {
		{"", ""},
		{"gr\xc3\xbc\xc3\x9f dich \xf0\x9f\x99\x82",
		 "gr\xc3\xbc\xc3\x9f dich \xf0\x9f\x99\x82"},
		{"a\xff"
		 "b",
		 "a\xef\xbf\xbd"
		 "b"},
		{"\xc3", "\xef\xbf\xbd"},
		{"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
	};
	struct fusee_bytes w = {0};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct fusee_str s = dictionary_clean(&w, fusee_text(texts[i].from));

		CHECK(fusee_text_is(s, texts[i].to));
	}
	/* the core's own judgement of random bytes */
	for (int i = 0; i < 20000; i++) {
		char bytes[8];
		struct buf b = {0};
		struct fusee_str s = {bytes, 1 + random32() % 8};

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (char)"\x7f\x80\xbf\xc2\xe0\xa0\xed\x9f\xf0\x90\xf4\x8f\xf5"
					 "az"[random32() % 15];
		CHECK(!utf8_clean(&b, s.p, s.len));
		s = dictionary_clean(&w, s);
		CHECK(s.len == b.len && !memcmp(s.p, b.p, b.len));
		buf_fini(&b);
	}
	fusee_bytes_fini(&w);
}

TEST(invalid_texts_are_cleaned)
{
	struct fusee_label labels[] = {label("thread", "\xff"), label("k\xfe", "\xc3")};
	struct fusee_str comments[] = {FUSEE_TEXT("good"), FUSEE_TEXT(""), FUSEE_TEXT("\xe0!")};
	const struct fusee_profile *p;
	struct fusee_profile copy;
	struct builder *b;
	uint32_t profiles;
	Otlp__Request *r;
	struct buf text = {0};

	p = fake_profile(&b, 1, 1, NULL);
	copy = *p; /* the builder would have cleaned them */
	copy.labels = (struct fusee_table)FUSEE_TABLE(labels);
	copy.comments = (struct fusee_table)FUSEE_TABLE(comments);
	((struct fusee_sample *)(uintptr_t)copy.samples.at)->nlabels = 2;
	r = encoded(&copy, nothing, &profiles);
	otlp_check(r);
	describe_request(&text, r);
	buf_add(&text, "", 1);
	CHECK(strstr(text.p, " k\xef\xbf\xbd=\xef\xbf\xbd\n"));
	CHECK(strstr(text.p, " thread.name=\xef\xbf\xbd:"));
	CHECK(strstr(text.p, " pprof.profile.comment=[good][][\xef\xbf\xbd!]"));
	otlp__request__free_unpacked(r, NULL);
	buf_fini(&text);
	builder_free(b);
}

/* A text is more than its address, and a number more than its name. */
TEST(labels_at_one_address)
{
	static const char text[] = "worker-12";
	struct fusee_label labels[] = {
		{.key = FUSEE_TEXT("thread"), .str = {text, 6}},
		{.key = FUSEE_TEXT("thread"), .str = {text, 9}},
		{.key = FUSEE_TEXT("size"), .num = 1, .unit = {text, 6}},
		{.key = FUSEE_TEXT("size"), .num = 1, .unit = {text, 9}},
		{.key = FUSEE_TEXT("size"), .num = 2, .unit = {text, 9}},
		{.key = FUSEE_TEXT("thread"), .str = {text, 6}},
	};
	static const char *const found[] = {
		" thread.name=worker:", " thread.name=worker-12:", " size=1worker:",
		" size=1worker-12:",    " size=2worker-12:",       " thread.name=worker:",
	};
	struct fusee_profile copy;
	struct builder *b;
	uint32_t profiles;
	struct buf text_of = {0};
	const char *at;
	Otlp__Request *r;

	copy = *fake_profile(&b, 1, 6, NULL);
	copy.labels = (struct fusee_table)FUSEE_TABLE(labels);
	for (uint32_t i = 0; i < 6; i++) {
		struct fusee_sample *s = (void *)(uintptr_t)FUSEE_AT(struct fusee_sample,
								     copy.samples, i);

		s->first_label = i;
		s->nlabels = 1;
	}
	r = encoded(&copy, nothing, &profiles);
	otlp_check(r);
	describe_request(&text_of, r);
	buf_add(&text_of, "", 1);
	at = text_of.p;
	for (uint32_t i = 0; i < 6 && at; i++)
		CHECK(at = strstr(at + 1, found[i]));
	otlp__request__free_unpacked(r, NULL);
	buf_fini(&text_of);
	builder_free(b);
}
