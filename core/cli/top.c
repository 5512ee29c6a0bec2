/* SPDX-License-Identifier: Apache-2.0 */
/* fusee top: live. Each interval is a window; it is symbolized while the next window fills. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sysexits.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "console/options.h"
#include "probes/parse.h"
#include "selection/options.h"
#include "record/session.h"
#include "record/session_event.h"
#include "report/report.h"
#include "profiler/build_profile.h"
#include "symbolizer/debug_files.h"

#define DEFAULT_EVERY 2000000000u /* ns */
#define MIN_EVERY 100000000u
#define NAMES_NS 2000000000u     /* then an interval is shown without the missing symbols */
#define SYMBOL_BYTES (64u << 20) /* symbols that are kept for the next intervals */

struct top {
	struct session s;
	uint64_t every_ns, next_ns;
	uint32_t count; /* intervals still to be shown; 0: no limit */
	bool json, screen, held;
	struct profiler_window window; /* of the last interval, until it is symbolized */
	struct termios was;
};

/* ---- the screen ---- */

static void screen_open(struct top *t)
{
	struct termios raw;

	t->screen = !t->json && isatty(STDOUT_FILENO);
	if (!t->screen)
		return;
	fputs("\033[?1049h\033[?25l", stdout); /* the alternate screen, no cursor */
	fflush(stdout);
	if (!tcgetattr(STDIN_FILENO, &t->was)) {
		raw = t->was;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VMIN] = 0;
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
}

static void screen_close(struct top *t)
{
	if (!t->screen)
		return;
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	if (isatty(STDIN_FILENO))
		tcsetattr(STDIN_FILENO, TCSANOW, &t->was);
	t->screen = false;
}

static void screen_size(uint32_t *columns, uint32_t *rows)
{
	struct winsize w;

	*columns = 80;
	*rows = 24;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_col && w.ws_row) {
		*columns = w.ws_col;
		*rows = w.ws_row;
	}
}

/* ---- one interval ---- */

struct share {
	const char *name;
	uint64_t weight;
};

static int by_weight(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	return x->weight > y->weight ? -1 : x->weight < y->weight;
}

/* The sum of the samples of CPU time, or of events. */
static uint64_t cpu_weight(const struct collector *c)
{
	uint64_t sum = 0;

	for (uint32_t i = 1; i < c->samples.n; i++) {
		const struct sample_key *k = c->samples.entries[i].key;

		sum += k->part ? 0 : c->sums[i].weight;
	}
	return sum;
}

/* The sum of what this sampler has chosen. */
static uint64_t chosen_weight(const struct collector *c, uint32_t sampler)
{
	uint64_t sum = 0;

	for (uint32_t i = 1; i < c->samples.n; i++) {
		const struct sample_key *k = c->samples.entries[i].key;

		sum += k->part && k->sampler == sampler ? c->sums[i].weight : 0;
	}
	return sum;
}

/* Weights by process name; *n of them, the greatest first. chosen: those of the first sampler.
 * NULL: no memory. */
static struct share *shares_of(const struct collector *c, bool chosen, uint32_t *n)
{
	struct share *all = calloc(c->processes.n + 1, sizeof(*all));

	*n = 0;
	for (uint32_t i = 1; all && i < c->samples.n; i++) {
		const struct sample_key *k = c->samples.entries[i].key;
		const char *name = c->collected[k->process].name;
		uint32_t at = 0;

		if ((k->part != 0) != chosen || k->sampler)
			continue;
		while (at < *n && strcmp(all[at].name, name))
			at++;
		if (at == *n)
			all[(*n)++].name = name;
		all[at].weight += c->sums[i].weight;
	}
	if (*n)
		qsort(all, *n, sizeof(*all), by_weight);
	return all;
}

/* One line with as many processes as fit: by their CPU time, or by the first sampler. */
static void put_processes(const struct top *t, const struct collector *c, uint32_t columns,
			  struct buf *out)
{
	bool chosen = t->s.o.event.chosen;
	uint64_t weight = chosen ? chosen_weight(c, 0) : cpu_weight(c);
	uint32_t n, used = 0;
	struct share *all = shares_of(c, chosen, &n);

	for (uint32_t i = 0; all && i < n; i++) {
		char text[128];
		int len = snprintf(text, sizeof(text), "  %.40s %.1f %%", all[i].name,
				   100.0 * (double)all[i].weight / (double)weight);

		if (len < 0 || used + (uint32_t)len > columns)
			break;
		used += (uint32_t)len;
		utf8_clean_printable(out, text, (size_t)len);
	}
	buf_str(out, "\n");
	free(all);
}

/* ", 8.02 threads off the CPU", ", 311 forks a second" of each sampler */
static void put_chosen(const struct top *t, const struct collector *c, uint64_t elapsed,
		       const char *comma, struct buf *out)
{
	char number[32];

	for (uint32_t i = 0; i < t->s.o.choosers.n; i++) {
		const struct fusee_plugin *d = t->s.o.choosers.at[i].descriptor;
		const struct fusee_sampler_ops *ops = plugin_sampler_ops(d);
		double each = elapsed ? (double)chosen_weight(c, i) / (double)elapsed : 0;

		if (ops->flags & FUSEE_SAMPLER_TIME)
			buf_printf(out, "%s%.2f threads %.80s", comma, each, ops->amount);
		else
			buf_printf(out, "%s%s %.80s a second", comma,
				   text_number(number, (uint64_t)(each * 1e9)), d->name);
		comma = ", ";
	}
}

/* "1.93 CPUs busy", "1.93 CPUs busy, 8.02 threads off the CPU", "8.02 threads off the CPU",
 * "12,345 page-faults a second", "12,345 bytes allocated a second" */
static void put_load(const struct top *t, const struct collector *c, uint64_t elapsed,
		     struct buf *out)
{
	double each = elapsed ? (double)cpu_weight(c) / (double)elapsed : 0;
	const struct probe_kind *probes = session_probes(&t->s.o);
	char number[32], used[32];

	if (!*t->s.o.event.name)
		buf_printf(out, "%.2f CPUs busy", each);
	else if (t->s.o.event.in_use)
		buf_printf(out, "%s bytes in use, %s allocated a second",
			   text_number(used, t->s.in_use.totals.bytes),
			   text_number(number, (uint64_t)(each * 1e9)));
	else if (session_is_timed(&t->s.o))
		buf_printf(out, "%.2f threads %s", each, probes->amount);
	else if (!t->s.o.event.chosen)
		buf_printf(out, "%s %.80s a second", text_number(number, (uint64_t)(each * 1e9)),
			   session_is_alloc(&t->s.o) ? "bytes allocated"
			   : probes                  ? probes->amount
						     : t->s.o.event.name);
	put_chosen(t, c, elapsed, *t->s.o.event.name ? "" : ", ", out);
}

static void put_head(const struct top *t, const struct collector *c, uint64_t elapsed,
		     uint32_t columns, struct buf *out)
{
	char clock[16], line[1024], samples[32], truncated[32], lost[32];
	struct buf load = {0};
	time_t now = time(NULL);
	struct tm tm;

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &tm));
	put_load(t, c, elapsed, &load);
	buf_add(&load, "", 1);
	snprintf(line, sizeof(line),
		 "fusee top %s%s   %s   %s samples in %.1f s, %s truncated, %s lost", clock,
		 t->held ? "  held" : "", load.error ? "" : load.p,
		 text_number(samples, t->window.losses.due), (double)elapsed / 1e9,
		 text_number(truncated, t->window.losses.truncated),
		 text_number(lost, t->window.losses.lost));
	buf_printf(out, "%.*s\n", (int)columns, line);
	buf_fini(&load);
}

/* Of samplers, those whose type is not the profile's default. */
static uint32_t first_other(const struct top *t)
{
	return session_is_beside(&t->s.o) ? 0 : 1;
}

/* The functions of each type. */
static void put_functions(const struct top *t, const struct fusee_profile *p,
			  struct render_options *o, struct buf *out)
{
	const struct session_choosers *c = &t->s.o.choosers;
	uint32_t first = first_other(t), n = c->n + !first, titles = 4 * n;

	if (n > 1)
		o->rows = o->rows > titles ? (o->rows - titles + 4) / n : 2;
	o->rows = o->rows < 2 ? 2 : o->rows;
	session_table(first && c->n ? plugin_sampler_ops(c->at[0].descriptor) : NULL)(p, o, out);
	for (uint32_t i = first; i < c->n; i++) {
		const struct fusee_sampler_ops *ops = plugin_sampler_ops(c->at[i].descriptor);

		buf_printf(out, "\n  %s:\n\n", ops->amount);
		o->type = ops->type;
		session_table(ops)(p, o, out);
	}
}

/* A document of each type: values of different types are not of one kind. */
static int put_json(const struct top *t, const struct fusee_profile *p, struct render_options *o,
		    struct buf *out)
{
	const struct session_choosers *c = &t->s.o.choosers;
	int r = render_json(p, NULL, o, out);

	for (uint32_t i = first_other(t); !r && i < c->n; i++) {
		o->type = plugin_sampler_ops(c->at[i].descriptor)->type;
		r = render_json(p, NULL, o, out);
	}
	return r;
}

static void draw(struct top *t, const struct collector *c, const struct fusee_profile *p)
{
	struct render_options o = {.color = t->screen && !getenv("NO_COLOR"),
				   .native = t->s.o.native};
	uint32_t columns, rows;
	struct buf b = {0};

	screen_size(&columns, &rows);
	o.width = columns;
	o.rows = rows > 10 ? rows - 6 : 4;
	put_head(t, c, p->duration_ns, columns, &b);
	if (c->count || t->s.in_use.totals.bytes) {
		if (c->count)
			put_processes(t, c, columns, &b);
		put_functions(t, p, &o, &b);
	} else {
		buf_str(&b, "\n  nothing ran\n");
	}
	if (t->screen) { /* overwriting line by line does not flicker */
		fputs("\033[H", stdout);
		for (size_t i = 0; i < b.len; i++) {
			if (b.p[i] == '\n')
				fputs("\033[K", stdout);
			putchar(b.p[i]);
		}
		fputs("\033[J", stdout);
	} else if (!b.error) {
		fwrite(b.p, 1, b.len, stdout);
	}
	fflush(stdout);
	buf_fini(&b);
}

static void show(struct top *t, const struct collector *c, const struct fusee_profile *p)
{
	struct render_options o = {.native = t->s.o.native};
	struct buf b = {0};

	if (!t->json) {
		draw(t, c, p);
		return;
	}
	if (!put_json(t, p, &o, &b))
		buf_write(&b, STDOUT_FILENO);
	buf_fini(&b);
}

static void on_symbolized(void *arg)
{
	struct top *t = arg;
	struct collector *c = t->window.collector;
	const struct build_options o = session_build_options(&t->s);
	const struct build_lost lost = build_lost_weights(&t->s.profiler, &o);
	const struct fusee_profile *p;
	struct builder *b = NULL;
	int r = builder_new(&b);

	if (!r)
		r = build_profile(b, &t->s.profiler, c, &o);
	if (!r) {
		builder_profile(b)->duration_ns = t->window.end_ns - c->start_ns;
		build_losses(b, &t->window.losses, &lost);
		r = builder_finish(b, &p);
	}
	if (!r && !t->held)
		show(t, c, p);
	builder_free(b);
	collector_free(c);
	t->window.collector = NULL;
	if (t->count && !--t->count)
		t->s.stop = true;
}

/* ---- keys and intervals ---- */

static void take_key(struct top *t)
{
	char key;

	while (read(STDIN_FILENO, &key, 1) == 1) {
		if (key == 'q')
			t->s.stop = true;
		if (key == ' ')
			t->held = !t->held;
	}
}

static void on_tick(struct session *s, bool key)
{
	struct top *t = s->o.arg;

	pipeline_forget_names(s->profiler.pipeline,
			      (const struct collector *const *)&t->window.collector, 1);
	if (key)
		take_key(t);
	if (!t->next_ns)
		t->next_ns = clock_now() + t->every_ns;
	symbolizer_expire(s->profiler.symbolizer, clock_now());
	if (s->stop || t->window.collector || clock_now() < t->next_ns ||
	    session_close_window(s, &t->window))
		return;
	t->next_ns += t->every_ns;
	if (t->next_ns < clock_now())
		t->next_ns = clock_now() + t->every_ns;
	if (symbolizer_request(s->profiler.symbolizer, t->window.collector, false,
			       clock_now() + NAMES_NS, on_symbolized, t)) {
		collector_free(t->window.collector);
		t->window.collector = NULL;
	}
	profiler_sweep(&s->profiler, (const struct collector *const *)&t->window.collector, 1,
		       SYMBOL_BYTES);
	worker_dispatch(s->profiler.worker);
}

/* ---- the command line ---- */

static int add_unwind(void *arg, const char *value)
{
	return unwind_flags_add(&((struct top *)arg)->s.o.unwind, value);
}

static int set_event(void *arg, const char *value)
{
	return session_event_set(&((struct top *)arg)->s.o, value);
}

static int set_interval(void *arg, const char *value)
{
	struct top *t = arg;

	if (!text_duration(value, &t->every_ns) && t->every_ns >= MIN_EVERY)
		return 0;
	return cli_bad_usage(&top_command, "'%s' is not an interval: 1s, 500ms; 100ms at least",
			     value);
}

#define MEMBER(member) .offset = offsetof(struct top, member)

static const struct cli_option options[] = {
	{"all", 'a', NULL, "all processes of the machine (the default)", CLI_TRUE,
	 MEMBER(s.o.selection.all)},
	{"pid", 'p', "PID[,PID]", "running processes", CLI_MEMBER, MEMBER(s.o.selection),
	 .set = selection_set_pids},
	{"cgroup", 'G', "CGROUP", "the processes of a control group, those that join it later too",
	 CLI_MEMBER, MEMBER(s.o.selection), .set = selection_set_cgroup},
	SELECTION_NAME_OPTIONS(offsetof(struct top, s.o.selection)),
	{"rate", 'F', "HZ", "samples a second of CPU time; default 99", CLI_RATE, MEMBER(s.o.hz)},
	{"event", 'e', "EVENT", "what is sampled, in place of CPU time, as fusee record -e",
	 CLI_CALL, .set = set_event},
	{"period", 'c', "N", "a sample for each N events of -e; default by the event", CLI_COUNT,
	 MEMBER(s.o.event_period)},
	{"wall", 0, NULL, "CPU time and, apart from it, time in which threads wait", CLI_TRUE,
	 MEMBER(s.o.wall)},
	{"interval", 'i', "TIME", "how often the screen is drawn anew; default 2s", CLI_CALL,
	 .set = set_interval},
	{"count", 'n', "N", "end after N intervals", CLI_COUNT, MEMBER(count)},
	{"duration", 'd', "TIME", "end after this time", CLI_DURATION, MEMBER(s.o.duration_ns)},
	{"native", 0, NULL,
	 "with an interpreter's own functions beside those of the\n"
	 "program that it runs",
	 CLI_TRUE, MEMBER(s.o.native)},
	{"unwind", 0, "UNWINDER", UNWIND_HELP, CLI_CALL, .set = add_unwind},
	{"json", 0, NULL, "JSON on stdout, a document for each interval and sampler", CLI_TRUE,
	 MEMBER(json)},
};

const struct cli_command top_command = {
	.name = "top",
	.does = "show live where CPU time goes",
	.usage = "fusee top [OPTION]... [-a | -p PID[,PID] | -- COMMAND [ARGUMENT]...]\n"
		 "       fusee top [OPTION]... -G CGROUP | --unit UNIT | --pod POD | --container "
		 "CONTAINER\n"
		 "Shows live which functions use the CPU: of all processes, or of those that are "
		 "named.\n"
		 " Keys: q ends it, space holds the screen.\n",
	CLI_OPTIONS(options),
	.operand = "COMMAND",
	.operands_end = true,
};

static int parse(struct top *t, int argc, char **argv)
{
	struct selection *o = &t->s.o.selection;
	int first, r = cli_parse(&top_command, t, argc, argv, &first);

	if (r)
		return r;
	if (first < argc)
		o->command = argv + first;
	if (selection_kinds(o) > 1)
		return cli_bad_usage(&top_command,
				     "one of '-p PID', '-a' and '-- COMMAND' at a time");
	o->all = !selection_kinds(o) || o->all;
	r = session_event_check(&top_command, &t->s.o);
	return r ? r : selection_find_names(&top_command, o);
}

static int run(struct top *t)
{
	int r = session_open(&t->s);

	if (!r) {
		screen_open(t);
		r = session_run(&t->s);
		screen_close(t);
	}
	if (t->window.collector) { /* the last interval is still to be symbolized and shown */
		worker_wait_until(t->s.profiler.worker, clock_now() + NAMES_NS);
		symbolizer_expire(t->s.profiler.symbolizer, UINT64_MAX);
		collector_free(t->window.collector);
	}
	if (debug_files_late())
		log_warning("names were missing: files, or their debug files, could not be opened "
			    "in time");
	session_close(&t->s);
	return r;
}

int cmd_top(int argc, char **argv)
{
	struct top t = {.every_ns = DEFAULT_EVERY};
	int r;

	session_init(&t.s);
	t.s.o.profiler.command_line = "fusee top";
	t.s.o.tick = on_tick;
	t.s.o.arg = &t;
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		t.s.o.keys = STDIN_FILENO;
	r = parse(&t, argc, argv);
	if (!r)
		r = run(&t);
	selection_fini(&t.s.o.selection);
	session_event_fini(&t.s.o);
	return r < 0 ? 0 : r;
}
