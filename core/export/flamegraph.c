/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph page: flamegraph.html, its style and script, and the calls as flamegraph_tree.js
 * reads them. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/dict.h"
#include "base/embed.h"
#include "base/json.h"
#include "base/saturate.h"
#include "base/text.h"
#include "profile/str.h"
#include "report/report.h"
#include "report/calls.h"
#include "report/labels.h"
#include "report/model.h"
#include "loss/comment.h"

#define TITLE_NAMES 3   /* targets in the title */
#define FACTS_REASONS 4 /* reasons of losses */
#define MAX_STACKS 100000u

EMBED(flamegraph_html, "core/export/page/flamegraph.html");
EMBED(flamegraph_css, "core/export/page/flamegraph.css");
EMBED(flamegraph_js, "flamegraph.js");     /* all scripts */
EMBED(flamegraph_hash, "flamegraph.hash"); /* the page runs only the script with this hash */

/* What replaces a mark of the frame: `before`, text and `after`; or `served`, in a page whose
 * server sends the policy as a header. */
static const struct part {
	const char *mark, *before, *text, *end, *after, *served; /* text NULL: the data */
} parts[] = {
	{"@POLICY@",
	 "<meta http-equiv=\"Content-Security-Policy\"\n\tcontent=\"default-src 'none'; "
	 "style-src 'unsafe-inline'; script-src 'sha256-",
	 flamegraph_hash, flamegraph_hash_end, "'\">\n", ""},
	{"@STYLE@", "<style>\n", flamegraph_css, flamegraph_css_end, "</style>",
	 "<link rel=\"stylesheet\" href=\"flamegraph.css\">"},
	{"@DATA@", "", NULL, NULL, "", NULL},
	{"@SCRIPT@", "<script>", flamegraph_js, flamegraph_js_end, "</script>",
	 "<script src=\"flamegraph.js\"></script>"},
};

/* ---- the tree ---- */

static int64_t gcd(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* The greatest common divisor of all values, which is the unit that they are written in. */
static int64_t scale_of(const struct render_calls *t)
{
	int64_t g = 0;

	for (uint32_t i = 0; i < t->n; i++)
		g = gcd(gcd(t->calls[i].self, g), t->calls[i].base_self);
	return g ? g : 1;
}

static void put_number(struct buf *b, uint64_t n)
{
	unsigned char bytes[10];
	size_t len = 0;

	for (; n > 127; n >>= 7)
		bytes[len++] = (unsigned char)(n | 128);
	bytes[len++] = (unsigned char)n;
	buf_add(b, bytes, len);
}

/* The call behind i in preorder; 0: none. */
static uint32_t next_call(const struct render_calls *t, uint32_t i)
{
	if (t->calls[i].first)
		return t->calls[i].first;
	while (i && !t->calls[i].next)
		i = t->calls[i].parent;
	return t->calls[i].next;
}

static void put_calls(struct buf *b, const struct render_calls *t, int64_t scale, bool diff)
{
	uint32_t above = 0; /* depth of the call before */

	for (uint32_t i = next_call(t, 0); i; i = next_call(t, i)) {
		const struct render_call *c = &t->calls[i];
		uint32_t ends = above + 1 - c->depth;

		put_number(b, t->rank[c->function]);
		put_number(b, (uint64_t)ends << 2 | (c->flags & RENDER_GUESSED ? 2 : 0) |
				      (c->flags & RENDER_INLINED ? 1 : 0));
		put_number(b, c->line);
		put_number(b, (uint64_t)(c->self / scale));
		if (diff)
			put_number(b, (uint64_t)(c->base_self / scale));
		above = c->depth;
	}
}

static void put_base64(struct buf *out, const struct buf *in)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = (const void *)in->p;
	char *to = buf_grow(out, (in->len + 2) / 3 * 4);

	for (size_t i = 0; to && i < in->len; i += 3) {
		size_t n = in->len - i;
		uint32_t v = (uint32_t)p[i] << 16 | (n > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
			     (n > 2 ? p[i + 2] : 0);

		*to++ = digits[v >> 18];
		*to++ = digits[v >> 12 & 63];
		*to++ = n > 1 ? digits[v >> 6 & 63] : '=';
		*to++ = n > 2 ? digits[v & 63] : '=';
	}
}

static int put_tree(struct json *j, const struct render_calls *t, bool diff)
{
	int64_t scale = scale_of(t);
	struct buf b = {0};
	int r;

	put_calls(&b, t, scale, diff);
	json_uint(json_line(j, 0), "nodes", t->n - 1);
	json_int(j, "scale", scale);
	json_printf(j, "tree", "\"");
	put_base64(j->out, &b);
	buf_str(j->out, "\"");
	r = b.error;
	buf_fini(&b);
	return r;
}

/* ---- functions ---- */

/* The code of a function as the page numbers it: the labels of --by follow the kinds of code. */
static uint32_t code_of(const struct render_function *f, const char *by)
{
	uint32_t code = f->code;

	while (f->code == RENDER_LABEL && *by) {
		size_t n = strcspn(by, ",");

		if (f->name.len > n && !memcmp(f->name.p, by, n) && f->name.p[n] == ':')
			break;
		code++;
		by += n + (by[n] == ',');
	}
	return code;
}

/* What one sample of a function represents, on average. */
static double weight_of(int64_t value, double noise)
{
	return value ? noise / fabs((double)value) : 0;
}

static int put_function(struct json *j, const struct render_function *f, bool diff, const char *by,
			struct dict *strings)
{
	uint32_t file = dict_add(strings, f->file.p, f->file.len);
	uint32_t library = dict_add(strings, f->library.p, f->library.len);

	if (file == DICT_NONE || library == DICT_NONE)
		return -ENOMEM;
	json_list(json_line(j, 0), NULL);
	json_str(j, NULL, f->shown);
	json_printf(j, NULL, "%u,%u,%u,%u,%" PRId64 ",%" PRId64, file, f->start_line, library,
		    code_of(f, by), f->self, f->total);
	if (diff)
		json_printf(j, NULL, "%" PRId64 ",%" PRId64 ",%.0f,%.0f", f->base_self,
			    f->base_total, weight_of(f->total, f->noise.total),
			    weight_of(f->base_total, f->noise.base_total));
	json_end(j);
	return 0;
}

static int put_functions(struct json *j, const struct render_model *m, const struct render_calls *t,
			 const char *by)
{
	struct dict strings;
	int r = dict_init(&strings);

	if (r)
		return r;
	json_list(json_line(j, 0), "functions");
	for (uint32_t i = 0; !r && i < m->nfunctions; i++)
		r = put_function(j, &m->functions[t->order[i]], m->base, by, &strings);
	json_end(j);
	json_list(json_line(j, 0), "strings");
	for (uint32_t i = 0; i < strings.n; i++) {
		json_str(json_line(j, 0), NULL,
			 (struct fusee_str){strings.entries[i].key, strings.entries[i].len});
	}
	json_end(j);
	dict_fini(&strings);
	return r;
}

/* ---- title and facts ---- */

/* Appends the targets' executables: "convert", "make, cc1 and 3 more". Returns their number. */
static uint32_t targets(struct buf *b, const struct fusee_profile *p)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i < p->mappings.n; i++) {
		const struct fusee_mapping *m = FUSEE_AT(struct fusee_mapping, p->mappings, i);
		struct fusee_str name = str_base_name(str_at(p, m->path));

		if (!(m->flags & FUSEE_MAPPING_MAIN) || !name.len || n++ >= TITLE_NAMES)
			continue;
		buf_str(b, n > 1 ? ", " : "");
		buf_add(b, name.p, name.len);
	}
	if (n > TITLE_NAMES)
		buf_printf(b, " and %u more", n - TITLE_NAMES);
	return n;
}

static void next_fact(struct json *j, struct buf *fact)
{
	json_buf(j, NULL, fact);
	buf_reset(fact);
}

static bool is_host(const struct fusee_label *l)
{
	return fusee_text_is(l->key, "host") && l->str.p;
}

/* The label `host` of the target or of all samples; p NULL: there is none, or several. */
static struct fusee_str host_of(const struct fusee_profile *p)
{
	struct fusee_str host = {0};

	for (uint32_t i = 0; i < p->resource.n; i++)
		if (is_host(FUSEE_AT(struct fusee_label, p->resource, i)))
			return FUSEE_AT(struct fusee_label, p->resource, i)->str;
	for (uint32_t i = 0; i < p->labels.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->labels, i);

		if (!is_host(l))
			continue;
		if (host.p && (host.len != l->str.len || memcmp(host.p, l->str.p, host.len)))
			return (struct fusee_str){0};
		host = l->str;
	}
	return host;
}

static void put_host(struct json *j, const struct fusee_profile *p, struct buf *fact)
{
	struct fusee_str host = host_of(p);

	if (!host.p || !host.len)
		return;
	buf_str(fact, "host ");
	buf_add(fact, host.p, host.len);
	next_fact(j, fact);
}

static void put_losses(struct json *j, const struct fusee_profile *p, enum loss_stage stage,
		       struct buf *fact)
{
	struct buf reasons = {0};
	uint64_t sum = 0;
	uint32_t n = 0;
	char number[32];

	for (uint32_t i = 0; i < p->losses.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->losses, i);

		if (loss_stage_of(l) != stage || l->num <= 0)
			continue;
		sum += (uint64_t)l->num;
		if (n++ >= FACTS_REASONS)
			continue;
		buf_printf(&reasons, "%s%s ", n > 1 ? ", " : "",
			   text_number(number, (uint64_t)l->num));
		buf_add(&reasons, l->key.p, l->key.len);
	}
	if (sum) {
		buf_printf(fact, "%s sample%s %s (", text_number(number, sum), sum == 1 ? "" : "s",
			   loss_stage_text(stage));
		buf_add(fact, reasons.p, reasons.len);
		buf_str(fact, n > FACTS_REASONS ? " ...)" : ")");
		next_fact(j, fact);
	}
	if (reasons.error)
		j->out->error = reasons.error;
	buf_fini(&reasons);
}

static void put_times(struct json *j, const struct fusee_profile *p, struct buf *fact)
{
	time_t seconds = (time_t)(p->start_ns / 1000000000u);
	struct tm tm;
	char when[64];

	if (seconds && localtime_r(&seconds, &tm) &&
	    strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm)) {
		buf_str(fact, when);
		next_fact(j, fact);
	}
	if (p->duration_ns) {
		buf_printf(fact, "%.1f s long", (double)p->duration_ns / 1e9);
		next_fact(j, fact);
	}
}

/* ---- the stacks that are drawn ---- */

/* The sums of the stacks that are too many for a browser. */
struct omitted {
	uint32_t stacks;
	int64_t value, base;
};

static int64_t size_of(const struct render_stack *s)
{
	return saturate_abs(s->value ? s->value : s->base);
}

/* The number of stacks that are larger than size. */
static uint32_t larger(const int64_t *sizes, uint32_t n, int64_t size)
{
	uint32_t larger = 0;

	for (uint32_t i = 0; i < n; i++)
		larger += sizes[i] > size;
	return larger;
}

/* The size of the smallest of the MAX_STACKS largest stacks. */
static int64_t smallest_drawn(const int64_t *sizes, uint32_t n)
{
	int64_t low = 0, high = 0; /* at most MAX_STACKS are larger than high */

	for (uint32_t i = 0; i < n; i++)
		high = sizes[i] > high ? sizes[i] : high;
	while (low < high) {
		int64_t mid = low + (high - low) / 2;

		if (larger(sizes, n, mid) <= MAX_STACKS)
			high = mid;
		else
			low = mid + 1;
	}
	return high;
}

/* Keeps the largest stacks of the model, of those of a size the first. Sums of functions stay those
 * of all stacks. 0 or -ENOMEM. */
static int omit_small(struct render_model *m, struct omitted *o)
{
	uint32_t n = 0, equal;
	int64_t *sizes, drawn;

	*o = (struct omitted){0};
	if (m->nstacks <= MAX_STACKS)
		return 0;
	sizes = malloc(m->nstacks * sizeof(*sizes));
	if (!sizes)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->nstacks; i++)
		sizes[i] = size_of(&m->stacks[i]);
	drawn = smallest_drawn(sizes, m->nstacks);
	equal = MAX_STACKS - larger(sizes, m->nstacks, drawn);
	for (uint32_t i = 0; i < m->nstacks; i++) {
		if (sizes[i] > drawn || (sizes[i] == drawn && equal && equal--)) {
			m->stacks[n++] = m->stacks[i];
			continue;
		}
		saturate_add(&o->value, m->stacks[i].value > 0 ? m->stacks[i].value : 0);
		saturate_add(&o->base, m->stacks[i].base > 0 ? m->stacks[i].base : 0);
	}
	o->stacks = m->nstacks - n;
	m->nstacks = n;
	free(sizes);
	return 0;
}

static void put_omitted(struct json *j, const struct render_model *m, const struct omitted *o,
			struct buf *fact)
{
	char value[RENDER_NUMBER], percent[RENDER_NUMBER], number[32], drawn[32];

	if (!o->stacks)
		return;
	render_value(value, o->value, m->unit, "auto");
	render_percent(percent, o->value, m->total);
	buf_printf(fact, "the largest %s are drawn; the other %s stacks have %s (%s)",
		   text_number(drawn, MAX_STACKS), text_number(number, o->stacks), value,
		   percent + strspn(percent, " "));
	next_fact(j, fact);
}

/* ---- process and thread ---- */

/* Whether samples differ in a label. */
static bool differs(const struct fusee_profile *p, const char *key)
{
	struct fusee_str k = {key, strlen(key)};
	struct buf first = {0}, other = {0};
	const struct fusee_sample *before = NULL, *s;
	bool found = false;

	for (uint32_t i = 0; p && !found && i < p->samples.n; i++) {
		s = FUSEE_AT(struct fusee_sample, p->samples, i);
		if (before && s->first_label == before->first_label &&
		    s->nlabels == before->nlabels)
			continue;
		before = s;
		buf_reset(&other);
		render_label(p, s, k, i ? &other : &first);
		found = i && (first.len != other.len ||
			      (first.len && memcmp(first.p, other.p, first.len)));
	}
	buf_fini(&first);
	buf_fini(&other);
	return found;
}

/* The labels that the page can group by, where --by names none. */
static const char *page_labels(const struct fusee_profile *p, const struct fusee_profile *base)
{
	bool process = differs(p, "process") || differs(base, "process");
	bool thread = differs(p, "thread") || differs(base, "thread");

	return process && thread ? "process,thread"
	       : process         ? "process"
	       : thread          ? "thread"
				 : NULL;
}

static void put_labels(struct json *j, const char *by)
{
	json_list(json_line(j, 0), "labels");
	while (*by) {
		size_t n = strcspn(by, ",");

		json_str(j, NULL, (struct fusee_str){by, n});
		by += n + (by[n] == ',');
	}
	json_end(j);
}

/* ---- the page ---- */

static int put_head(struct json *j, const struct render_model *m, const struct render_calls *t,
		    const struct omitted *omitted, const char *given)
{
	struct buf b = {0};
	char number[32];
	bool named = targets(&b, m->profile);
	int r;

	if (!named)
		buf_str(&b, given ? given : "profile");
	json_buf(j, "title", &b);
	buf_reset(&b);
	buf_printf(&b, "%s stacks", text_number(number, m->nstacks + omitted->stacks));
	json_list(j, "facts");
	next_fact(j, &b);
	put_omitted(j, m, omitted, &b);
	if (named && given) {
		buf_str(&b, given);
		next_fact(j, &b);
	}
	put_times(j, m->profile, &b);
	put_host(j, m->profile, &b);
	put_losses(j, m->profile, LOSS_TICK, &b);
	put_losses(j, m->profile, LOSS_STACK, &b);
	if (t->negative) {
		buf_printf(&b, "%s stacks with negative values are not shown",
			   text_number(number, t->negative));
		next_fact(j, &b);
	}
	json_end(j);
	r = b.error;
	buf_fini(&b);
	return r;
}

static int put_data(struct buf *out, struct render_model *m, const struct render_options *o,
		    bool grouped)
{
	const char *by = o->by ? o->by : "";
	struct json j = {.out = out};
	struct omitted omitted;
	struct render_calls t;
	int r = omit_small(m, &omitted);

	if (!r)
		r = render_calls_make(&t, m);
	if (r)
		return r;
	json_open(&j, NULL);
	r = put_head(&j, m, &t, &omitted, o->title);
	json_str(&j, "type", m->type);
	json_str(&j, "unit", m->unit);
	json_flag(&j, "diff", m->base);
	json_int(&j, "total", m->total);
	json_int(&j, "base", m->base_total);
	json_printf(&j, "weights", "[%.0f,%.0f]", weight_of(m->total, m->noise),
		    weight_of(m->base_total, m->base_noise));
	json_printf(&j, "limit", "%.3f", m->z_limit);
	json_printf(&j, "omitted", "[%" PRId64 ",%" PRId64 "]", omitted.value, omitted.base);
	put_labels(&j, by);
	json_flag(&j, "grouped", grouped);
	if (!r)
		r = put_functions(&j, m, &t, by);
	if (!r)
		r = put_tree(&j, &t, m->base);
	json_end(&j);
	render_calls_free(&t);
	return r;
}

static void put_part(const struct part *part, bool served, struct buf *out)
{
	if (served) {
		buf_str(out, part->served);
		return;
	}
	buf_str(out, part->before);
	buf_add(out, part->text, (size_t)(part->end - part->text));
	buf_str(out, part->after);
}

static int put_page(const struct fusee_profile *p, const struct fusee_profile *base,
		    const struct render_options *options, bool served, struct buf *out)
{
	struct render_options o = *options;
	const char *at = flamegraph_html;
	struct render_model m;
	int r;

	if (!o.by)
		o.by = page_labels(p, base);
	r = render_model_make(&m, p, base, &o, out);
	if (r)
		return r;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		const char *mark = strstr(at, parts[i].mark);

		buf_add(out, at, (size_t)(mark - at));
		at = mark + strlen(parts[i].mark);
		if (parts[i].text)
			put_part(&parts[i], served, out);
		else if (!r)
			r = put_data(out, &m, &o, options->by);
	}
	buf_add(out, at, (size_t)(flamegraph_html_end - at));
	render_model_free(&m);
	return r ? r : out->error;
}

int render_flamegraph(const struct fusee_profile *p, const struct fusee_profile *base,
		      const struct render_options *o, struct buf *out)
{
	return put_page(p, base, o, false, out);
}

int render_flamegraph_served(const struct fusee_profile *p, const struct fusee_profile *base,
			     const struct render_options *o, struct buf *out)
{
	return put_page(p, base, o, true, out);
}

struct fusee_str render_flamegraph_file(const char *name)
{
	if (!strcmp(name, "flamegraph.css"))
		return (struct fusee_str){flamegraph_css,
					  (uint64_t)(flamegraph_css_end - flamegraph_css)};
	if (!strcmp(name, "flamegraph.js"))
		return (struct fusee_str){flamegraph_js,
					  (uint64_t)(flamegraph_js_end - flamegraph_js)};
	return (struct fusee_str){0};
}
