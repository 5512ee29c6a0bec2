/* SPDX-License-Identifier: Apache-2.0 */
/* unwinder "python": frames of CPython 3.8 and later. x86-64. */
#include <fusee/emitted.h>
#include <fusee/unwinder.bpf.h>

#include "codes.h"
#include "inspect.h"
#include "lines.h"
#include "tables.h"
#include "versions.h"

int fusee_step_python(struct fusee_unwind *u);
FUSEE_EMBED(python_bpf, "python.bpf.o");

#define RELEASES 16 /* how many releases a line of the log is written for */

struct python {
	struct fusee_self self;
	uint8_t asyncio;                        /* the option */
	void *processes;                        /* see codes.h */
	uint32_t taskless[RELEASES], ntaskless; /* releases whose tasks cannot be shown */
};

static int on_inspect(void *ctx, uint64_t file)
{
	struct python *p = ctx;

	return python_inspect(&p->self, file, p->asyncio);
}

/* Is this the first time that this is logged for a release? Notes the release. */
static int is_first(uint32_t *logged, uint32_t *n, uint32_t version)
{
	for (uint32_t i = 0; i < *n; i++)
		if (logged[i] == version)
			return 0;
	if (*n == RELEASES)
		return 0;
	logged[(*n)++] = version;
	return 1;
}

/* Logs once that the tasks of a release of Python cannot be shown. */
static void log_release(struct python *p, const struct fusee_emission *e)
{
	struct python_head h;
	uint32_t version;

	if (e->bytes.len < sizeof(h))
		return;
	memcpy(&h, e->bytes.p, sizeof(h));
	version = 3u << 24 | (h.minor & 255) << 16 | (h.micro & 255) << 8;
	if (h.part.part)
		return;
	if (p->asyncio && !h.has_tasks && is_first(p->taskless, &p->ntaskless, version))
		fusee_log(&p->self, FUSEE_WARNING,
			  "asyncio: what awaits a task of Python 3.%u.%u cannot be shown, only of "
			  "3.11 to 3.14 with the GIL",
			  h.minor, h.micro);
}

static int on_record(void *ctx, uint64_t process, const struct fusee_emission *e)
{
	struct python *p = ctx;
	int r = python_codes_add(&p->processes, process, e->key, e->bytes.p, e->bytes.len);

	if (r > 0)
		log_release(p, e);
	return fusee_emitted_result(&p->self, "code_objects_lost", r);
}

static int on_symbolize(void *ctx, const struct fusee_raw_frame *frame, struct fusee_frame_out *out)
{
	struct python *p = ctx;
	const struct python_code *c = python_codes_find(&p->processes, frame->process, frame->v[0]);
	struct fusee_source_frame named = FUSEE_SIZED(struct fusee_source_frame);
	struct python_lines lines;

	if (!c)
		return 0;
	lines = (struct python_lines){c->minor, c->first_line, c->lines, c->arrived};
	named.function = fusee_text(c->name);
	named.file = fusee_text(c->file);
	named.start_line = c->first_line;
	if (!strncmp(c->file, "<frozen importlib", 17)) /* CPython's tracebacks hide them, too */
		named.flags = FUSEE_FRAME_HIDDEN;
	if (frame->v[1] != PYTHON_NO_INSTRUCTION)
		named.line = python_line(&lines, (uint32_t)frame->v[1]);
	if (!named.line)
		named.line = c->first_line;
	return p->self.host->unwinder->frame(out, &named) ? -ENOMEM : 1;
}

static uint64_t on_forget(void *ctx, uint64_t process, uint32_t what)
{
	struct python *p = ctx;

	return python_codes_forget(&p->processes, process, what);
}

static void on_detach(void *ctx, uint64_t process)
{
	struct python *p = ctx;

	python_codes_remove(&p->processes, process);
}

static void on_fini(void *ctx)
{
	struct python *p = ctx;

	python_codes_free(&p->processes);
}

static const char *const reasons[] = PYTHON_REASONS;

static const char *const files[] = {"libpython", "python", NULL};
static const struct fusee_runtime runtimes[] = {
	FUSEE_SIZED(struct fusee_runtime, .name = "Python", .files = files, .major = 3, .minor = 8,
		    .flags = FUSEE_RUNTIME_INTERPRETS),
};

static const struct fusee_option options[] = {
	FUSEE_OPTION_BOOL(
		struct python, asyncio, "false",
		"Below a task of asyncio show the functions that await it (3.11 to 3.14)."),
};

static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops),
	.slab_version = 10,
	.frame_type = "cpython",
	.reasons = reasons,
	.bpf = python_bpf,
	.bpf_end = python_bpf_end,
	.native_step = fusee_step_python,
	.inspect = on_inspect,
	.record = on_record,
	.symbolize = on_symbolize,
	.detach = on_detach,
	.runtimes = FUSEE_TABLE(runtimes),
	.forget = on_forget,
	.tested = python_tested,
};

FUSEE_PLUGIN(python, FUSEE_UNWINDER, .version = "0.1",
	     .doc = "Functions of programs that CPython 3.8 and later runs.",
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct python),
	     .init = fusee_self_init, .fini = on_fini, .ops = &ops);
