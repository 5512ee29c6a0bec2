/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/profile core/pprof core/profiler core/pipeline
/* Profiles for servers that symbolize: native code of files is addresses and build ids, all else
 * has its names, and no name is requested that no profile has. */
#include "profile/builder.h"
#include "pprof/pprof.h"
#include "profiler/build_profile.h"
#include "pipeline/state.h"
#include "profiler/profiler.h"
#include "lib/random.h"
#include "worker_help.h"

#define HAS                                                                        \
	(FUSEE_MAPPING_FUNCTIONS | FUSEE_MAPPING_FILENAMES | FUSEE_MAPPING_LINES | \
	 FUSEE_MAPPING_INLINES)
#define KERNEL_ADDRESS 0xffffffff81000123u
#define ANONYMOUS_ADDRESS 0x7f0000001234u

__attribute__((noinline)) static int some_function(int x)
{
	for (int i = 0; i < 10; i++) {
		__asm__ volatile("" : "+r"(x));
		x ^= i;
	}
	return x | 1;
}

/* A profiler whose samples the test makes. */
struct world {
	struct profiler p;
	struct pipeline pipeline;
	struct file *self, *vdso;
	uint64_t offset;         /* of some_function */
	uint64_t text, text_len; /* the mapping with it: offset in the file, bytes */
	struct collector *c;
	struct walk walk;
};

static int find(void *arg, const struct procfs_mapping *m)
{
	uint64_t at = (uint64_t)(uintptr_t)some_function;
	struct world *w = arg;

	if (at >= m->lo && at < m->hi) {
		w->self = files_of(w->pipeline.files, getpid(), m);
		w->offset = at - m->lo + m->offset;
		w->text = m->offset;
		w->text_len = m->hi - m->lo;
	} else if (!strcmp(m->name, "[vdso]")) {
		w->vdso = files_of(w->pipeline.files, getpid(), m);
	}
	return 0;
}

static struct walk_frame *push(struct world *w, uint16_t kind, const struct file *f, uint64_t addr)
{
	struct walk_frame *at = &w->walk.frames[w->walk.n++];

	memset(at, 0, sizeof(*at));
	at->kind = kind;
	at->file = f ? f->id : 0;
	at->addr = addr;
	return at;
}

/* A stack of all kinds of frames; one more of two native frames, the leaf guessed. */
static void add_samples(struct world *w)
{
	static struct process process = {.id = 1, .pid = 7, .comm = "thread", .name = "program"};

	push(w, FRAME_KERNEL, NULL, KERNEL_ADDRESS);
	push(w, FRAME_FILE, w->self, w->offset + 4);
	push(w, FRAME_ANONYMOUS, NULL, ANONYMOUS_ADDRESS)->process = 1;
	push(w, FRAME_FILE, w->vdso, 0x640);
	push(w, FRAME_FILE, w->self, w->offset + 1);
	w->pipeline.account.counts[1].text = "too deep";
	CHECK_INT(collector_add(w->c, &process, 0, 0, "thread", &w->walk, 1, 10, NULL), 0);
	w->walk.n = 0;
	push(w, FRAME_FILE, w->self, w->offset + 2)->guessed = 1;
	push(w, FRAME_FILE, w->self, w->offset + 1);
	for (int i = 0; i < 3; i++)
		CHECK_INT(collector_add(w->c, &process, 0, 0, "thread", &w->walk, 0, 10, NULL), 0);
}

static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));
	struct worker_options o = {0};

	CHECK(w && some_function(1));
	w->p.pipeline = &w->pipeline;
	CHECK_INT(worker_new(&w->p.worker, &o), 0);
	CHECK_INT(files_new(&w->pipeline.files, w->p.worker, &w->p.unwinders), 0);
	CHECK_INT(claims_new(&w->pipeline.claims, &w->p.unwinders), 0);
	CHECK_INT(symbolizer_new(&w->p.symbolizer, w->pipeline.files, w->p.worker, true), 0);
	CHECK_INT(procfs_each_mapping(getpid(), find, w), 0);
	CHECK_INT(worker_wait_until(w->p.worker, 0), 0);
	CHECK(w->self && w->self->state == FILE_READY && w->self->inspection->build_id_len);
	CHECK(w->vdso && w->vdso->state == FILE_READY && w->vdso->inspection->build_id_len);
	CHECK_INT(collector_new(&w->c), 0);
	add_samples(w);
	return w;
}

static void world_free(struct world *w)
{
	collector_free(w->c);
	symbolizer_free(w->p.symbolizer);
	claims_free(w->pipeline.claims);
	files_free(w->pipeline.files);
	worker_stop(w->p.worker);
	free(w);
}

static void done(void *arg)
{
	++*(int *)arg;
}

/* Requests the symbols; returns how many requests to the worker that took. */
static uint32_t request(struct world *w, bool server_names)
{
	uint32_t requests;
	int calls = 0;

	CHECK_INT(symbolizer_request(w->p.symbolizer, w->c, server_names, 0, done, &calls), 0);
	requests = worker_pending(w->p.worker);
	CHECK_INT(worker_wait_until(w->p.worker, 0), 0);
	CHECK_INT(calls, 1);
	return requests;
}

static const struct fusee_profile *build(struct world *w, bool server_names, struct builder **b)
{
	struct build_options o = {.period_ns = 10, .server_names = server_names};
	const struct fusee_profile *p;

	CHECK_INT(builder_new(b), 0);
	CHECK_INT(build_profile(*b, &w->p, w->c, &o), 0);
	CHECK_INT(builder_finish(*b, &p), 0);
	return p;
}

static const char *text(const struct fusee_profile *p, uint32_t i)
{
	static char texts[4][512];
	static uint32_t n;
	const struct fusee_str *s = FUSEE_AT(struct fusee_str, p->strings, i);

	n = (n + 1) % 4;
	snprintf(texts[n], sizeof(texts[n]), "%.*s", (int)s->len, s->len ? s->p : "");
	return texts[n];
}

/* Location i of the stack of the sample whose count is `count`. */
static const struct fusee_location *at(const struct fusee_profile *p, int64_t count, uint32_t i)
{
	for (uint32_t k = 0; k < p->samples.n; k++) {
		const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, k);
		const struct fusee_stack *stack = FUSEE_AT(struct fusee_stack, p->stacks, s->stack);

		if (*FUSEE_AT(int64_t, p->values, k * p->types.n) != count || i >= stack->n)
			continue;
		return FUSEE_AT(struct fusee_location, p->locations,
				*FUSEE_AT(uint32_t, p->stack_locations, stack->first + i));
	}
	CHECK(!"the sample");
	return NULL;
}

static const struct fusee_mapping *mapping(const struct fusee_profile *p,
					   const struct fusee_location *l)
{
	return FUSEE_AT(struct fusee_mapping, p->mappings, l->mapping);
}

/* The name of the function; "": there is none. */
static const char *name(const struct fusee_profile *p, const struct fusee_location *l)
{
	if (!l->nlines)
		return "";
	return text(p, FUSEE_AT(struct fusee_function, p->functions,
				FUSEE_AT(struct fusee_line, p->lines, l->first_line + l->nlines - 1)
					->function)
			       ->name);
}

static uint64_t vaddr(const struct world *w, uint64_t more)
{
	uint64_t address;

	CHECK(inspection_vaddr(w->self->inspection, w->offset + more, &address));
	return address;
}

/* What a server needs, and no more. */
static void check_nameless(const struct world *w, const struct fusee_profile *p,
			   const struct fusee_location *l, uint64_t more)
{
	const struct fusee_mapping *m = mapping(p, l);

	CHECK_INT(l->nlines, 0);
	CHECK_INT(l->address, vaddr(w, more));
	CHECK_INT(l->flags & FUSEE_LOCATION_STUB, 0);
	CHECK_STR(text(p, m->path), w->self->path);
	CHECK_INT(strlen(text(p, m->build_id)), w->self->inspection->build_id_len * 2);
	CHECK(!m->start && m->limit == UINT64_MAX && !m->offset);
	CHECK_INT(m->flags & HAS, 0);
}

/* Frames that no server can name. */
static void check_local(const struct fusee_profile *p)
{
	CHECK(*name(p, at(p, 1, 0)));
	CHECK_INT(at(p, 1, 0)->address, KERNEL_ADDRESS);
	CHECK_STR(name(p, at(p, 1, 2)), "[code made at run time]");
	CHECK_STR(text(p, mapping(p, at(p, 1, 3))->path), "[vdso]");
	CHECK(*name(p, at(p, 1, 3)));
	CHECK_STR(name(p, at(p, 1, 5)), "[truncated: too deep]");
}

#define TEST_OF_WORLD(id) TEST_WITH(id, struct world *, w, world_new(), world_free(w))

TEST_OF_WORLD(native_code_is_addresses)
{
	const struct fusee_profile *p;
	struct builder *b;

	CHECK_INT(request(w, true), 1); /* the vDSO */
	CHECK(!symbolizer_find(w->p.symbolizer, w->self->id, w->offset + 1));
	p = build(w, true, &b);
	CHECK_INT(p->samples.n, 2);
	check_nameless(w, p, at(p, 1, 1), 4);
	check_nameless(w, p, at(p, 1, 4), 1);
	check_nameless(w, p, at(p, 3, 0), 2);
	check_nameless(w, p, at(p, 3, 1), 1);
	CHECK_INT(at(p, 3, 0)->flags, FUSEE_LOCATION_GUESSED);
	CHECK_INT(at(p, 3, 1)->flags, 0);
	CHECK_STR(text(p, at(p, 3, 1)->frame_type), "native");
	check_local(p);
	CHECK(!strstr(name(p, at(p, 1, 3)), "not readable"));
	builder_free(b);
}

TEST_OF_WORLD(nothing_is_requested_that_no_profile_has)
{
	w->vdso->path[0] = '/'; /* a file of a build id as others */
	CHECK_INT(request(w, true), 0);
	CHECK_INT(symbolizer_bytes(w->p.symbolizer), 0);
	CHECK_INT(request(w, false), 2);
	CHECK(symbolizer_bytes(w->p.symbolizer) > 0);
}

/* Two sinks with the same samples: names that another requested do not come into the profile, and
 * all but the names is equal. */
TEST_OF_WORLD(the_same_stacks_with_and_without)
{
	const struct fusee_profile *local, *server;
	struct builder *b, *b2;

	CHECK_INT(request(w, false), 2);
	local = build(w, false, &b);
	server = build(w, true, &b2);
	CHECK_INT(local->samples.n, server->samples.n);
	CHECK_INT(local->stacks.n, server->stacks.n);
	CHECK_INT(local->locations.n, server->locations.n);
	CHECK_INT(local->mappings.n, server->mappings.n);
	CHECK(!memcmp(local->values.at, server->values.at, local->values.n * sizeof(int64_t)));
	for (uint32_t i = 0; i < 5; i++) {
		CHECK_INT(at(local, 1, i)->address, at(server, 1, i)->address);
		CHECK_INT(at(local, 1, i)->mapping, at(server, 1, i)->mapping);
	}
	CHECK_STR(name(local, at(local, 1, 1)), "some_function");
	CHECK_INT(mapping(local, at(local, 1, 1))->flags & FUSEE_MAPPING_FUNCTIONS,
		  FUSEE_MAPPING_FUNCTIONS);
	check_nameless(w, server, at(server, 1, 1), 4);
	check_local(local);
	check_local(server);
	CHECK_STR(name(local, at(local, 1, 3)), name(server, at(server, 1, 3)));
	for (uint32_t i = 0; i < server->functions.n; i++)
		CHECK(strcmp(
			text(server, FUSEE_AT(struct fusee_function, server->functions, i)->name),
			"some_function"));
	builder_free(b);
	builder_free(b2);
}

#define STACKS 200u
#define DEPTH 20u

static bool is_text(const struct fusee_profile *p, uint32_t i, const char *expected)
{
	const struct fusee_str *s = FUSEE_AT(struct fusee_str, p->strings, i);

	return s->len == strlen(expected) && (!s->len || !memcmp(s->p, expected, s->len));
}

/* The location's functions are those of the symbols. Returns how many were compared. */
static uint32_t check_functions(const struct fusee_profile *p, const struct fusee_location *l,
				const struct symbolized_address *symbols)
{
	if (!symbols || !symbols->n)
		return 0;
	CHECK_INT(l->nlines, symbols->n);
	for (uint32_t i = 0; i < l->nlines; i++) {
		const struct symbols_frame *at = &symbols->frames[i];
		const struct fusee_line *line = FUSEE_AT(struct fusee_line, p->lines,
							 l->first_line + i);
		const struct fusee_function *f = FUSEE_AT(struct fusee_function, p->functions,
							  line->function);

		if (at->flags & SYMBOLS_STUB)
			return 0;
		CHECK_INT(line->line, at->line);
		CHECK_INT(line->column, at->column);
		CHECK_INT(line->flags, at->flags & SYMBOLS_INLINED ? FUSEE_LINE_INLINED : 0);
		CHECK_INT(f->start_line, at->start_line);
		CHECK(is_text(p, f->name, at->name));
		CHECK(is_text(p, f->system_name, at->system_name));
		CHECK(is_text(p, f->file, at->file));
	}
	return l->nlines;
}

/* Functions all over this program, of many source files. */
TEST_OF_WORLD(functions_are_those_of_the_symbols)
{
	static struct process process = {.id = 2, .pid = 8, .name = "another"};
	static uint64_t offsets[STACKS][DEPTH];
	const struct fusee_profile *p;
	uint32_t compared = 0;
	struct builder *b;

	for (uint32_t i = 0; i < STACKS; i++) {
		w->walk.n = 0;
		for (uint32_t k = 0; k < DEPTH; k++) {
			offsets[i][k] = w->text + random32() % w->text_len;
			push(w, FRAME_FILE, w->self, offsets[i][k]);
		}
		CHECK_INT(collector_add(w->c, &process, 0, 0, "thread", &w->walk, 0, 10, NULL), 0);
	}
	request(w, false);
	p = build(w, false, &b);
	CHECK_INT(p->samples.n, 2 + STACKS);
	for (uint32_t i = 0; i < STACKS; i++) {
		const struct fusee_stack *stack = FUSEE_AT(
			struct fusee_stack, p->stacks,
			FUSEE_AT(struct fusee_sample, p->samples, 2 + i)->stack);

		CHECK_INT(stack->n, DEPTH);
		for (uint32_t k = 0; k < DEPTH; k++)
			compared += check_functions(
				p,
				FUSEE_AT(struct fusee_location, p->locations,
					 *FUSEE_AT(uint32_t, p->stack_locations, stack->first + k)),
				symbolizer_find(w->p.symbolizer, w->self->id, offsets[i][k]));
	}
	CHECK(compared > STACKS * DEPTH / 2);
	builder_free(b);
}

/* No server finds it. */
TEST_OF_WORLD(a_file_without_a_build_id_has_its_names)
{
	const struct fusee_profile *p;
	struct builder *b;

	w->self->inspection->build_id_len = 0;
	CHECK_INT(request(w, true), 2);
	p = build(w, true, &b);
	CHECK_STR(name(p, at(p, 1, 1)), "some_function");
	CHECK_STR(name(p, at(p, 3, 1)), "some_function");
	CHECK_INT(at(p, 3, 1)->address, vaddr(w, 1));
	builder_free(b);
}

/* A window that did not wait for its names has the same addresses as all others. */
TEST_OF_WORLD(addresses_do_not_depend_on_names)
{
	struct builder *b;
	const struct fusee_profile *p = build(w, false, &b);

	CHECK_INT(at(p, 3, 1)->address, vaddr(w, 1));
	CHECK_INT(at(p, 3, 1)->flags, FUSEE_LOCATION_STUB);
	CHECK(strstr(name(p, at(p, 3, 1)), ": not readable]"));
	builder_free(b);
	p = build(w, true, &b);
	check_nameless(w, p, at(p, 3, 1), 1);
	builder_free(b);
}

/* pprof files do not mark which frames were guessed. */
TEST_OF_WORLD(pprof_has_addresses_without_functions)
{
	const struct fusee_profile *p, *read;
	struct pprof_file *file;
	struct buf bytes = {0};
	struct builder *b;
	const char *why;

	CHECK_INT(request(w, true), 1);
	p = build(w, true, &b);
	CHECK_INT(pprof_encode(p, true, &bytes), 0);
	CHECK_INT(pprof_decode(bytes.p, bytes.len, &file, &why), 0);
	read = pprof_profile(file);
	check_nameless(w, read, at(read, 1, 1), 4);
	check_nameless(w, read, at(read, 3, 0), 2);
	check_local(read);
	CHECK_INT(read->functions.n, p->functions.n);
	pprof_free(file);
	buf_fini(&bytes);
	builder_free(b);
}
