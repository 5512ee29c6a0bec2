/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/import
/* core/import: folded stacks and files of speedscope, and which of all formats a file has. */
#include "base/str.h"
#include "import/read.h"
#include "test.h"

static struct profile_file *file;

static void drop(void)
{
	profile_file_free(file);
}

/* Until the test ends. */
static const struct fusee_profile *read_text(const char *text)
{
	const char *error = "";

	if (profile_read(text, strlen(text), &file, &error))
		printf("# %s\n", error);
	CHECK_STR(error, "");
	atexit(drop);
	return profile_of(file);
}

/* What is wrong with the text. */
static const char *refused(const char *text)
{
	static const char *error;
	struct profile_file *f;

	CHECK(profile_read(text, strlen(text), &f, &error) < 0);
	return error;
}

static struct fusee_str string_at(const struct fusee_profile *p, uint32_t i)
{
	return *FUSEE_AT(struct fusee_str, p->strings, i);
}

/* "leaf@file:12;caller 12 3" of each sample, a line each, with its label in front. */
static const char *samples_of(const struct fusee_profile *p)
{
	static char out[4096];
	size_t n = 0;

	for (uint32_t i = 0; i < p->samples.n; i++) {
		const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, i);
		const struct fusee_stack *stack = FUSEE_AT(struct fusee_stack, p->stacks, s->stack);
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->labels,
						       s->first_label);

		if (s->nlabels)
			n += (size_t)sprintf(out + n, "[%.*s=%.*s] ", (int)l->key.len, l->key.p,
					     (int)l->str.len, l->str.p);
		for (uint32_t k = 0; k < stack->n; k++) {
			const struct fusee_location *at = FUSEE_AT(
				struct fusee_location, p->locations,
				*FUSEE_AT(uint32_t, p->stack_locations, stack->first + k));
			const struct fusee_line *line = FUSEE_AT(struct fusee_line, p->lines,
								 at->first_line);
			const struct fusee_function *f = FUSEE_AT(struct fusee_function,
								  p->functions, line->function);
			struct fusee_str name = string_at(p, f->name), from = string_at(p, f->file),
					 type = string_at(p, at->frame_type);

			n += (size_t)sprintf(out + n, "%s%.*s", k ? ";" : "", (int)name.len,
					     name.p);
			if (line->line)
				n += (size_t)sprintf(out + n, "@%.*s:%u", (int)from.len, from.p,
						     line->line);
			if (type.len)
				n += (size_t)sprintf(out + n, "<%.*s>", (int)type.len, type.p);
		}
		for (uint32_t k = 0; k < p->types.n; k++)
			n += (size_t)sprintf(
				out + n, " %lld",
				(long long)*FUSEE_AT(int64_t, p->values, i * p->types.n + k));
		n += (size_t)sprintf(out + n, "\n");
	}
	out[n] = '\0';
	return out;
}

/* "samples/count base/count". */
static const char *types_of(const struct fusee_profile *p)
{
	static char out[256];
	size_t n = 0;

	for (uint32_t i = 0; i < p->types.n; i++) {
		const struct fusee_value_type *t = FUSEE_AT(struct fusee_value_type, p->types, i);
		struct fusee_str type = string_at(p, t->type), unit = string_at(p, t->unit);

		n += (size_t)sprintf(out + n, "%s%.*s/%.*s", i ? " " : "", (int)type.len, type.p,
				     (int)unit.len, unit.p);
	}
	return out;
}

/* ---- folded ---- */

TEST(folded_stacks)
{
	const struct fusee_profile *p = read_text("main;work;leaf 12\r\nmain;work 3\n\n"
						  "main;work;leaf 1");

	CHECK_STR(types_of(p), "samples/count");
	CHECK_STR(samples_of(p), "leaf;work;main 13\nwork;main 3\n");
}

TEST(folded_names_have_spaces_and_numbers)
{
	const struct fusee_profile *p = read_text("java main;List<int, 3>::get(int const&) 12\n"
						  "#<Class:X>#to 5;f 1\n"
						  "thread 7;; 2\n");

	CHECK_STR(types_of(p), "samples/count");
	CHECK_STR(samples_of(p), "List<int, 3>::get(int const&);java main 12\nf;#<Class:X>#to 5 1\n"
				 "thread 7 2\n");
}

TEST(folded_of_two_sides)
{
	const struct fusee_profile *p = read_text("main;a 10 12\nmain;b 4 0\n");

	CHECK_STR(types_of(p), "samples/count base/count");
	CHECK_STR(samples_of(p), "a;main 12 10\nb;main 0 4\n");
}

TEST(folded_of_one_side_where_a_name_ends_with_a_number)
{
	const struct fusee_profile *p = read_text("main;worker 10 12\nmain;b 4\n");

	CHECK_STR(types_of(p), "samples/count");
	CHECK_STR(samples_of(p), "worker 10;main 12\nb;main 4\n");
}

TEST(folded_fractions_add_up)
{
	const struct fusee_profile *p = read_text(
		"a 0.25\nb 0.25\nc 0.25\nd 0.25\ne 10.5\nf 0.5\n");
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->samples.n; i++)
		sum += *FUSEE_AT(int64_t, p->values, i);
	CHECK_INT(sum, 12);
}

TEST(folded_frames_with_a_source_line)
{
	const struct fusee_profile *p = read_text("<module> (a b.py:3);f (x/y.py:12) 1\n"
						  "block in <main> - /srv/a.rb:7 2\n"
						  "f (int);g (a:b) 3\n");

	CHECK_STR(samples_of(p), "f@x/y.py:12;<module>@a b.py:3 1\nblock in <main>@/srv/a.rb:7 2\n"
				 "g (a:b);f (int) 3\n");
}

TEST(folded_frames_with_a_kind)
{
	const struct fusee_profile *p = read_text(
		"main;do_read_[k] 1\nLMain;::run_[j];x_[i];y_[z] 2\n");

	CHECK_STR(samples_of(p), "do_read<kernel>;main 1\ny_[z];x;::run;LMain 2\n");
}

TEST(folded_stacks_without_frames)
{
	CHECK_STR(samples_of(read_text(" 23\nmain;f 2\n 4\n")), " 27\nf;main 2\n");
}

TEST(folded_threads_of_async_profiler)
{
	const struct fusee_profile *p = read_text(
		"[a b tid=12];W.main 3\n[x tid=7] 4\n[tid=1];c 5\n");

	CHECK_STR(samples_of(p), "[thread=a b] W.main 3\n[thread=x]  4\nc;[tid=1] 5\n");
	CHECK_INT(FUSEE_AT(struct fusee_sample, p->samples, 0)->tid, 12);
}

TEST(folded_lines_that_are_none_are_counted)
{
	const struct fusee_profile *p = read_text("# made by x\n"
						  "a 1\nb 1\nc 1\nd 1\ne 1\nf 1\ng 1\nh 1\n"
						  "a 1\nb 1\nc 1\nd 1\ne 1\nf 1\ng 1\nh 1\n"
						  "12\nno number\nd 1e3\na;b 7\n");
	struct fusee_str comment;

	CHECK_INT(p->samples.n, 9);
	CHECK_INT(p->comments.n, 1);
	comment = *FUSEE_AT(struct fusee_str, p->comments, 0);
	CHECK(fusee_text_is(comment, "folded stacks: 4 lines were not understood"));
}

TEST(what_is_no_folded_text)
{
	CHECK(strstr(refused(""), "empty"));
	CHECK(strstr(refused("hello\n"), "not a pprof profile"));
	CHECK(strstr(refused("goroutine profile: total 4\n1 @ 0x43 0x44\n"),
		     "not a pprof profile"));
	CHECK(strstr(refused("a\x01;b 1\n"), "not a pprof profile"));
}

/* ---- speedscope ---- */

#define FRAMES                                                                                    \
	"{\"shared\": {\"frames\": [{\"name\": \"main\"}, {\"name\": \"f\", \"file\": \"x.py\", " \
	"\"line\": 7, \"col\": null}]},"
#define SAMPLED(unit, samples, weights)                                \
	"{\"type\": \"sampled\", \"name\": \"one\", \"unit\": \"" unit \
	"\", \"startValue\": 0, \"endValue\": 1, "                     \
	"\"samples\": " samples ", \"weights\": " weights "}"
#define EVENTED(unit, events)                                          \
	"{\"type\": \"evented\", \"name\": \"two\", \"unit\": \"" unit \
	"\", \"startValue\": 0, \"endValue\": 1, \"events\": [" events "]}"

TEST(speedscope_sampled)
{
	const struct fusee_profile *p = read_text(
		FRAMES "\"exporter\": \"x 1\", \"profiles\": [" SAMPLED(
			"seconds", "[[0, 1], [0], [0, 1]]", "[0.01, 1, 0.29]") "]}\n");

	CHECK_STR(types_of(p), "time/nanoseconds");
	CHECK_STR(samples_of(p), "f@x.py:7;main 300000000\nmain 1000000000\n");
	CHECK(fusee_text_is(*FUSEE_AT(struct fusee_str, p->comments, 0), "made by x 1"));
}

TEST(speedscope_evented)
{
	const struct fusee_profile *p = read_text(FRAMES "\"profiles\": [" EVENTED(
		"milliseconds", "{\"type\": \"O\", \"frame\": 0, \"at\": 5}, {\"type\": \"O\", "
				"\"frame\": 1, \"at\": 7}, "
				"{\"type\": \"C\", \"frame\": 1, \"at\": 10.5}, {\"type\": \"C\", "
				"\"frame\": 0, \"at\": 11}") "]}");

	CHECK_STR(samples_of(p), "main 2500000\nf@x.py:7;main 3500000\n");
}

TEST(speedscope_of_several_profiles)
{
	const struct fusee_profile *p = read_text(
		FRAMES "\"profiles\": [" SAMPLED("none", "[[0]]", "[4]") ", " SAMPLED(
			"bytes", "[[1]]",
			"[8]") ", " EVENTED("none",
					    "{\"type\": \"O\", \"frame\": 0, \"at\": 1}, "
					    "{\"type\": \"C\", \"frame\": 0, \"at\": 3}") "]}");

	CHECK_STR(types_of(p), "samples/count space/bytes");
	CHECK_STR(samples_of(p),
		  "[profile=one] main 4 0\n[profile=one] f@x.py:7 0 8\n[profile=two] main 2 0\n");
}

TEST(what_is_wrong_in_a_file_of_speedscope)
{
	CHECK(strstr(refused("{\"a\": 1}"), "lacks frames or profiles"));
	CHECK(strstr(refused("{\"a\": 1"), "damaged or truncated"));
	CHECK(strstr(refused("{\"a\": 1} x"), "damaged or truncated"));
	CHECK(strstr(refused(FRAMES "\"profiles\": []}"), "no profiles"));
	CHECK(strstr(refused(FRAMES "\"profiles\": [7]}"), "unit"));
	CHECK(strstr(refused(FRAMES "\"profiles\": [" SAMPLED("none", "[[0]]", "[]") "]}"),
		     "one weight"));
	CHECK(strstr(refused(FRAMES "\"profiles\": [" SAMPLED("none", "[[2]]", "[1]") "]}"),
		     "not in its list"));
	CHECK(strstr(refused(FRAMES "\"profiles\": [" SAMPLED("none", "[[-1]]", "[1]") "]}"),
		     "not in its list"));
	CHECK(strstr(refused(FRAMES "\"profiles\": [" SAMPLED("none", "[0]", "[1]") "]}"),
		     "list of frames"));
	CHECK(strstr(refused(FRAMES "\"profiles\": [" SAMPLED("weeks", "[[0]]", "[1]") "]}"),
		     "unit"));
	CHECK(strstr(refused(FRAMES "\"profiles\": [" EVENTED(
			     "none", "{\"type\": \"C\", \"frame\": 0, \"at\": 1}") "]}"),
		     "innermost"));
	CHECK(strstr(refused(FRAMES "\"profiles\": [" EVENTED(
			     "none", "{\"type\": \"O\", \"frame\": 0, \"at\": 2}, {\"type\": "
				     "\"O\", \"frame\": 0, \"at\": 1}") "]}"),
		     "order of time"));
	CHECK(strstr(refused(FRAMES "\"profiles\": [" EVENTED(
			     "none", "{\"type\": \"X\", \"frame\": 0, \"at\": 2}") "]}"),
		     "neither opens nor closes"));
}

/* A deep stack at each of many events would take hours. */
TEST(events_of_speedscope_have_a_bound)
{
	static const char closed[] = ",{\"type\":\"C\",\"frame\":0,\"at\":%d}";
	int depth = 20000, n = 40000;
	char *text = malloc(200 + (size_t)n * 48), *to = text;

	CHECK(text);
	to += sprintf(to, FRAMES "\"profiles\": [{\"type\": \"evented\", \"unit\": \"none\", "
				 "\"events\": [{\"type\":\"O\",\"frame\":0,\"at\":0}");
	for (int i = 1; i < n; i++)
		to += sprintf(
			to, i < depth || i % 2 ? ",{\"type\":\"O\",\"frame\":0,\"at\":%d}" : closed,
			i < depth ? 0 : i);
	sprintf(to, "]}]}");
	CHECK(strstr(refused(text), "268,435,456 frames"));
	free(text);
}
