/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/build_profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/helpers.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/text.h"
#include "base/utf8.h"
#include "unwind/claims.h"
#include "symbolizer/interpreter_code.h"
#include "pipeline/state.h"
#include "profiler/internal/build_chosen.h"
#include "profiler/internal/build_labels.h"
#include "profiler/internal/build_times.h"
#include "profiler/profiler.h"
#include "symbolizer/server_names.h"
#include "symbols/symbols.h"

#define KNOWN 1024
#define KNOWN_FILES 256

/* A slot of a cache of functions that were added to the builder. Texts are compared by address: the
 * symbolizer keeps each text of a file once. */
struct known {
	const char *name, *system_name, *file;
	uint32_t start_line;
	uint32_t id; /* 0: free */
};

/* The same of their files' names. */
struct known_file {
	const char *file;
	uint32_t id; /* 0: free, or "" */
};

struct build {
	struct builder *b;
	const struct collector *c;
	const struct pipeline *p;
	struct symbolizer *symbolizer;
	struct kernel_names *kernel_names;
	bool kernel_named; /* the kernel's symbols are readable */
	const struct build_options *o;
	struct build_labels labels;
	bool no_pid, no_tid;         /* omitted */
	uint32_t *locations;         /* by frame id; 0: not built yet */
	uint32_t *mappings;          /* by file id; 0: not built yet */
	uint32_t *flags;             /* by file id: FUSEE_MAPPING_.. that all its locations have */
	uint32_t native, kernel, go; /* ids of strings */
	struct buf text;             /* reused by clean() */
	uint64_t *times;             /* of samples, in the order of their ids; NULL: none */
	uint32_t *first_time;        /* by row of them, and one more: where its times begin */
	struct sample_sum *rest;     /* by sample id: of samples without ids; NULL: of all */
	struct followed_sum *used;   /* by row; NULL: it is not followed */
	struct known *known;
	struct known_file known_files[KNOWN_FILES];
	struct buf lines; /* reused by symbolized_location() */
};

/* A location with one function and no line. */
static uint32_t named_location(struct build *n, const char *name, struct fusee_location *loc)
{
	struct fusee_function fn = {0};
	struct fusee_line line = {0};

	fn.name = fn.system_name = builder_cstr(n->b, name);
	line.function = builder_function(n->b, &fn);
	return builder_location(n->b, loc, &line, 1);
}

/* ---- the kernel ---- */

static uint32_t kernel_mapping(struct build *n, const char *module)
{
	char path[128] = "[kernel.kallsyms]";
	struct fusee_mapping m = {.flags = FUSEE_MAPPING_KERNEL, .limit = UINT64_MAX};

	if (*module)
		snprintf(path, sizeof(path), "[%s]", module);
	if (n->kernel_named)
		m.flags |= FUSEE_MAPPING_FUNCTIONS;
	m.path = builder_cstr(n->b, path);
	return builder_mapping(n->b, &m);
}

static uint32_t kernel_location(struct build *n, const struct walk_frame *f)
{
	const char *module, *name = kernel_names_at(n->kernel_names, f->addr, &module);
	struct fusee_location loc = {.address = f->addr, .frame_type = n->kernel};

	loc.mapping = kernel_mapping(n, module);
	return named_location(n, name ? name : "[kernel]", &loc);
}

/* ---- memory without a file ---- */

#define MAX_SOURCE_FRAMES 64u
#define FRAME_FLAGS (FUSEE_FRAME_ASYNC | FUSEE_FRAME_BUILTIN | FUSEE_FRAME_HIDDEN)

/* Collects the source frames that an unwinder reports for a frame. */
struct named {
	struct fusee_frame_out out; /* first */
	struct build *build;
	uint32_t flags; /* enum fusee_frame_flags of all of them */
	struct fusee_line lines[MAX_SOURCE_FRAMES];
	uint32_t n;
};

/* The id of the text, made printable. */
static uint32_t clean(struct build *n, struct fusee_str text)
{
	buf_reset(&n->text);
	if (!text.p || utf8_clean_printable(&n->text, text.p, text.len))
		return 0;
	return builder_string(n->b, n->text.p, n->text.len);
}

static int add_source_frame(struct fusee_frame_out *out, const struct fusee_source_frame *from)
{
	struct named *d = (struct named *)out;
	struct fusee_function fn = {.start_line = from->start_line,
				    .flags = (from->flags | d->flags) & FRAME_FLAGS};

	if (d->n == MAX_SOURCE_FRAMES)
		return -ENOSPC;
	fn.name = clean(d->build, from->function);
	fn.system_name = clean(d->build, from->system_name);
	fn.file = clean(d->build, from->file);
	if (!fn.system_name)
		fn.system_name = fn.name;
	if (d->n)
		d->lines[d->n - 1].flags = FUSEE_LINE_INLINED;
	d->lines[d->n++] = (struct fusee_line){
		.function = builder_function(d->build->b, &fn),
		.line = from->line,
		.column = from->column,
	};
	return 0;
}

static uint32_t anonymous_location(struct build *n, const struct walk_frame *f)
{
	struct named named = {.out = {add_source_frame}, .build = n};
	const char *type = "native";
	struct fusee_mapping m = {.path = builder_cstr(n->b, "//anon"),
				  .flags = FUSEE_MAPPING_JIT | FUSEE_MAPPING_FUNCTIONS,
				  .limit = UINT64_MAX};
	struct fusee_location loc = {.mapping = builder_mapping(n->b, &m),
				     .frame_type = n->native,
				     .address = f->addr,
				     .flags = FUSEE_LOCATION_STUB};

	if (claims_symbolize(n->p->claims, f->process, f->addr, f->generation, &named.out, &type) >
		    0 &&
	    named.n) {
		loc.flags = f->guessed ? FUSEE_LOCATION_GUESSED : 0;
		loc.frame_type = builder_cstr(n->b, type);
		return builder_location(n->b, &loc, named.lines, named.n);
	}
	return named_location(n, "[code made at run time]", &loc);
}

/* ---- frames of languages ---- */

static uint32_t pushed_location(struct build *n, const struct walk_frame *f)
{
	struct named named = {.out = {add_source_frame}, .build = n, .flags = f->flags};
	struct fusee_location loc = {.flags = FUSEE_LOCATION_STUB};
	const char *type;
	char name[80];
	struct fusee_raw_frame raw = {.v = {f->addr, f->extra[0], f->extra[1], f->extra[2]},
				      .flags = f->flags};
	int r = claims_symbolize_pushed(n->p->claims, f->process, f->generation, &raw, &named.out,
					&type);

	loc.frame_type = builder_cstr(n->b, type);
	if (r > 0 && named.n) {
		loc.flags = 0;
		return builder_location(n->b, &loc, named.lines, named.n);
	}
	snprintf(name, sizeof(name), "[%s function]", type);
	return named_location(n, name, &loc);
}

/* ---- frames that are not kept ---- */

static uint32_t omitted_location(struct build *n, const struct walk_frame *f)
{
	struct fusee_location loc = {.flags = FUSEE_LOCATION_REASON};
	char least[32], most[32], name[96];

	text_number(least, f->addr);
	text_number(most, 2 * f->addr - 1);
	if (f->addr == 1)
		snprintf(name, sizeof(name), "[1 frame omitted]");
	else
		snprintf(name, sizeof(name), "[%s to %s frames omitted]", least, most);
	return named_location(n, name, &loc);
}

/* ---- files ---- */

static uint32_t file_mapping(struct build *n, const struct file *f)
{
	const struct inspection *i = f->inspection;
	struct fusee_mapping m = {.limit = UINT64_MAX};
	char id[129] = "";

	if (n->mappings[f->id])
		return n->mappings[f->id];
	m.path = builder_cstr(n->b, f->path);
	if (i)
		text_hex(id, i->build_id, i->build_id_len);
	if (f->executable)
		m.flags |= FUSEE_MAPPING_MAIN;
	else if (i)
		m.flags |= FUSEE_MAPPING_LIBRARY;
	if (!strcmp(f->path, "[vdso]"))
		m.flags = 0;
	m.build_id = builder_cstr(n->b, id);
	if (!n->o->server_names || !server_names_file(f))
		n->flags[f->id] = FUSEE_MAPPING_FUNCTIONS | FUSEE_MAPPING_FILENAMES |
				  FUSEE_MAPPING_LINES;
	n->mappings[f->id] = builder_mapping(n->b, &m);
	return n->mappings[f->id];
}

/* Removes flags of a mapping that not all its locations have. */
static void restrict_flags(struct build *n, uint32_t file, const struct symbols_frame *f)
{
	if (f->flags & SYMBOLS_STUB)
		n->flags[file] = 0;
	if (!*f->file)
		n->flags[file] &= ~(uint32_t)FUSEE_MAPPING_FILENAMES;
	if (!f->line)
		n->flags[file] &= ~(uint32_t)FUSEE_MAPPING_LINES;
}

static void flag_mappings(struct build *n)
{
	for (uint32_t i = 1; i < n->p->files->n; i++) {
		uint32_t all = n->flags[i];

		if (!n->mappings[i])
			continue;
		if (all & FUSEE_MAPPING_LINES &&
		    symbolizer_symbol_source(n->symbolizer, i) & (INSPECTION_DWARF | INSPECTION_GO))
			all |= FUSEE_MAPPING_INLINES;
		builder_mapping_flags(n->b, n->mappings[i], all, 0);
	}
}

static uint32_t add_stub(struct build *n, const struct file *file, const struct symbols_frame *f)
{
	struct fusee_function fn = {.file = builder_cstr(n->b, f->file),
				    .start_line = f->start_line};
	char stub[512];

	snprintf(stub, sizeof(stub), "%s%s", files_base_name(file), f->name);
	fn.name = fn.system_name = builder_cstr(n->b, stub);
	return builder_function(n->b, &fn);
}

static bool is_known(const struct known *k, const struct symbols_frame *f)
{
	return k->id && k->name == f->name && k->system_name == f->system_name &&
	       k->file == f->file && k->start_line == f->start_line;
}

/* Many functions are of one file. */
static uint32_t add_file(struct build *n, const char *file)
{
	uint32_t at = (uint32_t)((uintptr_t)file >> 3) * 0x9e3779b1u;
	struct known_file *k = &n->known_files[(at >> 16) % KNOWN_FILES];

	if (!k->id || k->file != file)
		*k = (struct known_file){file, builder_cstr(n->b, file)};
	return k->id;
}

static uint32_t add_function(struct build *n, const struct file *file,
			     const struct symbols_frame *f)
{
	struct known *k = &n->known[((uintptr_t)f->name >> 3 ^ f->start_line) % KNOWN];
	struct fusee_function fn = {.start_line = f->start_line};

	if (f->flags & SYMBOLS_STUB)
		return add_stub(n, file, f);
	if (is_known(k, f))
		return k->id;
	fn.file = add_file(n, f->file);
	fn.name = builder_cstr(n->b, f->name);
	fn.system_name = f->system_name == f->name ? fn.name : builder_cstr(n->b, f->system_name);
	*k = (struct known){f->name, f->system_name, f->file, f->start_line,
			    builder_function(n->b, &fn)};
	return k->id;
}

/* A frame of a file that the worker could not symbolize. */
static uint32_t unreadable_location(struct build *n, const struct file *file,
				    struct fusee_location *loc)
{
	char name[512];

	n->flags[file->id] = 0;
	loc->flags |= FUSEE_LOCATION_STUB;
	snprintf(name, sizeof(name), "[%s: not readable]", files_base_name(file));
	return named_location(n, name, loc);
}

/* A frame of a file whose functions a server names. */
static uint32_t nameless_location(struct build *n, const struct walk_frame *f,
				  struct fusee_location *loc)
{
	n->flags[f->file] = 0;
	if (f->guessed)
		loc->flags |= FUSEE_LOCATION_GUESSED;
	return builder_location(n->b, loc, NULL, 0);
}

static uint32_t symbolized_location(struct build *n, const struct walk_frame *f,
				    const struct symbolized_address *name,
				    struct fusee_location *loc)
{
	const struct file *file = n->p->files->all[f->file];
	struct fusee_line *lines;

	buf_reset(&n->lines);
	lines = buf_grow(&n->lines, name->n * sizeof(*lines));
	if (!lines)
		return BUILDER_NONE;
	for (uint32_t i = 0; i < name->n; i++) {
		const struct symbols_frame *at = &name->frames[i];

		restrict_flags(n, f->file, at);
		lines[i] = (struct fusee_line){
			.function = add_function(n, file, at),
			.line = at->line,
			.column = at->column,
			.flags = at->flags & SYMBOLS_INLINED ? FUSEE_LINE_INLINED : 0,
		};
		if (at->flags & SYMBOLS_STUB)
			loc->flags |= FUSEE_LOCATION_STUB;
	}
	if (f->guessed)
		loc->flags |= FUSEE_LOCATION_GUESSED;
	return builder_location(n->b, loc, lines, (uint32_t)name->n);
}

static bool is_go(const struct build *n, const struct file *file)
{
	uint32_t known = symbolizer_symbol_source(n->symbolizer, file->id);

	if (n->o->server_names && file->inspection)
		known |= file->inspection->flags;
	return known & INSPECTION_GO;
}

static uint32_t file_location(struct build *n, const struct walk_frame *f)
{
	const struct file *file = n->p->files->all[f->file];
	const struct symbolized_address *name = symbolizer_find(n->symbolizer, f->file, f->addr);
	struct fusee_location loc = {.mapping = file_mapping(n, file),
				     .frame_type = is_go(n, file) ? n->go : n->native,
				     .address = f->addr};
	/* also if names come too late */
	bool mapped = file->inspection && inspection_vaddr(file->inspection, f->addr, &loc.address);
	const char *language;

	language = interpreter_code_at(n->p->claims, file, loc.address);
	if (language) {
		loc.flags |= FUSEE_LOCATION_INTERPRETER;
		loc.language = builder_cstr(n->b, language);
	}
	if (n->o->server_names && mapped && server_names_file(file))
		return nameless_location(n, f, &loc);
	if (!name || !name->n)
		return unreadable_location(n, file, &loc);
	return symbolized_location(n, f, name, &loc);
}

static uint32_t location_of(struct build *n, const struct walk_frame *f)
{
	if (f->kind == FRAME_KERNEL)
		return kernel_location(n, f);
	if (f->file)
		return file_location(n, f);
	if (f->kind == FRAME_PUSHED)
		return pushed_location(n, f);
	return f->kind == FRAME_OMITTED ? omitted_location(n, f) : anonymous_location(n, f);
}

static uint32_t location(struct build *n, uint32_t id)
{
	if (!n->locations[id]) {
		struct walk_frame f = frame_set_at(&n->c->frames, id);

		n->locations[id] = location_of(n, &f);
	}
	return n->locations[id];
}

/* ---- samples ---- */

static uint32_t reason_location(struct build *n, uint32_t reason)
{
	struct fusee_location loc = {.flags = FUSEE_LOCATION_REASON};
	char name[128];

	snprintf(name, sizeof(name), "[truncated: %s]", n->p->account.counts[reason].text);
	return named_location(n, name, &loc);
}

static uint32_t build_stack(struct build *n, const struct sample_key *k)
{
	const struct dict_entry *e = &n->c->stacks.entries[k->stack];
	const uint32_t *ids = e->key;
	const struct fusee_sampler_ops *ops = k->part ? plugin_chooser_ops(n->labels.choosers,
									   k->sampler)
						      : NULL;
	uint32_t first = build_chosen_begin(ops, n->o->event, n->kernel_names, n->c, e);
	uint32_t count = e->len / sizeof(*ids) - first, out[WALK_MAX_FRAMES + 2];

	for (uint32_t i = 0; i < count; i++)
		out[i] = location(n, ids[first + i]);
	if (k->reason)
		out[count++] = reason_location(n, k->reason);
	return builder_stack(n->b, out, count);
}

static int add_times(struct build *n, uint32_t sample)
{
	int r = 0;

	if (!n->times)
		return 0;
	for (uint32_t i = n->first_time[sample]; !r && i < n->first_time[sample + 1]; i++)
		r = builder_time(n->b, n->times[i]);
	return r;
}

/* row: as of followed_sums() */
static int add_sample(struct build *n, const struct sample_key *k, const struct sample_sum *sum,
		      uint32_t row)
{
	const struct collected_process *proc = &n->c->collected[k->process];
	int64_t values[BUILD_MAX_TYPES];
	uint32_t stack = build_stack(n, k), labels = build_labels_of(&n->labels, k, sum->count);

	build_values(n->o, k, sum, n->used ? &n->used[row] : NULL, values);
	return builder_sample_of(n->b, stack, labels, n->no_pid ? 0 : (uint32_t)proc->pid,
				 n->no_tid ? 0 : k->tid, values);
}

/* Adds the samples that carry ids. */
static int add_labeled(struct build *n)
{
	const uint64_t none[2] = {0};
	int r = 0;

	for (uint32_t i = 1; !r && i < n->c->ids.n; i++) {
		const struct ids_key *ids = n->c->ids.entries[i].key;
		const struct sample_key *k = n->c->samples.entries[ids->sample].key;

		if (!build_has(n->o, n->c, k))
			continue;
		build_texts_begin(&n->labels.texts, n->o, n->c, ids, n->b);
		r = add_sample(n, k, &n->c->of_ids[i], n->c->samples.n + i);
		if (!r)
			r = add_times(n, n->c->samples.n + i);
	}
	builder_ids(n->b, none, 0);
	build_texts_end(&n->labels.texts, n->b);
	return r;
}

static int add_samples(struct build *n)
{
	int r = 0;

	for (uint32_t i = 1; !r && i < n->c->samples.n; i++) {
		const struct sample_key *k = n->c->samples.entries[i].key;
		const struct sample_sum *sum = n->rest ? &n->rest[i] : &n->c->sums[i];

		if (!build_has(n->o, n->c, k) ||
		    (!sum->count && !sum->weight && (!n->used || !n->used[i].weight)))
			continue;
		r = add_sample(n, k, sum, i);
		if (!r)
			r = add_times(n, i);
	}
	return r ? r : add_labeled(n);
}

/* ---- the program ---- */

/* Adds the first mapping, which readers take for the program: the program with the most CPU time,
 * even if no frame is in it. */
static void add_program(struct build *n)
{
	const struct files *files = n->p->files;
	uint64_t *weights = build_weigh_programs(n->c, n->o, files->n), most = 0;
	const struct file *program = NULL;

	for (uint32_t i = 1; weights && i < files->n; i++) {
		const struct file *f = files->all[i];

		if (!f || !f->executable || weights[i] <= most)
			continue;
		most = weights[i];
		program = f;
	}
	if (program)
		file_mapping(n, program);
	free(weights);
}

/* ---- the profile ---- */

static void describe(struct build *n)
{
	struct fusee_profile *p = builder_profile(n->b);
	const char *unit, *type = build_types(n->b, n->o, n->labels.choosers, &unit);

	n->native = builder_cstr(n->b, "native");
	n->kernel = builder_cstr(n->b, "kernel");
	n->go = builder_cstr(n->b, "go");
	p->default_type = n->o->in_use ? 3 : 1;
	p->kind = builder_cstr(n->b, type);
	p->period_type = builder_cstr(n->b, type);
	p->period_unit = builder_cstr(n->b, unit);
	p->period = (int64_t)n->o->period_ns;
	p->start_ns = n->c->start_wall_ns;
}

static void fini(struct build *n)
{
	free(n->locations);
	free(n->mappings);
	free(n->flags);
	free(n->known);
	free(n->used);
	free(n->times);
	free(n->rest);
	free(n->first_time);
	build_labels_fini(&n->labels);
	buf_fini(&n->text);
	buf_fini(&n->lines);
}

int build_profile(struct builder *b, const struct profiler *profiler, const struct collector *c,
		  const struct build_options *o)
{
	const struct pipeline *p = profiler->pipeline;
	struct build n = {.b = b,
			  .c = c,
			  .p = p,
			  .symbolizer = profiler->symbolizer,
			  .o = o,
			  .labels = {.b = b, .o = o, .c = c, .choosers = &profiler->choosers}};
	int r = build_labels_init(&n.labels);

	n.no_pid = build_omits(o, fusee_text("pid"));
	n.no_tid = build_omits(o, fusee_text("tid"));
	n.kernel_names = symbolizer_kernel_names(n.symbolizer);
	n.kernel_named = kernel_names_begin(n.kernel_names, c->start_ns);
	claims_refresh(p->claims);
	n.locations = calloc(c->frames.n, sizeof(*n.locations));
	n.mappings = calloc(p->files->n, sizeof(*n.mappings));
	n.flags = calloc(p->files->n, sizeof(*n.flags));
	n.known = calloc(KNOWN, sizeof(*n.known));
	n.used = o->in_use ? followed_sums(&c->followed, c->samples.n, c->ids.n) : NULL;
	if (!n.locations || !n.mappings || !n.flags || !n.known || (!n.used && o->in_use))
		r = -ENOMEM;
	if (!r) {
		describe(&n);
		build_resource(b, o);
		add_program(&n);
		r = build_sort_times(c, &n.times, &n.first_time);
		if (!r)
			r = collector_without_ids(c, &n.rest);
		if (!r)
			r = add_samples(&n);
		flag_mappings(&n);
	}
	fini(&n);
	return r;
}
