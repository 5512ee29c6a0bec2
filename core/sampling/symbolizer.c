/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/symbolizer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dict.h"
#include "base/log.h"
#include "base/hashmap.h"
#include "symbols/debugfile.h"

#define SPAN_BYTES (4u << 20) /* of code that was not asked for, in all */
#define KERNEL_SECONDS 600    /* modules come and go: the kernel's names are read anew after this */

/* Code that has the same frames wherever one is in it: ELF virtual addresses [lo, hi). */
struct span {
	uint64_t lo, hi;
	struct symbolized_address *name;
};

struct file_symbols {
	struct hashmap by_offset; /* file offset + 1 -> struct symbolized_address * */
	struct span *spans;       /* sorted, apart */
	uint32_t nspans;
	struct dict texts;
	uint64_t bytes, span_bytes; /* without texts; those of spans among them */
	uint64_t used;              /* number of the job that last wanted them */
	uint32_t quality;
	char *alt_name; /* the dwz file that its debug information names; NULL: none known */
	uint8_t alt_id[64];
	uint32_t alt_id_len;
};

struct symbolizer {
	struct files *files;
	struct worker *worker;
	bool inlines;
	struct file_symbols **all; /* by id of file; NULL: none yet */
	uint32_t n;
	uint64_t jobs, busy; /* begun; under way */
	uint64_t bytes, span_bytes;
	struct kernel_names *kernel;
};

/* One symbolizer_request(). */
struct job {
	struct symbolizer *names;
	void (*done)(void *arg);
	void *arg;
	uint32_t waiting; /* answers to come, and one while asking */
};

/* One request to the worker. */
struct request {
	struct job *job;
	struct file *file;
	uint64_t *offsets, *addresses;
	uint32_t n;
	int debug_fd, alt_fd;
};

int symbolizer_new(struct symbolizer **ret, struct files *files, struct worker *worker,
		   bool inlines)
{
	struct symbolizer *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->files = files;
	n->worker = worker;
	n->inlines = inlines;
	if (kernel_names_new(&n->kernel, NULL)) {
		free(n);
		return -ENOMEM;
	}
	*ret = n;
	return 0;
}

void symbolizer_drop_file(struct symbolizer *n, uint32_t file)
{
	struct file_symbols *f = file < n->n ? n->all[file] : NULL;

	if (!f)
		return;
	n->bytes -= f->bytes + f->texts.bytes;
	hashmap_fini_free(&f->by_offset);
	for (uint32_t i = 0; i < f->nspans; i++)
		free(f->spans[i].name);
	free(f->spans);
	n->span_bytes -= f->span_bytes;
	dict_fini(&f->texts);
	free(f->alt_name);
	free(f);
	n->all[file] = NULL;
}

void symbolizer_free(struct symbolizer *n)
{
	if (!n)
		return;
	for (uint32_t i = 0; i < n->n; i++)
		symbolizer_drop_file(n, i);
	kernel_names_free(n->kernel);
	free(n->all);
	free(n);
}

static struct file_symbols *file_symbols_get(struct symbolizer *n, uint32_t file)
{
	struct file_symbols *f;

	if (file >= n->n) {
		uint32_t want = n->files->n > file ? n->files->n : file + 1;
		struct file_symbols **all = realloc(n->all, want * sizeof(struct file_symbols *));

		if (!all)
			return NULL;
		memset(all + n->n, 0, (want - n->n) * sizeof(struct file_symbols *));
		n->all = all;
		n->n = want;
	}
	if (n->all[file])
		return n->all[file];
	f = calloc(1, sizeof(*f));
	if (!f || dict_init(&f->texts)) {
		free(f);
		return NULL;
	}
	n->all[file] = f;
	return f;
}

const struct symbolized_address *symbolizer_find(const struct symbolizer *n, uint32_t file,
						 uint64_t offset)
{
	return file < n->n && n->all[file] ? hashmap_get(&n->all[file]->by_offset, offset + 1)
					   : NULL;
}

uint32_t symbolizer_symbol_source(const struct symbolizer *n, uint32_t file)
{
	return file < n->n && n->all[file] ? n->all[file]->quality : 0;
}

bool symbolizer_is_busy(const struct symbolizer *n)
{
	return n->busy;
}

uint64_t symbolizer_bytes(const struct symbolizer *n)
{
	return n->bytes;
}

void symbolizer_trim(struct symbolizer *n, uint64_t bytes)
{
	while (n->bytes > bytes && !n->busy) {
		uint32_t oldest = 0;

		for (uint32_t i = 1; i < n->n; i++)
			if (n->all[i] && (!oldest || n->all[i]->used < n->all[oldest]->used))
				oldest = i;
		if (!oldest)
			break;
		symbolizer_drop_file(n, oldest);
	}
}

struct kernel_names *symbolizer_kernel_names(struct symbolizer *n)
{
	return n->kernel;
}

/* ---- answers ---- */

static size_t size_of(uint32_t nframes)
{
	return sizeof(struct symbolized_address) + nframes * sizeof(struct source_frame);
}

/* A text's copy that lives with its file's names; "" for no memory. */
static const char *keep(struct file_symbols *f, const char *text)
{
	uint32_t id = dict_add(&f->texts, text ? text : "", text ? strlen(text) + 1 : 1);

	return id == DICT_NONE ? "" : f->texts.entries[id].key;
}

static struct symbolized_address *make(struct file_symbols *f, uint64_t address,
				       const struct worker_frame *frames, uint32_t n)
{
	struct symbolized_address *name = malloc(size_of(n));

	if (!name)
		return NULL;
	name->address = address;
	name->n = n;
	for (uint32_t i = 0; i < n; i++)
		name->frames[i] = (struct source_frame){
			.name = keep(f, frames[i].name),
			.system_name = keep(f, frames[i].system_name),
			.file = keep(f, frames[i].file),
			.line = frames[i].line,
			.column = frames[i].column,
			.start_line = frames[i].start_line,
			.flags = frames[i].flags,
		};
	return name;
}

/* Takes the name over; NULL is fine. */
static void put(struct file_symbols *f, uint64_t offset, struct symbolized_address *name)
{
	if (!name)
		return;
	free(hashmap_del(&f->by_offset, offset + 1));
	if (hashmap_put(&f->by_offset, offset + 1, name))
		free(name);
	else
		f->bytes += size_of(name->n) + sizeof(struct hashmap_slot) * 2;
}

/* ---- code around what was asked ---- */

static const struct span *find_span(const struct file_symbols *f, uint64_t address)
{
	uint32_t lo = 0, hi = f->nspans;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (f->spans[mid].lo <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && address < f->spans[lo - 1].hi ? &f->spans[lo - 1] : NULL;
}

/* The new ones, between those that are there; what these cover already is left out. */
static void add_spans(struct symbolizer *n, struct file_symbols *f, const struct worker_symbols *s)
{
	struct span *all = s->nspans && n->span_bytes < SPAN_BYTES
				   ? calloc((size_t)f->nspans + s->nspans, sizeof(*all))
				   : NULL;
	uint32_t at = 0, old = 0;
	uint64_t bytes = 0;

	for (uint32_t i = 0; all && i < s->nspans; i++) {
		const struct worker_span *w = &s->spans[i];
		struct symbolized_address *name;

		while (old < f->nspans && f->spans[old].hi <= w->lo)
			all[at++] = f->spans[old++];
		if (old < f->nspans && f->spans[old].lo < w->hi)
			continue;
		name = make(f, w->lo, s->frames + w->first, w->n);
		if (!name)
			continue;
		all[at++] = (struct span){w->lo, w->hi, name};
		bytes += sizeof(*all) + size_of(w->n);
	}
	if (!all)
		return;
	while (old < f->nspans)
		all[at++] = f->spans[old++];
	free(f->spans);
	f->spans = all;
	f->nspans = at;
	f->bytes += bytes;
	f->span_bytes += bytes;
	n->span_bytes += bytes;
}

/* Names an offset by what is known of the code around it. false: that is nothing. */
static bool name_by_span(struct symbolizer *n, struct file_symbols *f, const struct file *file,
			 uint64_t offset)
{
	const struct span *s;
	struct symbolized_address *name;
	uint64_t address, before = f->bytes;

	if (!f->nspans || !inspection_vaddr(file->inspection, offset, &address))
		return false;
	s = find_span(f, address);
	name = s ? malloc(size_of(s->name->n)) : NULL;
	if (!name)
		return false;
	memcpy(name, s->name, size_of(s->name->n));
	name->address = address;
	put(f, offset, name);
	n->bytes += f->bytes - before;
	return hashmap_get(&f->by_offset, offset + 1);
}

static void job_put(struct job *j)
{
	if (--j->waiting)
		return;
	j->names->busy--;
	j->done(j->arg);
	free(j);
}

static void request_free(struct request *q)
{
	if (q->debug_fd >= 0)
		close(q->debug_fd);
	if (q->alt_fd >= 0)
		close(q->alt_fd);
	free(q->offsets);
	free(q->addresses);
	free(q);
}

static int ask_worker(struct request *q);

/* The dwz file that debug information of this file names, where there is one. The name is the
 * file's own word: below the root of its process it leads anywhere, in ours to dwz files only. */
static void open_alt(struct request *q, const struct file_symbols *f)
{
	const char *base = strrchr(f->alt_name, '/');
	char root[64];

	snprintf(root, sizeof(root), "/proc/%d/root", (int)q->file->pid);
	q->alt_fd = debugfile_open_alt(root, f->alt_name, f->alt_id, f->alt_id_len);
	if (q->alt_fd < 0)
		q->alt_fd = debugfile_open_alt("", base ? base + 1 : f->alt_name, f->alt_id,
					       f->alt_id_len);
}

/* The worker misses a dwz file, which only it knows the name of: asks again if there is one. */
static bool asks_again(struct request *q, struct file_symbols *f, const struct worker_symbols *s)
{
	if (!s->alt_name || f->alt_name || q->alt_fd >= 0 ||
	    s->alt_build_id_len > sizeof(f->alt_id))
		return false;
	f->alt_name = strdup(s->alt_name);
	if (!f->alt_name)
		return false;
	memcpy(f->alt_id, s->alt_build_id, s->alt_build_id_len);
	f->alt_id_len = s->alt_build_id_len;
	open_alt(q, f);
	return q->alt_fd >= 0 && !ask_worker(q);
}

static void symbolized(void *arg, int err, const char *text, const struct worker_symbols *s)
{
	struct request *q = arg;
	struct symbolizer *n = q->job->names;
	struct file_symbols *f = file_symbols_get(n, q->file->id);
	struct job *j = q->job;
	uint64_t before;

	if (err)
		log_debug("%s: no names: %s", q->file->path, text);
	if (f && !err && asks_again(q, f, s))
		return;
	if (f) {
		before = f->bytes + f->texts.bytes;
		for (uint32_t i = 0; i < q->n; i++)
			put(f, q->offsets[i],
			    make(f, q->addresses[i], err ? NULL : s->frames + s->first[i],
				 err ? 0 : s->first[i + 1] - s->first[i]));
		if (!err) {
			f->quality = s->quality;
			add_spans(n, f, s);
		}
		n->bytes += f->bytes + f->texts.bytes - before;
	}
	request_free(q);
	job_put(j);
}

/* ---- questions ---- */

/* Opens the separate debug file where the file itself has no full symbols. */
static void open_debug(struct request *q)
{
	const struct inspection *i = q->file->inspection;
	char root[64];

	if (i->flags & (INSPECTION_DWARF | INSPECTION_GO))
		return;
	snprintf(root, sizeof(root), "/proc/%d/root", (int)q->file->pid);
	q->debug_fd = debugfile_open(root, q->file->path, i->build_id, i->build_id_len,
				     i->debuglink);
	if (q->debug_fd < 0)
		q->debug_fd = debugfile_open("", q->file->path, i->build_id, i->build_id_len,
					     i->debuglink);
}

static int ask_worker(struct request *q)
{
	struct symbolizer *n = q->job->names;

	return worker_symbolize(n->worker, q->file->inspection, q->file->fd, q->debug_fd, q->alt_fd,
				q->file->path, n->inlines, q->addresses, q->n, symbolized, q);
}

/* Takes the request over. */
static int send(struct request *q)
{
	const struct file_symbols *f = file_symbols_get(q->job->names, q->file->id);
	int r;

	open_debug(q);
	if (f && f->alt_name)
		open_alt(q, f);
	q->job->waiting++;
	r = ask_worker(q);
	if (r) {
		q->job->waiting--;
		request_free(q);
	}
	return r;
}

/* Frames by file, then by place. */
static int by_place(const void *a, const void *b)
{
	const struct walk_frame *x = *(const struct walk_frame *const *)a;
	const struct walk_frame *y = *(const struct walk_frame *const *)b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* One file's unknown frames. */
static int ask_file(struct job *j, struct file *file, const struct walk_frame *const *frames,
		    uint32_t n)
{
	struct request *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	*q = (struct request){.job = j, .file = file, .debug_fd = -1, .alt_fd = -1};
	q->offsets = calloc(n, sizeof(*q->offsets));
	q->addresses = calloc(n, sizeof(*q->addresses));
	for (uint32_t i = 0; q->offsets && q->addresses && i < n; i++) {
		if (q->n && q->offsets[q->n - 1] == frames[i]->addr)
			continue; /* guessed and not */
		if (!inspection_vaddr(file->inspection, frames[i]->addr, &q->addresses[q->n]))
			continue;
		q->offsets[q->n++] = frames[i]->addr;
	}
	if (!q->n) {
		int r = q->offsets && q->addresses ? 0 : -ENOMEM;

		request_free(q);
		return r;
	}
	return send(q);
}

/* The collector's frames that are in readable files and have no names yet, sorted; *n of them.
 * NULL: no memory. */
static const struct walk_frame **unknown(struct symbolizer *n, const struct collector *c,
					 uint32_t *count)
{
	const struct walk_frame **list = calloc(c->frames.n, sizeof(*list));

	*count = 0;
	for (uint32_t i = 1; list && i < c->frames.n; i++) {
		const struct walk_frame *f = c->frames.entries[i].key;
		const struct file *file = f->file ? n->files->all[f->file] : NULL;
		struct file_symbols *known;

		if (!file || file->state != FILE_READY || file->fd < 0)
			continue;
		known = file_symbols_get(n, f->file);
		if (known)
			known->used = n->jobs;
		if (!symbolizer_find(n, f->file, f->addr) &&
		    !(known && name_by_span(n, known, file, f->addr)))
			list[(*count)++] = f;
	}
	if (list)
		qsort(list, *count, sizeof(*list), by_place);
	return list;
}

int symbolizer_request(struct symbolizer *n, const struct collector *c, void (*done)(void *arg),
		       void *arg)
{
	struct job *j = calloc(1, sizeof(*j));
	const struct walk_frame **list;
	uint32_t count, i, end;
	int r = 0;

	n->jobs++;
	list = j ? unknown(n, c, &count) : NULL;
	if (!list) {
		free(j);
		return -ENOMEM;
	}
	*j = (struct job){.names = n, .done = done, .arg = arg, .waiting = 1};
	n->busy++;
	for (i = 0; i < count; i = end) {
		for (end = i; end < count && list[end]->file == list[i]->file; end++)
			;
		r = ask_file(j, n->files->all[list[i]->file], list + i, end - i);
		if (r) /* its frames go without names */
			log_debug("%s: not asked for names: %s", n->files->all[list[i]->file]->path,
				  strerror(-r));
	}
	free(list);
	job_put(j);
	return 0;
}
