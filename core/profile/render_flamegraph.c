/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph page: flamegraph.html, .css and .js in one file, with the call tree as data: nodes in
 * preorder, each as variable-length numbers (function, depth, flags, value, and of a diff the base's value), in base64.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/dict.h"
#include "profile/render.h"
#include "profile/render_model.h"

#define EMBED(sym, path)                                                                            \
	__asm__(".pushsection .rodata\n" #sym ":\n.incbin \"" path "\"\n" #sym "_end:\n.byte 0\n.popsection\n"); \
	extern const char sym[], sym##_end[]

EMBED(flamegraph_html, "core/profile/flamegraph.html");
EMBED(flamegraph_css, "core/profile/flamegraph.css");
EMBED(flamegraph_js, "core/profile/flamegraph.js");

/* A node is known by its parent and function. A dictionary key: no padding. */
struct key {
	uint32_t parent, function;
};

struct node {
	uint32_t function, depth, flags;
	uint32_t first, next;        /* child, sibling; 0: none */
	int64_t value, base;
};

struct tree {
	struct dict keys;            /* struct key -> index; 0: the root */
	struct node *nodes;
	uint32_t cap;
	uint64_t negative;           /* stacks that a page cannot show */
};

/* ---- the tree ---- */

static struct node *child(struct tree *t, uint32_t parent, const struct render_frame *f, uint32_t *index)
{
	struct key k = {parent, f->function};
	uint32_t before = t->keys.n, i = dict_add(&t->keys, &k, sizeof(k));

	if (i == DICT_NONE)
		return NULL;
	if (i >= t->cap) {
		uint32_t cap = t->cap ? t->cap * 2 : 1024;
		struct node *nodes = realloc(t->nodes, cap * sizeof(*nodes));

		if (!nodes)
			return NULL;
		memset(nodes + t->cap, 0, (cap - t->cap) * sizeof(*nodes));
		t->nodes = nodes;
		t->cap = cap;
	}
	if (i == before) {
		t->nodes[i].function = f->function;
		t->nodes[i].depth = t->nodes[parent].depth + 1;
		t->nodes[i].next = t->nodes[parent].first;
		t->nodes[parent].first = i;
	}
	*index = i;
	return &t->nodes[i];
}

static int add_stack(struct tree *t, const struct render_model *m, const struct render_stack *s)
{
	uint32_t at = 0;

	if (s->value < 0 || s->base < 0) {
		t->negative++;
		return 0;
	}
	t->nodes[0].value += s->value;
	t->nodes[0].base += s->base;
	for (uint32_t i = s->n; i-- > 0;) {
		const struct render_frame *f = &m->frames[s->first + i];
		struct node *n = child(t, at, f, &at);

		if (!n)
			return -ENOMEM;
		n->flags |= f->flags;
		n->value += s->value;
		n->base += s->base;
	}
	return 0;
}

static int make_tree(struct tree *t, const struct render_model *m)
{
	int r = dict_init(&t->keys);

	t->cap = 1024;
	t->nodes = calloc(t->cap, sizeof(*t->nodes));
	if (!t->nodes)
		r = -ENOMEM;
	for (uint32_t i = 0; !r && i < m->nstacks; i++)
		r = add_stack(t, m, &m->stacks[i]);
	return r;
}

static int64_t gcd(int64_t a, int64_t b)
{
	while (b) {
		int64_t c = a % b;

		a = b;
		b = c;
	}
	return a;
}

/* The largest number that divides all values: they are written in units of it. */
static int64_t scale_of(const struct tree *t)
{
	int64_t g = 0;

	for (uint32_t i = 0; i < t->keys.n; i++)
		g = gcd(gcd(g, t->nodes[i].value), t->nodes[i].base);
	return g ? g : 1;
}

/* ---- writing ---- */

static void put_number(struct buf *b, uint64_t n)
{
	unsigned char bytes[10];
	size_t len = 0;

	do {
		bytes[len++] = (unsigned char)((n & 127) | (n > 127 ? 128 : 0));
		n >>= 7;
	} while (n);
	buf_add(b, bytes, len);
}

static int put_nodes(struct buf *b, const struct tree *t, int64_t scale, bool diff)
{
	uint32_t *stack = malloc((t->keys.n + 1) * sizeof(*stack)), n = 0;

	if (!stack)
		return -ENOMEM;
	for (uint32_t c = t->nodes[0].first; c; c = t->nodes[c].next)
		stack[n++] = c;
	while (n) {
		const struct node *at = &t->nodes[stack[--n]];

		put_number(b, at->function);
		put_number(b, at->depth);
		put_number(b, at->flags);
		put_number(b, (uint64_t)(at->value / scale));
		if (diff)
			put_number(b, (uint64_t)(at->base / scale));
		for (uint32_t c = at->first; c; c = t->nodes[c].next)
			stack[n++] = c;
	}
	free(stack);
	return b->error;
}

static void put_base64(struct buf *out, const struct buf *in)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = (const void *)in->p;
	char *to = buf_grow(out, (in->len + 2) / 3 * 4);

	if (!to)
		return;
	for (size_t i = 0; i < in->len; i += 3) {
		size_t left = in->len - i;
		uint32_t v = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (left > 2 ? p[i + 2] : 0);

		*to++ = digits[v >> 18];
		*to++ = digits[v >> 12 & 63];
		*to++ = left > 1 ? digits[v >> 6 & 63] : '=';
		*to++ = left > 2 ? digits[v & 63] : '=';
	}
}

/* A JSON string that is safe inside a <script> too: no '<', no line separators of JavaScript. Texts are valid UTF-8. */
static void put_string(struct buf *b, struct fusee_str s)
{
	buf_add(b, "\"", 1);
	for (uint64_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c < 0x20 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x7f)
			buf_printf(b, "\\u%04x", c);
		else if (c == 0xe2 && i + 2 < s.len && (unsigned char)s.p[i + 1] == 0x80 &&
			 ((unsigned char)s.p[i + 2] == 0xa8 || (unsigned char)s.p[i + 2] == 0xa9)) {
			buf_printf(b, "\\u20%02x", (unsigned char)s.p[i + 2] - 0x80);
			i += 2;
		} else {
			buf_add(b, &s.p[i], 1);
		}
	}
	buf_add(b, "\"", 1);
}

static void put_functions(struct buf *b, const struct render_model *m)
{
	buf_str(b, ",\"functions\":[");
	for (uint32_t i = 0; i < m->nfunctions; i++) {
		const struct render_function *f = &m->functions[i];

		buf_str(b, i ? ",\n[" : "\n[");
		put_string(b, f->name);
		buf_str(b, ",");
		put_string(b, f->file);
		buf_str(b, ",");
		put_string(b, f->library);
		/* KINDS of flamegraph.js stand in the order of enum render_code. */
		buf_printf(b, ",%u,%lld,%lld,%lld,%lld]", f->code, (long long)f->self, (long long)f->total, (long long)f->base_self,
			   (long long)f->base_total);
	}
	buf_str(b, "]");
}

static struct fusee_str cstr(const char *s)
{
	return (struct fusee_str){s, strlen(s)};
}

/* "2026-11-21 04:05, 7.4 s, 2,043 stacks" */
static void put_facts(struct buf *b, const struct render_model *m, const struct tree *t)
{
	time_t seconds = (time_t)(m->profile->start_ns / 1000000000u);
	char when[64] = "", text[256];
	struct tm tm;

	if (seconds && localtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S, ", &tm);
	snprintf(text, sizeof(text), "%s%.1f s, %u stacks", when, (double)m->profile->duration_ns / 1e9, m->nstacks);
	if (t->negative)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), ", %llu with negative values left out",
			 (unsigned long long)t->negative);
	put_string(b, cstr(text));
}

static int put_data(struct buf *b, const struct render_model *m, const struct render_options *o)
{
	struct tree t = {0};
	struct buf nodes = {0};
	int r = make_tree(&t, m);
	int64_t scale;

	if (r)
		goto out;
	scale = scale_of(&t);
	r = put_nodes(&nodes, &t, scale, m->base != NULL);
	buf_str(b, "{\"title\":");
	put_string(b, cstr(o->title ? o->title : "profile"));
	buf_str(b, ",\"facts\":");
	put_facts(b, m, &t);
	buf_str(b, ",\"type\":");
	put_string(b, m->type);
	buf_str(b, ",\"unit\":");
	put_string(b, m->unit);
	buf_printf(b, ",\"diff\":%s,\"total\":%lld,\"base\":%lld,\"drawn\":%lld,\"drawnBase\":%lld,\"scale\":%lld",
		   m->base ? "true" : "false", (long long)m->total, (long long)m->base_total,
		   (long long)t.nodes[0].value, (long long)t.nodes[0].base, (long long)scale);
	put_functions(b, m);
	buf_str(b, ",\"tree\":\"");
	put_base64(b, &nodes);
	buf_str(b, "\"}");
out:
	buf_fini(&nodes);
	dict_fini(&t.keys);
	free(t.nodes);
	return r;
}

/* Copies the template up to a mark; what follows it. */
static const char *up_to(struct buf *b, const char *from, const char *mark)
{
	const char *at = strstr(from, mark);

	buf_add(b, from, (size_t)(at - from));
	return at + strlen(mark);
}

int render_flamegraph(const struct fusee_profile *p, const struct fusee_profile *base,
		      const struct render_options *o, struct buf *out)
{
	struct render_model m;
	const char *at;
	int r = render_model_make(&m, p, base, o, out);

	if (r)
		return r;
	at = up_to(out, flamegraph_html, "@STYLE@");
	buf_add(out, flamegraph_css, (size_t)(flamegraph_css_end - flamegraph_css));
	at = up_to(out, at, "@DATA@");
	r = put_data(out, &m, o);
	at = up_to(out, at, "@SCRIPT@");
	buf_add(out, flamegraph_js, (size_t)(flamegraph_js_end - flamegraph_js));
	buf_str(out, at);
	render_model_free(&m);
	return r ? r : out->error;
}
