/* SPDX-License-Identifier: Apache-2.0 */
/* fusee report: a profile as text, pages and other formats. */
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
#include "cli/output.h"
#include "cli/pager.h"
#include "profile/merge.h"
#include "profile/read.h"
#include "profile/render.h"

#define MAX_FILES 256
#define MAX_BYTES (1ull << 30)

static const char usage_text[] =
	"usage: fusee report [OPTION]... FILE...\n"
	"Shows a pprof file, or the output of perf script (or several, added up; - is stdin). One "
	"of:\n"
	"\n"
	"      --top               functions by their own time, as pprof prints them (this is the "
	"default)\n"
	"      --tree              the calls as a tree\n"
	"      --peek RE           callers and callees of the functions that match\n"
	"      --folded            a line a stack, for other flame graph tools\n"
	"      --speedscope        JSON for speedscope.app\n"
	"      --flamegraph FILE   a page for the browser, in one file; - is stdout\n"
	"      --annotate RE       source lines and instructions of the functions that match, with "
	"their values\n"
	"      --calls FILE        the graph of calls: FILE ends with .svg, .png, .pdf (Graphviz's "
	"dot draws them) or .dot\n"
	"      --json              functions and stacks, for programs\n"
	"\n"
	"      --diff BASE         what changed since BASE (top, flamegraph, calls, json)\n"
	"      --focus RE          only stacks with a function that matches\n"
	"      --ignore RE         without such stacks\n"
	"      --hide RE           such functions left out of their stacks\n"
	"      --type NAME         which value: cpu, samples ..; default: as the file says\n"
	"      --cum               --top: by time with callees\n"
	"  -n, --rows N            --top: so many; default: as many as matter\n"
	"  -o, --output FILE       write there instead of to stdout\n"
	"  -h, --help\n";

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
	struct profile_file *files[MAX_FILES + 1]; /* the last one is the base */
	uint32_t nfiles;
};

enum {
	OPT_PEEK = 256,
	OPT_FLAMEGRAPH,
	OPT_CALLS,
	OPT_ANNOTATE,
	OPT_DIFF,
	OPT_FOCUS,
	OPT_IGNORE,
	OPT_HIDE,
	OPT_TYPE,
	OPT_CUM
};
#define OPT_VIEW 512 /* + enum view */

static const struct option long_options[] = {
	{"top", no_argument, NULL, OPT_VIEW + VIEW_TOP},
	{"tree", no_argument, NULL, OPT_VIEW + VIEW_TREE},
	{"peek", required_argument, NULL, OPT_PEEK},
	{"folded", no_argument, NULL, OPT_VIEW + VIEW_FOLDED},
	{"speedscope", no_argument, NULL, OPT_VIEW + VIEW_SPEEDSCOPE},
	{"flamegraph", required_argument, NULL, OPT_FLAMEGRAPH},
	{"calls", required_argument, NULL, OPT_CALLS},
	{"annotate", required_argument, NULL, OPT_ANNOTATE},
	{"json", no_argument, NULL, OPT_VIEW + VIEW_JSON},
	{"diff", required_argument, NULL, OPT_DIFF},
	{"focus", required_argument, NULL, OPT_FOCUS},
	{"ignore", required_argument, NULL, OPT_IGNORE},
	{"hide", required_argument, NULL, OPT_HIDE},
	{"type", required_argument, NULL, OPT_TYPE},
	{"cum", no_argument, NULL, OPT_CUM},
	{"rows", required_argument, NULL, 'n'},
	{"output", required_argument, NULL, 'o'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int set_rows(struct report *r, const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || *end || n > UINT32_MAX) {
		log_error("report: '%s' is no number of rows", text);
		return EX_USAGE;
	}
	r->o.rows = (uint32_t)n;
	return 0;
}

/* -1: help was printed. */
static int take_option(struct report *r, int c)
{
	switch (c) {
	case OPT_PEEK:
		r->view = VIEW_PEEK;
		r->peek = optarg;
		return 0;
	case OPT_FLAMEGRAPH:
		r->view = VIEW_FLAMEGRAPH;
		r->page = optarg;
		return 0;
	case OPT_ANNOTATE:
		r->view = VIEW_ANNOTATE;
		r->peek = optarg;
		return 0;
	case OPT_CALLS:
		r->view = VIEW_CALLS;
		r->page = optarg;
		return 0;
	case OPT_DIFF:
		r->base = optarg;
		return 0;
	case OPT_FOCUS:
		r->o.focus = optarg;
		return 0;
	case OPT_IGNORE:
		r->o.ignore = optarg;
		return 0;
	case OPT_HIDE:
		r->o.hide = optarg;
		return 0;
	case OPT_TYPE:
		r->o.type = optarg;
		return 0;
	case OPT_CUM:
		r->o.cumulative = true;
		return 0;
	case 'n':
		return set_rows(r, optarg);
	case 'o':
		r->output = optarg;
		return 0;
	case 'h':
		fputs(usage_text, stdout);
		return -1;
	default:
		if (c >= OPT_VIEW) {
			r->view = (enum view)(c - OPT_VIEW);
			return 0;
		}
		return EX_USAGE; /* and it was said why */
	}
}

static int bad_use(const char *text)
{
	log_error("report: %s", text);
	fputs("fusee report --help says more\n", stderr);
	return EX_USAGE;
}

/* Standard input can be read once. */
static bool stdin_twice(const struct report *r, char **paths, int n)
{
	int times = r->base && !strcmp(r->base, "-");

	for (int i = 0; i < n; i++)
		times += !strcmp(paths[i], "-");
	return times > 1;
}

static int parse(struct report *r, int argc, char **argv)
{
	bool diffs = false;
	int c, result = 0;

	while (!result && (c = options_next("report", argc, argv, "n:o:h", long_options)) != -1)
		result = take_option(r, c);
	if (result)
		return result;
	diffs = r->view == VIEW_TOP || r->view == VIEW_FLAMEGRAPH || r->view == VIEW_CALLS ||
		r->view == VIEW_JSON;
	if (optind == argc)
		return bad_use("which profile? fusee record writes fusee.pb.gz:"
			       " fusee report fusee.pb.gz");
	if (argc - optind > MAX_FILES)
		return bad_use(
			"more than 256 files: add them up in steps, with go tool pprof -proto");
	if (stdin_twice(r, argv + optind, argc - optind))
		return bad_use("standard input, '-', can be one of the files only");
	if (r->base && !diffs)
		return bad_use("--diff goes with --top, --flamegraph, --calls and --json");
	if (r->view == VIEW_ANNOTATE && (r->o.focus || r->o.ignore || r->o.hide))
		return bad_use("--annotate goes without --focus, --ignore and --hide");
	if (r->output && r->page)
		return bad_use("--flamegraph and --calls name their file: -o can't be given too");
	if (r->view == VIEW_CALLS && !graphviz_format(r->page))
		return bad_use("--calls: the file's name ends with .svg, .png, .pdf or .dot");
	return 0;
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

/* All files as one profile: of *merged, if there are several. */
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
		return render_tree(p, &r->o, out);
	case VIEW_PEEK:
		return render_peek(p, r->peek, &r->o, out);
	case VIEW_FOLDED:
		return render_folded(p, &r->o, out);
	case VIEW_SPEEDSCOPE:
		return render_speedscope(p, &r->o, out);
	case VIEW_FLAMEGRAPH:
		return render_flamegraph(p, base, &r->o, out);
	case VIEW_ANNOTATE:
		return annotate(p, r->peek, r->o.type, out);
	case VIEW_CALLS:
		return render_dot(p, base, &r->o, out);
	case VIEW_JSON:
		return render_json(p, base, &r->o, out);
	default:
		return render_top(p, base, &r->o, out);
	}
}

static int write_out(const struct report *r, const struct buf *b)
{
	const char *path = r->page ? r->page : r->output;
	bool text = r->view == VIEW_TOP || r->view == VIEW_TREE || r->view == VIEW_PEEK ||
		    r->view == VIEW_ANNOTATE;
	char *error = NULL;
	int err;

	if (path && strcmp(path, "-") != 0) {
		err = output_bytes(b, path, &error);
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
	if (err == -EPIPE) /* who reads has seen enough */
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

/* The graph of calls as the picture that its file's name asks for. An exit code. */
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
	struct report r = {0};
	int result = parse(&r, argc, argv);

	if (result)
		return result < 0 ? 0 : result;
	result = load(&r, argv + optind, (uint32_t)(argc - optind), &merged, &p);
	if (!result && r.base) {
		result = read_file(r.base, &r.files[MAX_FILES]);
		if (!result)
			base = profile_of(r.files[MAX_FILES]);
	}
	make_title(&r, argv + optind, (uint32_t)(argc - optind), &title);
	if (!result)
		result = title.error ? EX_OSERR : show(&r, p, base, title.p);
	for (uint32_t i = 0; i <= MAX_FILES; i++)
		profile_file_free(r.files[i]);
	builder_free(merged);
	buf_fini(&title);
	return result;
}
