/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/symbolizer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "symbolizer/internal/debug_files.h"
#include "symbolizer/internal/file_table.h"
#include "symbolizer/server_names.h"

#define SPAN_BYTES (4u << 20) /* memory for spans of all files */

struct symbolizer {
	struct files *files;
	struct worker *worker;
	bool inlines;
	bool makes_tables;         /* of names; see file_table.h */
	struct file_symbols **all; /* by file id; NULL: none yet */
	uint32_t n;
	uint64_t requests;       /* calls of symbolizer_request() */
	struct request *waiting; /* their done() was not called yet; newest first */
	uint64_t bytes, span_bytes;
	struct kernel_names *kernel;
};

/* One call of symbolizer_request(). */
struct request {
	struct request *next; /* in symbolizer.waiting */
	struct symbolizer *symbolizer;
	uint64_t number, deadline_ns; /* number: as in file_symbols.used; UINT64_MAX: no deadline */
	struct debug_patience patience;
	void (*done)(void *arg); /* NULL: it was called */
	void *arg;
	uint32_t waiting; /* file requests without an answer; 1 more while they are sent */
};

/* The part of a request that is about one file: a request to the worker for symbols, and then
 * perhaps a request for the file's table of names. */
struct file_request {
	struct request *request; /* NULL: its table is being made */
	struct file *file;
	uint64_t *offsets, *addresses;
	uint32_t n;
	int fd; /* files_hold(); -1: none */
	struct debug_files debug;
};

int symbolizer_new(struct symbolizer **ret, struct files *files, struct worker *worker,
		   bool inlines)
{
	struct symbolizer *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->files = files;
	s->worker = worker;
	s->inlines = inlines;
	if (kernel_names_new(&s->kernel, NULL)) {
		free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void symbolizer_make_tables(struct symbolizer *s)
{
	s->makes_tables = true;
}

void symbolizer_drop_file(struct symbolizer *s, uint32_t file)
{
	struct file_symbols *f = file < s->n ? s->all[file] : NULL;

	if (!f)
		return;
	s->bytes -= file_symbols_bytes(f);
	s->span_bytes -= f->span_bytes;
	file_symbols_free(f);
	s->all[file] = NULL;
}

void symbolizer_free(struct symbolizer *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n; i++)
		symbolizer_drop_file(s, i);
	kernel_names_free(s->kernel);
	free(s->all);
	free(s);
}

static struct file_symbols *file_symbols_get(struct symbolizer *s, uint32_t file)
{
	if (file >= s->n) {
		uint32_t want = s->files->n > file ? s->files->n : file + 1;
		struct file_symbols **all = realloc(s->all, want * sizeof(struct file_symbols *));

		if (!all)
			return NULL;
		memset(all + s->n, 0, (want - s->n) * sizeof(struct file_symbols *));
		s->all = all;
		s->n = want;
	}
	if (!s->all[file])
		s->all[file] = file_symbols_new();
	return s->all[file];
}

const struct symbolized_address *symbolizer_find(const struct symbolizer *s, uint32_t file,
						 uint64_t offset)
{
	return file < s->n && s->all[file] ? file_symbols_find(s->all[file], offset) : NULL;
}

uint32_t symbolizer_symbol_source(const struct symbolizer *s, uint32_t file)
{
	return file < s->n && s->all[file] ? s->all[file]->symbol_source : 0;
}

uint64_t symbolizer_bytes(const struct symbolizer *s)
{
	return s->bytes;
}

uint32_t symbolizer_missing_alt(const struct symbolizer *s, uint32_t file, const uint8_t **id)
{
	const struct file_symbols *f = file < s->n ? s->all[file] : NULL;

	if (!f || !f->alt_missing || (f->late[ALT_FILE] && f->tries < FILE_SYMBOLS_MOST_TRIES))
		return 0;
	*id = f->alt_id;
	return f->alt_id_len;
}

bool symbolizer_awaits_debug(const struct symbolizer *s, uint32_t file)
{
	const struct file_symbols *f = file < s->n ? s->all[file] : NULL;

	return f && f->late[DEBUG_FILE] && f->tries < FILE_SYMBOLS_MOST_TRIES;
}

void symbolizer_debug_arrived(struct symbolizer *s, const uint8_t *id, uint32_t len)
{
	for (uint32_t i = 1; i < s->n && i < s->files->n; i++) {
		const struct file *file = s->files->all[i];
		const struct inspection *k = file ? file->inspection : NULL;
		struct file_symbols *f = s->all[i];

		if (f && k && k->build_id_len == len && !memcmp(k->build_id, id, len))
			f->stale = true;
		if (f && f->alt_missing && f->alt_id_len == len && !memcmp(f->alt_id, id, len))
			f->stale = true;
	}
}

void symbolizer_trim(struct symbolizer *s, uint64_t bytes)
{
	uint64_t needed = s->requests + 1; /* number of the oldest request that waits */

	for (const struct request *r = s->waiting; r; r = r->next)
		needed = r->number;
	while (s->bytes > bytes) {
		uint32_t oldest = 0;

		for (uint32_t i = 1; i < s->n; i++)
			if (s->all[i] && s->all[i]->used < needed &&
			    (!oldest || s->all[i]->used < s->all[oldest]->used))
				oldest = i;
		if (!oldest)
			break;
		symbolizer_drop_file(s, oldest);
	}
}

struct kernel_names *symbolizer_kernel_names(struct symbolizer *s)
{
	return s->kernel;
}

/* ---- answers ---- */

/* Calls done(), once. */
static void request_done(struct request *request)
{
	struct request **at = &request->symbolizer->waiting;
	void (*done)(void *arg) = request->done;

	if (!done)
		return;
	while (*at != request)
		at = &(*at)->next;
	*at = request->next;
	request->done = NULL;
	done(request->arg);
}

static void request_put(struct request *request)
{
	fusee_assert(request->waiting);
	if (--request->waiting)
		return;
	request_done(request);
	free(request);
}

uint32_t symbolizer_expire(struct symbolizer *s, uint64_t now)
{
	struct request *r = s->waiting, *next;
	uint32_t files = 0;

	for (; r; r = next) {
		next = r->next;
		if (now < r->deadline_ns)
			continue;
		files += r->waiting;
		request_done(r);
	}
	return files;
}

static void file_request_free(struct file_request *q)
{
	debug_files_close(&q->debug);
	if (q->fd >= 0)
		files_release(q->file);
	free(q->offsets);
	free(q->addresses);
	free(q);
}

static int request_symbols(struct file_request *q);
/* Requests the file's table of names. true: q is kept until the table is made. */
static bool request_table(struct file_request *q);

static void open_alt(struct file_request *q, struct file_symbols *f)
{
	debug_files_open_alt(&q->debug, q->file, f->alt_name, f->alt_id, f->alt_id_len);
	f->alt_missing = q->debug.alt_fd < 0;
}

/* The worker's answer names a dwz file that it was not given: requests the symbols again with that
 * file. false: no such file was found, the answer is final. */
static bool retry_with_alt(struct file_request *q, struct file_symbols *f,
			   const struct worker_symbols *answer)
{
	if (!answer->alt_name || f->alt_name || q->debug.alt_fd >= 0 ||
	    answer->alt_build_id_len > sizeof(f->alt_id))
		return false;
	f->alt_name = strdup(answer->alt_name);
	if (!f->alt_name)
		return false;
	memcpy(f->alt_id, answer->alt_build_id, answer->alt_build_id_len);
	f->alt_id_len = answer->alt_build_id_len;
	open_alt(q, f);
	return q->debug.alt_fd >= 0 && !request_symbols(q);
}

/* After a failure with a file of a server, requests the symbols without that file. */
static bool retry_without_fetched(struct file_request *q, struct file_symbols *f, int err)
{
	return debug_files_drop_fetched(&q->debug, err, f ? &f->no_fetched : NULL) &&
	       !request_symbols(q);
}

/* answer NULL: there is none, and the addresses have no symbols. */
static void keep_answer(const struct file_request *q, struct file_symbols *f,
			const struct worker_symbols *answer)
{
	struct symbolizer *s = q->request->symbolizer;
	uint64_t before = file_symbols_bytes(f), spans = f->span_bytes;

	for (uint32_t i = 0; i < q->n; i++) {
		uint32_t first = answer ? answer->first[i] : 0;

		file_symbols_put(f, q->offsets[i], answer ? answer->frames + first : NULL,
				 answer ? answer->first[i + 1] - first : 0);
	}
	if (answer) {
		f->symbol_source = answer->quality;
		if (s->span_bytes < SPAN_BYTES)
			file_symbols_put_spans(f, answer);
	}
	s->bytes += file_symbols_bytes(f) - before;
	s->span_bytes += f->span_bytes - spans;
	file_symbols_note_late(f, q->debug.late, q->request->patience.until_ns);
}

static void symbolized(void *arg, int err, const char *text, const struct worker_symbols *answer)
{
	struct file_request *q = arg;
	struct symbolizer *s = q->request->symbolizer;
	struct file_symbols *f = file_symbols_get(s, q->file->id);
	struct request *request = q->request;

	if (err)
		log_debug("%s: no symbols: %s", q->file->path, text);
	if ((f && !err && retry_with_alt(q, f, answer)) ||
	    (err && retry_without_fetched(q, f, err)))
		return;
	if (err == -EAGAIN) /* it is requested again by the next request */
		debug_files_count_late("worker");
	else if (f && !file_symbols_try_again(f, err))
		keep_answer(q, f, err ? NULL : answer);
	if (err || !request_table(q))
		file_request_free(q);
	request_put(request);
}

/* ---- requests ---- */

/* What is requested of the worker. */
static struct worker_symbolization symbolization_of(const struct file_request *q)
{
	return (struct worker_symbolization){
		.inspection = q->file->inspection,
		.fd = q->fd,
		.debug_fd = q->debug.debug_fd,
		.alt_fd = q->debug.alt_fd,
		.debug_fetched = q->debug.id_len[DEBUG_FILE],
		.alt_fetched = q->debug.id_len[ALT_FILE],
		.name = q->file->path,
		.inlines = q->request->symbolizer->inlines,
		.addresses = q->addresses,
		.n = q->n,
	};
}

static struct worker_requester requester_of(const struct file *file)
{
	return (struct worker_requester){
		.uid = file->uid, .pid = file->pid, .copy_of = file->source.copy_of};
}

static int request_symbols(struct file_request *q)
{
	const struct worker_symbolization what = symbolization_of(q);
	const struct worker_requester by = requester_of(q->file);

	return worker_symbolize(q->request->symbolizer->worker, &what, &by, symbolized, q);
}

static void table_made(void *arg, int err)
{
	(void)err;
	file_request_free(arg); /* the next request that names the file finds the table */
}

static bool request_table(struct file_request *q)
{
	const struct worker_symbolization what = symbolization_of(q);
	const struct worker_requester by = requester_of(q->file);
	const struct symbolizer *s = q->request->symbolizer;

	if (!s->makes_tables || q->debug.late[DEBUG_FILE] || q->debug.late[ALT_FILE] ||
	    worker_names_make(s->worker, &what, &by, table_made, q))
		return false;
	q->debug.patience = NULL; /* it is a part of the request, which may end before q */
	q->request = NULL;
	return true;
}

/* Symbolizes addresses by the table of names. true: no address remains to be requested. */
static bool symbolize_by_table(struct file_request *q, struct file_symbols *f)
{
	struct symbolizer *s = q->request->symbolizer;
	uint64_t before = file_symbols_bytes(f);

	q->n = file_table_look_up(f, s->worker, q->offsets, q->addresses, q->n);
	s->bytes += file_symbols_bytes(f) - before;
	return !q->n;
}

/* The same, after the debug files are open: they are a part of the table's key, so with a late
 * debug file the table cannot be found. */
static bool find_table(struct file_request *q, struct file_symbols *f)
{
	const struct worker_symbolization what = symbolization_of(q);
	const struct worker_requester by = requester_of(q->file);

	if (q->debug.late[DEBUG_FILE] || q->debug.late[ALT_FILE])
		return false;
	file_table_find(f, q->request->symbolizer->worker, &what, &by);
	return symbolize_by_table(q, f);
}

/* Frees the request on failure. */
static int send(struct file_request *q)
{
	struct file_symbols *f = file_symbols_get(q->request->symbolizer, q->file->id);
	int r;

	q->fd = debug_files_hold(&q->debug, q->file);
	if (q->fd < 0) {
		r = q->fd;
		file_request_free(q);
		return r;
	}
	q->debug.no_fetched = f && f->no_fetched;
	debug_files_open(&q->debug, q->file);
	if (f && f->alt_name)
		open_alt(q, f);
	if (f && find_table(q, f)) {
		file_request_free(q);
		return 0;
	}
	q->request->waiting++;
	r = request_symbols(q);
	if (r) {
		q->request->waiting--;
		file_request_free(q);
	}
	return r;
}

/* Symbolizes an offset from a known span. false: none covers it. */
static bool symbolize_by_span(struct symbolizer *s, struct file_symbols *f, const struct file *file,
			      uint64_t offset)
{
	uint64_t address, before = file_symbols_bytes(f);
	bool found = inspection_vaddr(file->inspection, offset, &address) &&
		     file_symbols_put_by_span(f, offset, address);

	s->bytes += file_symbols_bytes(f) - before;
	return found;
}

/* A frame that is requested. */
struct requested_frame {
	uint64_t addr;
	uint32_t file;
};

/* By file, then by offset. */
static int by_offset(const void *a, const void *b)
{
	const struct requested_frame *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Requests the symbols of n frames of one file. */
static int request_file(struct request *request, struct file *file,
			const struct requested_frame *frames, uint32_t n)
{
	struct file_symbols *f = file_symbols_get(request->symbolizer, file->id);
	struct file_request *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	*q = (struct file_request){.request = request, .file = file, .fd = -1};
	debug_files_init(&q->debug, request->symbolizer->worker, &request->patience);
	q->offsets = calloc(n, sizeof(*q->offsets));
	q->addresses = calloc(n, sizeof(*q->addresses));
	for (uint32_t i = 0; q->offsets && q->addresses && i < n; i++) {
		if (q->n && q->offsets[q->n - 1] == frames[i].addr)
			continue; /* the same offset once guessed and once not */
		if (!inspection_vaddr(file->inspection, frames[i].addr, &q->addresses[q->n]))
			continue;
		q->offsets[q->n++] = frames[i].addr;
	}
	if (q->n && f && f->has_table && symbolize_by_table(q, f)) {
		file_request_free(q);
		return 0;
	}
	if (!q->n) {
		int r = q->offsets && q->addresses ? 0 : -ENOMEM;

		file_request_free(q);
		return r;
	}
	return send(q);
}

/* Tries again to open debug files that were not opened in time. If one can be opened, the symbols
 * become stale: they are dropped, and requested anew, once no request waits. */
static void try_late(struct symbolizer *s, const struct file *file, struct file_symbols *f)
{
	struct debug_patience none = debug_patience_of(false);
	struct debug_files d;

	debug_files_init(&d, s->worker, &none);
	d.no_fetched = f->no_fetched;
	if (f->late[DEBUG_FILE])
		debug_files_open(&d, file);
	if (f->late[ALT_FILE])
		debug_files_open_alt(&d, file, f->alt_name, f->alt_id, f->alt_id_len);
	f->stale |= d.debug_fd >= 0 || d.alt_fd >= 0;
	memcpy(f->late, d.late, sizeof(f->late));
	file_symbols_count_try(f);
	debug_files_close(&d);
}

/* The symbols of a file that this request names. NULL: no memory. */
static struct file_symbols *use(struct symbolizer *s, const struct file *file)
{
	struct file_symbols *f = file_symbols_get(s, file->id);

	if (f && f->used != s->requests && (f->late[DEBUG_FILE] || f->late[ALT_FILE]))
		try_late(s, file, f);
	if (f && f->stale && f->used != s->requests && !s->waiting) {
		symbolizer_drop_file(s, file->id);
		f = file_symbols_get(s, file->id);
	}
	if (f)
		f->used = s->requests;
	return f;
}

/* Whether the worker is to symbolize the file. server_names: the profile is for a server that
 * symbolizes the files that it can have. */
static bool is_local(const struct file *f, bool server_names)
{
	return f->state == FILE_READY && f->source.readable &&
	       !(server_names && server_names_file(f));
}

/* The frames of the collector that are to be requested from the worker, sorted; *count of them.
 * NULL: no memory. */
static struct requested_frame *frames_to_request(struct symbolizer *s, const struct collector *c,
						 bool server_names, uint32_t *count)
{
	struct requested_frame *list = calloc(c->frames.n, sizeof(*list));

	*count = 0;
	for (uint32_t i = 1; list && i < c->frames.n; i++) {
		const struct walk_frame f = frame_set_at(&c->frames, i);
		const struct file *file = f.file ? s->files->all[f.file] : NULL;
		struct file_symbols *known;

		if (!file || !is_local(file, server_names))
			continue;
		known = use(s, file);
		if (!symbolizer_find(s, f.file, f.addr) &&
		    !(known && symbolize_by_span(s, known, file, f.addr)))
			list[(*count)++] = (struct requested_frame){f.addr, f.file};
	}
	if (list)
		qsort(list, *count, sizeof(*list), by_offset);
	return list;
}

/* Only while no request waits: a window whose done() was called may not be built yet, because it is
 * built after older windows, and it needs its symbols. */
static void drop_stale(struct symbolizer *s)
{
	for (uint32_t i = 0; !s->waiting && i < s->n; i++)
		if (s->all[i] && s->all[i]->stale)
			symbolizer_drop_file(s, i);
}

int symbolizer_request(struct symbolizer *s, const struct collector *c, bool server_names,
		       uint64_t deadline_ns, void (*done)(void *arg), void *arg)
{
	struct request *request = calloc(1, sizeof(*request));
	struct requested_frame *list;
	uint32_t count, i, end;
	int r;

	s->requests++;
	drop_stale(s);
	list = request ? frames_to_request(s, c, server_names, &count) : NULL;
	if (!list) {
		free(request);
		return -ENOMEM;
	}
	*request = (struct request){.next = s->waiting,
				    .symbolizer = s,
				    .number = s->requests,
				    .deadline_ns = deadline_ns ? deadline_ns : UINT64_MAX,
				    .patience = debug_patience_of(!deadline_ns),
				    .done = done,
				    .arg = arg,
				    .waiting = 1};
	s->waiting = request;
	for (i = 0; i < count; i = end) {
		for (end = i; end < count && list[end].file == list[i].file; end++)
			;
		r = request_file(request, s->files->all[list[i].file], list + i, end - i);
		if (r == -EBUSY)
			debug_files_count_late("worker");
		if (r) /* its frames have no symbols until the next request */
			log_debug("%s: symbols not requested: %s",
				  s->files->all[list[i].file]->path, strerror(-r));
	}
	free(list);
	request_put(request);
	return 0;
}
