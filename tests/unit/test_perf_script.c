/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/import
/* core/import/perf_script: the forms of text that perf script prints. tests/run/perf-script
 * compares with perf itself. */
#include "import/internal/perf_script.h"
#include "test.h"

static struct builder *builder;

static void drop(void)
{
	builder_free(builder);
}

/* Until the test ends. */
static const struct fusee_profile *read_text(const char *text)
{
	const struct fusee_profile *p;
	const char *error;

	CHECK(perf_script_is(text, strlen(text)));
	CHECK_INT(builder_new(&builder), 0);
	atexit(drop);
	CHECK_INT(perf_script_read(builder, text, strlen(text), &error), 0);
	CHECK_STR(error, "");
	CHECK_INT(builder_finish(builder, &p), 0);
	return p;
}

static const char *string_at(const struct fusee_profile *p, uint32_t i)
{
	static char out[8][256];
	static int n;
	const struct fusee_str *s = FUSEE_AT(struct fusee_str, p->strings, i);
	char *to = out[n++ % 8];

	snprintf(to, sizeof(out[0]), "%.*s", (int)s->len, s->p ? s->p : "");
	return to;
}

/* "leaf;caller" of a sample; functions inlined are in front of the function that has their code. */
static const char *stack_of(const struct fusee_profile *p, uint32_t sample)
{
	static char out[1024];
	const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, sample);
	const struct fusee_stack *stack = FUSEE_AT(struct fusee_stack, p->stacks, s->stack);

	out[0] = '\0';
	for (uint32_t i = 0; i < stack->n; i++) {
		uint32_t at = *FUSEE_AT(uint32_t, p->stack_locations, stack->first + i);
		const struct fusee_location *l = FUSEE_AT(struct fusee_location, p->locations, at);

		if (!l->nlines)
			strcat(out, ";?");
		for (uint32_t j = 0; j < l->nlines; j++) {
			const struct fusee_line *line = FUSEE_AT(struct fusee_line, p->lines,
								 l->first_line + j);
			const struct fusee_function *f = FUSEE_AT(struct fusee_function,
								  p->functions, line->function);

			snprintf(out + strlen(out), sizeof(out) - strlen(out), ";%s",
				 string_at(p, f->name));
			if (line->line)
				snprintf(out + strlen(out), sizeof(out) - strlen(out), "@%s:%u",
					 string_at(p, f->file), line->line);
		}
	}
	return out[0] ? out + 1 : out;
}

static const struct fusee_sample *sample_at(const struct fusee_profile *p, uint32_t i)
{
	return FUSEE_AT(struct fusee_sample, p->samples, i);
}

static const char *thread_of(const struct fusee_profile *p, uint32_t i)
{
	static char out[64];
	const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->labels,
					       sample_at(p, i)->first_label);

	snprintf(out, sizeof(out), "%.*s", (int)l->str.len, l->str.p);
	return out;
}

static int64_t value_of(const struct fusee_profile *p, uint32_t sample, uint32_t type)
{
	return *FUSEE_AT(int64_t, p->values, sample * p->types.n + type);
}

TEST(comm_with_spaces_and_digits)
{
	const struct fusee_profile *p = read_text(
		"# a comment\n"
		"\n"
		"worker 3 a/b 14214  1375.116664:    5025125 cpu-clock:pppH: \n"
		"\t            1135 leaf+0xc (/tmp/my prog)\n"
		"\t            116f main+0x13 (/tmp/my prog)\n"
		"\n"
		"7 10/12 [003] 1375.216664:    5025125 cpu-clock:pppH: \n"
		"\tffffffff81000e06 do_it+0x16 ([kernel.kallsyms])\n"
		"\t            1135 leaf+0xd (/tmp/my prog)\n"
		"\n");

	CHECK_INT(p->samples.n, 2);
	CHECK_STR(thread_of(p, 0), "worker 3 a/b");
	CHECK_STR(stack_of(p, 0), "leaf;main");
	CHECK_INT(sample_at(p, 0)->pid, 14214);
	CHECK_INT(sample_at(p, 0)->tid, 14214);
	CHECK_STR(thread_of(p, 1), "7");
	CHECK_STR(stack_of(p, 1), "do_it;leaf");
	CHECK_INT(sample_at(p, 1)->pid, 10);
	CHECK_INT(sample_at(p, 1)->tid, 12);
	CHECK_INT(p->types.n, 2);
	CHECK_INT(value_of(p, 0, 0), 1);
	CHECK_INT(value_of(p, 0, 1), 5025125);
	CHECK_INT(p->duration_ns, 100000000);
	CHECK_INT(p->comments.n, 0);
}

TEST(threads_that_have_ended)
{
	const struct fusee_profile *p = read_text(
		":-1    -1 [000]  3146.369569:    5025125 cpu-clock: \n"
		"\tffffffff81000e06 do_exit+0x16 ([kernel.kallsyms])\n\n"
		"cc1  6574 [000]  3147.676114:    5025125 cpu-clock: \n\n");

	CHECK_INT(p->samples.n, 2);
	CHECK_STR(thread_of(p, 0), ":-1");
	CHECK_INT(sample_at(p, 0)->pid, 0);
	CHECK_STR(stack_of(p, 0), "do_exit");
	CHECK_STR(stack_of(p, 1), "");
}

static const char *path_of(const struct fusee_profile *p, uint32_t frame)
{
	const struct fusee_stack *stack = FUSEE_AT(struct fusee_stack, p->stacks,
						   sample_at(p, 0)->stack);
	uint32_t at = *FUSEE_AT(uint32_t, p->stack_locations, stack->first + frame);
	uint32_t mapping = FUSEE_AT(struct fusee_location, p->locations, at)->mapping;

	return string_at(p, FUSEE_AT(struct fusee_mapping, p->mappings, mapping)->path);
}

/* perf prints paths as they are, and functions without a path with -F sym alone. */
TEST(parentheses_in_paths)
{
	const struct fusee_profile *p = read_text(
		"java main [x] 1 10.000000:     250000 cpu-clock: \n"
		"\t    7f0000001000 f(int)+0x1f (/opt/app (copy)/x (1).so (deleted))\n"
		"\t    7f0000002000 (anonymous namespace)::g(int (*)(int)) (/opt/a(b)\n"
		"\t    7f0000003000 h(char) (/opt/a)b)\n"
		"\t    7f0000004000 (anonymous namespace)::i(int)\n"
		"\t    7f0000005000 java.lang.String.hashCode ([JIT app cache])\n"
		"\n");

	CHECK_STR(stack_of(p, 0), "f(int);(anonymous namespace)::g(int (*)(int));h(char);"
				  "(anonymous namespace)::i(int);java.lang.String.hashCode");
	CHECK_STR(path_of(p, 0), "/opt/app (copy)/x (1).so");
	CHECK_STR(path_of(p, 1), "/opt/a(b");
	CHECK_STR(path_of(p, 2), "/opt/a)b");
	CHECK_STR(path_of(p, 4), "[JIT app cache]");
}

TEST(kernel_and_deleted_files)
{
	const struct fusee_profile *p = read_text(
		"a 1 1.5: 10 cpu-clock: \n"
		"\tffffffff81000e06 f+0x1 ([kernel.kallsyms])\n"
		"\t    7f0000001000 operator() (int)+0x1f (/x/lib.so (deleted))\n"
		"\t    7f0000002000 [unknown] (/tmp/perf-1.map)\n"
		"\t    7f0000003000 [unknown] ([unknown])\n\n");
	const struct fusee_mapping *m;

	CHECK_STR(stack_of(p, 0), "f;operator() (int);?;?");
	CHECK_INT(p->mappings.n, 5);
	m = FUSEE_AT(struct fusee_mapping, p->mappings, 1);
	CHECK(m->flags & FUSEE_MAPPING_KERNEL);
	CHECK_STR(string_at(p, m->path), "[kernel.kallsyms]");
	m = FUSEE_AT(struct fusee_mapping, p->mappings, 2);
	CHECK_STR(string_at(p, m->path), "/x/lib.so");
	m = FUSEE_AT(struct fusee_mapping, p->mappings, 3);
	CHECK(m->flags & FUSEE_MAPPING_JIT);
}

TEST(inlined_functions_and_source_lines)
{
	const struct fusee_profile *p = read_text("a 1 1.5: 10 cpu-clock: \n"
						  "\t 1135 leaf+0xc (/p)\n"
						  "  b.c:2\n"
						  "\t 116f mid (inlined)\n"
						  "  b.c:3\n"
						  "\t 116f work+0x3 (/p)\n"
						  "  c d.c:4\n"
						  "\t 1180 main+0x3 (/p)\n\n");

	CHECK_STR(stack_of(p, 0), "leaf@b.c:2;mid@b.c:3;work@c d.c:4;main");
	CHECK_INT(FUSEE_AT(struct fusee_stack, p->stacks, sample_at(p, 0)->stack)->n, 3);
}

TEST(without_call_chains)
{
	const struct fusee_profile *p = read_text(
		"         dad 14723  1378.338266:          1 page-faults:  ffffffff8175336a "
		"elf_load+0x28a ([kernel.kallsyms])\n"
		"         dad 14723  1378.338295:          3 page-faults:  ffffffff8175336a "
		"elf_load+0x28a ([kernel.kallsyms])\n"
		"         dad 14723  1378.338296:          1 page-faults:          1135 main+0x2 "
		"(/p)\n");

	CHECK_INT(p->samples.n, 2);
	CHECK_STR(stack_of(p, 0), "elf_load");
	CHECK_INT(value_of(p, 0, 0), 2);
	CHECK_INT(value_of(p, 0, 1), 4);
	CHECK_STR(stack_of(p, 1), "main");
	CHECK_STR(string_at(p, FUSEE_AT(struct fusee_value_type, p->types, 1)->type),
		  "page_faults");
}

TEST(several_events)
{
	const struct fusee_profile *p = read_text(
		"a 1 1.5: 10 page-faults:u: \n\t 1135 leaf+0xc (/p)\n\n"
		"a 1 1.6: 20 cpu-clock: \n\t 1135 leaf+0xc (/p)\n\n"
		"a 1 1.7: 5 sched:sched_switch: prev_comm=a prev_pid=1\n"
		"\t 1135 leaf+0xc (/p)\n\n");
	const struct fusee_value_type *t = FUSEE_AT(struct fusee_value_type, p->types, 2);

	CHECK_INT(p->samples.n, 1);
	CHECK_INT(p->types.n, 4);
	CHECK_INT(value_of(p, 0, 0), 3);
	CHECK_INT(value_of(p, 0, 1), 10);
	CHECK_INT(value_of(p, 0, 2), 20);
	CHECK_INT(value_of(p, 0, 3), 5);
	CHECK_STR(string_at(p, t->type), "cpu");
	CHECK_STR(string_at(p, t->unit), "nanoseconds");
	CHECK_INT(p->default_type, 2);
}

TEST(without_a_period_there_are_samples_alone)
{
	const struct fusee_profile *p = read_text(
		"a 1 1.5: cpu-clock: \n\t 1135 leaf+0xc (/p)\n\n");

	CHECK_INT(p->types.n, 1);
	CHECK_INT(value_of(p, 0, 0), 1);
}

TEST(lines_that_are_not_understood_are_counted)
{
	const struct fusee_profile *p = read_text(
		"a 1 1.5: 1 cpu-clock: \n\tzzz\n\t 1135 f (/p)\n\n"
		"something else\n");

	CHECK_INT(p->samples.n, 1);
	CHECK_STR(stack_of(p, 0), "f");
	CHECK_INT(p->comments.n, 1);
}

TEST(what_is_no_output_of_perf_script)
{
	CHECK(!perf_script_is("", 0));
	CHECK(!perf_script_is("hello\n", 6));
	CHECK(!perf_script_is("main;work 12\n", 13));
	CHECK(!perf_script_is("\x1f\x8b", 2));
	CHECK(!perf_script_is("a 1 1.5:\n", 9));
	CHECK(!perf_script_is("a 1 99999999999999999999.5: 1 cpu-clock:\n", 41));
}

TEST(more_than_16_events_are_refused)
{
	char text[2048] = "";
	struct builder *b;
	const char *error;

	for (int i = 0; i < 17; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "a 1 1.5: 1 event%d: \n\t 1 f (/p)\n\n", i);
	CHECK_INT(builder_new(&b), 0);
	CHECK(perf_script_read(b, text, strlen(text), &error) < 0);
	CHECK(strstr(error, "more than 16 events"));
	builder_free(b);
}
