/* SPDX-License-Identifier: Apache-2.0 */
/* unwinder "v8": functions of JavaScript that V8 runs in Node.js. x86-64. */
#include <stdbool.h>

#include <fusee/emitted.h>
#include <fusee/unwinder.bpf.h>

#include "inspect.h"
#include "names.h"
#include "source.h"

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

#define STEP (FUSEE_CLAIM_STEP | FUSEE_CLAIM_LIVE)

/* Code of JavaScript is claimed without FUSEE_CLAIM_NAME: what is no function's may be named by a
 * perf map. */
static int claim(const struct v8 *v, uint64_t process, uint64_t lo, uint64_t hi, uint32_t flags)
{
	struct fusee_claim c = FUSEE_SIZED(struct fusee_claim, .flags = flags, .range = {lo, hi});

	return lo < hi ? v->self.host->unwinder->process_claim(v->self.in, process, &c) : 0;
}

/* V8 reserves one range of memory for all its code, in chunks, and maps its builtins once more into
 * the last of these. */
#define CHUNK 0x40000u
#define CODE_RANGE (512ull << 20)

static int claim_around(const struct v8 *v, uint64_t process, uint64_t builtins_end)
{
	uint64_t end = (builtins_end + CHUNK - 1) & ~(uint64_t)(CHUNK - 1);

	return claim(v, process, end > CODE_RANGE ? end - CODE_RANGE : 0, end, STEP);
}

#define PAGE 4096u

/* Does this mapping have the file's builtins and no other code of it? */
static bool is_builtins(const struct v8_process *p, const struct fusee_mapping_view *m)
{
	uint64_t lo = m->lo - m->bias, hi = m->hi - m->bias;

	return lo + PAGE > p->words[V8_BUILTINS_LO] && hi < p->words[V8_BUILTINS_HI] + PAGE &&
	       lo < hi;
}

#define MOST_HEAD 0x8000u

/* Is this memory the code of a chunk? The chunk's head has its size. */
static bool is_chunk(const struct v8 *v, uint64_t process, uint64_t lo, uint64_t hi)
{
	uint64_t chunk = lo & ~(uint64_t)(CHUNK - 1), size;

	return lo - chunk < MOST_HEAD &&
	       !v->self.host->unwinder->process_read(process, chunk, &size, sizeof(size)) &&
	       !(size & 0xfff) && size >= CHUNK && size >= hi - chunk && size <= CODE_RANGE;
}

#define MOST_LOOKED_AT 0x10000u

/* Is this memory the code of WebAssembly? Where code was freed, a module's code has several such
 * mappings: those without a jump table have functions. */
static bool is_wasm(struct v8 *v, uint64_t process, uint64_t lo, uint64_t hi)
{
	const struct v8_process *p = v8_names_process(&v->processes, process);
	unsigned char *bytes;
	bool is = false;
	uint32_t n = hi - lo < MOST_LOOKED_AT ? (uint32_t)(hi - lo) : MOST_LOOKED_AT;

	if (!p || !p->words[V8_WASM_MARKER] || lo & (PAGE - 1) || n < PAGE)
		return false;
	bytes = malloc(n);
	if (bytes && !v->self.host->unwinder->process_read(process, lo, bytes, n))
		is = v8_modules_is_code(bytes, n, p->words[V8_WASM_MARKER]);
	free(bytes);
	return is;
}

/* V8 reserves memory for all code of a module, and makes it executable page by page while it
 * compiles: a claim of what is there now would be late for each new function. */
#define WASM_AHEAD (16ull << 20)

static int claim_code(struct v8 *v, uint64_t process, uint64_t lo, uint64_t hi)
{
	if (is_chunk(v, process, lo, hi))
		return claim(v, process, lo, hi, STEP);
	return is_wasm(v, process, lo, hi)
		       ? claim(v, process, lo, hi + WASM_AHEAD, STEP | FUSEE_CLAIM_NAME)
		       : 0;
}

static int on_mapped(void *ctx, uint64_t process, const struct fusee_mapping_view *m)
{
	struct v8 *v = ctx;
	struct v8_process *p = v8_names_process(&v->processes, process);

	if (!p)
		return -ENOMEM;
	if (!(m->flags & FUSEE_VIEW_LIBRARY))
		return p->known ? claim_code(v, process, m->lo, m->hi) : 0;
	if (!FUSEE_HAS(m, table) || m->table.n != V8_WORDS)
		return 0;
	memcpy(p->words, m->table.at, sizeof(p->words));
	p->known = true;
	return is_builtins(p, m) ? claim_around(v, process, m->hi) : 0;
}

/* ---- lines ---- */

#define MOST_NS 50000000u       /* how long a refresh reads */
#define MOST_LINES (4ull << 20) /* lines of all scripts of a process, which may be hostile */

struct reading {
	struct v8 *v;
	struct v8_process *p;
	uint64_t process, until;
};

static bool read_script(void *arg, struct v8_file *f)
{
	struct reading *r = arg;

	if (f->source.state >= V8_SOURCE_READ || r->p->lines > MOST_LINES)
		return true;
	if (v8_source_read(r->v->self.host->unwinder, r->process, r->p->words, &f->source))
		r->p->lines += f->source.nlines + f->source.nloops;
	return fusee_now(CLOCK_MONOTONIC) < r->until;
}

/* Reads the text of this script, if its process runs V8. */
static void read_new(struct v8 *v, uint64_t process, uint64_t key)
{
	struct v8_process *p = v8_names_process(&v->processes, process);
	struct v8_file *f = v8_names_script(&v->processes, process, key);
	struct reading r = {v, p, process, 0};

	if (p && p->known && f)
		read_script(&r, f);
}

/* Goes on reading the texts of scripts that are not read yet. */
static int on_refresh(void *ctx, uint64_t process)
{
	struct v8 *v = ctx;
	struct v8_process *p = v8_names_process(&v->processes, process);
	struct reading r = {v, p, process, fusee_now(CLOCK_MONOTONIC) + MOST_NS};

	if (!p)
		return -ENOMEM;
	if (p->known) {
		struct v8_memory m = {v->self.host->unwinder, process, p->words[V8_WASM_MARKER],
				      false};

		v8_modules_refresh(&p->modules, &m);
		v8_names_each_script(&v->processes, process, read_script, &r);
	}
	return 0;
}

/* As v8_names_add(), of modules of WebAssembly and of places in them. */
static int add_wasm(struct v8 *v, uint64_t process, const struct fusee_emission *e)
{
	struct v8_process *p = v8_names_process(&v->processes, process);
	struct v8_memory m = {v->self.host->unwinder, process, p ? p->words[V8_WASM_MARKER] : 0,
			      false};

	if (!p)
		return -ENOMEM;
	return e->kind == V8_MODULE
		       ? v8_modules_add(&p->modules, &m, e->key, e->bytes.p, e->bytes.len)
		       : v8_modules_add_place(&p->modules, &m, e->key, e->bytes.p, e->bytes.len);
}

static int on_record(void *ctx, uint64_t process, const struct fusee_emission *e)
{
	struct v8 *v = ctx;
	int kept = e->kind == V8_MODULE || e->kind == V8_WASM
			   ? add_wasm(v, process, e)
			   : v8_names_add(&v->processes, process, e->kind, e->key, e->bytes.p,
					  e->bytes.len);

	if (kept > 0 && e->kind == V8_SCRIPT) /* now, as the process may end soon */
		read_new(v, process, e->key);
	return fusee_emitted_result(&v->self, "functions_lost", kept);
}

/* Names of wrappers, as V8's own profiler has them. */
#define TO_JS "wasm-to-js"
#define TO_WASM "js-to-wasm"

/* The name of a function. What a module exports is a function of JavaScript, whose name is a number
 * and whose code is a wrapper. */
static const char *name_of(struct v8 *v, uint64_t process, const struct v8_named *named)
{
	const struct v8_process *p = v8_names_process(&v->processes, process);

	if (named->script && p && v8_modules_has(&p->modules, named->script))
		return TO_WASM;
	return *named->name ? named->name : "(anonymous)";
}

/* Appends the frame of a function at this place in its script. 0 or -errno.
 * In code that Maglev has compiled (V8 13) all that is behind the first, peeled iteration of a loop
 * has the loop's own place, so that nothing is known of a call there. */
static int show(struct v8 *v, const struct fusee_raw_frame *frame, const struct v8_named *named,
		struct v8_place at, struct fusee_frame_out *out)
{
	const bool optimized = (frame->v[1] & (V8_IS_CODE | V8_IS_BASELINE)) == V8_IS_CODE;
	const uint64_t process = frame->process;
	struct fusee_source_frame f = FUSEE_SIZED(struct fusee_source_frame);
	const struct v8_file *file = named->script ? v8_names_script(&v->processes, process,
								     named->script)
						   : NULL;

	f.function = fusee_text(name_of(v, process, named));
	f.flags = named->flags & V8_IS_BUILTIN ? FUSEE_FRAME_BUILTIN : 0;
	if (file) {
		read_new(v, process, named->script); /* if earlier tries failed */
		f.file = fusee_text(file->name);
		if (at.known && !(optimized && v8_source_is_loop(&file->source, at.position)))
			f.line = v8_source_line(&file->source, at.position);
	}
	return v->self.host->unwinder->frame(out, &f);
}

#define MOST_DEPTH 32 /* how deep functions are inlined into each other */

/* Appends frames of the functions that were inlined at this place in compiled code, innermost
 * first, and sets *at to the place in the function that they were inlined into. Returns their
 * number, or -ENOMEM. */
static int show_inlined(struct v8 *v, const struct fusee_raw_frame *frame,
			const struct v8_named *code, struct v8_place *at,
			struct fusee_frame_out *out)
{
	const struct v8_named *chain[MOST_DEPTH];
	struct v8_place places[MOST_DEPTH];
	int n = 0;

	for (; at->inlined >= 0 && n < MOST_DEPTH; n++) {
		const struct v8_inlined *i = &code->place[at->inlined];

		if ((uint32_t)at->inlined >= code->places ||
		    (uint32_t)i->function >= code->functions)
			break;
		chain[n] = v8_names_function(&v->processes, frame->process,
					     code->inlined[i->function]);
		if (!chain[n])
			break;
		places[n] = *at;
		/* between two calls an instruction's function is known, but not its line */
		places[n].known = n || !(frame->v[1] & V8_IS_EXACT);
		*at = v8_place_of((uint64_t)i->position);
	}
	if (at->inlined >= 0) { /* the chain is invalid, too long, or not known yet */
		*at = (struct v8_place){0, -1, false};
		return 0;
	}
	at->known = at->known && (n || !(frame->v[1] & V8_IS_EXACT));
	for (int i = 0; i < n; i++)
		if (show(v, frame, chain[i], places[i], out))
			return -ENOMEM;
	return n;
}

/* The place of a frame of a function in code that was compiled of it. */
static struct v8_place place_in_code(struct v8 *v, const struct fusee_raw_frame *frame,
				     const struct v8_named *function, const struct v8_named *code)
{
	const struct v8_process *p = v8_names_process(&v->processes, frame->process);
	uint32_t offset = (uint32_t)frame->v[1];

	if (!(frame->v[1] & V8_IS_BASELINE))
		return v8_names_place(code, offset, frame->v[1] & V8_IS_EXACT);
	return p ? v8_names_baseline_place(p->words, function, code, offset)
		 : (struct v8_place){0, -1, false};
}

/* Appends the frame of this function of WebAssembly. 1 or -ENOMEM. */
static int show_named(struct v8 *v, const struct fusee_raw_frame *frame, const char *name,
		      uint64_t script, struct fusee_frame_out *out)
{
	struct fusee_source_frame f = FUSEE_SIZED(struct fusee_source_frame);
	const struct v8_file *file = script ? v8_names_script(&v->processes, frame->process, script)
					    : NULL;

	f.function = fusee_text(name);
	if (file)
		f.file = fusee_text(file->name);
	return v->self.host->unwinder->frame(out, &f) ? -ENOMEM : 1;
}

/* Appends the frame of a function of WebAssembly, or of a wrapper. 1 or -ENOMEM. */
static int show_wasm(struct v8 *v, const struct fusee_raw_frame *frame, struct fusee_frame_out *out)
{
	const struct v8_process *p = v8_names_process(&v->processes, frame->process);
	char name[V8_FUNCTION_NAME];
	uint64_t script = 0;

	if (!p)
		return -ENOMEM;
	if (frame->v[1] != V8_IS_WASM)
		return show_named(v, frame, frame->v[1] == V8_IS_TO_JS ? TO_JS : TO_WASM, 0, out);
	if (!v8_modules_name(&p->modules, frame->v[0], name, &script)) {
		strcpy(name, "wasm-function[?]");
		fusee_count(&v->self, "wasm_unknown", 1);
	}
	return show_named(v, frame, name, script, out);
}

/* Appends the frame of a function of WebAssembly whose frame is not made yet, or removed. 1, 0: it
 * is not known which that is, or -ENOMEM. */
static int show_bare(struct v8 *v, const struct fusee_raw_frame *frame, struct fusee_frame_out *out)
{
	const struct v8_process *p = v8_names_process(&v->processes, frame->process);
	char name[V8_FUNCTION_NAME];
	uint64_t script = 0;

	if (!p)
		return -ENOMEM;
	return v8_modules_name_at(&p->modules, frame->addr, name, &script)
		       ? show_named(v, frame, name, script, out)
		       : 0;
}

static int on_symbolize(void *ctx, const struct fusee_raw_frame *frame, struct fusee_frame_out *out)
{
	struct v8 *v = ctx;
	struct v8_place at = {0, -1, false};
	const struct v8_named *named, *code;
	int n = 0;

	if (frame->addr) /* no step has named it */
		return show_bare(v, frame, out);
	if (frame->v[1] == V8_IS_WASM || frame->v[1] == V8_IS_TO_JS || frame->v[1] == V8_IS_TO_WASM)
		return show_wasm(v, frame, out);
	named = v8_names_function(&v->processes, frame->process, frame->v[0]);
	if (!named)
		return 0;
	if (frame->v[1] & V8_IS_CODE) {
		code = v8_names_function(&v->processes, frame->process, frame->v[2]);
		if (code)
			at = place_in_code(v, frame, named, code);
		if (at.known && !(frame->v[1] & V8_IS_BASELINE))
			n = show_inlined(v, frame, code, &at, out);
	} else if (frame->v[1] != V8_NO_OFFSET) {
		at = v8_names_place(named, (uint32_t)frame->v[1], false);
	}
	return n < 0 || show(v, frame, named, at, out) ? -ENOMEM : n + 1;
}

static uint64_t on_forget(void *ctx, uint64_t process, uint32_t what)
{
	struct v8 *v = ctx;

	return v8_names_forget(&v->processes, process, what);
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
	.flags = FUSEE_UNWINDER_LATE,
	.slab_version = 5,
	.frame_type = "v8js",
	.reasons = reasons,
	.bpf = v8_bpf,
	.bpf_end = v8_bpf_end,
	.native_step = fusee_step_v8,
	.inspect = on_inspect,
	.mapped = on_mapped,
	.refresh = on_refresh,
	.record = on_record,
	.symbolize = on_symbolize,
	.detach = on_detach,
	.runtimes = FUSEE_TABLE(runtimes),
	.forget = on_forget,
	.tested = "Node.js 18.20.8, 20.20.2, 22.23.3, 24.21.0",
};

FUSEE_PLUGIN(v8, FUSEE_UNWINDER, .version = "0.1",
	     .doc = "Functions of JavaScript that V8 runs in Node.js.",
	     .ctx_size = sizeof(struct v8), .init = fusee_self_init, .fini = on_fini, .ops = &ops);
