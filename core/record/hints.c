/* SPDX-License-Identifier: Apache-2.0 */
#include "record/internal/choosers.h"
#include "record/internal/hints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "console/package.h"
#include "record/internal/children.h"
#include "record/internal/runtime.h"
#include "profiler/build_profile.h"

#define LEAST_PART 50 /* a hint is for 1 / LEAST_PART of the samples or the CPU time, and more */
#define MAX_FILES 3
#define USUAL_SAMPLES 200 /* so many show where the time goes */
#define MAX_HZ 20000.0
#define LEAST_WAIT_NS 1e9 /* of a recording that is more than a start */
#define LEAST_BUSY 5      /* a program that uses less than 1 / LEAST_BUSY of a CPU mostly waits */

/* ---- commands ---- */

/* The end of a command line that records the same target again. */
static void put_target(struct buf *b, const struct selection *o)
{
	if (o->all)
		buf_str(b, "-a");
	else if (o->command)
		buf_str(b, "-- ");
	else
		buf_str(b, "-p ");
	if (o->command)
		command_put(o->command, b);
	for (uint32_t i = 0; i < o->npids && !o->all && !o->command; i++)
		buf_printf(b, "%s%d", i ? "," : "", (int)o->pids[i]);
}

/* The options that record the same event again. period: in its units, 0: as before. */
static void put_event(const struct session *s, uint64_t period, struct buf *b)
{
	const struct session_options *o = &s->o;

	if (o->wall)
		buf_str(b, "--wall ");
	if (o->event_words.len)
		buf_add(b, o->event_words.p, o->event_words.len);
	if (period || o->event_period)
		buf_printf(b, "-c %llu ", (unsigned long long)(period ? period : o->event_period));
}

/* ---- few samples ---- */

static bool is_idle(const struct session *s, const struct session_account *a)
{
	return (double)a->counts.count_ns * LEAST_BUSY < (double)(s->end_ns - s->start_ns);
}

/* It slept, or ran for less than a few periods. */
static void put_sleeping(const struct session *s, const struct session_account *a, struct buf *b)
{
	double used_s = (double)a->counts.count_ns / 1e9, hz;

	if (a->losses.due > a->losses.lost || s->o.selection.all || *s->o.event.name)
		return;
	if (used_s <= 0) {
		buf_str(b, "  fusee samples time on a CPU, and the target slept or waited. Longer, "
			   "while it works:\n    fusee record -d 60s ");
	} else {
		hz = USUAL_SAMPLES / used_s;
		hz = hz < 2 * s->o.hz ? 2 * s->o.hz : hz;
		buf_printf(b, "  A higher rate samples it:\n    fusee record -F %.0f ",
			   hz > MAX_HZ ? MAX_HZ : hz);
	}
	put_target(b, &s->o.selection);
	buf_str(b, "\n");
}

/* ---- time off the CPU ---- */

/* A profile of CPU time says nothing of where a program that hardly uses a CPU spends its time. */
static void put_waiting(const struct session *s, const struct session_account *a, struct buf *b)
{
	const struct selection *o = &s->o.selection;
	double used_ns = (double)a->counts.count_ns, took_ns = (double)(s->end_ns - s->start_ns);

	if (s->o.wall || *s->o.event.name || o->all || o->ngroups || took_ns < LEAST_WAIT_NS ||
	    used_ns * LEAST_BUSY > took_ns)
		return;
	buf_printf(b,
		   "  On a CPU for %.*f %% of %.1f s. Where it waits:\n    %sfusee record --wall ",
		   used_ns * 100 < took_ns ? 1 : 0, 100 * used_ns / took_ns, took_ns / 1e9,
		   s->profiler.bpf ? "" : "sudo ");
	put_target(b, o);
	buf_str(b, "\n");
}

/* ---- lost and truncated samples ---- */

enum remedy {
	REMEDY_ROOT,
	REMEDY_RATE,
	REMEDY_AGAIN,
	REMEDY_STACK,
	REMEDY_FRAMES,
	REMEDY_NONE,
};

static const struct {
	const char *text; /* of the reason */
	enum remedy remedy;
} remedies[] = {
	{"ring full", REMEDY_RATE},
	{"throttled", REMEDY_RATE},
	{"too many stacks to copy", REMEDY_RATE},
	{"kernel not allowed", REMEDY_ROOT},
	{"file not readable", REMEDY_ROOT},
	{"stack larger than its copy", REMEDY_STACK},
	{"stack copy ends early", REMEDY_STACK},
	{"unwind table not ready in time", REMEDY_AGAIN},
	{"no unwind information", REMEDY_FRAMES},
	{"no frame pointer", REMEDY_FRAMES},
};

static enum remedy remedy_of(const struct loss_count *c)
{
	for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++)
		if (!strcmp(remedies[i].text, c->text))
			return remedies[i].remedy;
	return REMEDY_NONE;
}

/* -F is a rate of it. */
static bool is_of_cpu(const struct session_options *o)
{
	return o->wall || o->choosers.cpu || (!o->choosers.n && !*o->event.name);
}

static uint64_t ten_times(uint64_t period)
{
	return period < UINT32_MAX / 10 ? period * 10 : UINT32_MAX;
}

static void put_lower_rates(const struct session_choosers *c, struct buf *b)
{
	if (c->cpu)
		buf_str(b, "-e cpu-clock ");
	for (uint32_t i = 0; i < c->n; i++) {
		const char *name = c->at[i].descriptor->name;

		if (session_chooser_ops(c, i)->flags & FUSEE_SAMPLER_TIME)
			buf_printf(b, "-e %s:hz=%g ", name, 0.5e9 / (double)c->at[i].period);
		else
			buf_printf(b, "-e %s:count=%llu ", name,
				   (unsigned long long)c->at[i].period * 10);
	}
}

static void put_remedy(enum remedy remedy, const struct session *s, struct buf *b)
{
	switch (remedy) {
	case REMEDY_ROOT:
		buf_printf(b, "with more rights it is sampled:\n    sudo fusee record ");
		put_event(s, 0, b);
		break;
	case REMEDY_RATE:
		buf_str(b, "fewer samples help:\n    fusee record ");
		if (s->o.choosers.n && !s->o.wall)
			put_lower_rates(&s->o.choosers, b);
		else
			put_event(s, is_of_cpu(&s->o) ? 0 : ten_times(session_period(s)), b);
		if (is_of_cpu(&s->o))
			buf_printf(b, "-F %g ", s->o.hz / 2);
		break;
	case REMEDY_AGAIN:
		buf_printf(b, "the table is kept now, so record again:\n    fusee record ");
		put_event(s, 0, b);
		break;
	case REMEDY_STACK:
		if (s->o.profiler.stack_bytes < SAMPLE_MAX_STACK)
			buf_printf(b, "a larger copy helps:\n    fusee record --stack %u ",
				   SAMPLE_MAX_STACK);
		else
			buf_str(b, "stacks of any size are unwound in the kernel:\n    sudo fusee "
				   "record --sampler bpf ");
		put_event(s, 0, b);
		break;
	case REMEDY_FRAMES:
		buf_str(b, "compile that code with\n    -fno-omit-frame-pointer "
			   "-fasynchronous-unwind-tables\n");
		return;
	case REMEDY_NONE:
		return;
	}
	put_target(b, &s->o.selection);
	buf_str(b, "\n");
}

/* Finds the most frequent reason of the stage, if there are many samples. `named`: another hint has
 * said how code made at run time gets names and frame pointers. */
static void put_reason(const struct session *s, const struct session_account *a,
		       enum loss_stage stage, bool named, struct buf *b)
{
	const struct loss_count *most = NULL;
	enum remedy remedy;

	for (uint32_t i = LOSS_NONE + 1; i < a->losses.n; i++)
		if (a->losses.counts[i].stage == stage &&
		    (!most || a->losses.counts[i].n > most->n))
			most = &a->losses.counts[i];
	if (!most || !most->n || most->n * LEAST_PART < a->losses.due)
		return;
	remedy = remedy_of(most);
	if (remedy == REMEDY_NONE || (remedy == REMEDY_FRAMES && named) ||
	    (remedy == REMEDY_STACK && s->profiler.bpf &&
	     s->o.profiler.stack_bytes == SAMPLE_MAX_STACK) ||
	    (remedy == REMEDY_ROOT && !geteuid()))
		return;
	buf_printf(b, "  %.0f %% of the samples are %s, \"%s\": ",
		   100.0 * (double)most->n / (double)a->losses.due, loss_stage_text(stage),
		   most->text);
	put_remedy(remedy, s, b);
}

/* Language unwinders read a program's frames in the kernel, or of stopped threads. */
static void put_no_language(const struct session *s, const struct session_account *a, struct buf *b)
{
	uint64_t n = a->losses.counts[LOSS_NO_LANGUAGE].n;

	if (n * LEAST_PART < a->losses.due || !n || s->profiler.bpf || s->profiler.stop ||
	    *s->o.event.name)
		return;
	buf_printf(b,
		   "  Copies of stacks have no frames of interpreted programs:\n"
		   "    %s ",
		   s->o.selection.all ? "sudo fusee record --sampler bpf"
				      : "fusee record --sampler stop");
	put_target(b, &s->o.selection);
	buf_str(b, "\n");
}

/* ---- symbols ---- */

/* Appends `commands` with each line indented, without lines that were printed for other files. */
static void put_commands(const char *commands, struct buf *b)
{
	char line[512];

	while (*commands) {
		int len = (int)strcspn(commands, "\n");

		snprintf(line, sizeof(line), "    %.*s\n", len, commands);
		if (!b->len || !memmem(b->p, b->len, line, strlen(line)))
			buf_str(b, line);
		commands += len + (commands[len] == '\n');
	}
}

/* `more`: commands follow. */
static void put_file(const struct poorly_symbolized_file *f, bool more, struct buf *b)
{
	const char *base = strrchr(f->path, '/');

	buf_printf(b, "  %s has no symbols of its own: %s.%s\n", base ? base + 1 : f->path,
		   f->symbol_source & INSPECTION_DYNSYM ? "names are from its dynamic table"
							: "functions are shown as +0xoffset",
		   more ? " More:" : "");
}

static bool is_same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* Prints the files, those with equal commands together, and the commands below the last of these.
 * Frees the commands. */
static void put_files(const struct poorly_symbolized_file *files, char **commands, uint32_t n,
		      struct buf *b)
{
	bool put[MAX_FILES] = {false};

	for (uint32_t i = 0; i < n; i++) {
		uint32_t last = i;

		if (put[i])
			continue;
		for (uint32_t k = i; k < n; k++)
			last = is_same(commands[i], commands[k]) ? k : last;
		for (uint32_t k = i; k <= last; k++) {
			if (k != i && !is_same(commands[i], commands[k]))
				continue;
			put_file(&files[k], commands[k] && k == last, b);
			put[k] = true;
		}
		put_commands(commands[i] ? commands[i] : "", b);
	}
	for (uint32_t i = 0; i < n; i++)
		free(commands[i]);
}

/* One command for all files, by the first for which a server is known. */
static void put_server(const struct session *s, const char *const *paths, uint32_t n, struct buf *b)
{
	struct buf option = {0};

	for (uint32_t i = 0; i < n && !option.len; i++)
		debuginfod_hint(s, paths[i], &option);
	if (option.len && !option.error) {
		buf_printf(b, "  A debuginfod server may have names:\n    fusee record %.*s ",
			   (int)option.len, option.p);
		put_event(s, 0, b);
		put_target(b, &s->o.selection);
		buf_str(b, "\n");
	}
	buf_fini(&option);
}

/* Not for interpreters whose own code the report omits: their symbols would not be shown. */
static void put_poorly_symbolized(struct session *s, const struct session_account *a, struct buf *b)
{
	struct poorly_symbolized_file poor[MAX_FILES], shown[MAX_FILES];
	const char *paths[MAX_FILES];
	char *commands[MAX_FILES] = {NULL};
	uint32_t n = build_find_poorly_symbolized(&s->profiler,
						  pipeline_collector(s->profiler.pipeline, 0), poor,
						  MAX_FILES),
		 count = 0;

	for (uint32_t i = 0; i < n && poor[i].self_ns * LEAST_PART >= a->stats.weight_ns; i++) {
		if (poor[i].is_interpreter && !s->o.native)
			continue;
		shown[count] = poor[i];
		paths[count++] = poor[i].path;
	}
	if (!s->hurried)
		package_debug_symbols(paths, count, commands);
	put_files(shown, commands, count, b);
	put_server(s, paths, count, b);
}

void hints_print(struct session *s, const struct session_account *a, const struct fusee_profile *p)
{
	struct buf b = {0};
	size_t before;
	bool named;

	if (!is_idle(s, a) || !children_hint(s, &b))
		put_sleeping(s, a, &b);
	put_waiting(s, a, &b);
	before = b.len;
	named = !runtime_hints(p, &s->profiler.unwinders, &s->o.selection, a->stats.weight_ns,
			       &b) &&
		b.len > before;
	put_no_language(s, a, &b);
	put_reason(s, a, LOSS_TICK, named, &b);
	put_reason(s, a, LOSS_STACK, named, &b);
	if (!s->o.server_names)
		put_poorly_symbolized(s, a, &b);
	if (b.len) {
		fputc('\n', stderr);
		buf_write(&b, STDERR_FILENO);
	}
	buf_fini(&b);
}
