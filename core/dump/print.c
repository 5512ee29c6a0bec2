/* SPDX-License-Identifier: Apache-2.0 */
#include "dump/internal/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "process/procfs.h"
#include "profile/omit.h"
#include "profile/str.h"

#define REASON "[truncated: "

/* A source frame of a thread. */
struct frame {
	struct fusee_str type, name, file, library;
	uint32_t line;
	uint64_t address;
	uint32_t flags; /* enum fusee_frame_flags */
	bool inlined, guessed, unknown;
};

struct printer {
	const struct dump_view *view;
	struct buf *out; /* for text */
	struct json json;
	uint32_t n; /* frames so far, of the thread */
	bool fold;  /* frames that the language hides are not shown */
	struct omit omit;
	void (*frame)(struct printer *, const struct frame *);
};

/* ---- the stack of a thread ---- */

static const struct fusee_sample *sample_of(const struct dump_view *v, pid_t tid)
{
	const struct fusee_profile *p = v->profile;

	for (uint32_t i = 0; i < p->samples.n; i++) {
		const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, i);

		if (s->tid == (uint32_t)tid)
			return s;
	}
	return NULL;
}

static const struct fusee_location *location_at(const struct fusee_profile *p,
						const struct fusee_stack *s, uint32_t i)
{
	uint32_t id = *FUSEE_AT(uint32_t, p->stack_locations, s->first + i);

	return FUSEE_AT(struct fusee_location, p->locations, id);
}

static struct fusee_str path_of(const struct fusee_profile *p, const struct fusee_location *l)
{
	return str_at(p, FUSEE_AT(struct fusee_mapping, p->mappings, l->mapping)->path);
}

static void put_location(struct printer *r, const struct fusee_location *l)
{
	const struct fusee_profile *p = r->view->profile;

	for (uint32_t i = 0; i < l->nlines; i++) {
		const struct fusee_line *line = FUSEE_AT(struct fusee_line, p->lines,
							 l->first_line + i);
		const struct fusee_function *fn = FUSEE_AT(struct fusee_function, p->functions,
							   line->function);
		struct frame f = {
			.type = str_at(p, l->frame_type),
			.name = str_at(p, fn->name),
			.file = str_at(p, fn->file),
			.library = path_of(p, l),
			.line = line->line,
			.address = l->address,
			.flags = fn->flags,
			.inlined = line->flags & FUSEE_LINE_INLINED,
			.guessed = l->flags & FUSEE_LOCATION_GUESSED,
			.unknown = l->flags & FUSEE_LOCATION_STUB,
		};

		if (r->fold && f.flags & FUSEE_FRAME_HIDDEN)
			continue;
		r->frame(r, &f);
		r->n++;
	}
}

/* Whether the frame's text is the reason of a truncation; otherwise it is a number of omitted
 * frames. */
static bool is_reason(struct fusee_str name)
{
	return name.len > strlen(REASON) && !memcmp(name.p, REASON, strlen(REASON));
}

/* Prints the frames of a stack, leaf first. Returns why it is truncated; len 0: it is complete. */
static struct fusee_str put_stack(struct printer *r, const struct fusee_sample *sample)
{
	const struct dump_view *v = r->view;
	const struct fusee_profile *p = v->profile;
	const struct fusee_stack *s = FUSEE_AT(struct fusee_stack, p->stacks, sample->stack);
	struct fusee_str reason = {"", 0}, name;

	r->fold = !v->native;
	r->omit = (struct omit){0};
	if (r->fold)
		omit_init(&r->omit, p, s);
	for (uint32_t i = 0; i < s->n; i++) {
		const struct fusee_location *l = location_at(p, s, i);
		const struct fusee_line *line = FUSEE_AT(struct fusee_line, p->lines,
							 l->first_line);

		name = str_at(p,
			      FUSEE_AT(struct fusee_function, p->functions, line->function)->name);
		if (l->flags & FUSEE_LOCATION_REASON && is_reason(name))
			reason = (struct fusee_str){name.p + strlen(REASON),
						    name.len - strlen(REASON) - 1};
		else if (!omit_location(&r->omit, l))
			put_location(r, l);
	}
	return reason;
}

/* Calls r->frame() for each line of the kernel's stack. */
static void put_kernel(struct printer *r, const struct dumped_thread *d)
{
	const char *at = d->state.stack, *end;

	for (; (end = strchr(at, '\n')); at = end + 1) {
		const char *module = memchr(at, ' ', (size_t)(end - at));
		struct frame f = {.type = {"kernel", 6}, .library = {"[kernel]", 8}};

		f.name = (struct fusee_str){at, (uint64_t)((module ? module : end) - at)};
		if (module)
			f.library = (struct fusee_str){module + 1, (uint64_t)(end - module - 1)};
		r->frame(r, &f);
		r->n++;
	}
}

/* ---- sums ---- */

/* How long the threads were stopped. */
struct stops {
	uint32_t threads;
	uint64_t sum_ns, most_ns;
};

static struct stops stops_of(const struct dump *d)
{
	struct stops s = {0};

	for (uint32_t i = 0; i < d->n; i++) {
		const struct dumped_thread *t = &d->threads[i];

		s.threads += t->stops != 0;
		s.sum_ns += t->stopped_ns;
		if (t->stopped_ns > s.most_ns)
			s.most_ns = t->stopped_ns;
	}
	return s;
}

static uint64_t mean_ns(const struct stops *s)
{
	return s->threads ? s->sum_ns / s->threads : 0;
}

/* ---- text ---- */

static void put_text(struct buf *out, struct fusee_str s)
{
	utf8_clean_printable(out, s.p, s.len);
}

/* "main (app.py:12)", "read [libc.so.6]" */
static void text_frame(struct printer *r, const struct frame *f)
{
	struct fusee_str library = str_base_name(f->library);

	buf_str(r->out, "    ");
	put_text(r->out, f->name);
	if (f->file.len) {
		buf_str(r->out, " (");
		put_text(r->out,
			 fusee_text_is(f->type, "native") ? str_base_name(f->file) : f->file);
		if (f->line)
			buf_printf(r->out, ":%u", f->line);
		buf_str(r->out, ")");
	} else if (library.len && !f->unknown) {
		bool bracket = *library.p != '[';

		buf_str(r->out, bracket ? " [" : " ");
		put_text(r->out, library);
		buf_str(r->out, bracket ? "]" : "");
	}
	buf_str(r->out, f->inlined ? " inlined" : "");
	buf_str(r->out, f->guessed ? " guessed" : "");
	buf_str(r->out, f->flags & FUSEE_FRAME_ASYNC ? " async" : "");
	buf_str(r->out, "\n");
}

/* Why a thread has no user stack. */
static void text_miss(const struct dumped_thread *d, struct buf *out)
{
	switch (d->miss) {
	case DUMP_TAKEN:
	case DUMP_KERNEL:
		break;
	case DUMP_ENDED:
		buf_str(out, "    [no stack: the thread has ended]\n");
		break;
	case DUMP_NO_RIGHT:
		buf_str(out, "    [no user stack: no right to stop the thread]\n");
		break;
	case DUMP_TRACED:
		buf_printf(out, "    [no user stack: process %d traces the thread]\n",
			   (int)d->state.tracer);
		break;
	case DUMP_NO_STOP:
		buf_str(out, "    [no user stack: the thread did not stop in time]\n");
		break;
	}
}

static void text_thread(struct printer *r, const struct dumped_thread *d)
{
	const struct fusee_sample *s = d->miss == DUMP_TAKEN ? sample_of(r->view, d->state.tid)
							     : NULL;
	struct fusee_str reason = {"", 0};

	buf_printf(r->out, "\nthread %d \"", (int)d->state.tid);
	put_text(r->out, (struct fusee_str){d->state.comm, strlen(d->state.comm)});
	buf_printf(r->out, "\" %s", thread_state_text(d->state.state));
	if (*d->state.wchan) {
		buf_str(r->out, " in ");
		put_text(r->out, (struct fusee_str){d->state.wchan, strlen(d->state.wchan)});
	}
	buf_str(r->out, "\n");
	r->n = 0;
	put_kernel(r, d);
	if (s)
		reason = put_stack(r, s);
	text_miss(d, r->out);
	if (reason.len) {
		buf_str(r->out, "    [truncated: ");
		put_text(r->out, reason);
		buf_str(r->out, "]\n");
	} else if (!r->n && d->miss == DUMP_KERNEL) {
		buf_str(r->out, "    [no kernel stack: it can be read by root only]\n");
	}
}

void dump_print_text(const struct dump_view *v, struct buf *out)
{
	struct printer r = {.view = v, .out = out, .frame = text_frame};
	struct stops s = stops_of(v->dump);
	char comm[16] = "";

	procfs_comm(v->pid, v->pid, comm);
	buf_printf(out, "process %d \"", (int)v->pid);
	put_text(out, fusee_text(comm));
	buf_printf(out, "\", %u thread%s", v->dump->n, v->dump->n == 1 ? "" : "s");
	if (s.threads)
		buf_printf(out, ", stopped %u for %.3f ms each, %.3f ms at most\n", s.threads,
			   (double)mean_ns(&s) / 1e6, (double)s.most_ns / 1e6);
	else
		buf_str(out, ", stopped none\n");
	for (uint32_t i = 0; i < v->dump->n; i++)
		text_thread(&r, &v->dump->threads[i]);
}

/* ---- JSON ---- */

static void json_frame(struct printer *r, const struct frame *f)
{
	struct json *j = &r->json;

	json_open(json_line(j, 4), NULL);
	json_str(j, "type", f->type);
	json_str(j, "function", f->name);
	if (f->file.len)
		json_str(j, "file", f->file);
	if (f->line)
		json_uint(j, "line", f->line);
	if (f->library.len)
		json_str(j, "library", f->library);
	if (f->address && f->library.len)
		json_printf(j, "address", "\"0x%" PRIx64 "\"", f->address);
	if (f->inlined)
		json_flag(j, "inlined", true);
	if (f->guessed)
		json_flag(j, "guessed", true);
	if (f->flags & FUSEE_FRAME_ASYNC)
		json_flag(j, "async", true);
	if (f->flags & FUSEE_FRAME_BUILTIN)
		json_flag(j, "builtin", true);
	if (f->flags & FUSEE_FRAME_HIDDEN)
		json_flag(j, "hidden", true);
	json_end(j);
}

static const char *miss_text(const struct dumped_thread *d)
{
	static const char *const texts[] = {
		[DUMP_ENDED] = "ended",
		[DUMP_NO_RIGHT] = "no right to stop it",
		[DUMP_TRACED] = "traced already",
		[DUMP_NO_STOP] = "did not stop in time",
		[DUMP_KERNEL] = "a kernel thread",
	};

	return texts[d->miss];
}

static void json_thread(struct printer *r, const struct dumped_thread *d)
{
	const struct fusee_sample *s = d->miss == DUMP_TAKEN ? sample_of(r->view, d->state.tid)
							     : NULL;
	struct fusee_str reason = {"", 0};
	struct json *j = &r->json;

	json_open(json_line(j, 2), NULL);
	json_int(j, "tid", d->state.tid);
	json_text(j, "name", d->state.comm);
	json_text(j, "state", thread_state_text(d->state.state));
	if (*d->state.wchan)
		json_text(j, "waits_in", d->state.wchan);
	json_uint(j, "stops", d->stops);
	json_uint(j, "stopped_ns", d->stopped_ns);
	if (d->state.tracer)
		json_int(j, "tracer", d->state.tracer);
	json_list(j, "frames");
	r->n = 0;
	put_kernel(r, d);
	if (s)
		reason = put_stack(r, s);
	json_end(j);
	if (d->miss)
		json_text(j, "no_stack", miss_text(d));
	if (reason.len)
		json_str(j, "truncated", reason);
	json_end(j);
}

void dump_print_json(const struct dump_view *v, struct buf *out)
{
	struct printer r = {.view = v, .json = {.out = out}, .frame = json_frame};
	struct stops s = stops_of(v->dump);
	struct json *j = &r.json;
	char comm[16] = "";

	procfs_comm(v->pid, v->pid, comm);
	json_open(j, NULL);
	json_int(j, "pid", v->pid);
	json_text(j, "name", comm);
	json_open(j, "stopped");
	json_uint(j, "threads", s.threads);
	json_uint(j, "mean_ns", mean_ns(&s));
	json_uint(j, "most_ns", s.most_ns);
	json_end(j);
	json_list(json_line(j, 1), "threads");
	for (uint32_t i = 0; i < v->dump->n; i++)
		json_thread(&r, &v->dump->threads[i]);
	json_end(j);
	json_end(j);
}
