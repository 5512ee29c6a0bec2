/* SPDX-License-Identifier: Apache-2.0 */
/* fusee query: profiles of a folder, selected by labels and time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/cli.h"
#include "console/grid.h"
#include "view/output.h"
#include "console/pager.h"
#include "cli/internal/query_nothing.h"
#include "cli/internal/query_place.h"
#include "cli/internal/query_read.h"
#include "view/table.h"
#include "view/view.h"
#include "query/merged.h"
#include "query/when.h"

enum mode { MODE_VIEW, MODE_OUTPUT, MODE_SERIES, MODE_CSV, MODE_TOTALS, MODE_LABELS };

/* The samples of a selector and a range of time: the query's, or a comparison's base. */
struct side {
	const char *text; /* of the selector */
	const char *from, *to;
	struct store_request request;
	struct store_counts counts;
	struct merged merged;
	const struct fusee_profile *profile;
};

struct query {
	enum mode mode;
	struct view view;
	struct side now, before; /* before: the base of a comparison */
	const char *place, *store_options, *socket, *output, *function, *values;
	uint64_t offset_ns, step_ns;
	bool compares;
	struct store *store;
	struct functions functions;
	struct functions *used_functions; /* NULL: no --function */
};

static int set_page(void *arg, const char *value)
{
	struct query *q = arg;

	q->mode = MODE_VIEW;
	q->view.kind = VIEW_FLAMEGRAPH;
	q->view.page = value;
	return 0;
}

static int set_peek(void *arg, const char *value)
{
	struct query *q = arg;

	q->mode = MODE_VIEW;
	q->view.kind = VIEW_PEEK;
	q->view.functions = value;
	return 0;
}

static int set_output(void *arg, const char *value)
{
	struct query *q = arg;

	q->mode = MODE_OUTPUT;
	q->output = value;
	return 0;
}

static int set_values(void *arg, const char *value)
{
	struct query *q = arg;

	q->mode = MODE_TOTALS;
	q->values = value;
	return 0;
}

#define MEMBER(member) .offset = offsetof(struct query, member)

static const struct cli_option options[] = {
	{"top", 0, NULL, "functions by their own time, as pprof prints them (default)", CLI_NUMBER,
	 MEMBER(view.kind), VIEW_TOP},
	{"tree", 0, NULL, "the calls as a tree", CLI_NUMBER, MEMBER(view.kind), VIEW_TREE},
	{"peek", 0, "RE", "callers and callees of the functions that match", CLI_CALL,
	 .set = set_peek},
	{"folded", 0, NULL, "a line a stack, for other flame graph tools", CLI_NUMBER,
	 MEMBER(view.kind), VIEW_FOLDED},
	{"json", 0, NULL, "functions and stacks, for programs", CLI_NUMBER, MEMBER(view.kind),
	 VIEW_JSON},
	{"flamegraph", 0, "FILE", "a page for the browser, in one file; - is stdout", CLI_CALL,
	 .set = set_page},
	{"output", 'o', "FILE",
	 "all samples as one profile: .pb.gz, .pprof, .folded, .html,\n"
	 ".speedscope.json or .json",
	 CLI_CALL, .set = set_output},
	{"series", 0, NULL, "the sums over time, with a bar for each", CLI_NUMBER, MEMBER(mode),
	 MODE_SERIES},
	{"csv", 0, NULL, "the same as CSV", CLI_NUMBER, MEMBER(mode), MODE_CSV},
	{"labels", 0, NULL, "the labels that the samples have", CLI_NUMBER, MEMBER(mode),
	 MODE_LABELS},
	{"values", 0, "LABEL", "the values of a label (or of several: A,B), with their sums",
	 CLI_CALL, .set = set_values},
	{0},
	{"from", 0, "TIME",
	 "windows that begin then or later: 2026-11-21T08:00Z, 2h (ago),\n"
	 "now-2h, today, yesterday, seconds since 1970",
	 CLI_TEXT, MEMBER(now.from)},
	{"to", 0, "TIME", "windows that begin before that", CLI_TEXT, MEMBER(now.to)},
	{"by", 0, "LABEL,..", "group by labels, as in service_name,pod", CLI_TEXT,
	 MEMBER(view.o.by)},
	{"function", 0, "RE", "only samples with a function whose name matches", CLI_TEXT,
	 MEMBER(function)},
	{"step", 0, "DURATION", "of --series and --csv; default: at most 60 steps", CLI_DURATION,
	 MEMBER(step_ns)},
	{"store", 0, "OPTION=..", "of a bucket, as sink.parquet has them: endpoint=URL,region=NAME",
	 CLI_TEXT, MEMBER(store_options)},
	{"socket", 0, "PATH", "of agent: its control socket; default /run/fusee/control for root",
	 CLI_TEXT, MEMBER(socket)},
	{0},
	{"diff", 0, "SELECTOR", "what changed since the samples of this selector", CLI_TEXT,
	 MEMBER(before.text)},
	{"diff-from", 0, "TIME", "since those of this range of time; default: --from", CLI_TEXT,
	 MEMBER(before.from)},
	{"diff-to", 0, "TIME", "its end; default: --to", CLI_TEXT, MEMBER(before.to)},
	{"offset", 0, "DURATION", "since the same range so long before, as 7d", CLI_DURATION,
	 MEMBER(offset_ns)},
	{0},
	{"focus", 0, "RE", "views: only stacks with a function that matches", CLI_TEXT,
	 MEMBER(view.o.focus)},
	{"ignore", 0, "RE", "views: without such stacks", CLI_TEXT, MEMBER(view.o.ignore)},
	{"hide", 0, "RE", "views: stacks without the functions that match", CLI_TEXT,
	 MEMBER(view.o.hide)},
	{"native", 0, NULL, "views: with an interpreter's own functions", CLI_TRUE,
	 MEMBER(view.o.native)},
	{"cum", 0, NULL, "--top: by time with callees", CLI_TRUE, MEMBER(view.o.cumulative)},
	{"rows", 'n', "N", "--top: how many functions; default: as many as matter", CLI_COUNT,
	 MEMBER(view.o.rows)},
};

const struct cli_command query_command = {
	.name = "query",
	.does = "ask kept profiles: by labels and time",
	.usage = "fusee query [OPTION]... PLACE [SELECTOR]\n"
		 "Adds up the samples that a selector takes of the profiles in PLACE, and shows "
		 "them: a folder\n"
		 "of sink.pprof or sink.parquet, a bucket, s3://NAME/PREFIX, or agent: what the "
		 "agent of this\n"
		 "machine keeps. A selector is that of Prometheus, "
		 "'{service_name=\"web\", pod=~\"a.*\"}',\n"
		 "with the profile type before it where there are several, 'cpu{}'; default: {}. "
		 "One of:\n",
	CLI_OPTIONS(options),
	.operand = "PATH",
};

/* ---- the command line ---- */

static int set_time(const char *option, const char *text, uint64_t now_ns, uint64_t *ns)
{
	if (!text || !when_parse(text, now_ns, ns))
		return 0;
	return cli_bad_usage(&query_command, "--%s: '%s' is no time: " WHEN_FORMS, option, text);
}

static int set_range(struct side *s, const char *from, const char *to, uint64_t now_ns)
{
	struct store_request *r = &s->request;
	int err = set_time(from, s->from, now_ns, &r->from_ns);

	if (!err)
		err = set_time(to, s->to, now_ns, &r->to_ns);
	if (!err && r->from_ns >= r->to_ns)
		err = cli_bad_usage(&query_command, "--%s is not before --%s: no window is between",
				    from, to);
	return err;
}

static int set_ranges(struct query *q)
{
	uint64_t now_ns = clock_ns(CLOCK_REALTIME);
	struct store_request *a = &q->now.request, *b = &q->before.request;
	int err;

	a->to_ns = UINT64_MAX;
	err = set_range(&q->now, "from", "to", now_ns);
	if (err || !q->compares)
		return err;
	if (q->offset_ns && (!q->now.from || q->offset_ns > a->from_ns))
		return cli_bad_usage(&query_command, "--offset requires the range: --from, --to");
	b->from_ns = a->from_ns - q->offset_ns;
	b->to_ns = !q->offset_ns ? a->to_ns : (q->now.to ? a->to_ns : now_ns) - q->offset_ns;
	return set_range(&q->before, "diff-from", "diff-to", now_ns);
}

static int parse_selector(const char *option, const char *text, struct selector **ret)
{
	char *why = NULL;
	int err = selector_parse(ret, text, &why);

	if (err == -EINVAL)
		err = cli_bad_usage(&query_command, "%s: %s", option, why);
	else if (err)
		log_error("query: %s", strerror(-err));
	free(why);
	return !err ? 0 : err == EX_USAGE ? err : EX_OSERR;
}

/* A sentence about options that exclude each other; NULL: none. */
static const char *find_mistake(const struct query *q)
{
	if (q->compares && q->mode != MODE_VIEW)
		return "--diff, --diff-from, --diff-to and --offset are for the views: --top, "
		       "--tree, --peek, --folded, --json, --flamegraph";
	if (q->offset_ns && (q->before.from || q->before.to))
		return "--offset and --diff-from or --diff-to say the same in two ways: give one";
	if (q->step_ns && q->mode != MODE_SERIES && q->mode != MODE_CSV)
		return "--step is for --series and --csv";
	if (q->values && q->view.o.by)
		return "--values names its labels: --by can't be given too";
	if (q->mode != MODE_VIEW && (q->view.o.focus || q->view.o.ignore || q->view.o.hide))
		return "--focus, --ignore and --hide are for the views; --function is for all";
	return NULL;
}

static int parse_function(struct query *q)
{
	struct buf error = {0};
	int err;

	if (!q->function)
		return 0;
	err = functions_init(&q->functions, q->function, &error);
	if (err == -EINVAL)
		err = cli_bad_usage(&query_command, "%.*s", (int)error.len, error.p);
	else if (!err)
		q->used_functions = &q->functions;
	buf_fini(&error);
	return !err ? 0 : err == EX_USAGE ? err : EX_OSERR;
}

static int parse(struct query *q, int argc, char **argv)
{
	int first, err = cli_parse(&query_command, q, argc, argv, &first);
	const char *mistake;

	if (err)
		return err;
	if (argc - first < 1 || argc - first > 2)
		return cli_bad_usage(&query_command, "%s",
				     argc > first ? "one PLACE and one SELECTOR: quote it, '{..}'"
						  : "which folder? fusee query PLACE [SELECTOR]");
	q->place = argv[first];
	q->now.text = argc - first == 2 ? argv[first + 1] : "{}";
	q->compares = q->before.text || q->before.from || q->before.to || q->offset_ns;
	mistake = find_mistake(q);
	if (mistake)
		return cli_bad_usage(&query_command, "%s", mistake);
	err = set_ranges(q);
	if (!err)
		err = parse_selector("the selector", q->now.text, &q->now.request.selector);
	if (!err && q->compares)
		err = parse_selector(q->before.text ? "--diff" : "the selector",
				     q->before.text ? q->before.text : q->now.text,
				     &q->before.request.selector);
	return err ? err : parse_function(q);
}

/* Tries the output before anything is read. An exit code. */
static int try_output(const struct query *q)
{
	char *why = NULL;

	if (q->mode == MODE_VIEW)
		return view_try_output(&q->view);
	if (!q->output || !output_check(q->output, &why))
		return 0;
	log_error("query: %s", why ? why : "no memory");
	free(why);
	return EX_USAGE;
}

/* ---- results of reading ---- */

static uint64_t broken(const struct query *q)
{
	return q->now.counts.broken + q->before.counts.broken;
}

/* The option that defines a side, as the beginning of a sentence about it. */
static const char *side_name(const struct query *q, const struct side *s)
{
	return s == &q->now   ? ""
	       : s->text      ? "--diff: "
	       : q->offset_ns ? "--offset: "
			      : "--diff-from, --diff-to: ";
}

/* An exit code, after an error was logged. */
static int nothing(const struct query *q, const struct side *s)
{
	const struct query_nothing n = {.store = q->store,
					.request = &s->request,
					.counts = &s->counts,
					.place = q->place,
					.side = side_name(q, s),
					.selector = s->text ? s->text : q->now.text};

	query_log_nothing(&n);
	return broken(q) ? EX_DATAERR : EXIT_FAILURE;
}

/* ---- profiles ---- */

static int take_merged(void *to, const struct fusee_profile *p, const char *name, struct buf *error)
{
	return merged_add(to, p, name, error);
}

/* The keys of --by. */
static uint32_t split_keys(const char *by, struct fusee_str *keys, uint32_t max)
{
	uint32_t n = 0;

	while (by && *by && n < max) {
		size_t len = strcspn(by, ",");

		keys[n++] = (struct fusee_str){by, len};
		by += len;
		by += *by == ',';
	}
	return n;
}

/* Reads one side into one profile. An exit code. */
static int load(struct query *q, struct side *s)
{
	struct fusee_str keys[SUMS_MAX_KEYS];
	bool keeps_all = q->mode == MODE_OUTPUT || q->view.kind == VIEW_JSON ||
			 q->view.kind == VIEW_FLAMEGRAPH;
	int err;

	s->merged = (struct merged){.max_bytes = MERGED_MAX_BYTES};
	s->merged.filter = (struct filter){.selector = s->request.selector,
					   .functions = q->used_functions};
	s->merged.choice = (struct merge_choice){
		.only_labels = q->view.o.by || !keeps_all,
		.labels = keys,
		.nlabels = split_keys(q->view.o.by, keys, SUMS_MAX_KEYS),
	};
	s->request.keys = s->merged.choice.only_labels ? keys : NULL;
	s->request.nkeys = s->merged.choice.nlabels;
	err = query_read(q->store, &s->request, take_merged, &s->merged, &s->counts);
	if (err)
		return err;
	if (merged_finish(&s->merged, &s->profile)) {
		log_error("query: no memory");
		return EX_OSERR;
	}
	return s->profile ? 0 : nothing(q, s);
}

static bool has_label(const struct fusee_profile *p, struct fusee_str key)
{
	bool is_pid = fusee_text_is(key, "pid"), is_tid = fusee_text_is(key, "tid");

	for (uint32_t i = 0; i < p->labels.n; i++) {
		struct fusee_str s = FUSEE_AT(struct fusee_label, p->labels, i)->key;

		if (str_equal(s, key))
			return true;
	}
	for (uint32_t i = 0; (is_pid || is_tid) && i < p->samples.n; i++) {
		const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, i);

		if (is_pid ? s->pid : s->tid)
			return true;
	}
	return false;
}

/* A mistyped label would silently group nothing. */
static int check_by(const struct query *q)
{
	struct fusee_str keys[SUMS_MAX_KEYS];
	uint32_t n = split_keys(q->view.o.by, keys, SUMS_MAX_KEYS);

	for (uint32_t i = 0; i < n; i++) {
		if (has_label(q->now.profile, keys[i]) ||
		    (q->compares && has_label(q->before.profile, keys[i])))
			continue;
		log_error("query: --by: no selected sample has a label '%.*s': fusee query %s "
			  "--labels lists the labels",
			  (int)keys[i].len, keys[i].p, q->place);
		return EX_USAGE;
	}
	return 0;
}

static int write_output(const struct query *q)
{
	const struct render_options o = {.by = q->view.o.by, .native = q->view.o.native};
	char *why = NULL;
	int err = output_write(q->now.profile, &o, q->output, &why);

	if (err)
		log_error("query: %s", why ? why : "no memory");
	else
		log_info("wrote %s", q->output);
	free(why);
	return err ? EX_CANTCREAT : 0;
}

static void make_title(const struct query *q, struct buf *title)
{
	buf_str(title, q->now.text);
	if (q->compares)
		buf_printf(title, " against %s",
			   q->before.text ? q->before.text : "another range of time");
	buf_add(title, "", 1);
}

static int query_profile(struct query *q)
{
	struct buf title = {0};
	int err = load(q, &q->now);

	if (!err && q->compares)
		err = load(q, &q->before);
	if (!err)
		err = check_by(q);
	if (err)
		return err;
	query_log_merged(&q->now.counts, &q->before.counts, &q->now.merged, &q->before.merged);
	make_title(q, &title);
	if (q->mode == MODE_OUTPUT)
		err = write_output(q);
	else
		err = title.error ? EX_OSERR
				  : view_show(&q->view, &query_command, q->now.profile,
					      q->compares ? q->before.profile : NULL, title.p);
	buf_fini(&title);
	return err;
}

/* ---- sums ---- */

static int take_sums(void *to, const struct fusee_profile *p, const char *name, struct buf *error)
{
	return sums_add(to, p, name, error);
}

static int take_labels(void *to, const struct fusee_profile *p, const char *name, struct buf *error)
{
	return label_list_add(to, p, name, error);
}

static int write_text(struct buf *out, bool pages)
{
	int err = out->error ? out->error
		  : pages    ? pager_write(out)
			     : buf_write(out, STDOUT_FILENO);

	if (err && err != -EPIPE)
		log_error("query: cannot write to standard output: %s", strerror(-err));
	return err && err != -EPIPE ? EX_IOERR : 0;
}

static int print_sums(struct query *q, struct sums *s)
{
	uint64_t step_ns = q->step_ns ? q->step_ns : sums_step(s);
	struct buf out = {0};
	int err = sums_finish(s, step_ns);

	if (err)
		out.error = err;
	else if (q->mode == MODE_TOTALS)
		query_print_totals(s, grid_width(), &out);
	else if (q->mode == MODE_CSV)
		query_print_csv(s, &out);
	else
		query_print_series(s, step_ns, grid_width(), &out);
	err = write_text(&out, q->mode != MODE_CSV);
	buf_fini(&out);
	return err;
}

static int query_sums(struct query *q)
{
	struct buf error = {0};
	struct sums s;
	int err = sums_init(&s, q->values ? q->values : q->view.o.by, &error);

	if (err) {
		err = cli_bad_usage(&query_command, "%.*s", (int)error.len, error.p ? error.p : "");
		buf_fini(&error);
		return err;
	}
	s.filter = (struct filter){.selector = q->now.request.selector,
				   .functions = q->used_functions};
	s.step_ns = q->mode == MODE_TOTALS ? UINT64_MAX : q->step_ns;
	q->now.request.no_stacks = !q->used_functions;
	q->now.request.functions = q->used_functions;
	q->now.request.keys = s.keys;
	q->now.request.nkeys = s.nkeys;
	err = query_read(q->store, &q->now.request, take_sums, &s, &q->now.counts);
	if (!err && !s.stacks)
		err = nothing(q, &q->now);
	if (!err) {
		query_log_counts(&q->now.counts, &q->before.counts,
				 &(struct query_taken){s.stacks, s.samples, s.filter.counts});
		query_log_moments(s.type, s.step_ns == UINT64_MAX ? s.windows : 0);
		err = print_sums(q, &s);
	}
	sums_fini(&s);
	return err;
}

static int query_labels(struct query *q)
{
	struct buf out = {0};
	struct label_list l;
	int err = label_list_init(&l) ? EX_OSERR : 0;

	if (err)
		return err;
	l.filter = (struct filter){.selector = q->now.request.selector,
				   .functions = q->used_functions};
	q->now.request.no_stacks = !q->used_functions;
	q->now.request.functions = q->used_functions;
	err = query_read(q->store, &q->now.request, take_labels, &l, &q->now.counts);
	if (!err && !l.stacks)
		err = nothing(q, &q->now);
	if (!err) {
		query_log_counts(&q->now.counts, &q->before.counts,
				 &(struct query_taken){l.stacks, l.samples, l.filter.counts});
		query_print_labels(&l, grid_width(), &out);
		err = write_text(&out, true);
	}
	label_list_fini(&l);
	buf_fini(&out);
	return err;
}

/* ---- the command ---- */

static void query_fini(struct query *q)
{
	merged_fini(&q->now.merged);
	merged_fini(&q->before.merged);
	selector_free(q->now.request.selector);
	selector_free(q->before.request.selector);
	if (q->used_functions)
		functions_fini(q->used_functions);
	store_close(q->store);
}

static int run(struct query *q)
{
	if (q->mode == MODE_LABELS)
		return query_labels(q);
	return q->mode == MODE_VIEW || q->mode == MODE_OUTPUT ? query_profile(q) : query_sums(q);
}

int cmd_query(int argc, char **argv)
{
	struct query q = {0};
	int err = parse(&q, argc, argv);

	if (!err)
		err = try_output(&q);
	if (!err)
		err = query_place_open(&q.store, q.place, q.store_options, q.socket,
				       &query_command);
	if (!err)
		err = run(&q);
	err = !err && broken(&q) ? EX_DATAERR : err;
	query_fini(&q);
	return err < 0 ? 0 : err;
}
