/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/internal/allocator_search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "files/file_open.h"
#include "pipeline/state.h"
#include "../../bpf/probe_maps.h"

#define AT_ONCE 4u
#define RETRY_NS 1000000000ull /* until a file is opened again; then twice as long, and so on */
#define RETRY_MAX_NS (RETRY_NS * 32)
#define USUAL_NS                                                                            \
	1000000000ull     /* a file that was requested for less long ago is not unknown yet \
			   */
#define UNOPENED (-ENXIO) /* none of the opener's */
#define NAMED 3u          /* unknown files with names */

enum search_state { SEARCH_WAITS, SEARCH_RUNS, SEARCH_ENDED };

/* By id of a file. */
struct searched {
	uint64_t added_ns; /* of the file: its id may be another's later; 0: none was requested for
			    */
	enum search_state state;
	int err;           /* why it is not known, the last time; 0: it has a turn to come */
	uint64_t first_ns; /* first; CLOCK_MONOTONIC */
	uint64_t retry_ns; /* not before */
	uint64_t pause_ns; /* of that */
	char *path;        /* until it is known; NULL: no memory */
	struct probe_points points;
};

struct running {
	struct probe_search *search; /* NULL: none */
	struct file *file;           /* held */
};

struct unknown {
	char *path;
	int err;
};

struct allocator_search {
	const struct probe_function *functions;
	uint32_t nfunctions;
	struct searched *files;
	size_t n, cap;
	struct running running[AT_ONCE];
	uint32_t found;
	struct unknown unknown[NAMED]; /* the first of these, whose ids may be others' now */
	uint32_t nunknown;
};

int allocator_search_new(struct allocator_search **ret, const struct probe_function *f, uint32_t n)
{
	struct allocator_search *s = *ret = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->functions = f;
	s->nfunctions = n;
	return 0;
}

static void forget(struct searched *f)
{
	probe_points_fini(&f->points);
	free(f->path);
	*f = (struct searched){0};
}

void allocator_search_free(struct allocator_search *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < AT_ONCE; i++) {
		if (s->running[i].search)
			files_release(s->running[i].file);
		probe_search_free(s->running[i].search);
	}
	for (size_t i = 0; i < s->n; i++)
		forget(&s->files[i]);
	for (uint32_t i = 0; i < NAMED; i++)
		free(s->unknown[i].path);
	free(s->files);
	free(s);
}

/* ---- files of which it is not known ---- */

/* Of a file that is known, or is not requested for any more. */
static void note_unknown(struct allocator_search *s, struct searched *f)
{
	if (s->nunknown < NAMED) {
		s->unknown[s->nunknown] = (struct unknown){f->path, f->err};
		f->path = NULL;
	}
	s->nunknown++;
}

static bool is_unknown(const struct searched *f)
{
	return f->added_ns && f->state != SEARCH_ENDED &&
	       (f->err || clock_now() - f->first_ns > USUAL_NS);
}

static const char *explain(int err)
{
	switch (err) {
	case 0:
		return "there was no time for it";
	case UNOPENED:
		return "it could not be opened";
	case -ETIMEDOUT:
		return "it did not answer";
	case -EFAULT:
		return "its symbol tables are damaged";
	case -E2BIG:
		return "it has too many functions of these names";
	case -ENOMEM:
		return strerror(ENOMEM);
	default:
		return file_open_explain(err);
	}
}

uint32_t allocator_search_unknown(const struct allocator_search *s,
				  void (*each)(void *arg, const char *path, const char *why),
				  void *arg)
{
	uint32_t n = s->nunknown;

	for (uint32_t i = 0; i < n && i < NAMED; i++)
		each(arg, s->unknown[i].path ? s->unknown[i].path : "?",
		     explain(s->unknown[i].err));
	for (size_t i = 0; i < s->n; i++) {
		const struct searched *f = &s->files[i];

		if (!is_unknown(f))
			continue;
		if (n++ < NAMED)
			each(arg, f->path ? f->path : "?", explain(f->err));
	}
	return n;
}

/* ---- searches ---- */

static bool has_malloc(const struct probe_points *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->at[i].program == PROBE_ALLOC && ALLOC_KIND(p->at[i].kind) == ALLOC_MALLOC)
			return true;
	return false;
}

/* r: of its search. */
static void end(struct allocator_search *s, struct searched *f, int r)
{
	f->state = SEARCH_ENDED;
	f->err = r == -ENOENT || r == -ENOEXEC ? 0 : r;
	if (f->err) {
		log_debug("%s was not searched for an allocator: %s", f->path ? f->path : "?",
			  explain(f->err));
		note_unknown(s, f);
	}
	if (r || !has_malloc(&f->points)) {
		probe_points_fini(&f->points);
	} else {
		s->found++;
		log_debug("%s has an allocator: %zu functions", f->path ? f->path : "?",
			  f->points.n);
	}
	free(f->path);
	f->path = NULL;
}

bool allocator_search_poll(struct allocator_search *s)
{
	bool some = false;

	for (uint32_t i = 0; i < AT_ONCE; i++) {
		struct running *run = &s->running[i];
		struct searched *f = run->search ? &s->files[run->file->id] : NULL;
		int r = run->search ? probe_search_poll(run->search, &f->points, NULL)
				    : -EINPROGRESS;

		if (r == -EINPROGRESS && f && probe_search_is_stuck(run->search))
			f->err = -ETIMEDOUT; /* the recording may end before its child has */
		if (r == -EINPROGRESS)
			continue;
		end(s, f, r);
		files_release(run->file);
		probe_search_free(run->search);
		*run = (struct running){0};
		some = true;
	}
	return some;
}

uint32_t allocator_search_running(const struct allocator_search *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < AT_ONCE; i++)
		n += s->running[i].search != NULL;
	return n;
}

uint32_t allocator_search_found(const struct allocator_search *s)
{
	return s->found;
}

static void retry_later(struct searched *f, int err)
{
	f->err = err;
	f->pause_ns = f->pause_ns ? f->pause_ns * 2 : RETRY_NS;
	f->pause_ns = f->pause_ns < RETRY_MAX_NS ? f->pause_ns : RETRY_MAX_NS;
	f->retry_ns = clock_now() + f->pause_ns;
}

static void begin(struct allocator_search *s, struct searched *f, struct file *file)
{
	struct running *run = s->running;
	int fd, r;

	while (run < s->running + AT_ONCE && run->search)
		run++;
	if (run == s->running + AT_ONCE)
		return;
	fd = files_hold(file);
	r = fd < 0 ? fd : probe_search_start(&run->search, fd, s->functions, s->nfunctions);
	if (fd >= 0 && r)
		files_release(file);
	if (r) {
		retry_later(f, r);
		return;
	}
	f->err = 0;
	f->state = SEARCH_RUNS;
	run->file = file;
}

/* Of this file, or new. NULL: no memory. */
static struct searched *searched_of(struct allocator_search *s, const struct file *file)
{
	struct searched *f;

	while (s->n <= file->id) {
		if (!ARRAY_ROOM(s->files, s->n, s->cap))
			return NULL;
		s->files[s->n++] = (struct searched){0};
	}
	f = &s->files[file->id];
	if (f->added_ns == file->added_ns)
		return f;
	if (is_unknown(f))
		note_unknown(s, f);
	forget(f);
	f->added_ns = file->added_ns;
	f->first_ns = clock_now();
	f->path = strdup(file->path ? file->path : "");
	return f;
}

/* Is it code of the kernel's, or no program and no library? */
static bool has_no_functions(const struct file *file)
{
	return file->state == FILE_MEMORY || !file->path || *file->path == '[';
}

int allocator_search_file(struct allocator_search *s, struct file *file,
			  const struct probe_points **points)
{
	static const struct probe_points none;
	struct searched *f;

	*points = &none;
	if (has_no_functions(file))
		return 0;
	f = searched_of(s, file);
	if (!f)
		return -ENOMEM;
	*points = &f->points;
	if (f->state == SEARCH_ENDED)
		return f->err;
	if (!file->source.readable)
		f->err = UNOPENED; /* it may be opened yet, where another process maps it */
	else if (f->state == SEARCH_WAITS && clock_now() >= f->retry_ns)
		begin(s, f, file);
	return -EINPROGRESS;
}
