/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/profile core/report
#include "test.h"

#include "base/json.h"
#include "profile/builder.h"
#include "report/model.h"
#include "lib/profiles.h"

static struct builder *fresh(void)
{
	struct builder *b = new_builder();

	builder_profile(b)->default_type = 1;
	return b;
}

/* A frame: "name"; "path!name", with "path@id!name" of a build; in brackets: a reason. */
static uint32_t frame(struct builder *b, const char *path, char *s)
{
	char *name = strchr(s, '!'), *id = strchr(s, '@');
	struct fusee_mapping map = {.limit = UINT64_MAX};
	struct fusee_function f = {0};
	struct fusee_location l = {0};
	struct fusee_line line = {0};

	if (name) {
		*name++ = '\0';
		path = s;
	}
	if (name && id && id < name) {
		*id = '\0';
		map.build_id = builder_cstr(b, id + 1);
	}
	map.path = builder_cstr(b, path);
	if (!strcmp(path, "[kernel.kallsyms]"))
		map.flags = FUSEE_MAPPING_KERNEL;
	f.name = builder_cstr(b, name ? name : s);
	line.function = builder_function(b, &f);
	if (*s == '[' && !name)
		l.flags = FUSEE_LOCATION_REASON;
	else
		l = (struct fusee_location){.mapping = builder_mapping(b, &map),
					    .address = strlen(name ? name : s)};
	return builder_location(b, &l, &line, 1);
}

/* Frames parted by ';', leaf first, with labels "key=value,key=value" (NULL: none). n samples of 10
 * ms. */
static void labelled(struct builder *b, const char *path, const char *stack, const char *labels,
		     int64_t n)
{
	const int64_t values[] = {n, n * 10000000};
	char *copy = strdup(stack), *texts = strdup(labels ? labels : ""), *at = NULL;
	struct fusee_label l[8] = {0};
	uint32_t locations[128], k = 0, nlabels = 0;

	for (char *s = strtok_r(copy, ";", &at); s; s = strtok_r(NULL, ";", &at))
		locations[k++] = frame(b, path, s);
	for (char *s = strtok_r(texts, ",", &at); s; s = strtok_r(NULL, ",", &at)) {
		char *value = strchr(s, '=');

		*value++ = '\0';
		l[nlabels++] = (struct fusee_label){.key = str(s), .str = str(value)};
	}
	builder_sample(b, builder_stack(b, locations, k), l, nlabels, 0, 0, values);
	free(copy);
	free(texts);
}

static void sample(struct builder *b, const char *path, const char *stack, int64_t n)
{
	labelled(b, path, stack, NULL, n);
}

static char *text(struct buf *b)
{
	buf_add(b, "", 1);
	CHECK_INT(b->error, 0);
	return b->p;
}

static const struct render_function *find(const struct render_model *m, const char *name)
{
	for (uint32_t i = 0; i < m->nfunctions; i++)
		if (m->functions[i].name.len == strlen(name) &&
		    !memcmp(m->functions[i].name.p, name, strlen(name)))
			return &m->functions[i];
	return NULL;
}

#define TEST_OF_BUILDER(id) TEST_WITH(id, struct builder *, b, fresh(), builder_free(b))

TEST_OF_BUILDER(recursion_counts_once)
{
	struct render_options o = {.type = "samples"};
	struct render_model m;
	struct buf error = {0};

	sample(b, "/bin/x", "f;g;f;f;main", 3);
	sample(b, "/bin/x", "g;f;main", 4);
	CHECK_INT(render_model_make(&m, finished(b), NULL, &o, &error), 0);
	CHECK_INT(m.total, 7);
	CHECK_INT(find(&m, "f")->self, 3);
	CHECK_INT(find(&m, "f")->total, 7);
	CHECK_INT(find(&m, "g")->self, 4);
	CHECK_INT(find(&m, "main")->total, 7);
	render_model_free(&m);
}

TEST_OF_BUILDER(filters)
{
	const struct fusee_profile *p;
	static const struct {
		const char *focus, *ignore, *hide;
		const char *folded;
	} cases[] = {
		{NULL, NULL, NULL, "main;a;b 10000000\nmain;a;c 20000000\nmain;d 40000000\n"},
		{"^a$", NULL, NULL, "main;a;b 10000000\nmain;a;c 20000000\n"},
		{NULL, "c|d", NULL, "main;a;b 10000000\n"},
		{NULL, NULL, "^a$", "main;b 10000000\nmain;c 20000000\nmain;d 40000000\n"},
		{"^a$", "^b$", "main", "a;c 20000000\n"},
		{"^(a|d)$", NULL, "^.$", "main 70000000\n"},
		{"/bin/x", NULL, NULL, "main;a;b 10000000\nmain;a;c 20000000\nmain;d 40000000\n"},
		{"nothing", NULL, NULL, ""},
		{NULL, NULL, ".", ""},
	};

	sample(b, "/bin/x", "b;a;main", 1);
	sample(b, "/bin/x", "c;a;main", 2);
	sample(b, "/bin/x", "d;main", 4);
	p = finished(b);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct render_options o = {
			.focus = cases[i].focus, .ignore = cases[i].ignore, .hide = cases[i].hide};
		struct buf out = {0};

		CHECK_INT(render_folded(p, NULL, &o, &out), 0);
		CHECK_STR(text(&out), cases[i].folded);
		buf_fini(&out);
	}
}

TEST_OF_BUILDER(errors_are_sentences)
{
	const struct fusee_profile *p;
	struct render_options bad = {.focus = "("}, type = {.type = "heap"}, none = {0};
	struct buf out = {0};

	sample(b, "/bin/x", "f", 1);
	p = finished(b);
	CHECK_INT(render_top(p, NULL, &bad, &out), -EINVAL);
	CHECK(strstr(text(&out), "--focus: bad regular expression '('"));
	buf_reset(&out);
	CHECK_INT(render_tree(p, NULL, &type, &out), -EINVAL);
	CHECK_STR(text(&out), "no values of type 'heap' (there are: samples cpu)");
	buf_reset(&out);
	CHECK_INT(render_peek(p, NULL, "[", &none, &out), -EINVAL);
	CHECK(strstr(text(&out), "bad regular expression '['"));
	buf_reset(&out);
	CHECK_INT(render_peek(p, NULL, "nothing", &none, &out), -EINVAL);
	CHECK_STR(text(&out), "no function matches 'nothing'");
	buf_fini(&out);
}

TEST_OF_BUILDER(tree)
{
	struct render_options o = {.width = 50};
	struct buf out = {0};

	sample(b, "/bin/x", "hot;middle;main", 700);
	sample(b, "/bin/x", "warm;middle;main", 200);
	sample(b, "/bin/x", "/lib/libc.so!read;main", 94);
	sample(b, "/bin/x", "one;main", 3);
	sample(b, "/bin/x", "two;main", 2);
	sample(b, "/bin/x", "[truncated: too deep]", 1);
	CHECK_INT(render_tree(finished(b), NULL, &o, &out), 0);
	CHECK_STR(text(&out), "   total     self  cpu: 10s\n"
			      "  99.9 %           ├─ main  x\n"
			      "  90.0 %           │  ├─ middle\n"
			      "  70.0 %   70.0 %  │  │  ├─ hot\n"
			      "  20.0 %   20.0 %  │  │  └─ warm\n"
			      "   9.4 %    9.4 %  │  ├─ read  libc.so\n"
			      "   0.5 %           │  └─ 2 more, each under 1 %\n"
			      "   0.1 %           └─ 1 more, under 1 %\n");
	buf_fini(&out);
}

static void check_folded(struct builder *b, const struct render_options *o, const char *expected)
{
	struct buf out = {0};

	CHECK_INT(render_folded(finished(b), NULL, o, &out), 0);
	CHECK_STR(text(&out), expected);
	buf_fini(&out);
	builder_free(b);
}

TEST(a_function_is_its_mapping_and_its_name)
{
	struct render_options none = {0};
	struct builder *b = fresh();

	sample(b, "/tmp/aa", "work;main", 77);
	sample(b, "/tmp/bb", "work;main", 23);
	sample(b, "/tmp/bb", "only;main", 1);
	check_folded(b, &none,
		     "main [aa];work [aa] 770000000\n"
		     "main [bb];only 10000000\n"
		     "main [bb];work [bb] 230000000\n");
	/* libraries with one base name, and two builds with one path */
	b = fresh();
	sample(b, "/bin/x",
	       "/a/liby.so!f;/b/liby.so!f;/lib/libz.so@11223344556677!f;"
	       "/lib/libz.so@99aabbccddeeff!f;main",
	       1);
	check_folded(b, &none,
		     "main;f [libz.so 99aabbcc];f [libz.so 11223344];f [/b/liby.so];f [/a/liby.so] "
		     "10000000\n");
	/* the kernel and its modules; reasons are no functions of a mapping */
	b = fresh();
	sample(b, "[kernel.kallsyms]", "init;[ext4]!init;[truncated: too deep]", 1);
	sample(b, "/bin/x", "[truncated: too deep]", 1);
	check_folded(b, &none,
		     "[truncated: too deep] 10000000\n"
		     "[truncated: too deep];init [ext4];init [kernel.kallsyms] 10000000\n");
}

/* Code that is in no file: a source file is its mapping. */
TEST(functions_without_a_mapping)
{
	struct render_options none = {0};
	struct builder *b = fresh();
	uint32_t locations[3];
	const int64_t values[] = {1, 10000000};
	struct fusee_mapping jit = {
		.path = builder_cstr(b, "//anon"), .flags = FUSEE_MAPPING_JIT, .limit = UINT64_MAX};
	const struct {
		const char *name, *file;
		uint32_t mapping;
	} frames[] = {{"run", "/app/a.py", 0}, {"run", "/app/b.py", 0}, {"run", "/app/c.js", 1}};

	for (uint32_t i = 0; i < 3; i++) {
		struct fusee_function f = {.name = builder_cstr(b, frames[i].name),
					   .file = builder_cstr(b, frames[i].file)};
		struct fusee_line line = {.function = builder_function(b, &f)};
		struct fusee_location l = {.mapping = frames[i].mapping ? builder_mapping(b, &jit)
									: 0};

		locations[i] = builder_location(b, &l, &line, 1);
	}
	builder_sample(b, builder_stack(b, locations, 3), NULL, 0, 0, 0, values);
	check_folded(b, &none, "run [c.js];run [b.py];run [a.py] 10000000\n");
}

/* A new build is the same function; a function that moved is another. */
TEST(modules_of_a_base)
{
	struct builder *b = fresh(), *base = fresh();
	struct render_options o = {.type = "samples"};
	struct render_model m;
	struct buf error = {0};

	sample(b, "/bin/x@22", "/bin/x@22!f;/lib/l.so@44!g;/new!moved", 5);
	sample(base, "/bin/x@11", "/bin/x@11!f;/lib/l.so@33!g;/old!moved", 3);
	CHECK_INT(render_model_make(&m, finished(b), finished(base), &o, &error), 0);
	CHECK_INT(find(&m, "f")->self, 5);
	CHECK_INT(find(&m, "f")->base_self, 3);
	CHECK_INT(find(&m, "g")->base_total, 3);
	CHECK_INT(m.nfunctions, 4);
	CHECK_INT(find(&m, "moved")->base_total, 0);
	CHECK(!memcmp(find(&m, "moved")->shown.p, "moved [new]", 11));
	render_model_free(&m);
	builder_free(b);
	builder_free(base);
}

static struct builder *threads(void)
{
	struct builder *b = fresh();

	labelled(b, "/bin/x", "f;main", "process=aa,thread=one", 1);
	labelled(b, "/bin/x", "f;main", "process=aa,thread=two", 2);
	labelled(b, "/bin/x", "f;main", "process=bb,thread=one", 4);
	labelled(b, "/bin/x", "g;main", NULL, 8);
	return b;
}

TEST(labels_group_and_filter)
{
	const struct {
		struct render_options o;
		const char *folded;
	} cases[] = {
		{{.by = "process"},
		 "process: (none);main;g 80000000\nprocess: aa;main;f 30000000\n"
		 "process: bb;main;f 40000000\n"},
		{{.by = "process,thread", .where = {"process=aa"}},
		 "process: aa;thread: one;main;f 10000000\n"
		 "process: aa;thread: two;main;f 20000000\n"},
		{{.where = {"thread=one", "process!=bb"}}, "main;f 10000000\n"},
		{{.where = {"thread!=one"}}, "main;f 20000000\nmain;g 80000000\n"},
		{{.where = {"thread=~^t"}}, "main;f 20000000\n"},
		{{.where = {"thread!~^(o|t)"}}, "main;g 80000000\n"},
		{{.where = {"process=cc"}}, ""},
	};
	const struct {
		struct render_options o;
		const char *error;
	} mistakes[] = {
		{{.by = "unit"}, "--by: no sample has a label 'unit' (there are: process thread)"},
		{{.by = "process,,"}, "--by: it takes up to 8 labels, as in process,thread"},
		{{.where = {"proces=aa"}},
		 "--where: no sample has a label 'proces' (there are: process thread)"},
		{{.where = {"process"}},
		 "--where: 'process' is no condition: LABEL=VALUE, LABEL!=VALUE, LABEL=~RE or "
		 "LABEL!~RE"},
		{{.where = {"process=~("}},
		 "--where: bad regular expression '(': Unmatched ( or \\("},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check_folded(threads(), &cases[i].o, cases[i].folded);
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++) {
		struct builder *b = threads();
		struct buf out = {0};

		CHECK_INT(render_folded(finished(b), NULL, &mistakes[i].o, &out), -EINVAL);
		CHECK_STR(text(&out), mistakes[i].error);
		buf_fini(&out);
		builder_free(b);
	}
}

/* Wide names lose their middle, also in deep trees; control characters are replaced. */
TEST_OF_BUILDER(tree_in_a_narrow_terminal)
{
	struct render_options o = {.width = 60};
	struct buf out = {0};
	char name[400];

	memset(name, 'x', 300);
	memcpy(name, "begin", 5);
	memcpy(name + 295, "finish", 7);
	sample(b, "/bin/x", name, 1);
	sample(b, "/bin/x", "\033[31mred\a;b", 1);
	CHECK_INT(render_tree(finished(b), NULL, &o, &out), 0);
	CHECK(strstr(text(&out), "beginxx") && strstr(out.p, "...") && strstr(out.p, "xxfinish\n"));
	CHECK(!strpbrk(out.p, "\033\a") && strstr(out.p, "?[31mred?"));
	for (char *line = strtok(out.p, "\n"); line; line = strtok(NULL, "\n"))
		CHECK(render_columns(str(line)) <= 60);
	buf_fini(&out);
}

TEST_OF_BUILDER(deep_stacks_need_no_stack)
{
	struct render_options o = {0};
	struct buf out = {0};
	const int64_t one[] = {1, 1};
	uint32_t n = 300000, *locations = calloc(n, sizeof(*locations));

	for (uint32_t i = 0; i < n; i++) {
		struct fusee_function f = {0};
		struct fusee_line line = {0};
		struct fusee_location l = {.address = i + 1};
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		f.name = builder_cstr(b, name);
		line.function = builder_function(b, &f);
		locations[i] = builder_location(b, &l, &line, 1);
	}
	builder_sample(b, builder_stack(b, locations, n), NULL, 0, 0, 0, one);
	CHECK_INT(render_tree(finished(b), NULL, &o, &out), 0);
	CHECK(strstr(text(&out), "  f0\n"));
	free(locations);
	buf_fini(&out);
}

/* Changes beside what is chance; new and vanished paths are marked. */
TEST(a_comparison)
{
	struct builder *b = fresh(), *base = fresh();
	struct render_options o = {0};
	const struct fusee_profile *p, *q;
	struct buf out = {0};

	sample(base, "/bin/x", "a;main", 5000);
	sample(base, "/bin/x", "b;main", 5030);
	sample(base, "/bin/x", "old;main", 2000);
	sample(b, "/bin/x", "a;main", 6000);
	sample(b, "/bin/x", "b;main", 3990);
	sample(b, "/bin/x", "fresh;main", 2010);
	p = finished(b);
	q = finished(base);
	CHECK_INT(render_tree(p, q, &o, &out), 0);
	CHECK_STR(text(&out), "   total    change       z  cpu: 120.30s before, 120s now\n"
			      " 100.0 %   +0.00 % ~  +0.0   main  x\n"
			      "  50.0 %   +8.44 %   +13.1   ├─ a\n"
			      "  33.2 %   -8.56 %   -13.7   ├─ b\n"
			      "  16.8 %  +16.75 %   +46.9   ├─ fresh (new)\n"
			      "   0.0 %  -16.63 %   -46.6   └─ old (vanished)\n");
	buf_fini(&out);
	CHECK_INT(render_folded(p, q, &o, &out), 0);
	CHECK_STR(text(&out), "main;a 50000000000 60000000000\nmain;b 50300000000 39900000000\n"
			      "main;fresh 0 20100000000\nmain;old 20000000000 0\n");
	buf_fini(&out);
	CHECK_INT(render_top(p, q, &o, &out), 0);
	CHECK(strstr(text(&out), "~+0.0  main\n"));
	CHECK(strstr(text(&out), "-46.6   -46.6  old (vanished)\n"));
	buf_fini(&out);
	builder_free(b);
	builder_free(base);
}

/* n samples of 10 ms in a function of a language: no library holds it. */
static void sample_in_file(struct builder *b, const char *name, const char *file, uint32_t line,
			   int64_t n)
{
	const int64_t values[] = {n, n * 10000000};
	struct fusee_function f = {
		.name = builder_cstr(b, name), .file = builder_cstr(b, file), .start_line = line};
	struct fusee_line at = {.function = builder_function(b, &f), .line = line + 1};
	struct fusee_location l = {0};
	uint32_t location = builder_location(b, &l, &at, 1);

	builder_sample(b, builder_stack(b, &location, 1), NULL, 0, 0, 0, values);
}

/* Four profiles: both, and what each has more. Stacks are equal if their functions are. */
TEST(a_comparison_for_speedscope)
{
	struct render_options o = {.type = "samples"};
	struct builder *b = fresh(), *base = fresh();
	struct buf out = {0};

	sample(b, "/bin/x", "f;main", 7);
	sample(b, "/bin/x", "new;main", 2);
	sample(base, "/bin/x", "f;main", 3);
	sample(base, "/bin/x", "old;main", 5);
	CHECK_INT(render_speedscope(finished(b), finished(base), &o, &out), 0);
	text(&out);
	/* main, f, new, old in the order of their first stacks */
	CHECK(strstr(out.p, "\"name\":\"samples\",\"unit\":\"none\",\"startValue\":0,"
			    "\"endValue\":9,\"samples\":[[1,0],\n[1,2]],\"weights\":[7,2]}"));
	CHECK(strstr(out.p, "\"samples, base\",\"unit\":\"none\",\"startValue\":0,"
			    "\"endValue\":8,\"samples\":[[1,0],\n[1,3]],\"weights\":[3,5]}"));
	CHECK(strstr(out.p, "\"samples, more than base\",\"unit\":\"none\",\"startValue\":0,"
			    "\"endValue\":6,\"samples\":[[1,0],\n[1,2]],\"weights\":[4,2]}"));
	CHECK(strstr(out.p, "\"samples, less than base\",\"unit\":\"none\",\"startValue\":0,"
			    "\"endValue\":5,\"samples\":[[1,3]],\"weights\":[5]}"));
	buf_fini(&out);
	builder_free(b);
	builder_free(base);
}

TEST_OF_BUILDER(hottest)
{
	struct render_options o = {.width = 80, .rows = 4};
	struct buf out = {0};

	sample(b, "/usr/lib/libwebp.so.7", "quantize_block;encode_macroblock", 812);
	sample(b, "/usr/lib/libwebp.so.7", "encode_macroblock", 291);
	sample(b, "/usr/lib/libz.so.1", "inflate_fast", 177);
	sample(b, "/usr/lib/libz.so.1", "inflate_fast;[truncated: too deep]", 3);
	sample(b, "", "[lost: ring full]", 997);
	sample_in_file(b, "Model.save", "/srv/app/models.py", 41, 280);
	CHECK_INT(render_hottest(finished(b), &o, &out), 0);
	CHECK_STR(text(&out),
		  "        self             total\n"
		  "      9.97 s  38.9 %    9.97 s  38.9 %   [lost: ring full]\n"
		  "      8.12 s  31.7 %    8.12 s  31.7 %   quantize_block     libwebp.so.7\n"
		  "      2.91 s  11.4 %   11.03 s  43.1 %   encode_macroblock  libwebp.so.7\n"
		  "      2.80 s  10.9 %    2.80 s  10.9 %   Model.save         models.py:41\n");
	buf_fini(&out);
}

#define K "[kernel.kallsyms]!"

/* Also without the kernel's functions, of a kernel thread, and of a program without names. */
TEST_OF_BUILDER(waits)
{
	struct render_options o = {.width = 80};
	struct buf out = {0};

	sample(b, "/bin/x",
	       K "schedule;" K "ep_poll;" K "__x64_sys_epoll_wait;"
		 "/lib/libc.so.6!epoll_wait;wait_event;read_query;serve;main",
	       400);
	sample(b, "/bin/x",
	       K "io_schedule;" K "ep_poll;" K "__x64_sys_epoll_wait;"
		 "/lib/libc.so.6!epoll_pwait;wait_event;read_query;serve;other",
	       200);
	sample(b, "/bin/x", K "schedule;" K "folio_wait_bit;" K "exc_page_fault;copy;copy;main",
	       150);
	sample(b, "/bin/x",
	       K "preempt_schedule_irq;" K "irqentry_exit;" K "__x64_sys_read;"
		 "/lib/libc.so.6!read;load;x+0x1234;main",
	       100);
	sample(b, "/bin/x", K "schedule;" K "worker_thread;" K "kthread", 60);
	sample(b, "/bin/x", "/lib/libc.so.6!nanosleep;doze;[truncated: too deep]", 50);
	sample(b, "/bin/x", K "schedule;" K "__arm64_sys_futex;x+0x10;x+0x20", 30);
	sample(b, "", "[lost: ring full]", 10);
	CHECK_INT(render_waits(finished(b), &o, &out), 0);
	CHECK_STR(text(&out),
		  "      6.00 s  60.0 %   epoll_wait  wait_event < read_query < serve\n"
		  "      1.50 s  15.0 %   page fault  copy < copy < main\n"
		  "      1.00 s  10.0 %   preempted   load < main\n"
		  "      0.60 s   6.0 %               schedule < worker_thread < kthread\n"
		  "      0.50 s   5.0 %   nanosleep   doze\n"
		  "      0.30 s   3.0 %   futex       x+0x10\n"
		  "      0.10 s   1.0 %               [lost: ring full]\n");
	buf_fini(&out);
}

TEST_OF_BUILDER(nothing_at_all)
{
	const struct fusee_profile *p = finished(b);
	struct render_options o = {.width = 80};
	struct buf out = {0};

	CHECK_INT(render_hottest(p, &o, &out), 0);
	CHECK_INT(render_waits(p, &o, &out), 0);
	CHECK_INT(out.len, 0);
	CHECK_INT(render_top(p, NULL, &o, &out), 0);
	CHECK_INT(render_tree(p, NULL, &o, &out), 0);
	CHECK_INT(render_folded(p, NULL, &o, &out), 0);
	CHECK_INT(render_speedscope(p, NULL, &o, &out), 0);
	CHECK_INT(render_json(p, p, &o, &out), 0);
	buf_fini(&out);
}

TEST(values)
{
	static const struct {
		int64_t value;
		const char *unit, *to, *text;
	} cases[] = {
		{1500000000, "nanoseconds", "auto", "1.50s"},
		{40000000, "nanoseconds", "auto", "40ms"},
		{-40000000, "nanoseconds", "s", "-0.04s"},
		{0, "nanoseconds", "s", "0"},
		{7200000, "ms", "auto", "2hrs"},
		{1536, "bytes", "auto", "1.50kB"},
		{12, "count", "auto", "12"},
		{12, "count", "count", "12"},
		{12, "widgets", "widgets", "12widgets"},
		{1, "ns", "s", "0"},
		{INT64_MIN, "count", "auto", "-9223372036854775808"},
	};
	char out[RENDER_NUMBER];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		render_value(out, cases[i].value, str(cases[i].unit), cases[i].to);
		CHECK_STR(out, cases[i].text);
	}
	render_percent(out, 1, 3);
	CHECK_STR(out, "33.33%");
	render_percent(out, 9996, 10000);
	CHECK_STR(out, "  100%");
	render_percent(out, -1, 1000);
	CHECK_STR(out, "  0.1%");
	render_percent(out, 5, 0);
	CHECK_STR(out, "    0%");
}

TEST(json_strings)
{
	struct buf out = {0};

	json_str(&(struct json){.out = &out}, NULL, str("a\"b\\c\n</script>&\xff\xc3\xa9"));
	CHECK_STR(text(&out),
		  "\"a\\\"b\\\\c\\u000a\\u003c/script\\u003e\\u0026\xef\xbf\xbd\xc3\xa9\"");
	buf_fini(&out);
}
