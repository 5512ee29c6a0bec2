/* SPDX-License-Identifier: Apache-2.0 */
#include "view/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "view/internal/annotate.h"
#include "console/graphviz.h"
#include "console/outfile.h"
#include "console/pager.h"
#include "profile/str.h"

static const char *output_path(const struct view *v)
{
	const char *path = v->page ? v->page : v->output;

	return path && !strcmp(path, "-") ? NULL : path;
}

int view_try_output(const struct view *v)
{
	char *error = NULL;

	if (!output_path(v) || !outfile_try(output_path(v), &error))
		return 0;
	log_error("%s", error ? error : "no memory");
	free(error);
	return EX_CANTCREAT;
}

/* Where threads wait, by the last type that is a time unless one is chosen: of CPU time and waits,
 * the waits. */
static int waits(const struct view *v, const struct fusee_profile *p, struct buf *out)
{
	struct render_options o = v->o;
	struct fusee_str name;
	char *type = NULL;
	int ret;

	for (uint32_t i = p->types.n; i-- > 0 && !o.type;) {
		const struct fusee_value_type *t = FUSEE_AT(struct fusee_value_type, p->types, i);

		if (!fusee_text_is(str_at(p, t->unit), "nanoseconds"))
			continue;
		name = str_at(p, t->type);
		type = strndup(name.p, name.len);
		o.type = type;
		if (!type)
			return -ENOMEM;
	}
	ret = render_waits(p, &o, out);
	free(type);
	return ret;
}

static int render(struct view *v, const struct fusee_profile *p, const struct fusee_profile *base,
		  struct buf *out)
{
	switch (v->kind) {
	case VIEW_TREE:
		return render_tree(p, base, &v->o, out);
	case VIEW_WAITS:
		return waits(v, p, out);
	case VIEW_PEEK:
		return render_peek(p, base, v->functions, &v->o, out);
	case VIEW_FOLDED:
		return render_folded(p, base, &v->o, out);
	case VIEW_SPEEDSCOPE:
		return render_speedscope(p, base, &v->o, out);
	case VIEW_FLAMEGRAPH:
		return render_flamegraph(p, base, &v->o, out);
	case VIEW_CALLS:
		return render_dot(p, base, &v->o, out);
	case VIEW_ANNOTATE:
		return annotate(p, base, v->functions, v->o.type, out);
	case VIEW_JSON:
		return render_json(p, base, &v->o, out);
	default:
		return render_top(p, base, &v->o, out);
	}
}

static int write_out(const struct view *v, const struct buf *b)
{
	const char *path = output_path(v);
	bool text = v->kind == VIEW_TOP || v->kind == VIEW_TREE || v->kind == VIEW_PEEK ||
		    v->kind == VIEW_WAITS || v->kind == VIEW_ANNOTATE;
	char *error = NULL;
	int err;

	if (path) {
		err = outfile_write(b, path, &error);
		if (err)
			log_error("%s", error ? error : "no memory");
		else if (v->kind == VIEW_FLAMEGRAPH)
			log_info("wrote %s: open it in a browser", path);
		else if (v->kind == VIEW_CALLS)
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

static void look_at_terminal(struct view *v)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	struct winsize w;

	if (v->output || !isatty(STDOUT_FILENO))
		return;
	v->o.color = !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &w))
		v->o.width = w.ws_col;
}

/* Draws the graph of calls in the format of the file's suffix. An exit code. */
static int draw(const struct view *v, struct buf *graph)
{
	const char *format = graphviz_format(v->page);
	int err = strcmp(format, "dot") ? graphviz_draw(graph, format) : 0;

	if (err == -ENOENT)
		log_error("--calls: the program dot, which draws .%s, is not installed: "
			  "apt install graphviz, or write a .dot file",
			  format);
	else if (err)
		log_error("--calls: dot could not draw the graph: %s", strerror(-err));
	return !err ? 0 : err == -ENOENT ? EX_UNAVAILABLE : EX_OSERR;
}

int view_show(struct view *v, const struct cli_command *c, const struct fusee_profile *p,
	      const struct fusee_profile *base, const char *title)
{
	struct buf out = {0};
	int err, result;

	look_at_terminal(v);
	v->o.title = title;
	err = render(v, p, base, &out);
	if (!err && out.error)
		err = out.error;
	if (err == -EINVAL) {
		log_error("%s: %.*s", c->name, (int)out.len, out.p ? out.p : "");
		result = EX_USAGE;
	} else if (err) {
		log_error("%s: %s", c->name, strerror(-err));
		result = EX_OSERR;
	} else {
		result = v->kind == VIEW_CALLS ? draw(v, &out) : 0;
		if (!result)
			result = write_out(v, &out);
	}
	buf_fini(&out);
	return result;
}
