/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/symbolizer
/* The worker symbolizes a function once, not each of its addresses. */
#include "symbolizer/symbolizer.h"

#include "base/clock.h"
#include "plugin/plugin.h"
#include "worker_help.h"

__attribute__((noinline)) static int first_function(int x)
{
	for (int i = 0; i < 10; i++) {
		__asm__ volatile("" : "+r"(x));
		x ^= i;
	}
	return x | 1;
}

__attribute__((noinline)) static int second_function(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x | 2;
}

struct world {
	struct worker *w;
	struct files *fs;
	struct symbolizer *n;
	struct plugin_set set;
	struct file *self;
	uint64_t lo, offset; /* of its code */
};

static int find_self(void *arg, const struct procfs_mapping *m)
{
	struct world *w = arg;
	uint64_t at = (uint64_t)(uintptr_t)first_function;

	if (at < m->lo || at >= m->hi)
		return 0;
	w->self = files_of(w->fs, getpid(), m);
	w->lo = m->lo;
	w->offset = m->offset;
	return 1;
}

static void world_new_with(struct world *w, const char *cache_dir)
{
	struct worker_options o = {.cache_dir = cache_dir};

	*w = (struct world){0};
	CHECK_INT(worker_new(&w->w, &o), 0);
	CHECK_INT(files_new(&w->fs, w->w, &w->set), 0);
	CHECK_INT(symbolizer_new(&w->n, w->fs, w->w, true), 0);
	CHECK_INT(procfs_each_mapping(getpid(), find_self, w), 1);
	CHECK_INT(worker_wait_until(w->w, 0), 0);
	CHECK(w->self && w->self->state == FILE_READY);
}

static void world_new(struct world *w)
{
	world_new_with(w, NULL);
}

static void world_free(struct world *w)
{
	symbolizer_free(w->n);
	files_free(w->fs);
	worker_stop(w->w);
}

static void done(void *arg)
{
	++*(int *)arg;
}

static uint64_t offset_of(const struct world *w, const void *function, uint64_t more)
{
	return (uint64_t)(uintptr_t)function + more - w->lo + w->offset;
}

/* Asks for the names of one address; how many requests that took. */
static uint32_t ask(struct world *w, uint64_t offset)
{
	struct walk_frame f;
	struct collector *c;
	uint32_t requests;
	int calls = 0;

	memset(&f, 0, sizeof(f));
	f.file = w->self->id;
	f.addr = offset;
	CHECK_INT(collector_new(&c), 0);
	CHECK(frame_set_add(&c->frames, &f) != FRAME_SET_NONE);
	CHECK_INT(symbolizer_request(w->n, c, false, 0, done, &calls), 0);
	requests = worker_pending(w->w);
	CHECK_INT(calls, !requests);
	CHECK_INT(worker_wait_until(w->w, 0), 0);
	CHECK_INT(calls, 1);
	collector_free(c);
	return requests;
}

static void check_name(const struct world *w, uint64_t offset, const char *function)
{
	const struct symbolized_address *name = symbolizer_find(w->n, w->self->id, offset);

	CHECK(name && name->n);
	CHECK_STR(name->frames[name->n - 1].name, function);
	CHECK(strstr(name->frames[0].file, "test_symbolizer.c") && name->frames[0].line > 5);
}

TEST(a_function_is_requested_once)
{
	uint64_t one, two;
	struct world w;

	CHECK(first_function(1) && second_function(1));
	world_new(&w);
	one = offset_of(&w, first_function, 0);
	two = offset_of(&w, second_function, 0);
	CHECK_INT(ask(&w, one + 1), 1);
	check_name(&w, one + 1, "first_function");
	for (uint64_t i = 0; i < 8; i++) {
		CHECK(!i || i == 1 || !symbolizer_find(w.n, w.self->id, one + i));
		CHECK_INT(ask(&w, one + i), 0);
		check_name(&w, one + i, "first_function");
	}
	/* bytes of one instruction have the same frames, which are kept once */
	CHECK(symbolizer_find(w.n, w.self->id, one) == symbolizer_find(w.n, w.self->id, one + 1));
	CHECK_INT(ask(&w, two), 1);
	check_name(&w, two, "second_function");
	CHECK_INT(ask(&w, two + 1), 0);
	CHECK_INT(ask(&w, one + 3), 0);
	/* forgotten with the file: nothing of it is known any more */
	CHECK(symbolizer_bytes(w.n) > 0);
	symbolizer_drop_file(w.n, w.self->id);
	CHECK_INT(symbolizer_bytes(w.n), 0);
	CHECK(!symbolizer_find(w.n, w.self->id, one + 1));
	CHECK_INT(ask(&w, one + 2), 1);
	check_name(&w, one + 2, "first_function");
	world_free(&w);
}

/* Many addresses at once, some of them known: each is named by its own function. */
TEST_IN_WORLD(many_at_once)
{
	struct collector *c;
	int calls = 0;

	CHECK_INT(ask(w, offset_of(w, first_function, 2)), 1);
	CHECK_INT(collector_new(&c), 0);
	for (uint64_t i = 0; i < 8; i++)
		for (int which = 0; which < 2; which++) {
			struct walk_frame f;

			memset(&f, 0, sizeof(f));
			f.file = w->self->id;
			f.addr = offset_of(w, which ? second_function : first_function, i);
			CHECK(frame_set_add(&c->frames, &f) != FRAME_SET_NONE);
		}
	CHECK_INT(symbolizer_request(w->n, c, false, 0, done, &calls), 0);
	CHECK_INT(worker_wait_until(w->w, 0), 0);
	CHECK_INT(calls, 1);
	for (uint64_t i = 0; i < 4; i++) {
		check_name(w, offset_of(w, first_function, i), "first_function");
		check_name(w, offset_of(w, second_function, i), "second_function");
	}
	collector_free(c);
}

/* The first bytes of both functions, and that no worker was needed for them. */
static void check_by_table(struct world *w)
{
	uint64_t one = offset_of(w, first_function, 0), two = offset_of(w, second_function, 0);

	for (uint64_t i = 0; i < 4; i++) {
		CHECK_INT(ask(w, one + i), 0);
		check_name(w, one + i, "first_function");
		CHECK_INT(ask(w, two + i), 0);
		check_name(w, two + i, "second_function");
	}
	CHECK_INT(worker_pid(w->w), 0);
	CHECK(symbolizer_symbol_source(w->n, w->self->id) & INSPECTION_DWARF);
}

static bool has_tables(struct world *w, const char *dir)
{
	char command[120];

	worker_dispatch(w->w);
	snprintf(command, sizeof(command), "[ $(find %s -type f | wc -l) = 2 ]", dir);
	return !system(command);
}

/* The table of names is made once, and outlives the agent; truncated, it is made anew. */
TEST(a_table_instead_of_a_worker)
{
	char dir[80], command[160];
	struct world w;

	snprintf(dir, sizeof(dir), "%s/cache", test_dir());
	world_new_with(&w, dir); /* it makes none */
	CHECK_INT(ask(&w, offset_of(&w, first_function, 0)), 1);
	CHECK_INT(ask(&w, offset_of(&w, second_function, 0)), 1);
	world_free(&w);
	world_new_with(&w, dir);
	symbolizer_make_tables(w.n);
	CHECK_INT(ask(&w, offset_of(&w, first_function, 0)), 1);
	CHECK_INT(ask(&w, offset_of(&w, second_function, 0)), 1); /* a large file: now it is due */
	WAIT_FOR(has_tables(&w, dir));
	WAIT_FOR(!background_waiting(worker_background(w.w)));
	world_free(&w);

	world_new_with(&w, dir);
	check_by_table(&w);
	world_free(&w);
	world_new_with(&w, dir);
	CHECK_INT(ask(&w, offset_of(&w, first_function, 0)), 0);
	snprintf(command, sizeof(command), "cd %s; truncate -s 5000 $(ls -S | head -1)", dir);
	CHECK(!system(command));
	CHECK_INT(ask(&w, offset_of(&w, second_function, 0)), 1);
	check_name(&w, offset_of(&w, first_function, 0), "first_function");
	check_name(&w, offset_of(&w, second_function, 0), "second_function");
	world_free(&w);
}
