/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where threads wait, at the end of `fusee record --wall`. The innermost function of a wait is
 * nearly always the kernel's scheduler, so a row is the system call that waits and the innermost
 * functions of the program that lead to it, without those of the kernel, the C library and the
 * language's virtual machine; of its standard library, the function that the program calls.
 */
#include "report/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "base/str.h"
#include "report/internal/runtimes.h"
#include "report/internal/scale.h"

#define ROWS 10
#define CALLERS 3u       /* functions in a row */
#define CALL_MAX 16u     /* columns of a system call's name */
#define NUMBERS_WIDTH 25 /* with the gaps around the call */
#define LEAST_WIDTH 20u

struct waits {
	const struct render_model *m;
	struct dict rows; /* by the call, a zero byte, and the functions */
	int64_t *values;  /* by id */
	uint32_t *order;  /* ids, most first */
	uint32_t n;
	struct buf key;
};

/* The kernel's functions of system calls, by architecture. */
static const char *const calls[] = {"__x64_sys_",         "__arm64_sys_", "__ia32_sys_",
				    "__ia32_compat_sys_", "__do_sys_",    "ksys_"};

/* Those behind which a thread waits without having called the kernel. */
static const struct {
	const char *begins, *text;
} causes[] = {
	{"exc_page_fault", "page fault"},
	{"do_mem_abort", "page fault"},
	{"exit_to_user_mode", "preempted"},
	{"irqentry_exit", "preempted"},
};

static const char *const c_libraries[] = {"libc.so.",   "libc-2.",  "libc.musl-", "ld-musl-",
					  "libpthread", "ld-linux", "[vdso]"};

/* What a thread does in this function of the kernel: "epoll_wait". Empty: that is not known. */
static struct fusee_str activity(struct fusee_str name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (str_begins(name, calls[i]))
			return (struct fusee_str){name.p + strlen(calls[i]),
						  name.len - strlen(calls[i])};
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (str_begins(name, causes[i].begins))
			return fusee_text(causes[i].text);
	return (struct fusee_str){0};
}

static bool is_c_library(const struct render_function *f)
{
	struct fusee_str name = str_base_name(f->library);

	for (size_t i = 0; i < sizeof(c_libraries) / sizeof(c_libraries[0]); i++)
		if (str_begins(name, c_libraries[i]))
			return true;
	return false;
}

/* Not "[libfoo.so]" or "libfoo.so+0x1234", which say nothing to a reader. */
static bool is_named(const struct render_function *f)
{
	return !f->is_nameless && !memmem(f->name.p, f->name.len, "+0x", 3);
}

/* Neither the kernel's nor the C library's. */
static bool is_above(const struct render_function *f)
{
	return f->code != RENDER_KERNEL && f->code != RENDER_REASON && f->code != RENDER_LABEL &&
	       !is_c_library(f);
}

static const struct render_function *function_at(const struct waits *w,
						 const struct render_stack *s, uint32_t k)
{
	return &w->m->functions[render_frame_at(w->m, s, k)->function];
}

/* What the thread does there, and *above: the innermost frame that is neither the kernel's nor the
 * C library's; s->n: there is none. */
static struct fusee_str call_of(const struct waits *w, const struct render_stack *s,
				uint32_t *above)
{
	struct fusee_str call = {0}, library = {0};
	uint32_t k;

	for (k = 0; k < s->n && !is_above(function_at(w, s, k)); k++) {
		const struct render_function *f = function_at(w, s, k);

		if (f->code == RENDER_KERNEL && !call.len)
			call = activity(f->name);
		else if (is_c_library(f) && is_named(f))
			library = f->name;
	}
	*above = k;
	return call.len ? call : library;
}

/* What a row begins with. */
struct place {
	uint32_t entry; /* the frame of the standard library that the program calls; UINT32_MAX */
	uint32_t first; /* frame */
	bool is_own;    /* the program's; else it has none */
};

/* In a stack without functions of the program: the first that says more than that it waits, of the
 * standard library, or else of the virtual machine. */
static uint32_t frame_without_own(const struct waits *w, const struct render_stack *s,
				  uint32_t above)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t k = above; k < s->n; k++) {
		const struct render_function *f = function_at(w, s, k);

		if (!is_above(f) || !is_named(f) || render_only_waits(f))
			continue;
		if (render_origin(f) == RENDER_STANDARD)
			return k;
		if (found == UINT32_MAX)
			found = k;
	}
	return found < s->n ? found : above < s->n ? above : 0;
}

static struct place place_of(const struct waits *w, const struct render_stack *s, uint32_t above)
{
	struct place p = {.entry = UINT32_MAX};

	for (uint32_t k = above; k < s->n; k++) {
		const struct render_function *f = function_at(w, s, k);
		enum render_origin origin = is_above(f) ? render_origin(f) : RENDER_MACHINE;

		if (origin == RENDER_OWN) {
			p.first = k;
			p.is_own = true;
			return p;
		}
		if (origin == RENDER_STANDARD && is_named(f))
			p.entry = k;
	}
	return (struct place){UINT32_MAX, frame_without_own(w, s, above), false};
}

static void put_function(struct waits *w, const struct render_function *f, uint32_t *put)
{
	if (!is_named(f) || f->code == RENDER_REASON || f->code == RENDER_LABEL)
		return;
	if ((*put)++)
		buf_str(&w->key, " < ");
	buf_add(&w->key, f->name.p, f->name.len);
}

/* Names of functions, with the callers behind. */
static void put_callers(struct waits *w, const struct render_stack *s, struct place from)
{
	uint32_t put = 0;

	if (from.entry != UINT32_MAX)
		put_function(w, function_at(w, s, from.entry), &put);
	for (uint32_t k = from.first; k < s->n && put < CALLERS; k++) {
		const struct render_function *f = function_at(w, s, k);

		if (!from.is_own || render_origin(f) != RENDER_MACHINE)
			put_function(w, f, &put);
	}
	if (!put)
		buf_add(&w->key, function_at(w, s, from.first)->shown.p,
			function_at(w, s, from.first)->shown.len);
}

static int add(struct waits *w, const struct render_stack *s)
{
	struct fusee_str call;
	uint32_t above, id;

	buf_reset(&w->key);
	call = call_of(w, s, &above);
	buf_add(&w->key, call.p, call.len);
	buf_add(&w->key, "", 1);
	put_callers(w, s, place_of(w, s, above));
	id = w->key.error ? DICT_NONE : dict_add(&w->rows, w->key.p, w->key.len);
	if (id == DICT_NONE)
		return -ENOMEM;
	saturate_add(&w->values[id], s->value);
	return 0;
}

static struct fusee_str row_call(const struct waits *w, uint32_t id)
{
	return fusee_text(w->rows.entries[id].key);
}

static struct fusee_str row_functions(const struct waits *w, uint32_t id)
{
	const struct dict_entry *e = &w->rows.entries[id];
	uint64_t call = row_call(w, id).len + 1;

	return (struct fusee_str){(const char *)e->key + call, e->len - call};
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct waits *w = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (w->values[x] != w->values[y])
		return w->values[x] > w->values[y] ? -1 : 1;
	return str_order(row_functions(w, x), row_functions(w, y));
}

static int sum(struct waits *w, uint32_t rows)
{
	const struct render_model *m = w->m;

	w->values = calloc(m->nstacks + 1, sizeof(*w->values));
	w->order = calloc(m->nstacks + 1, sizeof(*w->order));
	if (!w->values || !w->order || dict_init(&w->rows))
		return -ENOMEM;
	for (uint32_t i = 0; i < m->nstacks; i++)
		if (add(w, &m->stacks[i]))
			return -ENOMEM;
	for (uint32_t id = 1; id < w->rows.n; id++)
		if (w->values[id] > 0)
			w->order[w->n++] = id;
	qsort_r(w->order, w->n, sizeof(*w->order), compare, w);
	w->n = w->n < rows ? w->n : rows;
	return 0;
}

static void put_rows(const struct waits *w, uint32_t width, struct buf *out)
{
	struct render_scale scale;
	uint32_t call = 0, columns = 0;

	render_scale_choose(&scale, w->m);
	for (uint32_t i = 0; i < w->n; i++) {
		uint32_t n = render_columns(row_call(w, w->order[i]));

		n = n < CALL_MAX ? n : CALL_MAX;
		call = n > call ? n : call;
	}
	if (width)
		columns = width > NUMBERS_WIDTH + call + LEAST_WIDTH ? width - NUMBERS_WIDTH - call
								     : LEAST_WIDTH;
	for (uint32_t i = 0; i < w->n; i++) {
		size_t at;

		buf_str(out, "  ");
		render_scale_put(&scale, w->values[w->order[i]], out);
		buf_str(out, "   ");
		at = out->len;
		render_name(out, row_call(w, w->order[i]), CALL_MAX);
		if (!out->error)
			buf_printf(out, "%*s  ",
				   (int)(call - render_columns((struct fusee_str){out->p + at,
										  out->len - at})),
				   "");
		render_name(out, row_functions(w, w->order[i]), columns);
		buf_str(out, "\n");
	}
}

int render_waits(const struct fusee_profile *p, const struct render_options *o, struct buf *out)
{
	struct render_model m;
	struct waits w = {.m = &m};
	int ret = render_model_make(&m, p, NULL, o, out);

	if (ret)
		return ret;
	ret = sum(&w, o->rows ? o->rows : ROWS);
	if (!ret && w.n)
		put_rows(&w, o->width, out);
	dict_fini(&w.rows);
	buf_fini(&w.key);
	free(w.values);
	free(w.order);
	render_model_free(&m);
	return ret ? ret : out->error;
}
