/* SPDX-License-Identifier: Apache-2.0 */
#include "view/internal/annotate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/str.h"
#include "view/instructions.h"
#include "annotation/annotation.h"
#include "report/model.h"
#include "view/source_text.h"

#define LINES_AROUND 5u /* lines of the source before and behind those with values */

struct printer {
	const struct fusee_profile *p;
	const struct annotation *a;
	struct buf *out;
	bool is_difference; /* values are those of the profile less those of a base */
};

/* Prints "." for 0, so that values are easy to find. */
static void put_value(const struct printer *pr, int64_t value)
{
	char text[RENDER_NUMBER] = ".";

	if (value)
		render_value(text, value, pr->a->unit, "auto");
	buf_printf(pr->out, "%10s ", text);
}

/* ---- source ---- */

/* Expands tabs to columns of eight. */
static void put_text(struct buf *out, struct fusee_str text)
{
	const char *tab;

	for (uint32_t column = 0; text.len && (tab = memchr(text.p, '\t', text.len));) {
		struct fusee_str part = {text.p, (uint64_t)(tab - text.p)};
		uint32_t spaces;

		column += render_columns(part);
		spaces = 8 - column % 8;
		column += spaces;
		render_plain(out, part);
		buf_printf(out, "%*s", (int)spaces, "");
		text.p += part.len + 1;
		text.len -= part.len + 1;
	}
	render_plain(out, text);
}

static void put_line(const struct printer *pr, const struct annotated_line *l, uint32_t number,
		     struct fusee_str text)
{
	put_value(pr, l ? l->flat : 0);
	put_value(pr, l ? l->cum : 0);
	buf_printf(pr->out, "%6u:", number);
	put_text(pr->out, text);
	buf_str(pr->out, "\n");
}

static void put_lines(const struct printer *pr, const struct annotated_function *f, FILE *source)
{
	uint32_t i = 0, first = f->lines[0].line, last = f->lines[f->nlines - 1].line;
	char *text = NULL;
	size_t cap = 0;
	struct fusee_str line;

	if (f->start_line && f->start_line < first)
		first = f->start_line;
	for (uint32_t number = 1; number <= last + LINES_AROUND; number++) {
		const struct annotated_line *l = NULL;

		if (!source_text_line(source, &text, &cap, &line))
			break;
		while (i < f->nlines && f->lines[i].line < number)
			i++;
		if (i < f->nlines && f->lines[i].line == number)
			l = &f->lines[i];
		if (number + LINES_AROUND >= first)
			put_line(pr, l, number, line);
	}
	free(text);
}

/* Prints the values alone if the source file was not found. */
static void put_numbers(const struct printer *pr, const struct annotated_function *f)
{
	for (uint32_t i = 0; i < f->nlines; i++)
		put_line(pr, &f->lines[i], f->lines[i].line, fusee_text(" ?"));
}

static void put_source(const struct printer *pr, const struct annotated_function *f)
{
	FILE *source = f->lines[f->nlines - 1].line ? source_text_open(f->file) : NULL;

	if (source) {
		put_lines(pr, f, source);
		fclose(source);
		return;
	}
	put_numbers(pr, f);
	if (!f->lines[f->nlines - 1].line) {
		buf_str(pr->out,
			"  (no line is known: the program was built without -g, or its debug "
			"symbols are not installed)\n");
		return;
	}
	buf_str(pr->out, "  (the source file was not found: ");
	render_plain(pr->out, f->file);
	buf_str(pr->out, ", neither by its path nor below this folder)\n");
}

/* ---- instructions ---- */

/* The function that is printed; `line` and `file` are those of the previous instruction. */
struct code {
	const struct printer *pr;
	const struct annotated_function *f;
	uint32_t at; /* the next address with values */
	char file[4096];
	uint32_t line;
};

/* Values belong to the instruction that holds their address: a caller's lies within its call. An
 * instruction is printed once its successor is known. */
struct pending {
	struct code *code;
	uint64_t address;
	char text[512];
	char file[4096];
	uint32_t line;
	bool set;
};

static void put_instruction(struct pending *p, uint64_t end)
{
	struct code *c = p->code;
	const struct annotated_function *f = c->f;
	uint32_t mapping = f->addresses[c->at < f->naddresses ? c->at : f->naddresses - 1].mapping;
	int64_t flat = 0, cum = 0;

	for (; c->at < f->naddresses && f->addresses[c->at].mapping == mapping &&
	       f->addresses[c->at].address < end;
	     c->at++) {
		flat += f->addresses[c->at].flat;
		cum += f->addresses[c->at].cum;
	}
	put_value(c->pr, flat);
	put_value(c->pr, cum);
	buf_printf(c->pr->out, "%10llx: ", (unsigned long long)p->address);
	if (p->line && (p->line != c->line || strcmp(p->file, c->file))) {
		const char *base = strrchr(p->file, '/');

		buf_printf(c->pr->out, "%-40s ;%s:%u", p->text, base ? base + 1 : p->file, p->line);
		c->line = p->line;
		snprintf(c->file, sizeof(c->file), "%s", p->file);
	} else {
		buf_str(c->pr->out, p->text);
	}
	buf_str(c->pr->out, "\n");
}

static void on_instruction(void *arg, uint64_t address, const char *text, const char *file,
			   uint32_t line)
{
	struct pending *p = arg;

	if (p->set)
		put_instruction(p, address);
	p->set = true;
	p->address = address;
	p->line = line;
	snprintf(p->text, sizeof(p->text), "%s", text);
	snprintf(p->file, sizeof(p->file), "%s", file);
}

/* All functions of one mapping that have the addresses from c->at on. */
static void put_code(struct code *c, struct instructions *in, uint32_t mapping)
{
	const struct annotated_function *f = c->f;
	int r = 0;

	while (!r && c->at < f->naddresses && f->addresses[c->at].mapping == mapping) {
		struct pending p = {.code = c};
		uint32_t before = c->at;
		uint64_t end;

		r = instructions_of(in, f->addresses[c->at].address, on_instruction, &p, &end);
		if (!r && p.set)
			put_instruction(&p, end);
		if (c->at == before) /* no instruction has the address */
			c->at++;
	}
	if (r)
		buf_printf(c->pr->out, "  (no instructions: %s)\n", instructions_why(r));
}

static struct fusee_str string(const struct printer *pr, uint32_t i)
{
	return str_at(pr->p, i);
}

static void put_instructions(const struct printer *pr, const struct annotated_function *f)
{
	struct code c = {.pr = pr, .f = f};

	if (pr->is_difference && !f->naddresses)
		buf_str(pr->out, "  (no instructions: the base does not have this build of it)\n");
	while (c.at < f->naddresses) {
		uint32_t mapping = f->addresses[c.at].mapping;
		const struct fusee_mapping *m = FUSEE_AT(struct fusee_mapping, pr->p->mappings,
							 mapping);
		struct fusee_str path = string(pr, m->path);
		struct instructions *in = NULL;
		int r = path.len && path.p[0] == '/'
				? instructions_open(&in, path, string(pr, m->build_id))
				: -ENOENT;

		buf_str(pr->out, "\n  ");
		render_plain(pr->out, path);
		buf_str(pr->out, "\n");
		if (r)
			buf_printf(pr->out, "  (no instructions: %s)\n", instructions_why(r));
		else
			put_code(&c, in, mapping);
		instructions_close(in);
		while (c.at < f->naddresses && f->addresses[c.at].mapping == mapping)
			c.at++;
	}
}

/* ---- functions ---- */

/* " [/usr/bin/bb 1a2b3c4d]", where another mapping has a function of this name. */
static void put_library(const struct printer *pr, const struct annotated_function *f)
{
	bool several = false;

	for (uint32_t i = 0; i < pr->a->n && !several; i++) {
		const struct annotated_function *g = &pr->a->functions[i];

		several = str_equal(f->name, g->name) && (!str_equal(f->library, g->library) ||
							  !str_equal(f->build_id, g->build_id));
	}
	if (!several || !f->library.len)
		return;
	buf_str(pr->out, " [");
	render_plain(pr->out, f->library);
	if (f->build_id.len) {
		buf_str(pr->out, " ");
		render_plain(pr->out,
			     (struct fusee_str){f->build_id.p,
						f->build_id.len < 8 ? f->build_id.len : 8});
	}
	buf_str(pr->out, "]");
}

static void put_function(const struct printer *pr, const struct annotated_function *f)
{
	char percent[RENDER_NUMBER];

	render_plain(pr->out, f->name);
	put_library(pr, f);
	if (f->file.len) {
		buf_str(pr->out, "  ");
		render_plain(pr->out, f->file);
	}
	buf_str(pr->out, "\n");
	put_value(pr, f->flat);
	put_value(pr, f->cum);
	render_percent(percent, f->cum, pr->a->total);
	buf_printf(pr->out, "(flat, cum) %s of total\n", percent + strspn(percent, " "));
	put_source(pr, f);
	put_instructions(pr, f);
	buf_str(pr->out, "\n");
}

/* A function can be in one of the profiles only. */
static int make_difference(struct annotation *a, const struct fusee_profile *p,
			   const struct fusee_profile *base, const char *regex, const char *type,
			   struct buf *error)
{
	struct annotation before = {0};
	int r = annotation_make(a, p, regex, type, error), b = -ENOENT;

	if (!r || r == -ENOENT) {
		buf_reset(error);
		b = annotation_make(&before, base, regex, type, error);
	}
	if (r == -ENOENT && !b)
		r = 0;
	else if (!r && b && b != -ENOENT)
		r = b;
	if (!r && !str_equal(a->unit, before.unit)) {
		buf_reset(error);
		buf_str(error, "the values of the base have another unit");
		r = -EINVAL;
	}
	if (!r) {
		buf_reset(error);
		r = annotation_subtract(a, &before);
	}
	annotation_free(&before);
	return r;
}

int annotate(const struct fusee_profile *p, const struct fusee_profile *base, const char *regex,
	     const char *type, struct buf *out)
{
	struct annotation a = {0};
	struct printer pr = {.p = p, .a = &a, .out = out, .is_difference = base};
	int r = base ? make_difference(&a, p, base, regex, type, out)
		     : annotation_make(&a, p, regex, type, out);

	for (uint32_t i = 0; !r && i < a.n; i++)
		put_function(&pr, &a.functions[i]);
	annotation_free(&a);
	return r == -ENOENT ? -EINVAL : r ? r : out->error;
}
