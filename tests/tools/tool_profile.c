/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_profile write DIR               writes profiles of all kinds there, NAME.pb.gz
 * tool_profile dump FILE               a line a sample, sorted: values, frames, labels
 * tool_profile copy FILE OUT           decodes and encodes
 * tool_profile VIEW [-b BASE] [-f FOCUS] [-i IGNORE] [-d HIDE] [-t TYPE] [-n ROWS] [-w WIDTH] [-c]
 * FILE [REGEX] top, tree, peek, folded, speedscope, json, hottest
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/builder.h"
#include "pprof/pprof.h"
#include "report/report.h"

#include "../lib/random.h"

#define MAX_FILE (256u << 20)

static void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

/* ---- profiles with known contents ---- */

static void save(struct builder *b, const char *dir, const char *name)
{
	const struct fusee_profile *p;
	struct buf out = {0};
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s.pb.gz", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || builder_finish(b, &p) || pprof_encode(p, true, &out) || buf_write(&out, fd))
		die(path, "cannot be written");
	close(fd);
	buf_fini(&out);
	builder_free(b);
}

static struct builder *fresh(void)
{
	struct builder *b;
	struct fusee_profile *p;

	if (builder_new(&b))
		die("builder", "no memory");
	builder_type(b, "samples", "count");
	builder_type(b, "cpu", "nanoseconds");
	p = builder_profile(b);
	p->default_type = 1;
	p->period_type = builder_cstr(b, "cpu");
	p->period_unit = builder_cstr(b, "nanoseconds");
	p->period = 10000000;
	p->start_ns = 1700000000123456789ull;
	p->duration_ns = 10000000000ull;
	return b;
}

static uint32_t mapping(struct builder *b, const char *path, uint32_t flags)
{
	struct fusee_mapping m = {
		.path = builder_cstr(b, path), .flags = flags, .limit = UINT64_MAX};

	if (*path == '/') {
		char id[17];

		snprintf(id, sizeof(id), "%016zx", strlen(path) * (size_t)0x0123456789abcd);
		m.build_id = builder_cstr(b, id);
	}
	return builder_mapping(b, &m);
}

static struct fusee_line line(struct builder *b, const char *name, uint32_t n)
{
	struct fusee_function f = {
		.name = builder_cstr(b, name), .file = builder_cstr(b, "src/a.c"), .start_line = n};

	f.system_name = f.name;
	return (struct fusee_line){.function = builder_function(b, &f), .line = n + 1};
}

/* Names parted by ',' are lines of one location, innermost first. */
static uint32_t location(struct builder *b, uint32_t map, uint64_t address, const char *names)
{
	struct fusee_location l = {.mapping = map, .address = address};
	struct fusee_line lines[16];
	char *copy = strdup(names), *save_at = NULL;
	uint32_t n = 0;

	for (char *s = strtok_r(copy, ",", &save_at); s && n < 16;
	     s = strtok_r(NULL, ",", &save_at))
		lines[n++] = line(b, s, (uint32_t)strlen(s) * 10);
	for (uint32_t i = 0; i + 1 < n; i++)
		lines[i].flags = FUSEE_LINE_INLINED;
	free(copy);
	return builder_location(b, &l, lines, n);
}

/* A stack as text, leaf first, ';' between locations; "@" is an address without a name. */
static void sample(struct builder *b, uint32_t map, const char *stack, int64_t n,
		   const char *thread, uint32_t pid)
{
	struct fusee_label label = {.key = {"thread", 6},
				    .str = {thread, thread ? strlen(thread) : 0}};
	const int64_t values[] = {n, n * 10000000};
	char *copy = strdup(stack), *save_at = NULL;
	uint32_t locations[64], k = 0;

	for (char *s = strtok_r(copy, ";", &save_at); s && k < 64;
	     s = strtok_r(NULL, ";", &save_at)) {
		uint64_t address = 4096;

		for (const char *c = s; *c; c++)
			address = address * 31 + (unsigned char)*c;
		locations[k++] = location(b, map, address % 1000000, *s == '@' ? "" : s);
	}
	builder_sample(b, builder_stack(b, locations, k), &label, thread ? 1 : 0, pid,
		       pid ? pid + 1 : 0, values);
	free(copy);
}

static struct builder *simple(int64_t weight)
{
	struct builder *b = fresh();
	uint32_t main = mapping(b, "/usr/bin/prog", FUSEE_MAPPING_MAIN | FUSEE_MAPPING_FUNCTIONS);
	uint32_t libc = mapping(b, "/lib/libc.so.6", FUSEE_MAPPING_LIBRARY);

	sample(b, main, "burn_70;main;_start", 70 * weight, "one", 100);
	sample(b, main, "burn_20;main;_start", 20, "two", 100);
	sample(b, main, "burn_10;helper;main;_start", 10, NULL, 101);
	sample(b, libc, "@;qsort", 3 * weight, NULL, 0);
	builder_loss(b, LOSS_TICK, "timer skipped", 12);
	builder_comment(b, "host example, Linux");
	return b;
}

static void write_small(const char *dir)
{
	struct builder *b = simple(1);
	const int64_t values[] = {5, 50000000}, less[] = {-3, -30000000};

	save(b, dir, "simple");
	save(simple(2), dir, "simple2");
	save(fresh(), dir, "empty");
	b = fresh();
	for (uint32_t i = 1; i < 40; i++) {
		char stack[1024] = "leaf";

		for (uint32_t k = 0; k < i; k++)
			snprintf(stack + strlen(stack), sizeof(stack) - strlen(stack), ";%s",
				 k % 3 ? "fib" : "even");
		sample(b, mapping(b, "/usr/bin/fib", FUSEE_MAPPING_MAIN), stack, i, NULL, 0);
	}
	save(b, dir, "recursion");
	b = fresh();
	sample(b, mapping(b, "/usr/bin/inl", FUSEE_MAPPING_MAIN), "a,b,c;d,e;main", 7, NULL, 0);
	sample(b, mapping(b, "/usr/bin/inl", FUSEE_MAPPING_MAIN), "a;b,c;main", 5, NULL, 0);
	sample(b, mapping(b, "/usr/bin/inl", FUSEE_MAPPING_MAIN), "b,b,c;c,main", 3, NULL, 0);
	save(b, dir, "inlines");
	b = fresh();
	sample(b, mapping(b, "[kernel.kallsyms]", FUSEE_MAPPING_KERNEL), "do_syscall_64;entry", 4,
	       "caf\xc3", 0);
	sample(b, mapping(b, "/usr/bin/\xe9t\xe9", FUSEE_MAPPING_MAIN),
	       "std::vector<std::allocator<int> >::push_back(int&&);"
	       "\xe6\xbc\xa2\xe5\xad\x97\";<b>\\x&amp:;main",
	       6, "t", 0);
	builder_sample(b, 0, NULL, 0, 0, 0, values);
	sample(b, 0, "[truncated: too deep]", 2, NULL, 0);
	save(b, dir, "strange");
	b = simple(1);
	builder_sample(b, 0, NULL, 0, 7, 0, less);
	sample(b, mapping(b, "/usr/bin/prog", 0), "gone;main;_start", -30, NULL, 0);
	save(b, dir, "negative");
}

/* Thousands of stacks over a few hundred functions of very unlike weight. A name is in one mapping.
 */
static void write_big(const char *dir, const char *name, uint32_t n, uint32_t functions)
{
	struct builder *b = fresh();
	uint32_t maps[3] = {mapping(b, "/lib/libbig.so.1", 0),
			    mapping(b, "/usr/bin/big", FUSEE_MAPPING_MAIN),
			    mapping(b, "[kernel.kallsyms]", FUSEE_MAPPING_KERNEL)};

	for (uint32_t i = 0; i < n; i++) {
		char stack[2048] = "";
		uint32_t depth = 1 + random32() % 30, weight = 1 + random32() % 7;
		uint32_t map = random32() % 3;

		for (uint32_t k = 0; k < depth; k++) {
			uint32_t f = random32() % functions, inl = random32() % 5;

			f = f * (random32() % functions) / functions;
			snprintf(stack + strlen(stack), sizeof(stack) - strlen(stack), "%s%cf%u",
				 k ? ";" : "", "abc"[map], f);
			if (!inl)
				snprintf(stack + strlen(stack), sizeof(stack) - strlen(stack),
					 ",%cg", "abc"[map]);
		}
		sample(b, maps[map], stack, weight, random32() % 2 ? "x" : NULL, random32() % 4);
	}
	save(b, dir, name);
}

static void write_all(const char *dir)
{
	write_small(dir);
	write_big(dir, "big", 3000, 300);
	write_big(dir, "big2", 3000, 280);
}

/* ---- reading ---- */

static struct pprof_file *load(const char *path)
{
	struct buf bytes = {0};
	struct pprof_file *f = NULL;
	const char *text;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || buf_read_fd(&bytes, fd, MAX_FILE))
		die(path, "cannot be read");
	close(fd);
	if (pprof_decode(bytes.p, bytes.len, &f, &text))
		die(path, text);
	buf_fini(&bytes);
	return f;
}

static void put(struct buf *out, const struct fusee_profile *p, uint32_t i)
{
	const struct fusee_str *s = FUSEE_AT(struct fusee_str, p->strings, i);

	buf_add(out, s->p, s->len);
}

static void put_stack(struct buf *out, const struct fusee_profile *p, const struct fusee_stack *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const struct fusee_location *l = FUSEE_AT(
			struct fusee_location, p->locations,
			*FUSEE_AT(uint32_t, p->stack_locations, s->first + i));

		buf_printf(out, " 0x%llx", (unsigned long long)l->address);
		for (uint32_t k = 0; k < l->nlines; k++) {
			const struct fusee_line *at = FUSEE_AT(struct fusee_line, p->lines,
							       l->first_line + k);

			buf_str(out, k ? "," : "=");
			put(out, p,
			    FUSEE_AT(struct fusee_function, p->functions, at->function)->name);
			buf_printf(out, ":%u", at->line);
		}
	}
}

static char *describe(const struct fusee_profile *p, uint32_t i)
{
	const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, i);
	struct buf out = {0};

	for (uint32_t k = 0; k < p->types.n; k++)
		buf_printf(&out, k ? ",%lld" : "%lld",
			   (long long)*FUSEE_AT(int64_t, p->values, (uint64_t)i * p->types.n + k));
	put_stack(&out, p, FUSEE_AT(struct fusee_stack, p->stacks, s->stack));
	buf_add(&out, "", 1);
	return out.p;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void dump(const struct fusee_profile *p)
{
	char **lines = calloc(p->samples.n + 1, sizeof(*lines));

	for (uint32_t i = 0; i < p->samples.n; i++)
		lines[i] = describe(p, i);
	qsort(lines, p->samples.n, sizeof(*lines), compare);
	for (uint32_t i = 0; i < p->samples.n; i++) {
		puts(lines[i]);
		free(lines[i]);
	}
	free(lines);
}

static void copy(const struct fusee_profile *p, const char *path)
{
	struct buf out = {0};
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || pprof_encode(p, true, &out) || buf_write(&out, fd))
		die(path, "cannot be written");
	close(fd);
	buf_fini(&out);
}

static int render(const char *view, const struct fusee_profile *p, const struct fusee_profile *base,
		  const char *regex, const struct render_options *o, struct buf *out)
{
	if (!strcmp(view, "top"))
		return render_top(p, base, o, out);
	if (!strcmp(view, "tree"))
		return render_tree(p, base, o, out);
	if (!strcmp(view, "peek"))
		return render_peek(p, base, regex, o, out);
	if (!strcmp(view, "folded"))
		return render_folded(p, base, o, out);
	if (!strcmp(view, "speedscope"))
		return render_speedscope(p, base, o, out);
	if (!strcmp(view, "json"))
		return render_json(p, base, o, out);
	if (!strcmp(view, "hottest"))
		return render_hottest(p, o, out);
	die(view, "no such view");
	return 0;
}

static void view(const char *name, int argc, char **argv)
{
	struct render_options o = {0};
	struct pprof_file *f, *base = NULL;
	struct buf out = {0};
	int c, ret;

	while ((c = getopt(argc, argv, "b:f:i:d:t:n:w:c")) != -1) {
		if (c == 'b')
			base = load(optarg);
		else if (c == 'f')
			o.focus = optarg;
		else if (c == 'i')
			o.ignore = optarg;
		else if (c == 'd')
			o.hide = optarg;
		else if (c == 't')
			o.type = optarg;
		else if (c == 'n')
			o.rows = (uint32_t)strtoul(optarg, NULL, 10);
		else if (c == 'w')
			o.width = (uint32_t)strtoul(optarg, NULL, 10);
		else if (c == 'c')
			o.cumulative = true;
	}
	if (optind == argc)
		die(name, "no file is named");
	f = load(argv[optind]);
	ret = render(name, pprof_profile(f), base ? pprof_profile(base) : NULL,
		     argc > optind + 1 ? argv[optind + 1] : ".", &o, &out);
	buf_write(&out, ret ? STDERR_FILENO : STDOUT_FILENO);
	buf_fini(&out);
	pprof_free(f);
	pprof_free(base);
	if (ret)
		exit(2);
}

int main(int argc, char **argv)
{
	struct pprof_file *f;

	if (argc < 3)
		die("usage", "tool_profile write DIR | dump FILE | copy FILE OUT | VIEW ... FILE");
	if (!strcmp(argv[1], "write")) {
		write_all(argv[2]);
	} else if (!strcmp(argv[1], "dump") || (!strcmp(argv[1], "copy") && argc > 3)) {
		f = load(argv[2]);
		if (argc > 3)
			copy(pprof_profile(f), argv[3]);
		else
			dump(pprof_profile(f));
		pprof_free(f);
	} else {
		view(argv[1], argc - 1, argv + 1);
	}
	return 0;
}
