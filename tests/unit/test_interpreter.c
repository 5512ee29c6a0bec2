/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/pprof
/* An interpreter's own code in reports, and in pprof files. */
#include "test.h"

#include "profile/builder.h"
#include "pprof/pprof.h"
#include "report/report.h"
#include "lib/profiles.h"

#define LIBRARY "/usr/lib/libx.so.1"

static struct builder *fresh(void)
{
	struct builder *b;

	CHECK_INT(builder_new(&b), 0);
	builder_type(b, "samples", "count");
	return b;
}

/* "eval*" is the interpreter's code in its library, "eval*!" in the program, "app!" the program's,
 * "f@app.x" a function of the language, "f#@app.x" a hidden function, "[r]" a reason. Behind '^':
 * the language, of a function or of the interpreter. */
static uint32_t frame(struct builder *b, const char *s)
{
	char name[64];
	struct fusee_mapping map = {.limit = UINT64_MAX};
	struct fusee_function f = {.start_line = 7};
	struct fusee_location l = {0};
	struct fusee_line line = {.line = 9};
	const char *at = strchr(s, '@'), *star = strchr(s, '*'), *language = strchr(s, '^');

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(s, "@*!#^"), s);
	f.name = f.system_name = builder_cstr(b, name);
	f.flags = strchr(s, '#') ? FUSEE_FRAME_HIDDEN : 0;
	map.path = builder_cstr(b, strchr(s, '!') ? "/bin/program" : LIBRARY);
	map.flags = strchr(s, '!') ? FUSEE_MAPPING_MAIN : FUSEE_MAPPING_LIBRARY;
	l.flags = star ? FUSEE_LOCATION_INTERPRETER : *s == '[' ? FUSEE_LOCATION_REASON : 0;
	if (language)
		*(star ? &l.language : &l.frame_type) = builder_cstr(b, language + 1);
	if (at)
		f.file = builder_string(b, at + 1, strcspn(at + 1, "^"));
	else if (*s != '[')
		l.mapping = builder_mapping(b, &map);
	l.address = strlen(name);
	line.function = builder_function(b, &f);
	return builder_location(b, &l, &line, 1);
}

/* Frames, leaf first. */
static void sample(struct builder *b, const char *stack, int64_t n)
{
	uint32_t locations[16], k = 0;
	char *copy = strdup(stack), *at = NULL;

	for (char *s = strtok_r(copy, ";", &at); s; s = strtok_r(NULL, ";", &at))
		locations[k++] = frame(b, s);
	builder_sample(b, builder_stack(b, locations, k), NULL, 0, 0, 0, &n);
	free(copy);
}

static void check_folded(const struct fusee_profile *p, bool native, const char *text)
{
	struct render_options o = {.native = native};
	struct buf out = {0};

	CHECK_INT(render_folded(p, NULL, &o, &out), 0);
	buf_add(&out, "", 1);
	CHECK_STR(out.p, text);
	buf_fini(&out);
}

/* The same from the profile, and from a file of it. */
static void check_both(const struct fusee_profile *p, bool native, const char *text)
{
	struct pprof_file *file;
	struct buf bytes = {0};
	const char *error;

	check_folded(p, native, text);
	CHECK_INT(pprof_encode(p, false, &bytes), 0);
	CHECK_INT(pprof_decode(bytes.p, bytes.len, &file, &error), 0);
	check_folded(pprof_profile(file), native, text);
	CHECK_INT(pprof_profile(file)->comments.n, 0);
	pprof_free(file);
	buf_fini(&bytes);
}

static struct builder *usual(void)
{
	struct builder *b = fresh();

	sample(b, "add*;f@app.x;eval*;call*;<top>@app.x;eval*;run*;main!", 4);
	sample(b, "memcpy!;add*;f@app.x;eval*;call*;<top>@app.x;eval*;run*;main!", 1);
	sample(b, "collect*;run*;main!", 2); /* no frame of the language */
	sample(b, "add*;[truncated: too deep]", 3);
	return b;
}

#define TEST_OF_USUAL(id) TEST_WITH(id, struct builder *, b, usual(), builder_free(b))

TEST_OF_USUAL(an_interpreter_is_omitted_where_its_language_is)
{
	check_both(finished(b), false,
		   "[truncated: too deep];add 3\n"
		   "main;<top>;f 4\n"
		   "main;<top>;f;memcpy 1\n"
		   "main;run;collect 2\n");
}

TEST_OF_USUAL(all_on_request)
{
	check_both(finished(b), true,
		   "[truncated: too deep];add 3\n"
		   "main;run;collect 2\n"
		   "main;run;eval;<top>;call;eval;f;add 4\n"
		   "main;run;eval;<top>;call;eval;f;add;memcpy 1\n");
}

static bool says_omitted(const struct fusee_profile *p, bool native)
{
	struct render_options o = {.native = native};
	struct buf out = {0};
	bool says;

	CHECK_INT(render_top(p, NULL, &o, &out), 0);
	buf_add(&out, "", 1);
	says = strstr(out.p, "--native shows them");
	buf_fini(&out);
	return says;
}

/* The table's head says it, if there is anything that is omitted. */
TEST(what_is_omitted_is_said)
{
	struct builder *b = usual(), *without = fresh();
	const struct fusee_profile *p = finished(b);

	CHECK(says_omitted(p, false));
	CHECK(!says_omitted(p, true));
	sample(without, "collect*;run*;main!", 2);
	CHECK(!says_omitted(finished(without), false));
	builder_free(b);
	builder_free(without);
}

#define TEST_OF_BUILDER(id) TEST_WITH(id, struct builder *, b, fresh(), builder_free(b))

/* A program that embeds the interpreter has code of its own in the same file. */
TEST_OF_BUILDER(a_program_with_an_interpreter_inside)
{
	sample(b, "draw!;f@app.x;eval*!;app!", 5);
	sample(b, "eval*!;app!", 1);
	check_both(finished(b), false, "app;eval 1\napp;f;draw 5\n");
}

/* Beside the name in tables. */
TEST_OF_USUAL(a_language_has_file_and_line)
{
	struct render_options o = {0};
	const struct fusee_profile *p;
	struct buf out = {0};

	sample(b, "f!;main!", 1); /* the same name in the program */
	p = finished(b);
	CHECK_INT(render_top(p, NULL, &o, &out) | render_tree(p, NULL, &o, &out), 0);
	CHECK_INT(render_hottest(p, &(struct render_options){.width = 60}, &out) |
			  render_dot(p, NULL, &o, &out),
		  0);
	buf_add(&out, "", 1);
	CHECK(strstr(out.p, "  f  app.x:7\n"));
	CHECK(strstr(out.p, "  <top>  app.x:7\n"));
	CHECK(strstr(out.p, "│  f  app.x:7\n"));
	CHECK(strstr(out.p, " %   f        app.x:7\n"));
	CHECK(strstr(out.p, "label=\"f\\napp.x:7\\n"));
	buf_fini(&out);
}

/* What the language hides is its caller's, but for a stack of nothing else. */
TEST_OF_BUILDER(functions_that_a_language_hides)
{
	const struct fusee_profile *p;

	sample(b, "f@app.x;find#@import.x;<top>@app.x;main!", 3);
	sample(b, "find#@import.x;<top>@app.x;main!", 2);
	sample(b, "find#@import.x", 1);
	p = finished(b);
	check_both(p, false, "find 1\nmain;<top> 2\nmain;<top>;f 3\n");
	check_both(p, true, "find 1\nmain;<top>;find 2\nmain;<top>;find;f 3\n");
}

/* An interpreter's frames are omitted where functions of its own language represent them. */
TEST_OF_BUILDER(interpreters_of_two_languages)
{
	sample(b, "add*^x;f@app.x^x;eval*^x;run*^x;main!", 1);
	sample(b, "do*!^y;f@app.x^x;eval*^x;run*^x;main!", 2); /* Y has begun nothing */
	sample(b, "do*!^y;g@app.y^y;do*!^y;f@app.x^x;eval*^x;main!", 4);
	sample(b, "do*!^y;h@app.y^y;do*!^y;main!", 8);
	sample(b, "do*!^y;eval*^x;main!", 16);
	check_both(finished(b), false,
		   "main;eval;do 16\n"
		   "main;f 1\n"
		   "main;f;do 2\n"
		   "main;f;g 4\n"
		   "main;h 8\n");
}

/* Of a language that is not known they are omitted wherever a language is, and the other way round.
 */
TEST_OF_BUILDER(an_interpreter_of_an_unknown_language)
{
	sample(b, "add*;f@app.x^x;eval*^x;main!", 1);
	sample(b, "do*!^y;h@app.y;eval*^x;main!", 2);
	check_folded(finished(b), false, "main;f 1\nmain;h 2\n");
}

/* Comments that name other files, or none, change nothing. */
TEST_OF_BUILDER(comments_of_others)
{
	struct pprof_file *file;
	struct buf bytes = {0};
	const char *error;

	sample(b, "draw!;f@app.x;app!", 5);
	builder_comment(b, "fusee: interpreter: /bin/other");
	builder_comment(b, "fusee: interpreter: ");
	builder_comment(b, "fusee: interpreter: app in /bin/other");
	builder_comment(b, "fusee: interpreter of x: app in /bin/other");
	builder_comment(b, "fusee: interpreter of x y: app in /bin/program");
	builder_comment(b, "fusee: interpreter of : app in /bin/program");
	builder_comment(b, "fusee: interpreter of x");
	builder_comment(b, "fusee: language: [x]");
	CHECK_INT(pprof_encode(finished(b), false, &bytes), 0);
	CHECK_INT(pprof_decode(bytes.p, bytes.len, &file, &error), 0);
	check_folded(pprof_profile(file), false, "app;f;draw 5\n");
	CHECK_INT(pprof_profile(file)->comments.n, 5);
	pprof_free(file);
	buf_fini(&bytes);
}
