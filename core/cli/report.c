/* SPDX-License-Identifier: Apache-2.0 */
/* fusee report: a profile as text, HTML and other formats. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "cli/cli.h"
#include "console/graphviz.h"
#include "console/options.h"
#include "view/profile_input.h"
#include "view/view.h"
#include "profile/merge.h"
#include "import/read.h"

#define MAX_FILES 256
#define MAX_BYTES (1ull << 30)

struct report {
	struct view view;
	const char *base;
	struct profile_file *files[MAX_FILES + 1]; /* [MAX_FILES]: the base */
	uint32_t nfiles;
};

static int set_view(void *arg, enum view_kind kind, const char **member, const char *value)
{
	((struct report *)arg)->view.kind = kind;
	*member = value;
	return 0;
}

static int set_peek(void *arg, const char *value)
{
	return set_view(arg, VIEW_PEEK, &((struct report *)arg)->view.functions, value);
}

static int set_annotate(void *arg, const char *value)
{
	return set_view(arg, VIEW_ANNOTATE, &((struct report *)arg)->view.functions, value);
}

static int set_flamegraph(void *arg, const char *value)
{
	return set_view(arg, VIEW_FLAMEGRAPH, &((struct report *)arg)->view.page, value);
}

static int set_calls(void *arg, const char *value)
{
	return set_view(arg, VIEW_CALLS, &((struct report *)arg)->view.page, value);
}

static int add_where(void *arg, const char *value)
{
	struct render_options *o = &((struct report *)arg)->view.o;
	uint32_t n = 0;

	while (o->where[n])
		n++;
	if (n == RENDER_MAX_WHERE) {
		log_error("--where can be given %u times", RENDER_MAX_WHERE);
		return EX_USAGE;
	}
	o->where[n] = value;
	return 0;
}

#define MEMBER(member) .offset = offsetof(struct report, member)

static const struct cli_option options[] = {
	{"top", 0, NULL, "functions by their own time, as pprof prints them (default)", CLI_NUMBER,
	 MEMBER(view.kind), VIEW_TOP},
	{"tree", 0, NULL, "the calls as a tree", CLI_NUMBER, MEMBER(view.kind), VIEW_TREE},
	{"waits", 0, NULL, "where threads wait: system calls, and functions that lead there",
	 CLI_NUMBER, MEMBER(view.kind), VIEW_WAITS},
	{"peek", 0, "RE", "callers and callees of the functions that match", CLI_CALL,
	 .set = set_peek},
	{"folded", 0, NULL, "a line a stack, for other flame graph tools", CLI_NUMBER,
	 MEMBER(view.kind), VIEW_FOLDED},
	{"speedscope", 0, NULL, "JSON for speedscope.app", CLI_NUMBER, MEMBER(view.kind),
	 VIEW_SPEEDSCOPE},
	{"flamegraph", 0, "FILE", "a page for the browser, in one file; - is stdout", CLI_CALL,
	 .set = set_flamegraph},
	{"calls", 0, "FILE",
	 "the graph of calls: FILE ends with .svg, .png, .pdf\n"
	 "(Graphviz's dot draws them) or .dot",
	 CLI_CALL, .set = set_calls},
	{"annotate", 0, "RE",
	 "source lines and instructions of the functions that\n"
	 "match, with their values",
	 CLI_CALL, .set = set_annotate},
	{"json", 0, NULL, "functions and stacks, for programs", CLI_NUMBER, MEMBER(view.kind),
	 VIEW_JSON},
	{0},
	{"diff", 0, "BASE",
	 "what changed since BASE, and how surely: what may be chance is\n"
	 "marked with ~",
	 CLI_TEXT, MEMBER(base)},
	{"focus", 0, "RE", "only stacks with a function that matches", CLI_TEXT,
	 MEMBER(view.o.focus)},
	{"ignore", 0, "RE", "without such stacks", CLI_TEXT, MEMBER(view.o.ignore)},
	{"hide", 0, "RE", "stacks without the functions that match", CLI_TEXT, MEMBER(view.o.hide)},
	{"native", 0, NULL,
	 "with an interpreter's own functions beside those of the\n"
	 "program that it runs",
	 CLI_TRUE, MEMBER(view.o.native)},
	{"by", 0, "LABEL,..", "group by labels, as in process,thread", CLI_TEXT, MEMBER(view.o.by)},
	{"where", 0, "LABEL=VALUE",
	 "only such samples; also !=, =~ and !~ (expressions);\n"
	 "several must all be met",
	 CLI_CALL, .set = add_where},
	{"sample-type", 0, "NAME", "which value: cpu, samples ..; default: as the file says",
	 CLI_TEXT, MEMBER(view.o.type)},
	{"type", 0, "NAME", "the same", CLI_TEXT, MEMBER(view.o.type)},
	{"cum", 0, NULL, "--top: by time with callees", CLI_TRUE, MEMBER(view.o.cumulative)},
	{"rows", 'n', "N",
	 "--top: how many functions; default: as many as matter;\n"
	 "--waits: how many rows; default: 10",
	 CLI_COUNT, MEMBER(view.o.rows)},
	{"output", 'o', "FILE",
	 "write there instead of to stdout; a file that is there is\n"
	 "kept as FILE.old",
	 CLI_TEXT, MEMBER(view.output)},
};

const struct cli_command report_command = {
	.name = "report",
	.does = "show a profile: functions, calls, a flame graph",
	.usage = "fusee report [OPTION]... [FILE]...\n"
		 "Shows a pprof file, the output of perf script, folded stacks or a file of\n"
		 "speedscope (or several, added up; - is stdin; none: " CLI_DEFAULT_PROFILE
		 "). One of:\n",
	CLI_OPTIONS(options),
	.operand = "FILE",
};

struct operands {
	char **paths;
	int n;
};

/* Whether standard input is named twice: it can be read only once. */
static bool stdin_twice(const struct report *r, char **paths, int n)
{
	int times = r->base && !strcmp(r->base, "-");

	for (int i = 0; i < n; i++)
		times += !strcmp(paths[i], "-");
	return times > 1;
}

/* A sentence about an error in the command line; NULL: none. */
static const char *find_mistake(const struct report *r, char **paths, int n)
{
	const struct view *v = &r->view;

	if (!n)
		return "which profile? there is no " CLI_DEFAULT_PROFILE
		       ", which fusee record writes, in this folder: fusee report FILE";
	if (n > MAX_FILES)
		return "more than 256 files: add them up in steps, with go tool pprof -proto";
	if (stdin_twice(r, paths, n))
		return "standard input, '-', can be one of the files only";
	if (v->output && v->page)
		return "--flamegraph and --calls name their file: -o can't be given too";
	if (v->kind == VIEW_CALLS && !graphviz_format(v->page))
		return "--calls: the file's name ends with .svg, .png, .pdf or .dot";
	if (v->kind == VIEW_WAITS && (r->base || v->o.by))
		return "--waits goes without --diff and --by";
	if (v->kind == VIEW_ANNOTATE &&
	    (v->o.focus || v->o.ignore || v->o.hide || v->o.by || *v->o.where))
		return "--annotate goes without --focus, --ignore, --hide, --by and --where";
	return NULL;
}

/* Without a FILE, reads the file that record wrote in this folder. */
static int parse(struct report *r, int argc, char **argv, struct operands *files)
{
	static char latest[] = CLI_DEFAULT_PROFILE, *latest_only[] = {latest};
	int first, result = cli_parse(&report_command, r, argc, argv, &first);
	const char *mistake;

	if (result)
		return result;
	*files = (struct operands){argv + first, argc - first};
	if (!files->n && !access(latest, F_OK))
		*files = (struct operands){latest_only, 1};
	mistake = find_mistake(r, files->paths, files->n);
	return mistake ? cli_bad_usage(&report_command, "%s", mistake) : 0;
}

/* Reads all files into one profile; several files are merged into *merged, which then owns the
 * profile. */
static int load(struct report *r, char **paths, uint32_t n, struct builder **merged,
		const struct fusee_profile **ret)
{
	const struct fusee_profile *profiles[MAX_FILES];
	uint32_t odd;
	int err = 0;

	for (uint32_t i = 0; !err && i < n; i++) {
		err = profile_input(paths[i], MAX_BYTES, &r->files[i]);
		if (!err)
			profiles[i] = profile_of(r->files[i]);
	}
	if (err)
		return err;
	r->nfiles = n;
	*ret = profiles[0];
	if (n == 1)
		return 0;
	err = builder_new(merged);
	if (!err)
		err = merge_profiles(*merged, profiles, n, &odd);
	if (!err)
		err = builder_finish(*merged, ret);
	if (err == -EINVAL)
		log_error("'%s' and '%s' measure different things: they cannot be added up",
			  paths[0], paths[odd]);
	else if (err)
		log_error("cannot add the files up: %s", strerror(-err));
	return err ? EX_DATAERR : 0;
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!strcmp(path, "-"))
		return "standard input";
	return slash && slash[1] ? slash + 1 : path;
}

/* "b.pb.gz", "b.pb.gz and 2 more", "b.pb.gz against a.pb.gz" */
static void make_title(const struct report *r, char **paths, uint32_t n, struct buf *title)
{
	buf_str(title, file_name(paths[0]));
	if (n > 1)
		buf_printf(title, " and %u more", n - 1);
	if (r->base)
		buf_printf(title, " against %s", file_name(r->base));
	buf_add(title, "", 1);
}

int cmd_report(int argc, char **argv)
{
	const struct fusee_profile *p = NULL, *base = NULL;
	struct builder *merged = NULL;
	struct buf title = {0};
	struct operands files = {0};
	struct report r = {0};
	int result = parse(&r, argc, argv, &files);

	if (result)
		return result < 0 ? 0 : result;
	result = view_try_output(&r.view);
	if (result)
		return result;
	result = load(&r, files.paths, (uint32_t)files.n, &merged, &p);
	if (!result && r.base) {
		result = profile_input(r.base, MAX_BYTES, &r.files[MAX_FILES]);
		if (!result)
			base = profile_of(r.files[MAX_FILES]);
	}
	make_title(&r, files.paths, (uint32_t)files.n, &title);
	if (!result)
		result = title.error ? EX_OSERR
				     : view_show(&r.view, &report_command, p, base, title.p);
	for (uint32_t i = 0; i <= MAX_FILES; i++)
		profile_file_free(r.files[i]);
	builder_free(merged);
	buf_fini(&title);
	return result;
}
