/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of the function that is selected, with their values. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "base/str.h"
#include "ui/internal/annotated.h"
#include "view/instructions.h"

#define MAX_INSTRUCTIONS 20000u /* instructions of a function that are shown */
#define MAX_TEXT 400u           /* bytes of an instruction's text */

/* Reads the values of a function in order of addresses. */
struct values {
	const struct annotated_function *f; /* NULL: the profile does not have the function */
	uint32_t at;                        /* index of the next address */
};

/* An instruction is written when the next is known, so that it gets all values of addresses within
 * it: a caller's address lies within its call instruction. */
struct code {
	struct json *j;
	struct values now, before;
	bool compared;
	uint32_t n;
	bool has; /* an instruction is pending: the members below are its */
	uint64_t address;
	struct buf text, file;
	uint32_t line;
};

/* Adds up the values of addresses below `end`, from v->at on, which moves behind them. */
static void add_up(struct values *v, uint64_t end, int64_t *flat, int64_t *cum)
{
	for (*flat = *cum = 0; v->f && v->at < v->f->naddresses; v->at++) {
		const struct annotated_address *a = &v->f->addresses[v->at];

		if (a->address >= end)
			break;
		saturate_add(flat, a->flat);
		saturate_add(cum, a->cum);
	}
}

static void put_instruction(struct code *c, uint64_t end)
{
	int64_t flat, cum;

	add_up(&c->now, end, &flat, &cum);
	json_list(c->j, NULL);
	json_printf(c->j, NULL, "\"%" PRIx64 "\"", c->address);
	json_int(c->j, NULL, flat);
	json_int(c->j, NULL, cum);
	json_buf(c->j, NULL, &c->text);
	json_buf(c->j, NULL, &c->file);
	json_uint(c->j, NULL, c->line);
	if (c->compared) {
		add_up(&c->before, end, &flat, &cum);
		json_int(c->j, NULL, flat);
		json_int(c->j, NULL, cum);
	}
	json_end(c->j);
}

static void on_instruction(void *arg, uint64_t address, const char *text, const char *file,
			   uint32_t line)
{
	struct code *c = arg;

	if (c->n++ >= MAX_INSTRUCTIONS)
		return;
	if (c->has)
		put_instruction(c, address);
	c->has = true;
	c->address = address;
	c->line = line;
	buf_reset(&c->text);
	buf_add(&c->text, text, strnlen(text, MAX_TEXT));
	buf_reset(&c->file);
	buf_add(&c->file, file, strnlen(file, MAX_TEXT));
}

/* Sets *address to the next address that has a value. false: there is none. */
static bool next(const struct code *c, uint64_t *address)
{
	const struct values *const sides[] = {&c->now, &c->before};
	bool has = false;

	for (size_t i = 0; i < 2; i++) {
		const struct values *v = sides[i];

		if (!v->f || v->at >= v->f->naddresses)
			continue;
		if (!has || v->f->addresses[v->at].address < *address)
			*address = v->f->addresses[v->at].address;
		has = true;
	}
	return has;
}

/* A function may have several pieces of code, as main and main.cold. */
static int put_pieces(struct code *c, struct instructions *in)
{
	uint64_t address = 0, end = 0;
	int64_t ignored;
	int r = 0;

	while (!r && c->n < MAX_INSTRUCTIONS && next(c, &address)) {
		r = instructions_of(in, address, on_instruction, c, &end);
		if (!r && c->has && c->n <= MAX_INSTRUCTIONS)
			put_instruction(c, end);
		c->has = false;
		/* skip the address if no instruction contained it */
		add_up(&c->now, address + 1, &ignored, &ignored);
		add_up(&c->before, address + 1, &ignored, &ignored);
	}
	return r;
}

/* Only then the base's addresses are addresses of the code that is shown. */
static bool is_same_build(const struct ui_pair *p)
{
	return p->now && p->before && p->now->build_id.len &&
	       str_equal(p->now->build_id, p->before->build_id);
}

static void put_function(struct json *j, const struct ui_pair *p)
{
	const struct annotated_function *f = p->now ? p->now : p->before;
	bool both = is_same_build(p);
	struct code c = {.j = j, .now.f = f, .compared = both};
	struct instructions *in = NULL;
	int r = -ENOENT;

	if (both)
		c.before.f = p->before;
	ui_put_annotated(j, p);
	json_flag(j, "other_build", p->compared && !both);
	json_flag(j, "inlined", !f->naddresses);
	json_list(j, "instructions");
	if (f->library.len && f->library.p[0] == '/')
		r = instructions_open(&in, f->library, f->build_id);
	if (!r)
		r = put_pieces(&c, in);
	json_end(j);
	json_text(j, "why",
		  r                        ? instructions_why(r)
		  : c.n > MAX_INSTRUCTIONS ? "the function has too many"
					   : NULL);
	instructions_close(in);
	buf_fini(&c.text);
	buf_fini(&c.file);
}

int ui_code(const struct ui_view *v, struct buf *out)
{
	return ui_annotate(v, put_function, out);
}
