/* SPDX-License-Identifier: Apache-2.0 */
/* unwinder "v8": functions of JavaScript that V8 runs in Node.js. x86-64. */
#include <fusee/helpers.h>
#include <fusee/unwinder.bpf.h>

#include "inspect.h"
#include "names.h"

int fusee_step_v8(struct fusee_unwind *u);
FUSEE_EMBED(v8_bpf, "v8.bpf.o");

struct v8 {
	struct fusee_self self;
	void *processes; /* see names.h */
};

static int on_inspect(void *ctx, uint64_t file)
{
	struct v8 *v = ctx;

	return v8_inspect(&v->self, file);
}

static int claim(const struct v8 *v, uint64_t process, uint64_t lo, uint64_t hi)
{
	/* what is no function's may be in a perf map, so it is not claimed to be named */
	struct fusee_claim c = FUSEE_SIZED(struct fusee_claim,
					   .flags = FUSEE_CLAIM_STEP | FUSEE_CLAIM_LIVE,
					   .range = {lo, hi});

	return lo < hi ? v->self.host->unwinder->process_claim(v->self.in, process, &c) : 0;
}

/* V8 reserves the memory of its code at once, and maps its builtins there again, so that they are
 * near. */
#define CODE_RANGE (512ull << 20) /* bytes, at most */

static int on_mapped(void *ctx, uint64_t process, const struct fusee_mapping_view *m)
{
	struct v8 *v = ctx;
	struct v8_process *p = v8_names_process(&v->processes, process);

	if (!p)
		return -ENOMEM;
	if (!(m->flags & FUSEE_VIEW_LIBRARY))
		return p->known ? claim(v, process, m->lo, m->hi) : 0;
	if (FUSEE_HAS(m, table) && m->table.n == V8_WORDS)
		memcpy(p->words, m->table.at, sizeof(p->words));
	if (!p->known || p->builtins == m->bias) {
		p->known = true;
		p->builtins = m->bias;
		return 0;
	}
	return claim(v, process, m->hi > CODE_RANGE ? m->hi - CODE_RANGE : 0, m->lo + CODE_RANGE);
}

static int on_record(void *ctx, uint64_t process, const struct fusee_emission *e)
{
	struct v8 *v = ctx;
	int kept = v8_names_add(&v->processes, process, e->kind, e->key, e->bytes.p, e->bytes.len);

	if (kept < 0)
		fusee_count_by(&v->self, "functions_lost", "reason",
			       kept == -ENOSPC   ? "too many of one process"
			       : kept == -ENOMEM ? "no memory"
						 : "damaged",
			       1);
	return kept;
}

static int on_symbolize(void *ctx, const struct fusee_raw_frame *frame, struct fusee_frame_out *out)
{
	struct v8 *v = ctx;
	struct fusee_source_frame f = FUSEE_SIZED(struct fusee_source_frame);
	const struct v8_named *named;
	const struct v8_file *file;

	if (frame->addr) /* the machine's frame of code that no step has named */
		return 0;
	named = v8_names_function(&v->processes, frame->process, frame->v[0]);
	if (!named)
		return 0;
	file = named->script ? v8_names_script(&v->processes, frame->process, named->script) : NULL;
	f.function = fusee_text(*named->name ? named->name : "(anonymous)");
	f.flags = named->flags & V8_IS_BUILTIN ? FUSEE_FRAME_BUILTIN : 0;
	if (file)
		f.file = fusee_text(file->name);
	return v->self.host->unwinder->frame(out, &f) ? -ENOMEM : 1;
}

static void on_detach(void *ctx, uint64_t process)
{
	struct v8 *v = ctx;

	v8_names_remove(&v->processes, process);
}

static void on_fini(void *ctx)
{
	struct v8 *v = ctx;

	v8_names_free(&v->processes);
}

static const char *const reasons[] = V8_REASONS;

static const char *const files[] = {"node", "libnode", NULL};
static const struct fusee_runtime runtimes[] = {
	FUSEE_SIZED(struct fusee_runtime, .name = "Node.js", .files = files, .major = 18),
};

static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops),
	.slab_version = 1,
	.frame_type = "v8js",
	.reasons = reasons,
	.bpf = v8_bpf,
	.bpf_end = v8_bpf_end,
	.native_step = fusee_step_v8,
	.inspect = on_inspect,
	.mapped = on_mapped,
	.record = on_record,
	.symbolize = on_symbolize,
	.detach = on_detach,
	.runtimes = FUSEE_TABLE(runtimes),
	.tested = "Node.js 18.20.8, 20.20.2, 22.23.3, 24.21.0",
};

FUSEE_PLUGIN(v8, FUSEE_UNWINDER, .version = "0.1",
	     .doc = "Functions of JavaScript that V8 runs in Node.js.",
	     .ctx_size = sizeof(struct v8), .init = fusee_self_init, .fini = on_fini, .ops = &ops);
