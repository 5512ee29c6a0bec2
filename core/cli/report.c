/* SPDX-License-Identifier: Apache-2.0 */
/* fusee report: a profile as text, HTML and other formats. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "cli/annotate.h"
#include "cli/cli.h"
#include "cli/graphviz.h"
#include "cli/options.h"
#include "cli/outfile.h"
#include "cli/pager.h"
#include "profile/merge.h"
#include "profile/read.h"
#include "profile/render.h"

#define MAX_FILES 256
#define MAX_BYTES (1ull << 30)

enum view {
	VIEW_TOP,
	VIEW_TREE,
	VIEW_PEEK,
	VIEW_FOLDED,
	VIEW_SPEEDSCOPE,
	VIEW_FLAMEGRAPH,
	VIEW_CALLS,
	VIEW_ANNOTATE,
	VIEW_JSON
};

struct report {
	enum view view;
	const char *peek, *page, *base, *output;
	struct render_options o;
	struct profile_file *files[MAX_FILES + 1]; /* [MAX_FILES]: the base */
	uint32_t nfiles;
};

static int set_view(void *arg, enum view view, const char **member, const char *value)
{
	((struct report *)arg)->view = view;
	*member = value;
	return 0;
}

static int set_peek(void *arg, const char *value)
{
	return set_view(arg, VIEW_PEEK, &((struct report *)arg)->peek, value);
}

static int set_annotate(void *arg, const char *value)
{
	return set_view(arg, VIEW_ANNOTATE, &((struct report *)arg)->peek, value);
}

static int set_flamegraph(void *arg, const char *value)
{
	return set_view(arg, VIEW_FLAMEGRAPH, &((struct report *)arg)->page, value);
}

static int set_calls(void *arg, const char *value)
{
	return set_view(arg, VIEW_CALLS, &((struct report *)arg)->page, value);
}

static int add_where(void *arg, const char *value)
{
	struct render_options *o = &((struct report *)arg)->o;
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
	 MEMBER(view), VIEW_TOP},
	{"tree", 0, NULL, "the calls as a tree", CLI_NUMBER, MEMBER(view), VIEW_TREE},
	{"peek", 0, "RE", "callers and callees of the functions that match", CLI_CALL,
	 .set = set_peek},
	{"folded", 0, NULL, "a line a stack, for other flame graph tools", CLI_NUMBER, MEMBER(view),
	 VIEW_FOLDED},
	{"speedscope", 0, NULL, "JSON for speedscope.app", CLI_NUMBER, MEMBER(view),
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
	{"json", 0, NULL, "functions and stacks, for programs", CLI_NUMBER, MEMBER(view),
	 VIEW_JSON},
	{0},
	{"diff", 0, "BASE",
	 "what changed since BASE, and how surely: z beyond 2.6 is not\n"
	 "chance",
	 CLI_TEXT, MEMBER(base)},
	{"focus", 0, "RE", "only stacks with a function that matches", CLI_TEXT, MEMBER(o.focus)},
	{"ignore", 0, "RE", "without such stacks", CLI_TEXT, MEMBER(o.ignore)},
	{"hide", 0, "RE", "stacks without the functions that match", CLI_TEXT, MEMBER(o.hide)},
	{"native", 0, NULL,
	 "with an interpreter's own functions beside those of the\n"
	 "program that it runs",
	 CLI_TRUE, MEMBER(o.native)},
	{"by", 0, "LABEL,..", "group by labels, as in process,thread", CLI_TEXT, MEMBER(o.by)},
	{"where", 0, "LABEL=VALUE",
	 "only such samples; also !=, =~ and !~ (expressions);\n"
	 "several must all be met",
	 CLI_CALL, .set = add_where},
	{"sample-type", 0, "NAME", "which value: cpu, samples ..; default: as the file says",
	 CLI_TEXT, MEMBER(o.type)},
	{"type", 0, "NAME", "the same", CLI_TEXT, MEMBER(o.type)},
	{"cum", 0, NULL, "--top: by time with callees", CLI_TRUE, MEMBER(o.cumulative)},
	{"rows", 'n', "N", "--top: how many functions; default: as many as matter", CLI_COUNT,
	 MEMBER(o.rows)},
	{"output", 'o', "FILE",
	 "write there instead of to stdout; a file that is there is\n"
	 "kept as FILE.old",
	 CLI_TEXT, MEMBER(output)},
};

const struct cli_command report_command = {
	.name = "report",
	.does = "show a profile: functions, calls, a flame graph",
	.usage = "fusee report [OPTION]... [FILE]...\n"
		 "Shows a pprof file, or the output of perf script (or several, added up; - is "
		 "stdin; none: " CLI_DEFAULT_PROFILE "). One of:\n",
	CLI_OPTIONS(options),
	.operand = "FILE",
};

struct operands {
	char **paths;
	int n;
};

/* Standard input can be read once. */
static bool stdin_twice(const struct report *r, char **paths, int n)
{
	int times = r->base && !strcmp(r->base, "-");

	for (int i = 0; i < n; i++)
		times += !strcmp(paths[i], "-");
	return times > 1;
}

/* What is wrong with the command line; NULL: nothing. */
static const char *find_mistake(const struct report *r, char **paths, int n)
{
	if (!n)
		return "which profile? there is no " CLI_DEFAULT_PROFILE
		       ", which fusee record writes, in this folder: fusee report FILE";
	if (n > MAX_FILES)
		return "more than 256 files: add them up in steps, with go tool pprof -proto";
	if (stdin_twice(r, paths, n))
		return "standard input, '-', can be one of the files only";
	if (r->output && r->page)
		return "--flamegraph and --calls name their file: -o can't be given too";
	if (r->view == VIEW_CALLS && !graphviz_format(r->page))
		return "--calls: the file's name ends with .svg, .png, .pdf or .dot";
	if (r->view == VIEW_ANNOTATE &&
	    (r->o.focus || r->o.ignore || r->o.hide || r->o.by || *r->o.where))
		return "--annotate goes without --focus, --ignore, --hide, --by and --where";
	return NULL;
}

/* Without a FILE, what record wrote into this folder is one. */
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

static const char *output_path(const struct report *r)
{
	const char *path = r->page ? r->page : r->output;

	return path && !strcmp(path, "-") ? NULL : path;
}

/* Before profiles are read. An exit code. */
static int try_output(const struct report *r)
{
	char *error = NULL;

	if (!output_path(r) || !outfile_try(output_path(r), &error))
		return 0;
	log_error("%s", error ? error : "no memory");
	free(error);
	return EX_CANTCREAT;
}

static int read_file(const char *path, struct profile_file **ret)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), err;
	const char *text = "";
	struct buf b = {0};

	if (fd < 0) {
		log_error("cannot open '%s': %s", path, strerror(errno));
		return EX_NOINPUT;
	}
	err = buf_read_fd(&b, fd, MAX_BYTES);
	if (!is_stdin)
		close(fd);
	if (err) {
		log_error("cannot read '%s': %s", path, strerror(-err));
		err = EX_IOERR;
	} else if (profile_read(b.p, b.len, ret, &text)) {
		log_error("cannot read '%s' as a profile: %s", path, text);
		err = EX_DATAERR;
	}
	buf_fini(&b);
	return err;
}

/* Reads all files into one profile; several files are merged into *merged, which owns it then. */
static int load(struct report *r, char **paths, uint32_t n, struct builder **merged,
		const struct fusee_profile **ret)
{
	const struct fusee_profile *profiles[MAX_FILES];
	uint32_t odd;
	int err = 0;

	for (uint32_t i = 0; !err && i < n; i++) {
		err = read_file(paths[i], &r->files[i]);
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

static int render(struct report *r, const struct fusee_profile *p, const struct fusee_profile *base,
		  struct buf *out)
{
	switch (r->view) {
	case VIEW_TREE:
		return render_tree(p, base, &r->o, out);
	case VIEW_PEEK:
		return render_peek(p, base, r->peek, &r->o, out);
	case VIEW_FOLDED:
		return render_folded(p, base, &r->o, out);
	case VIEW_SPEEDSCOPE:
		return render_speedscope(p, base, &r->o, out);
	case VIEW_FLAMEGRAPH:
		return render_flamegraph(p, base, &r->o, out);
	case VIEW_CALLS:
		return render_dot(p, base, &r->o, out);
	case VIEW_ANNOTATE:
		return annotate(p, base, r->peek, r->o.type, out);
	case VIEW_JSON:
		return render_json(p, base, &r->o, out);
	default:
		return render_top(p, base, &r->o, out);
	}
}

static int write_out(const struct report *r, const struct buf *b)
{
	const char *path = output_path(r);
	bool text = r->view == VIEW_TOP || r->view == VIEW_TREE || r->view == VIEW_PEEK ||
		    r->view == VIEW_ANNOTATE;
	char *error = NULL;
	int err;

	if (path) {
		err = outfile_write(b, path, &error);
		if (err)
			log_error("%s", error ? error : "no memory");
		else if (r->view == VIEW_FLAMEGRAPH)
			log_info("wrote %s: open it in a browser", path);
		else if (r->view == VIEW_CALLS)
			log_info("wrote %s", path);
		free(error);
		return err ? EX_CANTCREAT : 0;
	}
	err = text ? pager_write(b) : buf_write(b, STDOUT_FILENO);
	if (err == -EPIPE) /* the reader closed the pipe */
		return 0;
	if (err)
		log_error("cannot write to standard output: %s", strerror(-err));
	return err ? EX_IOERR : 0;
}

static void look_at_terminal(struct report *r)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	struct winsize w;

	if (r->output || !isatty(STDOUT_FILENO))
		return;
	r->o.color = !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &w))
		r->o.width = w.ws_col;
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

/* Draws the graph of calls in the format of the file's suffix. An exit code. */
static int draw(const struct report *r, struct buf *graph)
{
	const char *format = graphviz_format(r->page);
	int err = strcmp(format, "dot") ? graphviz_draw(graph, format) : 0;

	if (err == -ENOENT)
		log_error("--calls: the program dot, which draws .%s, is not installed: "
			  "apt install graphviz, or write a .dot file",
			  format);
	else if (err)
		log_error("--calls: dot could not draw the graph: %s", strerror(-err));
	return !err ? 0 : err == -ENOENT ? EX_UNAVAILABLE : EX_OSERR;
}

/* Renders what was loaded and writes it. An exit code. */
static int show(struct report *r, const struct fusee_profile *p, const struct fusee_profile *base,
		const char *title)
{
	struct buf out = {0};
	int err, result;

	look_at_terminal(r);
	r->o.title = title;
	err = render(r, p, base, &out);
	if (!err && out.error)
		err = out.error;
	if (err == -EINVAL) {
		log_error("report: %.*s", (int)out.len, out.p ? out.p : "");
		result = EX_USAGE;
	} else if (err) {
		log_error("report: %s", strerror(-err));
		result = EX_OSERR;
	} else {
		result = r->view == VIEW_CALLS ? draw(r, &out) : 0;
		if (!result)
			result = write_out(r, &out);
	}
	buf_fini(&out);
	return result;
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
	result = try_output(&r);
	if (result)
		return result;
	result = load(&r, files.paths, (uint32_t)files.n, &merged, &p);
	if (!result && r.base) {
		result = read_file(r.base, &r.files[MAX_FILES]);
		if (!result)
			base = profile_of(r.files[MAX_FILES]);
	}
	make_title(&r, files.paths, (uint32_t)files.n, &title);
	if (!result)
		result = title.error ? EX_OSERR : show(&r, p, base, title.p);
	for (uint32_t i = 0; i <= MAX_FILES; i++)
		profile_file_free(r.files[i]);
	builder_free(merged);
	buf_fini(&title);
	return result;
}
