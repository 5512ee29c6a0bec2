/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_flamegraph kinds OUT.html       a page with every kind of code, inlined and guessed frames
 * tool_flamegraph big OUT.pb.gz N      a profile of N distinct stacks, 12 to 40 deep
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/builder.h"
#include "pprof/pprof.h"
#include "report/report.h"

static void die(const char *what)
{
	fprintf(stderr, "tool_flamegraph: %s\n", what);
	exit(1);
}

static void save(const struct buf *b, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (b->error || fd < 0 || buf_write(b, fd) || close(fd))
		die(path);
}

static struct builder *fresh(void)
{
	struct builder *b;

	if (builder_new(&b))
		die("no memory");
	builder_type(b, "samples", "count");
	builder_type(b, "cpu", "nanoseconds");
	builder_profile(b)->default_type = 1;
	builder_profile(b)->start_ns = 1700000000000000000;
	builder_profile(b)->duration_ns = 10000000000;
	builder_resource(b, "host", "build1");
	return b;
}

static uint32_t mapping(struct builder *b, const char *path, uint32_t flags)
{
	struct fusee_mapping m = {
		.path = builder_cstr(b, path), .flags = flags, .limit = UINT64_MAX};

	return builder_mapping(b, &m);
}

static struct fusee_line line(struct builder *b, const char *name, const char *file, uint32_t at)
{
	struct fusee_function f = {.name = builder_cstr(b, name),
				   .system_name = builder_cstr(b, name),
				   .file = builder_cstr(b, file),
				   .start_line = at ? at - 2 : 0};

	return (struct fusee_line){.function = builder_function(b, &f), .line = at};
}

static uint32_t location(struct builder *b, uint32_t in, uint64_t address, uint32_t flags,
			 const char *type, struct fusee_line *lines, uint32_t n)
{
	struct fusee_location l = {.mapping = in,
				   .frame_type = builder_cstr(b, type),
				   .flags = flags,
				   .address = address};

	for (uint32_t i = 0; i + 1 < n; i++)
		lines[i].flags = FUSEE_LINE_INLINED;
	return builder_location(b, &l, lines, n);
}

/* The stack's index. */
static uint32_t sample(struct builder *b, const uint32_t *locations, uint32_t n, int64_t count)
{
	int64_t values[2] = {count, count * 10000000};
	uint32_t stack = builder_stack(b, locations, n);

	if (builder_sample(b, stack, NULL, 0, 1, 1, values))
		die("no memory");
	return stack;
}

/* main (program) calls outer+inner (inlined, a library), guess (guessed, JIT), read (kernel); one
 * stack is truncated. */
static void kinds(struct builder *b)
{
	uint32_t program = mapping(b, "/bin/program", FUSEE_MAPPING_MAIN);
	uint32_t library = mapping(b, "/lib/libwork.so.1", FUSEE_MAPPING_LIBRARY);
	uint32_t kernel = mapping(b, "[kernel.kallsyms]", FUSEE_MAPPING_KERNEL);
	uint32_t jit = mapping(b, "[jit]", FUSEE_MAPPING_JIT);
	struct fusee_line lines[2] = {line(b, "main", "main.c", 12)};
	uint32_t at_main = location(b, program, 0x1000, 0, "native", lines, 1), at;

	lines[0] = line(b, "inner", "work.h", 30);
	lines[1] = line(b, "outer", "work.c", 40);
	at = location(b, library, 0x2000, 0, "native", lines, 2);
	sample(b, (uint32_t[]){at, at_main}, 2, 40);
	lines[0] = line(b, "guess", "", 0);
	at = location(b, jit, 0x3000, FUSEE_LOCATION_GUESSED, "jit", lines, 1);
	sample(b, (uint32_t[]){at, at_main}, 2, 20);
	lines[0] = line(b, "view", "/srv/shop/app.py", 44);
	at = location(b, 0, 0, 0, "script", lines, 1);
	lines[0] = line(b, "evaluate", "", 0);
	sample(b,
	       (uint32_t[]){
		       at,
		       location(b, library, 0x6000, FUSEE_LOCATION_INTERPRETER, "native", lines, 1),
		       at_main},
	       3, 10);
	lines[0] = line(b, "vfs_read", "", 0);
	at = location(b, kernel, 0x4000, 0, "kernel", lines, 1);
	lines[0] = line(b, "do_syscall_64", "", 0);
	sample(b, (uint32_t[]){at, location(b, kernel, 0x5000, 0, "kernel", lines, 1), at_main}, 3,
	       20);
	lines[0] = line(b, "[truncated: too deep]", "", 0);
	at = location(b, 0, 0, FUSEE_LOCATION_REASON, "native", lines, 1);
	sample(b, (uint32_t[]){at_main, at}, 2, 10);
	builder_loss(b, LOSS_STACK, "too deep", 1234);
}

static uint32_t random32(uint32_t below)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 20) % below;
}

/* Each stack shares its callers with an earlier stack and differs near the leaf, as in real
 * programs.
 */
static void big(struct builder *b, uint32_t n)
{
	enum { FUNCTIONS = 5000, DEEPEST = 64 };
	uint32_t program = mapping(b, "/bin/program", FUSEE_MAPPING_MAIN);
	uint32_t library = mapping(b, "/lib/libwork.so.1", FUSEE_MAPPING_LIBRARY);
	uint32_t locations[FUNCTIONS], stack[DEEPEST];
	uint32_t(*seen)[DEEPEST] = calloc(n, sizeof(*seen)), *depths = calloc(n, sizeof(*depths));

	if (!seen || !depths)
		die("no memory");
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		struct fusee_line l;
		char name[128], file[64];

		snprintf(name, sizeof(name), "work::stage_%u::Handler<std::string, %u>::run",
			 i % 97, i);
		snprintf(file, sizeof(file), "src/stage_%u.cc", i % 97);
		l = line(b, name, file, i + 3);
		locations[i] = location(b, i % 3 ? program : library, 0x1000 + i * 64, 0, "native",
					&l, 1);
	}
	for (uint32_t i = 0; i < n;) {
		uint32_t from = random32(i ? i : 1), keep = depths[from], depth;

		keep -= random32(keep < 6 ? keep + 1 : 6);
		depth = keep + 1 + random32(6);
		depth = depth > DEEPEST ? DEEPEST : depth;
		memcpy(seen[i], seen[from], keep * sizeof(uint32_t));
		for (uint32_t k = keep; k < depth; k++)
			seen[i][k] = locations[random32(FUNCTIONS)];
		depths[i] = depth;
		for (uint32_t k = 0; k < depth; k++)
			stack[depth - 1 - k] = seen[i][k];
		/* stacks count from 1; a stack that was there already is not new */
		i += sample(b, stack, depth, 1 + random32(5)) > i;
	}
	free(seen);
	free(depths);
}

int main(int argc, char **argv)
{
	struct builder *b = fresh();
	const struct fusee_profile *p;
	struct buf out = {0};
	bool page = argc == 3 && !strcmp(argv[1], "kinds");

	if (!page && (argc != 4 || strcmp(argv[1], "big")))
		die("usage: tool_flamegraph kinds OUT.html | big OUT.pb.gz N");
	if (page)
		kinds(b);
	else
		big(b, (uint32_t)strtoul(argv[3], NULL, 10));
	if (builder_finish(b, &p))
		die("no memory");
	if (page ? render_flamegraph(p, NULL, &(struct render_options){0}, &out)
		 : pprof_encode(p, true, &out))
		die("cannot encode");
	if (!page)
		printf("%u distinct stacks\n", p->stacks.n - 1);
	save(&out, argv[2]);
	buf_fini(&out);
	builder_free(b);
	return 0;
}
