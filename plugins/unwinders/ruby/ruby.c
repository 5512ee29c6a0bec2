/* SPDX-License-Identifier: Apache-2.0 */
/* unwinder "ruby": frames of CRuby 2.7 to 3.3. x86-64. */
#include <fusee/emitted.h>
#include <fusee/unwinder.bpf.h>

#include "functions.h"
#include "inspect.h"
#include "versions.h"

int fusee_step_ruby(struct fusee_unwind *u);
FUSEE_EMBED(ruby_bpf, "ruby.bpf.o");

struct ruby {
	struct fusee_self self;
	void *processes; /* see functions.h */
};

static int on_inspect(void *ctx, uint64_t file)
{
	struct ruby *r = ctx;

	return ruby_inspect(&r->self, file);
}

static int on_record(void *ctx, uint64_t process, const struct fusee_emission *e)
{
	struct ruby *r = ctx;
	int kept = ruby_functions_add(&r->processes, process, e->kind, e->key, e->bytes.p,
				      e->bytes.len);

	return fusee_emitted_result(&r->self, "functions_lost", kept);
}

static int on_symbolize(void *ctx, const struct fusee_raw_frame *frame, struct fusee_frame_out *out)
{
	struct ruby *r = ctx;
	struct fusee_source_frame named = FUSEE_SIZED(struct fusee_source_frame);
	const struct ruby_named *f = ruby_functions_find(&r->processes, frame->process, frame->v[0],
							 frame->v[1], &named.line);

	if (!f || !*f->label)
		return 0;
	named.function = fusee_text(f->label);
	named.file = fusee_text(f->path);
	named.start_line = f->first_line;
	if (f->is_c || !strncmp(f->path, "<internal:", 10))
		named.flags = FUSEE_FRAME_BUILTIN;
	if (!named.line)
		named.line = f->first_line;
	return r->self.host->unwinder->frame(out, &named) ? -ENOMEM : 1;
}

#define FARTHEST (1ull << 31) /* from the library: code of YJIT calls it with 32 bits */
#define RESERVED (128u << 20) /* bytes around code of YJIT in which it makes more, page by page */

/* Claims memory near the library with code that is of no file. It is YJIT's; if not, the step
 * passes. The words of the process say where the library is. */
static int on_mapped(void *ctx, uint64_t process, const struct fusee_mapping_view *m)
{
	struct ruby *r = ctx;
	const struct fusee_unwinder_host *host = r->self.host->unwinder;
	struct fusee_claim claim = FUSEE_SIZED(
		struct fusee_claim, .flags = FUSEE_CLAIM_STEP | FUSEE_CLAIM_NAME,
		.range = {m->lo < RESERVED ? 0 : m->lo - RESERVED, m->hi + RESERVED},
		.arg = RUBY_JIT);
	struct ruby_library *l = ruby_functions_library(&r->processes, process);
	uint32_t words[RUBY_PROCESS_WORDS];

	if (!l)
		return -ENOMEM;
	if (m->flags & FUSEE_VIEW_LIBRARY) {
		*l = (struct ruby_library){m->bias, m->lo, m->hi};
		for (int i = 0; i < RUBY_PROCESS_WORDS; i++) {
			uint64_t v = i < RUBY_PROCESS_LO   ? m->bias
				     : i < RUBY_PROCESS_HI ? m->lo
							   : m->hi;

			words[i] = (uint32_t)(v >> i % 2 * 32);
		}
		return host->process_slab(r->self.in, process, words, RUBY_PROCESS_WORDS);
	}
	if (!l->hi || (m->lo > l->hi ? m->lo - l->hi : l->lo - m->lo) > FARTHEST)
		return 0;
	return host->process_claim(r->self.in, process, &claim);
}

static uint64_t on_forget(void *ctx, uint64_t process, uint32_t what)
{
	struct ruby *r = ctx;

	return ruby_functions_forget(&r->processes, process, what);
}

static void on_detach(void *ctx, uint64_t process)
{
	struct ruby *r = ctx;

	ruby_functions_remove(&r->processes, process);
}

static void on_fini(void *ctx)
{
	struct ruby *r = ctx;

	ruby_functions_free(&r->processes);
}

static const char *const reasons[] = RUBY_REASONS;

static const char *const files[] = {"libruby", "ruby", NULL};
static const struct fusee_runtime runtimes[] = {
	FUSEE_SIZED(struct fusee_runtime, .name = "Ruby", .files = files, .major = 2, .minor = 7,
		    .flags = FUSEE_RUNTIME_INTERPRETS),
};

static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops),
	.slab_version = 12,
	.frame_type = "ruby",
	.reasons = reasons,
	.bpf = ruby_bpf,
	.bpf_end = ruby_bpf_end,
	.native_step = fusee_step_ruby,
	.inspect = on_inspect,
	.mapped = on_mapped,
	.record = on_record,
	.symbolize = on_symbolize,
	.detach = on_detach,
	.runtimes = FUSEE_TABLE(runtimes),
	.forget = on_forget,
	.tested = ruby_tested,
};

FUSEE_PLUGIN(ruby, FUSEE_UNWINDER, .version = "0.1",
	     .doc = "Methods and blocks of programs that CRuby 2.7 to 3.3 runs.",
	     .ctx_size = sizeof(struct ruby), .init = fusee_self_init, .fini = on_fini,
	     .ops = &ops);
