/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a profile: names for all frames, then stacks and samples into the builder. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "sampling/pipeline.h"
#include "sampling/pipeline_state.h"
#include "symbols/debugfile.h"
#include "symbols/kallsyms.h"
#include "symbols/symbols.h"

/* One file's frames on their way to the worker and back. */
struct asked {
	struct naming *n;
	struct file *file;
	uint32_t *frames;    /* ids, by address */
	uint64_t *addresses; /* their ELF virtual addresses */
	uint32_t count;
	uint32_t mapping;
	uint32_t quality;
	int debug_fd, alt_fd;
};

struct naming {
	struct pipeline *p;
	struct builder *b;
	struct kallsyms *kallsyms; /* NULL: hidden */
	uint32_t *locations;       /* by id of frame */
	uint64_t *self;            /* own CPU time by id of file */
	struct asked *asked;       /* by id of file */
	uint32_t frame_types[3];   /* strings: native, kernel, go */
};

static const struct walk_frame *frame_at(const struct pipeline *p, uint32_t id)
{
	return p->frames.entries[id].key;
}

static void hex(const uint8_t *p, uint32_t n, char out[129])
{
	for (uint32_t i = 0; i < n && i < 64; i++)
		snprintf(out + 2 * i, 3, "%02x", p[i]);
	out[2 * (n < 64 ? n : 64)] = '\0';
}

/* ---- the kernel ---- */

static uint32_t kernel_mapping(struct naming *n, const char *module)
{
	char path[128] = "[kernel.kallsyms]";
	struct fusee_mapping m = {.flags = FUSEE_MAPPING_KERNEL, .limit = UINT64_MAX};

	if (*module)
		snprintf(path, sizeof(path), "[%s]", module);
	if (n->kallsyms)
		m.flags |= FUSEE_MAPPING_FUNCTIONS;
	m.path = builder_cstr(n->b, path);
	return builder_mapping(n->b, &m);
}

static uint32_t name_kernel(struct naming *n, const struct walk_frame *f)
{
	const char *module = "", *name = NULL;
	struct fusee_function fn = {0};
	struct fusee_line line = {0};
	struct fusee_location loc = {.address = f->addr, .frame_type = n->frame_types[1]};
	uint64_t start;

	if (n->kallsyms)
		name = kallsyms_lookup(n->kallsyms, f->addr, &start, &module);
	fn.name = fn.system_name = builder_cstr(n->b, name ? name : "[kernel]");
	line.function = builder_function(n->b, &fn);
	loc.mapping = kernel_mapping(n, module);
	return builder_location(n->b, &loc, &line, 1);
}

/* ---- memory without a file, files without names ---- */

static uint32_t name_plain(struct naming *n, const char *name, struct fusee_location *loc)
{
	struct fusee_function fn = {0};
	struct fusee_line line = {0};

	fn.name = fn.system_name = builder_cstr(n->b, name);
	line.function = builder_function(n->b, &fn);
	return builder_location(n->b, loc, &line, 1);
}

static uint32_t name_anonymous(struct naming *n, const struct walk_frame *f)
{
	struct fusee_mapping m = {.path = builder_cstr(n->b, "//anon"),
				  .flags = FUSEE_MAPPING_JIT | FUSEE_MAPPING_FUNCTIONS,
				  .limit = UINT64_MAX};
	struct fusee_location loc = {.mapping = builder_mapping(n->b, &m),
				     .frame_type = n->frame_types[0],
				     .address = f->addr,
				     .flags = FUSEE_LOCATION_STUB};

	if (f->flags & WALK_GUESSED)
		loc.flags |= FUSEE_LOCATION_GUESSED;
	return name_plain(n, "[code made at run time]", &loc);
}

/* ---- files ---- */

static uint32_t file_mapping(struct naming *n, struct file *f)
{
	const struct inspection *i = f->inspection;
	struct fusee_mapping m = {.limit = UINT64_MAX, .path = builder_cstr(n->b, f->path)};
	char id[129] = "";

	if (i) {
		hex(i->build_id, i->build_id_len, id);
		m.flags |= f->executable ? FUSEE_MAPPING_MAIN : FUSEE_MAPPING_LIBRARY;
	}
	if (!strcmp(f->path, "[vdso]"))
		m.flags = 0;
	m.build_id = builder_cstr(n->b, id);
	return builder_mapping(n->b, &m);
}

/* A frame of a file that the worker could not name. */
static uint32_t name_unread(struct naming *n, struct asked *a, const struct walk_frame *f)
{
	struct fusee_location loc = {.mapping = a->mapping,
				     .frame_type = n->frame_types[0],
				     .address = f->addr,
				     .flags = FUSEE_LOCATION_STUB};
	char name[512];

	snprintf(name, sizeof(name), "[%s: not readable]", files_base_name(a->file));
	return name_plain(n, name, &loc);
}

static uint32_t add_function(struct naming *n, const struct asked *a, const struct worker_frame *w)
{
	struct fusee_function fn = {.file = builder_cstr(n->b, w->file),
				    .start_line = w->start_line};
	char stub[512];

	if (w->flags & SYMBOLS_STUB) {
		snprintf(stub, sizeof(stub), "%s%s", files_base_name(a->file), w->name);
		fn.name = fn.system_name = builder_cstr(n->b, stub);
	} else {
		fn.name = builder_cstr(n->b, w->name);
		fn.system_name = builder_cstr(n->b, w->system_name);
	}
	return builder_function(n->b, &fn);
}

static uint32_t add_location(struct naming *n, const struct asked *a, const struct walk_frame *f,
			     uint64_t address, const struct worker_frame *frames, uint32_t count)
{
	struct fusee_location loc = {
		.mapping = a->mapping,
		.address = address,
		.frame_type = n->frame_types[a->quality & INSPECTION_GO ? 2 : 0]};
	struct fusee_line *lines = calloc(count ? count : 1, sizeof(*lines));
	uint32_t id = BUILDER_NONE;

	if (!lines)
		return id;
	for (uint32_t i = 0; i < count; i++) {
		lines[i] = (struct fusee_line){
			.function = add_function(n, a, &frames[i]),
			.line = frames[i].line,
			.column = frames[i].column,
			.flags = frames[i].flags & SYMBOLS_INLINED ? FUSEE_LINE_INLINED : 0,
		};
		if (frames[i].flags & SYMBOLS_STUB)
			loc.flags |= FUSEE_LOCATION_STUB;
	}
	if (f->flags & WALK_GUESSED)
		loc.flags |= FUSEE_LOCATION_GUESSED;
	id = builder_location(n->b, &loc, lines, count);
	free(lines);
	return id;
}

/* What all locations of the mapping have, by what its names came from. */
static void flag_mapping(struct naming *n, struct asked *a, const struct worker_symbols *s)
{
	uint32_t all = FUSEE_MAPPING_FUNCTIONS | FUSEE_MAPPING_FILENAMES | FUSEE_MAPPING_LINES;

	for (uint32_t i = 0; i < s->first[s->n]; i++) {
		if (s->frames[i].flags & SYMBOLS_STUB)
			all = 0;
		if (!*s->frames[i].file)
			all &= ~(uint32_t)FUSEE_MAPPING_FILENAMES;
		if (!s->frames[i].line)
			all &= ~(uint32_t)FUSEE_MAPPING_LINES;
	}
	if (all & FUSEE_MAPPING_LINES && s->quality & (INSPECTION_DWARF | INSPECTION_GO))
		all |= FUSEE_MAPPING_INLINES;
	builder_mapping_flags(n->b, a->mapping, all, 0);
}

static void symbolized(void *arg, int err, const char *text, const struct worker_symbols *s)
{
	struct asked *a = arg;

	if (err) {
		log_debug("%s: no names: %s", a->file->path, text);
		for (uint32_t i = 0; i < a->count; i++)
			a->n->locations[a->frames[i]] = name_unread(
				a->n, a, frame_at(a->n->p, a->frames[i]));
		return;
	}
	a->quality = s->quality;
	for (uint32_t i = 0; i < a->count; i++)
		a->n->locations[a->frames[i]] = add_location(
			a->n, a, frame_at(a->n->p, a->frames[i]), a->addresses[i],
			s->frames + s->first[i], s->first[i + 1] - s->first[i]);
	flag_mapping(a->n, a, s);
}

/* Opens the separate debug file where the file itself has no full symbols. */
static void open_debug(struct asked *a)
{
	const struct inspection *i = a->file->inspection;
	char root[64];

	a->debug_fd = a->alt_fd = -1;
	if (i->flags & (INSPECTION_DWARF | INSPECTION_GO))
		return;
	snprintf(root, sizeof(root), "/proc/%d/root", (int)a->file->pid);
	a->debug_fd = debugfile_open(root, a->file->path, i->build_id, i->build_id_len,
				     i->debuglink);
	if (a->debug_fd < 0)
		a->debug_fd = debugfile_open("", a->file->path, i->build_id, i->build_id_len,
					     i->debuglink);
}

static int ask(struct naming *n, struct asked *a)
{
	const struct file *f = a->file;
	uint32_t kept = 0;

	if (f->state != FILE_READY || f->fd < 0) {
		for (uint32_t i = 0; i < a->count; i++)
			n->locations[a->frames[i]] = name_unread(n, a,
								 frame_at(n->p, a->frames[i]));
		return 0;
	}
	for (uint32_t i = 0; i < a->count; i++) {
		const struct walk_frame *fr = frame_at(n->p, a->frames[i]);

		if (!inspection_vaddr(f->inspection, fr->addr, &a->addresses[kept]))
			n->locations[a->frames[i]] = name_unread(n, a, fr);
		else
			a->frames[kept++] = a->frames[i];
	}
	a->count = kept;
	if (!kept)
		return 0;
	open_debug(a);
	return worker_symbolize(n->p->worker, f->inspection, f->fd, a->debug_fd, a->alt_fd, f->path,
				n->p->o.inlines, a->addresses, a->count, symbolized, a);
}

static int by_address(const void *a, const void *b, void *pipeline)
{
	uint64_t x = frame_at(pipeline, *(const uint32_t *)a)->addr;
	uint64_t y = frame_at(pipeline, *(const uint32_t *)b)->addr;

	return x < y ? -1 : x > y;
}

/* Deals all frames out to their files and asks for their names. */
static int ask_all(struct naming *n)
{
	struct pipeline *p = n->p;
	int r = 0;

	for (uint32_t i = 1; i < p->frames.n; i++)
		n->asked[frame_at(p, i)->file].count++;
	for (uint32_t i = 1; i < p->files->n; i++) {
		struct asked *a = &n->asked[i];

		a->n = n;
		a->file = p->files->all[i];
		a->debug_fd = a->alt_fd = -1;
		a->frames = calloc(a->count + 1, sizeof(*a->frames));
		a->addresses = calloc(a->count + 1, sizeof(*a->addresses));
		if (!a->frames || !a->addresses)
			return -ENOMEM;
		if (a->count)
			a->mapping = file_mapping(n, a->file);
		a->count = 0;
	}
	for (uint32_t i = 1; i < p->frames.n; i++) {
		const struct walk_frame *f = frame_at(p, i);
		struct asked *a = &n->asked[f->file];

		if (f->file)
			a->frames[a->count++] = i;
	}
	for (uint32_t i = 1; !r && i < p->files->n; i++) {
		qsort_r(n->asked[i].frames, n->asked[i].count, sizeof(uint32_t), by_address, p);
		if (n->asked[i].count)
			r = ask(n, &n->asked[i]);
	}
	return r ? r : worker_dispatch(p->worker);
}

/* What needs no worker is named while it works. */
static void name_rest(struct naming *n)
{
	struct pipeline *p = n->p;

	if (kallsyms_load(&n->kallsyms, NULL))
		n->kallsyms = NULL;
	for (uint32_t i = 1; i < p->frames.n; i++) {
		const struct walk_frame *f = frame_at(p, i);

		if (f->flags & WALK_KERNEL)
			n->locations[i] = name_kernel(n, f);
		else if (!f->file)
			n->locations[i] = name_anonymous(n, f);
	}
}

/* ---- samples ---- */

static uint32_t reason_location(struct naming *n, const char *reason)
{
	struct fusee_location loc = {.flags = FUSEE_LOCATION_REASON};
	char name[128];

	snprintf(name, sizeof(name), "[truncated: %s]", reason);
	return name_plain(n, name, &loc);
}

static uint32_t build_stack(struct naming *n, const struct sample_key *k)
{
	const struct dict_entry *e = &n->p->stacks.entries[k->stack];
	const uint32_t *ids = e->key;
	uint32_t count = e->len / sizeof(*ids), out[WALK_MAX_FRAMES + 129];

	for (uint32_t i = 0; i < count; i++)
		out[i] = n->locations[ids[i]];
	if (k->reason)
		out[count++] = reason_location(n, n->p->reasons[k->reason - 1].text);
	return builder_stack(n->b, out, count);
}

static struct fusee_label text_label(const char *key, const char *value)
{
	return (struct fusee_label){.key = {key, strlen(key)}, .str = {value, strlen(value)}};
}

static int add_samples(struct naming *n)
{
	struct pipeline *p = n->p;
	int r = 0;

	for (uint32_t i = 1; !r && i < p->samples.n; i++) {
		const struct sample_key *k = p->samples.entries[i].key;
		const struct process *proc = (const void *)(uintptr_t)k->process;
		const struct dict_entry *comm = &p->comms.entries[k->comm];
		char thread[32];
		struct fusee_label labels[2];
		int64_t values[2] = {(int64_t)p->sums[i].count, (int64_t)p->sums[i].weight};
		const struct dict_entry *stack = &p->stacks.entries[k->stack];

		snprintf(thread, sizeof(thread), "%.*s", (int)comm->len, (const char *)comm->key);
		labels[0] = text_label("process", *proc->name ? proc->name : proc->comm);
		labels[1] = text_label("thread", thread);
		if (stack->len)
			n->self[frame_at(p, *(const uint32_t *)stack->key)->file] +=
				p->sums[i].weight;
		r = builder_sample(n->b, build_stack(n, k), labels, 2, (uint32_t)proc->pid, k->tid,
				   values);
	}
	return r;
}

/* ---- poor names ---- */

static int by_self(const void *a, const void *b)
{
	uint64_t x = ((const struct pipeline_poor *)a)->self_ns;
	uint64_t y = ((const struct pipeline_poor *)b)->self_ns;

	return x > y ? -1 : x < y;
}

static int note_poor(struct naming *n)
{
	struct pipeline *p = n->p;

	p->poor = calloc(p->files->n, sizeof(*p->poor));
	if (!p->poor)
		return -ENOMEM;
	for (uint32_t i = 1; i < p->files->n; i++) {
		const struct inspection *in = p->files->all[i]->inspection;
		char id[129] = "";

		if (!n->self[i] || !in || !strcmp(p->files->all[i]->path, "[vdso]") ||
		    n->asked[i].quality & (INSPECTION_SYMTAB | INSPECTION_DWARF | INSPECTION_GO))
			continue;
		hex(in->build_id, in->build_id_len, id);
		p->poor[p->npoor++] = (struct pipeline_poor){
			.path = p->files->all[i]->path,
			.build_id = strdup(id),
			.quality = n->asked[i].quality,
			.self_ns = n->self[i],
		};
	}
	qsort(p->poor, p->npoor, sizeof(*p->poor), by_self);
	return 0;
}

uint32_t pipeline_poor(struct pipeline *p, struct pipeline_poor *out, uint32_t n)
{
	if (n > p->npoor)
		n = p->npoor;
	for (uint32_t i = 0; i < n; i++)
		out[i] = p->poor[i];
	return n;
}

/* ---- the whole ---- */

static void naming_fini(struct naming *n)
{
	for (uint32_t i = 1; n->asked && i < n->p->files->n; i++) {
		free(n->asked[i].frames);
		free(n->asked[i].addresses);
		if (n->asked[i].n && n->asked[i].debug_fd >= 0)
			close(n->asked[i].debug_fd);
		if (n->asked[i].n && n->asked[i].alt_fd >= 0)
			close(n->asked[i].alt_fd);
	}
	free(n->asked);
	free(n->locations);
	free(n->self);
	kallsyms_free(n->kallsyms);
}

int pipeline_build(struct pipeline *p, struct builder *b)
{
	struct naming n = {.p = p, .b = b};
	int r;

	n.locations = calloc(p->frames.n, sizeof(*n.locations));
	n.self = calloc(p->files->n, sizeof(*n.self));
	n.asked = calloc(p->files->n, sizeof(*n.asked));
	r = n.locations && n.self && n.asked ? 0 : -ENOMEM;
	if (r)
		goto out;
	n.frame_types[0] = builder_cstr(b, "native");
	n.frame_types[1] = builder_cstr(b, "kernel");
	n.frame_types[2] = builder_cstr(b, "go");
	builder_type(b, "samples", "count");
	builder_type(b, "cpu", "nanoseconds");
	builder_profile(b)->default_type = 1;
	builder_profile(b)->kind = builder_cstr(b, "cpu");
	builder_profile(b)->period_type = builder_cstr(b, "cpu");
	builder_profile(b)->period_unit = builder_cstr(b, "nanoseconds");
	builder_profile(b)->period = (int64_t)p->o.period_ns;
	r = ask_all(&n);
	if (!r) {
		name_rest(&n);
		r = worker_wait(p->worker);
	}
	if (!r)
		r = add_samples(&n);
	if (!r)
		r = note_poor(&n);
out:
	naming_fini(&n);
	return r;
}
